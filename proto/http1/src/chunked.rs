//! The chunked coding as it is read (RFC 9112 §7.1), byte by byte where it is grammar and slice by slice where it is
//! data, so that it does not matter how the bytes were cut.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;

use crate::config::Limits;
use crate::error::Error;
use crate::fields;
use crate::grammar::{is_token_byte, is_value_byte};
use crate::scan::Scan;

/// Digits of a chunk size: as many as 64 bits have. Leading zeros count.
const MAX_DIGITS: u8 = 16;

/// The reader of one chunked body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Of the current chunk: its size while it is read, then what is left of it.
    left: u64,
    /// Bytes of chunk extensions so far, in the whole body (S06).
    extensions: u32,
    /// Folded lines in the trailer section are joined, not refused.
    unfold: bool,
}

/// A piece of a body.
#[derive(Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// This many hexadecimal digits so far.
    Size(u8),
    /// After blanks that only a `;` can follow.
    Blank,
    NameStart,
    Name,
    /// After blanks that `=` or `;` can follow.
    NameBlank,
    ValueStart,
    Value,
    Quoted,
    QuotedPair,
    QuotedEnd,
    Feed,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Line(Line),
    Data,
    DataReturn,
    DataFeed,
    Trailers(Scan),
    End,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Chunked { state: State::Line(Line::Size(0)), left: 0, extensions: 0, unfold: false }
    }

    /// Folded lines in the trailer section are joined, not refused.
    pub(crate) fn unfolding(mut self, unfold: bool) -> Self {
        self.unfold = unfold;
        self
    }

    /// Takes the next piece from the front of `buffer`; `None` asks for more bytes. `allowed` is what the body may
    /// still have.
    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
        allowed: u64,
        limits: &Limits,
    ) -> Result<Option<Piece>, Error> {
        loop {
            match self.state {
                State::Line(line) => {
                    if !self.read_line(line, buffer, limits)? {
                        return Ok(None);
                    }
                    if self.left > allowed {
                        return Err(Error::BodyTooLarge);
                    }
                }
                State::Data => {
                    if buffer.is_empty() {
                        return Ok(None);
                    }
                    let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
                    self.left -= length as u64;
                    if self.left == 0 {
                        self.state = State::DataReturn;
                    }
                    return Ok(Some(Piece::Data(buffer.split_to(length).freeze())));
                }
                State::DataReturn | State::DataFeed => {
                    let Some(&byte) = buffer.first() else { return Ok(None) };
                    let first = matches!(self.state, State::DataReturn);
                    if byte != if first { b'\r' } else { b'\n' } {
                        return Err(Error::InvalidChunkEnd);
                    }
                    self.state = if first { State::DataFeed } else { State::Line(Line::Size(0)) };
                    buffer.advance(1);
                }
                State::Trailers(mut scan) => {
                    let end = scan.advance(buffer, limits)?;
                    self.state = State::Trailers(scan);
                    let Some(end) = end else { return Ok(None) };
                    let section = buffer.split_to(end.length).freeze();
                    let section = if self.unfold { fields::unfolded(section, 0) } else { section };
                    self.state = State::End;
                    let trailers = fields::parse_trailers(&section, end.fields)?;
                    if !trailers.is_empty() {
                        return Ok(Some(Piece::Trailers(trailers)));
                    }
                }
                State::End => return Ok(Some(Piece::End)),
            }
        }
    }

    /// Reads the line of a chunk's size; whether it is complete.
    fn read_line(&mut self, mut line: Line, buffer: &mut BytesMut, limits: &Limits) -> Result<bool, Error> {
        let mut taken = 0;
        let mut complete = false;
        for &byte in buffer.iter() {
            taken += 1;
            if line == Line::Feed {
                if byte != b'\n' {
                    return Err(Error::InvalidLineEnd);
                }
                complete = true;
                break;
            }
            line = match line {
                Line::Size(digits) => self.size_byte(digits, byte)?,
                _ => extension_byte(line, byte)?,
            };
            if !matches!(line, Line::Size(_) | Line::Feed) {
                self.extensions = self.extensions.saturating_add(1);
                if self.extensions as usize > limits.chunk_extensions {
                    return Err(Error::ChunkExtensionsTooLong);
                }
            }
        }
        buffer.advance(taken);
        self.state = match (complete, self.left) {
            (false, _) => State::Line(line),
            (true, 0) => State::Trailers(Scan::trailers()),
            (true, _) => State::Data,
        };
        Ok(complete)
    }

    #[inline]
    fn size_byte(&mut self, digits: u8, byte: u8) -> Result<Line, Error> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ if digits == 0 => return Err(Error::InvalidChunkSize),
            b'\r' => return Ok(Line::Feed),
            b';' => return Ok(Line::NameStart),
            b' ' | b'\t' => return Ok(Line::Blank),
            _ => return Err(Error::InvalidChunkSize),
        };
        if digits == MAX_DIGITS {
            return Err(Error::InvalidChunkSize);
        }
        // Sixteen digits fit, so nothing is shifted out.
        self.left = (self.left << 4) | u64::from(digit);
        Ok(Line::Size(digits + 1))
    }
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1)
fn extension_byte(line: Line, byte: u8) -> Result<Line, Error> {
    let blank = byte == b' ' || byte == b'\t';
    Ok(match (line, byte) {
        (Line::Blank | Line::NameStart | Line::NameBlank | Line::ValueStart, _) if blank => line,
        (Line::Name, _) if blank => Line::NameBlank,
        (Line::Value | Line::QuotedEnd, _) if blank => Line::Blank,
        (Line::NameStart | Line::Name, _) if is_token_byte(byte) => Line::Name,
        (Line::ValueStart | Line::Value, _) if is_token_byte(byte) => Line::Value,
        (Line::Name | Line::NameBlank, b'=') => Line::ValueStart,
        (Line::ValueStart, b'"') => Line::Quoted,
        (Line::Quoted, b'"') => Line::QuotedEnd,
        (Line::Quoted, b'\\') => Line::QuotedPair,
        (Line::Quoted | Line::QuotedPair, _) if is_value_byte(byte) => Line::Quoted,
        (Line::Blank | Line::Name | Line::NameBlank | Line::Value | Line::QuotedEnd, b';') => Line::NameStart,
        (Line::Name | Line::Value | Line::QuotedEnd, b'\r') => Line::Feed,
        _ => return Err(Error::InvalidChunkExtension),
    })
}
