//! The suite of the contract, on the default context and on one of the thread's own.

#![allow(clippy::expect_used)] // a test fails where it panics

use glib::MainContext;
use hyperman_glib::GlibRuntime;
use hyperman_transport::conformance::{Harness, run};

struct Default;

impl Harness for Default {
    type Runtime = GlibRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(GlibRuntime)) {
        let context = MainContext::default();
        context.block_on(case(GlibRuntime::new(context.clone()).expect("descriptors are free")));
    }
}

struct Own;

impl Harness for Own {
    type Runtime = GlibRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(GlibRuntime)) {
        let context = MainContext::new();
        context.block_on(case(GlibRuntime::new(context.clone()).expect("descriptors are free")));
    }
}

#[test]
fn default_context() {
    run("glib (default context)", Default);
}

#[test]
fn own_context() {
    run("glib (own context)", Own);
}
