//! One request and its answer on a connection that others use as well.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Method, Uri};
use hyperman_http1::{BodyLength, BodySize, ClientEvent};
use hyperman_http2::{BodyLength as Length, BodySize as Size, Misuse, Reason, StreamError, StreamId};
use hyperman_transport::{Runtime, Timer};

use crate::body::{Body, BoxStream, Kind};
use crate::client::Inner;
use crate::error::ErrorKind;
use crate::exchange::{Answer, Arrival, Early};
use crate::h2::ending::Failure;
use crate::h2::hub::{Hub, Letter, Shared};

/// How many times one poll looks for more to do before the loop's other tasks get their turn.
const ROUNDS: u32 = 32;

pub(crate) struct Exchange<R: Runtime> {
    client: Arc<Inner<R>>,
    shared: Arc<Shared<R>>,
    seat: usize,
    /// From when the request is sent until the exchange is over.
    stream: Option<StreamId>,
    /// Whether it is counted among those that wait to be sent.
    opening: bool,
    upload: Upload<R::Timer>,
    /// The final answer, from when it comes until it is taken.
    answer: Option<Answer>,
    /// It is a success: whoever answers so early wants the rest of the request (RFC 9110 §7.5), unless it resets the stream
    /// (RFC 9113 §8.1).
    succeeded: bool,
}

/// What is left of the request's body.
enum Upload<T> {
    /// Nothing, or nothing that anybody wants.
    Done,
    /// Waits for 100 (Continue), or for the timer (RFC 9110 §10.1.1).
    Held { body: Kind, timer: T, until: Instant },
    /// Is asked for more as the connection takes it.
    Streaming(BoxStream),
    /// Was not wanted: the final answer came in place of 100 (Continue). Nothing of it was sent.
    Unwanted(Kind),
}

/// A request that is to be sent.
pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    pub(super) fields: &'a HeaderMap,
    /// Until when the body waits for 100 (Continue), if it does.
    pub(super) hold_until: Option<Instant>,
}

impl<R: Runtime> Exchange<R> {
    pub(super) fn new(client: Arc<Inner<R>>, shared: Arc<Shared<R>>) -> Box<Self> {
        let seat = shared.relay.seat();
        let upload = Upload::Done;
        Box::new(Exchange {
            client,
            shared,
            seat,
            stream: None,
            opening: false,
            upload,
            answer: None,
            succeeded: false,
        })
    }

    /// The server's address.
    pub(crate) fn peer(&self) -> std::net::SocketAddr {
        self.shared.peer
    }

    /// The final answer, once it has arrived.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Takes the final answer.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Takes the request's body, where the final answer came before any of it was sent.
    pub(crate) fn take_unwanted(&mut self) -> Option<Body> {
        match std::mem::replace(&mut self.upload, Upload::Done) {
            Upload::Unwanted(kind) => Some(Body { kind }),
            other => {
                self.upload = other;
                None
            }
        }
    }

    /// Sends the request as soon as the server takes one more; `body` is lent then.
    pub(super) fn poll_open(
        &mut self,
        cx: &mut Context<'_>,
        request: &Request<'_>,
        body: &mut Body,
    ) -> Poll<Result<(), Failure>> {
        let now = self.client.runtime.now();
        self.shared.relay.wait(self.seat, cx.waker());
        let size = match body.size() {
            BodySize::Known(length) => Size::Known(length),
            _ => Size::Unknown,
        };
        let opened = self.shared.with(|hub| {
            let mut turned = false;
            loop {
                match hub.machine.open(request.method, request.uri, request.fields, size) {
                    Ok(stream) => {
                        hub.register(stream, self.seat);
                        break Some(Ok(stream));
                    }
                    Err(Misuse::TooManyStreams) if !turned => {
                        self.shared.turn(hub, now);
                        turned = true;
                    }
                    Err(Misuse::TooManyStreams) => {
                        hub.openers += usize::from(!self.opening);
                        self.opening = true;
                        return None;
                    }
                    Err(Misuse::GoingAway | Misuse::Closed) => break Some(Err(hub.closed())),
                    Err(misuse) => break Some(Err(Failure::before(ErrorKind::Http2Request(misuse)))),
                }
            }
        });
        let Some(opened) = opened else { return Poll::Pending };
        self.settle();
        self.stream = Some(opened?);
        let body = body.lend();
        match request.hold_until.filter(|_| size != Size::Known(0)) {
            Some(until) => {
                let timer = self.client.runtime.timer();
                self.upload = Upload::Held { body: body.kind, timer, until };
            }
            None => self.release(body.kind).map_err(misused)?,
        }
        Poll::Ready(Ok(()))
    }

