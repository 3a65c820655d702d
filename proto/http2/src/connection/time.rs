//! Deadlines (DESIGN: the machine never reads a clock). Instants come from the driver; each deadline is computed from
//! the instant that it counts from, so nothing has to be re-armed on the way of a request.

use std::time::{Duration, Instant};

use crate::config::Timeouts;
use crate::connection::settings::LIVENESS_PING;
use crate::connection::{Connection, Role};
use crate::error::{CloseReason, Error, StreamError};
use crate::frame;
use crate::frame::StreamId;
use crate::reason::Reason;
use crate::stream::{Receiving, Sending, Stream};
use crate::timers::Timeout;

/// How often the streams are looked over, at the least, as a part of the shortest of their timers.
const CHECKS_PER_TIMEOUT: u32 = 4;

/// The instants that deadlines count from.
#[derive(Debug)]
pub(super) struct Timing {
    /// Since when a preface, frame or header block is incomplete.
    incomplete: Option<Instant>,
    /// A frame was completed since that was last looked at.
    progress: bool,
    idle: Option<Instant>,
    /// Since when output waits without any of it being taken.
    blocked: Option<Instant>,
    /// When our SETTINGS were queued, until they are acknowledged.
    settings: Option<Instant>,
    /// From when on their acknowledgement is due. Whether a client's connection has been accepted yet shows only when the
    /// server says something: until then it may wait in a backlog, where nobody acknowledges anything.
    settings_due: Option<Instant>,
    settings_acknowledged: bool,
    /// The peer has said anything. A server does not begin before.
    spoke: bool,
    heard: Instant,
    ping: Option<Instant>,
    drain: Option<Instant>,
    checked: Option<Instant>,
    round_trip: Option<Duration>,
}

impl Timing {
    pub(super) fn new(role: Role, now: Instant) -> Self {
        let spoke = role == Role::Server;
        Timing {
            incomplete: spoke.then_some(now),
            progress: false,
            idle: Some(now),
            blocked: None,
            settings: None,
            settings_due: None,
            settings_acknowledged: false,
            spoke,
            heard: now,
            ping: None,
            drain: None,
            checked: None,
            round_trip: None,
        }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.ping = None;
        if !self.spoke {
            self.spoke = true;
            self.settings_due = self.settings.map(|_| now);
        }
    }

    /// Whether the peer has said anything, or has to begin.
    pub(super) fn spoke(&self) -> bool {
        self.spoke
    }

    pub(super) fn note_frame(&mut self) {
        self.progress = true;
    }

    /// Called when no complete frame is left. A frame that is being received has its time from its own first octet on,
    /// but the frames of one header block share theirs.
    pub(super) fn note_incomplete(&mut self, now: Instant, incomplete: bool, in_block: bool) {
        let progress = std::mem::take(&mut self.progress);
        if !incomplete && !in_block {
            self.incomplete = None;
        } else if self.incomplete.is_none() || (progress && !in_block) {
            self.incomplete = Some(now);
        }
    }

    /// Output waits; the transport may take it or not.
    pub(super) fn output_waits(&mut self, now: Instant) {
        self.blocked.get_or_insert(now);
    }

    /// The transport took some of the output, perhaps all.
    pub(super) fn output_taken(&mut self, now: Instant, all: bool) {
        self.blocked = if all { None } else { Some(now) };
    }

    pub(super) fn settings_sent(&mut self, now: Instant) {
        self.settings = Some(now);
        self.settings_due = self.spoke.then_some(now);
    }

    pub(super) fn settings_acknowledged(&self) -> bool {
        self.settings_acknowledged
    }

    /// The acknowledgement of our settings, which also measures a round trip; false when none was due.
    pub(super) fn take_settings_ack(&mut self, now: Instant) -> bool {
        let Some(sent) = self.settings.take() else { return false };
        self.settings_due = None;
        self.settings_acknowledged = true;
        self.measured(now.saturating_duration_since(sent));
        true
    }

