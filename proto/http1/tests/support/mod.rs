//! Feeds bytes to a machine in pieces and writes down what came out, so that a test can compare one list of lines with
//! another, however the bytes were cut.

#![allow(dead_code)] // each test file uses its part
#![allow(clippy::indexing_slicing, clippy::disallowed_methods, clippy::unwrap_used)] // as the tests themselves

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Version};
use hyperman_http1::{
    BodyLength, BodySize, Client, ClientConfig, ClientEvent, HeadCache, Limits, Loan, Server, ServerConfig,
    ServerEvent,
};

pub fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    headers
}

pub fn server(limits: Limits) -> Server {
    Server::new(Arc::new(ServerConfig { limits, ..ServerConfig::default() }), Instant::now())
}

pub fn client() -> Client {
    Client::new(Arc::new(ClientConfig::default()), Instant::now())
}

macro_rules! driver {
    ($input:ident, $output:ident, $machine:ty) => {
        pub fn $input(machine: &mut $machine, bytes: &[u8]) {
            machine.read_buf().extend_from_slice(bytes);
            machine.received(bytes.len());
        }

        /// Takes all that can be written; external bytes show as dots.
        pub fn $output(machine: &mut $machine) -> String {
            let mut out = Vec::new();
            while machine.has_transmit() {
                let external = machine.external() as usize;
                if external > 0 {
                    out.extend(vec![b'.'; external]);
                    machine.transmitted(external);
                    continue;
                }
                let mut slices = [IoSlice::new(&[]); 4];
                let filled = machine.poll_transmit(&mut slices);
                let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                machine.transmitted(bytes.len());
                out.extend(bytes);
            }
            String::from_utf8(out).unwrap()
        }
    };
}

driver!(server_input, server_output, Server);
driver!(client_input, client_output, Client);

fn shown(headers: &HeaderMap) -> String {
    headers.iter().map(|(name, value)| format!(" {name}={}", value.as_bytes().escape_ascii())).collect()
}

fn note_data(log: &mut Vec<String>, data: &[u8]) {
    let text = data.escape_ascii().to_string();
    match log.last_mut() {
        Some(last) if last.starts_with("data ") => last.push_str(&text),
        _ => log.push(format!("data {text}")),
    }
}

/// What a server makes of `pieces`, answering each request with an empty 200 as soon as it was read. An error is
/// answered, and the answer's status noted. With `eof`, the peer ends its direction after the last piece.
pub fn server_log(limits: &Limits, pieces: &[&[u8]], eof: bool, loan: &mut Option<Loan>) -> Vec<String> {
    let mut machine = server(limits.clone());
    let mut log = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        match loan {
            Some(loan) if machine.can_run_ahead() => run_ahead(&mut machine, loan, piece, &mut log),
            _ => {
                if let Some(loan) = loan {
                    machine.lend(loan);
                }
                if machine.is_closed().is_none() || machine.needs_linger() {
                    server_input(&mut machine, piece);
                }
            }
        }
        if eof && number + 1 == pieces.len() {
            machine.handle_eof();
        }
        drain_server(&mut machine, &mut log);
        if let Some(loan) = loan {
            server_output(&mut machine);
            machine.reclaim(loan);
        }
    }
    if let Some(reason) = machine.is_closed() {
        log.push(format!("closed {reason:?}"));
    }
    log
}

/// The short way, as far as it goes; every third answer is for the long way.
fn run_ahead(machine: &mut Server, loan: &mut Loan, piece: &[u8], log: &mut Vec<String>) {
    Server::read_ahead(loan).extend_from_slice(piece);
    while let Some(head) = machine.find_plain(loan.heads.as_deref(), &loan.read) {
        let request = machine.take_plain(head, &mut loan.read, ());
        note_request(log, &request, BodyLength::Empty, "");
        if log.len().is_multiple_of(3) || !machine.answer_plain(loan, StatusCode::OK, &HeaderMap::new(), b"")
        {
            leave(machine, loan);
            return machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
        }
    }
    leave(machine, loan);
}

