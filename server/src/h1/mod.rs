//! One HTTP/1.1 connection: the machine on one side, a stream on the other, the application in the middle.
//!
//! A turn goes round in a circle until nothing moves: take events (`request`), let the application work (`answer`),
//! write what is queued, read. Most turns need not: see `ahead`. Everything is polled in place; no task and no box
//! stands between a request and its answer. `end` is what happens when no further message is read.

mod ahead;
mod answer;
mod end;
mod request;

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hyperman_http1::{CloseReason, Server, Timeout};
use hyperman_transport::{ByteStream, HangUp};
use pin_project_lite::pin_project;

use crate::body;
use crate::desk::{self, Desk};
use crate::ends::{App, Ends};
use crate::exchange::Exchange;
use crate::interim::Interim;
use crate::send_file::Sending;
use crate::settings::Settings;
use crate::upgrade::{self, Tunnel};

/// How often a connection is looked at that is not read from, 25 ms: a handler is to be dropped within 50 ms after its
/// peer's reset, and half of that is left for a busy loop.
const LOOK: Duration = Duration::from_millis(25);

/// How many slices one write carries: enough for a head, a few chunks and their frames.
const SLICES: usize = 16;

pin_project! {
    /// See the module's words.
    pub(crate) struct Http1<F, B> {
        machine: Server,
        #[pin]
        exchange: Exchange<F, B>,
        upload: Option<body::Sender>,
        extras: Option<Box<Extras>>,
        phase: Phase,
        read_ended: bool,
        // The stream holds bytes that it has not written.
        unflushed: bool,
        head_request: bool,
        // No request has come yet.
        fresh: bool,
        write_blocked: bool,
        draining: bool,
        // What `can_run_ahead` said at the end of the last turn.
        between: bool,
    }
}

/// What few exchanges need.
#[derive(Default)]
struct Extras {
    file: Option<Sending>,
    /// How many bytes the peer had not taken when there was no more room to write.
    unacknowledged: Option<u64>,
    interim: Option<Interim>,
    upgrade: Option<upgrade::Offer>,
    tunnel: Option<Tunnel>,
    /// The connection becomes HTTP/2 as soon as the 101 has left.
    http2: Option<Box<hyperman_http2::Server>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Requests come and answers go.
    Serving,
    /// The last bytes are written, then the connection closes.
    Closing,
    /// Our direction has ended; what the peer still sends is thrown away, so that it does not lose our last answer to
    /// a reset (RFC 9112 §9.6).
    Lingering,
    /// Another protocol has taken over.
    Tunnelling,
}

/// What a turn of a connection has come to.
pub(crate) enum Turn {
    /// The connection is over, as far as this protocol is concerned.
    Over,
    /// It must be polled again at that time, even if nothing happens.
    Waits(Option<Instant>),
}

/// How a connection has ended as one of HTTP/1.1.
pub(crate) enum Ending {
    /// It is over.
    Over,
    /// It goes on as HTTP/2 (RFC 7540 §3.2), with what was read past the request.
    Http2 { machine: Box<hyperman_http2::Server>, received: BytesMut },
}

/// Whether a step brought something about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved,
    Stalled,
    /// The connection is over.
    Done,
}

impl<F, B> Http1<F, B> {
    /// Whether closing in an orderly way would make half an answer look like a whole one.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.phase != Phase::Tunnelling && self.machine.is_cut_short()
    }
}

