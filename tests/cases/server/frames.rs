//! Frames that no machine of ours would send, as bytes on a socket: what each is answered with, and whether the
//! connection goes on.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame as Piece;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::frames::kind::*;
use hyperman_tests::frames::*;
use hyperman_tests::peer::Peer;

use super::{echo, text};

hyperman_tests::cases! {
    TWO:
        frames_out_of_order_end_the_connection
        faults_of_one_stream_leave_the_others_alone
        requests_that_look_odd_are_served_or_refused
        bodies_that_nobody_reads_keep_no_other_from_being_sent
        an_end_waits_for_no_window
        a_handler_that_wakes_itself_lets_others_go_first
        an_upload_behind_an_early_answer_is_thrown_away
        a_peer_that_has_ended_its_direction_gets_its_answer_where_that_is_allowed;
}

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;

/// The client's PING, to hear whether the connection goes on.
const ASKED: &[u8; 8] = b"answer?!";

/// By its path: answers when it has the body, at once, or never.
async fn by_path(request: Request<Body>) -> Result<Response<super::Text>, Infallible> {
    match request.uri().path() {
        "/never" => std::future::pending().await,
        "/at-once" => text("at once"),
        _ => echo(request).await,
    }
}

fn open(stream: u32) -> Vec<u8> {
    headers(stream, false, request("POST", "/never", &[]))
}

fn asked(stream: u32) -> Vec<u8> {
    headers(stream, true, request("GET", "/never", &[]))
}

/// Plays a script, in one write and byte by byte, and gives the frames that concern streams and errors, up to the answer
/// of a PING or the last one.
fn play(on: Carrier, address: std::net::SocketAddr, script: &[u8], judge: impl Fn(&[Frame], &mut Peer)) {
    for stride in [usize::MAX, 1] {
        if stride == 1 && script.len() > 300 {
            continue;
        }
        let mut peer = Peer::connect(on, address);
        peer.send(opening(&[]));
        peer.set_stride(stride);
        peer.try_send([script, &frame(PING, 0, 0, ASKED)].concat());
        let over = |frame: &Frame| {
            frame.kind == GOAWAY || (frame.kind == PING && frame.flags & ACK != 0 && frame.payload == ASKED)
        };
        let mut frames = peer.frames_until(over);
        frames.retain(|frame| !matches!(frame.kind, SETTINGS | WINDOW_UPDATE));
        judge(&frames, &mut peer);
    }
}

