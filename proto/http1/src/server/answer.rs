//! The application's answer into bytes.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{Answer, Receive, Server};
use crate::body::Writing;
use crate::error::{CloseReason, Misuse};
use crate::framing::{AnswerBody, BodySize, answer_body};
use crate::write::{self, Asked};

/// What the framing fields of an answer say, and how its body is written.
struct Framing {
    content_length: Option<u64>,
    chunked_field: bool,
    body: Writing,
}

impl Server {
    /// Queues an interim answer other than 100 and 101, such as 103 (RFC 9110 §15.2). An HTTP/1.0 client gets none.
    ///
    /// # Errors
    /// [`Misuse::WrongStatus`], [`Misuse::NoMessage`], [`Misuse::HeadAlreadySent`], [`Misuse::InvalidByte`],
    /// [`Misuse::ConflictingFraming`] for a field that frames a body.
    pub fn send_interim(&mut self, status: StatusCode, headers: &HeaderMap) -> Result<(), Misuse> {
        if !(102..=199).contains(&status.as_u16()) {
            return Err(Misuse::WrongStatus);
        }
        self.check_owed()?;
        if !self.exchange.http11 {
            return Ok(());
        }
        self.write_head(|server| {
            let out = &mut server.queue.copied;
            write::status_line(out, status);
            let asked = write::fields(out, headers)?;
            if asked.content_length.is_some() || asked.chunked {
                return Err(Misuse::ConflictingFraming);
            }
            out.extend_from_slice(b"\r\n");
            Ok(())
        })
    }

