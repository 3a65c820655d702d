// The client's cases. Included into one module per loop, which has defined `Rt`, the loop's `Runtime`, and `block_on`.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyperman::{Config, serve, service_fn};
use hyperman_fetch::error::{PartialBody, RedirectFault};
use hyperman_fetch::{Body, Client, ErrorKind};
use hyperman_tests::body::Pieces;
use hyperman_tests::peer::Peer;
use hyperman_tests::script::{Script, Scripted};
use hyperman_transport::{ListenOptions, Listener, Runtime, Spawn, Timer};

/// Runs a case on this loop, in a thread of its own.
fn run<F: Future<Output = ()>>(case: impl FnOnce(Rt) -> F + Send + 'static) {
    hyperman_tests::watched(|| block_on(case));
}

/// Serves `$service` on the loop of the case itself, and gives the address and the handle that ends it.
macro_rules! serve_here {
    ($runtime:expr, $service:expr) => {{
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind_tcp($runtime.clone(), any, &ListenOptions::default()).expect("a port");
        let address = listener.local_addr().expect("an address").expect("a TCP address");
        let serving = serve($runtime.clone(), listener, $service, Config::default());
        let shutdown = serving.shutdown_handle();
        let (ended, end) = smol::channel::bounded(1);
        $runtime.spawn(async move {
            serving.await.expect("the server ends well");
            let _ = ended.send(()).await;
        });
        (address, shutdown, end)
    }};
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
fn five_hundred_requests_are_in_flight_on_one_loop() {
    const REQUESTS: usize = 500;
    run(|runtime| async move {
        // No request is answered before all of them are there.
        let barrier = Arc::new(smol::lock::Barrier::new(REQUESTS));
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(request.uri().path().to_owned()))))
            }
        });
        let (address, shutdown, end) = serve_here!(runtime, service);
        let client = Client::new(runtime.clone());
        let (tell, told) = smol::channel::unbounded();
        for number in 0..REQUESTS {
            let (tell, sending) = (tell.clone(), client.get(format!("http://{address}/{number}")).send());
            runtime.spawn(async move {
                let text = sending.await.expect("an answer").text().await.expect("text");
                let _ = tell.send((number, text)).await;
            });
        }
        for _ in 0..REQUESTS {
            let (number, text) = told.recv().await.expect("an answer");
            assert_eq!(text, format!("/{number}"));
        }
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

#[test]
fn redirects_are_followed_as_far_as_allowed() {
    run(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            let (head, body) = request.into_parts();
            let body = http_body_util::BodyExt::collect(body).await.expect("a body").to_bytes();
            let mut answer = Response::new(Full::new(Bytes::new()));
            let step = head.uri.path().trim_start_matches('/');
            let to = match step.split_once('/') {
                Some((status, left)) if left != "0" => {
                    *answer.status_mut() = StatusCode::from_bytes(status.as_bytes()).expect("a status");
                    let left: u32 = left.parse().expect("a number");
                    Some(format!("/{status}/{}", left - 1))
                }
                _ => None,
            };
            match to {
                Some(to) => {
                    answer.headers_mut().insert("location", to.parse().expect("a value"));
                }
                None => {
                    let text = format!("{} {} {}", head.method, head.uri, body.len());
                    *answer.body_mut() = Full::new(text.into());
                }
            }
            Ok::<_, Infallible>(answer)
        });
        let (address, shutdown, end) = serve_here!(runtime, service);
        let client = Client::new(runtime.clone());
        for (path, expected) in
            [("302/10", "GET /302/0 0"), ("303/1", "GET /303/0 0"), ("307/3", "POST /307/0 4"), ("308/1", "POST /308/0 4")]
        {
            let sending = client.post(format!("http://{address}/{path}")).body("body").send();
            let response = sending.await.expect("an answer");
            assert!(response.url().path().ends_with("/0"), "{}", response.url());
            assert_eq!(response.text().await.expect("text"), expected);
        }
        let error = client.get(format!("http://{address}/302/11")).send().await.expect_err("too many");
        assert!(matches!(error.kind(), ErrorKind::TooManyRedirects(10)), "{error:?}");
        let stream = Body::stream(Pieces { left: 1, ..Pieces::default() });
        let error = client.post(format!("http://{address}/307/1")).body(stream).send().await.expect_err("used up");
        assert!(matches!(error.kind(), ErrorKind::Redirect(RedirectFault::BodyNotReplayable)), "{error:?}");
        shutdown.drain();
        end.recv().await.expect("the server ends");
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

