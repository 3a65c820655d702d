//! What becomes of exchanges when a server ends some or all of them, and of the connection that they share.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::{BodyExt, Full, StreamBody};
use hyperman_fetch::Body;
use hyperman_fetch::error::ErrorKind;
use hyperman_transport::{Runtime as _, Timer as _};

mod frames;

use frames::{DATA, GOAWAY, HEADERS, RST_STREAM, Raw, SETTINGS, Seen, WINDOW_UPDATE, scripted, together};

/// SETTINGS_MAX_CONCURRENT_STREAMS 1
const ONE_STREAM: &[u8] = &[0, 3, 0, 0, 0, 1];

/// REFUSED_STREAM
const REFUSED: &[u8] = &[0, 0, 0, 7];

#[test]
fn a_request_that_was_not_processed_is_made_again_on_another_connection() {
    for (kind, payload) in [(GOAWAY, &[0; 8][..]), (RST_STREAM, REFUSED)] {
        let seen = Seen::default();
        let script = move |listener: TcpListener| {
            let mut first = Raw::accept(&listener);
            let (stream, _) = first.next(HEADERS);
            first.send(kind, 0, if kind == GOAWAY { 0 } else { stream }, payload);
            let mut second = Raw::accept(&listener);
            let (stream, _) = second.next(HEADERS);
            second.head(stream, true);
            second.until_closed();
        };
        let watch = seen.watch();
        let status = scripted(script, |client, url| async move {
            client.post(&url).body("once").watch(watch).send().await.unwrap().status()
        });
        assert_eq!((status.as_u16(), seen.connected(), seen.again()), (200, 2, 1));
    }
}

#[test]
fn a_reset_is_a_typed_error_that_says_that_the_request_may_have_been_processed() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes());
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        raw.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes());
        raw.until_closed();
    };
    let (before, after) = scripted(script, |client, url| async move {
        let before = client.get(&url).send().await.unwrap_err();
        (before, client.get(&url).send().await.unwrap().bytes().await.unwrap_err())
    });
    for error in [before, after] {
        let ErrorKind::Http2Stream(reset) = error.kind() else { panic!("{error:?}") };
        assert_eq!(u32::from(reset.reason()), 2);
        assert!(error.request_may_have_been_processed());
    }
}

#[test]
fn a_reset_behind_a_complete_answer_is_ignored() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        raw.send(0, 1, stream, b"early");
        raw.send(RST_STREAM, 0, stream, &0_u32.to_be_bytes());
        raw.until_closed();
    };
    let text = scripted(script, |client, url| async move {
        // An upload that never ends.
        let body = Body::stream(StreamBody::new(Endless));
        client.post(&url).body(body).send().await.unwrap().text().await.unwrap()
    });
    assert_eq!(text, "early");
}

struct Endless;

impl futures_core::Stream for Endless {
    type Item = Result<http_body::Frame<Bytes>, Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&[b'z'; 4096])))))
    }
}

/// Some servers end a stream so; what Content-Length said is the measure.
#[test]
fn a_reset_without_an_error_ends_an_answer_that_is_whole_by_its_length() {
    for (length, whole) in [(b"5", true), (b"6", false)] {
        let script = move |listener: TcpListener| {
            let mut raw = Raw::accept(&listener);
            let (stream, _) = raw.next(HEADERS);
            // `:status: 200`, and `content-length` by its place in the static table.
            let head = [&[0x88, 0x0f, 0x0d, 0x01], &length[..]].concat();
            raw.send(HEADERS, 4, stream, &head);
            raw.send(DATA, 0, stream, b"whole");
            raw.send(RST_STREAM, 0, stream, &[0; 4]);
            raw.until_closed();
        };
        let text =
            scripted(
                script,
                |client, url| async move { client.get(&url).send().await.unwrap().text().await },
            );
        assert_eq!(text.is_ok_and(|text| text == "whole"), whole);
    }
}

#[test]
fn a_dropped_answer_cancels_its_stream_and_the_connection_stays() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        let (reset, reason) = raw.next(RST_STREAM);
        assert_eq!((reset, reason), (stream, vec![0, 0, 0, 8]));
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, true);
        raw.until_closed();
    };
    let status = scripted(script, |client, url| async move {
        drop(client.get(&url).send().await.unwrap());
        client.get(&url).send().await.unwrap().status()
    });
    assert_eq!(status.as_u16(), 200);
}