/// RFC 9113 §3.4, §4, §5.1, §6: the code of the GOAWAY, and the last stream that it names.
fn frames_out_of_order_end_the_connection(on: Carrier) {
    let cases: Vec<(&str, Vec<u8>, u32, u32)> = vec![
        ("the preface again", opening(&[]), FRAME_SIZE_ERROR, 0),
        ("SETTINGS of five octets", frame(SETTINGS, 0, 0, [0; 5]), FRAME_SIZE_ERROR, 0),
        ("SETTINGS on a stream", frame(SETTINGS, 0, 1, []), PROTOCOL_ERROR, 0),
        ("an acknowledgement with content", frame(SETTINGS, ACK, 0, [0; 6]), FRAME_SIZE_ERROR, 0),
        ("ENABLE_PUSH of 2", settings(&[(2, 2)]), PROTOCOL_ERROR, 0),
        ("INITIAL_WINDOW_SIZE of 2^31", settings(&[(4, 1 << 31)]), FLOW_CONTROL_ERROR, 0),
        ("MAX_FRAME_SIZE of 16,383", settings(&[(5, 16_383)]), PROTOCOL_ERROR, 0),
        ("PING of seven octets", frame(PING, 0, 0, [0; 7]), FRAME_SIZE_ERROR, 0),
        ("PING on a stream", frame(PING, 0, 1, [0; 8]), PROTOCOL_ERROR, 0),
        ("GOAWAY of seven octets", frame(GOAWAY, 0, 0, [0; 7]), FRAME_SIZE_ERROR, 0),
        (
            "RST_STREAM of three octets",
            [open(1), frame(RST_STREAM, 0, 1, [0; 3])].concat(),
            FRAME_SIZE_ERROR,
            1,
        ),
        ("RST_STREAM on an idle stream", rst_stream(1, 8), PROTOCOL_ERROR, 0),
        ("RST_STREAM on an even stream", rst_stream(2, 8), PROTOCOL_ERROR, 0),
        ("WINDOW_UPDATE on an idle stream", window_update(1, 1), PROTOCOL_ERROR, 0),
        ("WINDOW_UPDATE of zero", window_update(0, 0), PROTOCOL_ERROR, 0),
        ("WINDOW_UPDATE of three octets", frame(WINDOW_UPDATE, 0, 0, [0; 3]), FRAME_SIZE_ERROR, 0),
        ("a window above its limit", window_update(0, (1 << 31) - 1), FLOW_CONTROL_ERROR, 0),
        (
            "a stream's window above it by SETTINGS",
            { [open(1), window_update(1, (1 << 31) - 65_536), settings(&[(4, 65_537)])].concat() },
            FLOW_CONTROL_ERROR,
            1,
        ),
        (
            "PUSH_PROMISE",
            [open(1), frame(PUSH_PROMISE, END_HEADERS, 1, [0, 0, 0, 2])].concat(),
            PROTOCOL_ERROR,
            1,
        ),
        ("CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, []), PROTOCOL_ERROR, 0),
        (
            "an unknown frame within a header block",
            { [frame(HEADERS, END_STREAM, 1, []), frame(0xbb, 0, 1, [])].concat() },
            PROTOCOL_ERROR,
            0,
        ),
        (
            "CONTINUATION of another stream",
            { [frame(HEADERS, END_STREAM, 1, []), frame(CONTINUATION, END_HEADERS, 3, [])].concat() },
            PROTOCOL_ERROR,
            0,
        ),
        ("HEADERS on stream 0", headers(0, true, request("GET", "/", &[])), PROTOCOL_ERROR, 0),
        ("HEADERS on an even stream", headers(2, true, request("GET", "/", &[])), PROTOCOL_ERROR, 0),
        ("a stream below the last one", [asked(5), asked(3)].concat(), PROTOCOL_ERROR, 5),
        ("DATA on an idle stream", data(1, true, "x"), PROTOCOL_ERROR, 0),
        ("DATA on a stream that was passed over", [asked(5), data(3, true, "x")].concat(), STREAM_CLOSED, 5),
        ("padding as long as its frame", [open(1), frame(DATA, PADDED, 1, [1])].concat(), PROTOCOL_ERROR, 1),
        (
            "HEADERS too short for their priority",
            frame(HEADERS, WITH_PRIORITY | END_HEADERS, 1, [0; 4]),
            FRAME_SIZE_ERROR,
            0,
        ),
        ("a frame of 16,385 octets", frame(0xbb, 0, 0, [0; 16_385]), FRAME_SIZE_ERROR, 0),
        ("an index of zero", headers(1, true, [0x80]), COMPRESSION_ERROR, 1),
        ("an index behind the tables", headers(1, true, [0xbe]), COMPRESSION_ERROR, 1),
        ("a table size update above the limit", headers(1, true, [0x3f, 0xe2, 0x1f]), COMPRESSION_ERROR, 1),
        ("a table size update behind a field", headers(1, true, [0x82, 0x20]), COMPRESSION_ERROR, 1),
        (
            "the end-of-string symbol",
            headers(1, true, [0, 1, b'a', 0x84, 255, 255, 255, 255]),
            COMPRESSION_ERROR,
            1,
        ),
        (
            "a bad block for a stream that was reset",
            { [open(1), rst_stream(1, 8), headers(1, true, [0x80])].concat() },
            COMPRESSION_ERROR,
            1,
        ),
    ];
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        for (name, script, code, last) in &cases {
            play(on, address, script, |frames, peer| {
                let told = frames.last().expect("a frame");
                assert_eq!((told.kind, told.number(4), told.number(0)), (GOAWAY, *code, *last), "{name}");
                peer.expect_end();
            });
        }
    });
}

