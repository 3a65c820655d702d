//! The cases on our own loop over io_uring.

#[path = "../cases/mod.rs"]
mod cases;

use std::future::Future;
use std::process::ExitCode;

use hyperman_loop::{Backend, Loop};

type Rt = hyperman_loop::Handle;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let Ok(event_loop) = Loop::with_backend(Backend::IoUring) else { panic!("no loop over io_uring") };
    let handle = event_loop.handle();
    event_loop.block_on(future(handle))
}

fn main() -> ExitCode {
    cases::run("native (io_uring)")
}
