//! The suite of the contract, on each of smol's executors.

#![allow(clippy::unwrap_used)]

use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use hyperman_smol::{SmolLocal, SmolRuntime};
use hyperman_transport::conformance::{Harness, run};
use smol::{Executor, LocalExecutor, channel};

struct Local;

impl Harness for Local {
    type Runtime = SmolLocal;

    fn block_on(&self, case: impl AsyncFnOnce(SmolLocal)) {
        let executor = Rc::new(LocalExecutor::new());
        smol::block_on(executor.run(case(SmolLocal::new(&executor))));
    }
}

/// The case on one thread, the tasks on two others.
struct Threads;

impl Harness for Threads {
    type Runtime = SmolRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(SmolRuntime)) {
        let executor = Arc::new(Executor::new());
        let (stop, stopped) = channel::bounded::<()>(1);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (executor, stopped) = (executor.clone(), stopped.clone());
                thread::spawn(move || smol::block_on(executor.run(stopped.recv())))
            })
            .collect();
        smol::block_on(case(SmolRuntime::new(&executor)));
        drop(stop);
        for thread in threads {
            assert!(thread.join().unwrap().is_err(), "closed, nothing was sent");
        }
    }
}

/// An executor that is there for good, run by the case's thread.
struct Static;

impl Harness for Static {
    type Runtime = SmolRuntime;

    fn block_on(&self, case: impl AsyncFnOnce(SmolRuntime)) {
        let executor: &Executor<'_> = Box::leak(Box::new(Executor::new()));
        smol::block_on(executor.run(case(SmolRuntime::from_static(executor))));
    }
}

#[test]
fn local_executor() {
    run("smol (local)", Local);
}

#[test]
fn executor_on_threads() {
    run("smol (threads)", Threads);
}

#[test]
fn static_executor() {
    run("smol (static)", Static);
}
