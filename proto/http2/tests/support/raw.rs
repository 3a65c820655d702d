//! A machine whose peer is a script of frames.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyperman_http2::{
    BodyLength, BodySize, Client, ClientEvent, Config, Error, PREFACE, Server, ServerEvent, StreamId,
};

use super::{ACK, Frame, SETTINGS, feed, frame, parse, settings, written};

/// How the application behind a server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It answers each request as soon as its head is there, and does not look at the body.
    AtOnce,
    /// It answers each request when it has read the body.
    ReadsBody,
    /// It never answers and never reads.
    Never,
}

/// A server whose client is a script.
pub struct RawServer {
    pub server: Server,
    pub now: Instant,
    pub mode: Mode,
    /// Everything that it wrote.
    pub frames: Vec<Frame>,
    pub events: Vec<ServerEvent>,
    pub error: Option<Error>,
    /// Streams with a handler that has not come to its end.
    pub running: HashMap<StreamId, ()>,
    pub answer: Bytes,
    /// Whether `finished` is called when a stream is reset.
    pub drops_handlers: bool,
}

impl RawServer {
    /// A connection that has exchanged settings.
    pub fn new(mode: Mode) -> Self {
        Self::with(mode, Config::server())
    }

    pub fn with(mode: Mode, config: Config) -> Self {
        let mut raw = Self::bare(mode, config);
        raw.send(&[&PREFACE[..], &settings(&[])].concat());
        raw.send(&frame(SETTINGS, ACK, 0, &[]));
        raw.frames.clear();
        raw
    }

    /// A connection that has received nothing yet.
    pub fn bare(mode: Mode, config: Config) -> Self {
        let now = Instant::now();
        RawServer {
            server: Server::new(Arc::new(config), now),
            now,
            mode,
            frames: Vec::new(),
            events: Vec::new(),
            error: None,
            running: HashMap::new(),
            answer: Bytes::from_static(b"hello"),
            drops_handlers: true,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.server.handle_timeout(self.now);
        feed(&mut self.server, bytes);
        self.turn();
    }

    pub fn advance(&mut self, time: Duration) {
        self.now += time;
        self.server.handle_timeout(self.now);
        self.turn();
    }

    pub fn turn(&mut self) {
        loop {
            while let Some(event) = self.next() {
                self.handle(&event);
                self.events.push(event);
            }
            let bytes = written(&mut self.server);
            if bytes.is_empty() {
                return;
            }
            self.frames.extend(parse(&bytes));
        }
    }

    fn next(&mut self) -> Option<ServerEvent> {
        match self.server.next_event() {
            Ok(event) => event,
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    fn handle(&mut self, event: &ServerEvent) {
        match *event {
            ServerEvent::Request { stream, body, .. } => {
                self.running.insert(stream, ());
                match self.mode {
                    Mode::AtOnce => self.respond(stream),
                    Mode::ReadsBody if body == BodyLength::Empty => self.respond(stream),
                    Mode::ReadsBody => self.server.want_body(stream, true),
                    Mode::Never => {}
                }
            }
            ServerEvent::Data { stream, ref data } if self.mode != Mode::Never => {
                self.server.release(stream, data.len());
            }
            ServerEvent::End { stream } if self.mode == Mode::ReadsBody => self.respond(stream),
            ServerEvent::Reset { stream, .. } if self.drops_handlers => {
                self.running.remove(&stream);
                self.server.finished(stream);
            }
            _ => {}
        }
    }

    pub fn respond(&mut self, stream: StreamId) {
        let size = BodySize::Known(self.answer.len() as u64);
        self.server.send_head(stream, StatusCode::OK, &HeaderMap::new(), size).unwrap();
        self.server.send_data(stream, self.answer.clone()).unwrap();
        self.server.end(stream).unwrap();
        self.running.remove(&stream);
        self.server.finished(stream);
    }

    /// The frames of a kind that were written.
    pub fn of_kind(&self, kind: u8) -> Vec<&Frame> {
        self.frames.iter().filter(|frame| frame.kind == kind).collect()
    }

    pub fn requests(&self) -> Vec<StreamId> {
        let request = |event: &ServerEvent| match event {
            ServerEvent::Request { stream, .. } => Some(*stream),
            _ => None,
        };
        self.events.iter().filter_map(request).collect()
    }
}

/// A client whose server is a script.
pub struct RawClient {
    pub client: Client,
    pub now: Instant,
    pub frames: Vec<Frame>,
    pub events: Vec<ClientEvent>,
    pub error: Option<Error>,
}

impl RawClient {
    pub fn new() -> Self {
        Self::with(Config::client())
    }

    pub fn with(config: Config) -> Self {
        let now = Instant::now();
        let client = Client::new(Arc::new(config), now);
        let mut raw = RawClient { client, now, frames: Vec::new(), events: Vec::new(), error: None };
        raw.send(&[settings(&[]), frame(SETTINGS, ACK, 0, &[])].concat());
        raw.frames.clear();
        raw.events.clear();
        raw
    }

    pub fn get(&mut self) -> StreamId {
        let uri = "http://example.com/".parse().unwrap();
        let stream =
            self.client.open(&http::Method::GET, &uri, &HeaderMap::new(), BodySize::Known(0)).unwrap();
        self.turn();
        stream
    }

    pub fn post(&mut self, size: BodySize) -> StreamId {
        let uri = "http://example.com/".parse().unwrap();
        let stream = self.client.open(&http::Method::POST, &uri, &HeaderMap::new(), size).unwrap();
        self.turn();
        stream
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.client.handle_timeout(self.now);
        feed(&mut self.client, bytes);
        self.turn();
    }

    pub fn advance(&mut self, time: Duration) {
        self.now += time;
        self.client.handle_timeout(self.now);
        self.turn();
    }

    pub fn turn(&mut self) {
        loop {
            loop {
                match self.client.next_event() {
                    Ok(Some(event)) => self.events.push(event),
                    Ok(None) => break,
                    Err(error) => {
                        self.error = Some(error);
                        break;
                    }
                }
            }
            let bytes = written(&mut self.client);
            if bytes.is_empty() {
                return;
            }
            self.frames.extend(parse(&bytes));
        }
    }

    pub fn of_kind(&self, kind: u8) -> Vec<&Frame> {
        self.frames.iter().filter(|frame| frame.kind == kind).collect()
    }
}
