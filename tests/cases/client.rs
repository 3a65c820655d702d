// The client's cases. Included into one module per loop, which has defined `Rt`, the loop's `Runtime`, and `block_on`.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyperman_fetch::error::PartialBody;
use hyperman_fetch::{Body, Client, ErrorKind};
use hyperman_tests::body::Pieces;
use hyperman_tests::peer::Peer;
use hyperman_tests::script::{Script, Scripted};
use hyperman_transport::{Runtime, Spawn, Timer};

/// Runs a case on this loop, in a thread of its own.
fn run<F: Future<Output = ()>>(case: impl FnOnce(Rt) -> F + Send + 'static) {
    hyperman_tests::watched(|| block_on(case));
}

async fn pause(runtime: &Rt, time: Duration) {
    let mut timer = runtime.timer();
    let until = runtime.now() + time;
    poll_fn(|cx| timer.poll_deadline(until, cx)).await;
}

fn script(script: impl FnOnce(&mut Peer) + Send + 'static) -> Script {
    Box::new(script)
}

/// Reads a request's head.
fn head(peer: &mut Peer) -> String {
    String::from_utf8(peer.until(b"\r\n\r\n")).expect("text")
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn one_connection_serves_one_request_after_the_other() {
    run(|runtime| async move {
        let server = Scripted::one(|peer| {
            for number in 0..5 {
                assert!(head(peer).starts_with(&format!("GET /{number} HTTP/1.1\r\nhost: 127.0.0.1:")));
                peer.send(answer(&number.to_string()));
            }
            peer.expect_end();
        });
        let client = Client::new(runtime);
        for number in 0..5 {
            let response = client.get(server.url(&format!("/{number}"))).send().await.expect("an answer");
            assert_eq!(response.text().await.expect("text"), number.to_string());
        }
        drop(client);
        server.end();
    });
}

/// A first connection that serves one request and dies of the second, and what comes after it.
fn dies_of_the_second(next: Vec<Script>) -> Scripted {
    let mut scripts = vec![script(|peer| {
        head(peer);
        peer.send(answer("first"));
        head(peer);
    })];
    scripts.extend(next);
    Scripted::new(scripts)
}

#[test]
fn a_stale_connection_is_replaced_once_where_that_is_safe() {
    run(|runtime| async move {
        let server = dies_of_the_second(vec![script(|peer| {
            assert!(head(peer).starts_with("PUT /second HTTP/1.1\r\n"));
            assert_eq!(peer.exactly(4), b"body");
            peer.send(answer("second"));
        })]);
        let client = Client::new(runtime.clone());
        let first = client.get(server.url("/first")).send().await.expect("an answer");
        assert_eq!(first.text().await.expect("text"), "first");
        let second = client.put(server.url("/second")).body("body").send().await.expect("an answer");
        assert_eq!(second.text().await.expect("text"), "second");
        server.end();

        let server = dies_of_the_second(vec![script(|peer| drop(head(peer)))]);
        client.get(server.url("/first")).send().await.expect("an answer").text().await.expect("text");
        let error = client.get(server.url("/second")).send().await.expect_err("two dead connections");
        assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
        assert!(error.request_may_have_been_processed());
        server.end();
    });
}

#[test]
fn a_stale_connection_fails_what_may_not_be_repeated() {
    run(|runtime| async move {
        let client = Client::new(runtime);
        for body in [Body::from("body"), Body::stream(Full::new(Bytes::from_static(b"body")))] {
            let server = dies_of_the_second(Vec::new());
            client.get(server.url("/first")).send().await.expect("an answer").text().await.expect("text");
            let error = client.post(server.url("/second")).body(body).send().await.expect_err("a dead connection");
            assert!(matches!(error.kind(), ErrorKind::StaleConnection), "{error:?}");
            assert!(error.request_may_have_been_processed());
            server.end();
        }
    });
}

#[test]
fn bytes_that_nobody_asked_for_answer_nothing() {
    run(|runtime| async move {
        let (said, hears) = smol::channel::bounded(1);
        let server = Scripted::new(vec![
            // With the answer, and after it.
            script(|peer| {
                head(peer);
                peer.send(answer("1") + &answer("smuggled"));
                peer.expect_end();
            }),
            script(move |peer| {
                head(peer);
                peer.send(answer("2"));
                // The kernel has it in the client's queue before this returns.
                peer.send(answer("smuggled"));
                said.send_blocking(()).expect("the client waits");
                peer.expect_end();
            }),
            script(|peer| {
                head(peer);
                peer.send(answer("3"));
                peer.expect_end();
            }),
        ]);
        let client = Client::new(runtime.clone());
        for expected in ["1", "2", "3"] {
            let response = client.get(server.url("/")).send().await.expect("an answer");
            assert_eq!(response.text().await.expect("text"), expected);
            if expected == "2" {
                hears.recv().await.expect("the server's word");
                pause(&runtime, Duration::from_millis(5)).await;
            }
        }
        drop(client);
        server.end();
    });
}

#[test]
fn a_server_that_does_not_read_holds_the_upload_back() {
    run(|runtime| async move {
        let (go, gone) = smol::channel::bounded::<()>(1);
        let server = Scripted::one(move |peer| {
            assert!(head(peer).contains("\r\ntransfer-encoding: chunked\r\n"));
            let _ = gone.recv_blocking();
            let mut body = 0;
            loop {
                let line = String::from_utf8(peer.until(b"\r\n")).expect("a chunk size");
                let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
                body += peer.exactly(size).len();
                peer.exactly(2);
                if size == 0 {
                    break;
                }
            }
            peer.send(answer(&body.to_string()));
        });
        let pieces = Pieces { left: 1_000, ..Pieces::default() };
        let made = Arc::clone(&pieces.made);
        let client = Client::new(runtime.clone());
        let upload = client.post(server.url("/")).body(Body::stream(pieces)).send();
        let (tell, told) = smol::channel::bounded(1);
        runtime.spawn(async move {
            let answer = upload.await.expect("an answer");
            let _ = tell.send(answer.text().await.expect("text")).await;
        });
        // The loop does other things meanwhile, so the upload cannot be what it waits for.
        let other = Scripted::one(|peer| {
            head(peer);
            peer.send(answer("other"));
        });
        assert_eq!(
            client.get(other.url("/")).send().await.expect("an answer").text().await.expect("text"),
            "other"
        );
        pause(&runtime, Duration::from_millis(100)).await;
        let before = made.load(Ordering::SeqCst);
        assert!(before < 400, "{before} of 1,000 pieces were made for a server that reads nothing");
        go.send(()).await.expect("the server waits");
        assert_eq!(told.recv().await.expect("an answer"), "65536000");
        assert_eq!(made.load(Ordering::SeqCst), 1_000);
        other.end();
        server.end();
    });
}

#[test]
fn a_caller_who_does_not_read_holds_the_answer_back() {
    const LENGTH: usize = 64 << 20;
    run(|runtime| async move {
        let (blocked, seen) = smol::channel::bounded(1);
        let server = Scripted::one(move |peer| {
            head(peer);
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n"));
            let mut socket = peer.stream();
            socket.set_write_timeout(Some(Duration::from_millis(300))).expect("timeout");
            let (piece, mut sent) = ([b'x'; 65_536], 0);
            // Nothing is taken for a while: the buffers on the way are full.
            while let Ok(taken) = socket.write(&piece[..piece.len().min(LENGTH - sent)]) {
                sent += taken;
                assert!(sent < LENGTH, "all of the answer was read although nobody wanted it");
            }
            blocked.send_blocking(()).expect("the client waits");
            socket.set_write_timeout(Some(Duration::from_secs(20))).expect("timeout");
            while sent < LENGTH {
                sent += socket.write(&piece[..piece.len().min(LENGTH - sent)]).expect("the client reads");
            }
        });
        let mut response = Client::new(runtime).get(server.url("/")).send().await.expect("an answer");
        seen.recv().await.expect("the server's word");
        let mut received = 0;
        while let Some(piece) = response.chunk().await.expect("a piece") {
            received += piece.len();
        }
        assert_eq!(received, LENGTH);
        server.end();
    });
}

#[test]
fn dropping_the_future_or_the_answer_aborts_the_exchange() {
    run(|runtime| async move {
        let (tell, told) = smol::channel::bounded(1);
        let client = Client::new(runtime);
        let server = Scripted::one(move |peer| {
            head(peer);
            tell.send_blocking(()).expect("the client waits");
            peer.expect_end();
        });
        let sending = client.get(server.url("/")).send();
        smol::future::or(
            async move {
                let _ = sending.await;
                panic!("nobody answered");
            },
            async { told.recv().await.expect("the server's word") },
        )
        .await;
        server.end();

        let server = Scripted::one(|peer| {
            head(peer);
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegin");
            peer.expect_end();
        });
        let mut response = client.get(server.url("/")).send().await.expect("an answer");
        assert_eq!(response.chunk().await.expect("a piece").as_deref(), Some(&b"begin"[..]));
        drop(response);
        server.end();
    });
}

#[test]
fn the_total_deadline_covers_head_and_body() {
    run(|runtime| async move {
        let client = Client::new(runtime.clone());
        for said in ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
            let server = Scripted::one(move |peer| {
                head(peer);
                peer.send(said);
                peer.expect_end();
            });
            let begun = runtime.now();
            let sending = client.get(server.url("/")).timeout(Duration::from_millis(80)).send();
            let error = match sending.await {
                Ok(response) => response.text().await.expect_err("half a body"),
                Err(error) => error,
            };
            assert!(matches!(error.kind(), ErrorKind::Timeout), "{error:?}");
            assert!(runtime.now() - begun >= Duration::from_millis(80));
            server.end();
        }
    });
}

