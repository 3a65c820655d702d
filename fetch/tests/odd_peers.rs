//! Servers that answer early, half, wrongly, late or not at all, on every loop.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

mod loops;
mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyperman_fetch::error::PartialBody;
use hyperman_fetch::{Client, Error, ErrorKind};
use hyperman_transport::Runtime;

use peer::Peer;

on_every_loop! {
    a_connection_refused_is_a_connect_error
    an_empty_reply_is_told_apart
    half_an_answer_is_partial
    garbage_is_a_protocol_error_with_escapes
    s16_s52_floods_and_bombs_are_cut_off
    wrong_lengths_and_chunks_are_errors
    s49_bytes_after_an_answer_spoil_the_connection
    the_total_deadline_covers_head_and_body
    dropping_the_answer_closes_the_connection
    dropping_the_future_closes_the_connection
    limits_on_the_body_are_kept
    s13_nothing_gets_a_line_break_into_a_head
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
