//! One request after the other, and what their answers are made of.

use std::future::pending;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyperman::{Body, Config, Interim, Shutdown, service_fn};
use hyperman_http2::BodySize;
use hyperman_tests::caller::{Caller, Length};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::http2::Http2Peer;

use super::{Text, echo, say_target, text};

hyperman_tests::cases! {
    EVERY:
        keep_alive_serves_one_request_after_the_other
        a_request_split_at_every_byte_is_one_request
        head_has_the_length_and_no_body
        trailers_come_after_the_body_and_apart_from_the_head
        early_hints_precede_the_answer
        the_100_goes_out_when_the_handler_first_reads
        a_handler_that_panics_or_fails_is_answered_with_500
        a_pending_handler_parks_only_its_own_connection
        an_axum_router_is_served_unchanged;
    TWO:
        a_pending_handler_parks_only_its_own_stream
        both_versions_are_spoken_on_one_port;
}

fn keep_alive_serves_one_request_after_the_other(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        for number in 0..5 {
            let answer = caller.get(&format!("/{number}")).answer();
            assert_eq!((answer.status, answer.text()), (200, format!("GET /{number}")));
            assert!(answer.field("date").is_some());
            assert_eq!(answer.field("connection"), None);
        }
    });
}

fn a_request_split_at_every_byte_is_one_request(on: Carrier) {
    with_server!(on, |_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.dribble();
        caller.begin("POST", "/", &[], Length::Unknown).send(b"abc").end(&[]);
        assert_eq!(caller.answer().text(), "abc");
    });
}

fn head_has_the_length_and_no_body(on: Carrier) {
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.begin("HEAD", "/x", &[], Length::Known(0)).get("/y");
        let answer = caller.answer();
        assert_eq!((answer.field("content-length"), answer.text().as_str()), (Some("7"), ""));
        assert_eq!(caller.answer().text(), "GET /y");
    });
}

fn trailers_come_after_the_body_and_apart_from_the_head(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async {
            let collected = request.into_body().collect().await.expect("a whole body");
            let trailer = collected.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
            text(format!("{:?}", trailer.expect("a trailer")))
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller
            .begin("POST", "/", &[("trailer", "x-sum")], Length::Unknown)
            .send(b"a")
            .end(&[("x-sum", "97")]);
        assert_eq!(caller.answer().text(), "\"97\"");
    });
}

fn early_hints_precede_the_answer(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            let interim = request.extensions().get::<Interim>().cloned().expect("an Interim");
            let mut hints = HeaderMap::new();
            hints.insert("link", HeaderValue::from_static("</a.css>; rel=preload"));
            interim.send(StatusCode::EARLY_HINTS, hints);
            text("answer")
        })
    };
    let config = Config { interim_extension: true, ..Config::default() };
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        let hints = caller.get("/").answer();
        assert_eq!((hints.status, hints.field("link")), (103, Some("</a.css>; rel=preload")));
        assert_eq!(caller.answer().text(), "answer");
    });
}

fn the_100_goes_out_when_the_handler_first_reads(on: Carrier) {
    let expect = &[("expect", "100-continue")];
    with_server!(on, |_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.begin("POST", "/", expect, Length::Known(3)).answer().status, 100);
        assert_eq!(caller.send(b"abc").answer().text(), "abc");
        assert_eq!(caller.get("/").answer().status, 200);
    });
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.begin("POST", "/x", expect, Length::Known(3)).answer().text(), "POST /x");
    });
}

fn a_handler_that_panics_or_fails_is_answered_with_500(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            match request.uri().path() {
                "/panic" => panic!("as the test wants it"),
                "/fail" => Err("as the test wants it"),
                _ => Ok(Response::new(Text::from("fine"))),
            }
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.get("/panic").answer().status, 500);
        assert_eq!(caller.get("/fail").answer().status, 500);
        assert_eq!(caller.get("/").answer().text(), "fine");
    });
}

/// Answers at once, but `/wait` never.
async fn wait_or_not(request: Request<Body>) -> Result<Response<Text>, std::convert::Infallible> {
    if request.uri().path() == "/wait" {
        pending::<()>().await;
    }
    text("ready")
}

fn a_pending_handler_parks_only_its_own_connection(on: Carrier) {
    with_server!(on, |_| service_fn(wait_or_not), Config::default(), |address, _: &Shutdown| {
        let mut parked = Caller::connect(on, address);
        parked.get("/wait");
        for _ in 0..20 {
            assert_eq!(Caller::connect(on, address).get("/").answer().text(), "ready");
        }
    });
}

fn a_pending_handler_parks_only_its_own_stream(on: Carrier) {
    with_server!(on, |_| service_fn(wait_or_not), Config::default(), |address, _: &Shutdown| {
        let mut peer = Http2Peer::connect(on, address);
        let fields = HeaderMap::new();
        peer.open(&Method::GET, "/wait", &fields, BodySize::Known(0));
        for _ in 0..20 {
            let stream = peer.open(&Method::GET, "/", &fields, BodySize::Known(0));
            assert_eq!(peer.head(stream).expect("an answer").status, 200);
            assert_eq!(peer.piece(stream).expect("a body").expect("a piece"), "ready");
            peer.finished(stream);
        }
    });
}

fn both_versions_are_spoken_on_one_port(on: Carrier) {
    let other = if on.is_secure() { Carrier::Http1Tls } else { Carrier::Http1 };
    with_server!(on, |_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let (mut one, mut two) = (Caller::connect(other, address), Caller::connect(on, address));
        for number in 0..5 {
            for caller in [&mut one, &mut two] {
                assert_eq!(caller.get(&format!("/{number}")).answer().text(), format!("GET /{number}"));
            }
        }
    });
}

fn an_axum_router_is_served_unchanged(on: Carrier) {
    use axum::routing::{get, post};
    let router = |_| {
        axum::Router::new()
            .route("/hello/{name}", get(async |axum::extract::Path(name): axum::extract::Path<String>| name))
            .route("/echo", post(async |body: Bytes| body))
    };
    with_server!(on, router, Config::default(), |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        assert_eq!(caller.get("/hello/world").answer().text(), "world");
        assert_eq!(caller.get("/nowhere").answer().status, 404);
        assert_eq!(caller.post("/echo", b"abcde").answer().text(), "abcde");
    });
}
