//! Servers that answer early, half, wrongly, late or not at all, on every loop.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

mod loops;
mod peer;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyperman_fetch::error::PartialBody;
use hyperman_fetch::{Body, Client, Error, ErrorKind};
use hyperman_transport::Runtime;

use peer::{Conn, Peer};

on_every_loop! {
    a_connection_refused_is_a_connect_error
    an_empty_reply_is_told_apart
    half_an_answer_is_partial
    a_reset_is_partial_too
    garbage_is_a_protocol_error_with_escapes
    s16_s52_floods_and_bombs_are_cut_off
    wrong_lengths_and_chunks_are_errors
    s49_bytes_after_an_answer_spoil_the_connection
    s14_an_early_answer_is_delivered_and_the_upload_stops
    s14_an_answer_before_a_reset_is_still_read
    s14_a_refused_expectation_sends_no_body
    an_expectation_that_failed_is_not_repeated
    an_expectation_is_answered_or_waited_out
    an_answer_may_begin_while_the_upload_goes_on
    a_failing_body_ends_the_exchange
    the_total_deadline_covers_head_and_body
    dropping_the_answer_closes_the_connection
    dropping_the_future_closes_the_connection
    limits_on_the_body_are_kept
    s13_nothing_gets_a_line_break_into_a_head
    a_fast_body_does_not_fill_the_memory
}

/// The error of a GET, in its head or its body.
async fn failure<R: Runtime>(client: &Client<R>, url: &str) -> Error {
    match client.get(url).send().await {
        Err(error) => error,
        Ok(answer) => answer.bytes().await.expect_err("no whole answer"),
    }
}

async fn a_connection_refused_is_a_connect_error<R: Runtime>(runtime: R) {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let client = Client::builder(runtime)
        .resolve(
            "nothing.test",
            ["127.0.0.1:0".parse().expect("an address"), "[::1]:0".parse().expect("one")],
        )
        .build();
    let error = failure(&client, &format!("http://nothing.test:{port}/")).await;
    assert!(error.is_connect() && !error.is_timeout() && !error.request_may_have_been_processed(), "{error}");
    let ErrorKind::Connect { authority, source } = error.kind() else { panic!("{error:?}") };
    assert_eq!(*authority, format!("nothing.test:{port}"));
    assert!(!source.to_string().is_empty());
}

async fn an_empty_reply_is_told_apart<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
    });
    let error = failure(&Client::new(runtime), &peer.url("/")).await;
    assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
    assert!(error.request_may_have_been_processed());
}

async fn half_an_answer_is_partial<R: Runtime>(runtime: R) {
    let halves: [(&str, bool); 4] = [
        ("HTTP/1.1 200 OK\r\nContent-Le", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", true),
    ];
    for (half, partial) in halves {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(half);
        });
        let error = failure(&Client::new(runtime.clone()), &peer.url("/")).await;
        assert_eq!(error.is_partial(), partial, "{half:?}: {error:?}");
        assert!(error.request_may_have_been_processed());
        let closed = matches!(error.kind(), ErrorKind::PartialBody(PartialBody::Closed));
        assert!(closed || matches!(error.kind(), ErrorKind::Protocol(_)), "{error:?}");
    }
}

async fn a_reset_is_partial_too<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1234");
        // The client's part of this: it has the first piece, so the reset meets it in the middle.
        assert_eq!(conn.body(9), b"4\r\nmore\r\n");
        conn.reset_on_close();
    });
    let client = Client::new(runtime);
    let (body, feed) = paced();
    let mut answer = client.post(peer.url("/")).body(body).send().await.expect("a head");
    assert_eq!(answer.chunk().await.expect("a piece").expect("not the end"), "1234");
    feed.put("more");
    let error = answer.chunk().await.expect_err("a reset");
    assert!(error.is_partial(), "{error:?}");
}

async fn garbage_is_a_protocol_error_with_escapes<R: Runtime>(runtime: R) {
    for garbage in [
        "SSH-2.0-\x1b[31mOpenSSH\r\n\r\n",
        "HTTP/1.1 2x0 \x1b[31mOK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBad\x1b[31mName: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: \x1b[31m5\r\n\r\nhello",
    ] {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(garbage);
            conn.until_closed();
        });
        let error = failure(&Client::new(runtime.clone()), &peer.url("/")).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{garbage:?}: {error:?}");
        // S53: nothing that the server sent reaches a terminal as it is.
        assert!(!format!("{error} {error:?}").contains('\x1b'), "{error:?}");
    }
}

