//! What the fields say about the message around them, and the one table that decides whether a message has a body and
//! where it ends. Reader and writer of both roles use the same table (RFC 9112 §6.3).

use http::{Method, StatusCode};

use crate::error::{Error, Excerpt};
use crate::grammar::{decimal, is_host, is_token, is_token_byte, trim};

/// Whether an answer can have a body, by the request's method and the answer's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerBody {
    /// No body, and no field that frames one: 1xx and 204.
    Forbidden,
    /// No body, but the fields may describe the one that another request would have got: HEAD, 304.
    Described,
    /// No body, and the fields say so: 205 as it is written. As it is read, it is framed like any other.
    Reset,
    /// The connection leaves HTTP behind: 101, and 2xx to CONNECT.
    Switch,
    /// A body, perhaps empty.
    Framed,
}

/// The table (RFC 9110 §6.4.1, §8.6, §9.3.6, §15.3.6; RFC 9112 §6.3). The first row that matches counts.
pub(crate) fn answer_body(method: AnsweredMethod, status: StatusCode) -> AnswerBody {
    match (status.as_u16(), method) {
        (101, _) => AnswerBody::Switch,
        (100..=199, _) => AnswerBody::Forbidden,
        (200..=299, AnsweredMethod::Connect) => AnswerBody::Switch,
        (204, _) => AnswerBody::Forbidden,
        (304, _) | (_, AnsweredMethod::Head) => AnswerBody::Described,
        (205, _) => AnswerBody::Reset,
        _ => AnswerBody::Framed,
    }
}

/// What about the method of a request decides the body of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AnsweredMethod {
    Head,
    Connect,
    #[default]
    Other,
}

impl From<&Method> for AnsweredMethod {
    #[inline]
    fn from(method: &Method) -> Self {
        if *method == Method::GET {
            AnsweredMethod::Other
        } else if *method == Method::HEAD {
            AnsweredMethod::Head
        } else if *method == Method::CONNECT {
            AnsweredMethod::Connect
        } else {
            AnsweredMethod::Other
        }
    }
}

/// How long the body is that follows a head we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySize {
    /// This many bytes. `Known(0)` is no body.
    Known(u64),
    /// Not known yet: the body is chunked, or ends with the connection where the peer speaks HTTP/1.0.
    Unknown,
}

/// What follows a head that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body; the head was the whole message.
    Empty,
    /// This many bytes, more than 0.
    Known(u64),
    /// Chunks, until the last one.
    Chunked,
    /// Whatever comes until the connection ends. Answers only.
    UntilClose,
}

/// What all Transfer-Encoding lines of a head say together (S01, S02).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TransferCoding {
    #[default]
    None,
    /// Exactly `chunked`.
    Chunked,
    /// Nothing but `identity`, which once meant no coding at all (RFC 2616 §3.6).
    Identity,
    /// Codings that we do not know, then `chunked` once.
    UnknownThenChunked,
    /// Codings that do not end with `chunked`.
    NotChunked,
    /// `chunked` twice or before the end, or no list of codings at all.
    Invalid,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expectation {
    #[default]
    None,
    Continue,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostField {
    #[default]
    Missing,
    Valid,
    Invalid,
    Several,
}

/// What the fields of a head say about the message and the connection, whatever its first line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) content_length: Option<u64>,
    /// Content-Length is a list of one number again and again.
    length_list: bool,
    pub(crate) transfer: TransferCoding,
    pub(crate) expect: Expectation,
    pub(crate) host: HostField,
    /// `close`, `keep-alive` and `upgrade` among the Connection tokens.
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade_token: bool,
    /// There is an Upgrade field.
    pub(crate) upgrade_field: bool,
    /// Nothing but one valid Host was said; see [`settle`](Facts::settle).
    pub(crate) plain: bool,
}

