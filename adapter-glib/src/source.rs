//! A socket that a GLib main context watches.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use glib::{ControlFlow, IOCondition};
use hyperman_transport::{ArmReadiness, Interest, stream};

use crate::GlibRuntime;
use crate::alarm::Alarm;

/// A socket and its GLib sources: one for each interest that a task waits for.
#[derive(Debug)]
pub struct GlibSource {
    // Fields are dropped in this order: the GLib sources are gone before their descriptor closes.
    read: Alarm,
    write: Alarm,
    socket: OwnedFd,
    runtime: GlibRuntime,
    /// The last receive left the socket empty, and nothing has been armed since.
    drained: bool,
}

impl GlibSource {
    pub(crate) fn new(runtime: GlibRuntime, socket: OwnedFd) -> Self {
        GlibSource { read: Alarm::default(), write: Alarm::default(), socket, runtime, drained: false }
    }

    /// A level-triggered source reports what came before it was there, so that arming after an attempt loses nothing.
    fn arm(&mut self, interest: Interest, waker: &Waker) {
        let (alarm, condition) = match interest {
            Interest::Read => (&mut self.read, IOCondition::IN),
            Interest::Write => (&mut self.write, IOCondition::OUT),
        };
        if alarm.rewire(waker) {
            return;
        }
        let (runtime, number) = (&self.runtime, self.socket.as_raw_fd());
        alarm.set(waker, |waiting| {
            let fire = move |_, _| {
                waiting.wake();
                ControlFlow::Break
            };
            let source = glib_unix::fd_source_new(number, condition, None, runtime.priority, fire);
            runtime.attach(&source);
            source
        });
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
        loop {
            match attempt(self.socket.as_fd()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.arm(interest, cx.waker());
                    return Poll::Pending;
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
        if self.drained {
            self.drained = false;
            self.arm(Interest::Read, cx.waker());
            return Poll::Pending;
        }
        // Armed and not yet woken: the context would have told of bytes.
        if self.read.rewire(cx.waker()) {
            return Poll::Pending;
        }
        let received = self.arm_readiness(Interest::Read, cx, |socket| stream::recv(socket, buf));
        // The end of the file (0) is found again by every later receive.
        self.drained = matches!(received, Poll::Ready(Ok(length)) if 0 < length && length < spare);
        received
    }
}
