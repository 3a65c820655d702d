//! One connection that many exchanges share: its stream, its machine, and a mailbox for each exchange.
//!
//! Nothing of the user's runs under the lock: bodies are polled and wakers are called outside of it.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use hyperman_http2::{
    BodyLength, Client as Machine, ClientEvent, Config, Error as Fault, Loan, Misuse, Reason, StreamError,
    StreamId,
};
use hyperman_transport::{ByteStream, Runtime, Timer, loan};

use crate::connect::Stream;
use crate::connection::MOMENT;
use crate::error::ErrorKind;
use crate::h2::ending::{Ended, Failure, Refused, same};
use crate::h2::relay::Relay;
use crate::pool::Key;

/// How many slices one write carries, 64: the heads and bodies of a few dozen streams.
const SLICES: usize = 64;

/// How many rounds of events, write and read one turn makes before the loop's other tasks get theirs.
const ROUNDS: u32 = 32;

/// How many reads of what is of no use any more a closing connection makes, 8 of 16 KiB: what a server had on its way.
const FAREWELL_READS: u32 = 8;

thread_local! {
    static SHELF: Cell<Option<Loan>> = const { Cell::new(None) };
}

/// A connection, for whoever has a part in it.
pub(crate) struct Shared<R: Runtime> {
    pub(super) peer: SocketAddr,
    pub(super) key: Key,
    pub(super) opened: Instant,
    pub(super) relay: Arc<Relay>,
    /// The relay's, for socket and timer.
    waker: Waker,
    hub: Mutex<Hub<R>>,
}

/// What is behind the lock.
pub(super) struct Hub<R: Runtime> {
    pub(super) machine: Machine,
    stream: Stream<R::Source>,
    timer: R::Timer,
    mailboxes: HashMap<StreamId, Mailbox>,
    /// Requests that wait until they may be opened.
    pub(super) openers: usize,
    /// Streams whose answer is whole while their request is not sent whole.
    uploaders: Vec<StreamId>,
    /// Why the connection is over.
    ended: Option<Ended>,
    /// The server's last word, where that was an error.
    farewell: Option<Fault>,
    /// No new streams for this one: the server said so.
    retired: bool,
    idle_since: Instant,
    /// Whether an exchange has ended here.
    used: bool,
    /// Whether the head of an answer has come.
    served: bool,
    write_blocked: bool,
    write_error: Option<io::Error>,
    /// Whom to wake once the lock is free.
    called: Vec<Waker>,
    /// Whether to wake all who wait.
    call_all: bool,
}

/// What came for one exchange.
pub(super) struct Mailbox {
    seat: usize,
    letters: VecDeque<Letter>,
    /// Whether the head of the answer has come.
    answered: bool,
    /// Whether the answer is complete: nothing that happens later takes it back (RFC 9113 §8.1).
    complete: bool,
    /// How many bytes of its body are to come, where it said how long that is.
    left: Option<u64>,
    failed: Option<Failure>,
    /// There is room for more of the request's body.
    pub(super) room: bool,
}

/// One thing that came.
pub(super) enum Letter {
    Interim(http::Response<()>),
    Head(http::Response<()>, BodyLength),
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

/// What a connection is to a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It takes one more stream.
    Free,
    /// It takes one more after another has ended.
    Full,
    /// It takes none any more.
    Gone,
}

impl<R: Runtime> Shared<R> {
    pub(super) fn new(
        stream: Stream<R::Source>,
        config: Arc<Config>,
        (key, peer): (Key, SocketAddr),
        runtime: &R,
    ) -> Arc<Self> {
        let (relay, now) = (Arc::new(Relay::default()), runtime.now());
        let hub = Hub {
            machine: Machine::new(config, now),
            stream,
            timer: runtime.timer(),
            mailboxes: HashMap::new(),
            openers: 0,
            uploaders: Vec::new(),
            ended: None,
            farewell: None,
            retired: false,
            idle_since: now,
            used: false,
            served: false,
            write_blocked: false,
            write_error: None,
            called: Vec::new(),
            call_all: false,
        };
        // The first turn finds everything to do.
        relay.ring();
        Arc::new(Shared {
            peer,
            key,
            opened: now,
            waker: Waker::from(relay.clone()),
            relay,
            hub: Mutex::new(hub),
        })
    }

