//! Finds the end of a head or a trailer section, line by line, and holds it to its limits while it arrives. What was
//! looked at is not looked at again: a head that comes byte by byte costs the same as one that comes whole.
//!
//! Only line ends, lengths and counts are judged here; what the lines say is [`crate::fields`]' business.

use crate::config::Limits;
use crate::error::Error;

/// Where the search for the end of a head stands. Positions count from the head's first byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    /// No line end lies before this, from `line_start` on.
    searched: u32,
    line_start: u32,
    /// Complete lines so far.
    lines: u32,
    /// Just behind the first line's CRLF.
    first_line_end: u32,
}

/// A complete head: its length with the empty line, where its fields begin, and how many lines they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadEnd {
    pub(crate) length: usize,
    pub(crate) fields_start: usize,
    pub(crate) fields: usize,
}

impl Scan {
    /// For a head.
    pub(crate) const NEW: Scan = Scan { searched: 0, line_start: 0, lines: 0, first_line_end: 0 };

    /// Whether nothing was looked at yet.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.searched == 0
    }

    /// Just behind the first line's CRLF; 0 while that has not come.
    #[inline]
    pub(crate) fn first_line_end(&self) -> usize {
        self.first_line_end as usize
    }

    /// For a trailer section, which has no first line of its own kind.
    pub(crate) fn trailers() -> Self {
        Scan { lines: 1, ..Scan::NEW }
    }

    /// Looks at what has come since the last call; `head` begins with the head's first byte.
    pub(crate) fn advance(&mut self, head: &[u8], limits: &Limits) -> Result<Option<HeadEnd>, Error> {
        let mut from = self.searched as usize;
        while let Some(found) = memchr::memchr2(b'\r', b'\n', head.get(from..).unwrap_or_default()) {
            let at = from + found;
            let feed = match (head.get(at), head.get(at + 1)) {
                (Some(b'\r'), Some(b'\n')) => at + 1,
                (Some(b'\r'), None) => {
                    self.searched = narrow(at)?;
                    self.check(head.len(), limits)?;
                    return Ok(None);
                }
                // Nobody who ends lines like this would ever send the end that we wait for (RFC 9112 §2.2).
                _ => {
                    self.check(at + 1, limits)?;
                    return Err(Error::InvalidLineEnd);
                }
            };
            self.check(feed + 1, limits)?;
            let empty = feed - 1 == self.line_start as usize;
            if empty && self.lines > 0 {
                return Ok(Some(HeadEnd {
                    length: feed + 1,
                    fields_start: self.first_line_end as usize,
                    fields: self.lines as usize - 1,
                }));
            }
            self.lines += 1;
            from = feed + 1;
            self.line_start = narrow(from)?;
            if self.lines == 1 {
                self.first_line_end = self.line_start;
            } else if self.lines as usize - 1 > limits.fields {
                return Err(Error::TooManyFields);
            }
        }
        self.searched = narrow(head.len())?;
        self.check(head.len(), limits)?;
        Ok(None)
    }

    /// Whether the current line, known up to `end`, and the head, are within their limits. Which one is named does not
    /// depend on how much came at once: the one that is passed first.
    #[inline]
    fn check(&self, end: usize, limits: &Limits) -> Result<(), Error> {
        let line_limit = if self.lines == 0 { limits.request_line } else { limits.field };
        // The CRLF is not counted: the limits are about what somebody has to store.
        let line_end = line_limit.saturating_add(self.line_start as usize + 2);
        if end <= line_end.min(limits.head) {
            Ok(())
        } else if limits.head < line_end {
            Err(Error::HeadTooLong)
        } else if self.lines == 0 {
            Err(Error::FirstLineTooLong)
        } else {
            Err(Error::FieldTooLong)
        }
    }
}

/// Positions are kept in 32 bits; a head that long is over any sane limit.
fn narrow(position: usize) -> Result<u32, Error> {
    u32::try_from(position).map_err(|_| Error::HeadTooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(head: &[u8], limits: &Limits) -> Result<Option<HeadEnd>, Error> {
        let mut scan = Scan::NEW;
        let whole = scan.advance(head, limits);
        let mut scan = Scan::NEW;
        let mut last = Ok(None);
        for end in 1..=head.len() {
            last = scan.advance(&head[..end], limits);
            if !matches!(last, Ok(None)) {
                break;
            }
        }
        assert_eq!(whole, last, "byte by byte gives the same");
        whole
    }

    #[test]
    fn finds_the_empty_line() {
        let limits = Limits::default();
        assert_eq!(scan(b"GET / HTTP/1.1\r\nA: b\r\n", &limits), Ok(None));
        assert_eq!(
            scan(b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest", &limits),
            Ok(Some(HeadEnd { length: 24, fields_start: 16, fields: 1 }))
        );
        assert_eq!(
            Scan::trailers().advance(b"\r\n", &limits),
            Ok(Some(HeadEnd { length: 2, fields_start: 0, fields: 0 }))
        );
    }

    #[test]
    fn s07_nothing_but_crlf_ends_a_line() {
        let limits = Limits::default();
        for bad in [
            "GET / HTTP/1.1\n",
            "\nGET",
            "A\r\n\n",
            "A\r\nB: c\n",
            "A\r\n\r\r\n\n",
            "\n\n",
            "GET / HTTP/1.1\rHost: a\r\r",
            "A\r\nB: c\rD: e\r\n\r\n",
            "A\r\n\rB",
        ] {
            assert_eq!(scan(bad.as_bytes(), &limits), Err(Error::InvalidLineEnd), "{bad:?}");
        }
    }

    #[test]
    fn s16_limits_hold_at_every_read_size() {
        let limits = Limits { request_line: 8, field: 6, head: 40, fields: 3, ..Limits::default() };
        assert_eq!(scan(b"12345678\r\n", &limits), Ok(None));
        assert_eq!(scan(b"123456789\r\n", &limits), Err(Error::FirstLineTooLong));
        assert_eq!(scan(b"1\r\n123456\r\n", &limits), Ok(None));
        assert_eq!(scan(b"1\r\n1234567\r\n", &limits), Err(Error::FieldTooLong));
        assert_eq!(scan(b"1\r\na:\r\na:\r\na:\r\na:\r\n", &limits), Err(Error::TooManyFields));
        let limits = Limits { request_line: 80, field: 80, head: 12, ..Limits::default() };
        assert_eq!(scan(b"1\r\na:4567\r\n\r\n", &limits), Err(Error::HeadTooLong));
        assert!(matches!(scan(b"1\r\na:45\r\n\r\n", &Limits { head: 12, ..limits.clone() }), Ok(Some(_))));
    }
}