async fn s16_s52_floods_and_bombs_are_cut_off<R: Runtime>(runtime: R) {
    let head = "HTTP/1.1 200 OK\r\n".to_owned();
    let bombs = [
        "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1000),
        head.clone() + &"X: y\r\n".repeat(10_000),
        head.clone() + "X: " + &"y".repeat(100_000),
        head.clone() + &format!("X: {}\r\n", "y".repeat(10_000)).repeat(10),
        format!("HTTP/1.1 200 {}", "OK".repeat(10_000)),
        head.clone()
            + "Transfer-Encoding: chunked\r\n\r\n"
            + &("1;".to_owned() + &"x".repeat(999) + "\r\na\r\n").repeat(100),
        head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + &"X: y\r\n".repeat(10_000),
    ];
    for bomb in bombs {
        let shown = bomb[..40].to_owned();
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(bomb);
            conn.until_closed();
        });
        let error = failure(&Client::new(runtime.clone()), &peer.url("/")).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{shown:?}: {error:?}");
    }
}

async fn wrong_lengths_and_chunks_are_errors<R: Runtime>(runtime: R) {
    for answer in [
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Content-Length: +5\r\n\r\nhello",
        "Content-Length: 99999999999999999999\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\nx\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
    ] {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(format!("HTTP/1.1 200 OK\r\n{answer}"));
            conn.until_closed();
        });
        let error = failure(&Client::new(runtime.clone()), &peer.url("/")).await;
        assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{answer:?}: {error:?}");
    }
}

async fn s49_bytes_after_an_answer_spoil_the_connection<R: Runtime>(runtime: R) {
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let clean = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (first, second) = (clean("first"), clean("second"));
    let peer = Peer::new(vec![
        Box::new(move |conn| {
            conn.head();
            // In one piece with the answer, and with a body that nothing follows.
            conn.send(first + poison);
            assert_eq!(conn.try_head(), None, "another request came after the poison");
        }),
        Box::new(move |conn| {
            conn.head();
            conn.send(second);
            conn.head();
            conn.send(clean("third"));
        }),
    ]);
    let client = Client::new(runtime);
    for expected in ["first", "second", "third"] {
        let answer = client.get(peer.url("/")).send().await.expect("an answer");
        assert_eq!(answer.text().await.expect("a body"), expected);
    }
}

async fn s14_an_early_answer_is_delivered_and_the_upload_stops<R: Runtime>(runtime: R) {
    let peer = Peer::new(vec![
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
            // Whatever of the upload is in flight comes, and then the end: no second request.
            let rest = conn.until_closed();
            assert!(rest.len() < 40 << 20, "the upload went on: {}", rest.len());
            assert!(!rest.windows(5).any(|five| five == b"GET /"), "a request after half a body");
        }),
        Box::new(|conn| {
            assert!(conn.head().starts_with("GET /"));
            conn.send("HTTP/1.1 204 No Content\r\n\r\n");
        }),
    ]);
    let client = Client::new(runtime);
    let body = Endless { asked: Arc::default(), length: None };
    let answer = client.post(peer.url("/")).body(Body::stream(body)).send().await.expect("an answer");
    assert_eq!(answer.status(), 413);
    assert_eq!(answer.text().await.expect("a body"), "big");
    assert_eq!(client.get(peer.url("/")).send().await.expect("an answer").status(), 204);
}

async fn s14_an_answer_before_a_reset_is_still_read<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlog!");
        // Closed with the upload unread: the kernel sends a reset, which meets the client in the middle of a write.
    });
    let client = Client::new(runtime);
    let answer = client.put(peer.url("/")).body(vec![7; 30 << 20]).send().await;
    // The reset may overtake the answer in the kernel; then there is an error, and it says what it means.
    match answer {
        Ok(answer) => assert_eq!(answer.status(), 401),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Send(_) | ErrorKind::Receive(_)), "{error:?}");
            assert!(error.request_may_have_been_processed());
        }
    }
}

