//! The body of an answer, piece by piece.
//!
//! It owns the connection while more is to come, gives it back to the pool at the end, and closes it when it is dropped
//! before. Where a server answers with a success before it has read the whole request, the end of the body waits for the
//! rest of that to be sent (RFC 9110 §7.5). What arrived together with the head is held here already, so a small answer frees its connection at once.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use hyperman_http1::{BodyLength, ClientEvent};
use hyperman_transport::Runtime;

use crate::connect::Stream;
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind};
use crate::exchange::Early;
use crate::transaction::Transaction;

/// The body of an answer: an [`http_body::Body`].
pub struct Incoming<R: Runtime> {
    /// The connection, while more is to come from it.
    exchange: Option<Transaction<R>>,
    early: Early,
    deadline: Deadline<R::Timer>,
    length: BodyLength,
    received: u64,
    limit: u64,
    upgraded: bool,
}

impl<R: Runtime> Incoming<R> {
    /// The body that follows a head which has come on this exchange.
    pub(crate) fn new(
        exchange: Transaction<R>,
        length: BodyLength,
        early: Early,
        upgraded: bool,
        deadline: Deadline<R::Timer>,
        limit: Option<u64>,
    ) -> Result<Self, ErrorKind> {
        if let (Some(limit), BodyLength::Known(length)) = (limit, length)
            && length > limit
        {
            return Err(ErrorKind::BodyTooLarge(limit));
        }
        let exchange = exchange.unless_over(&early);
        let limit = limit.unwrap_or(u64::MAX);
        Ok(Incoming { exchange, early, deadline, length, received: 0, limit, upgraded })
    }

    /// The length that the answer announced, in bytes.
    pub(crate) fn announced(&self) -> Option<u64> {
        match self.length {
            BodyLength::Empty => Some(0),
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked | BodyLength::UntilClose => None,
        }
    }

    pub(crate) fn into_upgraded(self) -> Option<Upgraded<R>> {
        let exchange = self.exchange.filter(|_| self.upgraded)?;
        let (connection, read) = exchange.into_upgraded()?;
        Some(Upgraded { stream: connection.stream.take()?, read })
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ErrorKind>>> {
        if self.upgraded {
            return Poll::Ready(None);
        }
        let event = if let Some(first) = self.early.first.take() {
            ClientEvent::Data(first)
        } else if let Some(event) = self.early.rest.pop_front() {
            event
        } else if let Some(kind) = self.early.failed.take() {
            return Poll::Ready(Some(Err(*kind)));
        } else if let Some(exchange) = &mut self.exchange {
            if self.deadline.has_passed(cx) {
                self.exchange = None;
                return Poll::Ready(Some(Err(ErrorKind::Timeout)));
            }
            if self.early.over {
                return self.poll_upload(cx);
            }
            match ready!(exchange.poll_event(cx)) {
                Ok(event) => event,
                Err(kind) => {
                    self.exchange = None;
                    return Poll::Ready(Some(Err(kind)));
                }
            }
        } else {
            return Poll::Ready(None);
        };
        let frame = self.frame(event);
        if frame.is_none() && self.exchange.is_some() { self.poll_upload(cx) } else { Poll::Ready(frame) }
    }

    /// The answer is whole, the request is not sent whole yet: the end comes when it is.
    fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ErrorKind>>> {
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(None) };
        let outcome = ready!(exchange.poll_upload(cx));
        self.exchange = None;
        Poll::Ready(outcome.err().map(Err))
    }

    fn frame(&mut self, event: ClientEvent) -> Option<Result<Frame<Bytes>, ErrorKind>> {
        match event {
            ClientEvent::Data(data) => {
                self.received = self.received.saturating_add(data.len() as u64);
                if self.received > self.limit {
                    self.exchange = None;
                    self.early = Early::default();
                    return Some(Err(ErrorKind::BodyTooLarge(self.limit)));
                }
                Some(Ok(Frame::data(data)))
            }
            ClientEvent::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            // After the head of an answer nothing but its body comes.
            ClientEvent::End
            | ClientEvent::Interim(_)
            | ClientEvent::Response { .. }
            | ClientEvent::Upgraded(_) => {
                self.early.over = true;
                if let Some(exchange) = self.exchange.take_if(|exchange| !exchange.is_uploading()) {
                    exchange.finish();
                }
                None
            }
        }
    }

    /// The whole body, if it is one piece that came with the head and was not begun: the usual case, without waiting.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let Early { first, rest, failed, over } = &mut self.early;
        let sent = self.exchange.is_none();
        let whole = *over && sent && rest.is_empty() && failed.is_none() && self.received == 0;
        let first = first.take_if(|first| whole && first.len() as u64 <= self.limit)?;
        Some(Gathered { only: Some(first), joined: Vec::new() }.into_bytes())
    }

    /// All of the rest. `Err` says what failed.
    pub(crate) async fn collect(mut self) -> Result<(Bytes, Option<HeaderMap>), Error> {
        let mut whole = Gathered::default();
        let mut trailers = None;
        while let Some(frame) = std::future::poll_fn(|cx| self.poll_piece(cx)).await {
            match frame.map_err(Error::answered)?.into_data() {
                Ok(data) => whole.push(data, self.announced()),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        Ok((whole.into_bytes(), trailers))
    }
}

/// The pieces of a body put together.
#[derive(Default)]
struct Gathered {
    only: Option<Bytes>,
    joined: Vec<u8>,
}

/// Up to this length a piece is copied out of the receive buffer, 4 KiB: whoever keeps many small answers must not keep
/// a whole buffer alive for each.
const COPIED: usize = 4 << 10;

/// The most that an announced length makes us allocate before anything has come, 1 MiB.
const TRUSTED: u64 = 1 << 20;

impl Gathered {
    fn push(&mut self, data: Bytes, announced: Option<u64>) {
        match self.only.take() {
            None if self.joined.is_empty() => self.only = Some(data),
            first => {
                if let Some(first) = first {
                    let expected = announced.unwrap_or(0).min(TRUSTED);
                    self.joined.reserve(usize::try_from(expected).unwrap_or(0));
                    self.joined.extend_from_slice(&first);
                }
                self.joined.extend_from_slice(&data);
            }
        }
    }

    fn into_bytes(self) -> Bytes {
        match self.only {
            Some(only) if only.len() <= COPIED => Bytes::copy_from_slice(&only),
            Some(only) => only,
            None => self.joined.into(),
        }
    }
}

impl<R: Runtime> http_body::Body for Incoming<R> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.get_mut().poll_piece(cx).map(|piece| piece.map(|piece| piece.map_err(Error::answered)))
    }

    fn is_end_stream(&self) -> bool {
        let Early { first, rest, failed, .. } = &self.early;
        let came = first.is_some() || !rest.is_empty() || failed.is_some();
        self.upgraded || self.exchange.is_none() && !came
    }

    fn size_hint(&self) -> SizeHint {
        match self.announced() {
            Some(length) => SizeHint::with_exact(length.saturating_sub(self.received)),
            None => SizeHint::new(),
        }
    }
}

impl<R: Runtime> fmt::Debug for Incoming<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("length", &self.length)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

/// A connection on which the server has switched protocols.
pub struct Upgraded<R: Runtime> {
    /// The connection.
    pub stream: Stream<R::Source>,
    /// What the server said after its answer, already read.
    pub read: Bytes,
}

impl<R: Runtime> fmt::Debug for Upgraded<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").field("read", &self.read.len()).finish_non_exhaustive()
    }
}
