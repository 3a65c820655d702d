//! The cases on tokio, current_thread.

#[path = "../cases/mod.rs"]
mod cases;

use std::future::Future;
use std::process::ExitCode;

use tokio::runtime::Builder;

type Rt = hyperman_tokio::TokioRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { panic!("no runtime") };
    let handle = Rt::new(runtime.handle().clone());
    runtime.block_on(future(handle))
}

fn main() -> ExitCode {
    cases::run("tokio (current_thread)")
}