impl Facts {
    /// Takes one field into account. `name` is as it came, in any case; `value` is trimmed. Equal Content-Length lines
    /// are one, and so are equal elements of a line where it is an answer's (RFC 9112 §6.3 item 5).
    #[inline]
    pub(crate) fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.note_host(value),
            6 if name.eq_ignore_ascii_case(b"expect") => self.note_expect(value),
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.upgrade_field = true,
            10 if name.eq_ignore_ascii_case(b"connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => return self.note_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.note_transfer(value),
            _ => {}
        }
        Ok(())
    }

    /// All fields were noted: finds out whether an HTTP/1.1 request with them needs no further judgement.
    pub(crate) fn settle(&mut self) {
        let plain = Facts { host: HostField::Valid, keep_alive: self.keep_alive, ..Facts::default() };
        self.plain = *self == plain;
    }

    fn note_host(&mut self, value: &[u8]) {
        self.host = match self.host {
            HostField::Missing if is_host(value) => HostField::Valid,
            HostField::Missing => HostField::Invalid,
            _ => HostField::Several,
        };
    }

    fn note_expect(&mut self, value: &[u8]) {
        for expectation in list(value).filter(|expectation| !expectation.is_empty()) {
            let is_continue = expectation.eq_ignore_ascii_case(b"100-continue");
            self.expect = if is_continue && self.expect != Expectation::Other {
                Expectation::Continue
            } else {
                Expectation::Other
            };
        }
    }

    fn note_connection(&mut self, value: &[u8]) {
        for token in list(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade_token |= token.eq_ignore_ascii_case(b"upgrade");
        }
    }

    fn note_length(&mut self, value: &[u8]) -> Result<(), Error> {
        let invalid = || Error::InvalidContentLength(Excerpt::of(value));
        let length = match decimal(value) {
            Some(length) => length,
            None => {
                let mut lengths = list(value).map(decimal);
                let first = lengths.next().flatten().ok_or_else(invalid)?;
                for other in lengths {
                    if other.ok_or_else(invalid)? != first {
                        return Err(Error::ConflictingContentLength);
                    }
                }
                self.length_list = true;
                first
            }
        };
        if self.content_length.is_some_and(|earlier| earlier != length) {
            return Err(Error::ConflictingContentLength);
        }
        self.content_length = Some(length);
        Ok(())
    }

    /// The one number of a Content-Length that is a list.
    pub(crate) fn listed_length(&self) -> Option<u64> {
        self.content_length.filter(|_| self.length_list)
    }

    fn note_transfer(&mut self, value: &[u8]) {
        for coding in list(value) {
            let chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.transfer = match self.transfer {
                // RFC 9112 §7 defines no parameters for `chunked`, so `chunked;q=1` is no coding that we know; and a
                // hop that skips the parameter would.
                _ if !chunked && !is_coding(coding) => TransferCoding::Invalid,
                TransferCoding::None if chunked => TransferCoding::Chunked,
                TransferCoding::None | TransferCoding::Identity
                    if coding.eq_ignore_ascii_case(b"identity") =>
                {
                    TransferCoding::Identity
                }
                TransferCoding::NotChunked | TransferCoding::Identity if chunked => {
                    TransferCoding::UnknownThenChunked
                }
                TransferCoding::None | TransferCoding::NotChunked | TransferCoding::Identity => {
                    TransferCoding::NotChunked
                }
                TransferCoding::Chunked | TransferCoding::UnknownThenChunked | TransferCoding::Invalid => {
                    TransferCoding::Invalid
                }
            };
        }
    }

    /// Whether the connection outlives this message as far as the peer is concerned (RFC 9112 §9.3).
    #[inline]
    pub(crate) fn persists(&self, http11: bool) -> bool {
        !self.close && (http11 || self.keep_alive)
    }

    /// How the body of a request is framed. A request without framing has none.
    #[inline]
    pub(crate) fn request_body(&self, http11: bool) -> Result<BodyLength, Error> {
        if self.length_list {
            // Somebody before us may have taken the first number and somebody behind us the last (S04).
            return Err(Error::InvalidContentLength(Excerpt::of(b"a list")));
        }
        match (self.transfer, self.content_length) {
            (TransferCoding::None, None | Some(0)) => Ok(BodyLength::Empty),
            (TransferCoding::None, Some(length)) => Ok(BodyLength::Known(length)),
            (TransferCoding::Invalid | TransferCoding::NotChunked | TransferCoding::Identity, _) => {
                Err(Error::InvalidTransferEncoding)
            }
            (_, Some(_)) => Err(Error::TransferEncodingWithContentLength),
            _ if !http11 => Err(Error::TransferEncodingOnHttp10),
            (TransferCoding::UnknownThenChunked, None) => Err(Error::UnsupportedTransferCoding),
            (TransferCoding::Chunked, None) => Ok(BodyLength::Chunked),
        }
    }

    /// How the body of an answer is framed whose status and request allow one.
    pub(crate) fn answer_body(&self) -> Result<BodyLength, Error> {
        match (self.transfer, self.content_length) {
            (TransferCoding::None, Some(0)) => Ok(BodyLength::Empty),
            (TransferCoding::None, Some(length)) => Ok(BodyLength::Known(length)),
            (TransferCoding::None, None) | (TransferCoding::Identity, _) => Ok(BodyLength::UntilClose),
            (TransferCoding::Chunked, _) => Ok(BodyLength::Chunked),
            // A caller that got the inner coding as if it were the body would be misled.
            (TransferCoding::NotChunked | TransferCoding::UnknownThenChunked, _) => {
                Err(Error::UnsupportedTransferCoding)
            }
            (TransferCoding::Invalid, _) => Err(Error::InvalidTransferEncoding),
        }
    }
}

