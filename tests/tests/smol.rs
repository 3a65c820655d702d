//! The cases on smol.

#[path = "../cases/mod.rs"]
mod cases;

use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

type Rt = hyperman_smol::SmolRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let executor = Arc::new(smol::Executor::new());
    smol::block_on(executor.run(future(Rt::new(&executor))))
}

fn main() -> ExitCode {
    cases::run("smol (threads)")
}
