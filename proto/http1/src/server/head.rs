//! Heads of requests: found whole in the cache or scanned and parsed, then judged.

use bytes::{Buf, Bytes, BytesMut};
use http::header::{HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Uri, Version};

use super::{Answer, Exchange, Receive, Server, ServerEvent};
use crate::body::Reading;
use crate::cache::{Block, HeadCache};
use crate::config::Limits;
use crate::error::{CloseReason, Error, Excerpt};
use crate::fields::{self, Fields};
use crate::framing::{AnsweredMethod, BodyLength, Expectation, Facts, HostField};
use crate::grammar::is_token_byte;
use crate::request_line::{self, RequestLine, version};
use crate::scan::HeadEnd;

/// Empty lines before a request line that are skipped (RFC 9112 §2.2 asks for at least one).
const SKIPPED_LINES: u8 = 4;

/// What is decided about a request from its head, beyond what is in the head.
struct Opening {
    body: BodyLength,
    expect_continue: bool,
    upgrade: bool,
}

impl Server {
    /// A head at the front of the buffer whose field block is the last one again, and perhaps its request line. Its
    /// bytes are only compared, and its parsed form is cloned straight into the request.
    #[inline]
    pub(super) fn known_head(&mut self, cache: &mut HeadCache) -> Result<Option<ServerEvent>, Error> {
        let Some(block) = cache.block(self.last_block) else { return Ok(None) };
        let line = cache.line(self.last_line).filter(|line| self.read.starts_with(&line.bytes));
        let Some(line) = line else { return self.known_block(cache) };
        if !has_block(&self.read, block, line.bytes.len(), &self.config.limits) {
            return Ok(None);
        }
        consume(&mut self.read, line.bytes.len() + block.bytes.len());
        let (bytes, line) = (&line.bytes, &line.line);
        let opening = match self.open(&line.method, line.http11, &block.fields.facts) {
            Ok(opening) => opening,
            Err(error) => return Err(self.refuse(error, bytes)),
        };
        let headers = block.fields.headers.clone();
        Ok(Some(event(opening, line.method.clone(), line.uri.clone(), headers, line.http11, line.absolute)))
    }

    /// The line is another than last time: it is parsed out of a copy, so that it does not pin the receive buffer.
    #[inline(never)]
    fn known_block(&mut self, cache: &mut HeadCache) -> Result<Option<ServerEvent>, Error> {
        let Some(block) = cache.block(self.last_block) else { return Ok(None) };
        let Some(line_end) = memchr::memchr(b'\n', &self.read) else { return Ok(None) };
        let line_length = line_end + 1;
        let Some(bytes) = self
            .read
            .get(..line_length)
            .filter(|_| has_block(&self.read, block, line_length, &self.config.limits))
        else {
            return Ok(None);
        };
        let Some(line) = bytes.strip_suffix(b"\r\n") else { return Ok(None) };
        let text = Bytes::copy_from_slice(line);
        // What is wrong with a line is for the long way to say, which looks for it in another order.
        let Ok(line) = request_line::parse(&text) else { return Ok(None) };
        let (fields, length) = (block.fields.clone(), line_length + block.bytes.len());
        cache.keep_line(bytes, &mut self.last_line);
        consume(&mut self.read, length);
        self.begin_exchange(line, fields).map(Some).map_err(|error| self.refuse(error, &text))
    }

    /// The long way: find the end, then parse.
    pub(super) fn next_head(&mut self) -> Result<Option<ServerEvent>, Error> {
        let Receive::Head { scan, skipped } = &mut self.receive else { return Ok(None) };
        if scan.is_new() {
            while self.read.starts_with(b"\r\n") {
                *skipped += 1;
                if *skipped > SKIPPED_LINES {
                    return Err(Error::InvalidRequestLine(Excerpt::of(b"\r\n")));
                }
                self.read.advance(2);
            }
            if self.read.is_empty() || *self.read == b"\r"[..] {
                return self.incomplete_head();
            }
            // Who begins like this speaks something else, TLS perhaps, and will not end a line for us.
            if let Some(&first) = self.read.first()
                && !is_token_byte(first)
            {
                return Err(Error::InvalidMethod(Excerpt::of(&[first])));
            }
        }
        let had_line = scan.first_line_end() > 0;
        let advanced = scan.advance(&self.read, &self.config.limits);
        let line_end = scan.first_line_end();
        let Ok(Some(end)) = advanced else {
            // A first line that is none is answered when it is there: whoever sent it may not know that more is due.
            if let Some(line) = self.read.get(..line_end.saturating_sub(2))
                && !had_line
                && line_end > 0
            {
                request_line::parse(&Bytes::copy_from_slice(line))?;
            }
            advanced?;
            return self.incomplete_head();
        };
        let head = self.read.split_to(end.length).freeze();
        self.whole_head(&head, end).map(Some).map_err(|error| self.refuse(error, &head))
    }

    fn whole_head(&mut self, head: &Bytes, end: HeadEnd) -> Result<ServerEvent, Error> {
        let line_bytes = head.slice(..end.fields_start);
        let line = request_line::parse(&line_bytes.slice(..line_bytes.len().saturating_sub(2)))?;
        let fields = match self.heads.as_deref_mut() {
            Some(cache) => {
                cache.keep_line(&line_bytes, &mut self.last_line);
                cache.fields(head, end.fields_start, end.fields, &mut self.last_block)?
            }
            None => fields::parse(head, end.fields_start, end.fields)?,
        };
        self.begin_exchange(line, fields)
    }

