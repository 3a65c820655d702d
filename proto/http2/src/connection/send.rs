//! What the local side wants: heads, bodies, trailers and ends, for both roles (RFC 9113 §8.1).

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

use crate::connection::Connection;
use crate::error::Misuse;
use crate::event::BodySize;
use crate::frame::{self, HEAD_LENGTH, Kind, MAX_31, StreamId, flag};
use crate::hpack::{Encoder, Pseudo};
use crate::message::{is_connection_field, is_forbidden_trailer, parse_length};
use crate::reason::Reason;
use crate::stream::{Receiving, Sending, Stream};

/// The pseudo-fields of a request.
pub(crate) struct Target<'a> {
    pub(crate) method: &'a Method,
    pub(crate) scheme: Option<&'a str>,
    pub(crate) authority: &'a str,
    pub(crate) path: Option<&'a str>,
    pub(crate) protocol: Option<&'a str>,
}

impl Connection {
    fn sending_entry(&mut self, id: StreamId) -> Result<&mut Stream, Misuse> {
        if self.closed.is_some() {
            return Err(Misuse::Closed);
        }
        let entry = self.streams.get_mut(id).filter(|stream| !stream.reset && !stream.finished);
        entry.ok_or(Misuse::UnknownStream)
    }

    // ------------------------------------------------------------------------------------------------- responses

