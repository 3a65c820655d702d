//! The client's cases: Fetch on the loop, a server that follows a script in threads of its own.

mod bodies;
mod deadlines;
mod reuse;

use std::future::poll_fn;
use std::time::Duration;

use hyperman_tests::carrier::Carrier;
use hyperman_tests::matrix::Case;
use hyperman_tests::replier::Replier;
use hyperman_tests::script::{Script, Scripted};
use hyperman_transport::{Runtime, Timer};

use crate::Rt;

pub const CASES: &[&[Case]] = &[reuse::CASES, bodies::CASES, deadlines::CASES];

async fn pause(runtime: &Rt, time: Duration) {
    let mut timer = runtime.timer();
    let until = runtime.now() + time;
    poll_fn(|cx| timer.poll_deadline(until, cx)).await;
}

/// A server of one connection.
fn one(on: Carrier, script: impl FnOnce(&mut Replier) + Send + 'static) -> Scripted {
    Scripted::one(on, script)
}

fn script<P>(script: impl FnOnce(&mut P) + Send + 'static) -> Script<P> {
    Box::new(script)
}
