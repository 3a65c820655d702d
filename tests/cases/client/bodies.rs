//! Bodies in both directions: held back, cut off, ended early, dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyperman_fetch::error::PartialBody;
use hyperman_fetch::{Body, ErrorKind};
use hyperman_http2::Reason;
use hyperman_tests::body::Pieces;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;
use hyperman_tests::script::Scripted;
use hyperman_transport::Spawn;

use super::{one, pause};
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        a_server_that_does_not_read_holds_the_upload_back
        a_caller_who_does_not_read_holds_the_answer_back
        dropping_the_future_or_the_answer_aborts_the_exchange
        an_early_answer_ends_the_upload
        what_does_not_arrive_whole_is_a_typed_error;
    ONE:
        chunks_that_do_not_arrive_whole_are_a_typed_error;
    TWO:
        a_stream_that_is_reset_is_a_typed_error;
}

fn a_server_that_does_not_read_holds_the_upload_back(on: Carrier) {
    block_on(|runtime| async move {
        let (go, gone) = smol::channel::bounded::<()>(1);
        let server = one(on, move |peer| {
            assert_eq!(peer.request().length, None);
            let _ = gone.recv_blocking();
            let body = peer.body().len();
            peer.reply(&body.to_string());
            peer.expect_end();
        });
        let pieces = Pieces { left: 1_000, ..Pieces::default() };
        let made = Arc::clone(&pieces.made);
        let client = on.client(runtime.clone()).build();
        let upload = client.post(server.url("/")).body(Body::stream(pieces)).send();
        let (tell, told) = smol::channel::bounded(1);
        runtime.spawn(async move {
            let answer = upload.await.expect("an answer");
            let _ = tell.send(answer.text().await.expect("text")).await;
        });
        // The loop does other things meanwhile, so the upload cannot be what it waits for.
        let other = one(on, |peer| {
            peer.request();
            peer.reply("other");
            peer.expect_end();
        });
        let answer = client.get(other.url("/")).send().await.expect("an answer");
        assert_eq!(answer.text().await.expect("text"), "other");
        pause(&runtime, Duration::from_millis(100)).await;
        let before = made.load(Ordering::SeqCst);
        assert!(before < 400, "{before} of 1,000 pieces were made for a server that reads nothing");
        go.send(()).await.expect("the server waits");
        assert_eq!(told.recv().await.expect("an answer"), "65536000");
        assert_eq!(made.load(Ordering::SeqCst), 1_000);
        drop(client);
        other.end();
        server.end();
    });
}

fn a_caller_who_does_not_read_holds_the_answer_back(on: Carrier) {
    const LENGTH: usize = 64 << 20;
    block_on(|runtime| async move {
        let (blocked, seen) = smol::channel::bounded(1);
        let server = one(on, move |peer| {
            peer.request();
            peer.begin(200, LENGTH);
            peer.set_patience(Duration::from_millis(300));
            let (piece, mut sent) = ([b'x'; 65_536], 0);
            // Nothing is taken for a while: the buffers on the way are full.
            loop {
                let taken = peer.send(&piece[..piece.len().min(LENGTH - sent)]);
                sent += taken;
                assert!(sent < LENGTH, "all of the answer was read although nobody wanted it");
                if taken < piece.len() {
                    break;
                }
            }
            blocked.send_blocking(()).expect("the client waits");
            peer.set_patience(Duration::from_secs(20));
            while sent < LENGTH {
                let next = piece.len().min(LENGTH - sent);
                assert_eq!(peer.send(&piece[..next]), next, "the client reads");
                sent += next;
            }
            peer.expect_end();
        });
        let client = on.client(runtime).build();
        let mut response = client.get(server.url("/")).send().await.expect("an answer");
        seen.recv().await.expect("the server's word");
        let mut received = 0;
        while let Some(piece) = response.chunk().await.expect("a piece") {
            received += piece.len();
        }
        assert_eq!(received, LENGTH);
        drop((response, client));
        server.end();
    });
}