/// The elements of a comma-separated list. Empty ones are given out as well.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim)
}

/// transfer-coding (RFC 9110 §10.1.4) other than `chunked`: a token, parameters behind it.
fn is_coding(coding: &[u8]) -> bool {
    let name_end = coding.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(coding.len());
    let Some((name, rest)) = coding.split_at_checked(name_end) else { return false };
    let parameters = trim(rest);
    is_token(name)
        && !name.eq_ignore_ascii_case(b"chunked")
        && (parameters.is_empty() || parameters.first() == Some(&b';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(lines: &[&str]) -> TransferCoding {
        let mut facts = Facts::default();
        for line in lines {
            facts.note(b"Transfer-Encoding", trim(line.as_bytes())).unwrap();
        }
        facts.transfer
    }

    #[test]
    fn s02_exactly_one_final_chunked() {
        for good in [&["chunked"][..], &["Chunked"], &["CHUNKED"], &[" chunked\t"]] {
            assert_eq!(transfer(good), TransferCoding::Chunked, "{good:?}");
        }
        for unknown in
            [&["gzip, chunked"][..], &["gzip", "chunked"], &["xchunked,chunked"], &["a;b=c ,chunked"]]
        {
            assert_eq!(transfer(unknown), TransferCoding::UnknownThenChunked, "{unknown:?}");
        }
        for same in [&["identity"][..], &["Identity", "identity"]] {
            assert_eq!(transfer(same), TransferCoding::Identity, "{same:?}");
        }
        for not in [&["identity, gzip"][..], &["xchunked"], &["gzip"], &["gzip", "br"]] {
            assert_eq!(transfer(not), TransferCoding::NotChunked, "{not:?}");
        }
        for bad in [
            &["chunked, identity"][..],
            &["chunked", "gzip"],
            &["chunked,chunked"],
            &["chunked", "chunked"],
            &[""],
            &["chunked,"],
            &[",chunked"],
            &["chunked;q=1"],
            &["chunked chunked"],
            &["chun ked"],
            &["\"chunked\""],
            &["chunked", ""],
            &["gzip,chunked,gzip"],
            &["chunked\t;x"],
        ] {
            assert_eq!(transfer(bad), TransferCoding::Invalid, "{bad:?}");
        }
    }

    #[test]
    fn connection_tokens_match_exactly_over_all_lines() {
        let mut facts = Facts::default();
        for line in ["closed, x-close", "not-upgrade", "keep-alive2"] {
            facts.note(b"connection", line.as_bytes()).unwrap();
        }
        assert_eq!(facts, Facts::default());
        facts.note(b"CONNECTION", b"a ,Close").unwrap();
        facts.note(b"connection", b"UPGRADE,,keep-Alive").unwrap();
        assert!(facts.close && facts.upgrade_token && facts.keep_alive);
    }

    #[test]
    fn expect_is_a_list() {
        for (lines, expected) in [
            (&["100-continue"][..], Expectation::Continue),
            (&["100-Continue, 100-continue,"], Expectation::Continue),
            (&["100-continue", "100-continue"], Expectation::Continue),
            (&["", " , "], Expectation::None),
            (&["200-ok"], Expectation::Other),
            (&["100-continue, x"], Expectation::Other),
            (&["x", "100-continue"], Expectation::Other),
            (&["100-continue;a"], Expectation::Other),
        ] {
            let mut facts = Facts::default();
            for line in lines {
                facts.note(b"Expect", trim(line.as_bytes())).unwrap();
            }
            assert_eq!(facts.expect, expected, "{lines:?}");
        }
    }

    #[test]
    fn the_body_table() {
        use AnswerBody::*;
        use AnsweredMethod::*;
        for (method, status, body) in [
            (Other, 100, Forbidden),
            (Head, 103, Forbidden),
            (Other, 101, Switch),
            (Other, 200, Framed),
            (Head, 200, Described),
            (Connect, 200, Switch),
            (Connect, 299, Switch),
            (Connect, 407, Framed),
            (Other, 204, Forbidden),
            (Head, 204, Forbidden),
            (Connect, 204, Switch),
            (Other, 304, Described),
            (Head, 304, Described),
            (Other, 205, Reset),
            (Head, 205, Described),
            (Other, 404, Framed),
            (Other, 599, Framed),
            (Other, 999, Framed),
        ] {
            assert_eq!(
                answer_body(method, StatusCode::from_u16(status).unwrap()),
                body,
                "{method:?} {status}"
            );
        }
    }
}
