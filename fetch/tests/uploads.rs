//! Requests with a body: servers that answer before they have read it, that are asked whether they want it, and bodies that
//! do not keep what they promise.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

mod loops;
mod peer;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyperman_fetch::{Body, Client, ErrorKind, PoolLimits};
use hyperman_transport::Runtime;

use peer::{Conn, Peer};

on_every_loop! {
    a_reset_is_partial_too
    s14_an_early_answer_is_delivered_and_the_upload_stops
    s14_an_answer_before_a_reset_is_still_read
    s14_a_refused_expectation_sends_no_body
    an_expectation_that_failed_is_not_repeated
    an_expectation_is_answered_or_waited_out
    an_answer_may_begin_while_the_upload_goes_on
    a_failing_body_ends_the_exchange
    a_fast_body_does_not_fill_the_memory
    a_body_that_can_be_made_again_is_made_again
    an_upload_goes_on_behind_an_early_success
    an_upload_ends_where_nobody_wants_it
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
    let mut answer = client.post(peer.url("/")).body(Body::stream(body)).send().await.expect("a head");
    assert_eq!(answer.chunk().await.expect("a piece").expect("not the end"), "1234");
    feed.put("more");
    let error = answer.chunk().await.expect_err("a reset");
    assert!(error.is_partial(), "{error:?}");
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
    assert_eq!(held().body(Body::stream(body)).send().await.expect("an answer").status(), 200);
    let client = Client::new(client.runtime().clone());
    let own = client.post(peer.url("/")).header("expect", "100-continue");
    assert_eq!(own.body("one").send().await.expect("an answer").status(), 417);
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
    let mut answer = client.post(peer.url("/")).body(Body::stream(body)).send().await.expect("an answer");
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

async fn a_body_that_can_be_made_again_is_made_again<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for (body, answer) in [
            (
                &b"3\r\none\r\n0\r\n\r\n"[..],
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: /2\r\nContent-Length: 0\r\n\r\n",
            ),
            (
                b"3\r\ntwo\r\n0\r\n\r\n",
                "HTTP/1.1 308 Permanent Redirect\r\nLocation: /3\r\nContent-Length: 0\r\n\r\n",
            ),
            (b"5\r\nthree\r\n0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ] {
            assert!(conn.head().starts_with("PUT /"));
            assert_eq!(conn.body(body.len()).escape_ascii().to_string(), body.escape_ascii().to_string());
            conn.send(answer);
        }
    });
    let mut made = ["one", "two", "three"].into_iter();
    let body = Body::repeatable(move || {
        let (body, feed) = paced();
        feed.put(made.next().expect("no more than three"));
        feed.end();
        body
    });
    let client = Client::new(runtime);
    let answer = client.put(peer.url("/1")).body(body).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.url().path()), (200, "/3"));
}

/// RFC 9110 §7.5: who answers early and does not ask to stop gets the rest; the end of the answer waits for that.
async fn an_upload_goes_on_behind_an_early_success<R: Runtime>(runtime: R) {
    // More than the kernels hold between the two.
    const LENGTH: usize = 16 << 20;
    for answer in [
        "Content-Length: 2\r\n\r\nok",
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ] {
        for streamed in [false, true] {
            let (tell, told) = std::sync::mpsc::channel();
            let peer = Peer::new(vec![
                Box::new(move |conn| {
                    conn.head();
                    conn.send(format!("HTTP/1.1 201 Created\r\n{answer}"));
                    told.recv().expect("the answer came");
                    assert_eq!(conn.body(LENGTH).len(), LENGTH);
                    // It is not known where this server thinks that its next request begins.
                    assert_eq!(conn.until_closed(), b"");
                }),
                Box::new(|conn| {
                    conn.head();
                    conn.send("HTTP/1.1 204 No Content\r\n\r\n");
                }),
            ]);
            let client = Client::new(runtime.clone());
            let bytes = Bytes::from(vec![b'x'; LENGTH]);
            let body = if streamed { Body::stream(http_body_util::Full::new(bytes)) } else { bytes.into() };
            let answered = client.post(peer.url("/")).body(body).send().await.expect("an answer");
            assert_eq!(answered.status(), 201);
            tell.send(()).expect("the server waits");
            let body = answered.bytes().await.expect("a body");
            assert_eq!(body.len(), if answer.contains("ok") { 2 } else { 0 });
            assert_eq!(client.get(peer.url("/")).send().await.expect("an answer").status(), 204);
        }
    }
}

/// A server that asks to stop, or hangs up, has still answered.
async fn an_upload_ends_where_nobody_wants_it<R: Runtime>(runtime: R) {
    let peer = Peer::new(vec![
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
            conn.until_closed();
        }),
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            conn.body(1 << 20);
            conn.reset_on_close();
        }),
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            conn.until_closed();
        }),
    ]);
    let client = Client::new(runtime);
    let endless = || Body::stream(Endless { asked: Arc::default(), length: None });
    for _ in 0..2 {
        let answer = client.post(peer.url("/")).body(endless()).send().await.expect("an answer");
        assert_eq!(answer.text().await.expect("a body"), "ok");
    }
    let patience = Duration::from_millis(60);
    let answer =
        client.post(peer.url("/")).body(endless()).timeout(patience).send().await.expect("an answer");
    let error = answer.text().await.expect_err("the upload did not end in time");
    assert!(error.is_timeout() && error.request_may_have_been_processed(), "{error:?}");
}

fn none_kept() -> PoolLimits {
    let mut limits = PoolLimits::default();
    limits.per_host = 0;
    limits
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
fn paced() -> (Paced, Feed) {
    let shared = Arc::new(std::sync::Mutex::new(Pace::default()));
    (Paced(shared.clone()), Feed(shared))
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
