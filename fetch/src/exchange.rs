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
use hyperman_http1::{BodyLength, BodySize, ClientEvent, Error as Fault, Misuse};
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
const SLICES: usize = 16;

/// How many rounds of send and receive one poll makes before the loop's other tasks get their turn.
const ROUNDS: u32 = 32;

pub(crate) struct Exchange<R: Runtime> {
    pub(crate) connection: Box<Connection<R>>,
    pub(crate) client: Arc<Inner<R>>,
    upload: Upload<R::Timer>,
    write_error: Option<io::Error>,
    /// Whether the kernel took any byte of the request.
    sent: bool,
    /// Whether any byte of the answer, or the head of it, has been seen.
    heard: bool,
    answered: bool,
}

/// What is left of the request's body.
enum Upload<T> {
    /// Everything was handed to the machine.
    Done,
    /// Waits for 100 (Continue), or for the timer (RFC 9110 §10.1.1).
    Held { body: Kind, timer: T, until: Instant },
    /// Is asked for more as the machine takes it.
    Streaming(BoxStream),
    /// Was given up; the connection has no future.
    Abandoned,
}

/// What an exchange has to say first.
pub(crate) enum Arrival {
    Interim(http::Response<()>),
    Answer(Answer),
    /// The connection speaks another protocol from here.
    Upgraded(http::Response<()>),
}

/// The head of an answer, and what of its body came with it.
pub(crate) struct Answer {
    pub(crate) head: http::Response<()>,
    pub(crate) length: BodyLength,
    pub(crate) early: VecDeque<ClientEvent>,
    /// What comes after `early`, if it is known already.
    pub(crate) failed: Option<ErrorKind>,
    /// Whether `early` is the whole body.
    pub(crate) over: bool,
}

/// The head of a request as it is written.
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) target: &'a str,
    pub(crate) version: Version,
    pub(crate) headers: &'a HeaderMap,
    /// Until when the body waits for 100 (Continue), if it does.
    pub(crate) hold_until: Option<Instant>,
}

impl<R: Runtime> Exchange<R> {
    pub(crate) fn new(client: Arc<Inner<R>>, connection: Box<Connection<R>>) -> Self {
        Exchange {
            connection,
            client,
            upload: Upload::Done,
            write_error: None,
            sent: false,
            heard: false,
            answered: false,
        }
    }

    /// Whether the server may have acted on the request.
    pub(crate) fn sent(&self) -> bool {
        self.sent
    }

    /// Whether the server has said anything.
    pub(crate) fn heard(&self) -> bool {
        self.heard || self.connection.machine.bytes_received()
    }

    /// Hands the request to the machine. Sends nothing yet.
    pub(crate) fn begin(&mut self, head: &Head<'_>, body: Body) -> Result<(), Misuse> {
        let size = body.size();
        let hold_until = head.hold_until.filter(|_| !matches!(size, BodySize::Known(0)));
        self.on_loan(|exchange| {
            let machine = &mut exchange.connection.machine;
            machine.send_head(head.method, head.target, head.version, head.headers, size)?;
            match hold_until {
                Some(until) => {
                    let timer = exchange.client.runtime.timer();
                    exchange.upload = Upload::Held { body: body.kind, timer, until };
                    Ok(())
                }
                None => exchange.release(body.kind),
            }
        })
    }

    /// Hands the body to the machine, or makes it the stream that the machine is fed from.
    fn release(&mut self, body: Kind) -> Result<(), Misuse> {
        match body {
            Kind::Bytes(bytes) => {
                self.upload = Upload::Done;
                if !bytes.is_empty() {
                    self.connection.machine.send_data(bytes)?;
                }
                self.connection.machine.end()
            }
            Kind::Stream(stream) => {
                self.upload = Upload::Streaming(stream);
                Ok(())
            }
        }
    }

