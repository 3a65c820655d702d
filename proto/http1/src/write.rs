//! The one writer of heads (S13): every first line, field and trailer that leaves goes through here, and nothing with a
//! control character in it does. The caller cuts off what was written when it fails.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Version};

use crate::error::Misuse;
use crate::fields::is_forbidden_trailer;
use crate::grammar::{decimal, is_field_value, is_token, trim};

/// Fields of a caller's head that the machine writes itself, and what they ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) content_length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade_token: bool,
    pub(crate) upgrade_field: bool,
    pub(crate) date: bool,
    pub(crate) expect_continue: bool,
    pub(crate) hosts: u8,
}

impl Asked {
    /// Whether the fields leave everything to the machine.
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Asked::default()
    }
}

macro_rules! status_lines {
    ($($code:literal $reason:literal),* $(,)?) => {
        /// The status lines that are common enough to be ready.
        #[inline]
        fn ready_status_line(code: u16) -> Option<&'static [u8]> {
            match code {
                $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes()),)*
                _ => None,
            }
        }
    };
}

status_lines! {
    100 "Continue", 101 "Switching Protocols", 103 "Early Hints",
    200 "OK", 201 "Created", 202 "Accepted", 204 "No Content", 206 "Partial Content",
    301 "Moved Permanently", 302 "Found", 303 "See Other", 304 "Not Modified", 307 "Temporary Redirect",
    308 "Permanent Redirect",
    400 "Bad Request", 401 "Unauthorized", 403 "Forbidden", 404 "Not Found", 405 "Method Not Allowed",
    408 "Request Timeout", 409 "Conflict", 413 "Content Too Large", 414 "URI Too Long", 416 "Range Not Satisfiable",
    417 "Expectation Failed", 422 "Unprocessable Content", 429 "Too Many Requests",
    431 "Request Header Fields Too Large",
    500 "Internal Server Error", 501 "Not Implemented", 502 "Bad Gateway", 503 "Service Unavailable",
    504 "Gateway Timeout", 505 "HTTP Version Not Supported",
}

/// The Date field of an answer, ready to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DateLine([u8; 37]);

impl DateLine {
    /// No date is known.
    pub(crate) const NONE: DateLine = DateLine(*b"date:                              \r\n");

    #[inline]
    pub(crate) fn set(&mut self, date: &[u8; 29]) {
        if let Some(place) = self.0.get_mut(6..35) {
            place.copy_from_slice(date);
        }
    }

    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // All zero, or never lent.
        if self.0.get(6).is_some_and(|&first| first > b' ') {
            out.extend_from_slice(&self.0);
        }
    }
}

/// The status line that a [`ReadyHead`] begins with.
pub(crate) const OK_LINE: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// The head of the last plain answer: a 200 with a date, a length, and no other field. The next one is mostly the same.
#[derive(Debug, Default)]
pub(crate) struct ReadyHead {
    date: [u8; 29],
    length: u64,
    bytes: Vec<u8>,
}

impl ReadyHead {
    /// The head with this date and length, its empty line included.
    #[inline]
    pub(crate) fn with(&mut self, date: &[u8; 29], length: u64) -> &[u8] {
        if self.length != length || self.date != *date || self.bytes.is_empty() {
            self.render(*date, length);
        }
        &self.bytes
    }

    #[inline(never)]
    fn render(&mut self, date: [u8; 29], length: u64) {
        let mut line = DateLine::NONE;
        line.set(&date);
        self.bytes.clear();
        self.bytes.extend_from_slice(OK_LINE);
        content_length(&mut self.bytes, length);
        line.write(&mut self.bytes);
        self.bytes.extend_from_slice(b"\r\n");
        (self.date, self.length) = (date, length);
    }
}

