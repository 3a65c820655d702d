//! One connection to a server, in use or kept: its stream, its protocol machine and its identity.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use http::HeaderMap;
use hyperman_http1::{Client as Machine, PreparedFields};
use hyperman_transport::{ArmReadiness, ByteStream, Runtime, loan};

use crate::client::Config;
use crate::connect::Stream;
use crate::exchange::State;
use crate::pool::{Keep, Key};

/// How long the loop's word is taken for it that nothing came on an idle connection, 1 ms: about one turn of a busy
/// loop, and less than a message takes that races our request through most networks.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);

pub(crate) struct Connection<R: Runtime> {
    pub(crate) stream: Parting<R::Source>,
    pub(crate) machine: Machine,
    pub(crate) peer: SocketAddr,
    /// The fields of a request to this origin that adds none of its own.
    pub(crate) plain_head: Option<Box<PlainHead>>,
    /// Where the exchange on it stands.
    pub(crate) state: State<R::Timer>,
    key: Key,
    opened: Instant,
    idle_since: Instant,
}

/// Fields that are the same for many requests.
pub(crate) struct PlainHead {
    /// Where the fields come from.
    pub(crate) config: Arc<Config>,
    pub(crate) fields: HeaderMap,
    pub(crate) prepared: PreparedFields,
}

impl<R: Runtime> Connection<R> {
    pub(crate) fn new(
        stream: Stream<R::Source>,
        config: &Config,
        key: Key,
        peer: SocketAddr,
        now: Instant,
    ) -> Box<Self> {
        let machine = Machine::new(config.machine.clone(), now);
        Box::new(Connection {
            stream: Parting(Some(stream)),
            machine,
            peer,
            plain_head: None,
            state: State::new(),
            key,
            opened: now,
            idle_since: now,
        })
    }

    /// Whether an idle connection is one to send a request on. Whatever can be read now was not asked for: the end of
    /// the connection, or bytes that would be taken for the next answer (S49).
    ///
    /// A connection that was idle for a moment only is judged by what the loop knows, without a system call. What came
    /// since the loop looked last is not known to it, so a longer pause is worth a look at the socket itself.
    pub(crate) fn is_quiet(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        if !self.machine.can_reuse() {
            return false;
        }
        let paused = now > self.idle_since && now.saturating_duration_since(self.idle_since) >= MOMENT;
        // Of a TLS server this may be a ticket that comes late. To find out costs more than another connection, and a
        // record that was half read must not be taken for silence.
        if paused && !matches!(self.stream.peek(), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            return false;
        }
        self.is_silent(cx)
    }

    /// Whether nothing has come on an idle connection, as far as the loop knows; the task is woken when something does.
    #[inline]
    pub(crate) fn is_silent(&mut self, cx: &mut Context<'_>) -> bool {
        if self.stream.will_wake_to_read(cx) {
            return true;
        }
        let mut storage = loan::take();
        let outcome = self.stream.poll_recv(cx, &mut storage);
        loan::give_back(storage);
        matches!(outcome, Poll::Pending)
    }
}

/// A stream that says goodbye when it is dropped, where its protocol asks for that: TLS does (RFC 8446 §6.1), so that the
/// server can tell an end from a cut. What the socket does not take at once stays unsaid: a drop cannot wait.
pub(crate) struct Parting<S: ArmReadiness>(Option<Stream<S>>);

impl<S: ArmReadiness> Parting<S> {
    fn peek(&self) -> io::Result<()> {
        self.0.as_ref().map_or_else(gone, Stream::peek)
    }

    /// The stream, for whoever has something else to say on it.
    pub(crate) fn take(mut self) -> Option<Stream<S>> {
        self.0.take()
    }
}

/// Nobody has a `Parting` whose stream was taken.
#[cold]
fn gone<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotConnected.into())
}

impl<S: ArmReadiness> Drop for Parting<S> {
    fn drop(&mut self) {
        #[cfg(feature = "tls")]
        if let Some(Stream::Tls(tls)) = &mut self.0 {
            let _ = tls.poll_close_write(&mut Context::from_waker(std::task::Waker::noop()));
        }
    }
}

impl<S: ArmReadiness> ByteStream for Parting<S> {
    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        self.0.as_ref().is_some_and(|stream| stream.will_wake_to_read(cx))
    }

    #[inline]
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        self.0.as_mut().map_or_else(|| Poll::Ready(gone()), |stream| stream.poll_recv(cx, buf))
    }

    #[inline]
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.0.as_mut().map_or_else(|| Poll::Ready(gone()), |stream| stream.poll_send(cx, data))
    }

    #[inline]
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().map_or_else(|| Poll::Ready(gone()), |stream| stream.poll_flush(cx))
    }

    fn poll_close_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().map_or_else(|| Poll::Ready(gone()), |stream| stream.poll_close_write(cx))
    }
}

impl<R: Runtime> Keep for Box<Connection<R>> {
    fn key(&self) -> &Key {
        &self.key
    }

    fn opened(&self) -> Instant {
        self.opened
    }

    fn idle_since(&self) -> Instant {
        self.idle_since
    }

    fn set_idle_since(&mut self, now: Instant) {
        self.idle_since = now;
    }
}
