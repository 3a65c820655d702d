//! One HTTP/1.1 connection: the machine on one side, a stream on the other, the application in the middle.
//!
//! A turn goes round in a circle until nothing moves: take events, let the application work, write what is queued,
//! read. Everything is polled in place; no task and no box stands between a request and its answer.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::BytesMut;
use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Extensions, HeaderMap, Method, Request, Response, StatusCode};
use hyperman_http1::{BodyLength, BodySize, CloseReason, Error, Misuse, Server, ServerEvent};
use hyperman_transport::ByteStream;
use pin_project_lite::pin_project;

use crate::body::{self, Body, BodyError, Demand, QUEUE_BYTES};
use crate::desk;
use crate::ends::{App, Ends};
use crate::exchange::{Exchange, Piece, guarded};
use crate::gate::Word;
use crate::interim::Interim;
use crate::send_file::{SendFile, Sending};
use crate::settings::Settings;
use crate::upgrade::{self, Tunnel};

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
        head_request: bool,
        write_blocked: bool,
        draining: bool,
    }
}

/// What few exchanges need.
#[derive(Default)]
struct Extras {
    file: Option<Sending>,
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
            head_request: false,
            write_blocked: false,
            draining: false,
        }
    }

    /// One turn. Ready when the connection is over; the stream closes when this is dropped.
    pub(crate) fn poll<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Ending> {
        let mut desk = desk::take(now);
        {
            let this = self.as_mut().project();
            this.machine.lend(&mut desk.loan);
            this.machine.handle_timeout(now);
        }
        let outcome = self.as_mut().turn(ends, cx, now);
        self.project().machine.reclaim(&mut desk.loan);
        desk::give_back(desk);
        outcome
    }

    /// When the connection must be polled again even if nothing happens.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Tunnelling => None,
            _ => self.machine.poll_timeout().map(|(deadline, _)| deadline),
        }
    }

    /// Graceful shutdown: an idle connection is over at the next turn, a busy one after its answer.
    pub(crate) fn drain(self: Pin<&mut Self>) {
        let this = self.project();
        if !*this.draining {
            *this.draining = true;
            this.machine.drain();
        }
    }

    fn turn<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Ending> {
        let this = self.as_mut().project();
        *this.write_blocked = false;
        if let Some(upload) = this.upload {
            upload.unwatch();
        }
        let mut requests = 0;
        loop {
            let step = match self.phase {
                Phase::Serving => self.as_mut().serve(ends, cx, now, &mut requests),
                Phase::Closing => self.as_mut().close(ends, cx),
                Phase::Lingering => self.as_mut().linger(ends, cx),
                Phase::Tunnelling => self.as_mut().tunnel(ends, cx),
            };
            match step {
                Step::Moved if requests > ends.settings.config.requests_per_turn => {
                    // Others are waiting: go on at the next turn.
                    if self.as_mut().transmit(ends, cx) == Step::Done {
                        return Poll::Ready(Ending::Over);
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Step::Moved => {}
                Step::Stalled => return Poll::Pending,
                Step::Done => return Poll::Ready(self.ending()),
            }
        }
    }

    fn ending(self: Pin<&mut Self>) -> Ending {
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
    ) -> Step {
        let before = *requests;
        match self.as_mut().run_ahead(ends, cx, now, requests) {
            Step::Moved => {}
            step => return step,
        }
        // What a handler waits for cannot have come since it was called.
        let driven = *requests != before && self.exchange.awaits_answer();
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

    /// The way that most requests go, past the circle: between two exchanges, read; a request that is known and plain
    /// is answered on the spot. `Moved` leaves what there is to the circle.
    #[inline]
    fn run_ahead<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        requests: &mut u32,
    ) -> Step {
        if !self.exchange.is_idle() || self.upload.is_some() {
            return Step::Moved;
        }
        let mut idle = self.machine.is_idle();
        loop {
            if idle {
                if self.read_ended {
                    return Step::Moved;
                }
                match self.as_mut().receive(ends, cx) {
                    Step::Moved => {}
                    Step::Done => return Step::Done,
                    // Every deadline has moved where something was answered just now.
                    Step::Stalled if *requests == 0 && self.is_due(now) => return Step::Moved,
                    Step::Stalled => return Step::Stalled,
                }
            }
            let before = *requests;
            if guarded(|| self.as_mut().answer_plain(ends, cx, requests)).is_none() {
                self.as_mut().answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
            }
            if *requests == before
                || *requests > ends.settings.config.requests_per_turn
                || !self.exchange.is_idle()
            {
                return Step::Moved;
            }
            if self.as_mut().transmit(ends, cx) == Step::Done {
                return Step::Done;
            }
            idle = self.machine.is_idle();
            if !idle {
                return Step::Moved;
            }
        }
    }

    /// Hands plain requests to the application, one after the other, as long as it answers each at once. To be called
    /// within [`guarded`].
    #[inline]
    fn answer_plain<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        requests: &mut u32,
    ) {
        loop {
            let this = self.as_mut().project();
            let body = || Body::empty().on(&ends.info);
            let Some(mut request) = this.machine.next_plain(body) else { return };
            *requests += 1;
            *this.head_request = request.method() == Method::HEAD;
            if ends.is_misdirected(&request) {
                self.as_mut().answer_plainly(StatusCode::MISDIRECTED_REQUEST);
                continue;
            }
            if let Some(interim) = ends.extend(&mut request) {
                this.extras.get_or_insert_default().interim = Some(interim);
            }
            if this.exchange.call(&mut ends.service, request, cx) {
                self.as_mut().drive_unguarded(ends, cx);
            } else {
                self.as_mut().answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
            }
            if !self.exchange.is_idle()
                || *requests > ends.settings.config.requests_per_turn
                || self.machine.queued() >= QUEUE_BYTES
            {
                return;
            }
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.machine.poll_timeout().is_some_and(|(deadline, _)| deadline <= now)
    }

    /// Takes what the machine has to say and lets the application work, until neither moves. `driven`: the application
    /// has just done what it can.
    fn take_events<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        requests: &mut u32,
        mut driven: bool,
    ) -> Step {
        let limit = ends.settings.config.requests_per_turn;
        loop {
            let mut moved = !std::mem::take(&mut driven) && self.as_mut().drive(ends, cx);
            let demand = self.as_mut().heed_demand();
            // A peer that does not read its answers, or a handler that does not read its body, is not fed.
            let full = demand == Some(Demand::Full) || self.machine.queued() >= QUEUE_BYTES;
            if !full || self.is_due(now) {
                match self.as_mut().project().machine.next_event() {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        moved = true;
                        if matches!(event, ServerEvent::Request { .. }) {
                            *requests += 1;
                        }
                        self.as_mut().handle(ends, event, cx, now);
                    }
                    Err(error) => {
                        self.fault(ends, &error);
                        return Step::Moved;
                    }
                }
            }
            if *requests > limit {
                return Step::Moved;
            }
            if !moved {
                return Step::Stalled;
            }
        }
    }

    fn handle<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        event: ServerEvent,
        cx: &mut Context<'_>,
        now: Instant,
    ) {
        match event {
            ServerEvent::Request { request, body, expect_continue, upgrade } => {
                let this = self.as_mut().project();
                *this.head_request = request.method() == Method::HEAD;
                if upgrade
                    && body == BodyLength::Empty
                    && let Some(machine) = upgrade_to_http2(this.machine, ends, &request, now)
                {
                    this.extras.get_or_insert_default().http2 = Some(machine);
                    return;
                }
                let incoming = match body {
                    BodyLength::Empty => Ok(Body::empty()),
                    length => arriving_body(this.machine, this.upload, length, expect_continue),
                };
                match incoming {
                    Ok(_) if ends.is_misdirected(&request) => {
                        self.answer_plainly(StatusCode::MISDIRECTED_REQUEST);
                    }
                    Ok(body) => self.begin(ends, request.map(|()| body), upgrade, cx),
                    Err(error) => self.fault(ends, &error),
                }
            }
            ServerEvent::Data(data) => {
                if let Some(upload) = &self.upload {
                    upload.send(data);
                }
            }
            ServerEvent::Trailers(trailers) => {
                if let Some(upload) = &self.upload {
                    upload.trailers(trailers);
                }
            }
            ServerEvent::End => {
                if let Some(upload) = self.project().upload.take() {
                    upload.end(Ok(()));
                }
            }
        }
    }

    fn begin<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        request: Request<Body>,
        upgrade: bool,
        cx: &mut Context<'_>,
    ) {
        let this = self.project();
        let mut request = request.map(|body| body.on(&ends.info));
        let interim = ends.extend(&mut request);
        if interim.is_some() {
            this.extras.get_or_insert_default().interim = interim;
        }
        if upgrade {
            let (offer, on_upgrade) = upgrade::offer();
            request.extensions_mut().insert(on_upgrade);
            this.extras.get_or_insert_default().upgrade = Some(offer);
        }
        this.exchange.begin(&mut ends.service, request, cx);
    }

    /// Lets the application work until it waits for something. Says whether anything moved.
    fn drive<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> bool {
        if self.exchange.is_idle() {
            return false;
        }
        guarded(|| self.as_mut().drive_unguarded(ends, cx)).unwrap_or_else(|| {
            self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
            true
        })
    }

    /// The same, to be called within [`guarded`].
    #[inline]
    fn drive_unguarded<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut moved = false;
        if self.exchange.awaits_answer() {
            let this = self.as_mut().project();
            match this.exchange.poll_answer_unguarded(&mut ends.service, cx) {
                Poll::Pending => return self.send_interims(),
                Poll::Ready(Some(response)) => self.as_mut().answer(ends, response),
                Poll::Ready(None) => self.as_mut().answer_plainly(StatusCode::INTERNAL_SERVER_ERROR),
            }
            moved = true;
        }
        while self.exchange.is_answering()
            && self.machine.queued() < QUEUE_BYTES
            && self.machine.external() == 0
        {
            match self.as_mut().project().exchange.poll_piece_unguarded(cx) {
                Poll::Pending => break,
                Poll::Ready(piece) => self.as_mut().send_piece(piece),
            }
            moved = true;
        }
        moved
    }

    fn send_interims(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        let Some(interim) = this.extras.as_ref().and_then(|extras| extras.interim.as_ref()) else {
            return false;
        };
        let mut moved = false;
        while let Some((status, headers)) = interim.take() {
            moved = true;
            if let Err(misuse) = this.machine.send_interim(status, &headers) {
                tracing::warn!("a 1xx answer was not sent: {misuse}");
            }
        }
        moved
    }

    /// Queues the head of an answer and gets its body ready to be driven.
    #[inline]
    fn answer<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        response: Response<B>,
    ) {
        if self.extras.is_some() {
            self.as_mut().send_interims();
        }
        if self.upload.is_some() {
            // A handler that is through with the request's body before it answers is known to be.
            self.as_mut().heed_demand();
        }
        if ends.settings.gate.word() != Word::Serve {
            // The word may have come since this turn began: from another thread, or from the handler.
            self.as_mut().drain();
        }
        let mut this = self.as_mut().project();
        let size = body_size(response.body());
        if let Err(misuse) = this.machine.send_head(response.status(), response.headers(), size) {
            return self.refuse_answer(&misuse);
        }
        if this.machine.is_closed() == Some(CloseReason::Upgraded) {
            return this.exchange.set(Exchange::Idle);
        }
        if let Some(extras) = this.extras {
            extras.upgrade = None;
        }
        if size == BodySize::Known(0) || *this.head_request {
            this.exchange.set(Exchange::Idle);
            return self.end_answer();
        }
        if !response.extensions().is_empty() && self.as_mut().send_file(ends, response.extensions(), size) {
            self.as_mut().project().exchange.set(Exchange::Idle);
            return self.end_answer();
        }
        self.project().exchange.set(Exchange::Answering { body: response.into_body() });
    }

    #[cold]
    fn refuse_answer(self: Pin<&mut Self>, misuse: &Misuse) {
        tracing::error!("a handler's answer cannot be sent: {misuse}");
        self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
    }

    /// Announces a file in place of the answer's body, if the answer asks for that and the stream can do it.
    fn send_file<IO: ByteStream, S>(
        self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        extensions: &Extensions,
        size: BodySize,
    ) -> bool {
        let this = self.project();
        let Some(file) = extensions.get::<SendFile>() else { return false };
        // One file at a time: pipelined answers behind it go through their bodies.
        let busy = this.extras.as_ref().is_some_and(|extras| extras.file.is_some());
        if busy
            || !ends.stream.can_send_file()
            || size != BodySize::Known(file.length)
            || this.machine.send_external(file.length).is_err()
        {
            return false;
        }
        let sending = Sending { file: file.clone(), progress: extensions.get().cloned() };
        this.extras.get_or_insert_default().file = Some(sending);
        true
    }

    /// An answer of our own, in place of the one that the handler failed to give. Without effect but an end of the
    /// connection where one has begun.
    #[cold]
    fn answer_plainly(mut self: Pin<&mut Self>, status: StatusCode) {
        let mut this = self.as_mut().project();
        this.exchange.set(Exchange::Idle);
        if this.machine.send_head(status, &HeaderMap::new(), BodySize::Known(0)).is_ok() {
            self.end_answer();
        } else {
            this.machine.abort();
        }
    }

    #[inline]
    fn send_piece(mut self: Pin<&mut Self>, piece: Piece) {
        let mut this = self.as_mut().project();
        let sent = match piece {
            Piece::Data(data) => {
                let sent = this.machine.send_data(data);
                if sent.is_ok() && !this.exchange.body_has_ended() {
                    return;
                }
                sent
            }
            Piece::Trailers(trailers) => this.machine.send_trailers(&trailers),
            Piece::End => Ok(()),
            Piece::Failed => {
                this.machine.abort();
                return this.exchange.set(Exchange::Idle);
            }
        };
        this.exchange.set(Exchange::Idle);
        match sent {
            Ok(()) => self.end_answer(),
            Err(misuse) => {
                tracing::error!("an answer's body cannot be sent: {misuse}");
                this.machine.abort();
            }
        }
    }

    /// The application has said all that it has to say for this request.
    #[inline]
    fn end_answer(self: Pin<&mut Self>) {
        let this = self.project();
        if let Err(misuse) = this.machine.end() {
            tracing::error!("an answer's body ended early: {misuse}");
        }
    }

    /// Acts on what the reader of the request's body wants, and says what that is.
    fn heed_demand(self: Pin<&mut Self>) -> Option<Demand> {
        let this = self.project();
        let demand = this.upload.as_ref()?.demand();
        match demand {
            Demand::Waiting => this.machine.send_continue(),
            Demand::Room | Demand::Full => {}
            Demand::Dropped => {
                *this.upload = None;
                this.machine.ignore_body();
                return None;
            }
        }
        this.machine.want_body(demand != Demand::Full);
        Some(demand)
    }

    /// The peer broke the protocol or was too slow: whoever works for it is dropped, and it is told why.
    fn fault<IO: ByteStream, S: App<F, B>>(self: Pin<&mut Self>, ends: &Ends<IO, S>, error: &Error) {
        tracing::debug!("connection of {}: {error}", ends.info.peer);
        let mut this = self.project();
        if let Some(upload) = this.upload.take() {
            let too_large = error.status() == Some(StatusCode::PAYLOAD_TOO_LARGE);
            upload.end(Err(if too_large { BodyError::TooLarge } else { BodyError::Disconnected }));
        }
        this.exchange.set(Exchange::Idle);
        this.machine.answer_fault(error);
        *this.phase = Phase::Closing;
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
                    break;
                }
                // The peer is gone, or the file is: nothing that is left could be finished.
                Poll::Ready(Err(_) | Ok(0)) => return Step::Done,
                Poll::Ready(Ok(sent)) => {
                    this.machine.transmitted(sent);
                    step = Step::Moved;
                    // The file must not stay open while the connection idles.
                    if let Some(extras) = this.extras.as_deref_mut()
                        && extras.file.as_ref().is_some_and(Sending::is_over)
                    {
                        extras.file = None;
                    }
                }
            }
        }
        match ends.stream.poll_flush(cx) {
            Poll::Ready(Err(_)) => Step::Done,
            _ => step,
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
        let this = self.project();
        // The peer has gone (or has ended its direction, which counts as that unless the owner says otherwise), and
        // the application is at work for nobody.
        let app_works =
            this.exchange.awaits_answer() || (this.exchange.is_answering() && !*this.write_blocked);
        if *this.read_ended && app_works && !ends.settings.config.half_close {
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

    /// Writes the last bytes, then ends our direction.
    fn close<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        // Throws away what came, and lets the timers run.
        if self.as_mut().project().machine.next_event().is_err() {
            return Step::Done;
        }
        if self.as_mut().transmit(ends, cx) == Step::Done {
            return Step::Done;
        }
        let this = self.project();
        if this.machine.has_transmit() || ends.stream.poll_flush(cx).is_pending() {
            return Step::Stalled;
        }
        match ends.stream.poll_close_write(cx) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(Ok(())) if this.machine.needs_linger() && !*this.read_ended => {
                *this.phase = Phase::Lingering;
                Step::Moved
            }
            Poll::Ready(_) => Step::Done,
        }
    }

    fn linger<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let thrown_away = self.as_mut().project().machine.next_event();
        if thrown_away.is_err() || !self.machine.needs_linger() {
            return Step::Done;
        }
        self.read(ends, cx)
    }

    /// Carries bytes between the stream and whoever took the upgrade.
    fn tunnel<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let this = self.project();
        let extras = this.extras.get_or_insert_default();
        if extras.http2.is_some() {
            return Step::Done;
        }
        if extras.tunnel.is_none() {
            let early = this.machine.take_upgraded().unwrap_or_default();
            match extras.upgrade.take() {
                Some(offer) => extras.tunnel = Some(offer.accept(early)),
                None => return Step::Done,
            }
        }
        let Some(tunnel) = &mut extras.tunnel else { return Step::Done };
        match tunnel.poll(&mut ends.stream, cx) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(_) => Step::Done,
        }
    }
}