#[test]
fn the_servers_limit_of_streams_is_kept_to() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        raw.send(SETTINGS, 0, 0, ONE_STREAM);
        let (first, _) = raw.next(HEADERS);
        raw.head(first, true);
        for _ in 0..3 {
            let (stream, _) = raw.next(HEADERS);
            assert_eq!(raw.next_before_pong(HEADERS), None, "a stream too many");
            raw.head(stream, true);
        }
        raw.until_closed();
    };
    scripted(script, |client, url| async move {
        client.get(&url).send().await.unwrap();
        let asked = (0..3).map(|_| async { client.get(&url).send().await.unwrap().bytes().await.unwrap() });
        together(asked.collect()).await;
    });
}

#[test]
fn an_idle_connection_that_the_server_ended_is_not_used() {
    let (seen, (tell, told)) = (Seen::default(), mpsc::channel());
    let script = move |listener: TcpListener| {
        let mut first = Raw::accept(&listener);
        let (stream, _) = first.next(HEADERS);
        first.head(stream, true);
        first.send(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
        drop(first);
        tell.send(()).unwrap();
        let mut second = Raw::accept(&listener);
        let (stream, _) = second.next(HEADERS);
        second.head(stream, true);
        second.until_closed();
    };
    let watched = seen.clone();
    scripted(script, |client, url| async move {
        client.get(&url).watch(watched.watch()).send().await.unwrap().bytes().await.unwrap();
        told.recv().unwrap();
        // The loop has its turn, which tells the connection that something came.
        let (mut timer, later) =
            (client.runtime().timer(), client.runtime().now() + Duration::from_millis(2));
        std::future::poll_fn(|cx| timer.poll_deadline(later, cx)).await;
        client.post(&url).body("x").watch(watched.watch()).send().await.unwrap();
    });
    assert_eq!((seen.connected(), seen.again()), (2, 0));
}

#[test]
fn who_is_refused_asks_elsewhere_and_the_others_stay() {
    let seen = Seen::default();
    let script = |listener: TcpListener| {
        let mut first = Raw::accept(&listener);
        let (slow, _) = first.next(HEADERS);
        first.head(slow, false);
        let (refused, _) = first.next(HEADERS);
        first.send(RST_STREAM, 0, refused, REFUSED);
        let mut second = Raw::accept(&listener);
        let (again, _) = second.next(HEADERS);
        second.head(again, true);
        // The first connection is not given up: what it carries ends well, and it carries the next one.
        first.send(DATA, 1, slow, b"slow");
        let (next, _) = first.next(HEADERS);
        first.head(next, true);
        first.until_closed();
        second.until_closed();
    };
    let watch = seen.clone();
    scripted(script, |client, url| async move {
        let slow = client.get(&url).watch(watch.watch()).send().await.unwrap();
        client.post(&url).body("once").watch(watch.watch()).send().await.unwrap();
        assert_eq!(slow.text().await.unwrap(), "slow");
        client.get(&url).watch(watch.watch()).send().await.unwrap();
    });
    assert_eq!((seen.connected(), seen.again()), (2, 1));
}

#[test]
fn who_came_before_the_limit_was_known_waits_for_room() {
    let seen = Seen::default();
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept_silently(&listener);
        let asked: Vec<u32> = (0..4).map(|_| raw.next(HEADERS).0).collect();
        raw.send(SETTINGS, 0, 0, ONE_STREAM);
        for stream in &asked[1..] {
            raw.send(RST_STREAM, 0, *stream, REFUSED);
        }
        assert_eq!(raw.next_before_pong(HEADERS), None, "there is no room yet");
        raw.head(asked[0], true);
        for _ in &asked[1..] {
            let (stream, _) = raw.next(HEADERS);
            assert_eq!(raw.next_before_pong(HEADERS), None, "a stream too many");
            raw.head(stream, true);
        }
        raw.until_closed();
    };
    let watch = seen.clone();
    scripted(script, |client, url| async move {
        let asked = (0..4).map(|_| client.post(&url).body("").watch(watch.watch()).send());
        for answer in together(asked.collect()).await {
            assert_eq!(answer.unwrap().status(), 200);
        }
    });
    assert_eq!((seen.connected(), seen.again()), (1, 3));
}