    /// The head of the answer, or an interim one. The request is sent while this is polled.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arrival, ErrorKind>> {
        self.on_loan(|exchange| {
            let event = std::task::ready!(exchange.turn(cx))?;
            Poll::Ready(match event {
                ClientEvent::Interim(interim) => Ok(Arrival::Interim(interim)),
                ClientEvent::Upgraded(head) => Ok(Arrival::Upgraded(head)),
                ClientEvent::Response { response, body } => {
                    Ok(Arrival::Answer(exchange.early(response, body)))
                }
                // The machine gives no piece of a body before its head.
                ClientEvent::Data(_) | ClientEvent::Trailers(_) | ClientEvent::End => {
                    Err(ErrorKind::EmptyReply)
                }
            })
        })
    }

    /// The next piece of the answer after its head. The request goes on being sent while this is polled.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientEvent, ErrorKind>> {
        self.on_loan(|exchange| exchange.turn(cx))
    }

    /// Lends the machine the thread's storage for one turn.
    fn on_loan<T>(&mut self, turn: impl FnOnce(&mut Self) -> T) -> T {
        let mut loan = loans::take();
        self.connection.machine.handle_timeout(self.client.runtime.now());
        self.connection.machine.lend(&mut loan);
        let outcome = turn(self);
        self.connection.machine.reclaim(&mut loan);
        loans::give_back(loan);
        outcome
    }

    /// The answer with what of its body has arrived together with its head, usually all of it.
    fn early(&mut self, head: http::Response<()>, length: BodyLength) -> Answer {
        let mut answer = Answer { head, length, early: VecDeque::new(), failed: None, over: false };
        if matches!(length, BodyLength::Empty) {
            answer.over = true;
        }
        while !answer.over && answer.failed.is_none() {
            match self.connection.machine.next_event() {
                Ok(None) => break,
                Ok(Some(ClientEvent::End)) => answer.over = true,
                Ok(Some(event)) => answer.early.push_back(event),
                Err(fault) => answer.failed = Some(self.fault(fault)),
            }
        }
        answer
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
                self.heard = true;
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
        self.heard = true;
        self.answered = true;
        // A final answer without 100 (Continue) wants no body (RFC 9110 §10.1.1), and one that is not a success will not
        // be changed by more of it. A success may be the first half of a conversation, so its upload goes on.
        let over = match self.upload {
            Upload::Done | Upload::Abandoned => false,
            Upload::Held { .. } => true,
            Upload::Streaming(_) => !status.is_success(),
        };
        if over {
            self.upload = Upload::Abandoned;
        }
        Ok(())
    }

    fn take_held(&mut self) -> Upload<R::Timer> {
        if matches!(self.upload, Upload::Held { .. }) {
            std::mem::replace(&mut self.upload, Upload::Done)
        } else {
            Upload::Done
        }
    }

    /// Gives the machine what there is of the body. True when there is more that the machine did not take yet.
    fn feed(&mut self, cx: &mut Context<'_>) -> Result<bool, ErrorKind> {
        if let Upload::Held { timer, until, .. } = &mut self.upload {
            if timer.poll_deadline(*until, cx).is_pending() {
                return Ok(false);
            }
            if let Upload::Held { body, .. } = self.take_held() {
                self.release(body).map_err(ErrorKind::Request)?;
            }
        }
        let machine = &mut self.connection.machine;
        let Upload::Streaming(stream) = &mut self.upload else { return Ok(false) };
        while machine.queued() < HIGH_WATER {
            let frame = match stream.as_mut().poll_frame(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(None) => {
                    self.upload = Upload::Done;
                    machine.end().map_err(ErrorKind::Request)?;
                    return Ok(false);
                }
                Poll::Ready(Some(frame)) => frame.map_err(ErrorKind::RequestBody)?,
            };
            match frame.into_data() {
                Ok(data) => machine.send_data(data).map_err(ErrorKind::Request)?,
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.upload = Upload::Done;
                        machine.send_trailers(&trailers).map_err(ErrorKind::Request)?;
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Writes what the machine has queued. True when all of it went, so that more can be fed.
    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        if self.write_error.is_some() || matches!(self.upload, Upload::Abandoned) {
            return false;
        }
        let Connection { machine, stream, .. } = &mut *self.connection;
        while machine.has_transmit() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = machine.poll_transmit(&mut slices);
            match stream.poll_send(cx, slices.get(..count).unwrap_or_default()) {
                Poll::Pending => return false,
                Poll::Ready(Ok(written)) => {
                    self.sent |= written > 0;
                    machine.transmitted(written);
                }
                Poll::Ready(Err(error)) => {
                    // The server does not read any more, but what it said before may be there to be read.
                    self.write_error = Some(error);
                    self.upload = Upload::Abandoned;
                    return false;
                }
            }
        }
        match stream.poll_flush(cx) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                self.write_error = Some(error);
                self.upload = Upload::Abandoned;
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
        let write_error = self.write_error.take();
        if self.answered {
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
            Fault::UnexpectedEofInHead if self.write_error.is_some() => self.ended(None),
            fault => ErrorKind::Protocol(fault),
        }
    }

    /// Ends the exchange: the connection goes back to the pool if it has a future, else it is closed.
    pub(crate) fn finish(self) {
        let whole = matches!(self.upload, Upload::Done) && self.write_error.is_none();
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
