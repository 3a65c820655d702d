//! Requests as they are written and answers as they are read, against a scripted server, on every loop.

#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

mod loops;
mod peer;

use std::time::Duration;

use http::{Method, StatusCode, Version};
use hyperman_fetch::{Client, ErrorKind};
use hyperman_transport::Runtime;

use peer::Peer;

on_every_loop! {
    a_get_is_written_and_its_answer_read
    a_connection_is_kept_and_used_again
    head_and_empty_answers_have_no_body
    bodies_are_framed_and_typed
    a_trace_has_no_body
    queries_are_appended
    chunked_answers_with_trailers
    an_answer_that_ends_with_the_connection
    http_1_0_is_spoken
    credentials_of_the_url_are_sent_and_shown_nowhere
    interim_answers_are_told
    text_and_json
    an_upgrade_hands_the_connection_over
    a_large_body_arrives_whole
}

async fn a_get_is_written_and_its_answer_read<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        let host = conn.head().replace(&format!("hyperman-fetch/{}", env!("CARGO_PKG_VERSION")), "AGENT");
        assert!(host.starts_with("GET /a%20b?c=d HTTP/1.1\r\nhost: 127.0.0.1:"), "{host}");
        assert!(host.ends_with("\r\nuser-agent: AGENT\r\naccept: */*\r\nx-test: yes\r\n\r\n"), "{host}");
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Answer: 1\r\n\r\nhello");
    });
    let client = Client::new(runtime);
    let url = peer.url("/a b?c=d#never-sent");
    let answer = client.get(&url).header("x-test", "yes").send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.version(), Version::HTTP_11);
    assert_eq!(answer.headers().get("x-answer").expect("a field"), "1");
    assert_eq!(answer.content_length(), Some(5));
    assert_eq!(answer.url().path(), "/a%20b");
    assert_eq!(answer.remote_addr(), peer.address());
    assert_eq!(answer.bytes().await.expect("a body"), "hello");
}

async fn a_connection_is_kept_and_used_again<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for n in 0..3 {
            assert!(conn.head().starts_with(&format!("GET /{n} ")));
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{n}"));
        }
        assert!(conn.head().starts_with("GET /unread "));
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
        assert!(conn.head().starts_with("GET /again "));
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        assert_eq!(conn.until_closed(), b"");
    });
    let client = Client::new(runtime);
    for n in 0..3 {
        let answer = client.get(peer.url(&format!("/{n}"))).send().await.expect("an answer");
        assert_eq!(answer.text().await.expect("a body"), n.to_string());
    }
    // A body that came whole with its head does not cost the connection when nobody reads it.
    drop(client.get(peer.url("/unread")).send().await.expect("an answer"));
    let answer = client.get(peer.url("/again")).send().await.expect("an answer");
    assert_eq!(answer.bytes().await.expect("a body"), "");
}

async fn head_and_empty_answers_have_no_body<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().starts_with("HEAD /"));
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
        for status in ["204 No Content", "304 Not Modified"] {
            conn.head();
            conn.send(format!("HTTP/1.1 {status}\r\n\r\n"));
        }
        assert!(conn.head().starts_with("DELETE /"));
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let client = Client::new(runtime);
    let answer = client.head(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.headers().get("content-length").expect("a field"), "500");
    assert_eq!(answer.bytes().await.expect("no body"), "");
    for status in [204, 304] {
        let answer = client.get(peer.url("/")).send().await.expect("an answer");
        assert_eq!(answer.status(), status);
        assert_eq!(answer.bytes().await.expect("no body"), "");
    }
    let answer = client.delete(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.bytes().await.expect("no body"), "");
}

async fn bodies_are_framed_and_typed<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        let expected: [(&str, Option<&str>, &str); 5] = [
            ("3", None, "abc"),
            ("13", Some("application/json"), r#"{"a":[1,"b"]}"#),
            ("13", Some("application/x-www-form-urlencoded"), "a=1+2&b=%26%3D"),
            ("2", Some("text/x"), "{}"),
            ("0", None, ""),
        ];
        for (_, media_type, body) in expected {
            let head = conn.head();
            assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
            let typed = head.lines().find_map(|line| line.strip_prefix("content-type: "));
            assert_eq!(typed, media_type, "{head}");
            assert_eq!(conn.body(body.len()), body.as_bytes());
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let client = Client::new(runtime);
    let url = peer.url("/");
    let post = || client.post(&url);
    let json = serde_json::json!({"a": [1, "b"]});
    for request in [
        post().body("abc"),
        post().json(&json),
        post().form(&[("a", "1 2"), ("b", "&=")]),
        post().header("content-type", "text/x").json(&serde_json::json!({})),
        post(),
    ] {
        assert_eq!(request.send().await.expect("an answer").status(), 200);
    }
}

async fn a_trace_has_no_body<R: Runtime>(runtime: R) {
    // Nobody listens: it fails before there is a connection (RFC 9110 §9.3.8).
    let request = Client::new(runtime).request(Method::TRACE, "http://127.0.0.1:1/").body("x");
    let error = request.send().await.expect_err("refused");
    assert!(error.is_request() && !error.request_may_have_been_processed(), "{error:?}");
}

async fn queries_are_appended<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().starts_with("GET /x?a=b&c=d+%26&e=1 HTTP/1.1\r\n"));
        conn.send("HTTP/1.1 204 No Content\r\n\r\n");
        assert!(conn.head().starts_with("GET /x HTTP/1.1\r\n"));
        conn.send("HTTP/1.1 204 No Content\r\n\r\n");
    });
    let client = Client::new(runtime);
    let request = client.get(peer.url("/x?a=b")).query(&[("c", "d &")]).query(&[("e", 1)]);
    request.send().await.expect("an answer");
    client.get(peer.url("/x")).query(&[("none", ""); 0]).send().await.expect("an answer");
}