/// Our own version is always 1.1, whatever the request's is (RFC 9110 §6.2).
#[inline]
pub(crate) fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    match ready_status_line(status.as_u16()) {
        Some(line) => out.extend_from_slice(line),
        None => {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(status.as_str().as_bytes());
            out.push(b' ');
            out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The target has been checked for its form by the caller.
pub(crate) fn request_line(
    out: &mut Vec<u8>,
    method: &Method,
    target: &str,
    version: Version,
) -> Result<(), Misuse> {
    if !is_token(method.as_str().as_bytes()) {
        return Err(Misuse::InvalidByte);
    }
    let version = match version {
        Version::HTTP_11 => &b" HTTP/1.1\r\n"[..],
        Version::HTTP_10 => b" HTTP/1.0\r\n",
        _ => return Err(Misuse::UnsupportedVersion),
    };
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(version);
    Ok(())
}

/// Writes the caller's fields, except those that the machine writes itself; says what these ask for.
#[inline]
pub(crate) fn fields(out: &mut Vec<u8>, headers: &HeaderMap) -> Result<Asked, Misuse> {
    let mut asked = Asked::default();
    for (name, value) in headers {
        let ours = match name.as_str().len() {
            4 | 6 | 7 | 10 | 14 | 17 => own_field(name, value, &mut asked)?,
            _ => false,
        };
        if !ours {
            field(out, name.as_str().as_bytes(), value.as_bytes())?;
        }
    }
    Ok(asked)
}

/// Whether the machine writes this field itself.
fn own_field(name: &HeaderName, value: &HeaderValue, asked: &mut Asked) -> Result<bool, Misuse> {
    let value = value.as_bytes();
    match name.as_str() {
        "host" => asked.hosts = asked.hosts.saturating_add(1),
        "date" => asked.date = true,
        "expect" => asked.expect_continue |= value.eq_ignore_ascii_case(b"100-continue"),
        "upgrade" => asked.upgrade_field = true,
        "content-length" => {
            let length = decimal(value).ok_or(Misuse::ConflictingFraming)?;
            if asked.content_length.is_some_and(|earlier| earlier != length) {
                return Err(Misuse::ConflictingFraming);
            }
            asked.content_length = Some(length);
            return Ok(true);
        }
        "transfer-encoding" => {
            if asked.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Misuse::ConflictingFraming);
            }
            asked.chunked = true;
            return Ok(true);
        }
        "connection" => return Ok(own_connection(value, asked)),
        _ => {}
    }
    Ok(false)
}

/// Whether a Connection value has no tokens but those that the machine writes itself.
fn own_connection(value: &[u8], asked: &mut Asked) -> bool {
    let mut ours = true;
    for token in value.split(|&byte| byte == b',').map(trim) {
        if token.eq_ignore_ascii_case(b"close") {
            asked.close = true;
        } else if token.eq_ignore_ascii_case(b"keep-alive") {
            asked.keep_alive = true;
        } else if token.eq_ignore_ascii_case(b"upgrade") {
            asked.upgrade_token = true;
        } else if !token.is_empty() {
            ours = false;
        }
    }
    ours
}

/// Writes a trailer section and its end.
pub(crate) fn trailers(out: &mut Vec<u8>, trailers: &HeaderMap) -> Result<(), Misuse> {
    for (name, value) in trailers {
        if is_forbidden_trailer(name.as_str().as_bytes()) {
            return Err(Misuse::ForbiddenTrailer);
        }
        field(out, name.as_str().as_bytes(), value.as_bytes())?;
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Writes one field line. The types already exclude most of what is refused here; a value made without their checks
/// would still not get through.
#[inline]
pub(crate) fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), Misuse> {
    if !is_field_value(value) {
        return Err(Misuse::InvalidByte);
    }
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

#[inline]
pub(crate) fn content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The line before a chunk's data.
#[inline]
pub(crate) fn chunk_size(out: &mut Vec<u8>, size: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (u64::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (size >> (4 * place)) as usize & 0xf;
        out.extend(DIGITS.get(digit));
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_ready_and_not() {
        for (code, line) in [
            (200, "HTTP/1.1 200 OK\r\n"),
            (413, "HTTP/1.1 413 Content Too Large\r\n"),
            (418, "HTTP/1.1 418 I'm a teapot\r\n"),
            (799, "HTTP/1.1 799 \r\n"),
        ] {
            let mut out = Vec::new();
            status_line(&mut out, StatusCode::from_u16(code).unwrap());
            assert_eq!(out, line.as_bytes());
        }
    }

    #[test]
    fn chunk_sizes() {
        for (size, line) in
            [(0, "0"), (1, "1"), (15, "f"), (16, "10"), (0x1000, "1000"), (u64::MAX, "ffffffffffffffff")]
        {
            let mut out = Vec::new();
            chunk_size(&mut out, size);
            assert_eq!(out, format!("{line}\r\n").as_bytes());
        }
    }

    #[test]
    fn s13_no_control_character_leaves() {
        for bad in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\x7f", "\x1b"] {
            let mut out = Vec::new();
            assert_eq!(field(&mut out, b"a", bad.as_bytes()), Err(Misuse::InvalidByte), "{bad:?}");
        }
        let mut out = Vec::new();
        assert_eq!(field(&mut out, b"a", b"tab\there \xfc"), Ok(()));
        assert_eq!(out, b"a: tab\there \xfc\r\n");
    }
}
