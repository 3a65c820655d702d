//! What only HTTP/1 has: requests in a row, versions, `Connection`, and bytes that are no request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;

use super::{get, say_target};

hyperman_tests::cases! {
    ONE:
        pipelined_requests_are_answered_in_order
        connection_close_is_obeyed
        http_1_0_closes_unless_asked_to_stay
        a_ready_answer_reaches_a_peer_that_has_finished
        what_is_malformed_is_answered_and_nothing_after_it_is_heard;
}

fn pipelined_requests_are_answered_in_order(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        let requests: String = (0..500).map(|number| get(&format!("/{number}"))).collect();
        peer.send(requests);
        for number in 0..500 {
            assert_eq!(peer.answer().text(), format!("GET /{number}"));
        }
    });
}

fn connection_close_is_obeyed(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        assert_eq!(peer.answer().field("connection"), Some("close"));
        peer.expect_end();
    });
}

fn http_1_0_closes_unless_asked_to_stay(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(peer.answer().field("connection"), Some("keep-alive"));
        peer.send("GET /b HTTP/1.0\r\n\r\n");
        assert_eq!(peer.answer().text(), "GET /b");
        peer.expect_end();
    });
}

fn a_ready_answer_reaches_a_peer_that_has_finished(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(get("/a") + &get("/b")).finish();
        assert_eq!(peer.answer().text(), "GET /a");
        assert_eq!(peer.answer().text(), "GET /b");
        peer.expect_end();
    });
}

fn what_is_malformed_is_answered_and_nothing_after_it_is_heard(on: Carrier) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let service = move |_| {
        let calls = Arc::clone(&counter);
        service_fn(move |request: Request<Body>| {
            calls.fetch_add(1, Ordering::SeqCst);
            say_target(request)
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\nHost: a\n\n", 400),
            ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ] {
            let mut peer = Peer::connect(on, address);
            peer.try_send(format!("{request}{}", get("/smuggled")));
            let answer = peer.answer();
            assert_eq!(answer.status, status, "{request:?}");
            assert_eq!(answer.field("connection"), Some("close"), "{request:?}");
            peer.expect_end();
        }
    });
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}