async fn s14_a_refused_expectation_sends_no_body<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().contains("\r\nexpect: 100-continue\r\n"));
        conn.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(conn.until_closed(), b"", "the body, or another request in its place");
    });
    let client = Client::new(runtime);
    let request = client.post(peer.url("/")).body("never sent").expect_continue(Duration::from_secs(50));
    assert_eq!(request.send().await.expect("an answer").status(), 413);
}

/// RFC 9110 §10.1.1: whoever does not know the expectation is asked again without it.
async fn an_expectation_that_failed_is_not_repeated<R: Runtime>(runtime: R) {
    const FAILED: &str = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n";
    fn refuses(conn: &mut Conn) {
        assert!(conn.head().contains("\r\nexpect: 100-continue\r\n"));
        conn.send(FAILED);
        assert_eq!(conn.until_closed(), b"", "the body, or another request in its place");
    }
    fn takes(conn: &mut Conn) {
        let head = conn.head();
        assert!(head.starts_with("POST / ") && !head.contains("expect"), "{head}");
        let length = if head.contains("chunked") { "3\r\none\r\n0\r\n\r\n".len() } else { 3 };
        let body = conn.body(length);
        assert!(body == b"one" || body == b"3\r\none\r\n0\r\n\r\n", "{}", body.escape_ascii());
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    let peer = Peer::new(vec![
        Box::new(refuses),
        Box::new(takes),
        Box::new(refuses),
        Box::new(takes),
        Box::new(|conn| {
            // The body is on its way at once where nobody waits.
            conn.head();
            assert_eq!(conn.body(3), b"one");
            conn.send(FAILED);
            let head = conn.head();
            assert!(!head.contains("expect"), "{head}");
            assert_eq!(conn.body(3), b"one");
            // Nothing was expected, so this is an answer like any other.
            conn.send(FAILED);
        }),
    ]);
    let client = Client::builder(runtime).pool(none_kept()).build();
    let post = || client.post(peer.url("/"));
    let held = || post().expect_continue(Duration::from_secs(50));
    assert_eq!(held().body("one").send().await.expect("an answer").status(), 200);
    // A stream that nobody has looked at is as good as new.
    let (body, feed) = paced();
    feed.put("one");
    feed.end();
    assert_eq!(held().body(body).send().await.expect("an answer").status(), 200);
    let client = Client::new(client.runtime().clone());
    let own = client.post(peer.url("/")).header("expect", "100-continue");
    assert_eq!(own.body("one").send().await.expect("an answer").status(), 417);
}

fn none_kept() -> hyperman_fetch::PoolLimits {
    let mut limits = hyperman_fetch::PoolLimits::default();
    limits.per_host = 0;
    limits
}

async fn an_expectation_is_answered_or_waited_out<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().contains("\r\nexpect: 100-continue\r\n"));
        conn.send("HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(conn.body(6), b"wanted");
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert!(conn.head().contains("\r\nexpect: 100-continue\r\n"));
        assert_eq!(conn.body(7), b"patient");
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        for _ in 0..2 {
            assert!(!conn.head().contains("expect"), "nothing to expect without a body");
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let client = Client::new(runtime);
    let post = |patience| client.post(peer.url("/")).expect_continue(patience);
    let wanted = post(Duration::from_secs(50)).body("wanted").send();
    assert_eq!(wanted.await.expect("an answer").status(), 200);
    let patient = post(Duration::from_millis(20)).body("patient").send();
    assert_eq!(patient.await.expect("an answer").status(), 200);
    let empty = post(Duration::from_secs(50)).send();
    assert_eq!(empty.await.expect("an answer").status(), 200);
    let own = client.post(peer.url("/")).header("expect", "100-continue").send();
    assert_eq!(own.await.expect("an answer").status(), 200);
}

async fn an_answer_may_begin_while_the_upload_goes_on<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().contains("\r\ntransfer-encoding: chunked\r\n"));
        assert_eq!(conn.body(8), b"3\r\none\r\n");
        conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
        assert_eq!(conn.body(8), b"3\r\ntwo\r\n");
        conn.send("3\r\ntwo\r\n");
        assert_eq!(conn.body(5), b"0\r\n\r\n");
        conn.send("0\r\n\r\n");
    });
    let client = Client::new(runtime);
    let (body, feed) = paced();
    feed.put("one");
    let mut answer = client.post(peer.url("/")).body(body).send().await.expect("an answer");
    assert_eq!(answer.chunk().await.expect("a piece").expect("not the end"), "one");
    feed.put("two");
    assert_eq!(answer.chunk().await.expect("a piece").expect("not the end"), "two");
    feed.end();
    assert_eq!(answer.chunk().await.expect("the end"), None);
}

