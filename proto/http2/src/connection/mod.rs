//! The connection core that both roles share: its state, and the calls of the driver that belong to no stream.
//!
//! What a frame does is in [`receive`] and the files it leads to; what the local side wants is in [`send`]; when DATA is
//! written is in [`schedule`]; deadlines are in [`time`].

mod control;
mod data;
mod headers;
mod receive;
mod schedule;
mod send;
mod settings;
mod time;

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;

use crate::budget::Budget;
use crate::config::Config;
use crate::error::{CloseReason, Error, StreamError};
use crate::event::Event;
use crate::flow::{DEFAULT_WINDOW, ReceiveWindow, SendWindow};
use crate::frame::{self, HEAD_LENGTH, StreamId};
use crate::hpack::{Decoder, Encoder};
use crate::message::RequestHead;
use crate::priority::Scheduler;
use crate::reason::Reason;
use crate::streams::Streams;
use crate::transmit::Transmit;

pub(crate) use send::Target;
pub(crate) use settings::PeerSettings;

/// Output above which nothing more is read: the peer does not take what it asked for.
const HIGH_WATER: usize = 256 * 1024;

/// Spare capacity that a read is given: a frame of the default size, and the head of the next one.
const READ_CAPACITY: usize = frame::DEFAULT_MAX_FRAME_SIZE as usize + 2 * HEAD_LENGTH;

/// Control tokens that a second gives back: more than any honest peer needs, less than a flood takes.
const CONTROL_PER_SECOND: u32 = 100;

/// Reset tokens that a second gives back.
const RESETS_PER_SECOND: u32 = 20;

/// Which end of the connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// Storage that the driver lends to a connection while it works on it, so that an idle one owns none.
#[derive(Debug, Default)]
pub struct Loan {
    /// For received bytes.
    pub read: BytesMut,
    /// For frames to be sent.
    pub write: BytesMut,
    /// The time as IMF-fixdate, for the Date field of responses; all zeros leave the field out.
    pub date: Date,
}

/// The connection's flow-control windows (RFC 9113 §6.9), in octets. When the application has taken all that was
/// received, `granted` and `due` add up to `target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionWindows {
    /// What we may send.
    pub send: i64,
    /// What the peer may send.
    pub granted: i64,
    /// What the peer will be granted with the next update.
    pub due: u32,
    /// The size that our window has grown to.
    pub target: u32,
}

/// An IMF-fixdate (RFC 9110 §5.6.7), which always has 29 octets.
pub type Date = [u8; 29];

/// What has been received so far of the connection's own frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client's preface is to come.
    Preface,
    /// SETTINGS must be the first frame (RFC 9113 §3.4).
    FirstSettings,
    Open,
}

/// A header block whose end has not come yet.
#[derive(Debug)]
struct OpenBlock {
    stream: StreamId,
    end_stream: bool,
    self_dependency: bool,
    continuations: u32,
    fragments: BytesMut,
}

/// The last request head and the block that it came from. Equal bytes with the table unchanged mean an equal head.
#[derive(Debug)]
struct CachedHead {
    version: u64,
    block: Box<[u8]>,
    head: RequestHead,
}

/// Tokens of the connection; see [`crate::Limits`].
#[derive(Debug)]
struct Budgets {
    control: Budget,
    resets: Budget,
    small: Budget,
}

/// One HTTP/2 connection. [`crate::Server`] and [`crate::Client`] lend their methods from it.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Arc<Config>,
    now: Instant,
    phase: Phase,
    input: BytesMut,
    block: Option<OpenBlock>,
    decoder: Decoder,
    encoder: Encoder,
    cached: Option<Box<CachedHead>>,
    out: Transmit,
    streams: Streams,
    scheduler: Scheduler,
    /// Streams whose driver was told that there is no capacity.
    starved: Vec<StreamId>,
    capacity_changed: bool,
    /// Streams opened by the peer whose handler runs or that are not closed.
    remote_active: u32,
    /// Our streams that are not closed.
    local_active: u32,
    send_window: SendWindow,
    recv_window: ReceiveWindow,
    peer: PeerSettings,
    pending: VecDeque<Event>,
    budgets: Budgets,
    timing: time::Timing,
    going: settings::Going,
    date: Date,
    error: Option<Error>,
    closed: Option<CloseReason>,
    eof: bool,
}