    /// Queues `100 Continue`, if the client waits for it and neither the body nor the final answer has begun. May be
    /// called whenever the application asks for the body.
    #[inline]
    pub fn send_continue(&mut self) {
        if self.exchange.expects_continue && self.answer == Answer::Owed && self.closed.is_none() {
            self.exchange.expects_continue = false;
            // A client whose body is on its way has not waited (RFC 9110 §10.1.1).
            if !self.read.is_empty() {
                return;
            }
            self.begin_write();
            self.queue.copied.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Queues the final head of the answer. The machine writes Content-Length, Transfer-Encoding, Connection and Date;
    /// of the caller's, a Content-Length is the framing where `size` is unknown, `Connection: close` is honoured, and a
    /// Date is kept. The answer ends with [`end`](Self::end) or [`send_trailers`](Self::send_trailers), whether or not
    /// it has a body; but 101, and 2xx to CONNECT, leave HTTP at once.
    ///
    /// # Errors
    /// The machine is as before, so another head can be sent instead.
    #[inline]
    pub fn send_head(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<(), Misuse> {
        self.check_owed()?;
        let rule = self.body_rule(status)?;
        // Of a 304 the length would be that of the 200 (RFC 9110 §8.6), which a body that is not sent says nothing about.
        let size = if status == StatusCode::NOT_MODIFIED { BodySize::Known(0) } else { size };
        let mut body = Writing::Dropped;
        let mut persist = self.exchange.persist;
        self.write_head(|server| {
            let out = &mut server.queue.copied;
            write::status_line(out, status);
            let asked = write::fields(out, headers)?;
            let framing = frame(rule, &asked, size, server.exchange.http11)?;
            if let Some(length) = framing.content_length {
                write::content_length(out, length);
            }
            if framing.chunked_field {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
            if !asked.date {
                server.date.write(out);
            }
            body = framing.body;
            persist &= !asked.close && body != Writing::UntilClose && !server.must_close();
            let out = &mut server.queue.copied;
            match (rule, status) {
                (AnswerBody::Switch, StatusCode::SWITCHING_PROTOCOLS) => {
                    // RFC 9110 §15.2.2: the answer names the protocol.
                    if !asked.upgrade_field {
                        return Err(Misuse::UpgradeNotPossible);
                    }
                    out.extend_from_slice(b"connection: upgrade\r\n");
                }
                (AnswerBody::Switch, _) => {}
                _ if !persist => out.extend_from_slice(b"connection: close\r\n"),
                _ if !server.exchange.http11 => out.extend_from_slice(b"connection: keep-alive\r\n"),
                _ if asked.upgrade_field => out.extend_from_slice(b"connection: upgrade\r\n"),
                _ => {}
            }
            out.extend_from_slice(b"\r\n");
            Ok(())
        })?;
        self.exchange.persist = persist;
        self.until_close |= body == Writing::UntilClose;
        self.answer = Answer::Body(body);
        if rule == AnswerBody::Switch {
            self.answer = Answer::Done;
            self.close(CloseReason::Upgraded);
        }
        Ok(())
    }

    /// What a final answer with this status may have behind its head.
    #[inline]
    fn body_rule(&self, status: StatusCode) -> Result<AnswerBody, Misuse> {
        let rule = answer_body(self.exchange.method, status);
        if status == StatusCode::RESET_CONTENT && rule == AnswerBody::Described {
            // What GET would get has no content either (RFC 9110 §15.3.6).
            return Ok(AnswerBody::Reset);
        }
        if rule == AnswerBody::Forbidden && status.is_informational() {
            return Err(Misuse::WrongStatus);
        }
        if rule == AnswerBody::Switch && !(self.exchange.upgrade && matches!(self.receive, Receive::Done)) {
            return Err(Misuse::UpgradeNotPossible);
        }
        Ok(rule)
    }

    /// Whether the connection cannot outlive this answer, as is known before it is written: the client may or may not
    /// send a body that we never asked for (S14), or the rest of the body is longer than it is worth.
    #[inline]
    fn must_close(&self) -> bool {
        let Receive::Body(reading) = &self.receive else {
            return self.draining;
        };
        let unwanted = self.exchange.expects_continue && reading.is_untouched() && self.read.is_empty();
        let too_much = self.ignoring && reading.left().is_some_and(|left| left > self.discard);
        self.draining || unwanted || too_much
    }

    /// Queues a whole answer: [`send_head`](Self::send_head) with the length of `data`, `data`, [`end`](Self::end), in one
    /// step. For an answer that does not leave HTTP.
    ///
    /// # Errors
    /// As [`send_head`](Self::send_head).
    #[inline]
    pub fn send_full(&mut self, status: StatusCode, headers: &HeaderMap, data: Bytes) -> Result<(), Misuse> {
        self.send_head(status, headers, BodySize::Known(data.len() as u64))?;
        match self.answer {
            Answer::Body(Writing::Length(_)) => self.queue.push(data),
            Answer::Body(Writing::Dropped) => {}
            Answer::Body(_) => {
                self.send_data(data)?;
                return self.end();
            }
            // It has left HTTP.
            _ => return Ok(()),
        }
        self.answer = Answer::Done;
        self.finish_exchange();
        Ok(())
    }

    /// Queues a piece of the answer's body. Small ones are copied. Dropped where the answer has no body.
    ///
    /// # Errors
    /// [`Misuse::BodyTooLong`] where more than announced would be sent; nothing is queued then.
    /// [`Misuse::NoMessage`] before the head and after the end.
    #[inline]
    pub fn send_data(&mut self, data: Bytes) -> Result<(), Misuse> {
        self.with_body(|body, queue| body.data(queue, data))
    }

    /// Announces a stretch of the body that the driver sends by itself, such as a part of a file; see
    /// [`external`](Self::external).
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data).
    pub fn send_external(&mut self, length: u64) -> Result<(), Misuse> {
        self.with_body(|body, queue| body.external(queue, length))
    }

    /// Ends the answer with trailers. They are dropped where the body is not chunked.
    ///
    /// # Errors
    /// [`Misuse::ForbiddenTrailer`] and [`Misuse::InvalidByte`] leave the answer open; otherwise as
    /// [`end`](Self::end).
    pub fn send_trailers(&mut self, trailers: &HeaderMap) -> Result<(), Misuse> {
        self.finish_answer(Some(trailers))
    }

    /// Ends the answer. Needed after every final head but those that leave HTTP.
    ///
    /// # Errors
    /// [`Misuse::BodyTooShort`] where less than announced was sent; the connection is closed then.
    #[inline]
    pub fn end(&mut self) -> Result<(), Misuse> {
        self.finish_answer(None)
    }

    #[inline]
    fn finish_answer(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Misuse> {
        let ended = self.with_body(|body, queue| body.end(queue, trailers));
        match ended {
            Ok(()) => {
                self.answer = Answer::Done;
                self.finish_exchange();
            }
            Err(Misuse::BodyTooShort) => self.abort(),
            Err(_) => {}
        }
        ended
    }

    #[inline]
    fn with_body(
        &mut self,
        write: impl FnOnce(&mut Writing, &mut crate::queue::Queue) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        if self.closed.is_some() {
            return Err(Misuse::Closed);
        }
        if !matches!(self.answer, Answer::Body(_)) {
            return Err(Misuse::NoMessage);
        }
        self.begin_write();
        let Answer::Body(body) = &mut self.answer else { return Err(Misuse::NoMessage) };
        write(body, &mut self.queue)
    }

    /// The answer cannot be finished. What is queued of it goes out, but nothing that would make it look complete; then
    /// the connection ends.
    pub fn abort(&mut self) {
        self.exchange.persist = false;
        self.close(CloseReason::Aborted);
    }

    /// The application does not read the rest of the request's body. No more of it comes as events; up to
    /// [`Limits::drain`](crate::Limits::drain) bytes are read and thrown away to keep the connection. Needed before
    /// the next request can come, if the body was not read to its end.
    pub fn ignore_body(&mut self) {
        let Receive::Body(reading) = &self.receive else { return };
        if self.ignoring || self.closed.is_some() {
            return;
        }
        self.ignoring = true;
        self.discard = self.config.limits.drain;
        // A client that still waits for its 100 will never send the body, or will send it with the next request's
        // bytes behind it: nobody can tell (S14).
        let unwanted = self.exchange.expects_continue && reading.is_untouched() && self.read.is_empty();
        if unwanted || reading.left().is_some_and(|left| left > self.discard) {
            self.exchange.persist = false;
        }
        self.pause_or_resume();
        self.finish_exchange();
    }

    #[inline]
    fn check_owed(&self) -> Result<(), Misuse> {
        if self.closed.is_some() {
            return Err(Misuse::Closed);
        }
        match self.answer {
            Answer::Owed => Ok(()),
            Answer::None => Err(Misuse::NoMessage),
            Answer::Body(_) | Answer::Done => Err(Misuse::HeadAlreadySent),
        }
    }

    /// Writes a head as a whole or not at all.
    #[inline]
    fn write_head(&mut self, write: impl FnOnce(&mut Self) -> Result<(), Misuse>) -> Result<(), Misuse> {
        self.begin_write();
        let before = self.queue.copied.len();
        let written = write(self);
        if written.is_err() {
            self.queue.copied.truncate(before);
        }
        written
    }

    /// The write-stall timer counts from the first byte that waits.
    #[inline]
    pub(super) fn begin_write(&mut self) {
        if self.queue.is_empty() {
            self.moved = self.now;
        }
    }
}

/// How the body of an answer is framed (RFC 9112 §6.3, RFC 9110 §8.6).
#[inline]
fn frame(rule: AnswerBody, asked: &Asked, size: BodySize, http11: bool) -> Result<Framing, Misuse> {
    let dropped = |content_length| Framing { content_length, chunked_field: false, body: Writing::Dropped };
    if asked.chunked && asked.content_length.is_some() {
        return Err(Misuse::ConflictingFraming);
    }
    match rule {
        AnswerBody::Forbidden | AnswerBody::Switch => Ok(dropped(None)),
        AnswerBody::Reset => Ok(dropped(Some(0))),
        AnswerBody::Described => Ok(dropped(match (asked.content_length, size) {
            (Some(length), _) => Some(length),
            // An empty body to HEAD says nothing about the one that GET would get.
            (None, BodySize::Known(length)) if length > 0 => Some(length),
            _ => None,
        })),
        AnswerBody::Framed => {
            let length = match (asked.content_length, size) {
                (Some(announced), BodySize::Known(length)) if announced != length => {
                    return Err(Misuse::ConflictingFraming);
                }
                (Some(length), _) => Some(length),
                (None, BodySize::Known(length)) if !asked.chunked => Some(length),
                (None, _) => None,
            };
            Ok(match length {
                Some(length) => Framing {
                    content_length: Some(length),
                    chunked_field: false,
                    body: Writing::Length(length),
                },
                None if http11 => {
                    Framing { content_length: None, chunked_field: true, body: Writing::Chunked }
                }
                None => Framing { content_length: None, chunked_field: false, body: Writing::UntilClose },
            })
        }
    }
}