impl<F, B> Http1<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// A connection whose first bytes, `received`, speak no other protocol.
    pub(crate) fn new(settings: &Settings, received: BytesMut, since: Instant) -> Self {
        let mut machine = Server::new(Arc::clone(&settings.http1), since);
        if !received.is_empty() {
            machine.read_buf().extend_from_slice(&received);
            machine.received(received.len());
        }
        Http1 {
            machine,
            exchange: Exchange::Idle,
            upload: None,
            extras: None,
            phase: Phase::Serving,
            read_ended: false,
            unflushed: false,
            head_request: false,
            fresh: true,
            write_blocked: false,
            draining: false,
            between: false,
        }
    }

    /// One turn. When it is over, see [`ending`](Self::ending).
    #[inline(always)]
    pub(crate) fn poll<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Turn {
        let mut desk = desk::take(now);
        self.as_mut().project().machine.handle_timeout(now);
        if !self.between {
            self.as_mut().project().machine.lend(&mut desk.loan);
            return self.go_round(ends, cx, now, desk, 0);
        }
        let mut requests = 0;
        match self.as_mut().run_ahead(ends, cx, now, &mut desk.loan, &mut requests) {
            Step::Moved => self.go_round(ends, cx, now, desk, requests),
            step => {
                desk::give_back(desk);
                if step == Step::Done { Turn::Over } else { Turn::Waits(Some(self.machine.idle_timeout())) }
            }
        }
    }

    /// The circle, with the desk's loan lent.
    #[inline(never)]
    fn go_round<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        mut desk: Box<Desk>,
        requests: u32,
    ) -> Turn {
        let outcome = self.as_mut().turn(ends, cx, now, requests);
        let this = self.as_mut().project();
        this.machine.reclaim(&mut desk.loan);
        desk::give_back(desk);
        let between = self.can_run_ahead();
        let this = self.as_mut().project();
        *this.between = between;
        match outcome {
            Poll::Ready(()) => Turn::Over,
            Poll::Pending if *this.phase == Phase::Tunnelling => Turn::Waits(None),
            Poll::Pending => {
                let deadline = this.machine.poll_timeout().map(|(deadline, _)| deadline);
                let look = self.reading_rests().then(|| now + LOOK);
                Turn::Waits(deadline.into_iter().chain(look).min())
            }
        }
    }

    /// Whether the application is at work for a peer that is not listened to, as there is no room for what it sends: then
    /// no event tells that it has gone.
    fn reading_rests(&self) -> bool {
        let works = !self.exchange.is_idle() || self.upload.is_some();
        works && self.phase == Phase::Serving && !self.read_ended && !self.machine.wants_read()
    }

    /// Graceful shutdown: an idle connection is over at the next turn, a busy one after its answer.
    pub(crate) fn drain(self: Pin<&mut Self>) {
        let this = self.project();
        if !*this.draining {
            *this.draining = true;
            *this.between = false;
            this.machine.drain();
        }
    }

    fn turn<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        mut requests: u32,
    ) -> Poll<()> {
        // What a handler waits for cannot have come since it was called.
        let mut driven = requests > 0 && self.exchange.awaits_answer();
        let this = self.as_mut().project();
        *this.write_blocked = false;
        if let Some(upload) = this.upload {
            upload.unwatch();
        }
        if *this.unflushed || this.machine.has_transmit() {
            self.as_mut().credit_slow_reader(ends, now);
        }
        loop {
            let step = match self.phase {
                Phase::Serving => {
                    self.as_mut().serve(ends, cx, now, &mut requests, std::mem::take(&mut driven))
                }
                Phase::Closing => self.as_mut().close(ends, cx),
                Phase::Lingering => self.as_mut().linger(ends, cx),
                Phase::Tunnelling => self.as_mut().tunnel(ends, cx),
            };
            match step {
                Step::Moved if requests > ends.settings.config.requests_per_turn => {
                    // Others are waiting: go on at the next turn.
                    if self.as_mut().transmit(ends, cx) == Step::Done {
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Step::Moved => {}
                Step::Stalled => return Poll::Pending,
                Step::Done => return Poll::Ready(()),
            }
        }
    }

    /// A peer that reads slowly, but reads, is not stalled: the kernel has room for another write only when much of what it
    /// holds is gone. The least that counts is what a request's body must come to.
    fn credit_slow_reader<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        now: Instant,
    ) {
        let this = self.project();
        let stalled =
            matches!(this.machine.poll_timeout(), Some((deadline, Timeout::WriteStall)) if deadline <= now);
        let Some(extras) = this.extras.as_deref_mut().filter(|_| stalled) else { return };
        let Some((before, left)) = extras.unacknowledged.zip(ends.stream.unacknowledged()) else { return };
        let timeouts = &ends.settings.config.timeouts;
        let least = u128::from(timeouts.body_rate) * timeouts.write_stall.as_millis() / 1000;
        if u128::from(before.saturating_sub(left)) >= least.max(1) {
            extras.unacknowledged = Some(left);
            this.machine.write_moved();
        }
    }

    /// How it has ended.
    pub(crate) fn ending(self: Pin<&mut Self>) -> Ending {
        let this = self.project();
        let http2 = this.extras.as_mut().and_then(|extras| extras.http2.take());
        match http2 {
            Some(machine) if *this.phase == Phase::Tunnelling => {
                let received = this.machine.take_upgraded().map(BytesMut::from).unwrap_or_default();
                Ending::Http2 { machine, received }
            }
            _ => Ending::Over,
        }
    }

    /// One round of the circle.
    fn serve<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        requests: &mut u32,
        driven: bool,
    ) -> Step {
        if self.as_mut().take_events(ends, cx, now, requests, driven) == Step::Moved {
            return Step::Moved;
        }
        let step = self.as_mut().transmit(ends, cx);
        if step == Step::Done {
            return Step::Done;
        }
        if step == Step::Moved && (self.exchange.is_answering() || self.machine.has_transmit()) {
            // There is room again for what the answer's body has ready.
            return Step::Moved;
        }
        if self.as_mut().has_ended() {
            return Step::Moved;
        }
        match self.as_mut().read(ends, cx) {
            Step::Stalled => self.stall(ends, cx),
            step => step,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.machine.poll_timeout().is_some_and(|(deadline, _)| deadline <= now)
    }

    /// Writes what is queued.
    #[inline]
    fn transmit<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let this = self.project();
        if *this.write_blocked {
            return Step::Stalled;
        }
        let mut step = Step::Stalled;
        while this.machine.has_transmit() {
            let sent = if let Some(all) = this.machine.sole_slice() {
                ends.stream.poll_send(cx, &[IoSlice::new(all)])
            } else if this.machine.external() > 0 {
                match this.extras.as_mut().and_then(|extras| extras.file.as_mut()) {
                    Some(sending) => sending.poll_send(&mut ends.stream, cx),
                    None => Poll::Ready(Ok(0)),
                }
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = this.machine.poll_transmit(&mut slices);
                ends.stream.poll_send(cx, slices.get(..count).unwrap_or_default())
            };
            match sent {
                Poll::Pending => {
                    *this.write_blocked = true;
                    note_unacknowledged(this.extras, &ends.stream);
                    break;
                }
                // The peer is gone, or the file is: nothing that is left could be finished.
                Poll::Ready(Err(_) | Ok(0)) => return Step::Done,
                Poll::Ready(Ok(sent)) => {
                    this.machine.transmitted(sent);
                    step = Step::Moved;
                    if let Some(extras) = this.extras.as_deref_mut() {
                        extras.unacknowledged = None;
                        // The file must not stay open while the connection idles.
                        if extras.file.as_ref().is_some_and(Sending::is_over) {
                            extras.file = None;
                        }
                    }
                }
            }
        }
        match ends.stream.poll_flush(cx) {
            Poll::Ready(Err(_)) => Step::Done,
            flushed => {
                *this.unflushed = flushed.is_pending();
                this.machine.set_unflushed(*this.unflushed);
                if *this.unflushed {
                    note_unacknowledged(this.extras, &ends.stream);
                }
                step
            }
        }
    }

    /// Moves on to the next phase when no further message will be read.
    fn has_ended(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        let Some(reason) = this.machine.is_closed() else { return false };
        if reason == CloseReason::Upgraded {
            if this.machine.has_transmit() {
                return false;
            }
            *this.phase = Phase::Tunnelling;
        } else {
            *this.phase = Phase::Closing;
        }
        true
    }

    /// Reads once, as far as there is room.
    #[inline]
    fn read<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        if self.read_ended || !self.machine.wants_read() {
            return Step::Stalled;
        }
        self.receive(ends, cx)
    }

    #[inline]
    fn receive<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let this = self.project();
        match ends.stream.poll_recv(cx, this.machine.read_buf()) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(Ok(0)) => {
                *this.read_ended = true;
                this.machine.handle_eof();
                Step::Moved
            }
            Poll::Ready(Ok(received)) => {
                this.machine.received(received);
                Step::Moved
            }
            Poll::Ready(Err(_)) => Step::Done,
        }
    }

    /// Nothing moves: before the turn ends, see that whatever could move it has our waker.
    fn stall<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let hang_up = if self.reading_rests() { ends.stream.hang_up() } else { HangUp::None };
        if hang_up == HangUp::Both {
            return Step::Done;
        }
        let this = self.project();
        // The peer has gone (or has ended its direction, which counts as that unless the owner says otherwise), and
        // the application is at work for nobody.
        let app_works =
            this.exchange.awaits_answer() || (this.exchange.is_answering() && !*this.write_blocked);
        let ended = *this.read_ended || hang_up == HangUp::Peer;
        if ended && app_works && !ends.settings.config.half_close {
            return Step::Done;
        }
        if let Some(upload) = this.upload {
            let demand = upload.demand();
            if !upload.watch(demand, cx) {
                return Step::Moved;
            }
        }
        Step::Stalled
    }
}

/// There is no more room to write: remembers what the peer had not taken by then.
#[cold]
fn note_unacknowledged<IO: ByteStream>(extras: &mut Option<Box<Extras>>, stream: &IO) {
    let extras = extras.get_or_insert_default();
    if extras.unacknowledged.is_none() {
        extras.unacknowledged = stream.unacknowledged();
    }
}
