//! HEADERS and CONTINUATION: header blocks are joined, decoded, and become heads or trailers (RFC 9113 §4.3, §8.1).

use bytes::BytesMut;
use http::StatusCode;

use crate::config::ABUSE;
use crate::connection::{CachedHead, Connection, Fault, OpenBlock, Role};
use crate::error::{Error, Malformed, Spent, StreamError, Violation};
use crate::event::{BodyLength, Event};
use crate::flow::{ReceiveWindow, SendWindow};
use crate::frame::{Head, StreamId, flag};
use crate::message::{Expectation, RequestHead, Section};
use crate::stream::{ClosedBy, Receiving, Stream};
use crate::streams::Absent;

/// A block up to this many octets is worth keeping beside the head that it stands for.
const CACHED_BLOCK: usize = 512;

/// Control tokens that a request or response gives back.
const HEAD_EARNS: u32 = 8;

/// What is known of a header block beside its octets.
#[derive(Clone, Copy)]
struct Opening {
    stream: StreamId,
    end_stream: bool,
    self_dependency: bool,
}

impl Connection {
    pub(super) fn receive_headers(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let (mut front, back) = Self::unpad(head, payload)?;
        let mut self_dependency = false;
        if head.has(flag::PRIORITY) {
            let dependency = crate::frame::number(payload, front).ok_or(Violation::FrameLength)?;
            self_dependency = dependency & crate::frame::MAX_31 == head.stream.get();
            front += 5;
        }
        let fragment = payload.len().checked_sub(back).and_then(|end| payload.get(front..end));
        let fragment = fragment.ok_or(if back > 0 { Violation::Padding } else { Violation::FrameLength })?;
        let opening =
            Opening { stream: head.stream, end_stream: head.has(flag::END_STREAM), self_dependency };
        if head.has(flag::END_HEADERS) {
            return self.receive_block(opening, fragment);
        }
        self.block = Some(OpenBlock {
            stream: opening.stream,
            end_stream: opening.end_stream,
            self_dependency,
            continuations: 0,
            fragments: BytesMut::from(fragment),
        });
        Ok(None)
    }

    /// The number of frames and of octets is bounded, whatever they decode to (S23).
    pub(super) fn receive_continuation(
        &mut self,
        head: &Head,
        payload: &[u8],
    ) -> Result<Option<Event>, Fault> {
        let Some(block) = &mut self.block else { return Err(Violation::UnexpectedContinuation.into()) };
        block.continuations += 1;
        if block.continuations > self.config.limits.continuations {
            return Err(Spent::Continuations.into());
        }
        if block.fragments.len() + payload.len() > self.config.limits.header_list.saturating_mul(ABUSE) {
            return Err(Spent::HeaderList.into());
        }
        block.fragments.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let Some(block) = self.block.take() else { return Ok(None) };
        let opening = Opening {
            stream: block.stream,
            end_stream: block.end_stream,
            self_dependency: block.self_dependency,
        };
        self.receive_block(opening, &block.fragments)
    }

    /// A complete header block. Whatever becomes of its stream, it is decoded, or the tables would no longer agree.
    fn receive_block(&mut self, opening: Opening, block: &[u8]) -> Result<Option<Event>, Fault> {
        let id = opening.stream;
        if self.role == Role::Server && id.is_client() && id.get() > self.streams.highest_remote {
            return self.receive_request(opening, block);
        }
        let section = self.decode(block)?;
        if self.role == Role::Server && !id.is_client() {
            return Err(Violation::BadStreamId.into());
        }
        match self.streams.get(id) {
            Some(stream) if !stream.reset => {}
            Some(_) | None => return self.late_headers(id),
        }
        if opening.self_dependency {
            return Err(malformed(id, Malformed::SelfDependency));
        }
        if section.is_over() {
            return Err(Fault::Stream(id, StreamError::FieldsTooLarge));
        }
        match self.streams.get(id).map(|stream| stream.receiving) {
            Some(Receiving::Head) => self.receive_response(opening, section),
            Some(Receiving::Body) => self.receive_trailers(opening, section),
            // Half-closed (remote) (RFC 9113 §5.1).
            _ => Err(Fault::Stream(id, StreamError::Closed)),
        }
    }