#[test]
fn an_idle_connection_says_goodbye() {
    for in_use in [false, true] {
        let script = move |listener: TcpListener| {
            let mut raw = Raw::accept(&listener);
            let (stream, _) = raw.next(HEADERS);
            raw.head(stream, !in_use);
            let (mut reset, mut last) = (None, (0, 0, Vec::new()));
            while let Some(frame) = raw.frame() {
                if frame.0 == RST_STREAM {
                    reset = Some(frame.2.clone());
                }
                last = frame;
            }
            assert_eq!(last, (GOAWAY, 0, vec![0; 8]));
            assert_eq!(reset, in_use.then(|| vec![0, 0, 0, 8]));
        };
        scripted(script, |client, url| async move {
            let answer = client.get(&url).send().await.unwrap();
            // Whichever of them goes last.
            drop(client);
            drop(answer);
        });
    }
}

#[test]
fn a_server_that_hangs_up_behind_its_answer_was_heard() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        raw.send(DATA, 1, stream, b"all there is");
        raw.stream.shutdown(std::net::Shutdown::Write).unwrap();
        raw.until_closed();
    };
    let text = scripted(script, |client, url| async move {
        let body = Body::stream(StreamBody::new(Endless));
        client.post(&url).body(body).send().await.unwrap().text().await.unwrap()
    });
    assert_eq!(text, "all there is");
}

#[test]
fn a_goaway_with_an_error_is_what_the_exchange_failed_by() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        raw.next(HEADERS);
        raw.send(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 11]);
    };
    let error = scripted(script, |client, url| async move { client.get(&url).send().await.unwrap_err() });
    let ErrorKind::Http2(fault) = error.kind() else { panic!("{error:?}") };
    assert_eq!(u32::from(fault.reason()), 11, "ENHANCE_YOUR_CALM");
    assert!(error.request_may_have_been_processed());
}

/// More than the connection's window is dropped unread, a piece with each answer.
#[test]
fn answers_that_are_dropped_give_the_connections_window_back() {
    const PIECE: usize = 16 << 10;
    const ANSWERS: usize = 24;
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let mut window = 65_535;
        for _ in 0..ANSWERS {
            let stream = loop {
                match raw.frame().expect("a request") {
                    (HEADERS, stream, _) => break stream,
                    (WINDOW_UPDATE, 0, increment) => window += number(&increment),
                    _ => {}
                }
            };
            raw.head(stream, false);
            // Half of what the stream's window allows.
            for _ in 0..(512 << 10) / PIECE {
                while window < PIECE {
                    window += number(&raw.next_of(WINDOW_UPDATE, 0));
                }
                raw.send(DATA, 0, stream, &[b'x'; PIECE]);
                window -= PIECE;
            }
        }
        // All of it was sent: the client is still there.
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, true);
        raw.until_closed();
    };
    scripted(script, |client, url| async move {
        for _ in 0..ANSWERS {
            let mut answer = client.get(&url).send().await.unwrap();
            // The first piece is here, so the others are on their way.
            assert!(answer.chunk().await.unwrap().is_some());
        }
        client.get(&url).send().await.unwrap();
    });
}

fn number(payload: &[u8]) -> usize {
    u32::from_be_bytes(payload.try_into().unwrap()) as usize
}

/// RFC 9110 §7.5, RFC 9113 §8.1: who answers early and does not reset the stream gets the rest of the request.
#[test]
fn an_upload_goes_on_behind_an_early_success() {
    const LENGTH: usize = 1 << 20;
    for streamed in [false, true] {
        let script = |listener: TcpListener| {
            let mut raw = Raw::accept(&listener);
            for _ in 0..2 {
                let (stream, _) = raw.next(HEADERS);
                raw.head(stream, true);
                let mut came = raw.next_of(DATA, stream).len();
                raw.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 20).to_be_bytes());
                raw.send(WINDOW_UPDATE, 0, stream, &(1_u32 << 20).to_be_bytes());
                // The second time it is enough after a while.
                while stream == 1 && came < LENGTH {
                    came += raw.next_of(DATA, stream).len();
                }
                if stream != 1 {
                    raw.send(RST_STREAM, 0, stream, &[0; 4]);
                }
            }
            let (stream, _) = raw.next(HEADERS);
            raw.head(stream, true);
            raw.until_closed();
        };
        scripted(script, |client, url| async move {
            for length in [LENGTH, 64 << 20] {
                let bytes = Bytes::from(vec![b'x'; length]);
                let body = if streamed { Body::stream(Full::new(bytes)) } else { bytes.into() };
                let answer = client.post(&url).body(body).send().await.unwrap();
                assert_eq!(answer.bytes().await.unwrap(), "");
            }
            assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
        });
    }
}