/// The machine that goes on with the connection where `request` asks for `h2c` (RFC 7540 §3.2), with the 101 queued.
/// `None` leaves the request to be answered by HTTP/1.1, as an upgrade may always be.
fn upgrade_to_http2<IO, S>(
    machine: &mut Server,
    ends: &Ends<IO, S>,
    request: &Request<()>,
    now: Instant,
) -> Option<Box<hyperman_http2::Server>> {
    if !ends.settings.config.http2 || ends.info.is_encrypted() {
        return None;
    }
    let names = |field, token: &str| {
        let mut values = request.headers().get_all(field).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(token)))
    };
    if !names(UPGRADE, "h2c") || !names(CONNECTION, "http2-settings") {
        return None;
    }
    let config = Arc::clone(&ends.settings.http2);
    let http2 = hyperman_http2::Server::upgraded(config, now, request.clone()).ok()?;
    let upgrade = HeaderMap::from_iter([(UPGRADE, HeaderValue::from_static("h2c"))]);
    machine.send_head(StatusCode::SWITCHING_PROTOCOLS, &upgrade, BodySize::Known(0)).ok()?;
    Some(Box::new(http2))
}

/// What the answer's body says of its size.
#[inline]
fn body_size<B: http_body::Body>(body: &B) -> BodySize {
    if body.is_end_stream() {
        return BodySize::Known(0);
    }
    match body.size_hint().exact() {
        Some(length) => BodySize::Known(length),
        None => BodySize::Unknown,
    }
}

