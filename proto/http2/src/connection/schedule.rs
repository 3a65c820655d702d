//! When DATA is written: streams take turns by priority (RFC 9218 §10), within both windows (RFC 9113 §6.9).

use crate::connection::Connection;
use crate::event::Event;
use crate::frame::{self, Kind, StreamId, flag};
use crate::stream::{Sending, Starved, Stream};

/// Output that is cut ahead of the transport. More would be in the way of a more urgent stream; less would cost writes.
const WRITE_AHEAD: usize = 64 * 1024;

/// The largest DATA frame that we cut, whatever the peer allows: streams that take turns do so often enough.
const MAX_DATA: usize = 16 * 1024;

/// A DATA frame from this size on counts as useful work.
const USEFUL_DATA: usize = 1024;

impl Connection {
    /// Puts a stream into the scheduler, when it has something to send and a window.
    pub(super) fn schedule(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.send.scheduled
            && stream.is_sendable()
        {
            stream.send.scheduled = true;
            self.scheduler.push(id, stream.priority);
        }
    }

    /// Whether a DATA frame could be cut now.
    pub(super) fn can_send_data(&self) -> bool {
        !self.scheduler.is_empty() && self.send_window.available() > 0
    }

    /// Cuts DATA frames until enough waits to be written or nothing may be sent.
    pub(super) fn fill_output(&mut self) {
        while self.out.queued() < WRITE_AHEAD && self.can_send_data() {
            let Some(id) = self.scheduler.pop() else { return };
            let Some(stream) = self.streams.get_mut(id) else { continue };
            stream.send.scheduled = false;
            if !stream.is_sendable() {
                continue;
            }
            self.send_frame(id);
            let Some(stream) = self.streams.get_mut(id) else { continue };
            if stream.is_sendable() {
                stream.send.scheduled = true;
                if stream.priority.incremental {
                    self.scheduler.push(id, stream.priority);
                } else {
                    self.scheduler.push_front(id, stream.priority);
                }
            }
        }
    }

    /// Cuts one DATA frame, and what ends the stream behind the last one.
    fn send_frame(&mut self, id: StreamId) {
        let most = self.send_window.available().min(MAX_DATA).min(self.peer.max_frame_size as usize);
        let Some(stream) = self.streams.get_mut(id) else { return };
        let length = most.min(stream.send.window.available()).min(stream.send.queue.octets());
        let last = stream.sending == Sending::Ending && length == stream.send.queue.octets();
        let end_stream = last && stream.send.trailers.is_none();
        let flags = if end_stream { flag::END_STREAM } else { 0 };
        self.out.frames(|out| frame::put_head(out, length, Kind::Data, flags, id));
        let mut left = length;
        while left > 0 {
            let part = stream.send.queue.take(left);
            left -= part.len();
            self.out.body(part);
        }
        stream.send.window.spend(length);
        stream.send.written += length as u64;
        self.send_window.spend(length);
        if length >= USEFUL_DATA {
            self.budgets.control.earn(1);
        }
        if end_stream {
            self.sent_end(id);
        } else if last {
            self.write_trailers(id);
        }
    }

    /// END_STREAM has been written.
    pub(super) fn sent_end(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.sending = Sending::Done;
            stream.send.starved = None;
        }
        self.half_done(id);
        self.stop_upload(id);
    }

    // ------------------------------------------------------------------------------------------------- back-pressure

    /// How many octets `stream` takes now without their waiting for a window. When it is zero, an event tells when it is
    /// not any more. More may be queued all the same; it stays in memory then.
    pub fn capacity(&mut self, stream: StreamId) -> usize {
        let Some(entry) = self.streams.get(stream) else { return 0 };
        let capacity = self.capacity_of(entry);
        if capacity == 0 {
            self.starve(stream, Starved::Capacity);
        }
        capacity
    }

    /// Whether the application may give the next piece of the body of `stream`: while there is capacity, and when nothing
    /// waits and the piece may be the end, which no window holds back (RFC 9113 §6.9). When not, an event tells when it is.
    pub fn takes_piece(&mut self, stream: StreamId) -> bool {
        let Some(entry) = self.streams.get(stream) else { return false };
        let takes = self.is_fed(entry, Starved::Piece);
        if !takes {
            self.starve(stream, Starved::Piece);
        }
        takes
    }

    fn starve(&mut self, stream: StreamId, starved: Starved) {
        if let Some(entry) = self.streams.get_mut(stream)
            && entry.sending == Sending::Body
            && !entry.reset
            && entry.send.starved.replace(starved).is_none()
        {
            self.starved.push(stream);
        }
    }

    fn is_fed(&self, stream: &Stream, starved: Starved) -> bool {
        let ended = stream.reset || stream.sending != Sending::Body;
        // While the head promises more, the next piece is not the end, and only windows let it go.
        let at_end = stream.send.promised.is_none_or(|left| left == 0);
        let free = starved == Starved::Piece && at_end && stream.send.queue.is_empty();
        !ended && (free || self.capacity_of(stream) > 0)
    }

    fn capacity_of(&self, stream: &Stream) -> usize {
        if stream.reset || stream.sending != Sending::Body {
            return 0;
        }
        let window = stream.send.window.available().min(self.send_window.available());
        window.min(self.config.limits.send_buffer).saturating_sub(stream.send.queue.octets())
    }

    /// The next stream that has capacity again.
    pub(super) fn capacity_event(&mut self) -> Option<Event> {
        if !self.capacity_changed {
            return None;
        }
        let mut place = 0;
        while let Some(&id) = self.starved.get(place) {
            let stream = self.streams.get(id).filter(|stream| !stream.reset);
            let ready =
                stream.and_then(|stream| Some(self.is_fed(stream, stream.send.starved?))).unwrap_or(true);
            if !ready {
                place += 1;
                continue;
            }
            self.starved.swap_remove(place);
            if let Some(stream) = self.streams.get_mut(id)
                && stream.send.starved.take().is_some()
                && !stream.reset
            {
                return Some(Event::Capacity { stream: id });
            }
        }
        self.capacity_changed = false;
        None
    }
}