    fn incomplete_head(&mut self) -> Result<Option<ServerEvent>, Error> {
        match (self.eof, self.read.is_empty()) {
            (false, _) => Ok(None),
            (true, false) => Err(Error::UnexpectedEofInHead),
            (true, true) => {
                self.close(CloseReason::PeerClosed);
                Ok(None)
            }
        }
    }

    fn begin_exchange(&mut self, line: RequestLine, fields: Fields) -> Result<ServerEvent, Error> {
        let opening = self.open(&line.method, line.http11, &fields.facts)?;
        Ok(event(opening, line.method, line.uri, fields.headers, line.http11, line.absolute))
    }

    /// A head is complete: judges what its fields say together with its first line, and opens the exchange.
    #[inline]
    fn open(&mut self, method: &Method, http11: bool, facts: &Facts) -> Result<Opening, Error> {
        let method = AnsweredMethod::from(method);
        self.plain = false;
        self.answer = Answer::Owed;
        if facts.plain && http11 {
            // The common case, with all the answers of the long way below.
            self.exchange = Exchange {
                method,
                http11,
                persist: true,
                upgrade: method == AnsweredMethod::Connect,
                expects_continue: false,
            };
            self.receive = Receive::Done;
            let upgrade = method == AnsweredMethod::Connect;
            return Ok(Opening { body: BodyLength::Empty, expect_continue: false, upgrade });
        }
        self.open_judged(method, http11, facts)
    }

    fn open_judged(&mut self, method: AnsweredMethod, http11: bool, facts: &Facts) -> Result<Opening, Error> {
        self.answer = Answer::None;
        check_host(facts, http11)?;
        let body = facts.request_body(http11)?;
        let is_connect = method == AnsweredMethod::Connect;
        if body != BodyLength::Empty {
            if is_connect {
                return Err(Error::BodyOnConnect);
            }
            if matches!(body, BodyLength::Known(length) if length > self.config.limits.body) {
                return Err(Error::BodyTooLarge);
            }
        }
        // RFC 9110 §10.1.1: an HTTP/1.0 client cannot expect anything. The same holds for Upgrade (§7.8).
        if facts.expect == Expectation::Other && http11 {
            return Err(Error::UnsupportedExpectation);
        }
        let expect_continue = facts.expect == Expectation::Continue && http11 && body != BodyLength::Empty;
        let upgrade = is_connect || facts.upgrade_field && facts.upgrade_token && http11;
        self.exchange = Exchange {
            method,
            http11,
            persist: facts.persists(http11),
            upgrade,
            expects_continue: expect_continue,
        };
        self.answer = Answer::Owed;
        match Reading::new(body) {
            None => self.receive = Receive::Done,
            Some(reading) => {
                self.receive = Receive::Body(reading);
                self.ignoring = false;
                self.start_rate();
            }
        }
        Ok(Opening { body, expect_continue, upgrade })
    }
}

/// Whether this field block follows a first line of that length, and the head is within the limits.
#[inline]
fn has_block(read: &[u8], block: &Block, line_length: usize, limits: &Limits) -> bool {
    read.get(line_length..).is_some_and(|rest| rest.starts_with(&block.bytes))
        && block.fits(line_length, limits)
        && line_length <= limits.request_line.saturating_add(2)
}

#[inline]
pub(super) fn consume(read: &mut BytesMut, length: usize) {
    if length == read.len() {
        // Keeps the storage's beginning, where `advance` would creep to its end.
        read.clear();
    } else {
        read.advance(length);
    }
}

#[inline]
pub(super) fn request<B>(
    body: B,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    version: Version,
) -> Request<B> {
    let mut request = Request::new(body);
    // What a new request begins with owns no storage, so there is nothing to drop.
    std::mem::forget(std::mem::replace(request.headers_mut(), headers));
    std::mem::forget(std::mem::replace(request.uri_mut(), uri));
    std::mem::forget(std::mem::replace(request.method_mut(), method));
    *request.version_mut() = version;
    request
}

#[inline]
fn event(
    opening: Opening,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    http11: bool,
    absolute: bool,
) -> ServerEvent {
    let Opening { body, expect_continue, upgrade } = opening;
    let mut request = request((), method, uri, headers, version(http11));
    if absolute {
        replace_host(&mut request);
    }
    ServerEvent::Request { request, body, expect_continue, upgrade }
}

/// Exactly one valid Host on 1.1; on 1.0 it may be missing (RFC 9112 §3.2, S11).
#[inline]
fn check_host(facts: &Facts, http11: bool) -> Result<(), Error> {
    match facts.host {
        HostField::Valid => Ok(()),
        HostField::Missing if http11 => Err(Error::MissingHost),
        HostField::Missing => Ok(()),
        HostField::Invalid => Err(Error::InvalidHost),
        HostField::Several => Err(Error::SeveralHosts),
    }
}

/// RFC 9112 §3.2.2: with a target in absolute form, what Host said does not count.
#[inline(never)]
fn replace_host(request: &mut Request<()>) {
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let headers: &mut HeaderMap = request.headers_mut();
    // An authority is never made of anything but field bytes; if one were, no Host is safer than the wrong one.
    match host {
        Some(host) => drop(headers.insert(HOST, host)),
        None => drop(headers.remove(HOST)),
    }
}