async fn a_failing_body_ends_the_exchange<R: Runtime>(runtime: R) {
    struct Failing;
    impl http_body::Body for Failing {
        type Data = Bytes;
        type Error = std::io::Error;
        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            Poll::Ready(Some(Err(std::io::Error::other("disk on fire"))))
        }
    }
    let peer = Peer::one(|conn| {
        let rest = conn.until_closed();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "the body was made to look whole");
    });
    let client = Client::new(runtime);
    let error = client.post(peer.url("/")).body(Body::stream(Failing)).send().await.expect_err("an error");
    assert!(matches!(error.kind(), ErrorKind::RequestBody(_)), "{error:?}");
    assert_eq!(error.to_string(), format!("the request's body failed: disk on fire ({})", peer.url("/")));

    let short = Body::stream(Endless { asked: Arc::default(), length: Some(5) });
    let peer = Peer::one(|conn| {
        conn.until_closed();
    });
    let error = client.post(peer.url("/")).body(short).send().await.expect_err("an error");
    assert!(matches!(error.kind(), ErrorKind::Request(_)), "{error:?}");
}

async fn the_total_deadline_covers_head_and_body<R: Runtime>(runtime: R) {
    let peer = Peer::new(vec![
        Box::new(|conn| {
            conn.head();
            conn.until_closed();
        }),
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal");
            conn.until_closed();
        }),
    ]);
    let client = Client::builder(runtime).timeout(Duration::from_millis(60)).build();
    for partial in [false, true] {
        let started = client.runtime().now();
        let error = failure(&client, &peer.url("/")).await;
        assert!(error.is_timeout() && error.request_may_have_been_processed(), "{error:?}");
        assert_eq!(error.is_partial(), partial, "{error:?}");
        let waited = client.runtime().now().duration_since(started);
        assert!(waited >= Duration::from_millis(60), "too early");
    }
}

async fn dropping_the_answer_closes_the_connection<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhal");
        assert_eq!(conn.until_closed(), b"");
    });
    let client = Client::new(runtime);
    drop(client.get(peer.url("/")).send().await.expect("an answer"));
    // The peer's script ends only with its connection, and the client is still there.
    drop(peer);
    drop(client);
}

async fn dropping_the_future_closes_the_connection<R: Runtime>(runtime: R) {
    let told = Arc::new(AtomicBool::new(false));
    let tell = told.clone();
    let peer = Peer::one(move |conn| {
        conn.head();
        tell.store(true, Ordering::SeqCst);
        assert_eq!(conn.until_closed(), b"");
    });
    let client = Client::new(runtime);
    let mut exchange = Box::pin(client.get(peer.url("/")).send());
    // Polled until the request has arrived, and then no more.
    std::future::poll_fn(|cx| {
        assert!(exchange.as_mut().poll(cx).is_pending());
        if told.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    drop(exchange);
    drop(peer);
    drop(client);
}

async fn limits_on_the_body_are_kept<R: Runtime>(runtime: R) {
    let answers = [
        ("Content-Length: 11\r\n\r\nhello world", 10),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", 10),
        ("\r\nhello world", 10),
        ("Content-Length: 11\r\n\r\nhello world", 11),
    ];
    for (answer, limit) in answers {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(format!("HTTP/1.1 200 OK\r\n{answer}"));
        });
        let client = Client::builder(runtime.clone()).max_body(limit).build();
        if limit == 11 {
            let answer = client.get(peer.url("/")).send().await.expect("an answer");
            assert_eq!(answer.bytes().await.expect("a body"), "hello world");
        } else {
            let error = failure(&client, &peer.url("/")).await;
            assert!(matches!(error.kind(), ErrorKind::BodyTooLarge(10)), "{answer:?}: {error:?}");
        }
    }
}

