//! The suite of the contract, on each flavour of tokio's runtime.

#![allow(clippy::unwrap_used)]

use hyperman_tokio::{TokioLocal, TokioRuntime};
use hyperman_transport::conformance::{Harness, run};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

struct CurrentThread;

impl Harness for CurrentThread {
    type Runtime = TokioRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(TokioRuntime)) {
        let tokio = Builder::new_current_thread().enable_all().build().unwrap();
        tokio.block_on(case(TokioRuntime::new(tokio.handle().clone())));
    }
}

struct MultiThread;

impl Harness for MultiThread {
    type Runtime = TokioRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(TokioRuntime)) {
        let tokio = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        tokio.block_on(case(TokioRuntime::new(tokio.handle().clone())));
    }
}

struct Local;

impl Harness for Local {
    type Runtime = TokioLocal;

    fn block_on(&self, case: impl AsyncFnOnce(TokioLocal)) {
        let tokio = Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&tokio, async { case(TokioLocal::current().unwrap()).await });
    }
}

#[test]
fn current_thread() {
    run("tokio (current_thread)", CurrentThread);
}

#[test]
fn multi_thread() {
    run("tokio (multi_thread)", MultiThread);
}

#[test]
fn local_set() {
    run("tokio (local)", Local);
}
