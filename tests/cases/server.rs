// The server's cases. Included into one module per loop after `harness.rs`.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyperman::{Body, Interim, service_fn};
use hyperman_tests::body::Pieces;
use hyperman_tests::peer::Peer;

type Text = Full<Bytes>;

fn text(body: impl Into<Bytes>) -> Result<Response<Text>, Infallible> {
    Ok(Response::new(Full::new(body.into())))
}

/// Answers with the method and the target.
async fn say_target(request: Request<Body>) -> Result<Response<Text>, Infallible> {
    text(format!("{} {}", request.method(), request.uri()))
}

/// Answers with the request's body, collected.
async fn echo(request: Request<Body>) -> Result<Response<Text>, Infallible> {
    match request.into_body().collect().await {
        Ok(body) => text(body.to_bytes()),
        Err(error) => text(error.to_string()),
    }
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// Tells when it is dropped.
struct Told(mpsc::Sender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

const SOON: Duration = Duration::from_secs(10);

#[test]
fn keep_alive_serves_one_request_after_the_other() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        for number in 0..5 {
            let answer = peer.send(get(&format!("/{number}"))).answer();
            assert_eq!((answer.status, answer.text()), (200, format!("GET /{number}")));
            assert!(answer.field("date").is_some());
            assert_eq!(answer.field("connection"), None);
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        let requests: String = (0..500).map(|number| get(&format!("/{number}"))).collect();
        peer.send(requests);
        for number in 0..500 {
            assert_eq!(peer.answer().text(), format!("GET /{number}"));
        }
    });
}

#[test]
fn a_request_split_at_every_byte_is_one_request() {
    with_server!(|_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        let request = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for byte in request.bytes() {
            peer.send([byte]);
        }
        assert_eq!(peer.answer().text(), "abc");
    });
}

#[test]
fn connection_close_is_obeyed() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        assert_eq!(peer.answer().field("connection"), Some("close"));
        peer.expect_end();
    });
}

#[test]
fn http_1_0_closes_unless_asked_to_stay() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(peer.answer().field("connection"), Some("keep-alive"));
        peer.send("GET /b HTTP/1.0\r\n\r\n");
        assert_eq!(peer.answer().text(), "GET /b");
        peer.expect_end();
    });
}

#[test]
fn head_has_the_length_and_no_body() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("HEAD /x HTTP/1.1\r\nHost: test\r\n\r\n").send(get("/y"));
        assert_eq!(peer.answer_to_head().field("content-length"), Some("7"));
        assert_eq!(peer.answer().text(), "GET /y");
    });
}

#[test]
fn uploads_come_back_whole() {
    with_server!(|_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let body: Vec<u8> = (0..1_000_000u32).map(|number| (number % 251) as u8).collect();
        let mut peer = Peer::connect(address);
        peer.send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", body.len())).send(&body);
        assert_eq!(peer.answer().body, body);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(10_007) {
            peer.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
        }
        assert_eq!(peer.send("0\r\n\r\n").answer().body, body);
        assert_eq!(peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n").answer().text(), "");
    });
}

#[test]
fn trailers_come_after_the_body_and_apart_from_the_head() {
    let service = |_| {
        service_fn(|request: Request<Body>| async {
            let collected = request.into_body().collect().await.expect("a whole body");
            let trailer = collected.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
            text(format!("{:?}", trailer.expect("a trailer")))
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n");
        peer.send("1\r\na\r\n").send("0\r\nX-Sum: 97\r\n\r\n");
        assert_eq!(peer.answer().text(), "\"97\"");
    });
}

#[test]
fn a_slow_reader_holds_the_answers_body_back() {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let service = move |_| {
        service_fn(move |_: Request<Body>| {
            let made = Arc::clone(&counter);
            async move { Ok::<_, Infallible>(Response::new(Pieces { left: 1_000, made })) }
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        let mut slow = Peer::connect(address);
        slow.send(get("/"));
        // Another peer is served meanwhile, so the first one's body cannot have been produced in one go.
        assert!(slow.until(b"\r\n\r\n").len() > 30);
        let before = made.load(Ordering::SeqCst);
        assert!(before < 400, "{before} of 1,000 pieces were made for a peer that reads nothing");
        let mut body = 0;
        loop {
            let line = String::from_utf8(slow.until(b"\r\n")).expect("a chunk size");
            let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
            body += slow.exactly(size).len();
            slow.exactly(2);
            if size == 0 {
                break;
            }
        }
        assert_eq!(body, 65_536_000);
        assert_eq!(made.load(Ordering::SeqCst), 1_000);
    });
}

#[test]
fn a_handler_that_does_not_read_holds_the_upload_back() {
    let service = |_| service_fn(|_request: Request<Body>| pending::<Result<Response<Text>, Infallible>>());
    let mut config = Config::default();
    config.limits.body = u64::MAX;
    with_server!(service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000000\r\n\r\n");
        peer.stream().set_write_timeout(Some(Duration::from_millis(300))).expect("timeout");
        let piece = vec![b'x'; 65_536];
        let mut taken = 0;
        while peer.try_send(&piece) {
            taken += piece.len();
            assert!(taken < 100_000_000, "the upload was read although nobody wanted it");
        }
    });
}

#[test]
fn the_peers_disconnect_drops_the_handler() {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_request: Request<Body>| {
            let tell = tell.clone();
            async move {
                let _told = Told(tell.clone(), "dropped");
                let _ = tell.send("called");
                pending::<Result<Response<Text>, Infallible>>().await
            }
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        for reset in [false, true] {
            let mut peer = Peer::connect(address);
            peer.send(get("/"));
            assert_eq!(told.recv_timeout(SOON), Ok("called"));
            let gone = Instant::now();
            if reset {
                peer.reset();
            } else {
                drop(peer);
            }
            assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
            assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
        }
    });
}

