//! A socket that a GLib main context watches.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use hyperman_transport::readiness::uninterrupted;
use hyperman_transport::{ArmReadiness, Interest, stream};

use crate::driver::Driver;

/// A registered socket. Dropping it deregisters, then closes.
#[derive(Debug)]
pub struct GlibSource {
    driver: Arc<Driver>,
    key: usize,
    socket: OwnedFd,
}

impl GlibSource {
    pub(crate) fn register(driver: &Arc<Driver>, socket: OwnedFd) -> io::Result<Self> {
        let key = driver.register(socket.as_fd())?;
        Ok(GlibSource { driver: Arc::clone(driver), key, socket })
    }

    /// Takes what is known of the direction's readiness: an event that comes during the attempt is not taken with it.
    /// If nothing is known, `cx` will be woken.
    fn poll_take(&self, interest: Interest, cx: &mut Context<'_>) -> Poll<()> {
        let (readiness, replaced) = self.driver.with(self.key, interest, |direction| {
            if !std::mem::replace(&mut direction.blocked, true) {
                return (Poll::Ready(()), None);
            }
            match &direction.waker {
                Some(waker) if waker.will_wake(cx.waker()) => (Poll::Pending, None),
                _ => (Poll::Pending, direction.waker.replace(cx.waker().clone())),
            }
        });
        drop(replaced);
        readiness
    }

    /// After an attempt that has not blocked: whether the next one would.
    fn put_back(&self, interest: Interest, drained: bool) {
        self.driver.with(self.key, interest, |direction| direction.blocked &= drained && !direction.ended);
    }
}

impl AsFd for GlibSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ArmReadiness for GlibSource {
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.driver.with(self.key, interest, |direction| direction.blocked = true);
        loop {
            match uninterrupted(|| attempt(self.socket.as_fd())) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.poll_take(interest, cx))
                }
                outcome => {
                    self.put_back(interest, false);
                    return Poll::Ready(outcome);
                }
            }
        }
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let spare = buf.capacity() - buf.len();
        if spare == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        loop {
            ready!(self.poll_take(Interest::Read, cx));
            match uninterrupted(|| stream::recv(self.socket.as_fd(), buf)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => {
                    let drained = outcome.as_ref().is_ok_and(|received| (1..spare).contains(received));
                    self.put_back(Interest::Read, drained);
                    return Poll::Ready(outcome);
                }
            }
        }
    }
}

impl Drop for GlibSource {
    fn drop(&mut self) {
        self.driver.deregister(self.key, self.socket.as_fd());
    }
}
