//! The client's side of one connection: the state, the getters, and what the driver hands in.
//!
//! * `request`: what the caller asks, as bytes.
//! * `receive`: what comes back, as events.

mod receive;
mod request;

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response};

use crate::body::{Reading, Writing};
use crate::cache::{HeadCache, Remembered};
use crate::config::ClientConfig;
use crate::error::{CloseReason, Error, Timeout};
use crate::framing::{AnsweredMethod, BodyLength};
use crate::loan::{self, Loan};
use crate::queue::Queue;
use crate::scan::Scan;

pub use request::PreparedFields;

/// What came back.
#[derive(Debug)]
pub enum ClientEvent {
    /// An interim answer (1xx); the final one is still to come.
    Interim(Response<()>),
    /// The head of the final answer.
    Response {
        /// Status, version and fields. A reason phrase other than the usual one is in the extensions, as
        /// [`Reason`](crate::Reason).
        response: Response<()>,
        /// What follows. After [`BodyLength::Empty`] there is no [`End`](ClientEvent::End).
        body: BodyLength,
    },
    /// A piece of the answer's body.
    Data(Bytes),
    /// The answer's trailers, without those that must not be there.
    Trailers(HeaderMap),
    /// The end of the body.
    End,
    /// The connection leaves HTTP: 101, or 2xx to CONNECT. See [`Client::take_upgraded`].
    Upgraded(Response<()>),
}

/// How much is read ahead of what the caller takes, 64 KiB.
const READ_AHEAD: usize = 64 << 10;
/// What is made room for when the driver wants to receive and there is little, 16 KiB.
const RECEIVE: usize = 16 << 10;
/// Less spare capacity than this is not worth a system call, 1 KiB.
const MIN_SPARE: usize = 1 << 10;

/// The client's side of a connection. See the [crate's documentation](crate) for the order of calls. One request is on
/// its way at a time.
#[derive(Debug)]
pub struct Client {
    config: Arc<ClientConfig>,
    read: BytesMut,
    queue: Queue,
    heads: Option<Box<HeadCache>>,
    last_block: Remembered,
    receive: Receive,
    request: Request,
    exchange: Exchange,
    /// Bytes of the request's head that are not written yet.
    head_left: usize,
    /// How long it is.
    head_size: usize,
    interim: u32,
    /// A byte of the current answer has come.
    answer_began: bool,
    eof: bool,
    closed: Option<CloseReason>,
    fault: Option<Error>,
}

/// Where reading stands.
#[derive(Debug)]
enum Receive {
    /// No answer is owed.
    Idle,
    Head(Scan),
    Body(Reading),
    Done,
}

/// Where the request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    None,
    Body(Writing),
    Done,
}

/// What is remembered of a request until its answer has ended.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    method: AnsweredMethod,
    /// The connection may be used again, as far as is known.
    persist: bool,
    /// The request offers to switch protocols.
    upgrade: bool,
    /// The answer came before the whole request was written, and does not ask to stop.
    goes_on: bool,
}

impl Client {
    /// A connection that was established at `now`.
    pub fn new(config: Arc<ClientConfig>, now: Instant) -> Self {
        let _ = now;
        Client {
            config,
            read: BytesMut::new(),
            queue: Queue::default(),
            heads: None,
            last_block: Remembered::default(),
            receive: Receive::Idle,
            request: Request::None,
            exchange: Exchange::default(),
            head_left: 0,
            head_size: 0,
            interim: 0,
            answer_began: false,
            eof: false,
            closed: None,
            fault: None,
        }
    }

    /// Takes over lent storage for a turn, as far as the machine has none in use.
    #[inline]
    pub fn lend(&mut self, loan: &mut Loan) {
        loan::lend_read(&mut self.read, &mut loan.read);
        if self.queue.is_empty() {
            std::mem::swap(&mut self.queue.copied, &mut loan.write);
        }
        if self.heads.is_none() {
            self.heads = loan.heads.take();
        }
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
        self.answer_began |= count > 0;
    }

    /// The peer has ended its direction.
    pub fn handle_eof(&mut self) {
        self.eof = true;
    }

    /// Tells the time. A client's machine has no timers of its own: its caller has a deadline for the whole exchange,
    /// and the pool one for idle connections.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// The next deadline: never one, see [`handle_timeout`](Self::handle_timeout).
    #[inline]
    pub fn poll_timeout(&self) -> Option<(Instant, Timeout)> {
        None
    }

    /// Lends the bytes at the front of the queue, up to a stretch that the driver sends by itself, and says how many
    /// slices were filled.
    #[inline]
    pub fn poll_transmit<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        self.queue.fill(slices)
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
        self.head_left = self.head_left.saturating_sub(count);
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
        !self.eof
            && self.closed.is_none()
            && self.fault.is_none()
            && (matches!(self.receive, Receive::Head(_)) || self.read.len() < READ_AHEAD)
    }

    /// Between two exchanges, with nothing half-read and nothing to write.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.receive, Receive::Idle)
            && self.request == Request::None
            && self.read.is_empty()
            && self.queue.is_empty()
            && self.closed.is_none()
            && self.fault.is_none()
    }

    /// Whether another request may be sent: the last exchange is over on both sides, the connection persists, and
    /// nothing that nobody asked for has come (S49). A pool looks at the socket once more before it relies on it.
    #[inline]
    pub fn can_reuse(&self) -> bool {
        self.is_idle() && !self.eof
    }

    /// Whether any byte of the current answer has come. A request on a used connection that ends before that may be
    /// sent again if it can be replayed.
    #[inline]
    pub fn bytes_received(&self) -> bool {
        self.answer_began
    }

    /// Whether there is more of the request to be written though a success was answered already: the server means to
    /// read it (RFC 9110 §7.5), so its body goes on, also behind the end of the answer. The connection is closed after it.
    #[inline]
    pub fn is_uploading(&self) -> bool {
        self.exchange.goes_on && self.has_more_to_upload()
    }

    #[cold]
    fn has_more_to_upload(&self) -> bool {
        let open = matches!(self.request, Request::Body(_)) && self.closed.is_none();
        self.fault.is_none() && (open || !self.queue.is_empty())
    }

    /// Why nothing more is read as a message.
    #[inline]
    pub fn is_closed(&self) -> Option<CloseReason> {
        self.closed
    }

    /// After [`ClientEvent::Upgraded`]: the bytes that were already read past the answer. The connection is the
    /// caller's from here.
    pub fn take_upgraded(&mut self) -> Option<Bytes> {
        let switched = self.closed == Some(CloseReason::Upgraded) && self.queue.is_empty();
        switched.then(|| std::mem::take(&mut self.read).freeze())
    }

    /// Gives the exchange up: what is queued of the request goes out, but nothing that would make it look complete.
    pub fn abort(&mut self) {
        self.close(CloseReason::Aborted);
    }

    /// The first reason counts.
    fn close(&mut self, reason: CloseReason) {
        self.exchange.persist = false;
        self.closed.get_or_insert(reason);
    }
}
