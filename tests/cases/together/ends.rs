//! Calls that are given up, and servers that are.

use std::future::pending;
use std::time::Duration;

use http::Request;
use hyperman::service_fn;
use hyperman_fetch::ErrorKind;
use hyperman_tests::carrier::Carrier;

use super::text;
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        a_call_that_is_given_up_drops_its_handler
        a_drained_server_takes_no_more_requests_and_finishes_those_it_has;
}

/// Tells when it is dropped.
struct Told(smol::channel::Sender<&'static str>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.try_send("dropped");
    }
}

fn a_call_that_is_given_up_drops_its_handler(on: Carrier) {
    block_on(|runtime| async move {
        let (tell, told) = smol::channel::unbounded();
        let service = service_fn(move |request: Request<hyperman::Body>| {
            let tell = tell.clone();
            async move {
                if request.uri().path() == "/ready" {
                    return text("ready");
                }
                let _told = Told(tell.clone());
                let _ = tell.try_send("called");
                pending().await
            }
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        for deadline in [false, true] {
            if deadline {
                let request = client.get(&*base).timeout(Duration::from_millis(100));
                let error = request.send().await.expect_err("no answer");
                assert!(matches!(error.kind(), ErrorKind::Timeout), "{error:?}");
                assert_eq!(told.recv().await, Ok("called"));
            } else {
                let sending = async { drop(client.get(&*base).send().await.expect("never")) };
                let called = async { assert_eq!(told.recv().await, Ok("called")) };
                smol::future::or(sending, called).await;
            }
            assert_eq!(told.recv().await, Ok("dropped"));
            let response = client.get(format!("{base}/ready")).send().await.expect("an answer");
            assert_eq!(response.text().await.expect("text"), "ready");
        }
        drop(client);
        shutdown.drain();
        end.recv().await.expect("the server ends");
    });
}

fn a_drained_server_takes_no_more_requests_and_finishes_those_it_has(on: Carrier) {
    block_on(|runtime| async move {
        let (called, calls) = smol::channel::bounded(1);
        let (go, gone) = smol::channel::bounded::<()>(1);
        let service = service_fn(move |_: Request<hyperman::Body>| {
            let (called, gone) = (called.clone(), gone.clone());
            async move {
                let _ = called.send(()).await;
                let _ = gone.recv().await;
                text("finished")
            }
        });
        let (base, shutdown, end) = serve_here!(on, runtime, service);
        let client = on.client(runtime).build();
        let sending = client.get(&*base).send();
        let drain = async {
            calls.recv().await.expect("the handler was called");
            shutdown.drain();
            go.send(()).await.expect("the handler waits");
        };
        let (response, ()) = smol::future::zip(sending, drain).await;
        let response = response.expect("an answer");
        if !on.is_http2() {
            let connection = response.headers().get("connection").map(|value| value.as_bytes());
            assert_eq!(connection, Some(&b"close"[..]));
        }
        assert_eq!(response.text().await.expect("text"), "finished");
        end.recv().await.expect("the server ends");
        let error = client.get(&*base).send().await.expect_err("nobody listens");
        assert!(error.is_connect() && !error.request_may_have_been_processed(), "{error:?}");
    });
}
