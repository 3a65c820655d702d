//! The body of a message: as it is read ([`Reading`]) and as it is written ([`Writing`]), whatever its role.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::chunked::{Chunked, Piece};
use crate::config::Limits;
use crate::error::{Error, Misuse};
use crate::framing::BodyLength;
use crate::queue::Queue;
use crate::write;

/// A body that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    framing: Framing,
    /// Bytes of data given out so far.
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    /// What is left.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Reading {
    /// The reader for a body; `None` where there is none.
    #[inline]
    pub(crate) fn new(length: BodyLength) -> Option<Self> {
        let framing = match length {
            BodyLength::Empty => return None,
            BodyLength::Known(length) => Framing::Length(length),
            BodyLength::Chunked => Framing::Chunked(Chunked::new()),
            BodyLength::UntilClose => Framing::UntilClose,
        };
        Some(Reading { framing, taken: 0 })
    }

    /// Folded lines among the trailers are joined, not refused.
    pub(crate) fn unfolding(mut self, unfold: bool) -> Self {
        if let Framing::Chunked(chunked) = self.framing {
            self.framing = Framing::Chunked(chunked.unfolding(unfold));
        }
        self
    }

    /// The next piece at the front of `buffer`; `None` asks for more. `eof` says that no more will come.
    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        eof: bool,
        limits: &Limits,
    ) -> Result<Option<Piece>, Error> {
        let allowed = limits.body - self.taken.min(limits.body);
        let piece = match &mut self.framing {
            Framing::Length(0) => Some(Piece::End),
            Framing::Length(left) => {
                take(buffer, *left).inspect(|data| *left -= data.len() as u64).map(Piece::Data)
            }
            Framing::Chunked(chunked) => chunked.next(buffer, allowed, limits)?,
            // What still fits is given out first, so that it does not matter how much came at once.
            Framing::UntilClose => match take(buffer, allowed) {
                Some(data) => Some(Piece::Data(data)),
                None if !buffer.is_empty() => return Err(Error::BodyTooLarge),
                None if eof => Some(Piece::End),
                None => None,
            },
        };
        match &piece {
            Some(Piece::Data(data)) => self.taken += data.len() as u64,
            None if eof => return Err(Error::UnexpectedEofInBody),
            _ => {}
        }
        Ok(piece)
    }

    /// What is left of a body whose length is known.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(left) => Some(left),
            Framing::Chunked(_) | Framing::UntilClose => None,
        }
    }

    /// Whether no data was given out yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.taken == 0
    }
}

/// Up to `most` bytes from the front.
fn take(buffer: &mut BytesMut, most: u64) -> Option<Bytes> {
    let length = usize::try_from(most).unwrap_or(usize::MAX).min(buffer.len());
    (length > 0).then(|| buffer.split_to(length).freeze())
}

/// A body that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// What is left.
    Length(u64),
    Chunked,
    /// Ends with the connection.
    UntilClose,
    /// The message has no body; what the caller hands in is dropped.
    Dropped,
}

impl Writing {
    /// Queues data.
    #[inline]
    pub(crate) fn data(&mut self, queue: &mut Queue, data: Bytes) -> Result<(), Misuse> {
        if data.is_empty() {
            return Ok(());
        }
        match self {
            Writing::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(Misuse::BodyTooLong)?;
                queue.push(data);
            }
            Writing::Chunked => {
                write::chunk_size(&mut queue.copied, data.len() as u64);
                queue.push(data);
                queue.copied.extend_from_slice(b"\r\n");
            }
            Writing::UntilClose => queue.push(data),
            Writing::Dropped => {}
        }
        Ok(())
    }

    /// Queues a stretch that the driver sends by itself.
    pub(crate) fn external(&mut self, queue: &mut Queue, length: u64) -> Result<(), Misuse> {
        if length == 0 {
            return Ok(());
        }
        match self {
            Writing::Length(left) => {
                *left = left.checked_sub(length).ok_or(Misuse::BodyTooLong)?;
                queue.push_external(length);
            }
            Writing::Chunked => {
                write::chunk_size(&mut queue.copied, length);
                queue.push_external(length);
                queue.copied.extend_from_slice(b"\r\n");
            }
            Writing::UntilClose => queue.push_external(length),
            Writing::Dropped => {}
        }
        Ok(())
    }

    /// Ends the body, with trailers where its framing has room for them.
    #[inline]
    pub(crate) fn end(&mut self, queue: &mut Queue, trailers: Option<&HeaderMap>) -> Result<(), Misuse> {
        match self {
            Writing::Length(0) | Writing::UntilClose | Writing::Dropped => Ok(()),
            Writing::Length(_) => Err(Misuse::BodyTooShort),
            Writing::Chunked => {
                let before = queue.copied.len();
                queue.copied.extend_from_slice(b"0\r\n");
                let written = match trailers {
                    Some(trailers) => write::trailers(&mut queue.copied, trailers),
                    None => {
                        queue.copied.extend_from_slice(b"\r\n");
                        Ok(())
                    }
                };
                if written.is_err() {
                    queue.copied.truncate(before);
                }
                written
            }
        }
    }
}
