//! The suite that every loop must pass: one function per rule of the [contract](crate::readiness).
//!
//! A loop's own tests implement [`Harness`] and call [`run`]:
//!
//! ```ignore
//! #[test]
//! fn keeps_the_contract() {
//!     conformance::run("my loop", MyLoop);
//! }
//! ```
//!
//! Here are the table of the cases and what runs them. [`attempts`], [`interests`], [`lifetimes`], [`sockets`],
//! [`timers`] and [`tasks`] hold the cases, [`apparatus`] what they are made of: peers, wakers that count, turns of the loop.
//!
//! A case fails by a panic, or by not ending: a lost wake-up is a task that sleeps for ever.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a case that does not go as it should panics"
)]

pub mod apparatus;
pub mod attempts;
pub mod interests;
pub mod lifetimes;
pub mod sockets;
pub mod tasks;
pub mod timers;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::readiness::{Runtime, Spawn};

/// A task of the suite. It is `Send`, so that a loop with several threads can take it.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How the suite gets a loop to run on.
pub trait Harness: Send + Sync + 'static {
    /// The loop.
    type Runtime: Runtime + Spawn<Task>;

    /// Whether the loop's clock is made up. A real one is compared with the system's.
    const VIRTUAL_TIME: bool = false;

    /// Makes a new loop on the calling thread and runs it until `case` has ended.
    fn block_on(&self, case: impl AsyncFnOnce(Self::Runtime));
}

/// A case: the rule as a name, and the function that tries it.
pub type Case<H> = (&'static str, fn(&H));

/// How long a case may take, 60 s: the slowest takes a second on a busy machine, and one that hangs never ends.
const LONGEST: Duration = Duration::from_secs(60);

/// All cases.
pub fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        ("a fresh source is attempted before it is armed", attempts::fresh_source),
        ("errors pass through, interrupts are retried", attempts::errors_and_interrupts),
        ("bytes between the failed read and the arming wake", attempts::burst_before_arming_read),
        ("room between the failed write and the arming wakes", attempts::room_before_arming_write),
        ("no wake-up is lost under bursts", attempts::bursts),
        ("no wake-up is lost between blocked writes", attempts::blocked_writes),
        ("a read that did not fill its storage arms and wakes", attempts::short_read),
        ("a full buffer is not the end of the file", attempts::full_buffer),
        ("end of file right behind the last bytes is found", attempts::end_behind_bytes),
        ("a large transfer arrives whole both ways", attempts::large_transfer),
        ("a wake-up whose bytes are gone arms anew", interests::stolen_bytes),
        ("polls without news stay armed", interests::idle_polls),
        ("a later arming replaces the waker", interests::replaced_waker),
        ("read and write interest are independent", interests::independent),
        ("a half-closed peer does not spin the loop", interests::half_closed),
        ("a peer that is gone does not spin the loop", interests::hung_up),
        ("bytes that nobody asks for do not spin the loop", interests::unread),
        ("a reset by the peer wakes", interests::reset),
        ("a reused descriptor number never hears its predecessor's events", lifetimes::reused_number),
        ("dropping a source closes its socket", lifetimes::closes),
        ("dropping a source forgets its wakers", lifetimes::forgets_wakers),
        ("a thousand sockets wake each its own task", lifetimes::thousand_sockets),
        ("connecting and accepting wake, IPv4", sockets::ipv4),
        ("connecting and accepting wake, IPv6", sockets::ipv6),
        ("connecting and accepting wake, Unix", sockets::unix),
        ("IPv4 and IPv6 are listened on apart, or together", sockets::dual_stack),
        ("a port in use is an error, a socket file nobody listens on is not", sockets::in_use),
        ("a refused connect wakes with its error", sockets::refused),
        ("a connect that is dropped is forgotten", sockets::dropped_connect),
        ("a listening socket is taken over", sockets::taken_over),
        ("one direction closes, the other goes on", sockets::close_write),
        ("more slices than the system takes go in parts", sockets::many_slices),
        #[cfg(target_os = "linux")]
        ("a part of a file is sent from the kernel", sockets::send_file),
        ("a deadline in the past is ready at once", timers::past),
        ("timers are never early", timers::never_early),
        ("a timer moves to a later deadline", timers::moved_later),
        ("a timer moves to an earlier deadline", timers::moved_earlier),
        ("a timer that fired can be armed again", timers::again),
        ("a cancelled timer does not wake", timers::cancelled),
        ("a timer wakes the latest waker", timers::replaced_waker),
        ("ten thousand timers at once", timers::ten_thousand),
        ("the loop's time never goes backwards", timers::monotonic),
        ("wake-ups from other threads arrive", tasks::woken_from_a_thread),
        ("spawned tasks run and are woken from other threads", tasks::spawned),
        ("a wake-up after the task has ended is harmless", tasks::woken_too_late),
        ("a task that wakes itself for ever does not starve the rest", tasks::self_waking),
    ]
}

/// Runs every case, each on a thread and a loop of its own, and prints how many passed.
///
/// # Panics
/// When one did not, with the names of all that did not.
pub fn run<H: Harness>(name: &str, harness: H) {
    let harness = Arc::new(harness);
    let cases = cases::<H>();
    let failed: Vec<_> = cases
        .iter()
        .filter_map(|&(rule, case)| run_case(&harness, case).err().map(|why| format!("{rule}: {why}")))
        .collect();
    println!("suite on {name}: {} of {} passed", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "suite on {name}:\n  {}", failed.join("\n  "));
}

fn run_case<H: Harness>(harness: &Arc<H>, case: fn(&H)) -> Result<(), String> {
    let (ended, wait) = mpsc::channel();
    let harness = harness.clone();
    let thread = thread::spawn(move || {
        case(&harness);
        let _ = ended.send(());
    });
    match wait.recv_timeout(LONGEST) {
        // The thread is left behind: nothing can end it.
        Err(mpsc::RecvTimeoutError::Timeout) => Err(format!("has not ended after {LONGEST:?}")),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => thread.join().map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
        }),
    }
}