/// RFC 9113 §5.4.2: the stream is reset, the connection answers a PING, and a stream that was open stays so.
fn faults_of_one_stream_leave_the_others_alone(on: Carrier) {
    let bad = |fields: &[(&str, &str)]| headers(3, true, request("GET", "/", fields));
    let post = |length| headers(3, false, request("POST", "/", &[("content-length", length)]));
    let cases: Vec<(&str, Vec<u8>, u32)> = vec![
        ("DATA on half-closed", [asked(3), data(3, false, "x")].concat(), STREAM_CLOSED),
        ("HEADERS on half-closed", [asked(3), asked(3)].concat(), STREAM_CLOSED),
        ("DATA after a reset", [open(3), rst_stream(3, 8), data(3, true, "x")].concat(), STREAM_CLOSED),
        ("WINDOW_UPDATE of zero", [open(3), window_update(3, 0)].concat(), PROTOCOL_ERROR),
        ("a window above its limit", [open(3), window_update(3, (1 << 31) - 1)].concat(), FLOW_CONTROL_ERROR),
        ("PRIORITY of four octets", [open(3), frame(PRIORITY, 0, 3, [0; 4])].concat(), FRAME_SIZE_ERROR),
        ("a header block without a field", headers(3, true, []), PROTOCOL_ERROR),
        ("an upper-case name", bad(&[("Name", "value")]), PROTOCOL_ERROR),
        ("a name with a quotation mark", bad(&[("na\"me", "value")]), PROTOCOL_ERROR),
        ("a value with a line end", bad(&[("name", "a\r\nb: c")]), PROTOCOL_ERROR),
        ("a value that begins with a space", bad(&[("name", " value")]), PROTOCOL_ERROR),
        ("a field of a connection", bad(&[("connection", "keep-alive")]), PROTOCOL_ERROR),
        ("an unknown pseudo-field", bad(&[(":name", "value")]), PROTOCOL_ERROR),
        ("a path twice", bad(&[(":path", "/")]), PROTOCOL_ERROR),
        (
            "no path",
            headers(3, true, block(&[(":method", "GET"), (":scheme", "http"), ("host", "a")])),
            PROTOCOL_ERROR,
        ),
        ("an empty path", headers(3, true, request("GET", "", &[])), PROTOCOL_ERROR),
        ("TE for another coding", bad(&[("te", "gzip")]), PROTOCOL_ERROR),
        ("two lengths", bad(&[("content-length", "0"), ("content-length", "1")]), PROTOCOL_ERROR),
        ("a length and an end", bad(&[("content-length", "1")]), PROTOCOL_ERROR),
        ("less than the length", [post("5"), data(3, true, "abc")].concat(), PROTOCOL_ERROR),
        ("more than the length", [post("2"), data(3, false, "abc")].concat(), PROTOCOL_ERROR),
        (
            "trailers that do not end",
            [post("0"), headers(3, false, block(&[("a", "b")]))].concat(),
            PROTOCOL_ERROR,
        ),
        (
            "a pseudo-field in trailers",
            [post("0"), headers(3, true, block(&[(":path", "/")]))].concat(),
            PROTOCOL_ERROR,
        ),
        (
            "an extended CONNECT",
            headers(3, true, request("CONNECT", "/", &[(":protocol", "websocket")])),
            PROTOCOL_ERROR,
        ),
    ];
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        for (name, script, code) in &cases {
            let other = headers(1, false, request("POST", "/", &[]));
            play(on, address, &[other, script.clone()].concat(), |frames, peer| {
                let resets: Vec<_> = frames.iter().filter(|frame| frame.kind == RST_STREAM).collect();
                assert!(
                    matches!(resets[..], [reset] if reset.number(0) == *code && reset.stream == 3),
                    "{name}: {frames:?}"
                );
                assert_eq!(frames.last().map(|frame| frame.kind), Some(PING), "{name}");
                peer.set_stride(usize::MAX);
                peer.send(data(1, true, "still here"));
                let answer = peer.frames_until(Frame::ends);
                assert_eq!(answer.first().map(|head| (head.stream, head.status())), Some((1, 200)), "{name}");
            });
        }
    });
}

