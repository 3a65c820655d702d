//! Bytes into events.

use bytes::{Buf, Bytes};
use http::header::{HOST, HeaderValue};
use http::{HeaderMap, Request};

use super::{Answer, Exchange, Receive, Server, ServerEvent};
use crate::body::Reading;
use crate::chunked::Piece;
use crate::error::{CloseReason, Error, Excerpt, Timeout};
use crate::fields::{self, Fields};
use crate::framing::{AnsweredMethod, BodyLength, Expectation, Facts, HostField};
use crate::request_line::{self, RequestLine, version};

/// Empty lines before a request line that are skipped (RFC 9112 §2.2 asks for at least one).
const SKIPPED_LINES: u8 = 4;

impl Server {
    /// The next event; `None` asks for more bytes, or for the answer to the request that was given out. To be called
    /// until it gives `None`, after every input and every command.
    ///
    /// # Errors
    /// The peer's fault, or a deadline that has passed. It is repeated until [`answer_fault`](Self::answer_fault) is
    /// called; from then on bytes are thrown away.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, Error> {
        if self.closed.is_some() || self.fault.is_some() {
            return self.next_sealed();
        }
        let event = match self.receive {
            Receive::Head { .. } => self.next_head(),
            Receive::Body(_) => self.next_piece(),
            Receive::Done => Ok(None),
        };
        match event {
            Ok(None) => match self.passed_timeout() {
                Some(timeout) => self.seal(Error::Timeout(timeout)),
                None => Ok(None),
            },
            Ok(event) => Ok(event),
            Err(error) => self.seal(error),
        }
    }

    fn seal(&mut self, error: Error) -> Result<Option<ServerEvent>, Error> {
        self.fault = Some(error.clone());
        Err(error)
    }

    /// Closed, or failed: nothing that comes is read as a message.
    fn next_sealed(&mut self) -> Result<Option<ServerEvent>, Error> {
        match (self.closed, &self.fault) {
            (None, Some(error)) => return Err(error.clone()),
            // What was read already belongs to the next protocol.
            (Some(CloseReason::Upgraded), _) => {}
            _ => {
                self.discard = self.discard.saturating_sub(self.read.len() as u64);
                self.read.clear();
                if self.discard == 0 {
                    self.linger = false;
                }
            }
        }
        match self.passed_timeout() {
            Some(Timeout::Linger) => self.linger = false,
            // The last bytes are not taken: there is nothing left to wait for.
            Some(timeout) => {
                self.queue.clear();
                self.linger = false;
                return Err(Error::Timeout(timeout));
            }
            None => {}
        }
        Ok(None)
    }

    #[inline]
    fn next_head(&mut self) -> Result<Option<ServerEvent>, Error> {
        if self.read.is_empty() {
            if self.eof {
                self.close(CloseReason::PeerClosed);
            }
            return Ok(None);
        }
        match self.known_head() {
            Some((line, fields)) => self.begin_exchange(line, fields).map(Some),
            None => self.scan_head(),
        }
    }

    /// A head of which the cache knows the field block, and perhaps the request line, without a look at its bytes other
    /// than to compare them.
    #[inline]
    fn known_head(&mut self) -> Option<(RequestLine, Fields)> {
        let cache = self.heads.as_deref()?;
        let limits = &self.config.limits;
        let block = cache.block(self.last_block)?;
        let known = cache.line(self.last_line).filter(|line| self.read.starts_with(&line.bytes));
        let line_length = match known {
            Some(line) => line.bytes.len(),
            None => memchr::memchr(b'\n', &self.read)? + 1,
        };
        let rest = self.read.get(line_length..)?;
        if !rest.starts_with(&block.bytes)
            || !block.fits(line_length, limits)
            || line_length > limits.request_line.saturating_add(2)
        {
            return None;
        }
        let line = match known {
            Some(line) => line.line.clone(),
            // Whatever is wrong with it, the long way finds it again and says so.
            None => {
                let bytes = self.read.get(..line_length)?.strip_suffix(b"\r\n")?;
                request_line::parse(&Bytes::copy_from_slice(bytes)).ok()?
            }
        };
        let fields = block.fields.clone();
        let length = line_length + block.bytes.len();
        if known.is_none() {
            self.keep_line(line_length, &line);
        }
        self.consume(length);
        Some((line, fields))
    }

    /// Remembers a request line that is still at the front of the buffer.
    fn keep_line(&mut self, length: usize, line: &RequestLine) {
        if let (Some(cache), Some(bytes)) = (self.heads.as_deref_mut(), self.read.get(..length)) {
            cache.keep_line(bytes, line, &mut self.last_line);
        }
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        if length == self.read.len() {
            // Keeps the storage's beginning, where `advance` would creep to its end.
            self.read.clear();
        } else {
            self.read.advance(length);
        }
    }

    /// The long way: find the end, then parse.
    fn scan_head(&mut self) -> Result<Option<ServerEvent>, Error> {
        let Receive::Head { scan, skipped } = &mut self.receive else { return Ok(None) };
        if scan.is_new() {
            while let Some(rest) = self.read.strip_prefix(b"\r\n") {
                *skipped += 1;
                if *skipped > SKIPPED_LINES {
                    return Err(Error::InvalidRequestLine(Excerpt::of(rest)));
                }
                self.read.advance(2);
            }
            if self.read.is_empty() || *self.read == b"\r"[..] {
                return self.incomplete_head();
            }
        }
        let Some(end) = scan.advance(&self.read, &self.config.limits)? else {
            return self.incomplete_head();
        };
        let head = self.read.split_to(end.length).freeze();
        let line_bytes = head.slice(..end.fields_start);
        let line = request_line::parse(&line_bytes.slice(..line_bytes.len().saturating_sub(2)))?;
        let fields = match self.heads.as_deref_mut() {
            Some(cache) => {
                cache.keep_line(&line_bytes, &line, &mut self.last_line);
                cache.fields(&head, end.fields_start, end.fields, &mut self.last_block)?
            }
            None => fields::parse(&head, end.fields_start, end.fields)?,
        };
        self.begin_exchange(line, fields).map(Some)
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

    /// A head is complete: judges what its fields say together with its first line.
    #[inline]
    fn begin_exchange(&mut self, line: RequestLine, fields: Fields) -> Result<ServerEvent, Error> {
        let Fields { mut headers, facts } = fields;
        check_host(&facts, line.http11)?;
        let body = facts.request_body(line.http11)?;
        let method = AnsweredMethod::from(&line.method);
        let is_connect = method == AnsweredMethod::Connect;
        if is_connect && body != BodyLength::Empty {
            return Err(Error::BodyOnConnect);
        }
        if matches!(body, BodyLength::Known(length) if length > self.config.limits.body) {
            return Err(Error::BodyTooLarge);
        }
        // RFC 9110 §10.1.1: an HTTP/1.0 client cannot expect anything. The same holds for Upgrade (§7.8).
        if facts.expect == Expectation::Other && line.http11 {
            return Err(Error::UnsupportedExpectation);
        }
        let expects_continue =
            facts.expect == Expectation::Continue && line.http11 && body != BodyLength::Empty;
        let upgrade = is_connect || facts.upgrade_field && facts.upgrade_token && line.http11;
        if line.absolute {
            replace_host(&mut headers, &line)?;
        }
        self.exchange = Exchange {
            method,
            http11: line.http11,
            persist: facts.persists(line.http11),
            upgrade,
            expects_continue,
        };
        self.answer = Answer::Owed;
        self.receive = match Reading::new(body) {
            Some(reading) => Receive::Body(reading),
            None => Receive::Done,
        };
        if body != BodyLength::Empty {
            self.ignoring = false;
            self.start_rate();
        }
        let mut request = Request::new(());
        *request.method_mut() = line.method;
        *request.uri_mut() = line.uri;
        *request.version_mut() = version(line.http11);
        *request.headers_mut() = headers;
        Ok(ServerEvent::Request { request, body, expect_continue: expects_continue, upgrade })
    }

    fn next_piece(&mut self) -> Result<Option<ServerEvent>, Error> {
        loop {
            if self.ignoring && self.discard == 0 {
                return Ok(None);
            }
            let Receive::Body(reading) = &mut self.receive else { return Ok(None) };
            let piece = reading.next(&mut self.read, self.eof, &self.config.limits)?;
            match piece {
                None => return Ok(None),
                Some(Piece::Data(data)) => {
                    self.exchange.expects_continue = false;
                    if !self.ignoring {
                        return Ok(Some(ServerEvent::Data(data)));
                    }
                    self.discard = self.discard.saturating_sub(data.len() as u64);
                    if self.discard == 0 {
                        self.give_up_body();
                        return Ok(None);
                    }
                }
                Some(Piece::Trailers(trailers)) if !self.ignoring => {
                    return Ok(Some(ServerEvent::Trailers(trailers)));
                }
                Some(Piece::Trailers(_)) => {}
                Some(Piece::End) => {
                    self.exchange.expects_continue = false;
                    self.receive = Receive::Done;
                    let ignored = std::mem::take(&mut self.ignoring);
                    self.finish_exchange();
                    if !ignored {
                        return Ok(Some(ServerEvent::End));
                    }
                    return self.next_event();
                }
            }
        }
    }

    /// More of the body is left than is worth reading: the connection ends with the current answer.
    pub(super) fn give_up_body(&mut self) {
        self.exchange.persist = false;
        self.finish_exchange();
    }

    /// Goes on to the next exchange, or closes, once this one is over.
    #[inline]
    pub(super) fn finish_exchange(&mut self) {
        if self.answer != Answer::Done {
            return;
        }
        let body_read = matches!(self.receive, Receive::Done);
        if !self.exchange.persist || self.draining {
            self.close(match () {
                () if self.draining => CloseReason::Drained,
                () if !body_read => CloseReason::UnreadBody,
                () => CloseReason::KeepAliveOff,
            });
        } else if body_read {
            self.receive = Receive::NEXT_HEAD;
            self.answer = Answer::None;
            self.since = self.now;
        }
    }
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
fn replace_host(headers: &mut HeaderMap, line: &RequestLine) -> Result<(), Error> {
    let authority = line.uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let host = HeaderValue::from_str(authority).map_err(|_| Error::InvalidHost)?;
    headers.insert(HOST, host);
    Ok(())
}