    /// HEADERS for a stream that is not open any more, or never was.
    fn late_headers(&mut self, id: StreamId) -> Result<Option<Event>, Fault> {
        match self.streams.absent(id, self.is_local(id)) {
            Absent::Idle => Err(Violation::IdleStream.into()),
            Absent::Skipped => Err(Violation::BadStreamId.into()),
            Absent::Ended => Err(Violation::ClosedStream.into()),
            Absent::Reset(ClosedBy::Peer) => Err(Fault::Stream(id, StreamError::Closed)),
            Absent::Reset(ClosedBy::Us) => {
                self.spend_control(1)?;
                Ok(None)
            }
        }
    }

    /// Decodes a block under the limits of its section.
    fn decode(&mut self, block: &[u8]) -> Result<Section, Fault> {
        let mut section = Section::default();
        let limits = &self.config.limits;
        let decoded = self.decoder.decode(block, |field, size| section.push(field, size, limits));
        if let Some(spent) = section.spent {
            return Err(spent.into());
        }
        decoded.map_err(Error::Compression)?;
        Ok(section)
    }

    // ------------------------------------------------------------------------------------------------- requests

    fn receive_request(&mut self, opening: Opening, block: &[u8]) -> Result<Option<Event>, Fault> {
        let id = opening.stream;
        self.streams.note_remote(id);
        let head = self.request_head(block)?;
        if self.going.sent_last.is_some_and(|last| id.get() > last) {
            // Beyond our GOAWAY: the client knows that it will not be answered (RFC 9113 §6.8).
            self.spend_control(1)?;
            self.streams.note_reset(id, ClosedBy::Us);
            return Ok(None);
        }
        if self.remote_active >= self.config.limits.concurrent_streams {
            // Not a reset that costs work, and before our settings have arrived no fault: a control token, not one of
            // those for resets.
            self.spend_control(1)?;
            self.reset_stream(id, StreamError::Refused.reason());
            return Ok(None);
        }
        if opening.self_dependency {
            return Err(malformed(id, Malformed::SelfDependency));
        }
        let head = match head {
            Ok(head) => head,
            Err(Refusal::TooLarge(status)) => {
                self.spend_reset()?;
                let rest = if opening.end_stream { BodyLength::Empty } else { BodyLength::Unknown };
                self.answer_unopened(id, status, rest);
                return Ok(None);
            }
            Err(Refusal::Malformed(Malformed::HostMismatch)) => {
                // S30. The answer may precede the reset (RFC 9113 §8.1.1).
                self.put_bare_head(id, StatusCode::BAD_REQUEST);
                return Err(malformed(id, Malformed::HostMismatch));
            }
            Err(Refusal::Malformed(error)) => return Err(malformed(id, error)),
        };
        let length = head.content_length.unwrap_or(0);
        if opening.end_stream && length > 0 {
            return Err(malformed(id, Malformed::ContentLengthMismatch));
        }
        let body = head.body(opening.end_stream);
        if length > self.config.limits.body {
            self.answer_unopened(id, StatusCode::PAYLOAD_TOO_LARGE, body);
            return Ok(None);
        }
        if head.expect == Expectation::Other {
            self.answer_unopened(id, StatusCode::EXPECTATION_FAILED, body);
            return Ok(None);
        }
        self.budgets.control.earn(HEAD_EARNS);
        Ok(Some(self.open_remote(id, head, opening.end_stream)))
    }

    /// The head of a request: decoded, or known from a block with the same octets.
    fn request_head(&mut self, block: &[u8]) -> Result<Result<RequestHead, Refusal>, Fault> {
        if let Some(cached) = &self.cached
            && cached.version == self.decoder.version()
            && *cached.block == *block
        {
            return Ok(Ok(cached.head.clone()));
        }
        let before = self.decoder.version();
        let section = self.decode(block)?;
        if section.is_over() {
            let long = section.has_long_target();
            return Ok(Err(Refusal::TooLarge(if long {
                StatusCode::URI_TOO_LONG
            } else {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            })));
        }
        let head = section.into_request(self.config.connect_protocol).map_err(Refusal::Malformed);
        if let Ok(head) = &head
            && before == self.decoder.version()
            && block.len() <= CACHED_BLOCK
        {
            let head = head.clone();
            self.cached = Some(Box::new(CachedHead { version: before, block: block.into(), head }));
        }
        Ok(head)
    }