#[test]
fn half_close_is_tolerated_by_option() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let service = move |runtime: Rt| {
        service_fn(move |_request: Request<Body>| {
            let (runtime, released) = (runtime.clone(), Arc::clone(&released));
            async move {
                let mut timer = hyperman_transport::Runtime::timer(&runtime);
                loop {
                    if released.lock().expect("lock").try_recv().is_ok() {
                        return text("late");
                    }
                    let soon = hyperman_transport::Runtime::now(&runtime) + Duration::from_millis(5);
                    poll_fn(|cx| hyperman_transport::Timer::poll_deadline(&mut timer, soon, cx)).await;
                }
            }
        })
    };
    let config = Config { half_close: true, ..Config::default() };
    with_server!(service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send(get("/")).finish();
        release.send(()).expect("release");
        assert_eq!(peer.answer().text(), "late");
        peer.expect_end();
    });
}

#[test]
fn a_ready_answer_reaches_a_peer_that_has_finished() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send(get("/a") + &get("/b")).finish();
        assert_eq!(peer.answer().text(), "GET /a");
        assert_eq!(peer.answer().text(), "GET /b");
        peer.expect_end();
    });
}

#[test]
fn a_slow_head_is_answered_with_408() {
    let mut config = Config::default();
    config.timeouts.head = Duration::from_millis(100);
    with_server!(|_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        assert_eq!(peer.send("GET / HTTP/1.1\r\nHo").answer().status, 408);
        peer.expect_end();
    });
}

#[test]
fn an_idle_connection_is_closed_silently() {
    let mut config = Config::default();
    config.timeouts.idle = Duration::from_millis(100);
    with_server!(|_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        assert_eq!(peer.send(get("/")).answer().status, 200);
        peer.expect_end();
    });
}

#[test]
fn a_slow_body_is_answered_with_408() {
    let mut config = Config::default();
    config.timeouts.body_grace = Duration::from_millis(100);
    with_server!(|_| service_fn(echo), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nabc");
        assert_eq!(peer.answer().status, 408);
        peer.expect_end();
    });
}

#[test]
fn a_peer_that_takes_nothing_is_cut_off() {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_: Request<Body>| {
            let told = Told(tell.clone(), "dropped");
            let made = Arc::default();
            let body = Pieces { left: 100_000, made };
            async move { Ok::<_, Infallible>(Response::new(body.map_frame(move |frame| { let _ = &told; frame }))) }
        })
    };
    let mut config = Config::default();
    config.timeouts.write_stall = Duration::from_millis(200);
    with_server!(service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send(get("/"));
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
    });
}

#[test]
fn a_body_over_the_limit_is_answered_with_413() {
    let mut config = Config::default();
    config.limits.body = 1_000;
    with_server!(|_| service_fn(echo), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n");
        assert_eq!(peer.answer().status, 413);
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.send(format!("200\r\n{:0512}\r\n200\r\n{:0512}\r\n", 0, 0));
        assert_eq!(peer.answer().status, 413);
        peer.expect_end();
    });
}

