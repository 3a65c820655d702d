//! Many at once.

use http::{HeaderMap, Method};
use hyperman::{Config, Shutdown, service_fn};
use hyperman_http2::BodySize;
use hyperman_tests::caller::Caller;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::http2::Http2Peer;

use super::say_target;

hyperman_tests::cases! {
    EVERY:
        connections_over_the_limit_wait_for_their_turn
        five_hundred_connections_at_once_are_all_served;
    TWO:
        five_hundred_streams_at_once_are_all_served;
}

fn connections_over_the_limit_wait_for_their_turn(on: Carrier) {
    let config = Config { connections: 2, ..Config::default() };
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut first = Caller::connect(on, address);
        let mut second = Caller::connect(on, address);
        assert_eq!(first.get("/1").answer().text(), "GET /1");
        assert_eq!(second.get("/2").answer().text(), "GET /2");
        // In a thread of its own, because a handshake waits for the server.
        let third = std::thread::spawn(move || Caller::connect(on, address).get("/3").answer().text());
        assert_eq!(second.get("/2").answer().text(), "GET /2");
        assert!(!third.is_finished());
        drop(first);
        assert_eq!(third.join().expect("the third"), "GET /3");
    });
}

fn five_hundred_connections_at_once_are_all_served(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut callers: Vec<Caller> = (0..500).map(|_| Caller::connect(on, address)).collect();
        for (number, caller) in callers.iter_mut().enumerate() {
            caller.get(&format!("/{number}"));
        }
        for (number, caller) in callers.iter_mut().enumerate() {
            assert_eq!(caller.answer().text(), format!("GET /{number}"));
        }
    });
}

fn five_hundred_streams_at_once_are_all_served(on: Carrier) {
    let mut config = Config::default();
    config.http2_settings.limits.concurrent_streams = 500;
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Http2Peer::connect(on, address);
        // Its settings come first, or not all may be opened.
        peer.settled();
        let open = |number| (number, format!("/{number}"));
        let streams: Vec<_> = (0..500)
            .map(open)
            .map(|(number, target)| {
                (number, peer.open(&Method::GET, &target, &HeaderMap::new(), BodySize::Known(0)))
            })
            .collect();
        for (number, stream) in streams.into_iter().rev() {
            assert_eq!(peer.head(stream).expect("an answer").status, 200);
            let body = peer.piece(stream).expect("a body").expect("a piece");
            assert_eq!(body, format!("GET /{number}"));
            peer.finished(stream);
        }
    });
}
