//! Accepting with no descriptor free. A process of its own, as the limit holds for all of it.

#![allow(clippy::expect_used)] // a test fails where it panics

use glib::MainContext;
use hyperman_glib::GlibRuntime;
use hyperman_transport::conformance::{Harness, sockets};

struct Own;

impl Harness for Own {
    type Runtime = GlibRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(GlibRuntime)) {
        let context = MainContext::new();
        context.block_on(case(GlibRuntime::new(context.clone()).expect("descriptors are free")));
    }
}

#[test]
fn accepting_waits() {
    sockets::out_of_descriptors(&Own);
}
