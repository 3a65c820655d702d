//! Field lines into a [`HeaderMap`] whose values are slices of the bytes they arrived in (RFC 9112 §5), and what they
//! say about the message. Heads and trailer sections are read by the same code.

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::error::{Error, Excerpt};
use crate::framing::Facts;
use crate::grammar::trim;

/// The parsed form of a field block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    pub(crate) headers: HeaderMap,
    pub(crate) facts: Facts,
}

/// Reads the field lines in `head` from `start` to the empty line at its end. [`crate::scan`] has checked that every LF
/// in it stands behind a CR, and has counted the lines.
pub(crate) fn parse(head: &Bytes, start: usize, count: usize) -> Result<Fields, Error> {
    let mut fields = Fields { headers: map_for(count)?, facts: Facts::default() };
    each_line(head, start, |name, value, value_start| {
        fields.facts.note(name, value)?;
        append(&mut fields.headers, head, name, value, value_start)
    })?;
    fields.facts.settle();
    Ok(fields)
}

/// Reads a trailer section. Fields that must not be there are dropped (RFC 9110 §6.5.1, S09): they would change what
/// was already decided about the message, or who sent it.
pub(crate) fn parse_trailers(section: &Bytes, count: usize) -> Result<HeaderMap, Error> {
    let mut trailers = map_for(count)?;
    each_line(section, 0, |name, value, value_start| {
        if is_forbidden_trailer(name) {
            // It is still held to the grammar.
            HeaderValue::from_bytes(value).map(drop).map_err(|_| Error::InvalidFieldValue(Excerpt::of(name)))
        } else {
            append(&mut trailers, section, name, value, value_start)
        }
    })?;
    Ok(trailers)
}

/// A map has an end of its own, which a generous [`Limits::fields`](crate::Limits::fields) may be beyond.
fn map_for(count: usize) -> Result<HeaderMap, Error> {
    HeaderMap::try_with_capacity(count).map_err(|_| Error::TooManyFields)
}

/// Calls `found` with the name, the trimmed value and the value's position for each line.
#[inline]
fn each_line(
    head: &[u8],
    start: usize,
    mut found: impl FnMut(&[u8], &[u8], usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let block = head.get(start..).unwrap_or_default();
    let mut at = 0;
    for feed in memchr::memchr_iter(b'\n', block) {
        let line = block.get(at..feed.saturating_sub(1)).unwrap_or_default();
        let first = match line.first() {
            None => return Ok(()),
            Some(first) => *first,
        };
        if first == b' ' || first == b'\t' {
            return Err(Error::ObsoleteFold);
        }
        // Names are short: a search by vectors would cost more.
        let colon = line.iter().position(|&byte| byte == b':');
        let colon = colon.ok_or_else(|| Error::InvalidFieldName(Excerpt::of(line)))?;
        let name = line.get(..colon).unwrap_or_default();
        let untrimmed = line.get(colon + 1..).unwrap_or_default();
        let leading = untrimmed.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        let value = trim(untrimmed.get(leading..).unwrap_or_default());
        found(name, value, start + at + colon + 1 + leading)?;
        at = feed + 1;
    }
    Ok(())
}

#[inline]
fn append(
    headers: &mut HeaderMap,
    head: &Bytes,
    name: &[u8],
    value: &[u8],
    value_start: usize,
) -> Result<(), Error> {
    let invalid_value = || Error::InvalidFieldValue(Excerpt::of(name));
    let field = HeaderName::from_bytes(name).map_err(|_| Error::InvalidFieldName(Excerpt::of(name)))?;
    let shared =
        if value.is_empty() { Bytes::new() } else { head.slice(value_start..value_start + value.len()) };
    let value = HeaderValue::from_maybe_shared(shared).map_err(|_| invalid_value())?;
    headers.try_append(field, value).map_err(|_| Error::TooManyFields)?;
    Ok(())
}

/// Names that are never taken from, or written into, a trailer section: framing, routing, request modifiers,
/// authentication, and what says how to read the content (RFC 9110 §6.5.1). Lower case.
const FORBIDDEN_TRAILERS: [&str; 37] = [
    "age",
    "authorization",
    "authentication-info",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "www-authenticate",
];

/// Whether a field of this name, in any case, is never a trailer.
pub(crate) fn is_forbidden_trailer(name: &[u8]) -> bool {
    FORBIDDEN_TRAILERS.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()))
}

