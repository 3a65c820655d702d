//! Many calls at once, one after the other, in turn, and of one through another.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyperman::{Config, Interim, service_fn};
use hyperman_fetch::error::RedirectFault;
use hyperman_fetch::{Body, ErrorKind, Notice};
use hyperman_tests::body::Pieces;
use hyperman_tests::carrier::Carrier;
use hyperman_transport::Spawn;

use super::text;
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        requests_in_turn_share_a_connection
        five_hundred_requests_are_in_flight_on_one_loop
        redirects_are_followed_as_far_as_allowed
        a_handler_calls_out_on_its_own_loop
        early_hints_reach_who_watches;
}

fn requests_in_turn_share_a_connection(on: Carrier) {
    block_on(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            text(body)
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        let connected = Arc::new(AtomicUsize::new(0));
        for number in 0..100 {
            let counter = Arc::clone(&connected);
            let request = client.post(&*base).body(number.to_string()).watch(move |notice: Notice<'_>| {
                if let Notice::Connected { reused: false, .. } = notice {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            });
            let response = request.send().await.expect("an answer");
            let expected = if on.is_http2() { http::Version::HTTP_2 } else { http::Version::HTTP_11 };
            assert_eq!(response.version(), expected);
            assert_eq!(response.text().await.expect("text"), number.to_string());
        }
        assert_eq!(connected.load(Ordering::SeqCst), 1);
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn five_hundred_requests_are_in_flight_on_one_loop(on: Carrier) {
    const REQUESTS: usize = 500;
    block_on(|runtime| async move {
        // No request is answered before all of them are there.
        let barrier = Arc::new(smol::lock::Barrier::new(REQUESTS));
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let barrier = Arc::clone(&barrier);
            async move {
                barrier.wait().await;
                text(request.uri().path().to_owned())
            }
        });
        let mut config = Config::default();
        config.http2_settings.limits.concurrent_streams = REQUESTS as u32;
        let (base, shutdown, end) = serve_here!(on, runtime, service, config);
        let client = on.client(runtime.clone()).build();
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
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn redirects_are_followed_as_far_as_allowed(on: Carrier) {
    block_on(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
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
                    let text = format!("{} {} {}", head.method, head.uri.path(), body.len());
                    *answer.body_mut() = Full::new(text.into());
                }
            }
            Ok::<_, Infallible>(answer)
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        for (path, expected) in [
            ("302/10", "GET /302/0 0"),
            ("303/1", "GET /303/0 0"),
            ("307/3", "POST /307/0 4"),
            ("308/1", "POST /308/0 4"),
        ] {
            let sending = client.post(format!("{base}/{path}")).body("body").send();
            let response = sending.await.expect("an answer");
            assert!(response.url().path().ends_with("/0"), "{}", response.url());
            assert_eq!(response.text().await.expect("text"), expected);
        }
        let error = client.get(format!("{base}/302/11")).send().await.expect_err("too many");
        assert!(matches!(error.kind(), ErrorKind::TooManyRedirects(10)), "{error:?}");
        let stream = Body::stream(Pieces { left: 1, ..Pieces::default() });
        let error = client.post(format!("{base}/307/1")).body(stream).send().await.expect_err("used up");
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Redirect(RedirectFault::BodyNotReplayable)), "{error:?}");
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn a_handler_calls_out_on_its_own_loop(on: Carrier) {
    const REQUESTS: usize = 50;
    block_on(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            text(format!("back {}", request.uri().path()))
        });
        let (back, _stop_back, _end_back) = serve_here!(on, runtime, service);
        let outbound = on.client(runtime.clone()).build();
        // This one reads the whole answer first, the next one passes it on as it arrives.
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("{back}{}", request.uri().path())).send();
            async move {
                let text = sending.await?.text().await?;
                let answer = Full::new(Bytes::from(format!("front {text}")));
                Ok::<_, hyperman_fetch::Error>(Response::new(answer))
            }
        });
        let (front, _stop_front, _end_front) = serve_here!(on, runtime, service);
        let outbound = on.client(runtime.clone()).build();
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let sending = outbound.get(format!("{front}{}", request.uri().path())).send();
            async move { Ok::<_, hyperman_fetch::Error>(sending.await?.into_http()) }
        });
        let (passing, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime.clone()).build();
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
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn early_hints_reach_who_watches(on: Carrier) {
    block_on(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            let interim = request.extensions().get::<Interim>().cloned().expect("an Interim");
            let mut hints = HeaderMap::new();
            hints.insert("link", HeaderValue::from_static("</a.css>; rel=preload"));
            interim.send(StatusCode::EARLY_HINTS, hints);
            text("answer")
        });
        let config = Config { interim_extension: true, ..Config::default() };
        let (base, shutdown, end) = serve_here!(on, runtime, service, config);
        let (tell, told) = smol::channel::unbounded();
        let request = on.client(runtime).build().get(&*base).watch(move |notice: Notice<'_>| {
            if let Notice::Interim(interim) = notice {
                let link = interim.headers().get("link").cloned();
                let _ = tell.try_send((interim.status(), link));
            }
        });
        let response = request.send().await.expect("an answer");
        let link = HeaderValue::from_static("</a.css>; rel=preload");
        assert_eq!(told.try_recv(), Ok((StatusCode::EARLY_HINTS, Some(link))));
        assert_eq!(response.text().await.expect("text"), "answer");
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}
