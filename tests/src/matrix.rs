//! Runs the cases of one loop, each on every carrier that it makes sense on, and says how many passed on each.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Trial};

use crate::carrier::Carrier;
use crate::watched;

/// How many cases run at once unless `--test-threads` says otherwise, 8: most of the time of a case is waiting.
const AT_ONCE: usize = 8;

/// A case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is about, and what it is called.
    pub name: &'static str,
    /// Where it runs.
    pub on: &'static [Carrier],
    /// The case itself, which panics when it fails.
    pub run: fn(Carrier),
}

/// Lists the cases of a module for [`run`]: `on` is one of the lists of [`Carrier`].
#[macro_export]
macro_rules! cases {
    ($($on:ident: $($case:ident)*;)*) => {
        pub const CASES: &[$crate::matrix::Case] = &[$($($crate::matrix::Case {
            name: concat!(module_path!(), "::", stringify!($case)),
            on: $crate::carrier::Carrier::$on,
            run: $case,
        },)*)*];
    };
}

/// The tests of one loop. Takes the arguments of any test program, and prints a line for each carrier at the end.
pub fn run(on: &str, cases: &[&[Case]]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let tallies =
        Carrier::EVERY.iter().map(|carrier| (*carrier, Arc::<Tally>::default())).collect::<Vec<_>>();
    let mut trials = Vec::new();
    for (carrier, tally) in &tallies {
        for case in cases.iter().copied().flatten().filter(|case| case.on.contains(carrier)) {
            trials.push(trial(*case, *carrier, Arc::clone(tally)));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    for (carrier, tally) in &tallies {
        let (passed, begun) = (tally.passed.load(Ordering::SeqCst), tally.begun.load(Ordering::SeqCst));
        if begun > 0 {
            println!("matrix on {on}, {carrier}: {passed} of {begun} passed");
        }
    }
    conclusion.exit_code()
}

/// What came of the cases on one carrier.
#[derive(Debug, Default)]
struct Tally {
    begun: AtomicUsize,
    passed: AtomicUsize,
}

fn trial(case: Case, carrier: Carrier, tally: Arc<Tally>) -> Trial {
    // The module's path begins with the program and the folder of the cases.
    let name = case.name.split_once("cases::").map_or(case.name, |(_, name)| name);
    Trial::test(format!("{name}::{}", carrier.name()), move || {
        tally.begun.fetch_add(1, Ordering::SeqCst);
        watched(move || (case.run)(carrier));
        tally.passed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    })
}