    /// It waits no longer to be sent.
    fn settle(&mut self) {
        if std::mem::take(&mut self.opening) {
            self.shared.with(|hub| hub.openers = hub.openers.saturating_sub(1));
        }
    }

    /// Hands the body to the machine, or makes it the stream that the machine is fed from.
    fn release(&mut self, body: Kind) -> Result<(), Misuse> {
        match body {
            Kind::Stream(stream) => {
                self.upload = Upload::Streaming(stream);
                Ok(())
            }
            Kind::Bytes(bytes) => self.send(|hub, stream| {
                if !bytes.is_empty() {
                    hub.machine.send_data(stream, bytes)?;
                }
                hub.machine.end(stream)
            }),
            // What is lent is never one of these but a stream of theirs.
            Kind::Used | Kind::Repeatable(_) => self.send(|hub, stream| hub.machine.end(stream)),
        }
    }

    /// Part of the request's body. A stream that is over does not mind: what came for it says why.
    fn send(&mut self, send: impl FnOnce(&mut Hub<R>, StreamId) -> Result<(), Misuse>) -> Result<(), Misuse> {
        let Some(stream) = self.stream else { return Ok(()) };
        match self.shared.with(|hub| send(hub, stream)) {
            Err(Misuse::UnknownStream | Misuse::Closed) => {
                self.upload = Upload::Done;
                Ok(())
            }
            sent => sent,
        }
    }

