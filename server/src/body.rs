//! The body of a request, as a handler reads it.
//!
//! A body that was already received when its handler is called is handed over whole. Any other is a bounded queue
//! between the connection, which fills it, and whoever holds the [`Body`], which may be another task or thread.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use hyperman_transport::PeerAddr;

/// How many bytes wait for the handler before the connection stops reading, 64 KiB: enough to keep a fast handler
/// busy, little enough for thousands of slow ones.
pub(crate) const QUEUE_BYTES: usize = 64 * 1024;

/// After how many bytes taken by the handler the connection is told, 16 KiB: a quarter of the first HTTP/2 window, so
/// that the peer is granted more before it has to stop.
const GRANT_BYTES: usize = 16 * 1024;

/// What a handler can know of the connection that its request came by.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// Who is at the other end.
    pub peer: PeerAddr,
    /// What the TLS handshake agreed on; `None` on cleartext.
    #[cfg(feature = "tls")]
    pub tls: Option<hyperman_transport::tls::TlsInfo>,
}

impl ConnectionInfo {
    pub(crate) fn cleartext(peer: PeerAddr) -> Self {
        ConnectionInfo {
            peer,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Whether the connection is one over TLS.
    pub fn is_encrypted(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }
}

/// The body of a request. Reading it lets the peer send more; dropping it unread is allowed at any time.
#[derive(Debug)]
pub struct Body {
    source: Source,
    connection: Option<Arc<ConnectionInfo>>,
}

#[derive(Debug)]
enum Source {
    Empty,
    Whole(Bytes),
    Queue(Receiver),
}

/// Why a request's body ended before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyError {
    /// The connection ended first: the peer went away, broke the protocol, was too slow, or the server shut down.
    Disconnected,
    /// The body is longer than the server takes.
    TooLarge,
}

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            BodyError::Disconnected => "the connection ended before the request's body did",
            BodyError::TooLarge => "the request's body is larger than this server takes",
        })
    }
}

impl std::error::Error for BodyError {}

impl Body {
    /// A body without a byte.
    #[inline]
    pub fn empty() -> Self {
        Body { source: Source::Empty, connection: None }
    }

    #[inline]
    pub(crate) fn whole(data: Bytes) -> Self {
        if data.is_empty() {
            return Body::empty();
        }
        Body { source: Source::Whole(data), connection: None }
    }

    pub(crate) fn queue(receiver: Receiver) -> Self {
        Body { source: Source::Queue(receiver), connection: None }
    }

    #[inline]
    pub(crate) fn on(mut self, connection: &Arc<ConnectionInfo>) -> Self {
        self.connection = Some(Arc::clone(connection));
        self
    }

    /// The connection that the request came by; `None` for a body that was made by hand, as in a test.
    pub fn connection(&self) -> Option<&ConnectionInfo> {
        self.connection.as_deref()
    }

    /// Who sent the request; `None` as in [`connection`](Self::connection).
    pub fn peer_addr(&self) -> Option<&PeerAddr> {
        self.connection().map(|connection| &connection.peer)
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::empty()
    }
}

impl From<Bytes> for Body {
    #[inline]
    fn from(data: Bytes) -> Self {
        Body::whole(data)
    }
}

impl From<&'static str> for Body {
    #[inline]
    fn from(data: &'static str) -> Self {
        Body::whole(Bytes::from_static(data.as_bytes()))
    }
}

impl From<String> for Body {
    fn from(data: String) -> Self {
        Body::whole(Bytes::from(data))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            Source::Empty => Poll::Ready(None),
            Source::Whole(data) => {
                let data = std::mem::take(data);
                self.source = Source::Empty;
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Source::Queue(receiver) => receiver.poll_frame(cx),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Empty => true,
            Source::Whole(data) => data.is_empty(),
            Source::Queue(receiver) => receiver.is_end_stream(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Empty => SizeHint::with_exact(0),
            Source::Whole(data) => SizeHint::with_exact(data.len() as u64),
            Source::Queue(receiver) => receiver.size_hint(),
        }
    }
}

/// The connection's end of a body's queue.
#[derive(Debug)]
pub(crate) struct Sender(Arc<Mutex<Queue>>);

/// The handler's end.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    chunks: VecDeque<Bytes>,
    buffered: usize,
    /// Bytes that the handler has taken since the connection last asked.
    taken: usize,
    /// Bytes that are still to come out, where the peer declared them.
    remaining: Option<u64>,
    trailers: Option<HeaderMap>,
    ended: Option<Result<(), BodyError>>,
    /// The handler has asked for bytes that were not there since the connection last looked.
    wanted: bool,
    dropped: bool,
    reader: Option<Waker>,
    connection: Option<Waker>,
}

