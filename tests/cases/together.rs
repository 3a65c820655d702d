// Client and server on one loop. Included into modules of each loop's test, which have defined `Rt`, the loop's
// `Runtime`, `block_on`, and `SECURE`: whether both speak TLS.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyperman::{Config, Endpoint, serve_all, service_fn};
use hyperman_fetch::error::RedirectFault;
use hyperman_fetch::{Body, Client, ErrorKind};
use hyperman_tests::body::Pieces;
use hyperman_transport::{ListenOptions, Listener, Spawn};

/// Runs a case on this loop, in a thread of its own.
fn run<F: Future<Output = ()>>(case: impl FnOnce(Rt) -> F + Send + 'static) {
    hyperman_tests::watched(|| block_on(case));
}

/// A client that trusts the server here.
fn client(runtime: &Rt) -> Client<Rt> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    Client::builder(runtime.clone()).resolve("localhost", [loopback]).tls(&hyperman_tests::tls().0).build()
}

/// Serves `$service` on the loop of the case itself. Gives the beginning of its URLs, the handle that ends it, and what
/// tells that it has ended.
macro_rules! serve_here {
    ($runtime:expr, $service:expr) => {{
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind_tcp($runtime.clone(), any, &ListenOptions::default()).expect("a port");
        let port = listener.local_addr().expect("an address").expect("a TCP address").port();
        let (scheme, endpoint) = if SECURE {
            ("https", Endpoint::tls(listener, hyperman_tests::tls().1.clone()))
        } else {
            ("http", Endpoint::new(listener))
        };
        let serving = serve_all($runtime.clone(), vec![endpoint], $service, Config::default());
        let shutdown = serving.shutdown_handle();
        let (ended, end) = smol::channel::bounded(1);
        $runtime.spawn(async move {
            serving.await.expect("the server ends well");
            let _ = ended.send(()).await;
        });
        (format!("{scheme}://localhost:{port}"), shutdown, end)
    }};
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
        let (base, shutdown, end) = serve_here!(runtime, service);
        let client = client(&runtime);
        let (tell, told) = smol::channel::unbounded();
        for number in 0..REQUESTS {
            let (tell, sending) = (tell.clone(), client.get(format!("{base}/{number}")).send());
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
        let (base, shutdown, end) = serve_here!(runtime, service);
        let client = client(&runtime);
        for (path, expected) in
            [("302/10", "GET /302/0 0"), ("303/1", "GET /303/0 0"), ("307/3", "POST /307/0 4"), ("308/1", "POST /308/0 4")]
        {
            let sending = client.post(format!("{base}/{path}")).body("body").send();
            let response = sending.await.expect("an answer");
            assert!(response.url().path().ends_with("/0"), "{}", response.url());
            assert_eq!(response.text().await.expect("text"), expected);
        }
        let error = client.get(format!("{base}/302/11")).send().await.expect_err("too many");
        assert!(matches!(error.kind(), ErrorKind::TooManyRedirects(10)), "{error:?}");
        let stream = Body::stream(Pieces { left: 1, ..Pieces::default() });
        let error = client.post(format!("{base}/307/1")).body(stream).send().await.expect_err("used up");
        assert!(matches!(error.kind(), ErrorKind::Redirect(RedirectFault::BodyNotReplayable)), "{error:?}");
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

#[test]
fn a_body_goes_there_and_back_while_it_is_sent() {
    run(|runtime| async move {
        // The answer's body is the request's, so it comes back while more of it is still to be sent.
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let (base, shutdown, end) = serve_here!(runtime, service);
        let pieces = Pieces { left: 200, ..Pieces::default() };
        let client = client(&runtime);
        let sending = client.post(format!("{base}/")).body(Body::stream(pieces)).send();
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
        let outbound = client(&runtime);
        // This one reads the whole answer first, the next one passes it on as it arrives.
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("{back}{}", request.uri().path())).send();
            async move {
                let text = sending.await?.text().await?;
                Ok::<_, hyperman_fetch::Error>(Response::new(Full::new(Bytes::from(format!("front {text}")))))
            }
        });
        let (front, shutdown, end) = serve_here!(runtime, service);
        let outbound = client(&runtime);
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("{front}{}", request.uri().path())).send();
            async move { Ok::<_, hyperman_fetch::Error>(sending.await?.into_http()) }
        });
        let (passing, _stop_passing, _end_passing) = serve_here!(runtime, service);
        let client = client(&runtime);
        let (tell, told) = smol::channel::unbounded();
        for number in 0..REQUESTS {
            let (tell, sending) = (tell.clone(), client.get(format!("{passing}/{number}")).send());
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
        let (base, shutdown, end) = serve_here!(runtime, service);
        let client = client(&runtime);
        let sending = client.get(format!("{base}/")).send();
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
        let error = client.get(format!("{base}/")).send().await.expect_err("nobody listens");
        assert!(error.is_connect() && !error.request_may_have_been_processed(), "{error:?}");
    });
}