impl Connection {
    pub(crate) fn new(role: Role, config: Arc<Config>, now: Instant) -> Self {
        let limits = &config.limits;
        let mut connection = Connection {
            role,
            now,
            phase: if role == Role::Server { Phase::Preface } else { Phase::FirstSettings },
            input: BytesMut::new(),
            block: None,
            decoder: Decoder::new(frame_default_table(&config)),
            encoder: Encoder::new(),
            cached: None,
            out: Transmit::default(),
            streams: Streams::default(),
            scheduler: Scheduler::default(),
            starved: Vec::new(),
            capacity_changed: false,
            remote_active: 0,
            local_active: 0,
            send_window: SendWindow::new(DEFAULT_WINDOW),
            recv_window: ReceiveWindow::new(DEFAULT_WINDOW, config.windows.connection_max),
            peer: PeerSettings::default(),
            pending: VecDeque::new(),
            budgets: Budgets {
                control: Budget::new(limits.control_frames, CONTROL_PER_SECOND, now),
                resets: Budget::new(limits.resets, RESETS_PER_SECOND, now),
                small: Budget::new(limits.small_data, 0, now),
            },
            timing: time::Timing::new(role, now),
            going: settings::Going::default(),
            date: [0; 29],
            error: None,
            closed: None,
            eof: false,
            config,
        };
        connection.send_preface();
        connection
    }

    // ------------------------------------------------------------------------------------------------- storage

    /// Takes buffers from `loan` where it has none of its own, and the date.
    pub fn lend(&mut self, loan: &mut Loan) {
        if self.input.capacity() == 0 {
            std::mem::swap(&mut self.input, &mut loan.read);
        }
        self.out.lend(&mut loan.write);
        self.date = loan.date;
    }

    /// Gives back what it does not need to keep: without unread or unsent bytes it owns no buffer afterwards, and
    /// without streams hardly anything else.
    pub fn reclaim(&mut self, loan: &mut Loan) {
        if self.input.is_empty() {
            if loan.read.capacity() == 0 {
                std::mem::swap(&mut self.input, &mut loan.read);
                loan.read.clear();
            }
            self.input = BytesMut::new();
        }
        self.out.reclaim(&mut loan.write);
        if self.streams.is_empty() {
            self.streams.shrink();
            self.scheduler.shrink();
            self.starved = Vec::new();
            self.cached = None;
            if self.pending.is_empty() {
                self.pending = VecDeque::new();
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- input

    /// The buffer that received bytes are appended to. It has spare capacity.
    pub fn read_buf(&mut self) -> &mut BytesMut {
        let missing = self.missing().max(READ_CAPACITY / 4);
        if self.input.capacity() - self.input.len() < missing {
            self.input.reserve(missing.max(READ_CAPACITY));
        }
        &mut self.input
    }

    /// Says that `octets` were appended to [`read_buf`](Self::read_buf).
    pub fn received(&mut self, octets: usize) {
        if octets > 0 {
            self.timing.heard(self.now);
        }
    }

    /// The peer has closed its direction.
    pub fn handle_eof(&mut self) {
        self.eof = true;
    }

    /// The next thing that happened. `None` means: feed me, or answer first. After it, write what
    /// [`poll_transmit`](Self::poll_transmit) gives.
    ///
    /// # Errors
    /// The connection is over; the error is given again by every later call.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(event));
            }
            if let Some(error) = &self.error {
                return Err(error.clone());
            }
            if self.closed.is_some() {
                return Ok(None);
            }
            if let Some(event) = self.capacity_event() {
                return Ok(Some(event));
            }
            match self.receive() {
                Ok(receive::Step::Event(event)) => return Ok(Some(event)),
                Ok(receive::Step::Again) => {}
                Ok(receive::Step::Starved) => {
                    if !self.settle() {
                        return Ok(None);
                    }
                }
                Err(Fault::Connection(error)) => self.fail(error),
                Err(Fault::Stream(stream, error)) => self.fail_stream(stream, error),
            }
        }
    }

    /// Nothing more can be read from the input. Looks whether that is the end; true when there is something to tell.
    fn settle(&mut self) -> bool {
        self.timing.note_incomplete(
            self.now,
            !self.input.is_empty() || (self.phase != Phase::Open && self.timing.spoke()),
            self.block.is_some(),
        );
        if self.eof {
            let clean =
                self.input.is_empty() && self.block.is_none() && self.streams.iter().all(|s| s.is_closed());
            if clean {
                self.close_with(CloseReason::PeerClosed);
            } else {
                self.end_with(Error::UnexpectedEof);
            }
            return true;
        }
        self.finish_drain();
        self.closed.is_some()
    }

    // ------------------------------------------------------------------------------------------------- output