    pub(super) fn open_remote(&mut self, id: StreamId, head: RequestHead, end_stream: bool) -> Event {
        let receiving = if end_stream { Receiving::Done } else { Receiving::Body };
        let mut stream = self.new_stream(id, receiving);
        let announced = self.scheduler.take_announced(id);
        stream.priority = announced.or(head.priority).unwrap_or_default();
        stream.recv.expected = head.content_length;
        stream.send.head_request = head.method == http::Method::HEAD;
        stream.send.tunnel = head.method == http::Method::CONNECT;
        let body = head.body(end_stream);
        let expect_continue = head.expect == Expectation::Continue && !end_stream;
        stream.send.owes_continue = expect_continue;
        self.streams.insert(stream);
        self.remote_active += 1;
        self.timing.streams_busy(self.now);
        Event::Request { stream: id, request: head.into_request(), body, expect_continue }
    }

    pub(super) fn new_stream(&self, id: StreamId, receiving: Receiving) -> Stream {
        let window = self.initial_receive_window();
        let recv = ReceiveWindow::new(window, self.config.windows.stream_max);
        Stream::new(id, receiving, SendWindow::new(self.peer.initial_window), recv)
    }

    // ------------------------------------------------------------------------------------------------- responses

    fn receive_response(&mut self, opening: Opening, section: Section) -> Result<Option<Event>, Fault> {
        let id = opening.stream;
        let (response, length) = section.into_response().map_err(|error| malformed(id, error))?;
        let status = response.status();
        let limit = self.config.limits.interim;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(None) };
        if status.is_informational() {
            // HTTP/2 has no 101 (RFC 9113 §8.6).
            if opening.end_stream || status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(malformed(id, Malformed::BadInterim));
            }
            stream.recv.interim += 1;
            if stream.recv.interim > limit {
                return Err(Fault::Stream(id, StreamError::TooManyInterim));
            }
            self.spend_control(1)?;
            return Ok(Some(Event::Interim { stream: id, response }));
        }
        stream.recv.no_content = stream.send.head_request
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        if !stream.recv.no_content {
            stream.recv.expected = length;
            if opening.end_stream && length.is_some_and(|length| length > 0) {
                return Err(malformed(id, Malformed::ContentLengthMismatch));
            }
        }
        let body = match length {
            _ if opening.end_stream => BodyLength::Empty,
            Some(length) if !stream.recv.no_content => BodyLength::Known(length),
            _ => BodyLength::Unknown,
        };
        stream.receiving = if opening.end_stream { Receiving::Done } else { Receiving::Body };
        self.budgets.control.earn(HEAD_EARNS);
        if opening.end_stream {
            self.half_done(id);
        }
        Ok(Some(Event::Response { stream: id, response, body }))
    }

    // ------------------------------------------------------------------------------------------------- trailers

    fn receive_trailers(&mut self, opening: Opening, section: Section) -> Result<Option<Event>, Fault> {
        let id = opening.stream;
        if !opening.end_stream {
            return Err(malformed(id, Malformed::TrailersNotLast));
        }
        // Nothing but DATA belongs to a tunnel (RFC 9113 §8.5).
        if self.role == Role::Server && self.streams.get(id).is_some_and(|stream| stream.send.tunnel) {
            return Err(malformed(id, Malformed::HeadersInTunnel));
        }
        let trailers = section.into_trailers().map_err(|error| malformed(id, error))?;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(None) };
        if stream.recv.expected.is_some_and(|left| left > 0) {
            return Err(malformed(id, Malformed::ContentLengthMismatch));
        }
        stream.receiving = Receiving::Done;
        let ignored = stream.finished || stream.recv.discarded.is_some();
        self.half_done(id);
        if ignored {
            return Ok(None);
        }
        self.pending.push_back(Event::End { stream: id });
        Ok(Some(Event::Trailers { stream: id, trailers }))
    }
}

/// Why a request head is not given to the application.
enum Refusal {
    /// To be answered with this.
    TooLarge(StatusCode),
    Malformed(Malformed),
}

pub(super) fn malformed(stream: StreamId, error: Malformed) -> Fault {
    Fault::Stream(stream, StreamError::Malformed(error))
}