/// What a window holds back of a request that was refused by its answer is not sent later.
#[test]
fn an_upload_that_was_refused_is_cancelled() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        // `:status: 404`, END_STREAM
        raw.send(HEADERS, 5, stream, &[0x8d]);
        assert_eq!(raw.next(RST_STREAM), (stream, vec![0, 0, 0, 8]));
        raw.until_closed();
    };
    scripted(script, |client, url| async move {
        let answer = client.post(&url).body(vec![b'x'; 1 << 20]).send().await.unwrap();
        assert_eq!(answer.status(), 404);
        answer.bytes().await.unwrap();
    });
}

/// Nobody asks for anything, and yet the server need not wait: its GOAWAY is answered by the end of the connection.
#[test]
fn an_idle_connection_that_is_looked_after_hears_a_goaway() {
    let (tell, told) = mpsc::channel::<()>();
    let script = move |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, true);
        told.recv().unwrap();
        // A PING is answered meanwhile.
        raw.send(frames::PING, 0, 0, &[7; 8]);
        assert_eq!(raw.next(frames::PING).1, [7; 8]);
        raw.send(GOAWAY, 0, 0, &[[0, 0, 0, 1], [0; 4]].concat());
        raw.until_closed();
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let script = std::thread::spawn(move || script(listener));
    hyperman_loop::block_on(|handle| async move {
        let client = frames::client(handle);
        let mut attended = Box::pin(client.attend());
        assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
        tell.send(()).unwrap();
        let mut timer = client.runtime().timer();
        // Nothing but this is polled until the script has seen the end.
        while !script.is_finished() {
            let soon = client.runtime().now() + Duration::from_millis(20);
            std::future::poll_fn(|cx| {
                assert!(attended.as_mut().poll(cx).is_pending());
                timer.poll_deadline(soon, cx)
            })
            .await;
        }
        script.join().unwrap();
        drop(client);
        attended.await;
    })
    .unwrap();
}

/// However the rest of a body is lost, what came is a part, and before the head there is none.
#[test]
fn what_cuts_an_answer_short_leaves_a_part_of_it() {
    type Cut = fn(&mut Raw, u32);
    let cuts: [(&str, Cut); 6] = [
        ("a reset", |raw, stream| raw.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes())),
        ("a refusal", |raw, stream| raw.send(RST_STREAM, 0, stream, &7_u32.to_be_bytes())),
        ("a fault of the stream", |raw, stream| raw.send(HEADERS, 4, stream, &[0x90])),
        ("a fault of the connection", |raw, _| raw.send(frames::PING, 0, 0, &[0; 7])),
        ("the end", |raw, _| raw.stream.shutdown(std::net::Shutdown::Write).unwrap()),
        ("nothing more", |_, _| {}),
    ];
    for (name, cut) in cuts {
        for begun in [true, false] {
            let script = move |listener: TcpListener| {
                // What is refused is asked for again, three times.
                for _ in 0..if name == "a refusal" && !begun { 4 } else { 1 } {
                    let mut raw = Raw::accept(&listener);
                    let (stream, _) = raw.next(HEADERS);
                    if begun {
                        raw.head(stream, false);
                        raw.send(DATA, 0, stream, b"part");
                    }
                    cut(&mut raw, stream);
                    std::thread::spawn(move || raw.until_closed());
                }
            };
            let error = scripted(script, |client, url| async move {
                let patience = Duration::from_millis(if name == "nothing more" { 60 } else { 20_000 });
                let outcome = async { client.get(&url).timeout(patience).send().await?.bytes().await };
                outcome.await.unwrap_err()
            });
            assert_eq!(error.is_partial(), begun, "{name}: {error:?}");
            let processed = begun || name != "a refusal";
            assert_eq!(error.request_may_have_been_processed(), processed, "{name}: {error:?}");
        }
    }
}

/// Trailers take nothing of a window (RFC 9113 §6.9): those of an upload go out when its last octet has used one up.
#[test]
fn the_end_of_an_upload_waits_for_no_window() {
    let content = Bytes::from(vec![b'x'; 65_535]);
    let trailers = HeaderMap::from_iter([(HeaderName::from_static("sum"), HeaderValue::from_static("42"))]);
    let body = Full::new(content.clone()).with_trailers(std::future::ready(Some(Ok(trailers))));
    let script = move |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        let mut came = 0;
        while came < content.len() {
            came += raw.next_of(DATA, stream).len();
        }
        raw.next_of(HEADERS, stream);
        raw.head(stream, true);
        raw.until_closed();
    };
    let status = scripted(script, |client, url| async move {
        client.post(url).body(Body::stream(body)).send().await.map(|answer| answer.status().as_u16())
    });
    assert_eq!(status.unwrap(), 200);
}
