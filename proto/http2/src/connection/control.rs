//! PING, RST_STREAM, WINDOW_UPDATE, PRIORITY and PRIORITY_UPDATE, and the resets that we send (RFC 9113 §5.4, §6).

use http::StatusCode;

use crate::connection::headers::malformed;
use crate::connection::settings::{DRAIN_PING, LIVENESS_PING};
use crate::connection::{Connection, Fault, Role};
use crate::error::{Error, Malformed, Spent, StreamError, Violation};
use crate::event::{BodyLength, Event};
use crate::frame::{self, MAX_31, StreamId, flag};
use crate::priority::Priority;
use crate::reason::Reason;
use crate::stream::{ClosedBy, Receiving, Sending};
use crate::streams::Absent;

/// A window update below this many octets costs a control token: it makes us cut frames that are mostly head (S20).
const SMALL_UPDATE: u32 = 256;

impl Connection {
    pub(super) fn receive_ping(&mut self, flags: u8, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let payload: [u8; 8] = payload.try_into().map_err(|_| Violation::FrameLength)?;
        self.spend_control(1)?;
        if flags & flag::ACK == 0 {
            self.out.frames(|out| frame::put_ping(out, payload, true));
        } else if payload == DRAIN_PING {
            self.second_goaway();
        } else if payload == LIVENESS_PING {
            self.timing.pong(self.now);
        }
        Ok(None)
    }

    // ------------------------------------------------------------------------------------------------- resets

    pub(super) fn receive_reset(&mut self, id: StreamId, payload: &[u8]) -> Result<Option<Event>, Fault> {
        if payload.len() != 4 {
            return Err(Violation::FrameLength.into());
        }
        let reason = Reason::from(frame::number(payload, 0).unwrap_or(0));
        match self.streams.get(id) {
            Some(stream) if !stream.reset => {}
            other => {
                let known = other.is_some();
                if !known && self.streams.absent(id, self.is_local(id)) == Absent::Idle {
                    return Err(Violation::IdleStream.into());
                }
                // It crossed an end or a reset of ours: allowed for a while, and ignored (RFC 9113 §5.1).
                self.streams.note_reset(id, ClosedBy::Peer);
                self.spend_control(1)?;
                return Ok(None);
            }
        }
        let served = self
            .streams
            .get(id)
            .is_some_and(|s| s.sending == Sending::Done || s.finished || s.send.written > 0);
        self.streams.note_reset(id, ClosedBy::Peer);
        let event = self.end_by_reset(id).then(|| {
            let refused = self.role == Role::Client && reason == Reason::RefusedStream;
            let error = if refused { StreamError::Refused } else { StreamError::Reset(reason) };
            Event::Reset { stream: id, error }
        });
        // S21: what counts is a reset that makes us throw work away. Whoever has had a part of the answer has cost us no
        // more than by an ordinary request.
        if self.role == Role::Server && !served {
            self.spend_reset()?;
        } else {
            self.spend_control(1)?;
        }
        Ok(event)
    }

    /// A fault of the peer on one stream: it is reset, and the driver told when it knows the stream. Every such reset
    /// counts like one of the peer's, because it is as cheap to provoke (S22).
    pub(super) fn fail_stream(&mut self, id: StreamId, error: StreamError) {
        if self.role == Role::Server && !self.budgets.resets.spend(1, self.now) {
            return self.fail(Error::Spent(Spent::Resets));
        }
        let reason = match error {
            StreamError::Malformed(Malformed::PriorityLength) => Reason::FrameSizeError,
            error => error.reason(),
        };
        if self.streams.get(id).is_none() && self.streams.absent(id, self.is_local(id)) == Absent::Idle {
            // A stream that was never opened cannot be reset (RFC 9113 §6.4).
            let length = reason == Reason::FrameSizeError;
            let violation = if length { Violation::PriorityLength } else { Violation::SelfDependency };
            return self.fail(Error::Violation(violation));
        }
        let known = self.streams.get(id).is_some_and(|stream| !stream.finished && !stream.reset);
        self.reset_stream(id, reason);
        if known {
            self.pending.push_back(Event::Reset { stream: id, error });
        }
    }

