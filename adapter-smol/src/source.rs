//! A socket that async-io's reactor watches.
//!
//! The reactor asks the kernel for one event at a time: arming costs a system call (`epoll_ctl` on Linux), and after an
//! event nothing is watched until the next arming. So a socket that nobody asks about can never spin the loop, and
//! arming reports what happened before it, which makes attempt-then-arm free of races.
//!
//! An event stays noted in [`Async`] until a poll of the readiness takes it. Left there, it would make the next arming
//! come back at once and cost a system call that blocks; so [`SmolSource`] takes it before it receives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use async_io::Async;
use bytes::BytesMut;
use hyperman_transport::readiness::uninterrupted;
use hyperman_transport::{ArmReadiness, Interest, stream};

/// A registered socket. Dropping it deregisters, then closes.
#[derive(Debug)]
pub struct SmolSource {
    registration: Async<OwnedFd>,
    read: ReadState,
}

/// What the last receive has left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadState {
    /// Nothing is known of the socket.
    Unknown,
    /// It was empty, and the reactor has not been asked about it since.
    Drained,
    /// The reactor was asked, and has not said yet that there is something.
    Armed,
}

impl SmolSource {
    pub(crate) fn register(socket: OwnedFd) -> io::Result<Self> {
        Ok(SmolSource { registration: Async::new_nonblocking(socket)?, read: ReadState::Unknown })
    }
}

impl AsFd for SmolSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registration.as_fd()
    }
}

impl ArmReadiness for SmolSource {
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        if interest == Interest::Read {
            // Whatever the attempt leaves behind, a receive must look for itself.
            self.read = ReadState::Unknown;
        }
        loop {
            match uninterrupted(|| attempt(self.registration.as_fd())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Ready at once for an event that an earlier call was woken by.
                    ready!(match interest {
                        Interest::Read => self.registration.poll_readable(cx),
                        Interest::Write => self.registration.poll_writable(cx),
                    })?;
                }
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let spare = buf.capacity() - buf.len();
        if spare == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        loop {
            let mut armed = false;
            match self.read {
                ReadState::Unknown => {}
                ReadState::Drained => {
                    self.read = ReadState::Armed;
                    ready!(self.registration.poll_readable(cx))?;
                }
                // Not yet ready may mean that the event came in the turn of the reactor that was under way when it was
                // armed; it is armed once more then. So this attempts, too.
                ReadState::Armed => armed = self.registration.poll_readable(cx)?.is_pending(),
            }
            self.read = ReadState::Unknown;
            match uninterrupted(|| stream::recv(self.registration.as_fd(), buf)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.read = if armed { ReadState::Armed } else { ReadState::Drained };
                    if armed {
                        return Poll::Pending;
                    }
                }
                Ok(received) => {
                    // The end of the file (0) is found again by every later receive.
                    if 0 < received && received < spare {
                        self.read = ReadState::Drained;
                    }
                    return Poll::Ready(Ok(received));
                }
                failed => return Poll::Ready(failed),
            }
        }
    }
}