#[test]
fn a_body_goes_there_and_back_while_it_is_sent() {
    run(|runtime| async move {
        // The answer's body is the request's, so it comes back while more of it is still to be sent.
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let (address, shutdown, end) = serve_here!(runtime, service);
        let pieces = Pieces { left: 200, ..Pieces::default() };
        let client = Client::new(runtime.clone());
        let sending = client.post(format!("http://{address}/")).body(Body::stream(pieces)).send();
        let mut response = sending.await.expect("an answer");
        let mut received = 0;
        while let Some(piece) = response.chunk().await.expect("a piece") {
            assert!(piece.iter().all(|byte| *byte == b'x'));
            received += piece.len();
        }
        assert_eq!(received, 200 * 65_536);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

#[test]
fn a_handler_calls_out_on_its_own_loop() {
    const REQUESTS: usize = 50;
    run(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(format!("back {}", request.uri())))))
        });
        let (back, _stop_back, _end_back) = serve_here!(runtime, service);
        let outbound = Client::new(runtime.clone());
        // This one reads the whole answer first, the next one passes it on as it arrives.
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("http://{back}{}", request.uri().path())).send();
            async move {
                let text = sending.await?.text().await?;
                Ok::<_, hyperman_fetch::Error>(Response::new(Full::new(Bytes::from(format!("front {text}")))))
            }
        });
        let (front, shutdown, end) = serve_here!(runtime, service);
        let outbound = Client::new(runtime.clone());
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("http://{front}{}", request.uri().path())).send();
            async move { Ok::<_, hyperman_fetch::Error>(sending.await?.into_http()) }
        });
        let (passing, _stop_passing, _end_passing) = serve_here!(runtime, service);
        let client = Client::new(runtime.clone());
        let (tell, told) = smol::channel::unbounded();
        for number in 0..REQUESTS {
            let (tell, sending) = (tell.clone(), client.get(format!("http://{passing}/{number}")).send());
            runtime.spawn(async move {
                let text = sending.await.expect("an answer").text().await.expect("text");
                let _ = tell.send((number, text)).await;
            });
        }
        for _ in 0..REQUESTS {
            let (number, text) = told.recv().await.expect("an answer");
            assert_eq!(text, format!("front back /{number}"));
        }
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

#[test]
fn a_drained_server_takes_no_more_requests_and_finishes_those_it_has() {
    run(|runtime| async move {
        let (called, calls) = smol::channel::bounded(1);
        let (go, gone) = smol::channel::bounded::<()>(1);
        let service = service_fn(move |_: Request<hyperman::Body>| {
            let (called, gone) = (called.clone(), gone.clone());
            async move {
                let _ = called.send(()).await;
                let _ = gone.recv().await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"finished"))))
            }
        });
        let (address, shutdown, end) = serve_here!(runtime, service);
        let client = Client::new(runtime.clone());
        let sending = client.get(format!("http://{address}/")).send();
        let drain = async {
            calls.recv().await.expect("the handler was called");
            shutdown.drain();
            go.send(()).await.expect("the handler waits");
        };
        let (response, ()) = smol::future::zip(sending, drain).await;
        let response = response.expect("an answer");
        assert_eq!(response.headers().get("connection").map(|value| value.as_bytes()), Some(&b"close"[..]));
        assert_eq!(response.text().await.expect("text"), "finished");
        end.recv().await.expect("the server ends");
        let error = client.get(format!("http://{address}/")).send().await.expect_err("nobody listens");
        assert!(error.is_connect() && !error.request_may_have_been_processed(), "{error:?}");
    });
}