    pub(crate) fn put_interim(
        &mut self,
        id: StreamId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Misuse> {
        let stream = self.sending_entry(id)?;
        if stream.sending != Sending::Head {
            return Err(Misuse::HeadAlreadySent);
        }
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Misuse::BadStatus);
        }
        if status == StatusCode::CONTINUE {
            stream.send.owes_continue = false;
        }
        self.write_head(id, false, |encoder, out| {
            encoder.pseudo(Pseudo::Status, status.as_str(), out);
            put_fields(encoder, headers, out);
        });
        Ok(())
    }

    pub(crate) fn put_continue(&mut self, id: StreamId) {
        let owed = self.streams.get(id).is_some_and(|stream| {
            stream.send.owes_continue && stream.sending == Sending::Head && stream.recv.received == 0
        });
        if owed {
            // The one way for it to fail is that the stream is gone, and then nobody waits.
            let _ = self.put_interim(id, StatusCode::CONTINUE, &HeaderMap::new());
        }
    }

    pub(crate) fn put_response(
        &mut self,
        id: StreamId,
        status: StatusCode,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<(), Misuse> {
        let stream = self.sending_entry(id)?;
        if stream.sending != Sending::Head {
            return Err(Misuse::HeadAlreadySent);
        }
        if status.is_informational() {
            return Err(Misuse::BadStatus);
        }
        let tunnel = stream.send.tunnel && status.is_success();
        let bare = status == StatusCode::NO_CONTENT || tunnel;
        let no_content =
            !tunnel && (stream.send.head_request || bare || matches!(status.as_u16(), 205 | 304));
        let noted = Noted::of(headers)?;
        let framing = Framing::of(&noted, size, no_content)?;
        let length = match framing.length {
            _ if bare => None,
            // RFC 9110 §15.3.6; and RFC 9113 §8.1.1 lets no other length stand in a head without content.
            _ if status == StatusCode::RESET_CONTENT => Some(0),
            // What a handler has that leaves the body out, or puts one where none is, is not what GET would give
            // (RFC 9110 §8.6).
            Some(length) if no_content && !framing.explicit => {
                Some(length).filter(|&length| length > 0 && status != StatusCode::NOT_MODIFIED)
            }
            length => length,
        };
        stream.send.no_content = no_content;
        stream.send.promised = if no_content || tunnel { None } else { framing.length };
        let end = no_content || (size == BodySize::Known(0) && !tunnel);
        if let Some(priority) = noted.priority {
            // The server knows better than the client (RFC 9218 §8).
            stream.priority = stream.priority.merge(priority.as_bytes());
        }
        let date = self.date;
        let date = (date != [0; 29] && !noted.date).then_some(date);
        self.write_head(id, end, |encoder, out| {
            encoder.pseudo(Pseudo::Status, status.as_str(), out);
            put_fields(encoder, headers, out);
            put_length(encoder, length, out);
            if let Some(date) = &date {
                encoder.field(&header::DATE, date, false, out);
            }
        });
        self.head_sent(id, end);
        Ok(())
    }

    /// A response that the machine gives by itself: a status and nothing else, which ends our side.
    pub(super) fn put_bare_head(&mut self, id: StreamId, status: StatusCode) {
        self.write_head(id, true, |encoder, out| {
            encoder.pseudo(Pseudo::Status, status.as_str(), out);
            put_length(encoder, Some(0), out);
        });
        self.head_sent(id, true);
    }

    fn head_sent(&mut self, id: StreamId, end: bool) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.sending = Sending::Body;
        }
        if end {
            self.sent_end(id);
        }
    }

    // ------------------------------------------------------------------------------------------------- requests

    /// Whether a request could be opened now, and if not, whether it is worth waiting.
    pub(crate) fn may_open(&self) -> Result<(), Misuse> {
        if self.closed.is_some() {
            return Err(Misuse::Closed);
        }
        let last = self.streams.highest_local;
        if self.going.draining || self.going.received_last.is_some() || last + 2 > MAX_31 {
            return Err(Misuse::GoingAway);
        }
        if self.local_active >= self.peer.max_concurrent_streams {
            return Err(Misuse::TooManyStreams);
        }
        Ok(())
    }

    pub(crate) fn takes_connect_protocol(&self) -> bool {
        self.peer.connect_protocol
    }

    pub(crate) fn put_request(
        &mut self,
        target: &Target<'_>,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<StreamId, Misuse> {
        self.may_open()?;
        let tunnel = *target.method == Method::CONNECT;
        let framing = Framing::of(&Noted::of(headers)?, size, false)?;
        // A length of zero says something only where a body is expected (RFC 9110 §8.6).
        let expected = [Method::POST, Method::PUT, Method::PATCH].contains(target.method);
        let length = framing.length.filter(|&length| !tunnel && (length > 0 || expected || framing.explicit));
        let id = StreamId(if self.streams.highest_local == 0 { 1 } else { self.streams.highest_local + 2 });
        self.streams.highest_local = id.get();
        let mut stream = self.new_stream(id, Receiving::Head);
        stream.send.head_request = *target.method == Method::HEAD;
        stream.send.tunnel = tunnel;
        stream.send.promised = if tunnel { None } else { framing.length };
        stream.send.position = self.out.position();
        self.streams.insert(stream);
        self.local_active += 1;
        self.timing.streams_busy(self.now);
        let end = size == BodySize::Known(0) && !tunnel;
        self.write_head(id, end, |encoder, out| {
            encoder.pseudo(Pseudo::Method, target.method.as_str(), out);
            let rest = [
                (Pseudo::Scheme, target.scheme),
                (Pseudo::Authority, Some(target.authority)),
                (Pseudo::Path, target.path),
                (Pseudo::Protocol, target.protocol),
            ];
            for (pseudo, value) in rest {
                if let Some(value) = value {
                    encoder.pseudo(pseudo, value, out);
                }
            }
            put_fields(encoder, headers, out);
            put_length(encoder, length, out);
        });
        self.head_sent(id, end);
        Ok(id)
    }

    // ------------------------------------------------------------------------------------------------- bodies

    /// Queues body octets behind the head of `stream`. They are passed through uncopied, unless they are few. Where the
    /// message has no content, as an answer to HEAD, they are dropped.
    ///
    /// # Errors
    /// [`Misuse`], among it more octets than the head announced.
    pub fn send_data(&mut self, stream: StreamId, data: Bytes) -> Result<(), Misuse> {
        let entry = self.sending_entry(stream)?;
        match entry.sending {
            Sending::Head => return Err(Misuse::HeadNotSent),
            _ if entry.send.no_content => return Ok(()),
            Sending::Ending | Sending::Done if data.is_empty() => return Ok(()),
            Sending::Ending | Sending::Done => return Err(Misuse::AfterEnd),
            Sending::Body => {}
        }
        if let Some(promised) = &mut entry.send.promised {
            *promised = promised.checked_sub(data.len() as u64).ok_or(Misuse::BodyTooLong)?;
        }
        entry.send.queue.push(data);
        self.schedule(stream);
        Ok(())
    }

    /// Ends the message of `stream`. Ending it twice does no harm.
    ///
    /// # Errors
    /// [`Misuse::BodyTooShort`] when less was sent than the head announced; the stream is reset then, because the peer
    /// must not take it for complete.
    pub fn end(&mut self, stream: StreamId) -> Result<(), Misuse> {
        self.end_with_trailers(stream, None)
    }

    /// Ends the message of `stream` with trailer fields. Where the message has no content they are dropped.
    ///
    /// # Errors
    /// [`Misuse::BadField`] for a name that may not be a trailer (RFC 9110 §6.5.1); otherwise as
    /// [`end`](Self::end).
    pub fn send_trailers(&mut self, stream: StreamId, trailers: &HeaderMap) -> Result<(), Misuse> {
        if trailers.keys().any(is_forbidden_trailer) {
            return Err(Misuse::BadField);
        }
        self.end_with_trailers(stream, Some(trailers))
    }

    fn end_with_trailers(&mut self, id: StreamId, trailers: Option<&HeaderMap>) -> Result<(), Misuse> {
        let stream = self.sending_entry(id)?;
        match stream.sending {
            Sending::Head => return Err(Misuse::HeadNotSent),
            Sending::Ending | Sending::Done if trailers.is_none() || stream.send.no_content => return Ok(()),
            Sending::Ending | Sending::Done => return Err(Misuse::AfterEnd),
            Sending::Body => {}
        }
        if stream.send.promised.is_some_and(|left| left > 0) {
            self.reset_stream(id, Reason::InternalError);
            return Err(Misuse::BodyTooShort);
        }
        stream.sending = Sending::Ending;
        stream.send.trailers =
            trailers.filter(|trailers| !trailers.is_empty()).map(|map| Box::new(map.clone()));
        if !stream.send.queue.is_empty() {
            return Ok(());
        }
        if stream.send.trailers.is_some() {
            self.write_trailers(id);
        } else {
            self.out.frames(|out| frame::put_head(out, 0, Kind::Data, flag::END_STREAM, id));
            self.sent_end(id);
        }
        Ok(())
    }

    pub(super) fn write_trailers(&mut self, id: StreamId) {
        let trailers = self.streams.get_mut(id).and_then(|stream| stream.send.trailers.take());
        let trailers = trailers.unwrap_or_default();
        self.write_head(id, true, |encoder, out| put_fields(encoder, &trailers, out));
        self.sent_end(id);
    }

    /// Writes a header block at once: the order of encoding is the order on the wire.
    fn write_head(
        &mut self,
        id: StreamId,
        end_stream: bool,
        encode: impl FnOnce(&mut Encoder, &mut BytesMut),
    ) {
        let max = self.peer.max_frame_size as usize;
        let encoder = &mut self.encoder;
        self.out.frames(|out| {
            let start = out.len();
            let flags = flag::END_HEADERS | if end_stream { flag::END_STREAM } else { 0 };
            frame::put_head(out, 0, Kind::Headers, flags, id);
            encoder.begin(out);
            encode(encoder, out);
            let length = out.len() - start - HEAD_LENGTH;
            if length <= max {
                let [_, high, middle, low] = (length as u32).to_be_bytes();
                if let Some(place) = out.get_mut(start..start + 3) {
                    place.copy_from_slice(&[high, middle, low]);
                }
            } else {
                let block = out.split_off(start + HEAD_LENGTH);
                out.truncate(start);
                frame::put_header_block(out, id, end_stream, &block, max);
            }
        });
    }
}