/// The status of the answer, or the code of the reset.
fn requests_that_look_odd_are_served_or_refused(on: Carrier) {
    let get = |fields: &[(&str, &str)]| headers(1, true, request("GET", "/", fields));
    let long = format!("/{}", "a".repeat(8 * 1024));
    let host = |host| block(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", host)]);
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("Host in place of :authority", headers(1, true, host("localhost")), 200),
        ("both, with another case and the port of the scheme", get(&[("host", "LOCALHOST:80")]), 200),
        ("both, and they differ", get(&[("host", "other")]), 400),
        ("TE", get(&[("te", "Trailers")]), 200),
        ("an expectation that is unknown", get(&[("expect", "wonders")]), 417),
        ("a target above 8 KiB", headers(1, true, request("GET", &long, &[])), 414),
        ("the largest target", headers(1, true, request("GET", &long[..8_189], &[])), 200),
        (
            "priority, padding and a block in three frames",
            {
                let block = request("GET", "/", &[]);
                let (first, rest) = block.split_at(9);
                let padded = [&[2, 0, 0, 0, 0, 15][..], first, &[0, 0]].concat();
                [
                    frame(HEADERS, END_STREAM | PADDED | WITH_PRIORITY, 1, padded),
                    frame(CONTINUATION, 0, 1, []),
                    frame(CONTINUATION, END_HEADERS, 1, rest),
                ]
                .concat()
            },
            200,
        ),
        (
            "unknown frames and flags around it",
            { [frame(0xbb, 0xff, 7, "what"), get(&[]), frame(0x0a, 1, 0, "so")].concat() },
            200,
        ),
        (
            "reserved bits",
            frame(HEADERS, END_STREAM | END_HEADERS, 1 << 31 | 1, request("GET", "/", &[])),
            200,
        ),
        (
            "WINDOW_UPDATE and RST_STREAM where another stream passed over",
            {
                let later = headers(5, true, request("GET", "/", &[]));
                [later, window_update(3, 1), rst_stream(3, 8)].concat()
            },
            200,
        ),
    ];
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        for (name, script, status) in &cases {
            play(on, address, script, |frames, peer| {
                let head = frames.iter().find(|frame| frame.kind == HEADERS).cloned();
                let head = head
                    .unwrap_or_else(|| peer.frames_until(|frame| frame.kind == HEADERS).pop().expect("one"));
                assert_eq!(head.status(), *status, "{name}");
                assert!(frames.iter().all(|frame| frame.kind != GOAWAY), "{name}");
            });
        }
    });
}

/// RFC 9113 §5.2.2: ten uploads fill more than the connection's first window, and an eleventh goes on.
fn bodies_that_nobody_reads_keep_no_other_from_being_sent(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(opening(&[]));
        let mut window: i64 = 65_535;
        let mut send = |peer: &mut Peer, stream: u32, mut octets: usize| {
            while octets > 0 {
                let part = octets.min(16_384);
                while window < part as i64 {
                    let update =
                        peer.frames_until(|frame| frame.kind == WINDOW_UPDATE && frame.stream == 0).pop();
                    window += i64::from(update.expect("one").number(0));
                }
                peer.send(data(stream, false, vec![0; part]));
                window -= part as i64;
                octets -= part;
            }
        };
        for stream in (1..21).step_by(2) {
            peer.send(open(stream));
            send(&mut peer, stream, 65_535);
        }
        peer.send(headers(21, false, request("POST", "/", &[])));
        send(&mut peer, 21, 60_000);
        peer.send(data(21, true, []));
        let frames = peer.frames_until(Frame::ends);
        let echoed: usize =
            frames.iter().filter(|frame| frame.kind == DATA).map(|frame| frame.payload.len()).sum();
        assert_eq!(echoed, 60_000);
    });
}

/// A body that does not say how long it is: these bytes, and then its end.
struct Unsized(Option<Bytes>);

