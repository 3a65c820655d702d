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
/// Bytes can be sent again after a redirect or on a second connection; a stream is used up by the first attempt.
pub struct Body {
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Bytes(Bytes),
    Stream(BoxStream),
    /// A stream that an exchange has taken.
    Used,
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

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.size(), BodySize::Known(0))
    }

    /// How it is framed.
    pub(crate) fn size(&self) -> BodySize {
        match &self.kind {
            Kind::Bytes(bytes) => BodySize::Known(bytes.len() as u64),
            Kind::Stream(stream) => {
                http_body::Body::size_hint(stream).exact().map_or(BodySize::Unknown, BodySize::Known)
            }
            Kind::Used => BodySize::Known(0),
        }
    }

    /// The body for one exchange. Bytes stay for another; a stream is used up.
    pub(crate) fn lend(&mut self) -> Body {
        let kind = match &mut self.kind {
            Kind::Bytes(bytes) => Kind::Bytes(bytes.clone()),
            other => std::mem::replace(other, Kind::Used),
        };
        Body { kind }
    }

    /// Whether it can be lent once more.
    pub(crate) fn is_used_up(&self) -> bool {
        matches!(self.kind, Kind::Used)
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