#[test]
fn the_connect_deadline_is_kept() {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    run(|runtime| async move {
        // A queue of one that is full: further handshakes are not answered.
        let tcp = || {
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .expect("a socket")
        };
        let listening = tcp();
        rustix::net::bind(&listening, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        rustix::net::listen(&listening, 0).expect("listen");
        let address: SocketAddr =
            rustix::net::getsockname(&listening).expect("an address").try_into().expect("TCP");
        let waiting: Vec<_> = (0..4).map(|_| tcp()).collect();
        for socket in &waiting {
            let _ = rustix::net::connect(socket, &address);
        }
        let client = Client::builder(runtime.clone()).connect_timeout(Duration::from_millis(80)).build();
        let begun = runtime.now();
        let error = client.get(format!("http://{address}/")).send().await.expect_err("no connection");
        assert!(matches!(error.kind(), ErrorKind::ConnectTimeout), "{error:?}");
        assert!(error.is_connect() && error.is_timeout() && !error.request_may_have_been_processed());
        assert!(runtime.now() - begun >= Duration::from_millis(80));
        drop((listening, waiting));
        let error = client.get(format!("http://{address}/")).send().await.expect_err("no connection");
        assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error:?}");
    });
}

#[test]
fn an_early_answer_ends_the_upload() {
    run(|runtime| async move {
        let server = Scripted::one(|peer| {
            head(peer);
            peer.exactly(100_000);
            peer.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big");
            peer.finish();
            peer.rest();
        });
        let endless = Body::stream(Pieces { left: usize::MAX, ..Pieces::default() });
        let sending = Client::new(runtime).post(server.url("/")).body(endless).send();
        let response = sending.await.expect("an answer");
        assert_eq!(response.status(), 413);
        assert_eq!(response.text().await.expect("text"), "too big");
        server.end();
    });
}

#[test]
fn what_does_not_arrive_whole_is_a_typed_error() {
    run(|runtime| async move {
        let client = Client::new(runtime);
        for (said, reset) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true),
        ] {
            let (tell, told) = smol::channel::bounded::<()>(1);
            let server = Scripted::one(move |peer| {
                head(peer);
                peer.send(said);
                // The client has the beginning before the connection ends.
                let _ = told.recv_blocking();
                if reset {
                    peer.reset_on_close();
                }
            });
            let mut response = client.get(server.url("/")).send().await.expect("a head");
            let first = response.chunk().await.expect("a piece");
            assert!(b"half".starts_with(&first.expect("a piece")), "{said:?}");
            tell.send(()).await.expect("the server waits");
            let error = response.text().await.expect_err("half a body");
            let ErrorKind::PartialBody(partial) = error.kind() else { panic!("{error:?}") };
            assert_eq!(matches!(partial, PartialBody::Transport(_)), reset, "{error:?}");
            assert!(error.is_partial() && error.request_may_have_been_processed());
            server.end();
        }
        let server = Scripted::one(|peer| drop(head(peer)));
        let error = client.get(server.url("/")).send().await.expect_err("no answer");
        assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
        server.end();
    });
}

