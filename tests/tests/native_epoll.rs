//! The cases on our own loop over epoll.

#[path = "../cases/mod.rs"]
mod cases;

use std::future::Future;
use std::process::ExitCode;

use hyperman_loop::{Backend, Loop};

type Rt = hyperman_loop::Handle;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let Ok(event_loop) = Loop::with_backend(Backend::Epoll) else { panic!("no loop over epoll") };
    let handle = event_loop.handle();
    event_loop.block_on(future(handle))
}

fn main() -> ExitCode {
    cases::run("native (epoll)")
}
