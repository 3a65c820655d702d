//! A socket that tokio's driver watches.
//!
//! The socket is kept as a [`tokio::net::TcpStream`], whatever its kind: only its registration is used, and no read
//! or write of tokio's own. The registration knows two things of a direction, *may be ready* and *is not*, with the
//! turn of the driver that said so. [`TcpStream::try_io`] takes back exactly what it saw before its system call, so an
//! event that comes between a failed call and the arming is not taken back with it and the arming finds it.
//! (`AsyncFd` would do the same at the same cost, but it can only be made by unsafe code.)

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use hyperman_transport::readiness::uninterrupted;
use hyperman_transport::{ArmReadiness, Interest, stream};
use tokio::net::TcpStream;

/// A registered socket. Dropping it deregisters, then closes.
#[derive(Debug)]
pub struct TokioSource {
    registration: TcpStream,
    /// Since the registration a read has found the socket empty, so whatever came later shows in the registration and
    /// a read that it says nothing of would block.
    read_tracked: bool,
    /// The same of a full socket and writes.
    write_tracked: bool,
}

/// What a system call did, as far as the readiness goes.
enum Outcome<T> {
    /// It succeeded, and more may be possible.
    Done(T),
    /// It succeeded and left the socket empty (read) or full (write).
    Last(T),
}

impl TokioSource {
    /// Registers with the driver of the runtime that the caller has entered.
    pub(crate) fn register(socket: OwnedFd) -> io::Result<Self> {
        let registration = TcpStream::from_std(std::net::TcpStream::from(socket))?;
        Ok(TokioSource { registration, read_tracked: false, write_tracked: false })
    }

    /// Attempts, and arms when the attempt would block. `always` makes the system call even where the registration
    /// knows that it would block.
    #[inline]
    fn attempt_or_arm<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut always: bool,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<Outcome<T>>,
    ) -> Poll<io::Result<T>> {
        let (tracked, tokio_interest) = match interest {
            Interest::Read => (&mut self.read_tracked, tokio::io::Interest::READABLE),
            Interest::Write => (&mut self.write_tracked, tokio::io::Interest::WRITABLE),
        };
        loop {
            let mut attempted = false;
            let mut last = None;
            let outcome = self.registration.try_io(tokio_interest, || {
                attempted = true;
                match uninterrupted(|| attempt(self.registration.as_fd()))? {
                    Outcome::Done(done) => Ok(done),
                    Outcome::Last(done) => {
                        last = Some(done);
                        // So that what was seen before the call is taken back.
                        Err(io::ErrorKind::WouldBlock.into())
                    }
                }
            });
            match outcome {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
            if !attempted && (always || !*tracked) {
                match uninterrupted(|| attempt(self.registration.as_fd())) {
                    Ok(Outcome::Done(done)) => return Poll::Ready(Ok(done)),
                    Ok(Outcome::Last(done)) => last = Some(done),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            *tracked = true;
            always = false;
            if let Some(done) = last {
                return Poll::Ready(Ok(done));
            }
            // Ready at once when an event came in the meantime, or when tokio's budget for this task is spent.
            ready!(match interest {
                Interest::Read => self.registration.poll_read_ready(cx),
                Interest::Write => self.registration.poll_write_ready(cx),
            })?;
        }
    }
}

impl AsFd for TokioSource {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.registration.as_fd()
    }
}

impl ArmReadiness for TokioSource {
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.attempt_or_arm(interest, cx, true, |socket| attempt(socket).map(Outcome::Done))
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let spare = buf.capacity() - buf.len();
        if spare == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        self.attempt_or_arm(Interest::Read, cx, false, |socket| {
            let received = stream::recv(socket, buf)?;
            // End of file (0) stays in the registration: every later read attempts, and finds it again.
            Ok(if received == 0 || received == spare {
                Outcome::Done(received)
            } else {
                Outcome::Last(received)
            })
        })
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let offered: usize = data.iter().take(stream::MOST_SLICES).map(|slice| slice.len()).sum();
        self.attempt_or_arm(Interest::Write, cx, false, |socket| {
            let sent = stream::send(socket, data)?;
            Ok(if sent == offered { Outcome::Done(sent) } else { Outcome::Last(sent) })
        })
    }
}