    /// Fills `slices` with what is to be written, from the front; says how many it filled. Zero means that there is
    /// nothing to write. DATA frames are cut here, when it is known what else is waiting.
    pub fn poll_transmit<'a>(&'a mut self, slices: &mut [IoSlice<'a>]) -> usize {
        self.fill_output();
        if !self.out.is_empty() {
            self.timing.output_waits(self.now);
        }
        self.out.slices(slices)
    }

    /// Retires `octets` that were written.
    pub fn transmitted(&mut self, octets: usize) {
        self.out.retire(octets);
        if octets > 0 {
            self.timing.output_taken(self.now, self.out.is_empty());
        }
        self.capacity_changed |= !self.starved.is_empty();
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) would give anything.
    pub fn has_transmit(&self) -> bool {
        !self.out.is_empty() || self.can_send_data()
    }

    /// Octets that wait to be written, frames that are cut later not counted.
    pub fn queued(&self) -> usize {
        self.out.queued()
    }

    // ------------------------------------------------------------------------------------------------- getters

    /// False when reading now would only grow a buffer: the peer does not read what it asked for, or all is over.
    pub fn wants_read(&self) -> bool {
        self.closed.is_none() && self.error.is_none() && !self.eof && self.out.queued() < HIGH_WATER
    }

    /// No stream, and nothing buffered in either direction.
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.input.is_empty() && self.out.is_empty() && self.closed.is_none()
    }

    /// Why nothing more will be read. Write what `poll_transmit` still has, then close; see
    /// [`needs_linger`](Self::needs_linger).
    pub fn is_closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// The peer may still be sending: close only the sending direction first, then read and discard for a moment, or the
    /// GOAWAY could be lost to a reset of the transport.
    pub fn needs_linger(&self) -> bool {
        self.closed.is_some() && !self.eof
    }

    /// Streams with an entry: those that are open, and those that the driver has not yet let go of.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// The connection's flow-control windows as they are now.
    pub fn connection_windows(&self) -> ConnectionWindows {
        ConnectionWindows {
            send: self.send_window.size(),
            granted: self.recv_window.granted(),
            due: self.recv_window.due(),
            target: self.recv_window.target(),
        }
    }

    /// The shortest round trip that was seen.
    pub fn round_trip(&self) -> Option<Duration> {
        self.timing.round_trip()
    }

    /// Whether the peer may have acted on a request of ours, as far as is known once the connection is over: not when
    /// its GOAWAY excluded the stream, nor when nothing of it was ever handed to the transport.
    pub fn may_have_processed(&self, stream: StreamId) -> bool {
        if self.going.received_last.is_some_and(|last| stream > last) {
            return false;
        }
        self.streams.get(stream).is_none_or(|entry| self.out.has_sent(entry.send.position))
    }

    // ------------------------------------------------------------------------------------------------- ends

    /// Ends the connection at once, telling the peer `reason`. Streams that are open are lost.
    pub fn close(&mut self, reason: Reason) {
        if self.closed.is_none() {
            self.say_goaway(reason, &[]);
            self.close_with(CloseReason::Closed);
        }
    }

    fn close_with(&mut self, reason: CloseReason) {
        self.closed.get_or_insert(reason);
        self.drop_buffers();
    }

    /// A fault of the peer: says GOAWAY with the reason, and seals the machine.
    fn fail(&mut self, error: Error) {
        // What the peer blamed us for is not ours to blame it for.
        let reason = if let Error::GoAway { .. } = error { Reason::NoError } else { error.reason() };
        self.say_goaway(reason, &[]);
        self.end_with(error);
    }

    fn end_with(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.closed.get_or_insert(CloseReason::Fault);
        self.drop_buffers();
    }

    fn drop_buffers(&mut self) {
        self.input.clear();
        self.block = None;
        self.scheduler = Scheduler::default();
        for stream in self.streams.iter_mut() {
            stream.send.queue.clear();
            stream.send.scheduled = false;
        }
    }
}

/// The decoder starts from the size that the peer assumes until it has seen our settings (RFC 9113 §6.5.2).
fn frame_default_table(config: &Config) -> usize {
    (config.header_table_size as usize).max(4096)
}

/// What the peer did wrong, and how far it reaches.
#[derive(Debug)]
enum Fault {
    Connection(Error),
    Stream(StreamId, StreamError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Fault::Connection(error)
    }
}

impl From<crate::error::Violation> for Fault {
    fn from(violation: crate::error::Violation) -> Self {
        Fault::Connection(Error::Violation(violation))
    }
}

impl From<crate::error::Spent> for Fault {
    fn from(spent: crate::error::Spent) -> Self {
        Fault::Connection(Error::Spent(spent))
    }
}
