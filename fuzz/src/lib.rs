//! For the targets of HTTP/1: drives the machines from bytes and writes down what came out, for every target the same way.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use hyperman_http1::{
    BodyLength, BodySize, Client, ClientConfig, ClientEvent, HeadCache, Limits, Loan, Server, ServerConfig,
    ServerEvent,
};

/// Small limits, so that inputs of a few hundred bytes meet all of them.
pub fn limits() -> Limits {
    Limits {
        request_line: 64,
        field: 64,
        head: 256,
        fields: 6,
        chunk_extensions: 16,
        interim: 3,
        body: 64,
        drain: 16,
        linger: 64,
    }
}

/// What came out; pieces of a body that follow each other are one.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Log(pub Vec<String>);

impl Log {
    fn data(&mut self, data: &[u8]) {
        assert!(!data.is_empty());
        let text = data.escape_ascii().to_string();
        match self.0.last_mut() {
            Some(last) if last.starts_with("data ") => last.push_str(&text),
            _ => self.0.push(format!("data {text}")),
        }
    }
}

/// Parts of messages, so that a fuzzer that knows nothing finds its way past the first line.
const PARTS: [&str; 40] = [
    "\r\n",
    "\r\n\r\n",
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "HEAD * HTTP/1.0\r\n",
    "CONNECT a:1 HTTP/1.1\r\n",
    "GET http://b/c HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 204 x\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 x\r\n",
    "HTTP/1.1 304 x\r\n",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: ",
    "chunked",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Connection: upgrade\r\n",
    "Upgrade: x\r\n",
    "Expect: 100-continue\r\n",
    "Expect: ",
    "5\r\nhello\r\n",
    "1\r\na\r\n",
    "0\r\n\r\n",
    "0\r\n",
    "hello",
    ";a=b",
    ";a=\"b\"",
    "X: y\r\n",
    "X_: \r\n",
    " c\r\n",
    ": ",
    "\n",
    "ffffffffffffffff",
    " HTTP/1.1\r\n",
];

/// Bytes from 0x80 on stand for a part each, as far as there are any; all others for themselves.
pub fn expand(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in input {
        match byte.checked_sub(0x80).and_then(|part| PARTS.get(usize::from(part))) {
            Some(part) => out.extend_from_slice(part.as_bytes()),
            None => out.push(byte),
        }
    }
    out
}

/// A random cut of `input`: each piece is as long as a byte of `lengths` says.
pub fn pieces<'a>(mut input: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &length in lengths {
        let (piece, rest) = input.split_at(usize::from(length).min(input.len()));
        pieces.push(piece);
        input = rest;
    }
    pieces.push(input);
    pieces
}

/// Runs a server over the pieces and answers every request. `eof` follows the last piece. The machine's own
/// promises are checked on the way.
pub fn server_log(pieces: &[&[u8]], eof: bool, with_cache: bool) -> Log {
    let now = Instant::now();
    let mut machine =
        Server::new(Arc::new(ServerConfig { limits: limits(), ..ServerConfig::default() }), now);
    let heads = with_cache.then(|| Box::new(HeadCache::new(5)));
    let mut loan = Loan { heads, ..Loan::default() };
    let mut log = Log::default();
    for (number, piece) in pieces.iter().enumerate() {
        machine.handle_timeout(now);
        if with_cache && machine.can_run_ahead() {
            run_ahead(&mut machine, &mut loan, piece, &mut log);
        } else {
            machine.lend(&mut loan);
            machine.read_buf().extend_from_slice(piece);
            machine.received(piece.len());
        }
        if eof && number + 1 == pieces.len() {
            machine.handle_eof();
        }
        server_turn(&mut machine, &mut log);
        server_output(&mut machine);
        machine.reclaim(&mut loan);
    }
    log.0.push(format!("closed {:?}", machine.is_closed()));
    log
}

/// The short way, as far as it goes.
fn run_ahead(machine: &mut Server, loan: &mut Loan, piece: &[u8], log: &mut Log) {
    Server::read_ahead(loan).extend_from_slice(piece);
    while let Some(head) = machine.find_plain(loan.heads.as_deref(), &loan.read) {
        let request = machine.take_plain(head, &mut loan.read, ());
        log.0.push(format!("{request:?} {:?} false false", BodyLength::Empty));
        let status = if log.0.len().is_multiple_of(3) { StatusCode::ACCEPTED } else { StatusCode::OK };
        if !machine.answer_plain(loan, status, &HeaderMap::new(), b"hello") {
            leave(machine, loan);
            return machine
                .send_full(status, &HeaderMap::new(), Bytes::from_static(b"hello"))
                .expect("an answer is owed");
        }
    }
    leave(machine, loan);
}

