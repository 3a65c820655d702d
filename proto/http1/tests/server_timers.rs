//! A server's deadlines, under a time that the test makes up.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

mod support;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyperman_http1::{CloseReason, Error, Server, ServerConfig, ServerEvent, Timeout};
use support::*;

#[test]
fn the_head_timer_answers_408_and_the_idle_timer_says_nothing() {
    let start = Instant::now();
    let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(60), Timeout::Idle)));
    machine.handle_timeout(start + seconds(60));
    assert_eq!(machine.next_event().unwrap_err(), Error::Timeout(Timeout::Idle));
    machine.answer_fault(&Error::Timeout(Timeout::Idle));
    assert!(!machine.has_transmit() && !machine.needs_linger());
    assert_eq!(machine.is_closed(), Some(CloseReason::Timeout));

    let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
    machine.handle_timeout(start + seconds(10));
    for _ in 0..5 {
        server_input(&mut machine, b"G");
        assert!(matches!(machine.next_event(), Ok(None)));
        assert_eq!(
            machine.poll_timeout(),
            Some((start + seconds(40), Timeout::Head)),
            "bytes do not prolong it"
        );
        machine.handle_timeout(start + seconds(39));
    }
    machine.handle_timeout(start + seconds(40));
    let error = machine.next_event().unwrap_err();
    assert_eq!(error, Error::Timeout(Timeout::Head));
    machine.answer_fault(&error);
    assert!(server_output(&mut machine).starts_with("HTTP/1.1 408 Request Timeout\r\n"));
    assert!(machine.needs_linger());
    assert_eq!(machine.poll_timeout(), Some((start + seconds(42), Timeout::Linger)));
    machine.handle_timeout(start + seconds(42));
    assert!(matches!(machine.next_event(), Ok(None)));
    assert!(!machine.needs_linger());
}

#[test]
fn lingering_lasts_while_the_peer_sends_but_not_for_ever() {
    for request in
        ["GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n"]
    {
        let start = Instant::now();
        let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
        machine.handle_timeout(start + seconds(50));
        server_input(&mut machine, request.as_bytes());
        let error = machine.next_event().unwrap_err();
        machine.answer_fault(&error);
        server_output(&mut machine);
        let mut second = 50;
        while second < 80 {
            machine.handle_timeout(start + seconds(second));
            server_input(&mut machine, b"x");
            assert!(matches!(machine.next_event(), Ok(None)));
            assert!(machine.needs_linger());
            let until = (second + 2).min(80);
            assert_eq!(machine.poll_timeout(), Some((start + seconds(until), Timeout::Linger)), "{second}");
            second += 1;
        }
        machine.handle_timeout(start + seconds(80));
        assert!(matches!(machine.next_event(), Ok(None)));
        assert!(!machine.needs_linger());
    }
}

#[test]
fn a_write_that_moved_elsewhere_is_not_stalled() {
    let start = Instant::now();
    let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
    server_input(&mut machine, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::from_static(b"abc")).unwrap();
    assert_eq!(machine.poll_timeout(), Some((start + seconds(60), Timeout::WriteStall)));
    machine.handle_timeout(start + seconds(60));
    machine.write_moved();
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.poll_timeout(), Some((start + seconds(120), Timeout::WriteStall)));
    machine.handle_timeout(start + seconds(120));
    assert_eq!(machine.next_event().unwrap_err(), Error::Timeout(Timeout::WriteStall));
}

#[test]
fn what_a_layer_below_holds_waits_to_be_written() {
    let start = Instant::now();
    for request in
        ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"]
    {
        let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
        server_input(&mut machine, request.as_bytes());
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::from_static(b"abc")).unwrap();
        server_output(&mut machine);
        machine.handle_timeout(start + seconds(1));
        machine.set_unflushed(true);
        assert_eq!(machine.poll_timeout(), Some((start + seconds(61), Timeout::WriteStall)), "{request:?}");
        machine.handle_timeout(start + seconds(61));
        assert_eq!(machine.next_event().unwrap_err(), Error::Timeout(Timeout::WriteStall));
        assert!(machine.is_cut_short(), "nobody waits for what is left");

        let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
        machine.set_unflushed(true);
        machine.handle_timeout(start + seconds(5));
        machine.set_unflushed(false);
        assert_eq!(machine.poll_timeout(), Some((start + seconds(65), Timeout::Idle)));
    }
}

#[test]
fn the_body_timer_runs_while_the_body_is_waited_for() {
    let start = Instant::now();
    let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
    server_input(&mut machine, head.as_bytes());
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    assert_eq!(machine.poll_timeout(), None, "nobody waits for it");
    machine.want_body(true);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(10), Timeout::BodyRate)));
    // 1,000 bytes earn two seconds, but never more than the grace.
    machine.handle_timeout(start + seconds(5));
    server_input(&mut machine, &[b'x'; 1000]);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(12), Timeout::BodyRate)));
    server_input(&mut machine, &[b'x'; 60_000]);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(15), Timeout::BodyRate)));
    // Not wanting it stops the clock, and wanting it again does not turn it back.
    machine.handle_timeout(start + seconds(14));
    machine.want_body(false);
    machine.handle_timeout(start + seconds(100));
    machine.want_body(true);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(101), Timeout::BodyRate)));
    while machine.next_event().unwrap().is_some() {}
    machine.handle_timeout(start + seconds(101));
    let error = machine.next_event().unwrap_err();
    assert_eq!(error, Error::Timeout(Timeout::BodyRate));
    machine.answer_fault(&error);
    assert!(server_output(&mut machine).starts_with("HTTP/1.1 408 "));
}

#[test]
fn the_write_timer_restarts_with_every_byte_that_moves() {
    let start = Instant::now();
    let mut machine = Server::new(Arc::new(ServerConfig::default()), start);
    server_input(&mut machine, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    machine.handle_timeout(start + seconds(7));
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::from(vec![b'x'; 100_000])).unwrap();
    assert_eq!(machine.poll_timeout(), Some((start + seconds(67), Timeout::WriteStall)));
    machine.handle_timeout(start + seconds(50));
    machine.transmitted(10);
    assert_eq!(machine.poll_timeout(), Some((start + seconds(110), Timeout::WriteStall)));
    machine.handle_timeout(start + seconds(110));
    let error = machine.next_event().unwrap_err();
    assert_eq!(error, Error::Timeout(Timeout::WriteStall));
    machine.answer_fault(&error);
    assert!(!machine.has_transmit());
    assert_eq!(machine.is_closed(), Some(CloseReason::Timeout));
}
