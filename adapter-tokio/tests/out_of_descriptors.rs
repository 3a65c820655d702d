//! Accepting with no descriptor free. A process of its own, as the limit holds for all of it.

#![allow(clippy::unwrap_used)]

use hyperman_tokio::TokioRuntime;
use hyperman_transport::conformance::{Harness, sockets};
use tokio::runtime::Builder;

struct CurrentThread;

impl Harness for CurrentThread {
    type Runtime = TokioRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(TokioRuntime)) {
        let tokio = Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(case(TokioRuntime::new(tokio.handle().clone())));
    }
}

#[test]
fn accepting_waits() {
    sockets::out_of_descriptors(&CurrentThread);
}
