//! A socket on the loop.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use hyperman_transport::{ArmReadiness, Interest, stream};

use crate::backend::{Key, Ready};
use crate::event_loop::Handle;
use crate::registry::Readiness;

/// A socket registered with a [`Loop`](crate::Loop).
///
/// It remembers what the kernel last reported, so [`poll_recv`](ArmReadiness::poll_recv) after a read that did not fill
/// its buffer, and [`poll_send`](ArmReadiness::poll_send) after one that would have blocked, wait without a system call.
#[derive(Debug)]
pub struct Source {
    // The first field that drops is the last to need the descriptor open: see `Drop`.
    handle: Handle,
    readiness: Rc<Readiness>,
    key: Key,
    fd: OwnedFd,
}

impl Source {
    pub(crate) fn new(handle: Handle, fd: OwnedFd) -> io::Result<Self> {
        let (key, readiness) = handle.register(fd.as_fd())?;
        Ok(Source { handle, readiness, key, fd })
    }

    #[inline]
    fn wait_to_read(&self, cx: &mut Context<'_>) -> io::Result<()> {
        self.readiness.reader.set(cx.waker());
        self.readiness.reader_waits();
        self.handle.arm(self.fd.as_fd(), self.key, Interest::Read)
    }

    #[inline]
    fn wait_to_write(&self, cx: &mut Context<'_>) -> io::Result<()> {
        self.readiness.writer.set(cx.waker());
        self.readiness.writer_waits();
        self.handle.arm(self.fd.as_fd(), self.key, Interest::Write)
    }

    /// The attempt would have blocked: waits.
    #[cold]
    fn blocked<T>(&self, interest: Interest, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let armed = match interest {
            Interest::Read => {
                self.readiness.clear(Ready::READ);
                self.wait_to_read(cx)
            }
            Interest::Write => {
                self.readiness.clear(Ready::WRITE);
                self.wait_to_write(cx)
            }
        };
        match armed {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    #[cold]
    fn not_received(
        &mut self,
        error: io::Error,
        cx: &mut Context<'_>,
        buf: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match error.kind() {
            ErrorKind::WouldBlock => self.blocked(Interest::Read, cx),
            ErrorKind::Interrupted => {
                self.arm_readiness(Interest::Read, cx, |socket| stream::recv(socket, buf))
            }
            _ => Poll::Ready(Err(error)),
        }
    }
}

impl ArmReadiness for Source {
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            match attempt(self.fd.as_fd()) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.blocked(interest, cx),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    #[inline]
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let spare = buf.capacity() - buf.len();
        if !self.readiness.is(Ready::READ) && spare > 0 {
            return match self.wait_to_read(cx) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        let received = match stream::recv(self.fd.as_fd(), buf) {
            Ok(received) => received,
            Err(error) => return self.not_received(error, cx, buf),
        };
        // The kernel had no more than that. What comes later is a new event, and wakes us. The end of the file may stand
        // behind already, and its event may be one that we have seen.
        if received < spare && !self.readiness.is(Ready::MORE_BEHIND) {
            self.readiness.clear(Ready::READ);
            if self.handle.is_edge_triggered() {
                // Costs next to nothing, and saves most callers the attempt to read once more.
                self.readiness.reader.set(cx.waker());
                self.readiness.reader_waits();
            }
        }
        Poll::Ready(Ok(received))
    }

    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        self.readiness.reader_is_waiting() && self.readiness.reader.holds(cx.waker())
    }

    #[inline]
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !self.readiness.is(Ready::WRITE) {
            return match self.wait_to_write(cx) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        self.arm_readiness(Interest::Write, cx, |socket| stream::send(socket, data))
    }
}

impl AsFd for Source {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Source {
    /// Deregisters; the descriptor closes after.
    fn drop(&mut self) {
        self.handle.deregister(self.fd.as_fd(), self.key);
    }
}
