//! What a request carries: nothing, bytes, or a stream.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use hyperman_http1::BodySize;
use pin_project_lite::pin_project;

use crate::error::BoxError;

/// A request's body.
///
/// Bytes can be sent again after a redirect or on a second connection, and so can what [`Body::repeatable`] makes; a
/// stream is used up by the first attempt.
pub struct Body {
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Bytes(Bytes),
    Stream(BoxStream),
    /// A stream for each attempt.
    Repeatable(Box<Repeatable>),
    /// A stream that an exchange has taken.
    Used,
}

/// Streams, one like the other.
pub(crate) struct Repeatable {
    make: Box<dyn FnMut() -> BoxStream + Send>,
    /// The one for the next attempt, if it was made already.
    ahead: Option<BoxStream>,
    size: BodySize,
}

pub(crate) type BoxStream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>;

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Body { kind: Kind::Bytes(Bytes::new()) }
    }

    /// A body that is produced while it is sent. Where its size hint is exact it is announced as `Content-Length`,
    /// otherwise it goes in chunks; trailers are sent after it.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body { kind: Kind::Stream(Box::pin(Uniform { body })) }
    }

    /// As [`stream`](Self::stream), made anew for each attempt: the request can be made again after a redirect that keeps
    /// its method, or where a server refused it or a connection turned out to be dead.
    ///
    /// ```
    /// # use hyperman_fetch::Body;
    /// # fn open() -> http_body_util::Full<bytes::Bytes> { "what a file holds, say".into() }
    /// let body = Body::repeatable(|| open());
    /// ```
    pub fn repeatable<B>(mut make: impl FnMut() -> B + Send + 'static) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut make = move || -> BoxStream { Box::pin(Uniform { body: make() }) };
        let first = make();
        let size = size_of(&first);
        let repeatable = Repeatable { make: Box::new(make), ahead: Some(first), size };
        Body { kind: Kind::Repeatable(Box::new(repeatable)) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.size(), BodySize::Known(0))
    }

    /// How it is framed.
    pub(crate) fn size(&self) -> BodySize {
        match &self.kind {
            Kind::Bytes(bytes) => BodySize::Known(bytes.len() as u64),
            Kind::Stream(stream) => size_of(stream),
            Kind::Repeatable(repeatable) => repeatable.size,
            Kind::Used => BodySize::Known(0),
        }
    }

    /// The body for one exchange. Bytes stay for another, and so does what makes them; a stream is used up.
    #[inline]
    pub(crate) fn lend(&mut self) -> Body {
        match &self.kind {
            Kind::Bytes(bytes) => Body { kind: Kind::Bytes(bytes.clone()) },
            _ => self.lend_stream(),
        }
    }

    #[inline(never)]
    fn lend_stream(&mut self) -> Body {
        let kind = match &mut self.kind {
            Kind::Repeatable(repeatable) => Kind::Stream(repeatable.next()),
            other => std::mem::replace(other, Kind::Used),
        };
        Body { kind }
    }

    /// Whether it can be lent once more.
    pub(crate) fn is_used_up(&self) -> bool {
        matches!(self.kind, Kind::Used)
    }
}

fn size_of(stream: &BoxStream) -> BodySize {
    http_body::Body::size_hint(stream).exact().map_or(BodySize::Unknown, BodySize::Known)
}

impl Repeatable {
    fn next(&mut self) -> BoxStream {
        let next = self.ahead.take().unwrap_or_else(&mut self.make);
        self.size = size_of(&next);
        next
    }
}

impl Default for Body {
    fn default() -> Self {
        Body::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Bytes(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Kind::Stream(_) => f.write_str("Body(stream)"),
            Kind::Repeatable(_) => f.write_str("Body(repeatable)"),
            Kind::Used => f.write_str("Body(used)"),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Body { kind: Kind::Bytes(bytes) }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from_static(bytes).into()
    }
}

impl From<()> for Body {
    fn from((): ()) -> Self {
        Body::empty()
    }
}

pin_project! {
    /// Any body, with its pieces as `Bytes` and its error boxed.
    struct Uniform<B> {
        #[pin]
        body: B,
    }
}

impl<B> http_body::Body for Uniform<B>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.project().body.poll_frame(cx).map(|frame| {
            frame.map(|frame| match frame {
                // `Bytes` passes through this uncopied.
                Ok(frame) => Ok(frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))),
                Err(error) => Err(error.into()),
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
