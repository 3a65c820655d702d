//! One request and its answer on one connection: the loop between the socket and the machine.
//!
//! Request and answer run at the same time: while the body is being sent, what the server says is already read. So an
//! answer that comes early is delivered, and a server that stops reading is still heard. Nothing here waits by itself:
//! [`Exchange::poll_event`] is polled by whoever wants the next piece of the answer.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use hyperman_http1::{BodyLength, BodySize, ClientEvent, Error as Fault, Misuse, PreparedFields};
use hyperman_transport::{ByteStream, Runtime, Timer};

use crate::body::{Body, BoxStream, Kind};
use crate::client::Inner;
use crate::connection::Connection;
use crate::error::{ErrorKind, PartialBody};
use crate::loans;

/// How much of a streamed body waits in the machine before its stream is asked for more: 64 KiB keeps the socket
/// busy, and a fast producer cannot fill the memory (S86).
const HIGH_WATER: usize = 64 << 10;

/// How many slices one write carries at most.
const SLICES: usize = 8;

/// How many rounds of send and receive one poll makes before the loop's other tasks get their turn.
const ROUNDS: u32 = 32;

pub(crate) struct Exchange<R: Runtime> {
    /// With the state of the exchange, so that an `Exchange` is two pointers that are cheap to pass on.
    pub(crate) connection: Box<Connection<R>>,
    pub(crate) client: Arc<Inner<R>>,
}

/// Where an exchange stands.
pub(crate) struct State<T> {
    upload: Upload<T>,
    write_error: Option<io::Error>,
    /// Whether the kernel took any byte of the request.
    sent: bool,
    /// Whether any answer has come, be it an interim one.
    heard: bool,
    /// The final answer, from when it comes until it is taken.
    answer: Option<Answer>,
    answered: bool,
}

impl<T> State<T> {
    pub(crate) const fn new() -> Self {
        State {
            upload: Upload::Done,
            write_error: None,
            sent: false,
            heard: false,
            answer: None,
            answered: false,
        }
    }

    /// Before another exchange on the same connection: one that failed or was not taken is never kept.
    fn reset(&mut self) {
        self.sent = false;
        self.heard = false;
        self.answered = false;
    }
}

/// What is left of the request's body.
enum Upload<T> {
    /// Everything was handed to the machine.
    Done,
    /// Waits for 100 (Continue), or for the timer (RFC 9110 §10.1.1).
    Held { body: Kind, timer: T, until: Instant },
    /// Is asked for more as the machine takes it.
    Streaming(BoxStream),
    /// Was not wanted: the final answer came in place of 100 (Continue). Nothing of it was sent, and the connection has
    /// no future.
    Unwanted(Kind),
    /// Was given up; the connection has no future.
    Abandoned,
}

/// What an exchange has to say first.
pub(crate) enum Arrival {
    Interim(http::Response<()>),
    /// The final answer is here: see [`Exchange::answer`].
    Answer,
}

/// The head of an answer, and what of its body came with it.
pub(crate) struct Answer {
    pub(crate) head: http::Response<()>,
    pub(crate) length: BodyLength,
    pub(crate) early: Early,
    /// Whether the connection speaks another protocol from here.
    pub(crate) upgraded: bool,
}

/// What of a body has arrived together with its head: usually all of it, in one piece.
#[derive(Default)]
pub(crate) struct Early {
    pub(crate) first: Option<Bytes>,
    pub(crate) rest: VecDeque<ClientEvent>,
    /// What comes after these, if it is known already.
    pub(crate) failed: Option<Box<ErrorKind>>,
    /// Whether these are the whole body.
    pub(crate) over: bool,
}

/// The head of a request as it is written.
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) target: &'a str,
    pub(crate) version: Version,
    pub(crate) fields: Fields<'a>,
    /// Until when the body waits for 100 (Continue), if it does.
    pub(crate) hold_until: Option<Instant>,
}

