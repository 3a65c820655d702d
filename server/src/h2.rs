//! One HTTP/2 connection: the machine on one side, a stream of bytes on the other, and in the middle as many exchanges
//! as the peer has streams, each polled in place when it has something to say.
//!
//! A turn goes round in a circle until nothing moves: take events, poll the exchanges that were woken, write what is
//! queued, read. All that is ready in a turn leaves in one write.

mod stream;

use std::collections::HashMap;
use std::io::IoSlice;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::BytesMut;
use http::{HeaderMap, Method, Request, StatusCode};
use hyperman_http2::{BodyLength, BodySize, Server, ServerEvent, StreamId};
use hyperman_transport::ByteStream;

use crate::body::{self, Body, BodyError};
use crate::desk;
use crate::ends::{App, Ends};
use crate::exchange::Exchange;
use crate::fleet::Fleet;
use crate::upgrade;

use stream::Berth;

/// How many slices one write carries, 64: a few dozen streams' heads and bodies.
const SLICES: usize = 64;

/// How many times `requests_per_turn` a connection is answered before others get their turn: it carries the streams of
/// what were as many connections.
const TURNS_OF_HTTP1: u32 = 8;

/// How many octets a connection reads and writes before others get their turn, 1 MiB: about a millisecond, and so much
/// that going round costs nothing.
const TURN_OCTETS: usize = 1024 * 1024;

/// See the module's words.
pub(crate) struct Http2<F, B> {
    machine: Server,
    fleet: Fleet<Exchange<F, B>>,
    /// What is known of each berth's stream, by the berth's number.
    berths: Vec<Berth>,
    /// The berth of each stream that is not over.
    open: HashMap<StreamId, usize, foldhash::fast::FixedState>,
    read_ended: bool,
    /// The machine was told that nothing more comes.
    end_known: bool,
    write_blocked: bool,
    draining: bool,
    /// Octets that were read and written in this turn.
    carried: usize,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The last frames are written, until then, and the connection closes.
    Closing(Instant),
    /// Our direction has ended; what still comes is thrown away until then, so that the peer reads our GOAWAY.
    Lingering(Instant),
}

/// Whether a step brought something about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved,
    Stalled,
    /// The connection is over.
    Done,
}

