//! Connections that are kept, and what becomes of a request when the kept one is dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyperman_fetch::{Body, ErrorKind, Notice};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;
use hyperman_tests::replier::Replier;
use hyperman_tests::script::{Script, Scripted};

use super::{one, pause, script};
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        one_connection_serves_one_request_after_the_other
        a_stale_connection_is_replaced_once_where_that_is_safe
        a_stale_connection_fails_what_may_not_be_repeated;
    ONE:
        bytes_that_nobody_asked_for_answer_nothing;
    TWO:
        a_refused_request_is_made_again_whatever_its_method;
}

fn one_connection_serves_one_request_after_the_other(on: Carrier) {
    block_on(|runtime| async move {
        let server = one(on, |peer| {
            for number in 0..5 {
                assert_eq!(peer.request().line, format!("GET /{number}"));
                peer.reply(&number.to_string());
            }
            peer.expect_end();
        });
        let client = on.client(runtime).build();
        for number in 0..5 {
            let response = client.get(server.url(&format!("/{number}"))).send().await.expect("an answer");
            assert_eq!(response.text().await.expect("text"), number.to_string());
        }
        drop(client);
        server.end();
    });
}

/// A first connection that serves one request and dies of the second, and what comes after it.
fn dies_of_the_second(on: Carrier, next: Vec<Script<Replier>>) -> Scripted {
    let mut scripts = vec![script(|peer: &mut Replier| {
        peer.request();
        peer.reply("first");
        peer.request();
    })];
    scripts.extend(next);
    Scripted::new(on, scripts)
}

fn a_stale_connection_is_replaced_once_where_that_is_safe(on: Carrier) {
    block_on(|runtime| async move {
        let server = dies_of_the_second(
            on,
            vec![script(|peer: &mut Replier| {
                assert_eq!(peer.request().line, "PUT /second");
                assert_eq!(peer.body(), b"body");
                peer.reply("second");
                peer.expect_end();
            })],
        );
        let client = on.client(runtime.clone()).build();
        let first = client.get(server.url("/first")).send().await.expect("an answer");
        assert_eq!(first.text().await.expect("text"), "first");
        let second = client.put(server.url("/second")).body("body").send().await.expect("an answer");
        assert_eq!(second.text().await.expect("text"), "second");
        drop(client);
        server.end();

        let client = on.client(runtime.clone()).build();
        let server = dies_of_the_second(on, vec![script(|peer: &mut Replier| drop(peer.request()))]);
        client.get(server.url("/first")).send().await.expect("an answer").text().await.expect("text");
        let error = client.get(server.url("/second")).send().await.expect_err("two dead connections");
        if !on.is_http2() {
            assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
        }
        assert!(error.request_may_have_been_processed(), "{error:?}");
        server.end();
    });
}

fn a_stale_connection_fails_what_may_not_be_repeated(on: Carrier) {
    block_on(|runtime| async move {
        let client = on.client(runtime).build();
        for body in [Body::from("body"), Body::stream(Full::new(Bytes::from_static(b"body")))] {
            let server = dies_of_the_second(on, Vec::new());
            client.get(server.url("/first")).send().await.expect("an answer").text().await.expect("text");
            let error =
                client.post(server.url("/second")).body(body).send().await.expect_err("a dead connection");
            if !on.is_http2() {
                assert!(matches!(error.kind(), ErrorKind::StaleConnection), "{error:?}");
            }
            assert!(error.request_may_have_been_processed(), "{error:?}");
            server.end();
        }
    });
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn bytes_that_nobody_asked_for_answer_nothing(on: Carrier) {
    block_on(|runtime| async move {
        let (said, hears) = smol::channel::bounded(1);
        let server = Scripted::new(
            on,
            vec![
                // With the answer, and after it.
                script(|peer: &mut Peer| {
                    peer.until(b"\r\n\r\n");
                    peer.send(answer("1") + &answer("smuggled"));
                    peer.expect_cut();
                }),
                script(move |peer: &mut Peer| {
                    peer.until(b"\r\n\r\n");
                    peer.send(answer("2"));
                    // The kernel has it in the client's queue before this returns.
                    peer.send(answer("smuggled"));
                    said.send_blocking(()).expect("the client waits");
                    peer.expect_cut();
                }),
                script(|peer: &mut Peer| {
                    peer.until(b"\r\n\r\n");
                    peer.send(answer("3"));
                    peer.expect_cut();
                }),
            ],
        );
        let client = on.client(runtime.clone()).build();
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

fn a_refused_request_is_made_again_whatever_its_method(on: Carrier) {
    block_on(|runtime| async move {
        let server = Scripted::new(
            on,
            vec![
                script(|peer: &mut Replier| {
                    assert_eq!(peer.request().line, "POST /");
                    peer.refuse();
                    peer.expect_end();
                }),
                script(|peer: &mut Replier| {
                    assert_eq!(peer.request().line, "POST /");
                    assert_eq!(peer.body(), b"body");
                    peer.reply("taken");
                    peer.expect_end();
                }),
            ],
        );
        let again = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&again);
        let client = on.client(runtime).build();
        let asking = client.post(server.url("/")).body("body").watch(move |notice: Notice<'_>| {
            if let Notice::Retry = notice {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        assert_eq!(asking.send().await.expect("an answer").text().await.expect("text"), "taken");
        assert_eq!(again.load(Ordering::SeqCst), 1);
        drop(client);
        server.end();
    });
}
