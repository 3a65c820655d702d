//! DATA frames that arrive, and the windows that bound them (RFC 9113 §6.1, §6.9).

use bytes::Bytes;
use http::StatusCode;

use crate::config::SMALL_DATA;
use crate::connection::headers::malformed;
use crate::connection::{Connection, Fault, Role};
use crate::error::{Malformed, Spent, StreamError, Violation};
use crate::event::Event;
use crate::frame::{self, Head, StreamId, flag};
use crate::stream::{ClosedBy, Receiving, Sending};
use crate::streams::Absent;

impl Connection {
    pub(super) fn receive_data(&mut self, head: &Head, mut payload: Bytes) -> Result<Option<Event>, Fault> {
        let (front, back) = Self::unpad(head, &payload)?;
        let id = head.stream;
        // Padding counts (RFC 9113 §6.9.1).
        self.recv_window.receive(head.length).map_err(|_| Violation::WindowExceeded)?;
        self.relieve_connection();
        if self.streams.get(id).is_none_or(|stream| stream.reset) {
            return self.late_data(id, head.length);
        }
        payload.truncate(payload.len().saturating_sub(back));
        let content = payload.split_off(front.min(payload.len()));
        // On a fault the connection's window gets the octets back when the stream is reset.
        match self.take_data(id, head, &content)? {
            Taken::Deliver => {
                self.give_back(id, head.length - content.len() as u32);
                Ok(self.deliver(id, content, head.has(flag::END_STREAM)))
            }
            Taken::Discard => {
                self.give_back(id, head.length);
                self.discard(id, content.len() as u64);
                Ok(None)
            }
        }
    }

    /// DATA for a stream that is not open any more, or never was.
    fn late_data(&mut self, id: StreamId, length: u32) -> Result<Option<Event>, Fault> {
        self.release_connection(length);
        match self.streams.absent(id, self.is_local(id)) {
            Absent::Idle => Err(Violation::IdleStream.into()),
            // What was passed over is closed (RFC 9113 §5.1.1).
            Absent::Ended | Absent::Skipped => Err(Violation::ClosedStream.into()),
            Absent::Reset(ClosedBy::Peer) => Err(Fault::Stream(id, StreamError::Closed)),
            Absent::Reset(ClosedBy::Us) => {
                if length < SMALL_DATA as u32 {
                    self.spend_control(1)?;
                }
                Ok(None)
            }
        }
    }