/// A head or trailer section with blanks in place of the line ends inside folded fields (RFC 9112 §5.2). A first field line that begins
/// with white space folds nothing and stays.
pub(crate) fn unfolded(head: Bytes, fields_start: usize) -> Bytes {
    let is_fold = |window: &[u8]| matches!(window, [b'\r', b'\n', b' ' | b'\t']);
    if !head.get(fields_start..).unwrap_or_default().windows(3).any(is_fold) {
        return head;
    }
    let mut bytes = head.to_vec();
    let (_, fields) = bytes.split_at_mut(fields_start.min(head.len()));
    let mut rest = fields;
    while let [first, second, third, ..] = rest {
        if is_fold(&[*first, *second, *third]) {
            (*first, *second) = (b' ', b' ');
        }
        rest = rest.get_mut(1..).unwrap_or_default();
    }
    Bytes::from(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Result<HeaderMap, Error> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        parse(&bytes, 0, 4).map(|fields| fields.headers)
    }

    #[test]
    fn values_are_trimmed_and_share_the_block() {
        let bytes = Bytes::from_static(b"A:1\r\nb: \t two words \t\r\nC:\r\nc:\xff\r\n\r\n");
        let headers = parse(&bytes, 0, 4).unwrap().headers;
        assert_eq!(headers["a"], "1");
        assert_eq!(headers["b"], "two words");
        let both: Vec<_> = headers.get_all("c").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(both, [&b""[..], &b"\xff"[..]]);
    }

    #[test]
    fn s07_field_line_grammar() {
        for bad in [" a: b", "\ta: b", "a: b\r\n c", "a: b\r\n\tc"] {
            assert_eq!(block(&format!("{bad}\r\n\r\n")).unwrap_err(), Error::ObsoleteFold, "{bad:?}");
        }
        for bad in
            ["a : b", "a\t: b", "a", ": b", "a b: c", "a\0: c", "\u{e9}: c", "a\r: b", "(a): b", "a[b]: c"]
        {
            let error = block(&format!("{bad}\r\n\r\n")).unwrap_err();
            assert!(matches!(error, Error::InvalidFieldName(_)), "{bad:?} {error}");
        }
        for bad in ["a: b\0c", "a: \x01", "a: b\rc", "a: b\r", "a: \x7f", "a: \x0b", "a: \x1b[31m"] {
            let error = block(&format!("{bad}\r\n\r\n")).unwrap_err();
            assert!(matches!(error, Error::InvalidFieldValue(_)), "{bad:?} {error}");
        }
    }

    #[test]
    fn s09_forbidden_trailers_are_dropped() {
        let section = Bytes::from_static(
            b"Host: a\r\nX-Sum: 1\r\ncontent-LENGTH: 3\r\nTransfer-Encoding: chunked\r\nCookie: c\r\nAuthorization: x\r\n\r\n",
        );
        let trailers = parse_trailers(&section, 6).unwrap();
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["x-sum"], "1");
        let bad = Bytes::from_static(b"Host: a\0\r\n\r\n");
        assert!(matches!(parse_trailers(&bad, 1), Err(Error::InvalidFieldValue(_))));
    }

    #[test]
    fn s10_underscore_is_not_hyphen() {
        let headers = block("x_forwarded_for: evil\r\nx-forwarded-for: good\r\n\r\n").unwrap();
        assert_eq!(headers["x-forwarded-for"], "good");
        assert_eq!(headers["x_forwarded_for"], "evil");
    }
}
