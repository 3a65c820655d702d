//! A socket in a made-up network.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use hyperman_transport::{ArmReadiness, Interest};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};

use super::World;

/// The most bytes that a shortened read or write moves.
const SHORT: u64 = 7;

/// See the module's words.
#[derive(Debug)]
pub struct ChaosSource<S> {
    inner: S,
    world: Arc<World>,
    listens: bool,
    dead: bool,
}

/// What the next system call meets.
enum Fate {
    Whole,
    Short(usize),
    Late,
    Failed(Errno),
}

impl<S: ArmReadiness> ChaosSource<S> {
    pub(super) fn new(inner: S, world: Arc<World>) -> Self {
        world.sources.fetch_add(1, Ordering::SeqCst);
        let listens = sockopt::socket_acceptconn(&inner).unwrap_or(false);
        ChaosSource { inner, world, listens, dead: false }
    }

    fn fate(&mut self, cx: &Context<'_>) -> Fate {
        if self.dead {
            return Fate::Failed(Errno::CONNRESET);
        }
        let world = Arc::clone(&self.world);
        let mut state = world.lock();
        state.activity += 1;
        let troubles = &world.troubles;
        if state.random.happens(troubles.late) {
            let lateness = troubles.lateness.as_millis() as u64;
            let after = Duration::from_millis(state.random.below(lateness + 1));
            state.clock.wake_after(after, cx.waker());
            return Fate::Late;
        }
        if self.listens {
            let exhausted = state.random.happens(troubles.exhausted);
            return if exhausted { Fate::Failed(Errno::MFILE) } else { Fate::Whole };
        }
        if state.random.happens(troubles.reset) {
            self.dead = true;
            // The peer hears of it by a reset; a socket that is not connected yet has no peer to tell.
            let _ = rustix::net::connect_unspec(&self.inner);
            return Fate::Failed(Errno::CONNRESET);
        }
        if state.random.happens(troubles.short) {
            return Fate::Short(1 + state.random.below(SHORT) as usize);
        }
        Fate::Whole
    }

    fn happened(&self) {
        self.world.lock().activity += 1;
    }
}

impl<S: ArmReadiness> ArmReadiness for ChaosSource<S> {
    fn arm_readiness<T>(
        &mut self,
        interest: Interest,
        cx: &mut Context<'_>,
        attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        match self.fate(cx) {
            Fate::Late => Poll::Pending,
            Fate::Failed(error) => Poll::Ready(Err(error.into())),
            Fate::Whole | Fate::Short(_) => {
                let outcome = self.inner.arm_readiness(interest, cx, attempt);
                if outcome.is_ready() {
                    self.happened();
                }
                outcome
            }
        }
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let outcome = match self.fate(cx) {
            Fate::Late => Poll::Pending,
            Fate::Failed(error) => Poll::Ready(Err(error.into())),
            // A buffer without room is told so, not that the connection has ended.
            Fate::Short(_) if buf.capacity() == buf.len() => self.inner.poll_recv(cx, buf),
            Fate::Whole => self.inner.poll_recv(cx, buf),
            Fate::Short(most) => {
                let most = most.min(buf.capacity() - buf.len());
                let mut few = vec![0; most];
                let received = self.inner.arm_readiness(Interest::Read, cx, |socket| {
                    Ok(rustix::net::recv(socket, &mut few[..], RecvFlags::empty())?.0)
                });
                if let Poll::Ready(Ok(received)) = received {
                    buf.extend_from_slice(&few[..received]);
                }
                received
            }
        };
        if outcome.is_ready() {
            self.happened();
        }
        outcome
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let outcome = match self.fate(cx) {
            Fate::Late => Poll::Pending,
            Fate::Failed(error) => Poll::Ready(Err(error.into())),
            Fate::Whole => self.inner.poll_send(cx, data),
            Fate::Short(most) => {
                let first = data.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
                let few = &first[..most.min(first.len())];
                self.inner.arm_readiness(Interest::Write, cx, |socket| {
                    Ok(rustix::net::send(socket, few, SendFlags::NOSIGNAL)?)
                })
            }
        };
        if outcome.is_ready() {
            self.happened();
        }
        outcome
    }
}

impl<S: AsFd> AsFd for ChaosSource<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<S> Drop for ChaosSource<S> {
    fn drop(&mut self) {
        self.world.sources.fetch_sub(1, Ordering::SeqCst);
    }
}