/// What the fields and the size of a body say about its length.
struct Framing {
    length: Option<u64>,
    /// A Content-Length field said it.
    explicit: bool,
}

impl Framing {
    /// A Content-Length of the application is the framing of a body of unknown size, and must not contradict a known one.
    /// One in the head of a message without content stands for what the content would have been.
    fn of(noted: &Noted<'_>, size: BodySize, no_content: bool) -> Result<Self, Misuse> {
        let Some(field) = noted.content_length else {
            let length = if let BodySize::Known(length) = size { Some(length) } else { None };
            return Ok(Framing { length, explicit: false });
        };
        if matches!(size, BodySize::Known(length) if length != field && !(no_content && length == 0)) {
            return Err(Misuse::BadField);
        }
        Ok(Framing { length: Some(field), explicit: true })
    }
}

/// What has to be known of the fields of a head before it is written, found in one pass.
#[derive(Default)]
struct Noted<'a> {
    content_length: Option<u64>,
    priority: Option<&'a HeaderValue>,
    date: bool,
}

impl<'a> Noted<'a> {
    fn of(headers: &'a HeaderMap) -> Result<Self, Misuse> {
        let mut noted = Noted::default();
        for (name, value) in headers {
            if *name == header::CONTENT_LENGTH {
                let length = parse_length(value.as_bytes()).ok_or(Misuse::BadField)?;
                if noted.content_length.replace(length).is_some_and(|before| before != length) {
                    return Err(Misuse::BadField);
                }
            } else if *name == header::DATE {
                noted.date = true;
            } else if name == "priority" {
                noted.priority = Some(value);
            }
        }
        Ok(noted)
    }
}

/// Writes all fields but those that HTTP/2 has other means for: framing, the connection, the host.
fn put_fields(encoder: &mut Encoder, headers: &HeaderMap, out: &mut BytesMut) {
    for (name, value) in headers {
        let te = *name == header::TE && value != "trailers";
        if is_connection_field(name) || te || *name == header::HOST || *name == header::CONTENT_LENGTH {
            continue;
        }
        encoder.field(name, trimmed(value), value.is_sensitive(), out);
    }
}

fn put_length(encoder: &mut Encoder, length: Option<u64>, out: &mut BytesMut) {
    if let Some(length) = length {
        let mut digits = itoa::Buffer::new();
        encoder.literal(&header::CONTENT_LENGTH, digits.format(length).as_bytes(), out);
    }
}

/// A value may not begin or end with white space (RFC 9113 §8.2.1); a `HeaderValue` may.
fn trimmed(value: &HeaderValue) -> &[u8] {
    value.as_bytes().trim_ascii()
}