    /// The checks of an open stream, and what they count.
    fn take_data(&mut self, id: StreamId, head: &Head, content: &Bytes) -> Result<Taken, Fault> {
        let end = head.has(flag::END_STREAM);
        let length = content.len() as u64;
        let limit = self.config.limits.body;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(Taken::Discard) };
        if stream.recv.window.receive(head.length).is_err() {
            self.release_connection(head.length);
            return Err(Fault::Stream(id, StreamError::FlowControl));
        }
        match stream.receiving {
            Receiving::Head => return Err(malformed(id, Malformed::UnexpectedData)),
            // Half-closed (remote) (RFC 9113 §5.1).
            Receiving::Done => return Err(Fault::Stream(id, StreamError::Closed)),
            Receiving::Body => {}
        }
        if stream.recv.no_content && length > 0 {
            return Err(malformed(id, Malformed::UnexpectedData));
        }
        if let Some(expected) = &mut stream.recv.expected {
            *expected =
                expected.checked_sub(length).ok_or(malformed(id, Malformed::ContentLengthMismatch))?;
            if end && *expected > 0 {
                return Err(malformed(id, Malformed::ContentLengthMismatch));
            }
        }
        stream.recv.received = stream.recv.received.saturating_add(length);
        let mut discard = stream.finished || stream.recv.discarded.is_some();
        // A tunnel has no body (RFC 9113 §8.5).
        let too_large = stream.recv.received > limit && !discard && !stream.send.tunnel;
        if end {
            stream.receiving = Receiving::Done;
        }
        if too_large {
            self.answer_too_large(id)?;
            discard = true;
        }
        self.charge_small(id, content.len(), end, discard)?;
        if end {
            self.half_done(id);
        }
        Ok(if discard { Taken::Discard } else { Taken::Deliver })
    }

    /// Empty DATA frames are useless; small ones cost memory that no window counts, until they are released (S25).
    fn charge_small(&mut self, id: StreamId, length: usize, end: bool, discard: bool) -> Result<(), Fault> {
        if length == 0 {
            return if end { Ok(()) } else { self.spend_control(1) };
        }
        if length >= SMALL_DATA {
            self.budgets.control.earn(1);
            return Ok(());
        }
        if discard {
            return if end { Ok(()) } else { self.spend_control(1) };
        }
        if !self.budgets.small.spend(1, self.now) {
            return Err(Spent::SmallData.into());
        }
        if let Some(stream) = self.streams.get_mut(id) {
            stream.recv.small += 1;
        }
        Ok(())
    }

    fn deliver(&mut self, id: StreamId, content: Bytes, end: bool) -> Option<Event> {
        match (content.is_empty(), end) {
            (true, true) => Some(Event::End { stream: id }),
            (true, false) => None,
            (false, end) => {
                if end {
                    self.pending.push_back(Event::End { stream: id });
                }
                Some(Event::Data { stream: id, data: content })
            }
        }
    }

    /// Counts what is thrown away behind an answer; too much of it ends the stream without blame (RFC 9113 §8.1).
    fn discard(&mut self, id: StreamId, length: u64) {
        if let Some(stream) = self.streams.get_mut(id) {
            let discarded = stream.recv.discarded.unwrap_or(0).saturating_add(length);
            stream.recv.discarded = Some(discarded);
            self.stop_upload(id);
        }
    }

    /// Asks the client to stop sending, once the answer is complete and more was thrown away than is worth it.
    pub(super) fn stop_upload(&mut self, id: StreamId) {
        let drain = self.config.limits.drain;
        let over = self.streams.get(id).is_some_and(|stream| {
            stream.recv.discarded.is_some_and(|discarded| discarded > drain)
                && stream.receiving == Receiving::Body
                && stream.sending == Sending::Done
                && !stream.reset
        });
        if over {
            self.reset_stream(id, crate::Reason::NoError);
        }
    }

    // ------------------------------------------------------------------------------------------------- windows

    /// The application has taken `octets` of the body of `stream`: the peer may send as many more. What was already
    /// given back, with a reset for instance, is not counted twice.
    pub fn release(&mut self, stream: StreamId, octets: usize) {
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        if let Some(entry) = self.streams.get_mut(stream) {
            // In proportion, because the borders of the frames are not remembered.
            let held = entry.recv.window.held();
            let small = u64::from(entry.recv.small) * u64::from(octets.min(held)) / u64::from(held.max(1));
            let small = u32::try_from(small).unwrap_or(0);
            entry.recv.small -= small;
            self.budgets.small.earn(small);
        }
        self.give_back(stream, octets);
    }

    /// Gives octets back to both windows.
    fn give_back(&mut self, id: StreamId, octets: u32) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if octets == 0 || self.closed.is_some() {
            return;
        }
        let released = stream.recv.window.release(octets);
        let (now, round_trip) = (self.now, self.timing.round_trip());
        let limits = stream.recv.window.limits(now, round_trip);
        let room = if limits { self.room_for_streams() } else { 0 };
        let Some(stream) = self.streams.get_mut(id) else { return };
        // No update for a body that has ended, nor for one that nobody wants any more.
        let drain = self.config.limits.drain;
        let wanted = stream.receiving != Receiving::Done
            && !stream.reset
            && stream.recv.discarded.is_none_or(|discarded| discarded <= drain);
        if wanted && let Some(increment) = stream.recv.window.update(now, round_trip, room) {
            self.out.frames(|out| frame::put_window_update(out, id, increment));
        }
        self.release_connection(released);
    }

    /// What streams hold that nobody reads must not keep the others from sending: when it leaves less than a stream's first
    /// window of the connection's, that one grows (RFC 9113 §5.2.2).
    fn relieve_connection(&mut self) {
        if let Some(increment) = self.recv_window.relieve(self.config.windows.stream) {
            self.out.frames(|out| frame::put_window_update(out, StreamId::CONNECTION, increment));
        }
    }

    /// By how much the windows of streams may still grow: together they stay below what the connection's can become, so
    /// that [`relieve_connection`](Self::relieve_connection) is always enough.
    fn room_for_streams(&self) -> u32 {
        let granted: u64 = self.streams.iter().map(|stream| u64::from(stream.recv.window.target())).sum();
        let most = u64::from(self.config.windows.connection_max);
        u32::try_from(most.saturating_sub(granted)).unwrap_or(u32::MAX)
    }

    /// Gives octets back to the connection's window.
    pub(super) fn release_connection(&mut self, octets: u32) {
        self.recv_window.release(octets);
        let round_trip = self.timing.round_trip();
        if self.closed.is_none()
            && let Some(increment) = self.recv_window.update(self.now, round_trip, u32::MAX)
        {
            self.out.frames(|out| frame::put_window_update(out, StreamId::CONNECTION, increment));
        }
    }

    /// Gives back all that a stream holds, when it is over.
    pub(super) fn release_all(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let held = stream.recv.window.release(u32::MAX);
        let small = std::mem::take(&mut stream.recv.small);
        self.budgets.small.earn(small);
        self.release_connection(held);
    }

    /// The application will not read the rest of the body of `stream`. What still comes is thrown away, and its windows
    /// given back, up to [`crate::Limits::drain`].
    pub fn ignore_body(&mut self, stream: StreamId) {
        let Some(entry) = self.streams.get_mut(stream) else { return };
        entry.recv.forsake();
        if entry.recv.discarded.is_none() {
            entry.recv.discarded = Some(0);
            let held = entry.recv.window.held();
            self.release(stream, held as usize);
        }
    }

    /// Whether the application waits for body octets of `stream`: the body-rate timer runs only then.
    pub fn want_body(&mut self, stream: StreamId, wanted: bool) {
        let now = self.now;
        if let Some(entry) = self.streams.get_mut(stream) {
            entry.recv.want(wanted && entry.receiving == Receiving::Body, now);
        }
    }

    /// The body went above its limit: answered with 413 where no answer has begun (RFC 9110 §15.5.14), and the rest is
    /// thrown away.
    fn answer_too_large(&mut self, id: StreamId) -> Result<(), Fault> {
        let error = StreamError::BodyTooLarge;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        if stream.sending != Sending::Head || self.role == Role::Client {
            return Err(Fault::Stream(id, error));
        }
        // What the application has not taken yet it will not take any more.
        stream.recv.expected = None;
        stream.recv.discarded = Some(0);
        self.put_bare_head(id, StatusCode::PAYLOAD_TOO_LARGE);
        self.release_all(id);
        self.pending.push_back(Event::Reset { stream: id, error });
        Ok(())
    }
}

/// What is to be done with the content of a DATA frame.
enum Taken {
    Deliver,
    Discard,
}
