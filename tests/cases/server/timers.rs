//! Peers that take too long.

use std::convert::Infallible;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::body::Pieces;
use hyperman_tests::caller::{Caller, Length};
use hyperman_tests::carrier::Carrier;

use super::{SOON, Told, echo, say_target};

hyperman_tests::cases! {
    EVERY:
        a_slow_head_ends_the_connection
        a_silent_peer_is_let_go
        an_idle_connection_is_closed_silently
        a_slow_body_is_answered_with_408
        a_peer_that_takes_nothing_is_cut_off;
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