async fn s13_nothing_gets_a_line_break_into_a_head<R: Runtime>(runtime: R) {
    // Nobody listens: each of these must fail before there is a connection.
    let client = Client::new(runtime);
    let url = "http://127.0.0.1:1/";
    let mut errors = vec![
        client.get("http://127.0.0.1:1/\r\nX: y").send().await,
        client.get(url).header("x", "a\r\nb: c").send().await,
        client.get(url).header("x", "a\nb").send().await,
        client.get(url).header("x", "a\0b").send().await,
        client.get(url).header("x\r\ny", "a").send().await,
        client.get(url).bearer_auth("a\r\nb").send().await,
        client.get("http://127.0.0.1:1\r\n/").send().await,
    ];
    for outcome in errors.drain(..) {
        let error = outcome.expect_err("refused");
        assert!(error.is_request() && !error.request_may_have_been_processed(), "{error:?}");
    }
    // These are not broken, only odd: they arrive as data.
    let peer = Peer::one(|conn| {
        let head = conn.head();
        assert!(head.starts_with("GET /?a=1%0D%0AX%3A+y HTTP/1.1\r\n"), "{head}");
        assert_eq!(head.lines().count(), 5, "{head}");
        conn.send("HTTP/1.1 204 No Content\r\n\r\n");
    });
    client.get(peer.url("/")).query(&[("a", "1\r\nX: y")]).send().await.expect("an answer");
}

async fn a_fast_body_does_not_fill_the_memory<R: Runtime>(runtime: R) {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let peer = Peer::one(move |conn| {
        conn.head();
        // Reads nothing until the client has had many turns to ask its body for more.
        told.recv().expect("the test says when");
        conn.send("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
        conn.until_closed();
    });
    let client = Client::new(runtime);
    let asked = Arc::new(AtomicUsize::new(0));
    let body = Body::stream(Endless { asked: asked.clone(), length: None });
    let mut exchange = Box::pin(client.post(peer.url("/")).body(body).send());
    let (mut last, mut still) = (0, 0);
    let mut answered = std::future::poll_fn(|cx| {
        if let Poll::Ready(outcome) = exchange.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        let now = asked.load(Ordering::Relaxed);
        still = if now == last { still + 1 } else { 0 };
        last = now;
        if still == 1000 {
            let _ = tell.send(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
    .expect("an answer");
    assert_eq!(answered.status(), 500);
    assert_eq!(answered.chunk().await.expect("no body"), None);
    // What the two kernels buffer, and 64 KiB: far from endless.
    assert!(last * PIECE < 64 << 20, "{last} pieces were taken");
}

const PIECE: usize = 16 << 10;

/// A body that always has more; with a length, one that lies about it.
struct Endless {
    asked: Arc<AtomicUsize>,
    length: Option<u64>,
}

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; PIECE])))))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// A body whose pieces the test gives, and what it gives them by.
fn paced() -> (Body, Feed) {
    let shared = Arc::new(std::sync::Mutex::new(Pace::default()));
    (Body::stream(Paced(shared.clone())), Feed(shared))
}

#[derive(Default)]
struct Pace {
    pieces: std::collections::VecDeque<Bytes>,
    ended: bool,
    waker: Option<std::task::Waker>,
}

struct Paced(Arc<std::sync::Mutex<Pace>>);
struct Feed(Arc<std::sync::Mutex<Pace>>);

impl Feed {
    fn put(&self, piece: &'static str) {
        let mut pace = self.0.lock().expect("lock");
        pace.pieces.push_back(Bytes::from_static(piece.as_bytes()));
        if let Some(waker) = pace.waker.take() {
            waker.wake();
        }
    }

    fn end(&self) {
        let mut pace = self.0.lock().expect("lock");
        pace.ended = true;
        if let Some(waker) = pace.waker.take() {
            waker.wake();
        }
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut pace = self.0.lock().expect("lock");
        if let Some(piece) = pace.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if pace.ended {
            return Poll::Ready(None);
        }
        pace.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
