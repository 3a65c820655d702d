//! The suite of the contract, on every backend of this machine.

#![expect(clippy::unwrap_used, reason = "a test that fails is to panic")]

use hyperman_loop::{Backend, Handle, Loop};
use hyperman_transport::conformance::{Harness, run};

struct Over(Backend);

impl Harness for Over {
    type Runtime = Handle;

    fn block_on(&self, case: impl AsyncFnOnce(Handle)) {
        let event_loop = Loop::with_backend(self.0).unwrap();
        event_loop.block_on(case(event_loop.handle()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn epoll() {
    run("native (epoll)", Over(Backend::Epoll));
}

#[cfg(target_os = "linux")]
#[test]
fn io_uring() {
    run("native (io_uring)", Over(Backend::IoUring));
}

#[test]
fn poll() {
    run("native (poll)", Over(Backend::Poll));
}
