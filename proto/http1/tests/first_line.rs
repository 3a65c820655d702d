//! A first line that is none is answered as soon as it is there, not when a head would be over or a timer has run out.

#![allow(clippy::disallowed_methods)] // a test has the clock

use std::sync::Arc;
use std::time::Instant;

use hyperman_http1::{Error, Server, ServerConfig};

fn fault(bytes: &[u8]) -> Option<Error> {
    let mut server = Server::new(Arc::new(ServerConfig::default()), Instant::now());
    server.read_buf().extend_from_slice(bytes);
    server.received(bytes.len());
    server.next_event().err()
}

#[test]
fn http_0_9_and_other_protocols_get_their_answer_at_once() {
    for bytes in
        [&b"GET /\r\n"[..], b"GET / HTTP/1.x\r\n", b"HELO there\r\n", b"\x16\x03\x01\x02\x00", b"{\"a\":"]
    {
        let status = fault(bytes).and_then(|error| error.status()).map(|status| status.as_u16());
        assert_eq!(status, Some(400), "{:?}", bytes.escape_ascii().to_string());
    }
    assert_eq!(fault(b"GET / HTTP/2.0\r\n").and_then(|error| error.status()).unwrap().as_u16(), 505);
}

#[test]
fn the_beginning_of_a_good_one_waits_for_the_rest() {
    for bytes in [&b"G"[..], b"GET /", b"GET / HTTP/1.1\r", b"GET / HTTP/1.1\r\n", b"\r\n", b"\r", b"\r\nGET"]
    {
        assert_eq!(fault(bytes), None, "{:?}", bytes.escape_ascii().to_string());
    }
}
