//! The server's side of one connection: the state, the getters, and what the driver hands in.
//!
//! * `receive`: what comes in, as events; `head`: heads, known or parsed; `ahead`: past all that, what is known and plain.
//! * `answer`: what the application answers, as bytes.
//! * `fault`: what is remembered, and answered, when the peer breaks the protocol.
//! * `timers`: deadlines.

mod ahead;
mod answer;
mod fault;
mod head;
mod receive;
mod timers;

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};

use crate::body::{Reading, Writing};
use crate::cache::{HeadCache, Remembered};
use crate::config::ServerConfig;
use crate::error::{CloseReason, Error, Timeout};
use crate::framing::{AnsweredMethod, BodyLength};
use crate::loan::{self, Loan};
use crate::queue::Queue;
use crate::scan::Scan;
use crate::write::DateLine;
use fault::Fault;
use timers::RateClock;

pub use ahead::KnownHead;
pub use fault::Refused;

/// What came in.
#[derive(Debug)]
pub enum ServerEvent {
    /// A request's head. No other comes before the answer to this one has ended.
    Request {
        /// Method, target, version and fields.
        request: Request<()>,
        /// What follows. After [`BodyLength::Empty`] there is no [`End`](ServerEvent::End).
        body: BodyLength,
        /// The client waits for [`Server::send_continue`] before it sends the body (RFC 9110 §10.1.1).
        expect_continue: bool,
        /// The connection may leave HTTP: a CONNECT, or an Upgrade field that Connection names.
        upgrade: bool,
    },
    /// A piece of the request's body.
    Data(Bytes),
    /// The request's trailers, without those that must not be there.
    Trailers(HeaderMap),
    /// The end of a body.
    End,
}

/// How much of the next requests is read while one is being answered, 64 KiB (S15).
const PIPELINED: usize = 64 << 10;
/// What is made room for when the driver wants to receive and there is little, 16 KiB.
const RECEIVE: usize = 16 << 10;
/// Less spare capacity than this is not worth a system call, 1 KiB.
const MIN_SPARE: usize = 1 << 10;

/// The server's side of a connection. See the [crate's documentation](crate) for the order of calls.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    read: BytesMut,
    queue: Queue,
    heads: Option<Box<HeadCache>>,
    date: DateLine,
    now: Instant,
    /// Beginning of the current head, or of the time without one.
    since: Instant,
    /// When bytes to be written last moved, or began to wait.
    moved: Instant,
    rate: RateClock,
    last_block: Remembered,
    last_line: Remembered,
    receive: Receive,
    answer: Answer,
    exchange: Exchange,
    /// The exchange is [`Exchange::PLAIN`], and was opened as such.
    plain: bool,
    eof: bool,
    draining: bool,
    /// Body events are over: the application does not read the rest.
    ignoring: bool,
    body_wanted: bool,
    closed: Option<CloseReason>,
    fault: Option<Box<Fault>>,
    /// Bytes that may still be thrown away: of a body while it is ignored, of anything once closed.
    discard: u64,
    linger: bool,
    /// The end of the connection is the end of the current answer's body.
    until_close: bool,
    /// Bytes that the driver has taken are still on this side.
    unflushed: bool,
}

/// Where reading stands.
#[derive(Debug)]
enum Receive {
    /// Before or inside a head. `skipped` counts the empty lines before it.
    Head {
        scan: Scan,
        skipped: u8,
    },
    Body(Reading),
    /// The request was read whole; what follows waits.
    Done,
}

impl Receive {
    const NEXT_HEAD: Receive = Receive::Head { scan: Scan::NEW, skipped: 0 };
}

/// Where the answer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// No request to answer.
    None,
    /// A request, and no final head.
    Owed,
    Body(Writing),
    Done,
}

/// What is remembered of a request until its answer has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    method: AnsweredMethod,
    http11: bool,
    /// The connection may be used for another exchange.
    persist: bool,
    /// The request asks to leave HTTP.
    upgrade: bool,
    /// The client waits for a 100.
    expects_continue: bool,
}

impl Exchange {
    /// What HTTP/1.1 has by itself, for a method that is not special.
    const PLAIN: Exchange = Exchange {
        method: AnsweredMethod::Other,
        http11: true,
        persist: true,
        upgrade: false,
        expects_continue: false,
    };
}

