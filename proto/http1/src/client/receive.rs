//! Bytes into events.

use bytes::Buf;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};

use super::{Client, ClientEvent, Receive, Request};
use crate::body::Reading;
use crate::chunked::Piece;
use crate::error::{CloseReason, Error};
use crate::fields::{self, Fields};
use crate::framing::{AnswerBody, BodyLength, TransferCoding, answer_body};
use crate::request_line::version;
use crate::scan::Scan;
use crate::status_line::{self, StatusLine};

impl Client {
    /// The next event; `None` asks for more bytes. To be called until it gives `None`, after every input and every
    /// command.
    ///
    /// # Errors
    /// The peer's fault, again and again. The connection is of no more use.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<ClientEvent>, Error> {
        // What most calls come to: there is nothing to look at.
        let between = matches!(self.receive, Receive::Idle | Receive::Head(_));
        if between && self.read.is_empty() && !self.eof && self.fault.is_none() {
            return Ok(None);
        }
        self.next_event_slowly()
    }

    #[inline(never)]
    fn next_event_slowly(&mut self) -> Result<Option<ClientEvent>, Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.closed.is_some() {
            return Ok(None);
        }
        let event = match self.receive {
            Receive::Idle => self.next_unsolicited(),
            Receive::Head(_) => self.next_head(),
            Receive::Body(_) => self.next_piece(),
            Receive::Done => Ok(None),
        };
        if let Err(error) = &event {
            self.fault = Some(error.clone());
            self.close(CloseReason::Fault);
        }
        event
    }

    /// No answer is owed: whatever comes must not be taken for the next one (S49).
    fn next_unsolicited(&mut self) -> Result<Option<ClientEvent>, Error> {
        if !self.read.is_empty() {
            return Err(Error::Unsolicited);
        }
        if self.eof {
            self.close(CloseReason::PeerClosed);
        }
        Ok(None)
    }

    fn next_head(&mut self) -> Result<Option<ClientEvent>, Error> {
        if self.read.is_empty() {
            return match (self.eof, self.answer_began) {
                (false, _) => Ok(None),
                (true, false) => Err(Error::ClosedBeforeAnswer),
                (true, true) => Err(Error::UnexpectedEofInHead),
            };
        }
        if self.head_left > 0 && self.head_left == self.head_size {
            return Err(Error::AnswerBeforeRequest);
        }
        let known = self.known_head()?;
        let (line, fields) = match known {
            Some(head) => head,
            None => {
                let Receive::Head(scan) = &mut self.receive else { return Ok(None) };
                if scan.first_line_end() == 0 {
                    status_line::judge(&self.read, &self.config.limits)?;
                }
                let Some(end) = scan.advance(&self.read, &self.config.limits)? else {
                    return if self.eof { Err(Error::UnexpectedEofInHead) } else { Ok(None) };
                };
                let head = self.read.split_to(end.length).freeze();
                let line = status_line::parse(head.get(..end.fields_start - 2).unwrap_or_default())?;
                let head = if self.config.unfold { fields::unfolded(head, end.fields_start) } else { head };
                let fields = match self.heads.as_deref_mut() {
                    Some(cache) => cache.fields(&head, end.fields_start, end.fields, &mut self.last_block)?,
                    None => fields::parse(&head, end.fields_start, end.fields)?,
                };
                (line, fields)
            }
        };
        self.judge_head(line, fields).map(Some)
    }

    /// A head whose field block the cache knows.
    fn known_head(&mut self) -> Result<Option<(StatusLine, Fields)>, Error> {
        let Some((length, line_length, fields)) = self.find_known() else { return Ok(None) };
        let line = self.read.get(..line_length).and_then(|line| line.strip_suffix(b"\r\n"));
        let Some(line) = line else { return Ok(None) };
        let line = status_line::parse(line)?;
        if length == self.read.len() {
            self.read.clear();
        } else {
            self.read.advance(length);
        }
        Ok(Some((line, fields)))
    }

    #[inline]
    fn find_known(&self) -> Option<(usize, usize, Fields)> {
        let block = self.heads.as_deref()?.block(self.last_block)?;
        let line_length = memchr::memchr(b'\n', &self.read)? + 1;
        let limits = &self.config.limits;
        let fits = line_length <= limits.request_line.saturating_add(2) && block.fits(line_length, limits);
        let matches = fits && self.read.get(line_length..)?.starts_with(&block.bytes);
        matches.then(|| (line_length + block.bytes.len(), line_length, block.fields.clone()))
    }

    /// A head is complete: judges what its fields say together with its status and its request.
    fn judge_head(&mut self, line: StatusLine, fields: Fields) -> Result<ClientEvent, Error> {
        let Fields { mut headers, facts } = fields;
        let rule = answer_body(self.exchange.method, line.status);
        if rule == AnswerBody::Forbidden && line.status.is_informational() {
            self.interim += 1;
            if self.interim > self.config.limits.interim {
                return Err(Error::TooManyInterimAnswers);
            }
            self.receive = Receive::Head(Scan::NEW);
            return Ok(ClientEvent::Interim(response(line, headers)));
        }
        if rule == AnswerBody::Switch {
            let agreed = line.status != StatusCode::SWITCHING_PROTOCOLS
                || self.exchange.upgrade && facts.upgrade_field && facts.upgrade_token;
            if !agreed || self.request != Request::Done {
                return Err(Error::UnrequestedUpgrade);
            }
            self.receive = Receive::Done;
            self.close(CloseReason::Upgraded);
            return Ok(ClientEvent::Upgraded(response(line, headers)));
        }
        let body = match rule {
            AnswerBody::Framed | AnswerBody::Reset => facts.answer_body()?,
            _ => BodyLength::Empty,
        };
        if matches!(body, BodyLength::Known(length) if length > self.config.limits.body) {
            return Err(Error::BodyTooLarge);
        }
        if let Some(length) = facts.listed_length() {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        let mut persist = facts.persists(line.http11) && body != BodyLength::UntilClose;
        if facts.transfer != TransferCoding::None {
            // RFC 9112 §6.3: the coding wins. Whoever sent both, or sent it in HTTP/1.0, may see the end of this
            // message elsewhere than we do, so nothing after it is trusted (S01, S03).
            let both = headers.remove(CONTENT_LENGTH).is_some();
            persist &= !both && line.http11;
        }
        // The server will not wait for the rest of the request, or will take it for the next one (S14). Where it means well
        // and does not close, the rest is sent all the same (RFC 9110 §7.5).
        let early = self.request != Request::Done || !self.queue.is_empty();
        self.exchange.goes_on = early && persist && line.status.is_success();
        self.exchange.persist &= persist && !early;
        match Reading::new(body) {
            Some(reading) => self.receive = Receive::Body(reading.unfolding(self.config.unfold)),
            None => {
                self.receive = Receive::Done;
                self.finish_exchange();
            }
        }
        Ok(ClientEvent::Response { response: response(line, headers), body })
    }

    fn next_piece(&mut self) -> Result<Option<ClientEvent>, Error> {
        let Receive::Body(reading) = &mut self.receive else { return Ok(None) };
        let piece = reading.next(&mut self.read, self.eof, &self.config.limits)?;
        Ok(piece.map(|piece| match piece {
            Piece::Data(data) => ClientEvent::Data(data),
            Piece::Trailers(trailers) => ClientEvent::Trailers(trailers),
            Piece::End => {
                self.receive = Receive::Done;
                self.finish_exchange();
                ClientEvent::End
            }
        }))
    }

    /// Goes on to the next exchange, or closes, once this one is over. A connection that does not persist is over with
    /// its answer, unless that is an early success: see [`Client::is_uploading`].
    pub(super) fn finish_exchange(&mut self) {
        if !matches!(self.receive, Receive::Done) {
            return;
        }
        if !self.exchange.persist {
            if self.exchange.goes_on && self.request != Request::Done {
                return;
            }
            self.close(CloseReason::KeepAliveOff);
        } else if self.request == Request::Done {
            self.receive = Receive::Idle;
            self.request = Request::None;
        }
    }
}

fn response(line: StatusLine, headers: http::HeaderMap) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = line.status;
    *response.version_mut() = version(line.http11);
    *response.headers_mut() = headers;
    if let Some(reason) = line.reason {
        response.extensions_mut().insert(reason);
    }
    response
}