async fn chunked_answers_with_trailers<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for _ in 0..2 {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n3\r\nabc\r\n");
            conn.send("2;ext=1\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n");
        }
    });
    let client = Client::new(runtime);
    let mut answer = client.get(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.content_length(), None);
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.expect("a chunk") {
        body.extend_from_slice(&chunk);
    }
    assert_eq!(body, b"abcde");
    assert_eq!(answer.trailers().expect("trailers").get("x-sum").expect("a field"), "5");
    let answer = client.get(peer.url("/")).send().await.expect("an answer");
    let (body, trailers) = answer.bytes_and_trailers().await.expect("a body");
    assert_eq!(body, "abcde");
    assert_eq!(trailers.expect("trailers").get("x-sum").expect("a field"), "5");
}

async fn an_answer_that_ends_with_the_connection<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 200 OK\r\n\r\nall of ");
        conn.send("it");
    });
    let client = Client::new(runtime);
    let answer = client.get(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.content_length(), None);
    assert_eq!(answer.text().await.expect("a body"), "all of it");
}

async fn http_1_0_is_spoken<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().starts_with("GET / HTTP/1.0\r\nhost: "));
        conn.send("HTTP/1.0 200 OK\r\n\r\nold");
    });
    let client = Client::new(runtime);
    let answer = client.get(peer.url("/")).version(Version::HTTP_10).send().await.expect("an answer");
    assert_eq!(answer.version(), Version::HTTP_10);
    assert_eq!(answer.text().await.expect("a body"), "old");
}

async fn credentials_of_the_url_are_sent_and_shown_nowhere<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        let head = conn.head();
        assert!(head.contains("\r\nauthorization: Basic dXNlcjpzM2NyZXQ=\r\n"), "{head}");
        assert!(!head.contains('@') && !head.contains("s3cret"), "{head}");
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n");
    });
    let client = Client::new(runtime);
    let url = peer.url("/").replace("http://", "http://user:s3cret@");
    let request = client.get(&url);
    assert!(!format!("{request:?}").contains("s3cret"));
    let error = request.send().await.expect_err("a bad length");
    assert!(matches!(error.kind(), ErrorKind::Protocol(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert_eq!(error.url().map(url::Url::as_str), Some(peer.url("/").as_str()));
}

async fn interim_answers_are_told<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let client = Client::new(runtime);
    let (tell, told) = std::sync::mpsc::channel();
    let watch = move |notice: hyperman_fetch::Notice<'_>| {
        if let hyperman_fetch::Notice::Interim(interim) = notice {
            let _ = tell.send((interim.status().as_u16(), interim.headers().contains_key("link")));
        }
    };
    let answer = client.get(peer.url("/")).watch(watch).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(told.iter().collect::<Vec<_>>(), [(103, true), (102, false)]);
}

async fn text_and_json<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Length: 4\r\n\r\ncaf",
        );
        conn.send(b"\xe9");
        for body in ["\u{feff}{\"n\": [1, 2]}", "{\"n\": "] {
            conn.head();
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    let client = Client::new(runtime);
    let url = peer.url("/");
    let get = || client.get(&url).send();
    assert_eq!(get().await.expect("an answer").text().await.expect("text"), "café");
    let value: serde_json::Value = get().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(value, serde_json::json!({"n": [1, 2]}));
    let error = get().await.expect("an answer").json::<serde_json::Value>().await.expect_err("half of it");
    assert!(matches!(error.kind(), ErrorKind::Json(_)), "{error}");
}

async fn an_upgrade_hands_the_connection_over<R: Runtime>(runtime: R) {
    use hyperman_transport::ByteStream as _;
    let peer = Peer::one(|conn| {
        assert!(conn.head().contains("\r\nupgrade: echo\r\n"));
        conn.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nahead");
        assert_eq!(conn.body(5), b"hello");
        conn.send("hello yourself");
    });
    let client = Client::new(runtime);
    let request = client.get(peer.url("/")).header("connection", "upgrade").header("upgrade", "echo");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 101);
    let mut upgraded = answer.into_upgraded().expect("a connection");
    let mut read = bytes::BytesMut::from(&upgraded.read[..]);
    std::future::poll_fn(|cx| upgraded.stream.poll_send(cx, &[std::io::IoSlice::new(b"hello")]))
        .await
        .expect("sent");
    while read.len() < 19 {
        read.reserve(64);
        let count = std::future::poll_fn(|cx| upgraded.stream.poll_recv(cx, &mut read)).await.expect("read");
        assert_ne!(count, 0, "{read:?}");
    }
    assert_eq!(read, "aheadhello yourself");
}

async fn a_large_body_arrives_whole<R: Runtime>(runtime: R) {
    let bytes: Vec<u8> = (0..8_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let expected = bytes.clone();
    let peer = Peer::one(move |conn| {
        assert!(conn.head().starts_with("POST /"));
        assert_eq!(conn.body(bytes.len()), bytes);
        conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len()));
        conn.send(&bytes);
    });
    let client = Client::builder(runtime).timeout(Duration::from_secs(50)).build();
    let request = client.request(Method::POST, peer.url("/")).body(expected.clone());
    let answer = request.send().await.expect("an answer").bytes().await.expect("a body");
    assert_eq!(answer, expected);
}