#[test]
fn the_100_goes_out_when_the_handler_first_reads() {
    with_server!(|_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        let head = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
        assert_eq!(peer.send(head).answer().status, 100);
        assert_eq!(peer.send("abc").answer().text(), "abc");
        assert_eq!(peer.send(get("/")).answer().status, 200);
    });
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        let head = "POST /x HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
        assert_eq!(peer.send(head).answer().text(), "POST /x");
    });
}

#[test]
fn an_early_answer_to_a_large_upload_arrives() {
    let mut config = Config::default();
    config.limits.body = u64::MAX;
    with_server!(|_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n");
        let piece = vec![b'x'; 65_536];
        for _ in 0..3 {
            peer.try_send(&piece);
        }
        let answer = peer.answer();
        assert_eq!((answer.status, answer.text()), (200, "POST /".to_owned()));
        assert_eq!(answer.field("connection"), Some("close"));
    });
}

#[test]
fn what_is_malformed_is_answered_and_nothing_after_it_is_heard() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let service = move |_| {
        let calls = Arc::clone(&counter);
        service_fn(move |request: Request<Body>| {
            calls.fetch_add(1, Ordering::SeqCst);
            say_target(request)
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\nHost: a\n\n", 400),
            ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ] {
            let mut peer = Peer::connect(address);
            peer.try_send(format!("{request}{}", get("/smuggled")));
            let answer = peer.answer();
            assert_eq!(answer.status, status, "{request:?}");
            assert_eq!(answer.field("connection"), Some("close"), "{request:?}");
            peer.expect_end();
        }
    });
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[test]
fn a_handler_that_panics_or_fails_is_answered_with_500() {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            match request.uri().path() {
                "/panic" => panic!("as the test wants it"),
                "/fail" => Err("as the test wants it"),
                _ => Ok(Response::new(Text::from("fine"))),
            }
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        assert_eq!(peer.send(get("/panic")).answer().status, 500);
        assert_eq!(peer.send(get("/fail")).answer().status, 500);
        assert_eq!(peer.send(get("/")).answer().text(), "fine");
    });
}

#[test]
fn a_pending_handler_parks_only_its_own_connection() {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            if request.uri().path() == "/wait" {
                pending::<()>().await;
            }
            text("ready")
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        let mut parked = Peer::connect(address);
        parked.send(get("/wait"));
        for _ in 0..20 {
            let mut peer = Peer::connect(address);
            assert_eq!(peer.send(get("/")).answer().text(), "ready");
        }
    });
}

#[test]
fn a_drain_closes_the_idle_and_lets_the_busy_finish() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let (tell, told) = mpsc::channel();
    let service = move |runtime: Rt| {
        service_fn(move |request: Request<Body>| {
            let (runtime, released, tell) = (runtime.clone(), Arc::clone(&released), tell.clone());
            async move {
                if request.uri().path() == "/quick" {
                    return text("quick");
                }
                let _ = tell.send("called");
                let mut timer = hyperman_transport::Runtime::timer(&runtime);
                while released.lock().expect("lock").try_recv().is_err() {
                    let soon = hyperman_transport::Runtime::now(&runtime) + Duration::from_millis(5);
                    poll_fn(|cx| hyperman_transport::Timer::poll_deadline(&mut timer, soon, cx)).await;
                }
                text("finished")
            }
        })
    };
    with_server!(service, Config::default(), |address, shutdown: &Shutdown| {
        let mut idle = Peer::connect(address);
        assert_eq!(idle.send(get("/quick")).answer().text(), "quick");
        let mut busy = Peer::connect(address);
        busy.send(get("/slow"));
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        shutdown.drain();
        idle.expect_end();
        release.send(()).expect("release");
        let answer = busy.answer();
        assert_eq!((answer.text(), answer.field("connection")), ("finished".to_owned(), Some("close")));
        busy.expect_end();
    });
}

#[test]
fn an_answer_after_the_word_to_drain_says_that_it_is_the_last() {
    let stop = Arc::new(std::sync::OnceLock::<Shutdown>::new());
    let stopping = Arc::clone(&stop);
    let service = move |_| {
        let stop = Arc::clone(&stopping);
        service_fn(move |_: Request<Body>| {
            // The word comes while the connection is in the middle of its turn.
            stop.get().expect("a handle").drain();
            async { text("last") }
        })
    };
    with_server!(service, Config::default(), |address, shutdown: &Shutdown| {
        stop.set(shutdown.clone()).expect("set once");
        let mut peer = Peer::connect(address);
        let answer = peer.send(get("/")).answer();
        assert_eq!((answer.text(), answer.field("connection")), ("last".to_owned(), Some("close")));
        peer.expect_end();
    });
}