    /// Does something with the connection, and then wakes whom that concerns.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Hub<R>) -> T) -> T {
        let (outcome, called, call_all) = {
            // Nothing of ours panics while it holds the lock.
            let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = change(&mut hub);
            (outcome, std::mem::take(&mut hub.called), std::mem::take(&mut hub.call_all))
        };
        called.into_iter().for_each(Waker::wake);
        if call_all {
            self.relay.wake_all();
        }
        outcome
    }

    /// Moves the connection where something may be ready.
    pub(super) fn turn(&self, hub: &mut Hub<R>, now: Instant) {
        let rung = self.relay.take_rung();
        if rung || (!hub.write_blocked && hub.machine.has_transmit()) {
            hub.turn(self, now, rung);
        }
    }

    /// Whether new requests can be sent here. An idle connection is looked at first: the server may have ended it.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        self.with(|hub| {
            if hub.mailboxes.is_empty() {
                hub.turn(self, now, true);
                // What comes later than the loop looked last is not known to it. On a connection that has been used and
                // then left alone, that is hardly anything but its end.
                let paused = now.saturating_duration_since(hub.idle_since) >= MOMENT;
                hub.retired |= hub.used && paused && !would_block(&hub.stream.peek());
            }
            match hub.machine.can_open() {
                _ if hub.ended.is_some() || hub.retired => Standing::Gone,
                Ok(()) => Standing::Free,
                Err(Misuse::TooManyStreams) => Standing::Full,
                Err(_) => Standing::Gone,
            }
        })
    }

    /// Moves an idle connection, so that what the server says on it is heard, and has `waker` woken when it says more. False
    /// when it takes no more requests.
    pub(super) fn attend(&self, now: Instant, waker: &Waker) -> bool {
        self.with(|hub| {
            if hub.mailboxes.is_empty() && hub.openers == 0 {
                self.relay.attend(waker);
                self.turn(hub, now);
            }
            hub.ended.is_none() && !hub.retired
        })
    }

    /// Since when no exchange is here, if none is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.with(|hub| (hub.mailboxes.is_empty() && hub.openers == 0).then_some(hub.idle_since))
    }

    /// Whether no new requests go here, as far as is known.
    pub(super) fn is_spent(&self) -> bool {
        self.with(|hub| hub.ended.is_some() || hub.retired)
    }
}

