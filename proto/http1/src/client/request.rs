//! The caller's request into bytes.

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Method, Version};

use super::{Client, Exchange, Receive, Request};
use crate::body::Writing;
use crate::error::Misuse;
use crate::framing::{AnsweredMethod, BodySize};
use crate::grammar::is_host;
use crate::queue::Queue;
use crate::request_line::target_form;
use crate::scan::Scan;
use crate::write::{self, Asked};

/// The fields of a head, checked and encoded once to be sent many times: a client asks one server with the same fields
/// again and again. See [`Client::send_prepared_head`].
#[derive(Clone, Debug)]
pub struct PreparedFields {
    bytes: Box<[u8]>,
    asked: Asked,
    host_valid: bool,
}

impl PreparedFields {
    /// Checks and encodes `headers`. What depends on the version, the method or the body is checked when they are sent.
    ///
    /// # Errors
    /// As [`Client::send_head`], as far as the fields alone are at fault.
    pub fn new(headers: &HeaderMap) -> Result<Self, Misuse> {
        let mut bytes = Vec::new();
        let asked = write::fields(&mut bytes, headers)?;
        Ok(PreparedFields { bytes: bytes.into(), asked, host_valid: is_host_valid(headers) })
    }
}

impl Client {
    /// Queues the head of a request. `target` is what goes on the wire, in the form that the method and the next hop
    /// need (RFC 9112 §3.2). HTTP/1.1 needs exactly one Host in `headers`. The machine writes Content-Length and
    /// Transfer-Encoding; a caller's Content-Length is the framing where `size` is unknown. Of Connection the tokens
    /// `close`, `keep-alive` and `upgrade` are honoured. The request ends with [`end`](Self::end) or
    /// [`send_trailers`](Self::send_trailers), whether or not it has a body.
    ///
    /// # Errors
    /// The machine is as before.
    pub fn send_head(
        &mut self,
        method: &Method,
        target: &str,
        version: Version,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<(), Misuse> {
        self.queue_head(method, target, version, size, |out| {
            Ok((write::fields(out, headers)?, is_host_valid(headers)))
        })
    }

    /// As [`send_head`](Self::send_head), with fields that were prepared.
    ///
    /// # Errors
    /// The machine is as before.
    pub fn send_prepared_head(
        &mut self,
        method: &Method,
        target: &str,
        version: Version,
        fields: &PreparedFields,
        size: BodySize,
    ) -> Result<(), Misuse> {
        self.queue_head(method, target, version, size, |out| {
            out.extend_from_slice(&fields.bytes);
            Ok((fields.asked, fields.host_valid))
        })
    }

    #[inline]
    fn queue_head(
        &mut self,
        method: &Method,
        target: &str,
        version: Version,
        size: BodySize,
        write_fields: impl FnOnce(&mut Vec<u8>) -> Result<(Asked, bool), Misuse>,
    ) -> Result<(), Misuse> {
        if self.closed.is_some() || self.fault.is_some() || self.eof {
            return Err(Misuse::Closed);
        }
        if !matches!(self.receive, Receive::Idle) || self.request != Request::None {
            return Err(Misuse::HeadAlreadySent);
        }
        if target_form(method, target.as_bytes()).is_none() {
            return Err(Misuse::InvalidTarget);
        }
        let before = self.queue.copied.len();
        match write_request(&mut self.queue.copied, method, target, version, size, write_fields) {
            Ok((body, exchange)) => {
                self.request = Request::Body(body);
                self.exchange = exchange;
            }
            Err(misuse) => {
                self.queue.copied.truncate(before);
                return Err(misuse);
            }
        }
        self.receive = Receive::Head(Scan::NEW);
        self.head_left = self.queue.bytes();
        self.head_size = self.head_left;
        self.interim = 0;
        self.answer_began = !self.read.is_empty();
        Ok(())
    }

    /// Queues a piece of the request's body. Small ones are copied.
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

    /// Ends the request with trailers. They are dropped where the body is not chunked.
    ///
    /// # Errors
    /// [`Misuse::ForbiddenTrailer`] and [`Misuse::InvalidByte`] leave the request open; otherwise as
    /// [`end`](Self::end).
    pub fn send_trailers(&mut self, trailers: &HeaderMap) -> Result<(), Misuse> {
        self.finish_request(Some(trailers))
    }

    /// Ends the request. Needed after every head.
    ///
    /// # Errors
    /// [`Misuse::BodyTooShort`] where less than announced was sent; the connection is closed then.
    #[inline]
    pub fn end(&mut self) -> Result<(), Misuse> {
        self.finish_request(None)
    }

    fn finish_request(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Misuse> {
        let ended = self.with_body(|body, queue| body.end(queue, trailers));
        match ended {
            Ok(()) => {
                self.request = Request::Done;
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
        write: impl FnOnce(&mut Writing, &mut Queue) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        if self.closed.is_some() {
            return Err(Misuse::Closed);
        }
        let Request::Body(body) = &mut self.request else { return Err(Misuse::NoMessage) };
        write(body, &mut self.queue)
    }
}

fn write_request(
    out: &mut Vec<u8>,
    method: &Method,
    target: &str,
    version: Version,
    size: BodySize,
    write_fields: impl FnOnce(&mut Vec<u8>) -> Result<(Asked, bool), Misuse>,
) -> Result<(Writing, Exchange), Misuse> {
    write::request_line(out, method, target, version)?;
    let http11 = version == Version::HTTP_11;
    let (asked, host_valid) = write_fields(out)?;
    // RFC 9112 §3.2
    let hosts_allowed = if http11 { asked.hosts == 1 } else { asked.hosts <= 1 };
    if !hosts_allowed || !host_valid {
        return Err(Misuse::InvalidTarget);
    }
    let body = frame(out, method, &asked, size, http11)?;
    // What the caller's Connection said, in one line of our own.
    let upgrade = asked.upgrade_field && asked.upgrade_token && http11;
    match (asked.close, upgrade, asked.keep_alive) {
        (true, true, _) => out.extend_from_slice(b"connection: close, upgrade\r\n"),
        (true, false, _) => out.extend_from_slice(b"connection: close\r\n"),
        (false, true, _) => out.extend_from_slice(b"connection: upgrade\r\n"),
        (false, false, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (false, false, false) => {}
    }
    out.extend_from_slice(b"\r\n");
    let persist = !asked.close && (http11 || asked.keep_alive);
    Ok((body, Exchange { method: AnsweredMethod::from(method), persist, upgrade, goes_on: false }))
}

fn is_host_valid(headers: &HeaderMap) -> bool {
    headers.get(HOST).is_none_or(|host| is_host(host.as_bytes()))
}

/// Writes the field that frames the body (RFC 9112 §6.2, RFC 9110 §8.6).
fn frame(
    out: &mut Vec<u8>,
    method: &Method,
    asked: &Asked,
    size: BodySize,
    http11: bool,
) -> Result<Writing, Misuse> {
    let empty =
        size == BodySize::Known(0) && !asked.chunked && asked.content_length.is_none_or(|length| length == 0);
    if *method == Method::CONNECT && (!empty || asked.content_length.is_some()) {
        return Err(Misuse::ConflictingFraming);
    }
    let length = match (asked.content_length, size) {
        (Some(_), _) if asked.chunked => return Err(Misuse::ConflictingFraming),
        (Some(announced), BodySize::Known(length)) if announced != length => {
            return Err(Misuse::ConflictingFraming);
        }
        (Some(length), _) => Some(length),
        (None, BodySize::Known(length)) if !asked.chunked => Some(length),
        (None, _) => None,
    };
    match length {
        // A request whose method gives content no meaning announces none (RFC 9110 §8.6).
        Some(0) if asked.content_length.is_none() && !expects_content(method) => Ok(Writing::Length(0)),
        Some(length) => {
            write::content_length(out, length);
            Ok(Writing::Length(length))
        }
        None if http11 => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Ok(Writing::Chunked)
        }
        // HTTP/1.0 has no way to end such a body but to end the connection, and then no answer could come.
        None => Err(Misuse::ConflictingFraming),
    }
}

fn expects_content(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}
