//! `version SP status SP reason` (RFC 9112 §4).

use bytes::Bytes;
use http::StatusCode;

use crate::config::Limits;
use crate::error::{Error, Excerpt};
use crate::grammar::is_field_value;
use crate::request_line::parse_version;

/// The reason phrase of an answer, in its extensions where it is not the usual one for its status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub Bytes);

/// A parsed status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusLine {
    pub(crate) status: StatusCode,
    pub(crate) http11: bool,
    pub(crate) reason: Option<Reason>,
}

/// Judges the beginning of a head before it is complete: its version as soon as that is there, its first line as soon as
/// that is. Whoever speaks another protocol may never send the empty line that a head ends with. What is said does not
/// depend on how much came at once, so this leaves a line with a fault of its own (its ends, its length) to the scan.
pub(crate) fn judge(head: &[u8], limits: &Limits) -> Result<(), Error> {
    let most = limits.request_line.saturating_add(CRLF.len()).min(limits.head);
    let known = head.get(..most).unwrap_or(head);
    match memchr::memchr2(b'\r', b'\n', known) {
        Some(end) if known.get(end..end + CRLF.len()) == Some(CRLF) => {
            parse(known.get(..end).unwrap_or_default()).map(drop)
        }
        Some(end) if end < VERSION_LENGTH => Ok(()),
        _ => known.get(..VERSION_LENGTH).map_or(Ok(()), |version| parse_version(version).map(drop)),
    }
}

const CRLF: &[u8] = b"\r\n";
const VERSION_LENGTH: usize = b"HTTP/1.1".len();

/// Reads a status line without its CRLF. The reason and the blank before it may be missing.
pub(crate) fn parse(line: &[u8]) -> Result<StatusLine, Error> {
    // The one that nearly every answer has.
    if line == b"HTTP/1.1 200 OK" {
        return Ok(StatusLine { status: StatusCode::OK, http11: true, reason: None });
    }
    let malformed = || Error::InvalidStatusLine(Excerpt::of(line));
    let (version, rest) = line.split_at_checked(VERSION_LENGTH).ok_or_else(malformed)?;
    let http11 = parse_version(version)?;
    let (digits, reason) = match rest {
        [b' ', a, b, c] => ([*a, *b, *c], &[][..]),
        [b' ', a, b, c, b' ', reason @ ..] => ([*a, *b, *c], reason),
        _ => return Err(malformed()),
    };
    let status = StatusCode::from_bytes(&digits).map_err(|_| malformed())?;
    if !is_field_value(reason) {
        return Err(malformed());
    }
    let usual = reason.is_empty() || status.canonical_reason().is_some_and(|text| text.as_bytes() == reason);
    let reason = (!usual).then(|| Reason(Bytes::copy_from_slice(reason)));
    Ok(StatusLine { status, http11, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        let line = |text: &[u8]| parse(text).map(|line| (line.status.as_u16(), line.http11, line.reason));
        assert_eq!(line(b"HTTP/1.1 200 OK"), Ok((200, true, None)));
        assert_eq!(line(b"HTTP/1.1 200 "), Ok((200, true, None)));
        assert_eq!(line(b"HTTP/1.1 200"), Ok((200, true, None)));
        assert_eq!(line(b"HTTP/1.0 404 Not Found"), Ok((404, false, None)));
        assert_eq!(
            line(b"HTTP/1.1 999 \xfcber"),
            Ok((999, true, Some(Reason(Bytes::from_static(b"\xfcber")))))
        );
        for bad in [
            "HTTP/1.1 20 OK",
            "HTTP/1.1 2000",
            "HTTP/1.1  200 OK",
            "HTTP/1.1 099 x",
            "HTTP/1.1 +20 x",
            "HTTP/1.1",
            "HTTP/1.1 200OK",
            "ICY 200 OK",
            "HTTP/1.1 200 a\0b",
            "HTTP/1.1 200 a\rb",
            "",
            " HTTP/1.1 200 OK",
            "HTTP/1.1\t200 OK",
            "HTTP/1.1 200\tOK",
            "HTTP/2.0 200 OK",
            "HTTP/1.1 2x0 OK",
        ] {
            assert!(line(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
