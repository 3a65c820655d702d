//! A peer that speaks HTTP/2 in blocking calls: our machine of either role over a plain socket.
//!
//! The machine is the one under test elsewhere; what is played with it here is the other side's application, which can
//! open, hold back, cut off and reset as a case wants it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSlice, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use hyperman_http2::{
    BodySize, Client, ClientEvent, Config, Connection, Error, Misuse, Reason, Server, ServerEvent,
    StreamError, StreamId,
};

use crate::carrier::Carrier;
use crate::wire::{Wire, is_gone, is_late};

/// A connection to the server or client under test.
#[derive(Debug)]
pub struct Http2Peer {
    wire: Wire,
    machine: Machine,
    streams: BTreeMap<StreamId, Incoming>,
    /// Streams that the other side opened and nobody has looked at yet.
    opened: VecDeque<StreamId>,
    goaway: Option<Reason>,
    /// The other side's settings came.
    settled: bool,
    /// The other side is gone.
    ended: bool,
    /// How many bytes leave in one write.
    stride: usize,
}

#[derive(Debug)]
enum Machine {
    Client(Box<Client>),
    Server(Box<Server>),
}

/// What came on a stream and was not taken yet.
#[derive(Debug, Default)]
struct Incoming {
    heads: VecDeque<Head>,
    body: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// The message is complete.
    complete: bool,
    reset: Option<StreamError>,
}

/// The head of a message.
#[derive(Debug, Clone)]
pub struct Head {
    /// Of a response.
    pub status: StatusCode,
    /// Of a request.
    pub method: Method,
    /// Of a request.
    pub target: String,
    /// The fields.
    pub fields: HeaderMap,
}

impl Http2Peer {
    /// Connects as a client.
    ///
    /// # Panics
    /// When it cannot.
    pub fn connect(carrier: Carrier, address: SocketAddr) -> Self {
        let client = Client::new(Arc::new(config(Config::client())), Instant::now());
        Self::over(Wire::connect(carrier, address), Machine::Client(Box::new(client)))
    }

    /// The server's end of a connection that was accepted.
    ///
    /// # Panics
    /// When the socket cannot be set up.
    pub fn accepted(carrier: Carrier, stream: TcpStream) -> Self {
        let server = Server::new(Arc::new(config(Config::server())), Instant::now());
        Self::over(Wire::accepted(carrier, stream), Machine::Server(Box::new(server)))
    }

    fn over(wire: Wire, machine: Machine) -> Self {
        Http2Peer {
            wire,
            machine,
            streams: BTreeMap::new(),
            opened: VecDeque::new(),
            goaway: None,
            settled: false,
            ended: false,
            stride: usize::MAX,
        }
    }

    /// Makes every write one of this many bytes.
    pub fn set_stride(&mut self, stride: usize) {
        self.stride = stride;
    }

    /// How long the other side may let this one wait.
    ///
    /// # Panics
    /// When the socket refuses.
    pub fn set_patience(&mut self, patience: Duration) {
        self.wire.set_patience(patience);
    }

    /// Makes the close of this connection a reset.
    ///
    /// # Panics
    /// When the socket refuses.
    pub fn reset_on_close(&mut self) {
        self.wire.reset_on_close();
    }

    // ------------------------------------------------------------------------------------------------- requests

