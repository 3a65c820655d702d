//! Bodies in both directions: whole, held back, too large, not wanted.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::body::Pieces;
use hyperman_tests::caller::{Caller, Length};
use hyperman_tests::carrier::Carrier;

use super::{Text, echo, say_target};

hyperman_tests::cases! {
    EVERY:
        uploads_come_back_whole
        a_slow_reader_holds_the_answers_body_back
        a_handler_that_does_not_read_holds_the_upload_back
        a_body_over_the_limit_is_answered_with_413
        an_early_answer_to_a_large_upload_arrives;
}

fn uploads_come_back_whole(on: Carrier) {
    with_server!(on, |_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let body: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
        let mut caller = Caller::connect(on, address);
        assert!(caller.post("/", &body).answer().body == body);
        caller.begin("POST", "/", &[], Length::Unknown);
        for piece in body.chunks(10_007) {
            caller.send(piece);
        }
        assert!(caller.end(&[]).answer().body == body);
        assert_eq!(caller.post("/", b"").answer().text(), "");
    });
}

fn a_slow_reader_holds_the_answers_body_back(on: Carrier) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let service = move |_| {
        service_fn(move |request: Request<Body>| {
            let left = if request.uri().path() == "/large" { 1_000 } else { 1 };
            let made = Arc::clone(&counter);
            async move { Ok::<_, Infallible>(Response::new(Pieces { left, made })) }
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut slow = Caller::connect(on, address);
        let answer = slow.get("/large").answer_head();
        // Another peer is served meanwhile, so the first one's body cannot have been produced in one go.
        assert_eq!(Caller::connect(on, address).get("/small").answer().body.len(), 65_536);
        let before = made.load(Ordering::SeqCst) - 1;
        assert!(before < 400, "{before} of 1,000 pieces were made for a peer that reads nothing");
        assert_eq!(slow.answer_rest(answer).body.len(), 65_536_000);
        assert_eq!(made.load(Ordering::SeqCst), 1_001);
    });
}

fn a_handler_that_does_not_read_holds_the_upload_back(on: Carrier) {
    let service = |_| service_fn(|_request: Request<Body>| pending::<Result<Response<Text>, Infallible>>());
    let mut config = Config::default();
    config.limits.body = u64::MAX;
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.begin("POST", "/", &[], Length::Known(1_000_000_000));
        caller.send(b"before the handshake of TLS is over, nothing is held back");
        caller.set_patience(Duration::from_millis(300));
        let piece = vec![b'x'; 65_536];
        let mut taken = 0;
        while caller.try_send(&piece) {
            taken += piece.len();
            assert!(taken < 100_000_000, "the upload was read although nobody wanted it");
        }
    });
}

fn a_body_over_the_limit_is_answered_with_413(on: Carrier) {
    let mut config = Config::default();
    config.limits.body = 1_000;
    with_server!(on, |_| service_fn(echo), config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.begin("POST", "/", &[], Length::Known(1_001)).answer().status, 413);
        let mut caller = Caller::connect(on, address);
        caller.begin("POST", "/", &[], Length::Unknown).send(&[b'x'; 512]).try_send(&[b'x'; 512]);
        assert_eq!(caller.answer().status, 413);
        if !on.is_http2() {
            caller.expect_end();
        }
    });
}

fn an_early_answer_to_a_large_upload_arrives(on: Carrier) {
    let mut config = Config::default();
    config.limits.body = u64::MAX;
    with_server!(on, |_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.begin("POST", "/", &[], Length::Known(100_000_000));
        let piece = vec![b'x'; 65_536];
        for _ in 0..3 {
            caller.try_send(&piece);
        }
        let answer = caller.answer();
        assert_eq!((answer.status, answer.text()), (200, "POST /".to_owned()));
        if on.is_http2() {
            // Only the stream is over.
            assert_eq!(caller.get("/").answer().text(), "GET /");
        } else {
            assert_eq!(answer.field("connection"), Some("close"));
        }
    });
}