    /// Writes RST_STREAM and forgets what the stream held. A stream that the peer reset before keeps its mark, so that
    /// what else comes is judged as before. Behind the GOAWAY that ends the connection nothing is said of a stream.
    pub(super) fn reset_stream(&mut self, id: StreamId, reason: Reason) {
        if self.closed.is_none() {
            self.out.frames(|out| frame::put_reset(out, id, reason));
        }
        if self.streams.absent(id, self.is_local(id)) != Absent::Reset(ClosedBy::Peer) {
            self.streams.note_reset(id, ClosedBy::Us);
        }
        self.end_by_reset(id);
    }

    /// The stream is over by a reset, ours or the peer's. True when the driver is to be told.
    pub(super) fn end_by_reset(&mut self, id: StreamId) -> bool {
        self.release_all(id);
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let was_closed = stream.is_closed();
        stream.reset = true;
        stream.send.queue.clear();
        stream.send.trailers = None;
        let tell = !stream.finished && !was_closed;
        if !was_closed && self.is_local(id) {
            self.local_active = self.local_active.saturating_sub(1);
        }
        self.forget_if_over(id);
        tell
    }

    /// One half of a stream is done; perhaps that was the second.
    pub(super) fn half_done(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(id) else { return };
        if !stream.is_closed() {
            return;
        }
        self.budgets.resets.earn(1);
        if self.is_local(id) {
            self.local_active = self.local_active.saturating_sub(1);
        }
        self.forget_if_over(id);
    }

    /// Drops the entry of a stream that is closed and that the driver has let go of.
    pub(super) fn forget_if_over(&mut self, id: StreamId) {
        if !self.streams.get(id).is_some_and(|stream| stream.is_closed() && stream.finished) {
            return;
        }
        self.release_all(id);
        self.streams.remove(id);
        if !self.is_local(id) {
            self.remote_active = self.remote_active.saturating_sub(1);
        }
        if self.streams.is_empty() {
            self.timing.streams_idle(self.now);
        }
    }

    /// The driver is done with `stream`: it will neither send on it nor read from it. Owed for every stream; until then
    /// it counts against the limit of concurrent streams.
    ///
    /// A stream that is still open is wound down: a message of ours that is incomplete is reset; a request body that is
    /// still coming is thrown away for a while; a response that is still coming is cancelled.
    pub fn finished(&mut self, stream: StreamId) {
        let Some(entry) = self.streams.get_mut(stream) else { return };
        entry.finished = true;
        entry.recv.forsake();
        entry.send.starved = None;
        if !entry.is_closed() {
            match (self.role, entry.sending, entry.receiving) {
                (Role::Server, Sending::Head | Sending::Body, _) => {
                    self.reset_stream(stream, Reason::InternalError);
                }
                (Role::Server, ..) => self.ignore_body(stream),
                // What a window still holds back nobody would wait for.
                (Role::Client, Sending::Ending | Sending::Done, Receiving::Done)
                    if entry.send.queue.is_empty() => {}
                (Role::Client, ..) => self.reset_stream(stream, Reason::Cancel),
            }
        }
        self.stop_upload(stream);
        self.forget_if_over(stream);
        self.finish_drain();
    }

    /// Whether our message on `stream` is not written whole yet, and is still to be.
    pub fn is_sending(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(|entry| !entry.reset && entry.sending != Sending::Done)
    }

    /// Ends `stream` with `reason` from our side. No event follows; `finished` is still owed.
    pub fn reset(&mut self, stream: StreamId, reason: Reason) {
        if self.closed.is_none() && self.streams.get(stream).is_some_and(|entry| !entry.is_closed()) {
            self.reset_stream(stream, reason);
        }
    }