impl http_body::Body for Unsized {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Piece::data(bytes))))
    }
}

/// RFC 9113 §6.9: only octets of DATA take a window.
fn an_end_waits_for_no_window(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            let bytes = (request.uri().path() == "/three").then_some(Bytes::from_static(b"abc"));
            Ok::<_, Infallible>(Response::new(Unsized(bytes)))
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        for (window, path) in [(0, "/none"), (3, "/three")] {
            let mut peer = Peer::connect(on, address);
            peer.send(opening(&[(4, window)]));
            peer.send(headers(1, true, request("GET", path, &[])));
            let last = peer.frames_until(Frame::ends).pop().expect("the last one");
            assert_eq!((last.kind, last.payload.len()), (DATA, 0), "{path}");
        }
    });
}

/// What lets others go first by waking itself, as tokio's own resources do once a task has used up its share, must not
/// keep its connection or its loop busy for ever.
fn a_handler_that_wakes_itself_lets_others_go_first(on: Carrier) {
    let service = |_| {
        service_fn(|request: Request<Body>| async move {
            let forever = request.uri().path() == "/forever";
            std::future::poll_fn(|cx| {
                if !forever {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            text("done")
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(opening(&[]));
        peer.send(headers(1, true, request("GET", "/forever", &[])));
        for stream in (3..23).step_by(2) {
            peer.send(headers(stream, true, request("GET", "/", &[])));
            let last = peer.frames_until(Frame::ends).pop().expect("the last one");
            assert_eq!((last.stream, &last.payload[..]), (stream, &b"done"[..]));
        }
        let mut other = Peer::connect(on, address);
        other.send(opening(&[]));
        other.send(headers(1, true, request("GET", "/", &[])));
        other.frames_until(Frame::ends);
    });
}

/// RFC 9113 §8.1: a client that reads only when it has sent all gets the answer, and no reset takes it away.
fn an_upload_behind_an_early_answer_is_thrown_away(on: Carrier) {
    with_server!(on, |_| service_fn(by_path), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(opening(&[]));
        peer.send(headers(1, false, request("POST", "/at-once", &[])));
        let (mut of_stream, mut of_connection) = (65_535_i64, 65_535_i64);
        let mut seen = Vec::new();
        for _ in 0..100 {
            while of_stream.min(of_connection) < 10_000 {
                let frame = peer.frame();
                match (frame.kind, frame.stream) {
                    (WINDOW_UPDATE, 0) => of_connection += i64::from(frame.number(0)),
                    (WINDOW_UPDATE, _) => of_stream += i64::from(frame.number(0)),
                    _ => seen.push(frame),
                }
            }
            peer.send(data(1, false, [0; 10_000]));
            of_stream -= 10_000;
            of_connection -= 10_000;
        }
        peer.send([data(1, true, []), frame(PING, 0, 0, ASKED)].concat());
        seen.extend(peer.frames_until(|frame| frame.kind == PING));
        seen.retain(|frame| matches!(frame.kind, HEADERS | DATA | RST_STREAM | GOAWAY));
        let kinds: Vec<u8> = seen.iter().map(|frame| frame.kind).collect();
        assert_eq!((kinds, seen[0].status()), (vec![HEADERS, DATA], StatusCode::OK.as_u16()));
    });
}

fn a_peer_that_has_ended_its_direction_gets_its_answer_where_that_is_allowed(on: Carrier) {
    let service = |_| {
        service_fn(|_: Request<Body>| async {
            // By now the end has been seen.
            let mut turns = 100;
            std::future::poll_fn(|cx| {
                turns -= 1;
                cx.waker().wake_by_ref();
                if turns == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            text("late")
        })
    };
    let config = Config { half_close: true, ..Config::default() };
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send([opening(&[]), headers(1, true, request("GET", "/", &[]))].concat());
        peer.finish();
        let last = peer.frames_until(Frame::ends).pop().expect("the last one");
        assert_eq!(last.payload, b"late");
        peer.expect_end();
    });
}