fn leave(machine: &mut Server, loan: &mut Loan) {
    let unread = loan.read.len();
    machine.lend(loan);
    machine.received(unread);
}

fn note_request(log: &mut Vec<String>, request: &Request<()>, body: BodyLength, marks: &str) {
    let (method, uri, version) = (request.method(), request.uri(), request.version());
    log.push(format!("{method} {uri} {version:?} {body:?}{marks}{}", shown(request.headers())));
}

fn drain_server(machine: &mut Server, log: &mut Vec<String>) {
    loop {
        let answer = match machine.next_event() {
            Ok(None) => return,
            Ok(Some(ServerEvent::Request { request, body, expect_continue, upgrade })) => {
                let marks = match (expect_continue, upgrade) {
                    (false, false) => "",
                    (true, false) => " expect",
                    (false, true) => " upgrade",
                    (true, true) => " expect upgrade",
                };
                note_request(log, &request, body, marks);
                body == BodyLength::Empty
            }
            Ok(Some(ServerEvent::Data(data))) => {
                note_data(log, &data);
                false
            }
            Ok(Some(ServerEvent::Trailers(trailers))) => {
                log.push(format!("trailers{}", shown(&trailers)));
                false
            }
            Ok(Some(ServerEvent::End)) => {
                log.push("end".to_owned());
                true
            }
            Err(error) => {
                assert_eq!(machine.next_event().unwrap_err(), error, "an error repeats");
                server_output(machine);
                machine.answer_fault(&error);
                let answer = server_output(machine);
                let status = answer.get(9..12).unwrap_or("none");
                log.push(format!("{status} {error}"));
                assert!(machine.is_closed().is_some());
                assert!(matches!(machine.next_event(), Ok(None)));
                false
            }
        };
        if answer {
            machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
        }
    }
}