    /// Opens a request.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub fn open(&mut self, method: &Method, target: &str, fields: &HeaderMap, size: BodySize) -> StreamId {
        let uri =
            if *method == Method::CONNECT { target.parse() } else { format!("http://test{target}").parse() };
        let Machine::Client(client) = &mut self.machine else { panic!("a server opens no requests") };
        client.handle_timeout(Instant::now());
        let stream = client.open(method, &uri.expect("a URI"), fields, size).expect("a request");
        self.streams.insert(stream, Incoming::default());
        self.flush();
        stream
    }

    /// Waits for the server's settings.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn settled(&mut self) {
        while !self.settled {
            assert!(self.pump(), "the connection ended without settings");
        }
    }

    /// Waits for the next request.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn accept(&mut self) -> (StreamId, Head) {
        loop {
            if let Some(stream) = self.opened.pop_front() {
                let head = self.head(stream).expect("a request");
                return (stream, head);
            }
            assert!(self.pump(), "the connection ended without another request: {:?}", self.goaway);
        }
    }

    /// Sends the head of a response.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn respond(&mut self, stream: StreamId, status: StatusCode, fields: &HeaderMap, size: BodySize) {
        let Machine::Server(server) = &mut self.machine else { panic!("a client responds to nothing") };
        server.handle_timeout(Instant::now());
        server.send_head(stream, status, fields, size).expect("a response");
        self.flush();
    }

    // ------------------------------------------------------------------------------------------------- sending

    /// Sends part of a body, as the other side has room for it. Says how much of it went out: less than all when there
    /// was no room in time, or when nobody wants the rest.
    pub fn send(&mut self, stream: StreamId, mut data: Bytes) -> usize {
        let mut sent = 0;
        while !data.is_empty() {
            if self.is_unwanted(stream) {
                return sent;
            }
            let machine = self.machine.connection();
            machine.handle_timeout(Instant::now());
            let piece = data.split_to(machine.capacity(stream).min(data.len()));
            if piece.is_empty() {
                if self.pump_in_time() != Some(true) {
                    return sent;
                }
                continue;
            }
            let length = piece.len();
            if machine.send_data(stream, piece).is_err() || !self.flush() {
                return sent;
            }
            sent += length;
        }
        sent
    }

    /// Ends a message.
    ///
    /// # Errors
    /// As the machine says.
    pub fn end(&mut self, stream: StreamId) -> Result<(), Misuse> {
        let ended = self.machine.connection().end(stream);
        self.flush();
        ended
    }

    /// Ends a message with trailers.
    ///
    /// # Panics
    /// When it cannot.
    pub fn end_with(&mut self, stream: StreamId, trailers: &HeaderMap) {
        self.machine.connection().send_trailers(stream, trailers).expect("trailers");
        self.flush();
    }

    /// Resets a stream.
    pub fn reset(&mut self, stream: StreamId, reason: Reason) {
        self.machine.connection().reset(stream, reason);
        self.machine.connection().finished(stream);
        self.flush();
    }

    /// Says GOAWAY and ends the connection, without what is open.
    pub fn close(&mut self, reason: Reason) {
        self.machine.connection().close(reason);
        self.flush();
    }

    /// Begins a frame without ever ending it.
    ///
    /// # Panics
    /// When the other side does not take it.
    pub fn send_half_a_frame(&mut self) {
        self.flush();
        // A HEADERS frame of 100 octets, of which none follow.
        self.wire.write_all(&[0, 0, 100, 1, 4, 0, 0, 0, 1]).expect("send");
        self.wire.flush().expect("send");
    }

    // ------------------------------------------------------------------------------------------------- receiving

    /// Waits for the next head of this stream; `None` when it ends without one.
    pub fn head(&mut self, stream: StreamId) -> Option<Head> {
        loop {
            let incoming = self.streams.get_mut(&stream)?;
            if let Some(head) = incoming.heads.pop_front() {
                return Some(head);
            }
            if incoming.complete || incoming.reset.is_some() || !self.pump() {
                return None;
            }
        }
    }

    /// Waits for the next part of the body, and makes room for as much again. `None` behind the last one.
    ///
    /// # Errors
    /// When the stream is reset, or the connection is lost, which counts as a reset with `INTERNAL_ERROR`.
    pub fn piece(&mut self, stream: StreamId) -> Result<Option<Bytes>, StreamError> {
        loop {
            let Some(incoming) = self.streams.get_mut(&stream) else { return Ok(None) };
            if let Some(piece) = incoming.body.pop_front() {
                let machine = self.machine.connection();
                machine.handle_timeout(Instant::now());
                machine.release(stream, piece.len());
                self.flush();
                return Ok(Some(piece));
            }
            if incoming.complete {
                return Ok(None);
            }
            if let Some(error) = incoming.reset {
                return Err(error);
            }
            if !self.pump() {
                return Err(StreamError::Reset(Reason::InternalError));
            }
        }
    }

    /// The trailers that came.
    pub fn trailers(&self, stream: StreamId) -> Option<&HeaderMap> {
        self.streams.get(&stream)?.trailers.as_ref()
    }

    /// Lets go of a stream.
    pub fn finished(&mut self, stream: StreamId) {
        self.machine.connection().finished(stream);
        self.streams.remove(&stream);
        self.flush();
    }

    /// Waits until the other side resets this stream.
    ///
    /// # Errors
    /// When it does something else, or the connection ends.
    pub fn reset_by_peer(&mut self, stream: StreamId) -> Result<Reason, String> {
        loop {
            let Some(incoming) = self.streams.get(&stream) else { return Err("no such stream".to_owned()) };
            if let Some(error) = &incoming.reset {
                return Ok(error.reason());
            }
            if !self.pump() {
                return Err(format!("the connection ended: {:?}", self.goaway));
            }
        }
    }

    /// Waits for the other side's GOAWAY.
    ///
    /// # Panics
    /// When the connection ends without one.
    pub fn goaway(&mut self) -> Reason {
        loop {
            if let Some(reason) = self.goaway {
                return reason;
            }
            assert!(self.pump(), "the connection ended without GOAWAY");
        }
    }

    /// Waits for the end of the connection; gives what the last GOAWAY said, if there was one.
    ///
    /// # Panics
    /// When it does not end.
    pub fn rest(&mut self) -> Option<Reason> {
        while self.pump() {}
        self.goaway
    }

    /// Whether the connection ended as its transport ends one, and was not cut off.
    pub fn ended_orderly(&self) -> bool {
        !self.wire.is_cut()
    }

    /// Whether nothing lies here that a case has not taken.
    pub fn is_taken(&self) -> bool {
        self.streams.values().all(|incoming| incoming.heads.is_empty() && incoming.body.is_empty())
    }

    /// Whether nobody wants more of what is sent on this stream.
    fn is_unwanted(&self, stream: StreamId) -> bool {
        // A complete response ends the upload; a complete request does not end the response.
        let answered = |incoming: &Incoming| incoming.complete && matches!(self.machine, Machine::Client(_));
        let incoming = self.streams.get(&stream);
        self.ended || incoming.is_none_or(|incoming| answered(incoming) || incoming.reset.is_some())
    }

    // ------------------------------------------------------------------------------------------------- the machine

    /// Reads once; false when the connection has ended.
    fn pump(&mut self) -> bool {
        self.pump_in_time().expect("nothing came")
    }

    /// Reads once; `None` when nothing came in time.
    fn pump_in_time(&mut self) -> Option<bool> {
        self.flush();
        if self.ended {
            return Some(false);
        }
        let mut buffer = [0; 16 * 1024];
        let received = self.wire.read_some(&mut buffer)?;
        let machine = self.machine.connection();
        machine.handle_timeout(Instant::now());
        if received == 0 {
            self.ended = true;
            machine.handle_eof();
        } else {
            machine.read_buf().extend_from_slice(&buffer[..received]);
            machine.received(received);
        }
        self.take_events();
        self.flush();
        Some(true)
    }

    /// Writes all there is; false when the other side does not take it.
    fn flush(&mut self) -> bool {
        loop {
            let mut slices = [IoSlice::new(&[]); 16];
            let filled = self.machine.connection().poll_transmit(&mut slices);
            if filled == 0 {
                return true;
            }
            let mut written = 0;
            for slice in &slices[..filled] {
                for part in slice.chunks(self.stride) {
                    match self.wire.write_all(part) {
                        Ok(()) => written += part.len(),
                        Err(error) if is_gone(&error) || is_late(&error) => return false,
                        Err(error) => panic!("cannot send: {error}"),
                    }
                }
            }
            self.machine.connection().transmitted(written);
        }
    }

    fn take_events(&mut self) {
        loop {
            let event = match &mut self.machine {
                Machine::Client(client) => client.next_event().map(|event| event.map(Happening::from)),
                Machine::Server(server) => server.next_event().map(|event| event.map(Happening::from)),
            };
            match event {
                Ok(Some(happening)) => self.take(happening),
                Ok(None) => return,
                // The end of the connection is seen by itself.
                Err(Error::UnexpectedEof) => return,
                Err(error) => {
                    let reason = error.reason();
                    self.goaway.get_or_insert(reason);
                    return;
                }
            }
        }
    }

    fn take(&mut self, happening: Happening) {
        let (stream, what) = match happening {
            Happening::Nothing => return,
            Happening::Settled => {
                self.settled = true;
                return;
            }
            Happening::GoAway(reason) => {
                self.goaway = Some(reason);
                return;
            }
            Happening::On(stream, what) => (stream, what),
        };
        if matches!(self.machine, Machine::Server(_)) && matches!(what, What::Head(..)) {
            self.streams.insert(stream, Incoming::default());
            self.opened.push_back(stream);
        }
        let Some(incoming) = self.streams.get_mut(&stream) else { return };
        match what {
            What::Head(head, last) => {
                incoming.heads.push_back(head);
                incoming.complete |= last;
            }
            What::Data(data) => incoming.body.push_back(data),
            What::Trailers(trailers) => incoming.trailers = Some(trailers),
            What::End => incoming.complete = true,
            What::Reset(error) => incoming.reset = Some(error),
        }
    }
}