    /// An interim answer, or the final one. The request is sent while this is polled.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arrival, Failure>> {
        loop {
            match std::task::ready!(self.poll_letter(cx))? {
                Letter::Interim(interim) => {
                    if interim.status() == http::StatusCode::CONTINUE {
                        self.release_held().map_err(misused)?;
                    }
                    return Poll::Ready(Ok(Arrival::Interim(interim)));
                }
                Letter::Head(head, length) => {
                    // A final answer without 100 (Continue) wants no body (RFC 9110 §10.1.1).
                    self.upload = match std::mem::replace(&mut self.upload, Upload::Done) {
                        Upload::Held { body, .. } => Upload::Unwanted(body),
                        other => other,
                    };
                    self.succeeded = head.status().is_success();
                    let early = Early { over: length == Length::Empty, ..Early::default() };
                    let length = match length {
                        Length::Empty => BodyLength::Empty,
                        Length::Known(length) => BodyLength::Known(length),
                        Length::Unknown => BodyLength::Chunked,
                    };
                    self.answer = Some(Answer { head, length, early, upgraded: false });
                    return Poll::Ready(Ok(Arrival::Answer));
                }
                // The machine gives no piece of a body before its head.
                Letter::Data(_) | Letter::Trailers(_) | Letter::End => {}
            }
        }
    }

    /// The next piece of the answer after its head. The request goes on being sent while this is polled.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientEvent, ErrorKind>> {
        loop {
            return Poll::Ready(match std::task::ready!(self.poll_letter(cx)) {
                Ok(Letter::Data(data)) => Ok(ClientEvent::Data(data)),
                Ok(Letter::Trailers(trailers)) => Ok(ClientEvent::Trailers(trailers)),
                Ok(Letter::End) => Ok(ClientEvent::End),
                // After the head of an answer nothing but its body comes.
                Ok(Letter::Interim(_) | Letter::Head(..)) => continue,
                Err(failure) => Err(failure.kind),
            });
        }
    }

    fn poll_letter(&mut self, cx: &mut Context<'_>) -> Poll<Result<Letter, Failure>> {
        let Some(stream) = self.stream else {
            return Poll::Ready(Err(Failure::after(ErrorKind::Http2Stream(StreamError::Closed))));
        };
        let now = self.client.runtime.now();
        let mut result = Poll::Pending;
        for round in 0..ROUNDS {
            // First the waker, then the look: see the words of the module above.
            self.shared.relay.wait(self.seat, cx.waker());
            if let Err(failure) = self.feed(cx) {
                result = Poll::Ready(Err(failure));
                break;
            }
            let (letter, room) = self.shared.with(|hub| {
                self.shared.turn(hub, now);
                let letter = hub.take(stream);
                if letter.is_some() {
                    // A window that was given back is told at once: nobody may come by for long.
                    self.shared.turn(hub, now);
                }
                (letter, hub.take_room(stream))
            });
            if let Some(letter) = letter {
                result = Poll::Ready(letter);
                break;
            }
            if !room {
                break;
            }
            if round + 1 == ROUNDS {
                cx.waker().wake_by_ref();
            }
        }
        if result.is_ready() {
            let _waker = self.shared.relay.call(self.seat);
        }
        result
    }

    /// Whether the answer was an early success, and the server is still to get the rest of the request.
    pub(crate) fn is_uploading(&self) -> bool {
        let Some(stream) = self.stream.filter(|_| self.succeeded) else { return false };
        !matches!(self.upload, Upload::Unwanted(_)) && self.shared.with(|hub| hub.is_sending(stream))
    }

    /// Behind the end of the answer: ready once the request is sent whole, or the server takes no more of it.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorKind>> {
        let Some(stream) = self.stream else { return Poll::Ready(Ok(())) };
        let now = self.client.runtime.now();
        for _ in 0..ROUNDS {
            self.shared.relay.wait(self.seat, cx.waker());
            self.feed(cx).map_err(|failure| failure.kind)?;
            let room = self.shared.with(|hub| {
                self.shared.turn(hub, now);
                hub.watch_upload(stream);
                hub.take_room(stream)
            });
            if !self.is_uploading() {
                let _waker = self.shared.relay.call(self.seat);
                return Poll::Ready(Ok(()));
            }
            if !room {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn release_held(&mut self) -> Result<(), Misuse> {
        match std::mem::replace(&mut self.upload, Upload::Done) {
            Upload::Held { body, .. } => self.release(body),
            other => {
                self.upload = other;
                Ok(())
            }
        }
    }

    /// Gives the machine what there is of the body, as far as there is room. An event tells when there is more.
    fn feed(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        if let Upload::Held { timer, until, .. } = &mut self.upload {
            if timer.poll_deadline(*until, cx).is_pending() {
                return Ok(());
            }
            self.release_held().map_err(misused)?;
        }
        while let (Upload::Streaming(body), Some(stream)) = (&mut self.upload, self.stream) {
            if !self.shared.with(|hub| hub.machine.takes_piece(stream)) {
                return Ok(());
            }
            // Outside of the lock: this is the user's code.
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => {
                    self.upload = Upload::Done;
                    return self.send(|hub, stream| hub.machine.end(stream)).map_err(misused);
                }
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    self.upload = Upload::Done;
                    self.shared.with(|hub| hub.machine.reset(stream, Reason::Cancel));
                    return Err(Failure::after(ErrorKind::RequestBody(error)));
                }
            };
            match frame.into_data() {
                Ok(data) => self.send(|hub, stream| hub.machine.send_data(stream, data)).map_err(misused)?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.upload = Upload::Done;
                        let sent = self.send(|hub, stream| hub.machine.send_trailers(stream, &trailers));
                        return sent.map_err(misused);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the request went as far as the connection.
    pub(super) fn is_opened(&self) -> bool {
        self.stream.is_some()
    }
}

/// The exchange is over: what is left of it is cancelled. The last one that leaves a connection which takes no more
/// closes it.
impl<R: Runtime> Drop for Exchange<R> {
    fn drop(&mut self) {
        self.settle();
        self.shared.relay.give_back(self.seat);
        let Some(stream) = self.stream else { return };
        let now = self.client.runtime.now();
        if self.shared.with(|hub| hub.leave(&self.shared, stream, now)) {
            self.client.multiplexed.left(&self.shared);
        }
    }
}

/// A body that does not keep what its head promised.
fn misused(misuse: Misuse) -> Failure {
    Failure::after(ErrorKind::Http2Request(misuse))
}