/// What a client that sent `method` makes of `pieces`. With `eof`, the server ends its direction after the last piece.
pub fn client_log(config: &ClientConfig, method: &Method, pieces: &[&[u8]], eof: bool) -> Vec<String> {
    let mut machine = Client::new(Arc::new(config.clone()), Instant::now());
    let mut log = Vec::new();
    let target = if *method == Method::CONNECT { "a:1" } else { "/" };
    let fields = headers(&[("host", "a"), ("upgrade", "x"), ("connection", "upgrade")]);
    machine.send_head(method, target, Version::HTTP_11, &fields, BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    for (number, piece) in pieces.iter().enumerate() {
        client_input(&mut machine, piece);
        if eof && number + 1 == pieces.len() {
            machine.handle_eof();
        }
        if !drain_client(&mut machine, &mut log) {
            return log;
        }
    }
    let reuse = if machine.can_reuse() { "reusable" } else { "not reusable" };
    log.push(match machine.is_closed() {
        Some(reason) => format!("{reuse}, closed {reason:?}"),
        None => reuse.to_owned(),
    });
    log
}

fn drain_client(machine: &mut Client, log: &mut Vec<String>) -> bool {
    let head = |response: &http::Response<()>| {
        format!("{} {:?}{}", response.status().as_u16(), response.version(), shown(response.headers()))
    };
    loop {
        match machine.next_event() {
            Ok(None) => return true,
            Ok(Some(ClientEvent::Interim(response))) => log.push(format!("interim {}", head(&response))),
            Ok(Some(ClientEvent::Upgraded(response))) => log.push(format!("upgraded {}", head(&response))),
            Ok(Some(ClientEvent::Response { response, body })) => {
                log.push(format!("{} {body:?}", head(&response)));
            }
            Ok(Some(ClientEvent::Data(data))) => note_data(log, &data),
            Ok(Some(ClientEvent::Trailers(trailers))) => log.push(format!("trailers{}", shown(&trailers))),
            Ok(Some(ClientEvent::End)) => log.push("end".to_owned()),
            Err(error) => {
                assert_eq!(machine.next_event().unwrap_err(), error, "an error repeats");
                assert!(!machine.can_reuse());
                log.push(format!("error {error}"));
                return false;
            }
        }
    }
}

/// Every way to cut `input` that a vector is tried with: whole, byte by byte, and in two at every place.
pub fn cuts(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut cuts = vec![vec![input], input.chunks(1).collect()];
    cuts.extend((1..input.len()).map(|at| vec![&input[..at], &input[at..]]));
    cuts
}

/// What must come out of the server for `input`, however it is cut, with and without a cache of heads that saw it
/// before. After an error nothing that follows may change anything.
#[track_caller]
pub fn server_vector(input: &str, expected: &[&str]) {
    server_vector_with(&Limits::default(), input.as_bytes(), expected);
}

#[track_caller]
pub fn server_vector_with(limits: &Limits, input: &[u8], expected: &[&str]) {
    let mut loan = Some(Loan { heads: Some(Box::new(HeadCache::new(1))), ..Loan::default() });
    for pieces in cuts(input) {
        let log = server_log(limits, &pieces, false, &mut None);
        assert_eq!(
            log,
            expected,
            "{} in {} pieces, first {}",
            input.escape_ascii(),
            pieces.len(),
            pieces[0].len()
        );
        let cached = server_log(limits, &pieces, false, &mut loan);
        assert_eq!(cached, expected, "with a cache: {} in {} pieces", input.escape_ascii(), pieces.len());
    }
    if expected.iter().any(|line| line.starts_with("closed Fault")) {
        let mut junk = input.to_vec();
        junk.extend_from_slice(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n\0\xff\r\n\r\n");
        for pieces in [vec![&junk[..]], junk.chunks(1).collect()] {
            assert_eq!(
                server_log(limits, &pieces, false, &mut None),
                expected,
                "junk behind {}",
                input.escape_ascii()
            );
        }
    }
}

/// A refused request: the status that answers it, and nothing but a close.
#[track_caller]
pub fn refused(input: &str, status: u16) {
    refused_with(&Limits::default(), input.as_bytes(), status);
}

#[track_caller]
pub fn refused_with(limits: &Limits, input: &[u8], status: u16) {
    let log = server_log(limits, &[input], false, &mut None);
    let expected = format!("{status} ");
    let position = log.iter().position(|line| line.starts_with(&expected));
    assert!(position.is_some_and(|at| at + 2 == log.len()), "{} gives {log:?}", input.escape_ascii());
    assert_eq!(log.last().map(String::as_str), Some("closed Fault"), "{}", input.escape_ascii());
    let lines: Vec<&str> = log.iter().map(String::as_str).collect();
    server_vector_with(limits, input, &lines);
}

#[track_caller]
pub fn client_vector(method: Method, input: &str, expected: &[&str]) {
    client_vector_with(&ClientConfig::default(), method, input.as_bytes(), false, expected);
}

#[track_caller]
pub fn client_vector_eof(method: Method, input: &str, expected: &[&str]) {
    client_vector_with(&ClientConfig::default(), method, input.as_bytes(), true, expected);
}

#[track_caller]
pub fn client_vector_with(config: &ClientConfig, method: Method, input: &[u8], eof: bool, expected: &[&str]) {
    for pieces in cuts(input) {
        let log = client_log(config, &method, &pieces, eof);
        assert_eq!(log, expected, "{} in {} pieces", input.escape_ascii(), pieces.len());
    }
    if expected.last().is_some_and(|line| line.starts_with("error")) && !eof {
        let mut junk = input.to_vec();
        junk.extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n\0\xff");
        assert_eq!(
            client_log(config, &method, &[&junk], false),
            expected,
            "junk behind {}",
            input.escape_ascii()
        );
    }
}

pub fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