fn leave(machine: &mut Server, loan: &mut Loan) {
    let unread = loan.read.len();
    machine.lend(loan);
    machine.received(unread);
}

fn server_turn(machine: &mut Server, log: &mut Log) {
    loop {
        let complete = match machine.next_event() {
            Ok(None) => return,
            Ok(Some(ServerEvent::Request { request, body, expect_continue, upgrade })) => {
                log.0.push(format!("{request:?} {body:?} {expect_continue} {upgrade}"));
                assert!(request.headers().get_all("host").iter().count() <= 1);
                machine.want_body(true);
                if expect_continue {
                    machine.send_continue();
                }
                body == BodyLength::Empty
            }
            Ok(Some(ServerEvent::Data(data))) => {
                log.data(&data);
                false
            }
            Ok(Some(ServerEvent::Trailers(trailers))) => {
                assert!(!trailers.contains_key("host") && !trailers.contains_key("content-length"));
                log.0.push(format!("trailers {trailers:?}"));
                false
            }
            Ok(Some(ServerEvent::End)) => {
                log.0.push("end".to_owned());
                true
            }
            Err(error) => {
                log.0.push(format!("error {error}"));
                assert!(error.to_string().is_ascii());
                assert_eq!(machine.next_event().err(), Some(error.clone()));
                machine.answer_fault(&error);
                assert!(machine.is_closed().is_some());
                false
            }
        };
        if complete {
            machine
                .send_full(StatusCode::OK, &HeaderMap::new(), Bytes::from_static(b"hello"))
                .or_else(|_| machine.send_full(StatusCode::FORBIDDEN, &HeaderMap::new(), Bytes::new()))
                .expect("an answer is owed");
        }
    }
}

/// Takes all that a server has to write.
pub fn server_output(machine: &mut Server) -> Vec<u8> {
    let mut out = Vec::new();
    while machine.has_transmit() {
        let mut slices = [IoSlice::new(&[]); 2];
        let filled = machine.poll_transmit(&mut slices);
        let before = out.len();
        for slice in slices.iter().take(filled) {
            out.extend_from_slice(slice);
        }
        machine.transmitted(out.len() - before);
    }
    out
}

/// Takes all that a client has to write.
pub fn client_output(machine: &mut Client) -> Vec<u8> {
    let mut out = Vec::new();
    while machine.has_transmit() {
        let mut slices = [IoSlice::new(&[]); 2];
        let filled = machine.poll_transmit(&mut slices);
        let before = out.len();
        for slice in slices.iter().take(filled) {
            out.extend_from_slice(slice);
        }
        machine.transmitted(out.len() - before);
    }
    out
}

/// The request that a client under test sends.
pub fn method(choice: u8) -> Method {
    match choice % 4 {
        0 => Method::GET,
        1 => Method::HEAD,
        2 => Method::CONNECT,
        _ => Method::POST,
    }
}

/// Runs a client over the pieces of an answer; as long as the connection can be reused, another request follows.
pub fn client_log(method: &Method, pieces: &[&[u8]], eof: bool, unfold: bool) -> Log {
    let config = ClientConfig { limits: limits(), unfold };
    let mut machine = Client::new(Arc::new(config), Instant::now());
    let mut log = Log::default();
    ask(&mut machine, method);
    for (number, piece) in pieces.iter().enumerate() {
        machine.read_buf().extend_from_slice(piece);
        machine.received(piece.len());
        if eof && number + 1 == pieces.len() {
            machine.handle_eof();
        }
        if !client_turn(&mut machine, &mut log) {
            return log;
        }
    }
    log.0.push(format!("closed {:?}, reusable {}", machine.is_closed(), machine.can_reuse()));
    log
}

fn ask(machine: &mut Client, method: &Method) {
    let mut fields = HeaderMap::new();
    for (name, value) in [("host", "a"), ("upgrade", "x"), ("connection", "upgrade")] {
        fields.insert(name, http::HeaderValue::from_static(value));
    }
    let target = if *method == Method::CONNECT { "a:1" } else { "/" };
    machine
        .send_head(method, target, Version::HTTP_11, &fields, BodySize::Known(0))
        .and_then(|()| machine.end())
        .expect("a good request");
    client_output(machine);
}

fn client_turn(machine: &mut Client, log: &mut Log) -> bool {
    loop {
        match machine.next_event() {
            Ok(None) => return true,
            Ok(Some(ClientEvent::Data(data))) => log.data(&data),
            Ok(Some(event)) => log.0.push(format!("{event:?}")),
            Err(error) => {
                assert!(error.to_string().is_ascii());
                assert!(!machine.can_reuse());
                assert_eq!(machine.next_event().err(), Some(error.clone()));
                log.0.push(format!("error {error}"));
                return false;
            }
        }
    }
}