/// The body for a request whose head has just come: whole when all of it is here already, else a queue that starts
/// with what is.
fn arriving_body(
    machine: &mut Server,
    upload: &mut Option<body::Sender>,
    length: BodyLength,
    expect_continue: bool,
) -> Result<Body, Error> {
    let mut pieces: [Option<ServerEvent>; 2] = [None, None];
    if !expect_continue {
        for piece in &mut pieces {
            match machine.next_event()? {
                None => break,
                Some(event) => *piece = Some(event),
            }
        }
    }
    let (sender, receiver) = match (pieces, length) {
        ([Some(ServerEvent::End), _], _) => return Ok(Body::empty()),
        ([Some(ServerEvent::Data(data)), Some(ServerEvent::End)], _) => return Ok(Body::whole(data)),
        (pieces, length) => {
            let declared = match length {
                BodyLength::Known(length) => Some(length),
                _ => None,
            };
            let (sender, receiver) = body::channel(declared);
            for piece in pieces.into_iter().flatten() {
                match piece {
                    ServerEvent::Data(data) => sender.send(data),
                    ServerEvent::Trailers(trailers) => sender.trailers(trailers),
                    ServerEvent::End => {
                        sender.end(Ok(()));
                        return Ok(Body::queue(receiver));
                    }
                    ServerEvent::Request { .. } => {}
                }
            }
            (sender, receiver)
        }
    };
    *upload = Some(sender);
    Ok(Body::queue(receiver))
}
