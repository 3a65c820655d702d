//! Answers that are not all there: however they came to an early end, the peer can tell. And peers that reset while
//! nobody reads what they send.

use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::caller::{Caller, Length};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;

use super::{SOON, Text, Told, echo, text};

hyperman_tests::cases! {
    EVERY:
        a_reset_is_noticed_while_reading_rests;
    ONE:
        a_body_that_fails_never_looks_whole
        a_drain_that_cuts_resets_what_ends_with_the_connection
        a_peer_that_stops_reading_is_reset_where_the_end_is_the_length
        a_handler_dropped_for_a_half_closed_peer_leaves_no_whole_answer
        what_ends_with_the_connection_ends_well_when_it_is_whole
        no_100_is_sent_to_who_has_not_waited_for_it
        the_end_of_an_upload_is_noticed_while_reading_rests;
}

/// `first`, then what `then` says.
struct Failing {
    first: Option<Bytes>,
    then: Then,
    length: Option<u64>,
    /// Told when this is dropped.
    _told: Option<Told>,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Fail,
    Wait,
    End,
    /// The same bytes again, for ever.
    Repeat,
}

impl http_body::Body for Failing {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let first = if self.then == Then::Repeat { self.first.clone() } else { self.first.take() };
        match (first, self.then) {
            (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
            (None, Then::Fail) => Poll::Ready(Some(Err("as the test wants it"))),
            (None, Then::Wait) => Poll::Pending,
            (None, Then::End | Then::Repeat) => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn failing(first: &'static [u8], then: Then) -> Failing {
    Failing { first: Some(Bytes::from_static(first)), then, length: None, _told: None }
}

/// Answers with "first" and then in the way that the path says.
async fn by_path(request: Request<Body>) -> Result<Response<Failing>, Infallible> {
    Ok(Response::new(match request.uri().path() {
        "/wait" => failing(b"first", Then::Wait),
        "/end" => failing(b"first", Then::End),
        "/sized" => Failing { length: Some(9), ..failing(b"first", Then::Fail) },
        "/at-once" => Failing { first: None, ..failing(b"", Then::Fail) },
        _ => failing(b"first", Then::Fail),
    }))
}

fn a_body_that_fails_never_looks_whole(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        // RFC 9112 §8: what ends with the connection is whole when that ends well.
        for (path, body) in [("/", "first"), ("/at-once", "")] {
            let mut peer = Peer::connect(on, address);
            peer.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
            let head = peer.answer_head();
            assert_eq!((head.field("content-length"), head.field("transfer-encoding")), (None, None));
            peer.expect_reset(body);
        }
        // What has a length of its own lacks the rest.
        let mut peer = Peer::connect(on, address);
        peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(peer.answer_head().field("transfer-encoding"), Some("chunked"));
        assert_eq!(peer.rest(), b"5\r\nfirst\r\n");
        let mut peer = Peer::connect(on, address);
        peer.send("GET /sized HTTP/1.0\r\n\r\n");
        assert_eq!(peer.answer_head().field("content-length"), Some("9"));
        assert_eq!(peer.rest(), b"first");
    });
}

fn what_ends_with_the_connection_ends_well_when_it_is_whole(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET /end HTTP/1.0\r\n\r\n");
        assert_eq!(peer.answer_head().field("connection"), Some("close"));
        assert_eq!(peer.exactly(5), b"first");
        peer.expect_end();
        assert!(!peer.was_reset());
    });
}

fn a_drain_that_cuts_resets_what_ends_with_the_connection(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, shutdown: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET /wait HTTP/1.0\r\n\r\n");
        peer.answer_head();
        assert_eq!(peer.exactly(5), b"first");
        shutdown.cut();
        peer.expect_reset("");
    });
}

fn a_peer_that_stops_reading_is_reset_where_the_end_is_the_length(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_request: Request<Body>| {
            let told = Some(Told(tell.clone(), "given up"));
            async move {
                let body = Failing { _told: told, ..failing(&[b'x'; 65_536], Then::Repeat) };
                Ok::<_, Infallible>(Response::new(body))
            }
        })
    };
    let mut config = Config::default();
    config.timeouts.write_stall = Duration::from_millis(200);
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET / HTTP/1.0\r\n\r\n");
        peer.answer_head();
        assert_eq!(told.recv_timeout(SOON), Ok("given up"));
        peer.rest();
        assert!(peer.was_reset());
    });
}

fn a_handler_dropped_for_a_half_closed_peer_leaves_no_whole_answer(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("GET /wait HTTP/1.0\r\n\r\n");
        peer.answer_head();
        assert_eq!(peer.exactly(5), b"first");
        peer.finish();
        peer.expect_reset("");
    });
}

fn no_100_is_sent_to_who_has_not_waited_for_it(on: Carrier) {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n";
    with_server!(on, |_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        // RFC 9110 §10.1.1: it may be left out when some of the content has come already.
        peer.send(format!("{head}abc"));
        peer.send("def");
        let answer = peer.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "abcdef"));
        peer.send(format!("{head}abcdef"));
        assert_eq!(peer.answer().status, 200);
        peer.send(head);
        assert_eq!(peer.answer().status, 100);
        peer.send("abcdef");
        assert_eq!(peer.answer().status, 200);
    });
}

fn a_reset_is_noticed_while_reading_rests(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |request: Request<Body>| {
            let tell = tell.clone();
            async move {
                let _told = Told(tell.clone(), "dropped");
                let mut body = request.into_body();
                let _ = body.frame().await;
                let _ = tell.send("called");
                pending::<()>().await;
                text("never") as Result<Response<Text>, Infallible>
            }
        })
    };
    let mut config = Config::default();
    config.limits.body = u64::MAX;
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.begin("POST", "/", &[], Length::Known(1_000_000_000)).send(b"first");
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        // Until nothing more goes: what was sent is never read, and stands before the news of the reset.
        caller.set_patience(Duration::from_millis(300));
        while caller.try_send(&[b'x'; 65_536]) {}
        let gone = Instant::now();
        caller.reset();
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
        // It is 50 ms on a machine that has nothing else to do.
        assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    });
}

fn the_end_of_an_upload_is_noticed_while_reading_rests(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |request: Request<Body>| {
            let tell = tell.clone();
            async move {
                let _told = Told(tell.clone(), "dropped");
                let _body = request.into_body();
                let _ = tell.send("called");
                pending::<Result<Response<Text>, Infallible>>().await
            }
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        // More than is read for a handler that reads nothing, less than the kernel holds.
        peer.send(vec![b'x'; 160_000]).finish();
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
    });
}