impl Server {
    /// A connection that was accepted at `now`.
    pub fn new(config: Arc<ServerConfig>, now: Instant) -> Self {
        Server {
            config,
            read: BytesMut::new(),
            queue: Queue::default(),
            heads: None,
            date: DateLine::NONE,
            now,
            since: now,
            moved: now,
            rate: RateClock::default(),
            last_block: Remembered::default(),
            last_line: Remembered::default(),
            receive: Receive::NEXT_HEAD,
            answer: Answer::None,
            exchange: Exchange::default(),
            plain: false,
            eof: false,
            draining: false,
            ignoring: false,
            body_wanted: false,
            closed: None,
            fault: None,
            discard: 0,
            linger: false,
            until_close: false,
            unflushed: false,
        }
    }

    /// Takes over lent storage for a turn, as far as the machine has none in use, and the date. What is in the storage is
    /// there to be read, and to be written: see [`can_run_ahead`](Self::can_run_ahead).
    #[inline]
    pub fn lend(&mut self, loan: &mut Loan) {
        loan::lend_read(&mut self.read, &mut loan.read);
        if self.queue.is_empty() {
            std::mem::swap(&mut self.queue.copied, &mut loan.write);
            if !self.queue.copied.is_empty() {
                self.moved = self.now;
            }
        }
        if self.heads.is_none() {
            self.heads = loan.heads.take();
        }
        self.date.set(&loan.date);
    }

    /// Gives back what need not be kept. A machine between two exchanges owns no storage afterwards.
    #[inline]
    pub fn reclaim(&mut self, loan: &mut Loan) {
        loan::give_back_read(&mut self.read, &mut loan.read);
        if self.queue.is_empty() {
            loan::give_back(&mut self.queue.copied, &mut loan.write);
            self.queue.release_pieces();
        }
        if let Some(heads) = self.heads.take() {
            loan.heads = Some(heads);
        }
    }

    /// Where received bytes are appended. Has spare capacity. Tell [`received`](Self::received) afterwards.
    #[inline]
    pub fn read_buf(&mut self) -> &mut BytesMut {
        if self.read.capacity() - self.read.len() < MIN_SPARE {
            self.read.reserve(RECEIVE);
        }
        &mut self.read
    }

    /// This many bytes were appended to [`read_buf`](Self::read_buf).
    #[inline]
    pub fn received(&mut self, count: usize) {
        match self.receive {
            Receive::Head { .. } if count > 0 && self.read.len() <= count => self.since = self.now,
            // Who is still sending has not come to read the last answer.
            _ if self.closed.is_some() && count > 0 => self.since = self.now,
            Receive::Body(_) => self.earn_time(count as u64),
            _ => {}
        }
    }

    /// The peer has ended its direction. It may still read.
    pub fn handle_eof(&mut self) {
        self.eof = true;
        self.linger = false;
    }

