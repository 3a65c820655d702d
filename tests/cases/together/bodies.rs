//! Bodies in both directions, while they are made.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyperman::service_fn;
use hyperman_fetch::Body;
use hyperman_tests::body::Pieces;
use hyperman_tests::carrier::Carrier;

use super::text;
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        a_body_goes_there_and_back_while_it_is_sent
        trailers_go_both_ways
        a_slow_caller_holds_the_handlers_body_back
        a_handler_that_answers_early_ends_the_upload;
}

fn a_body_goes_there_and_back_while_it_is_sent(on: Carrier) {
    block_on(|runtime| async move {
        // The answer's body is the request's, so it comes back while more of it is still to be sent.
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            Ok::<_, Infallible>(Response::new(request.into_body()))
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let pieces = Pieces { left: 200, ..Pieces::default() };
        let client = on.client(runtime).build();
        let sending = client.post(&*base).body(Body::stream(pieces)).send();
        let mut response = sending.await.expect("an answer");
        let mut received = 0;
        while let Some(piece) = response.chunk().await.expect("a piece") {
            assert!(piece.iter().all(|byte| *byte == b'x'));
            received += piece.len();
        }
        assert_eq!(received, 200 * 65_536);
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

/// A body with trailers. It does not say its length: a length would be sent in place of chunks, and trailers not at all.
fn with_sum(body: Bytes, sum: HeaderValue) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", sum);
    Full::new(body).with_trailers(std::future::ready(Some(Ok(trailers)))).map_frame(|frame| frame)
}

fn trailers_go_both_ways(on: Carrier) {
    block_on(|runtime| async move {
        let service = service_fn(|request: Request<hyperman::Body>| async move {
            let collected = request.into_body().collect().await.expect("a whole body");
            let sum = collected.trailers().and_then(|trailers| trailers.get("x-sum")).cloned();
            let body = with_sum(collected.to_bytes(), sum.expect("a trailer"));
            Ok::<_, Infallible>(Response::new(body))
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let sum = HeaderValue::from_static("97");
        let body = Body::stream(with_sum(Bytes::from_static(b"a"), sum.clone()));
        let response = on.client(runtime).build().post(&*base).body(body).send().await.expect("an answer");
        assert_eq!(response.headers().get("x-sum"), None);
        let (body, trailers) = response.bytes_and_trailers().await.expect("a whole body");
        assert_eq!((&*body, trailers.expect("trailers").get("x-sum")), (&b"a"[..], Some(&sum)));
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn a_slow_caller_holds_the_handlers_body_back(on: Carrier) {
    block_on(|runtime| async move {
        let pieces = Pieces { left: 1_000, ..Pieces::default() };
        let (body, made) = (pieces.clone(), Arc::clone(&pieces.made));
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let large = request.uri().path() == "/large";
            let body = if large { body.clone() } else { Pieces { left: 1, ..Pieces::default() } };
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        let mut slow = client.get(format!("{base}/large")).send().await.expect("an answer");
        // Others are served meanwhile, with HTTP/2 on the same connection.
        for _ in 0..20 {
            let response = client.get(format!("{base}/small")).send().await.expect("an answer");
            assert_eq!(response.bytes().await.expect("a body").len(), 65_536);
        }
        let before = made.load(Ordering::SeqCst);
        assert!(before < 400, "{before} of 1,000 pieces were made for a caller that reads nothing");
        let mut received = 0;
        while let Some(piece) = slow.chunk().await.expect("a piece") {
            received += piece.len();
        }
        assert_eq!((received, made.load(Ordering::SeqCst)), (65_536_000, 1_000));
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn a_handler_that_answers_early_ends_the_upload(on: Carrier) {
    block_on(|runtime| async move {
        let service =
            service_fn(|request: Request<hyperman::Body>| async move { text(request.method().to_string()) });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        let endless = Body::stream(Pieces { left: usize::MAX, ..Pieces::default() });
        let response = client.post(&*base).body(endless).send().await.expect("an answer");
        assert_eq!(response.text().await.expect("text"), "POST");
        let response = client.get(&*base).send().await.expect("an answer");
        assert_eq!(response.text().await.expect("text"), "GET");
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}
