//! The contract between an event loop and a driver: attempt first, then arm.
//!
//! A driver never asks a loop "wake me when this is readable" up front. It makes the system call; only when the call
//! would block does the loop learn of it. The rules, each of which is a case of the conformance suite:
//!
//! 1. The attempt comes first; the loop is armed only after it would block, and no wake-up is lost in between.
//! 2. A wake-up may be spurious. A later arming replaces the earlier waker for the same interest.
//! 3. Read and write interest are independent. After end of file read interest is dropped, so a half-closed peer never
//!    spins the loop.
//! 4. Dropping a source deregisters it before its descriptor closes.
//! 5. A read that filled less than the storage it was given has drained the socket: [`ArmReadiness::poll_recv`] may
//!    arm without a second system call.

use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::BytesMut;

/// What a driver waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Bytes, a connection to accept, end of file or an error can be read.
    Read,
    /// The socket takes bytes, or its connect ended.
    Write,
}

/// A socket that an event loop watches for us. Owned by one task at a time; dropping it deregisters, then closes.
pub trait ArmReadiness: AsFd + Unpin {
    /// Runs `attempt`; when it would block, arms the loop to wake `cx` once the socket is ready for `interest`, and
    /// returns `Pending`.
    ///
    /// `attempt` may run more than once and must be a non-blocking system call on the descriptor it is lent.
    /// `Interrupted` is retried here.
    ///
    /// # Errors
    /// Whatever `attempt` fails with, `WouldBlock` excepted, and the loop's own failure to register the socket.
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>>;

    /// Receives into the spare capacity of `buf` and says how many bytes were appended; 0 is the end of the file.
    ///
    /// `buf` must have spare capacity (`buf.capacity() > buf.len()`), else the answer is `InvalidInput`: a full buffer
    /// must not look like the end of the file. A loop may remember that the last read did not fill the storage and
    /// arm without a system call (rule 5).
    ///
    /// # Errors
    /// As [`arm_readiness`](Self::arm_readiness).
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        self.arm_readiness(Interest::Read, cx, |socket| crate::stream::recv(socket, buf))
    }

    /// Whether the last [`poll_recv`](Self::poll_recv) has drained the socket, and the loop is armed to wake `cx`: then
    /// another one would be pending, and need not be called to find that out. A loop that does not keep account of this
    /// says no.
    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        let _ = cx;
        false
    }

    /// Sends the slices in order and says how many bytes the kernel took, at least one when any slice is not empty.
    /// Never raises `SIGPIPE`.
    ///
    /// # Errors
    /// As [`arm_readiness`](Self::arm_readiness).
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.arm_readiness(Interest::Write, cx, |socket| crate::stream::send(socket, data))
    }
}

/// An event loop, as a cheap handle: passed by value, never detected, never global.
pub trait Runtime: Clone + 'static {
    /// A registered socket.
    type Source: ArmReadiness + 'static;
    /// A timer of this loop.
    type Timer: Timer + 'static;

    /// Hands a non-blocking socket to the loop.
    ///
    /// # Errors
    /// When the loop cannot take one more descriptor. The socket is closed then.
    fn source(&self, socket: OwnedFd) -> io::Result<Self::Source>;

    /// A timer that is not armed.
    fn timer(&self) -> Self::Timer;

    /// The loop's time: read at least once per turn of the loop, so it may lag by what one turn takes. Never goes
    /// backwards. A test's runtime may turn it forward by itself.
    fn now(&self) -> Instant;
}

/// A timer that one task waits on. Dropping it cancels.
pub trait Timer: Unpin {
    /// Ready once `deadline` has passed, never before it; otherwise arms the timer to wake `cx` then.
    ///
    /// A different `deadline` than the last call's re-arms the timer in place, and the waker is always the latest
    /// call's. A deadline in the past is ready at once. A loop may be late by its resolution (1 ms for most).
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()>;

    /// Takes the timer off the loop: no wake-up comes from it until it is armed again.
    fn disarm(&mut self);
}

/// Starts tasks of the type `F`. Implemented per future type, so that tokio's multi-thread runtime asks for `Send` and
/// a single-threaded loop does not.
pub trait Spawn<F: Future<Output = ()>> {
    /// Starts `future` as a task of its own. It runs until it is ready or the loop ends.
    fn spawn(&self, future: F);
}

/// Runs `attempt` until no signal interrupts it.
///
/// # Errors
/// Whatever `attempt` fails with, `Interrupted` excepted.
#[inline]
pub fn uninterrupted<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
