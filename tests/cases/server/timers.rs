//! Peers that take too long.

use std::convert::Infallible;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyperman::{Body, Config, Shutdown, Timeouts, service_fn};
use hyperman_tests::body::Pieces;
use hyperman_tests::caller::{Caller, Length};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;

use super::{SOON, Told, echo, say_target};

hyperman_tests::cases! {
    EVERY:
        a_slow_head_ends_the_connection
        a_silent_peer_is_let_go
        an_idle_connection_is_closed_silently
        a_slow_body_is_answered_with_408
        a_peer_that_takes_nothing_is_cut_off;
    ONE:
        a_late_first_byte_has_the_whole_time_of_a_head
        a_slow_reader_gets_everything
        who_sends_on_after_a_refusal_is_let_go
        who_takes_nothing_leaves_its_place
        times_without_end_can_be_set;
}

fn a_late_first_byte_has_the_whole_time_of_a_head(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.head = Duration::from_secs(1);
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        // Over TLS, the handshake is a part of the first write.
        peer.handshake();
        // Longer than a head may take: as a browser that connects in advance.
        std::thread::sleep(Duration::from_millis(1_100));
        peer.send("G");
        peer.send("ET /a HTTP/1.1\r\nHost: ");
        peer.send("a\r\n\r\n");
        assert_eq!(peer.answer().text(), "GET /a");
    });
}

/// The kernel takes megabytes at once, and then nothing until a third of them has gone; meanwhile the peer reads.
fn a_slow_reader_gets_everything(on: Carrier) {
    let service = |_| {
        service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new(Pieces { left: 500, made: Arc::default() }))
        })
    };
    let mut config = Config::default();
    config.timeouts.write_stall = Duration::from_millis(500);
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET / HTTP/1.0\r\n\r\n");
        peer.answer_head();
        let mut read = 0;
        for _ in 0..25 {
            read += peer.exactly(40_000).len();
            std::thread::sleep(Duration::from_millis(80));
        }
        assert_eq!(read + peer.rest().len(), 500 * 65_536);
        assert!(!peer.was_reset());
    });
}

/// RFC 9112 §9.6: the server reads on for a while, so that the answer is not lost; but not for as long as there is to read.
fn who_sends_on_after_a_refusal_is_let_go(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.linger = Duration::from_secs(5);
    config.timeouts.linger_most = Duration::from_millis(300);
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET / HTTP/1.1\r\n\r\n");
        assert_eq!(peer.answer().status, 400);
        let refused = Instant::now();
        while peer.try_send("x") {
            assert!(refused.elapsed() < SOON, "it is listened to for ever");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

fn a_slow_head_ends_the_connection(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.head = Duration::from_millis(100);
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.get("/").answer().status, 200);
        caller.half_a_head().expect_late();
    });
}

/// Not one byte: neither a hello of TLS nor a head.
fn a_silent_peer_is_let_go(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.head = Duration::from_millis(100);
    config.timeouts.idle = Duration::from_millis(100);
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        use std::io::Read;
        let mut silent = std::net::TcpStream::connect(address).expect("connect");
        silent.set_read_timeout(Some(SOON)).expect("timeout");
        assert_eq!(silent.read_to_end(&mut Vec::new()).expect("the end"), 0);
    });
}

fn an_idle_connection_is_closed_silently(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.idle = Duration::from_millis(100);
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.get("/").answer().status, 200);
        caller.expect_end();
    });
}

fn a_slow_body_is_answered_with_408(on: Carrier) {
    let mut config = Config::default();
    config.timeouts.body_grace = Duration::from_millis(100);
    with_server!(on, |_| service_fn(echo), config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.begin("POST", "/", &[], Length::Known(10)).send(b"abc");
        caller.expect_given_up(408);
    });
}

fn a_peer_that_takes_nothing_is_cut_off(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_: Request<Body>| {
            let told = Arc::new(Told(tell.clone(), "dropped"));
            let body = Pieces { left: 100_000, made: Arc::default() };
            async move {
                Ok::<_, Infallible>(Response::new(body.map_frame(move |frame| {
                    let _ = &told;
                    frame
                })))
            }
        })
    };
    let mut config = Config::default();
    config.timeouts.write_stall = Duration::from_millis(200);
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.get("/").answer_head();
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
    });
}

/// Its connection is over, with whatever a layer of TLS still holds for it, and not only its handler.
fn who_takes_nothing_leaves_its_place(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            let left = if request.uri().path() == "/large" { 1_000 } else { 1 };
            Ok::<_, Infallible>(Response::new(Pieces { left, made: Arc::default() }))
        })
    };
    let mut config = Config { connections: 1, ..Config::default() };
    config.timeouts.write_stall = Duration::from_millis(200);
    with_server!(on, service, config, |address, _: &Shutdown| {
        for connection in ["close", "keep-alive"] {
            let mut slow = Peer::connect(on, address);
            slow.send(format!("GET /large HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\n\r\n"));
            slow.answer_head();
            let mut next = Peer::connect(on, address);
            next.send("GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            assert_eq!(next.answer().body.len(), 65_536);
            next.expect_end();
            slow.rest();
            assert!(slow.was_reset());
        }
    });
}

fn times_without_end_can_be_set(on: Carrier) {
    let end = Duration::MAX;
    let timeouts = Timeouts {
        head: end,
        idle: end,
        body_rate: u64::MAX,
        body_grace: end,
        write_stall: end,
        linger: end,
        linger_most: end,
    };
    let config = Config { timeouts, drain_deadline: end, ..Config::default() };
    with_server!(on, |_| service_fn(echo), config, |address, shutdown: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
        peer.send("a").send("bc");
        assert_eq!(peer.answer().text(), "abc");
        shutdown.drain();
        peer.expect_end();
    });
}