fn would_block(seen: &io::Result<()>) -> bool {
    matches!(seen, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

impl<R: Runtime> Hub<R> {
    /// A mailbox for a stream that was just opened.
    pub(super) fn register(&mut self, stream: StreamId, seat: usize) {
        let mailbox = Mailbox {
            seat,
            letters: VecDeque::new(),
            answered: false,
            complete: false,
            left: None,
            failed: None,
            room: false,
        };
        self.mailboxes.insert(stream, mailbox);
    }

    /// The exchange on this stream is over, well or not: what is left of it is cancelled, and its window given back. True
    /// when it was the last one.
    pub(super) fn leave(&mut self, shared: &Shared<R>, stream: StreamId, now: Instant) -> bool {
        self.mailboxes.remove(&stream);
        self.idle_since = now;
        self.used = true;
        if self.ended.is_none() {
            self.machine.finished(stream);
            shared.turn(self, now);
        }
        self.call_all |= self.openers > 0;
        self.mailboxes.is_empty()
    }

    /// The next thing that came for a stream.
    pub(super) fn take(&mut self, stream: StreamId) -> Option<Result<Letter, Failure>> {
        let mailbox = self.mailboxes.get_mut(&stream)?;
        match mailbox.letters.pop_front() {
            Some(letter) => {
                if let Letter::Data(data) = &letter {
                    self.machine.release(stream, data.len());
                }
                Some(Ok(letter))
            }
            None => mailbox.failed.take().map(Err),
        }
    }

    /// Whether there is room for the body of this stream that there was not before.
    pub(super) fn take_room(&mut self, stream: StreamId) -> bool {
        self.mailboxes.get_mut(&stream).is_some_and(|mailbox| std::mem::take(&mut mailbox.room))
    }

    /// Whether the request on this stream is still on its way out.
    pub(super) fn is_sending(&self, stream: StreamId) -> bool {
        self.ended.is_none() && self.write_error.is_none() && self.machine.is_sending(stream)
    }

    /// Whoever has this stream wants to be woken once its request is out, or will not get out.
    pub(super) fn watch_upload(&mut self, stream: StreamId) {
        if !self.uploaders.contains(&stream) {
            self.uploaders.push(stream);
        }
    }

    fn call_uploaders(&mut self, shared: &Shared<R>) {
        let mut uploaders = std::mem::take(&mut self.uploaders);
        uploaders.retain(|stream| {
            let sending = self.is_sending(*stream);
            if let Some(mailbox) = self.mailboxes.get(stream).filter(|_| !sending) {
                self.called.extend(shared.relay.call(mailbox.seat));
            }
            sending
        });
        self.uploaders = uploaders;
    }

    /// Why no stream can be opened here any more.
    pub(super) fn closed(&self) -> Failure {
        let kind = match &self.ended {
            Some(ended) => ended.kind(false),
            None => ErrorKind::Http2Stream(StreamError::Refused),
        };
        Failure { lost: true, in_turn: self.served, ..Failure::before(kind) }
    }

    fn turn(&mut self, shared: &Shared<R>, now: Instant, rung: bool) {
        if self.ended.is_some() {
            return;
        }
        let mut cx = Context::from_waker(&shared.waker);
        let mut loan = SHELF.try_with(Cell::take).ok().flatten().unwrap_or_default();
        self.machine.lend(&mut loan);
        self.machine.handle_timeout(now);
        self.write_blocked &= !rung;
        let mut rounds = 0;
        while self.round(shared, &mut cx) {
            rounds += 1;
            if rounds == ROUNDS {
                self.called.push(shared.waker.clone());
                break;
            }
        }
        if !self.uploaders.is_empty() {
            self.call_uploaders(shared);
        }
        self.machine.reclaim(&mut loan);
        let _ = SHELF.try_with(|shelf| shelf.set(Some(loan)));
        match self.machine.poll_timeout() {
            Some((deadline, _)) => {
                if self.timer.poll_deadline(deadline, &mut cx).is_ready() {
                    self.called.push(shared.waker.clone());
                }
            }
            None => self.timer.disarm(),
        }
    }

    /// Events, a write, a read. True when anything moved.
    fn round(&mut self, shared: &Shared<R>, cx: &mut Context<'_>) -> bool {
        loop {
            match self.machine.next_event() {
                Ok(Some(event)) => self.deliver(shared, event),
                Ok(None) => break,
                Err(fault) => {
                    // A GOAWAY, as a rule. Whether it still goes out changes nothing for us.
                    self.transmit(cx);
                    self.end(Ended::Fault(fault));
                    return false;
                }
            }
        }
        let wrote = self.transmit(cx);
        if self.machine.is_closed().is_some() {
            self.end(Ended::Closed);
            return false;
        }
        match self.read(cx) {
            Ok(read) => read || wrote,
            Err(error) => {
                self.end(Ended::Transport(error));
                false
            }
        }
    }

    /// Writes what is queued. True when anything went.
    fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        let mut wrote = false;
        while self.write_error.is_none() && !self.write_blocked && self.machine.has_transmit() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.machine.poll_transmit(&mut slices);
            if count == 0 {
                break;
            }
            match self.stream.poll_send(cx, slices.get(..count).unwrap_or_default()) {
                Poll::Pending => self.write_blocked = true,
                Poll::Ready(Ok(sent)) => {
                    self.machine.transmitted(sent);
                    wrote = true;
                }
                Poll::Ready(Err(error)) => self.write_error = Some(error),
            }
        }
        // What the server said before it stopped to read is still worth to be heard.
        if self.write_error.is_none()
            && let Poll::Ready(Err(error)) = self.stream.poll_flush(cx)
        {
            self.write_error = Some(error);
        }
        wrote
    }

    /// Reads once. True when there is something new to look at.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.machine.wants_read() {
            // Nothing will be written that could change that.
            return self.write_error.take().map_or(Ok(false), Err);
        }
        match self.stream.poll_recv(cx, self.machine.read_buf()) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => {
                self.machine.handle_eof();
                Ok(true)
            }
            Poll::Ready(Ok(count)) => {
                self.machine.received(count);
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(error),
        }
    }

    fn deliver(&mut self, shared: &Shared<R>, event: ClientEvent) {
        let (stream, letter) = match event {
            ClientEvent::Interim { stream, response } => (stream, Letter::Interim(response)),
            ClientEvent::Response { stream, response, body } => (stream, Letter::Head(response, body)),
            ClientEvent::Data { stream, data } => (stream, Letter::Data(data)),
            ClientEvent::Trailers { stream, trailers } => (stream, Letter::Trailers(trailers)),
            ClientEvent::End { stream } => (stream, Letter::End),
            ClientEvent::Capacity { stream } => {
                if let Some(mailbox) = self.mailboxes.get_mut(&stream) {
                    mailbox.room = true;
                    self.called.extend(shared.relay.call(mailbox.seat));
                }
                return;
            }
            ClientEvent::Reset { stream, error } => return self.fail_stream(shared, stream, error),
            ClientEvent::GoAway { reason, last } => {
                self.farewell = (reason != Reason::NoError).then_some(Fault::GoAway { reason, last });
                self.retired = true;
                self.call_all = true;
                return;
            }
            ClientEvent::Settings => {
                self.call_all |= self.openers > 0;
                return;
            }
        };
        let Some(mailbox) = self.mailboxes.get_mut(&stream) else {
            // The exchange is over, and what it did not want goes nowhere.
            if let Letter::Data(data) = letter {
                self.machine.release(stream, data.len());
            }
            return;
        };
        match &letter {
            Letter::Head(_, length) => {
                self.served = true;
                mailbox.answered = true;
                mailbox.complete = matches!(length, BodyLength::Empty);
                mailbox.left = if let BodyLength::Known(length) = length { Some(*length) } else { None };
            }
            Letter::Data(data) => {
                mailbox.left = mailbox.left.map(|left| left.saturating_sub(data.len() as u64));
            }
            Letter::End => mailbox.complete = true,
            _ => {}
        }
        mailbox.letters.push_back(letter);
        self.called.extend(shared.relay.call(mailbox.seat));
    }

    fn fail_stream(&mut self, shared: &Shared<R>, stream: StreamId, error: StreamError) {
        let crowded = self.machine.can_open() == Err(Misuse::TooManyStreams);
        if let Some(mailbox) = self.mailboxes.get_mut(&stream).filter(|mailbox| !mailbox.complete) {
            // Some servers end a stream without an error and without END_STREAM, node among them when it is in a hurry.
            // What was announced is here then, and nothing says that it should not be.
            if error == StreamError::Reset(Reason::NoError) && mailbox.left == Some(0) {
                mailbox.complete = true;
                mailbox.letters.push_back(Letter::End);
                self.called.extend(shared.relay.call(mailbox.seat));
                return;
            }
            let refused = match error {
                StreamError::Refused if crowded => Refused::Crowded,
                StreamError::Refused => Refused::Yes,
                _ => Refused::No,
            };
            // Whoever has sent the head of an answer has processed the request, whatever it says afterwards.
            let processed = error.request_may_have_been_processed() || mailbox.answered;
            let in_turn = refused == Refused::Yes && self.retired && self.served;
            let kind = ErrorKind::Http2Stream(error);
            mailbox.failed = Some(Failure { kind, processed, refused, lost: false, in_turn });
            self.called.extend(shared.relay.call(mailbox.seat));
        }
    }

    /// The connection is over, and so is every exchange whose answer is not complete.
    fn end(&mut self, ended: Ended) {
        let write_error = self.write_error.take();
        // What the server said tells more than that it then hung up.
        let told = self.farewell.take().map(Ended::Fault).filter(|_| ended.is_loss());
        for (stream, mailbox) in &mut self.mailboxes {
            if mailbox.complete || mailbox.failed.is_some() {
                continue;
            }
            let ended = told.as_ref().filter(|_| !mailbox.answered).unwrap_or(&ended);
            let kind = match (ended, &write_error) {
                (Ended::Transport(_) | Ended::Fault(Fault::UnexpectedEof), Some(error))
                    if !mailbox.answered =>
                {
                    ErrorKind::Send(same(error))
                }
                _ => ended.kind(mailbox.answered),
            };
            let processed = mailbox.answered || self.machine.may_have_processed(*stream);
            let lost = !mailbox.answered && ended.is_loss();
            mailbox.failed = Some(Failure { kind, processed, refused: Refused::No, lost, in_turn: false });
        }
        self.ended = Some(ended);
        self.timer.disarm();
        self.call_all = true;
    }
}

/// Says goodbye where nobody else is left to do it (RFC 9113 §5.4.1: a GOAWAY should be sent before a connection is
/// closed; RFC 8446 §6.1: so must a `close_notify`). What the socket does not take at once stays unsaid: a drop cannot
/// wait.
impl<R: Runtime> Drop for Hub<R> {
    fn drop(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        if matches!(self.ended, Some(Ended::Transport(_))) || self.write_error.is_some() {
            return;
        }
        // Bytes that lie unread when a socket closes make the kernel send a reset, which may overtake the goodbye.
        let mut unread = loan::take();
        for _ in 0..FAREWELL_READS {
            unread.clear();
            if !matches!(self.stream.poll_recv(&mut cx, &mut unread), Poll::Ready(Ok(1..))) {
                break;
            }
        }
        loan::give_back(unread);
        self.machine.close(Reason::NoError);
        self.write_blocked = false;
        self.transmit(&mut cx);
        let _ = self.stream.poll_close_write(&mut cx);
    }
}