/// The fields of a head, as they are or prepared.
pub(crate) enum Fields<'a> {
    Map(&'a HeaderMap),
    Prepared(&'a PreparedFields),
}

impl<R: Runtime> Exchange<R> {
    pub(crate) fn new(client: Arc<Inner<R>>, connection: Box<Connection<R>>) -> Self {
        Exchange { connection, client }
    }

    /// The final answer, once it has arrived.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        self.connection.state.answer.as_ref()
    }

    /// Takes the final answer.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        self.connection.state.answer.take()
    }

    /// Takes the request's body, where the final answer came before any of it was sent.
    pub(crate) fn take_unwanted(&mut self) -> Option<Body> {
        match std::mem::replace(&mut self.connection.state.upload, Upload::Abandoned) {
            Upload::Unwanted(kind) => Some(Body { kind }),
            other => {
                self.connection.state.upload = other;
                None
            }
        }
    }

    /// Whether the server may have acted on the request.
    pub(crate) fn sent(&self) -> bool {
        self.connection.state.sent
    }

    /// Whether the server has said anything.
    pub(crate) fn heard(&self) -> bool {
        self.connection.state.heard || self.connection.machine.bytes_received()
    }

    /// Hands the request to the machine. Sends nothing yet.
    pub(crate) fn begin(&mut self, head: &Head<'_>, body: Body) -> Result<(), Misuse> {
        self.connection.state.reset();
        let size = body.size();
        let machine = &mut self.connection.machine;
        let Head { method, target, version, .. } = *head;
        match head.fields {
            Fields::Map(fields) => machine.send_head(method, target, version, fields, size)?,
            Fields::Prepared(fields) => machine.send_prepared_head(method, target, version, fields, size)?,
        }
        match head.hold_until.filter(|_| !matches!(size, BodySize::Known(0))) {
            Some(until) => {
                let timer = self.client.runtime.timer();
                self.connection.state.upload = Upload::Held { body: body.kind, timer, until };
                Ok(())
            }
            None => self.release(body.kind),
        }
    }

    /// Hands the body to the machine, or makes it the stream that the machine is fed from.
    fn release(&mut self, body: Kind) -> Result<(), Misuse> {
        match body {
            Kind::Bytes(bytes) => {
                self.connection.state.upload = Upload::Done;
                if !bytes.is_empty() {
                    self.connection.machine.send_data(bytes)?;
                }
                self.connection.machine.end()
            }
            Kind::Stream(stream) => {
                self.connection.state.upload = Upload::Streaming(stream);
                Ok(())
            }
            // What is lent is never one of these but a stream of theirs.
            Kind::Used | Kind::Repeatable(_) => self.connection.machine.end(),
        }
    }

    /// An interim answer, or the final one with what of its body has come. The request is sent while this is polled.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arrival, ErrorKind>> {
        let (head, length, upgraded) = match std::task::ready!(self.turn(cx))? {
            ClientEvent::Interim(interim) => return Poll::Ready(Ok(Arrival::Interim(interim))),
            ClientEvent::Upgraded(head) => (head, BodyLength::Empty, true),
            ClientEvent::Response { response, body } => (response, body, false),
            // The machine gives no piece of a body before its head.
            ClientEvent::Data(_) | ClientEvent::Trailers(_) | ClientEvent::End => {
                return Poll::Ready(Err(ErrorKind::EmptyReply));
            }
        };
        let early = self.early(length, upgraded);
        self.connection.state.answer = Some(Answer { head, length, early, upgraded });
        Poll::Ready(Ok(Arrival::Answer))
    }

    /// The next piece of the answer after its head. The request goes on being sent while this is polled.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientEvent, ErrorKind>> {
        self.on_loan(|exchange| exchange.turn(cx))
    }

    /// Whether the answer was an early success, and the server is still to get the rest of the request.
    #[inline]
    pub(crate) fn is_uploading(&self) -> bool {
        self.connection.machine.is_uploading() && self.has_upload()
    }

    #[cold]
    fn has_upload(&self) -> bool {
        let State { upload, write_error, .. } = &self.connection.state;
        write_error.is_none() && matches!(upload, Upload::Done | Upload::Streaming(_))
    }

    /// Behind the end of the answer: ready once the request is sent whole, or the server takes no more of it.
    #[cold]
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorKind>> {
        self.on_loan(|exchange| {
            for _ in 0..ROUNDS {
                let more = exchange.feed(cx)?;
                let wrote = exchange.write(cx);
                if !exchange.is_uploading() {
                    return Poll::Ready(Ok(()));
                }
                if !(more && wrote) {
                    return Poll::Pending;
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    /// Lends the machine the thread's storage for what happens in one poll.
    pub(crate) fn on_loan<T>(&mut self, turn: impl FnOnce(&mut Self) -> T) -> T {
        let mut loan = loans::take();
        self.connection.machine.handle_timeout(self.client.runtime.now());
        self.connection.machine.lend(&mut loan);
        let outcome = turn(self);
        self.connection.machine.reclaim(&mut loan);
        loans::give_back(loan);
        outcome
    }

    /// What of the body has arrived together with the head.
    fn early(&mut self, length: BodyLength, upgraded: bool) -> Early {
        let over = matches!(length, BodyLength::Empty) && !upgraded;
        let mut early = Early { over, ..Early::default() };
        while !early.over && !upgraded {
            match self.connection.machine.next_event() {
                Ok(None) => break,
                Ok(Some(ClientEvent::End)) => early.over = true,
                Ok(Some(ClientEvent::Data(data))) if early.first.is_none() => early.first = Some(data),
                Ok(Some(event)) => early.rest.push_back(event),
                Err(fault) => {
                    early.failed = Some(Box::new(self.fault(fault)));
                    break;
                }
            }
        }
        early
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientEvent, ErrorKind>> {
        for _ in 0..ROUNDS {
            match self.connection.machine.next_event() {
                Ok(Some(event)) => {
                    self.note(&event).map_err(ErrorKind::Request)?;
                    return Poll::Ready(Ok(event));
                }
                Ok(None) => {}
                Err(fault) => return Poll::Ready(Err(self.fault(fault))),
            }
            let more = self.feed(cx)?;
            let wrote = self.write(cx);
            let read = self.read(cx)?;
            let again = read || (more && wrote);
            if !again {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What an event means for the request's side.
    fn note(&mut self, event: &ClientEvent) -> Result<(), Misuse> {
        let status = match event {
            ClientEvent::Interim(interim) => {
                self.connection.state.heard = true;
                if interim.status() == StatusCode::CONTINUE
                    && let Upload::Held { body, .. } = self.take_held()
                {
                    return self.release(body);
                }
                return Ok(());
            }
            ClientEvent::Response { response, .. } | ClientEvent::Upgraded(response) => response.status(),
            _ => return Ok(()),
        };
        self.connection.state.heard = true;
        self.connection.state.answered = true;
        // A final answer without 100 (Continue) wants no body (RFC 9110 §10.1.1), and one that is not a success will not
        // be changed by more of it. A success may be the first half of a conversation, so its upload goes on.
        match self.connection.state.upload {
            Upload::Held { .. } => {
                if let Upload::Held { body, .. } = self.take_held() {
                    self.connection.state.upload = Upload::Unwanted(body);
                }
            }
            Upload::Streaming(_) if !status.is_success() => {
                self.connection.state.upload = Upload::Abandoned;
            }
            Upload::Done | Upload::Streaming(_) | Upload::Unwanted(_) | Upload::Abandoned => {}
        }
        Ok(())
    }

    fn take_held(&mut self) -> Upload<R::Timer> {
        if matches!(self.connection.state.upload, Upload::Held { .. }) {
            std::mem::replace(&mut self.connection.state.upload, Upload::Done)
        } else {
            Upload::Done
        }
    }

    /// Gives the machine what there is of the body. True when there is more that the machine did not take yet.
    #[inline(always)]
    fn feed(&mut self, cx: &mut Context<'_>) -> Result<bool, ErrorKind> {
        if let Upload::Held { timer, until, .. } = &mut self.connection.state.upload {
            if timer.poll_deadline(*until, cx).is_pending() {
                return Ok(false);
            }
            if let Upload::Held { body, .. } = self.take_held() {
                self.release(body).map_err(ErrorKind::Request)?;
            }
        }
        let Connection { machine, state, .. } = &mut *self.connection;
        let Upload::Streaming(stream) = &mut state.upload else { return Ok(false) };
        while machine.queued() < HIGH_WATER {
            let frame = match stream.as_mut().poll_frame(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => {
                    state.upload = Upload::Done;
                    machine.end().map_err(ErrorKind::Request)?;
                    return Ok(false);
                }
                Poll::Ready(Some(frame)) => frame.map_err(ErrorKind::RequestBody)?,
            };
            match frame.into_data() {
                Ok(data) => machine.send_data(data).map_err(ErrorKind::Request)?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        state.upload = Upload::Done;
                        machine.send_trailers(&trailers).map_err(ErrorKind::Request)?;
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Writes what the machine has queued. True when all of it went, so that more can be fed.
    #[inline(always)]
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        if self.connection.state.write_error.is_some()
            || matches!(self.connection.state.upload, Upload::Abandoned | Upload::Unwanted(_))
        {
            return false;
        }
        let Connection { machine, stream, state, .. } = &mut *self.connection;
        while machine.has_transmit() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = machine.poll_transmit(&mut slices);
            match stream.poll_send(cx, slices.get(..count).unwrap_or_default()) {
                Poll::Pending => return false,
                Poll::Ready(Ok(written)) => {
                    state.sent |= written > 0;
                    machine.transmitted(written);
                }
                Poll::Ready(Err(error)) => {
                    // The server does not read any more, but what it said before may be there to be read.
                    state.write_error = Some(error);
                    state.upload = Upload::Abandoned;
                    return false;
                }
            }
        }
        match stream.poll_flush(cx) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                state.write_error = Some(error);
                state.upload = Upload::Abandoned;
                false
            }
        }
    }

    /// Reads once. True when the machine has something new to look at.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, ErrorKind> {
        let Connection { machine, stream, .. } = &mut *self.connection;
        if !machine.wants_read() {
            // With the answer not over, only a closed machine has nothing to read, and it will never have an event.
            return if machine.is_closed().is_some() { Err(self.ended(None)) } else { Ok(false) };
        }
        if stream.will_wake_to_read(cx) {
            return Ok(false);
        }
        match stream.poll_recv(cx, machine.read_buf()) {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(0)) => {
                machine.handle_eof();
                Ok(true)
            }
            Poll::Ready(Ok(count)) => {
                machine.received(count);
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(self.ended(Some(error))),
        }
    }

    /// Why the answer is not whole, where the transport ended or failed.
    fn ended(&mut self, error: Option<io::Error>) -> ErrorKind {
        let write_error = self.connection.state.write_error.take();
        if self.connection.state.answered {
            let error = error.or(write_error);
            return ErrorKind::PartialBody(error.map_or(PartialBody::Closed, PartialBody::Transport));
        }
        match (write_error, error) {
            (Some(error), _) => ErrorKind::Send(error),
            (None, Some(error)) => ErrorKind::Receive(error),
            (None, None) => ErrorKind::EmptyReply,
        }
    }

    fn fault(&mut self, fault: Fault) -> ErrorKind {
        match fault {
            Fault::UnexpectedEofInBody | Fault::ClosedBeforeAnswer => self.ended(None),
            Fault::UnexpectedEofInHead if self.connection.state.write_error.is_some() => self.ended(None),
            fault => ErrorKind::Protocol(fault),
        }
    }

    /// Ends the exchange without looking at its answer: if that was all there is, the connection is kept.
    pub(crate) fn pass_over(mut self) {
        if self.take_answer().is_some_and(|answer| answer.early.over) {
            self.finish();
        }
    }

    /// This exchange, if more is to come from it after what came early; otherwise it has ended.
    pub(crate) fn unless_over(self, early: &Early) -> Option<Self> {
        if early.over {
            if self.is_uploading() {
                return Some(self);
            }
            self.finish();
            return None;
        }
        Some(self).filter(|_| early.failed.is_none())
    }

    /// Ends the exchange: the connection goes back to the pool if it has a future, else it is closed.
    pub(crate) fn finish(self) {
        let whole = matches!(self.connection.state.upload, Upload::Done)
            && self.connection.state.write_error.is_none();
        if whole && self.connection.machine.can_reuse() {
            let now = self.client.runtime.now();
            self.client.pool.put(self.connection, now);
        }
    }

    /// Takes the connection over after the server switched protocols, with what it said since.
    pub(crate) fn into_upgraded(mut self) -> Option<(Box<Connection<R>>, Bytes)> {
        let read = self.connection.machine.take_upgraded()?;
        Some((self.connection, read))
    }
}