impl Queue {
    fn demand(&self) -> Demand {
        if self.dropped {
            Demand::Dropped
        } else if self.wanted {
            Demand::Waiting
        } else if self.buffered >= QUEUE_BYTES {
            Demand::Full
        } else {
            Demand::Room
        }
    }
}

/// The two ends of a body's queue; `length` is what the peer declared.
pub(crate) fn channel(length: Option<u64>) -> (Sender, Receiver) {
    let queue = Arc::new(Mutex::new(Queue { remaining: length, ..Queue::default() }));
    (Sender(Arc::clone(&queue)), Receiver(queue))
}

/// What the connection must know of the handler's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// The handler waits for bytes.
    Waiting,
    /// There is room for more, but nobody waits.
    Room,
    /// Enough bytes wait for the handler.
    Full,
    /// The handler has dropped the body.
    Dropped,
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // No code of others runs under this lock, so a poisoned queue is still a whole one.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sender {
    pub(crate) fn send(&self, data: Bytes) {
        let mut queue = lock(&self.0);
        if queue.dropped || data.is_empty() {
            queue.taken += data.len();
            return;
        }
        queue.buffered += data.len();
        queue.chunks.push_back(data);
        queue.wanted = false;
        let reader = queue.reader.take();
        drop(queue);
        wake(reader);
    }

    pub(crate) fn trailers(&self, trailers: HeaderMap) {
        lock(&self.0).trailers = Some(trailers);
    }

    pub(crate) fn end(&self, outcome: Result<(), BodyError>) {
        let mut queue = lock(&self.0);
        if queue.ended.is_none() {
            queue.ended = Some(outcome);
        }
        queue.connection = None;
        let reader = queue.reader.take();
        drop(queue);
        wake(reader);
    }

    /// How much the handler wants now.
    pub(crate) fn demand(&self) -> Demand {
        lock(&self.0).demand()
    }

    /// Registers the connection to be woken when the demand changes. Says no when it is no longer `seen`: then the
    /// connection must look again at once.
    pub(crate) fn watch(&self, seen: Demand, cx: &Context<'_>) -> bool {
        let mut queue = lock(&self.0);
        match &mut queue.connection {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        queue.demand() == seen
    }

    /// Whether the end was sent and everything before it was taken.
    pub(crate) fn is_through(&self) -> bool {
        let queue = lock(&self.0);
        queue.ended.is_some() && queue.chunks.is_empty() && queue.taken == 0
    }

    /// How many bytes the handler has taken, or will never take, since the last call.
    pub(crate) fn take_taken(&self) -> usize {
        std::mem::take(&mut lock(&self.0).taken)
    }

    /// The connection is awake: it will look at the demand itself.
    pub(crate) fn unwatch(&self) {
        lock(&self.0).connection = None;
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.end(Err(BodyError::Disconnected));
    }
}

impl Receiver {
    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut queue = lock(&self.0);
        if let Some(data) = queue.chunks.pop_front() {
            let was_full = queue.buffered >= QUEUE_BYTES;
            queue.buffered -= data.len();
            queue.taken += data.len();
            if let Some(remaining) = &mut queue.remaining {
                *remaining = remaining.saturating_sub(data.len() as u64);
            }
            let has_room = was_full && queue.buffered < QUEUE_BYTES || queue.taken >= GRANT_BYTES;
            let connection = if has_room { queue.connection.take() } else { None };
            drop(queue);
            wake(connection);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(outcome) = queue.ended {
            if let Err(error) = outcome {
                // An error is said once; after it the body is over.
                queue.ended = Some(Ok(()));
                return Poll::Ready(Some(Err(error)));
            }
            return Poll::Ready(queue.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        match &mut queue.reader {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        let connection = if queue.wanted { None } else { queue.connection.take() };
        queue.wanted = true;
        drop(queue);
        wake(connection);
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        let queue = lock(&self.0);
        queue.chunks.is_empty() && queue.trailers.is_none() && matches!(queue.ended, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        let queue = lock(&self.0);
        match (queue.remaining, &queue.ended) {
            (Some(remaining), _) => SizeHint::with_exact(remaining),
            (None, Some(Ok(()))) => SizeHint::with_exact(queue.buffered as u64),
            _ => {
                let mut hint = SizeHint::new();
                hint.set_lower(queue.buffered as u64);
                hint
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.dropped = true;
        queue.taken += queue.buffered;
        let chunks = std::mem::take(&mut queue.chunks);
        queue.reader = None;
        let connection = queue.connection.take();
        drop(queue);
        drop(chunks);
        wake(connection);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