/// Settings that leave a case alone: no PING by itself, and no more patience than the socket has.
fn config(mut config: Config) -> Config {
    config.timeouts.ping = None;
    config.limits.concurrent_streams = 1_000;
    config.limits.body = u64::MAX;
    config
}

impl Machine {
    fn connection(&mut self) -> &mut Connection {
        match self {
            Machine::Client(client) => client,
            Machine::Server(server) => server,
        }
    }
}

/// The events of both roles, as far as they matter here.
enum Happening {
    On(StreamId, What),
    GoAway(Reason),
    Settled,
    Nothing,
}

enum What {
    /// A head, and whether it is the whole message.
    Head(Head, bool),
    Data(Bytes),
    Trailers(HeaderMap),
    End,
    Reset(StreamError),
}

fn response(response: http::Response<()>) -> Head {
    let (parts, ()) = response.into_parts();
    let (method, target) = (Method::GET, String::new());
    Head { status: parts.status, method, target, fields: parts.headers }
}

impl From<ClientEvent> for Happening {
    fn from(event: ClientEvent) -> Self {
        use hyperman_http2::BodyLength::Empty;
        match event {
            ClientEvent::Interim { stream, response: head } => {
                Happening::On(stream, What::Head(response(head), false))
            }
            ClientEvent::Response { stream, response: head, body } => {
                Happening::On(stream, What::Head(response(head), body == Empty))
            }
            ClientEvent::Data { stream, data } => Happening::On(stream, What::Data(data)),
            ClientEvent::Trailers { stream, trailers } => Happening::On(stream, What::Trailers(trailers)),
            ClientEvent::End { stream } => Happening::On(stream, What::End),
            ClientEvent::Reset { stream, error } => Happening::On(stream, What::Reset(error)),
            ClientEvent::GoAway { reason, .. } => Happening::GoAway(reason),
            ClientEvent::Settings => Happening::Settled,
            ClientEvent::Capacity { .. } => Happening::Nothing,
        }
    }
}

impl From<ServerEvent> for Happening {
    fn from(event: ServerEvent) -> Self {
        use hyperman_http2::BodyLength::Empty;
        match event {
            ServerEvent::Request { stream, request, body, .. } => {
                let (parts, ()) = request.into_parts();
                let target = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
                let head =
                    Head { status: StatusCode::OK, method: parts.method, target, fields: parts.headers };
                Happening::On(stream, What::Head(head, body == Empty))
            }
            ServerEvent::Data { stream, data } => Happening::On(stream, What::Data(data)),
            ServerEvent::Trailers { stream, trailers } => Happening::On(stream, What::Trailers(trailers)),
            ServerEvent::End { stream } => Happening::On(stream, What::End),
            ServerEvent::Reset { stream, error } => Happening::On(stream, What::Reset(error)),
            ServerEvent::GoAway { reason } => Happening::GoAway(reason),
            ServerEvent::Capacity { .. } => Happening::Nothing,
        }
    }
}