#[test]
fn a_drain_cuts_what_does_not_end_in_time() {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_: Request<Body>| {
            let tell = tell.clone();
            async move {
                let _told = Told(tell.clone(), "dropped");
                let _ = tell.send("called");
                pending::<Result<Response<Text>, Infallible>>().await
            }
        })
    };
    let config = Config { drain_deadline: Duration::from_millis(100), ..Config::default() };
    with_server!(service, config, |address, shutdown: &Shutdown| {
        let mut peer = Peer::connect(address);
        peer.send(get("/"));
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        shutdown.drain();
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
        peer.expect_end();
    });
}

#[test]
fn an_upgraded_connection_is_handed_over_with_the_bytes_already_read() {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |mut request: Request<Body>| {
            let tell = tell.clone();
            async move {
                let upgrade = hyperman::upgrade::on(&mut request);
                let mut answer = Response::new(Text::default());
                if request.method() != http::Method::CONNECT {
                    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                    answer.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
                    answer.headers_mut().insert("upgrade", HeaderValue::from_static("shout"));
                }
                let _ = tell.send(upgrade);
                Ok::<_, Infallible>(answer)
            }
        })
    };
    with_server!(service, Config::default(), |address, _: &Shutdown| {
        for (head, status) in [
            ("GET /chat HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n", 101),
            ("CONNECT test:80 HTTP/1.1\r\nHost: test:80\r\n\r\n", 200),
        ] {
            let mut peer = Peer::connect(address);
            peer.send(format!("{head}early "));
            let shouting = std::thread::spawn({
                let upgrade = told.recv_timeout(SOON).expect("the handler was called");
                // Whoever took the connection over may be on another loop.
                move || {
                    hyperman_loop::block_on(|_| async move {
                        let mut upgraded = upgrade.await.expect("an upgrade");
                        while let Some(data) = upgraded.chunk().await.expect("bytes") {
                            upgraded.send(Bytes::from(data.to_ascii_uppercase())).await.expect("room");
                        }
                        upgraded.close();
                    })
                    .expect("a loop");
                }
            });
            let head = peer.until(b"\r\n\r\n");
            assert_eq!(String::from_utf8_lossy(&head[9..12]), status.to_string());
            assert_eq!(peer.send("and late").exactly(14), b"EARLY AND LATE");
            peer.finish();
            peer.expect_end();
            shouting.join().expect("the shouting thread");
        }
    });
}

#[test]
fn early_hints_precede_the_answer() {
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
    with_server!(service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        let hints = peer.send(get("/")).answer();
        assert_eq!((hints.status, hints.field("link")), (103, Some("</a.css>; rel=preload")));
        assert_eq!(peer.answer().text(), "answer");
    });
}

#[test]
fn connections_over_the_limit_wait_for_their_turn() {
    let config = Config { connections: 2, ..Config::default() };
    with_server!(|_| service_fn(say_target), config, |address, _: &Shutdown| {
        let mut first = Peer::connect(address);
        let mut second = Peer::connect(address);
        assert_eq!(first.send(get("/1")).answer().text(), "GET /1");
        assert_eq!(second.send(get("/2")).answer().text(), "GET /2");
        let mut third = Peer::connect(address);
        third.send(get("/3"));
        assert_eq!(second.send(get("/2")).answer().text(), "GET /2");
        drop(first);
        assert_eq!(third.answer().text(), "GET /3");
    });
}

#[test]
fn an_axum_router_is_served_unchanged() {
    use axum::routing::{get as route, post};
    let router = |_| {
        axum::Router::new()
            .route("/hello/{name}", route(async |axum::extract::Path(name): axum::extract::Path<String>| name))
            .route("/echo", post(async |body: Bytes| body))
    };
    with_server!(router, Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(address);
        assert_eq!(peer.send(get("/hello/world")).answer().text(), "world");
        assert_eq!(peer.send(get("/nowhere")).answer().status, 404);
        peer.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nabcde");
        assert_eq!(peer.answer().text(), "abcde");
    });
}

#[test]
fn five_hundred_connections_at_once_are_all_served() {
    with_server!(|_| service_fn(say_target), Config::default(), |address, _: &Shutdown| {
        let mut peers: Vec<Peer> = (0..500).map(|_| Peer::connect(address)).collect();
        for (number, peer) in peers.iter_mut().enumerate() {
            peer.send(get(&format!("/{number}")));
        }
        for (number, peer) in peers.iter_mut().enumerate() {
            assert_eq!(peer.answer().text(), format!("GET /{number}"));
        }
    });
}