impl<F, B> Http2<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// A connection that goes on with `machine`, which has not seen what was `received` yet.
    pub(crate) fn new(mut machine: Server, received: &BytesMut) -> Self {
        if !received.is_empty() {
            machine.read_buf().extend_from_slice(received);
            machine.received(received.len());
        }
        Http2 {
            machine,
            fleet: Fleet::new(),
            berths: Vec::new(),
            open: HashMap::default(),
            read_ended: false,
            end_known: false,
            write_blocked: false,
            draining: false,
            carried: 0,
            phase: Phase::Serving,
        }
    }

    /// One turn. Ready when the connection is over.
    pub(crate) fn poll<IO: ByteStream, S: App<F, B>>(
        &mut self,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        let mut desk = desk::take(now);
        self.machine.lend(&mut desk.loan2);
        self.machine.handle_timeout(now);
        let outcome = self.turn(ends, cx, now);
        self.machine.reclaim(&mut desk.loan2);
        desk::give_back(desk);
        outcome
    }

    /// When the connection must be polled again even if nothing happens.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Closing(until) | Phase::Lingering(until) => Some(until),
            Phase::Serving => self.machine.poll_timeout().map(|(deadline, _)| deadline),
        }
    }

    /// Graceful shutdown: streams that are open are answered, then the connection is over.
    pub(crate) fn drain(&mut self) {
        if !self.draining {
            self.draining = true;
            self.machine.drain();
        }
    }

    fn turn<IO: ByteStream, S: App<F, B>>(
        &mut self,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<()> {
        self.write_blocked = false;
        self.carried = 0;
        self.fleet.begin_turn();
        let mut requests = 0;
        loop {
            let step = match self.phase {
                Phase::Serving => self.serve(ends, cx, now, &mut requests),
                Phase::Closing(until) | Phase::Lingering(until) if now >= until => Step::Done,
                Phase::Closing(_) => self.close(ends, cx, now),
                Phase::Lingering(_) => self.linger(&mut ends.stream, cx),
            };
            match step {
                Step::Moved
                    if requests > TURNS_OF_HTTP1 * ends.settings.config.requests_per_turn
                        || self.carried > TURN_OCTETS =>
                {
                    if self.transmit(ends, cx) == Step::Done {
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

    /// One round of the circle.
    fn serve<IO: ByteStream, S: App<F, B>>(
        &mut self,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        requests: &mut u32,
    ) -> Step {
        // Whoever takes nothing of our last words is not waited for longer than for anything else.
        let closing = Phase::Closing(now + ends.settings.config.timeouts.write_stall);
        loop {
            match self.machine.next_event() {
                Ok(Some(event)) => self.handle(ends, event, requests),
                Ok(None) => match self.fleet.rung(cx) {
                    Some(berth) => self.drive(ends, berth),
                    None => break,
                },
                Err(error) => {
                    tracing::debug!("connection of {}: {error}", ends.info.peer);
                    self.abandon();
                    self.phase = closing;
                    return Step::Moved;
                }
            }
            if *requests > TURNS_OF_HTTP1 * ends.settings.config.requests_per_turn {
                return Step::Moved;
            }
        }
        match self.transmit(ends, cx) {
            Step::Stalled => {}
            step => return step,
        }
        if self.read_ended && !self.end_known && self.machine.open_streams() == 0 {
            self.end_known = true;
            self.machine.handle_eof();
            return Step::Moved;
        }
        if self.machine.is_closed().is_some() {
            self.phase = closing;
            return Step::Moved;
        }
        self.read(ends, cx)
    }

    fn handle<IO: ByteStream, S: App<F, B>>(
        &mut self,
        ends: &mut Ends<IO, S>,
        event: ServerEvent,
        requests: &mut u32,
    ) {
        let berth = match &event {
            ServerEvent::Request { .. } => {
                *requests += 1;
                None
            }
            ServerEvent::Data { stream, .. }
            | ServerEvent::Trailers { stream, .. }
            | ServerEvent::End { stream }
            | ServerEvent::Reset { stream, .. }
            | ServerEvent::Capacity { stream } => self.open.get(stream).copied(),
            ServerEvent::GoAway { .. } => return,
        };
        match event {
            ServerEvent::Request { stream, request, body, expect_continue: _ } => {
                self.begin(ends, stream, request, body);
            }
            ServerEvent::Data { stream, data } => match berth.and_then(|berth| self.berths.get_mut(berth)) {
                Some(place) => place.receive(&mut self.machine, data),
                // The exchange is over; the machine throws away what follows.
                None => self.machine.release(stream, data.len()),
            },
            ServerEvent::Trailers { trailers, .. } => {
                if let Some(upload) = berth.and_then(|berth| self.berths.get(berth)?.upload.as_ref()) {
                    upload.trailers(trailers);
                }
            }
            ServerEvent::End { .. } => {
                if let Some(place) = berth.and_then(|berth| self.berths.get_mut(berth)) {
                    place.end_upload();
                }
            }
            ServerEvent::Reset { stream, .. } => match berth {
                Some(berth) => self.finish(berth),
                None => self.machine.finished(stream),
            },
            ServerEvent::Capacity { .. } | ServerEvent::GoAway { .. } => {}
        }
        if let Some(berth) = berth {
            self.drive(ends, berth);
        }
    }

    fn begin<IO: ByteStream, S: App<F, B>>(
        &mut self,
        ends: &mut Ends<IO, S>,
        stream: StreamId,
        request: Request<()>,
        length: BodyLength,
    ) {
        if ends.is_misdirected(&request) {
            let misdirected = StatusCode::MISDIRECTED_REQUEST;
            // The stream may be gone already; then nobody waits for an answer.
            let _ = self.machine.send_head(stream, misdirected, &HeaderMap::new(), BodySize::Known(0));
            self.machine.ignore_body(stream);
            self.machine.finished(stream);
            return;
        }
        let berth = self.fleet.take(|| Exchange::Idle);
        if self.berths.len() <= berth {
            self.berths.resize_with(berth + 1, Berth::default);
        }
        let connect = request.method() == Method::CONNECT;
        let (upload, body) = match length {
            // What follows a CONNECT is no body.
            _ if connect => (None, Body::empty()),
            BodyLength::Empty => (None, Body::empty()),
            length => {
                let declared = match length {
                    BodyLength::Known(length) => Some(length),
                    _ => None,
                };
                let (sender, receiver) = body::channel(declared);
                (Some(sender), Body::queue(receiver))
            }
        };
        let mut place = Berth::default();
        place.stream = Some(stream);
        place.upload = upload;
        place.connect = connect;
        // No event tells the end of what ended with its head.
        place.incoming_ended = matches!(length, BodyLength::Empty);
        place.head = request.method() == Method::HEAD;
        let mut request = request.map(|()| body.on(&ends.info));
        place.interim = ends.extend(&mut request);
        if connect {
            let (offer, on_upgrade) = upgrade::offer();
            request.extensions_mut().insert(on_upgrade);
            place.offer = Some(offer);
        }
        if let Some(old) = self.berths.get_mut(berth) {
            *old = place;
        }
        if let Some((exchange, mut cx)) = self.fleet.get(berth) {
            exchange.begin(&mut ends.service, request, &mut cx);
        }
        self.open.insert(stream, berth);
        self.drive(ends, berth);
    }

    /// Lets the exchange of a berth work until it waits for something.
    fn drive<IO: ByteStream, S: App<F, B>>(&mut self, ends: &mut Ends<IO, S>, berth: usize) {
        let Some(place) = self.berths.get_mut(berth) else { return };
        let Some((exchange, cx)) = self.fleet.get(berth) else { return };
        if place.drive(exchange, cx, &mut self.machine, &mut ends.service).is_ready() {
            self.finish(berth);
        }
    }

    /// The exchange of a berth is over, well or not.
    fn finish(&mut self, berth: usize) {
        if let Some((mut exchange, _)) = self.fleet.get(berth) {
            exchange.set(Exchange::Idle);
        }
        if let Some(place) = self.berths.get_mut(berth)
            && let Some(stream) = std::mem::take(place).stream
        {
            self.open.remove(&stream);
            self.machine.finished(stream);
        }
        self.fleet.give_back(berth);
    }

    /// The connection is over: whoever works for it is dropped.
    fn abandon(&mut self) {
        let berths: Vec<usize> = self.open.values().copied().collect();
        for berth in berths {
            if let Some(upload) = self.berths.get_mut(berth).and_then(|place| place.upload.take()) {
                upload.end(Err(BodyError::Disconnected));
            }
            self.finish(berth);
        }
    }

    /// Writes what is queued.
    fn transmit<IO: ByteStream, S>(&mut self, ends: &mut Ends<IO, S>, cx: &mut Context<'_>) -> Step {
        if self.write_blocked {
            return Step::Stalled;
        }
        let mut step = Step::Stalled;
        while self.machine.has_transmit() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.machine.poll_transmit(&mut slices);
            if count == 0 {
                break;
            }
            match ends.stream.poll_send(cx, slices.get(..count).unwrap_or_default()) {
                Poll::Pending => {
                    self.write_blocked = true;
                    break;
                }
                Poll::Ready(Err(_) | Ok(0)) => return Step::Done,
                Poll::Ready(Ok(sent)) => {
                    self.machine.transmitted(sent);
                    step = Step::Moved;
                    self.carried += sent;
                    if self.carried > TURN_OCTETS {
                        break;
                    }
                }
            }
        }
        match ends.stream.poll_flush(cx) {
            Poll::Ready(Err(_)) => Step::Done,
            _ => step,
        }
    }

    /// Reads once, as far as there is room.
    fn read<IO: ByteStream, S>(&mut self, ends: &mut Ends<IO, S>, cx: &mut Context<'_>) -> Step {
        if self.read_ended || !self.machine.wants_read() {
            return Step::Stalled;
        }
        match ends.stream.poll_recv(cx, self.machine.read_buf()) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(Ok(0)) => {
                self.read_ended = true;
                self.end_known = !(ends.settings.config.half_close && self.only_answers_are_due());
                if self.end_known {
                    self.machine.handle_eof();
                }
                Step::Moved
            }
            Poll::Ready(Ok(received)) => {
                self.machine.received(received);
                self.carried += received;
                Step::Moved
            }
            Poll::Ready(Err(_)) => Step::Done,
        }
    }

    /// Whether every request that is under way has come whole, so that a peer which ended its direction may still be
    /// waiting for the answers.
    fn only_answers_are_due(&self) -> bool {
        let whole = |berth: &usize| self.berths.get(*berth).is_some_and(|place| place.incoming_ended);
        self.machine.open_streams() > 0 && self.open.values().all(whole)
    }

    /// Writes the last frames, then ends our direction.
    fn close<IO: ByteStream, S>(
        &mut self,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Step {
        if self.transmit(ends, cx) == Step::Done {
            return Step::Done;
        }
        if self.machine.has_transmit() && !self.write_blocked {
            return Step::Moved;
        }
        if self.machine.has_transmit() || ends.stream.poll_flush(cx).is_pending() {
            return Step::Stalled;
        }
        match ends.stream.poll_close_write(cx) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(Ok(())) if self.machine.needs_linger() && !self.read_ended => {
                self.phase = Phase::Lingering(now + ends.settings.config.timeouts.linger);
                Step::Moved
            }
            Poll::Ready(_) => Step::Done,
        }
    }

    /// Throws away what the peer still sends.
    fn linger<IO: ByteStream>(&mut self, stream: &mut IO, cx: &mut Context<'_>) -> Step {
        let mut scrap = hyperman_transport::loan::take();
        let received = stream.poll_recv(cx, &mut scrap);
        hyperman_transport::loan::give_back(scrap);
        match received {
            Poll::Pending => Step::Stalled,
            Poll::Ready(Ok(received @ 1..)) => {
                self.carried += received;
                Step::Moved
            }
            Poll::Ready(_) => Step::Done,
        }
    }
}