    /// Tells the time; the first call of every turn. A deadline that has passed comes out of
    /// [`next_event`](Self::next_event) as an error.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
    }

    /// Lends the bytes at the front of the queue, up to a stretch that the driver sends by itself, and says how many
    /// slices were filled.
    #[inline]
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.queue.fill(slices)
    }

    /// All that waits to be written, where it is one slice; then it need not be asked for by
    /// [`poll_transmit`](Self::poll_transmit).
    #[inline]
    pub fn sole_slice(&self) -> Option<&[u8]> {
        self.queue.sole_slice()
    }

    /// How many bytes at the front of the queue are the driver's own to send ([`send_external`](Self::send_external));
    /// 0 where [`poll_transmit`](Self::poll_transmit) has them.
    #[inline]
    pub fn external(&self) -> u64 {
        self.queue.external()
    }

    /// This many bytes from the front of the queue were written, external ones included.
    #[inline]
    pub fn transmitted(&mut self, count: usize) {
        self.queue.retire(count);
        if count > 0 {
            self.moved = self.now;
        }
        if self.queue.is_empty() && (self.closed.is_some() || self.read.is_empty()) {
            self.since = self.now;
        }
    }

    /// Says whether bytes that were [`transmitted`](Self::transmitted) still wait in a layer below, such as TLS. They count
    /// as waiting to be written.
    #[inline]
    pub fn set_unflushed(&mut self, unflushed: bool) {
        if self.unflushed != unflushed {
            self.unflushed = unflushed;
            self.moved = self.now;
            if self.closed.is_some() || self.read.is_empty() {
                self.since = self.now;
            }
        }
    }

    /// The peer has taken bytes that were written earlier, although there was no room to write more: the write-stall timer
    /// counts from here.
    pub fn write_moved(&mut self) {
        self.moved = self.now;
    }

    /// Whether something waits to be written, external bytes included.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Bytes that the machine holds to be written. A driver stops feeding a body while there are many.
    #[inline]
    pub fn queued(&self) -> usize {
        self.queue.bytes()
    }

    /// Whether received bytes have a place to go. While this is `false`, reading would only grow a buffer.
    #[inline]
    pub fn wants_read(&self) -> bool {
        if self.eof || self.fault.is_some() && self.closed.is_none() {
            return false;
        }
        match (&self.closed, &self.receive) {
            (Some(_), _) => self.linger,
            (None, Receive::Head { .. }) => true,
            // The rest is not wanted, and not worth reading.
            (None, Receive::Body(_)) if self.ignoring && self.discard == 0 => false,
            (None, Receive::Body(_) | Receive::Done) => self.read.len() < PIPELINED,
        }
    }

    /// Between two exchanges, with nothing half-read and nothing to write.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.receive, Receive::Head { .. })
            && self.answer == Answer::None
            && self.read.is_empty()
            && self.queue.is_empty()
            && self.closed.is_none()
            && self.fault.is_none()
    }

    /// Why nothing more is read as a message. What [`poll_transmit`](Self::poll_transmit) still has is to be written
    /// before the connection is closed; then see [`needs_linger`](Self::needs_linger).
    #[inline]
    pub fn is_closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// Whether the peer may still be sending, so that closing now could destroy our last answer on its way (RFC 9112
    /// §9.6). End our direction, go on reading and calling [`next_event`](Self::next_event), which throws away what
    /// comes, and close when this turns `false`: at the end of the peer's direction, after
    /// [`Limits::linger`](crate::Limits::linger) bytes, or when the linger timer has passed.
    #[inline]
    pub fn needs_linger(&self) -> bool {
        self.linger
    }

    /// Whether to close in a way that shows, as by a reset, and without a TLS `close_notify`: an orderly end would be taken
    /// for the end of an answer that is not all there, where its body ends with the connection (RFC 9112 §8); and who has
    /// taken nothing for too long would only hold what is left in the kernel.
    pub fn is_cut_short(&self) -> bool {
        let all_there = !matches!(self.answer, Answer::Body(_)) && !self.waits_to_write();
        self.until_close && !all_there || self.is_stalled()
    }

    /// Whether the peer has taken nothing for too long.
    fn is_stalled(&self) -> bool {
        matches!(self.fault.as_deref(), Some(Fault { error: Error::Timeout(Timeout::WriteStall), .. }))
    }

    fn waits_to_write(&self) -> bool {
        !self.queue.is_empty() || self.unflushed
    }

    /// After a switch of protocols and once all of our bytes are written: the bytes that were already read past the
    /// request. The connection is the caller's from here.
    pub fn take_upgraded(&mut self) -> Option<Bytes> {
        let switched = self.closed == Some(CloseReason::Upgraded) && self.queue.is_empty();
        switched.then(|| std::mem::take(&mut self.read).freeze())
    }

    /// Says whether the application waits for body bytes. Only then does the body-rate timer run.
    pub fn want_body(&mut self, wanted: bool) {
        if self.body_wanted != wanted {
            self.body_wanted = wanted;
            self.pause_or_resume();
        }
    }

    /// Begins a graceful shutdown: an idle connection closes now; a busy one carries `Connection: close` in its current
    /// answer and closes after it.
    pub fn drain(&mut self) {
        self.draining = true;
        if matches!(self.receive, Receive::Head { .. }) && self.answer == Answer::None && self.read.is_empty()
        {
            self.close(CloseReason::Drained);
        }
    }

    /// The first reason counts.
    fn close(&mut self, reason: CloseReason) {
        if self.closed.is_none() {
            self.closed = Some(reason);
            self.since = self.now;
            if self.queue.is_empty() {
                self.moved = self.now;
            }
            self.discard = self.config.limits.linger;
            let unread = !matches!(self.receive, Receive::Done) || !self.read.is_empty();
            self.linger = match reason {
                CloseReason::Upgraded | CloseReason::PeerClosed => false,
                CloseReason::Drained | CloseReason::Timeout => unread && self.answer != Answer::None,
                _ => unread,
            } && !self.eof;
        }
    }
}