    fn measured(&mut self, trip: Duration) {
        self.round_trip = Some(self.round_trip.map_or(trip, |shortest| shortest.min(trip)));
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    pub(super) fn pong(&mut self, now: Instant) {
        self.ping = None;
        self.heard = now;
    }

    pub(super) fn drain_started(&mut self, now: Instant, wait: Duration) {
        self.drain = Some(now + wait);
    }

    pub(super) fn drain_done(&mut self) {
        self.drain = None;
    }

    pub(super) fn streams_busy(&mut self, now: Instant) {
        self.idle = None;
        self.checked.get_or_insert(now);
    }

    pub(super) fn streams_idle(&mut self, now: Instant) {
        self.idle = Some(now);
        self.checked = None;
    }
}

impl Connection {
    /// Tells the machine the time: the first call of every turn. A deadline that has passed shows as an event or error
    /// from `next_event`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while self.closed.is_none() {
            match self.poll_timeout() {
                Some((deadline, timeout)) if deadline <= self.now => self.run_out(timeout),
                _ => return,
            }
        }
    }

    /// The next deadline: call [`handle_timeout`](Self::handle_timeout) then, if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<(Instant, Timeout)> {
        if self.closed.is_some() {
            return None;
        }
        let timeouts = &self.config.timeouts;
        let timing = &self.timing;
        let after = |since: Option<Instant>, wait: Option<Duration>| Some(since? + wait?);
        let busy = !self.streams.is_empty();
        let ping = match timing.ping {
            Some(sent) => Some((sent + timeouts.pong, Timeout::Pong)),
            None if busy => timeouts.ping.map(|wait| (timing.heard + wait, Timeout::Ping)),
            None => None,
        };
        let check = if busy { after(timing.checked, self.check_interval()) } else { None };
        [
            after(timing.incomplete, timeouts.head).map(|at| (at, Timeout::Head)),
            after(timing.idle, timeouts.idle).map(|at| (at, Timeout::Idle)),
            after(timing.settings_due, timeouts.settings).map(|at| (at, Timeout::Settings)),
            after(timing.blocked, timeouts.write_stall).map(|at| (at, Timeout::Blocked)),
            timing.drain.map(|at| (at, Timeout::Drain)),
            check.map(|at| (at, Timeout::WriteStall)),
            ping,
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    fn run_out(&mut self, timeout: Timeout) {
        match timeout {
            Timeout::Idle => {
                self.say_goaway(Reason::NoError, &[]);
                self.close_with(CloseReason::Idle);
            }
            Timeout::Ping => {
                self.timing.ping = Some(self.now);
                self.out.frames(|out| frame::put_ping(out, LIVENESS_PING, false));
            }
            Timeout::Drain => self.second_goaway(),
            Timeout::WriteStall | Timeout::BodyRate => self.check_streams(),
            Timeout::Head | Timeout::Settings | Timeout::Pong | Timeout::Blocked => {
                self.fail(Error::Timeout(timeout))
            }
        }
    }

    /// The streams are looked over every so often, rather than each having a timer of its own.
    fn check_interval(&self) -> Option<Duration> {
        let timeouts = &self.config.timeouts;
        let shortest = timeouts.write_stall.into_iter().chain(timeouts.body_grace).min()?;
        Some((shortest / CHECKS_PER_TIMEOUT).max(Duration::from_millis(1)))
    }

    fn check_streams(&mut self) {
        self.timing.checked = Some(self.now);
        let (now, timeouts) = (self.now, self.config.timeouts.clone());
        let late: Vec<(StreamId, Timeout)> = self
            .streams
            .iter_mut()
            .filter(|stream| !stream.reset)
            .filter_map(|stream| {
                let stalled = write_stalled(stream, now, &timeouts).then_some(Timeout::WriteStall);
                let slow = body_slow(stream, now, &timeouts).then_some(Timeout::BodyRate);
                stalled.or(slow).map(|timeout| (stream.id, timeout))
            })
            .collect();
        for (id, timeout) in late {
            if self.streams.get(id).is_some_and(|stream| stream.finished && stream.sending == Sending::Done) {
                // The answer is complete: only the rest of an upload that nobody wants is late (RFC 9113 §8.1).
                self.reset_stream(id, Reason::NoError);
            } else {
                self.fail_stream(id, StreamError::Timeout(timeout));
            }
        }
    }
}

/// Whether a stream has had something to send for the whole time and got rid of next to nothing (S24). The measure is
/// taken from when the stream was first seen waiting.
fn write_stalled(stream: &mut Stream, now: Instant, timeouts: &Timeouts) -> bool {
    let Some(limit) = timeouts.write_stall else { return false };
    if !stream.waits_to_send() {
        stream.send.mark = None;
        return false;
    }
    let written = stream.send.written;
    match stream.send.mark {
        Some((since, before)) if written - before < Timeouts::PROGRESS => {
            now.saturating_duration_since(since) >= limit
        }
        _ => {
            stream.send.mark = Some((now, written));
            false
        }
    }
}

/// Whether a body that the application waits for, or one that an answer is waiting to be rid of, has come more slowly than
/// allowed, over the grace at least.
fn body_slow(stream: &mut Stream, now: Instant, timeouts: &Timeouts) -> bool {
    let Some(grace) = timeouts.body_grace else { return false };
    // While the peer has no window it is not the one who is slow.
    let due = stream.recv.wanted || (stream.finished && stream.sending == Sending::Done);
    if stream.receiving != Receiving::Body || stream.recv.window.granted() <= 0 {
        stream.recv.mark = None;
        return false;
    }
    if !due {
        return false;
    }
    let received = stream.recv.received;
    let Some((since, before)) = stream.recv.mark else {
        stream.recv.mark = Some((now, received));
        return false;
    };
    let elapsed = now.saturating_duration_since(since);
    if elapsed < grace {
        return false;
    }
    let due = u128::from(timeouts.body_rate) * elapsed.as_millis() / 1000;
    if u128::from(received - before) < due {
        return true;
    }
    stream.recv.mark = Some((now, received));
    false
}