fn dropping_the_future_or_the_answer_aborts_the_exchange(on: Carrier) {
    block_on(|runtime| async move {
        let (tell, told) = smol::channel::bounded(1);
        let client = on.client(runtime).build();
        let server = one(on, move |peer| {
            peer.request();
            tell.send_blocking(()).expect("the client waits");
            peer.expect_given_up();
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

        let server = one(on, |peer| {
            peer.request();
            peer.begin(200, 1_000_000);
            assert_eq!(peer.send(b"begin"), 5);
            peer.expect_given_up();
        });
        let mut response = client.get(server.url("/")).send().await.expect("an answer");
        assert_eq!(response.chunk().await.expect("a piece").as_deref(), Some(&b"begin"[..]));
        drop(response);
        server.end();
    });
}

fn an_early_answer_ends_the_upload(on: Carrier) {
    block_on(|runtime| async move {
        let server = if on.is_http2() {
            one(on, |peer| {
                peer.request();
                peer.read_body(100_000);
                peer.begin(413, 7);
                assert_eq!(peer.send(b"too big"), 7);
                peer.reset_stream(Reason::NoError);
                peer.expect_cut();
            })
        } else {
            Scripted::one(on, |peer: &mut Peer| {
                peer.until(b"\r\n\r\n");
                peer.exactly(100_000);
                peer.send(
                    "HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big",
                );
                peer.finish();
                peer.rest();
            })
        };
        let endless = Body::stream(Pieces { left: usize::MAX, ..Pieces::default() });
        let client = on.client(runtime).build();
        let response = client.post(server.url("/")).body(endless).send().await.expect("an answer");
        assert_eq!(response.status(), 413);
        assert_eq!(response.text().await.expect("text"), "too big");
        drop(client);
        server.end();
    });
}

fn what_does_not_arrive_whole_is_a_typed_error(on: Carrier) {
    block_on(|runtime| async move {
        let client = on.client(runtime).build();
        for reset in [false, true] {
            let (tell, told) = smol::channel::bounded::<()>(1);
            let server = one(on, move |peer| {
                peer.request();
                peer.begin(200, 10);
                assert_eq!(peer.send(b"half"), 4);
                // The client has the beginning before the connection ends.
                let _ = told.recv_blocking();
                if reset {
                    peer.reset_on_close();
                }
            });
            let mut response = client.get(server.url("/")).send().await.expect("a head");
            assert_eq!(response.chunk().await.expect("a piece").as_deref(), Some(&b"half"[..]));
            tell.send(()).await.expect("the server waits");
            let error = response.text().await.expect_err("half a body");
            let ErrorKind::PartialBody(partial) = error.kind() else { panic!("{error:?}") };
            // A peer of HTTP/2 leaves bytes of ours unread when it closes, which makes a reset of that too.
            if reset || !on.is_http2() {
                assert_eq!(matches!(partial, PartialBody::Transport(_)), reset, "{error:?}");
            }
            assert!(error.is_partial() && error.request_may_have_been_processed());
            server.end();
        }
        let server = one(on, |peer| drop(peer.request()));
        let error = client.get(server.url("/")).send().await.expect_err("no answer");
        if !on.is_http2() {
            assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
        }
        assert!(error.request_may_have_been_processed(), "{error:?}");
        server.end();
    });
}

fn chunks_that_do_not_arrive_whole_are_a_typed_error(on: Carrier) {
    block_on(|runtime| async move {
        let client = on.client(runtime).build();
        for said in ["4\r\nhalf\r\n", "4\r\nha"] {
            let (tell, told) = smol::channel::bounded::<()>(1);
            let server = Scripted::one(on, move |peer: &mut Peer| {
                peer.until(b"\r\n\r\n");
                peer.send(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{said}"));
                let _ = told.recv_blocking();
                peer.finish();
            });
            let mut response = client.get(server.url("/")).send().await.expect("a head");
            let first = response.chunk().await.expect("a piece");
            assert!(b"half".starts_with(&first.expect("a piece")), "{said:?}");
            tell.send(()).await.expect("the server waits");
            let error = response.text().await.expect_err("half a body");
            assert!(matches!(error.kind(), ErrorKind::PartialBody(PartialBody::Closed)), "{error:?}");
            assert!(error.is_partial() && error.request_may_have_been_processed());
            server.end();
        }
    });
}

fn a_stream_that_is_reset_is_a_typed_error(on: Carrier) {
    block_on(|runtime| async move {
        let client = on.client(runtime).build();
        let server = one(on, |peer| {
            peer.request();
            peer.begin(200, 10);
            assert_eq!(peer.send(b"half"), 4);
            peer.reset_stream(Reason::InternalError);
            peer.request();
            peer.reset_stream(Reason::InternalError);
            peer.request();
            peer.reply("the connection stays");
            peer.expect_end();
        });
        let response = client.get(server.url("/")).send().await.expect("a head");
        let within = response.text().await.expect_err("half a body");
        let before = client.get(server.url("/")).send().await.expect_err("no answer");
        for error in [within, before] {
            let ErrorKind::Http2Stream(stream) = error.kind() else { panic!("{error:?}") };
            assert_eq!(stream.reason(), Reason::InternalError);
            assert!(error.request_may_have_been_processed());
        }
        let third = client.get(server.url("/")).send().await.expect("an answer");
        assert_eq!(third.text().await.expect("text"), "the connection stays");
        drop(client);
        server.end();
    });
}