    /// Answers a request that the application never sees. Its body is thrown away like any that comes behind an answer,
    /// because a reset right behind it makes some clients lose the answer; but not one whose length is more than that.
    pub(super) fn answer_unopened(&mut self, id: StreamId, status: StatusCode, rest: BodyLength) {
        self.put_bare_head(id, status);
        match rest {
            BodyLength::Empty => return,
            BodyLength::Known(length) if length > self.config.limits.drain => {
                return self.reset_stream(id, Reason::NoError);
            }
            _ => {}
        }
        let mut stream = self.new_stream(id, Receiving::Body);
        (stream.sending, stream.finished) = (Sending::Done, true);
        stream.recv.discarded = Some(0);
        self.streams.insert(stream);
        self.remote_active += 1;
        self.timing.streams_busy(self.now);
    }

    // ------------------------------------------------------------------------------------------------- windows

    pub(super) fn receive_window_update(
        &mut self,
        id: StreamId,
        payload: &[u8],
    ) -> Result<Option<Event>, Fault> {
        if payload.len() != 4 {
            return Err(Violation::FrameLength.into());
        }
        let increment = frame::number(payload, 0).unwrap_or(0) & MAX_31;
        if increment < SMALL_UPDATE {
            self.spend_control(1)?;
        }
        if id == StreamId::CONNECTION {
            if increment == 0 {
                return Err(Violation::ZeroIncrement.into());
            }
            self.send_window.change(increment.into()).map_err(|_| Violation::WindowOverflow)?;
            self.capacity_changed |= !self.starved.is_empty();
            return Ok(None);
        }
        let Some(stream) = self.streams.get_mut(id) else {
            return self.late_window_update(id, increment);
        };
        if stream.reset {
            return Ok(None);
        }
        if increment == 0 {
            return Err(malformed(id, Malformed::ZeroIncrement));
        }
        stream
            .send
            .window
            .change(increment.into())
            .map_err(|_| Fault::Stream(id, StreamError::FlowControl))?;
        self.capacity_changed |= stream.send.starved.is_some();
        self.schedule(id);
        Ok(None)
    }

    /// It may cross the end of its stream, and is ignored then (RFC 9113 §5.1).
    fn late_window_update(&mut self, id: StreamId, increment: u32) -> Result<Option<Event>, Fault> {
        match self.streams.absent(id, self.is_local(id)) {
            Absent::Idle => Err(Violation::IdleStream.into()),
            _ if increment == 0 => Err(malformed(id, Malformed::ZeroIncrement)),
            Absent::Ended | Absent::Skipped | Absent::Reset(_) => {
                self.streams
                    .late_update(id, increment)
                    .map_err(|_| Fault::Stream(id, StreamError::FlowControl))?;
                self.spend_control(1)?;
                Ok(None)
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- priorities

    /// RFC 7540's priorities are checked and ignored (RFC 9113 §5.3.2, §6.3).
    pub(super) fn receive_priority(&mut self, id: StreamId, payload: &[u8]) -> Result<Option<Event>, Fault> {
        self.spend_control(1)?;
        if payload.len() != 5 {
            return Err(malformed(id, Malformed::PriorityLength));
        }
        let dependency = frame::number(payload, 0).unwrap_or(0) & MAX_31;
        if dependency == id.get() {
            return Err(malformed(id, Malformed::SelfDependency));
        }
        Ok(None)
    }

    /// A new priority for a request, which may not have come yet (RFC 9218 §7.1).
    pub(super) fn receive_priority_update(&mut self, payload: &[u8]) -> Result<Option<Event>, Fault> {
        self.spend_control(1)?;
        let id = StreamId(frame::number(payload, 0).ok_or(Violation::FrameLength)? & MAX_31);
        if self.role == Role::Client || !id.is_client() {
            return Err(Violation::BadPriorityUpdate.into());
        }
        let priority = Priority::default().merge(payload.get(4..).unwrap_or_default());
        if let Some(stream) = self.streams.get_mut(id) {
            let before = std::mem::replace(&mut stream.priority, priority);
            if stream.send.scheduled && before.urgency != priority.urgency {
                self.scheduler.remove(id, before);
                self.scheduler.push(id, priority);
            }
        } else if self.streams.absent(id, false) == Absent::Idle {
            self.scheduler.announce(id, priority);
        }
        Ok(None)
    }
}
