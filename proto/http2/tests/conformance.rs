//! What the public conformance suites ask of a server, as tables: a script of writes, and the answer that is due.
//!
//! Each case runs with an application that answers at once and with one that reads the body first, and with its writes
//! arriving one by one and all together: an answer that is quicker than the client's next frame must not change what
//! that frame means.

mod support;

use hyperman_http2::{Config, PREFACE, Reason};
use support::raw::{Mode, RawServer};
use support::*;

/// What is due.
#[derive(Debug, Clone, Copy)]
enum Due {
    /// GOAWAY with one of these codes before anything else that tells of an error.
    Connection(&'static [Reason]),
    /// RST_STREAM or GOAWAY with one of these codes, likewise.
    Stream(&'static [Reason]),
    /// A response on stream 1, and no error.
    Response,
    /// No error, and the connection answers a PING.
    Alive,
}
use Due::{Alive, Response};

const PROTOCOL: &[Reason] = &[Reason::ProtocolError];
const FLOW: &[Reason] = &[Reason::FlowControlError];
const SIZE: &[Reason] = &[Reason::FrameSizeError];
const CLOSED: &[Reason] = &[Reason::StreamClosed];
const COMPRESSION: &[Reason] = &[Reason::CompressionError];

fn connection(codes: &'static [Reason]) -> Due {
    Due::Connection(codes)
}

fn stream(codes: &'static [Reason]) -> Due {
    Due::Stream(codes)
}

type Case = (&'static str, Vec<Vec<u8>>, Due);

fn run(cases: Vec<Case>) {
    for (name, writes, due) in &cases {
        for mode in [Mode::AtOnce, Mode::ReadsBody] {
            for together in [false, true] {
                let mut raw = RawServer::new(mode);
                if together {
                    raw.send(&writes.concat());
                } else {
                    for write in writes {
                        raw.send(write);
                    }
                }
                judge(&format!("{name}, {mode:?}, together: {together}"), &mut raw, *due);
            }
        }
    }
}

fn judge(name: &str, raw: &mut RawServer, due: Due) {
    let error = raw.frames.iter().find(|frame| frame.kind == RST_STREAM || frame.kind == GOAWAY).cloned();
    match due {
        Due::Connection(codes) => {
            let error = error.unwrap_or_else(|| panic!("{name}: no error, {:?}", raw.frames));
            assert_eq!(error.kind, GOAWAY, "{name}");
            assert!(codes.contains(&error.code().into()), "{name}: {}", Reason::from(error.code()));
            assert!(raw.error.is_some() && raw.server.is_closed().is_some(), "{name}: still open");
        }
        Due::Stream(codes) => {
            let error = error.unwrap_or_else(|| panic!("{name}: no error, {:?}", raw.frames));
            assert!(codes.contains(&error.code().into()), "{name}: {}", Reason::from(error.code()));
        }
        Response => {
            assert_eq!(error, None, "{name}");
            assert!(
                raw.frames.iter().any(|frame| frame.kind == HEADERS && frame.stream == 1),
                "{name}: no response"
            );
            assert!(raw.of_kind(DATA).iter().any(|frame| frame.flags & END_STREAM != 0), "{name}: not ended");
        }
        Alive => {
            assert_eq!(error, None, "{name}");
            raw.send(&frame(PING, 0, 0, b"liveness"));
            let pong = raw.of_kind(PING);
            assert!(
                pong.iter().any(|frame| frame.flags == ACK && frame.payload == b"liveness"),
                "{name}: no pong"
            );
        }
    }
}

fn with(fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [request("POST"), fields.to_vec()].concat()
}

fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    request("POST").into_iter().filter(|(field, _)| *field != name).collect()
}

fn replaced(name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    request("POST")
        .into_iter()
        .map(|(field, before)| (field, if field == name { value } else { before }))
        .collect()
}

fn priority(stream: u32, dependency: u32, weight: u8) -> Vec<u8> {
    frame(PRIORITY, 0, stream, &[&dependency.to_be_bytes()[..], &[weight]].concat())
}

fn ended() -> Vec<u8> {
    headers(1, true, &get())
}

fn opened() -> Vec<u8> {
    headers(1, false, &request("POST"))
}

#[test]
fn what_every_server_takes() {
    let padded_data = frame(DATA, PADDED | END_STREAM, 1, &[&[3][..], b"test", &[0; 3]].concat());
    let padded_headers =
        frame(HEADERS, PADDED | END_HEADERS | END_STREAM, 1, &[&[2], &block(&get())[..], &[0; 2]].concat());
    let prioritised = frame(
        HEADERS,
        WITH_PRIORITY | END_HEADERS | END_STREAM,
        1,
        &[&[0x80, 0, 0, 3, 9], &block(&get())[..]].concat(),
    );
    let (first, rest) = (&block(&get())[..10], &block(&get())[10..]);
    let split = frame(HEADERS, END_STREAM, 1, first);
    run(vec![
        ("a request", vec![ended()], Response),
        ("PRIORITY on an idle stream", vec![priority(1, 3, 9), ended()], Response),
        ("WINDOW_UPDATE on half-closed (remote)", vec![ended(), window_update(1, 1)], Response),
        ("PRIORITY on half-closed (remote)", vec![ended(), priority(1, 3, 9)], Response),
        ("RST_STREAM on half-closed (remote)", vec![ended(), rst_stream(1, 8)], Alive),
        ("PRIORITY on closed", vec![opened(), rst_stream(1, 8), priority(1, 3, 0)], Alive),
        ("DATA", vec![opened(), data(1, true, b"test")], Response),
        ("several DATA", vec![opened(), data(1, false, b"te"), data(1, true, b"st")], Response),
        ("padded DATA", vec![opened(), padded_data], Response),
        ("padded HEADERS", vec![padded_headers], Response),
        ("HEADERS with priority", vec![prioritised], Response),
        ("PRIORITY of weight 1", vec![priority(1, 0, 0), ended()], Response),
        ("PRIORITY of weight 256", vec![priority(1, 0, 255), ended()], Response),
        ("exclusive PRIORITY", vec![priority(1, 0x8000_0003, 4), ended()], Response),
        ("PRIORITY on an idle stream, then another", vec![priority(5, 3, 9), ended()], Response),
        ("RST_STREAM", vec![opened(), rst_stream(1, 8)], Alive),
        ("SETTINGS", vec![settings(&[(3, 100)])], Alive),
        ("PING", vec![frame(PING, 0, 0, &[0; 8])], Alive),
        ("GOAWAY", vec![goaway(0, 0), ended()], Response),
        ("WINDOW_UPDATE on the connection", vec![window_update(0, 1), ended()], Response),
        ("WINDOW_UPDATE on a stream", vec![opened(), window_update(1, 1), data(1, true, b"a")], Response),
        ("CONTINUATION", vec![split.clone(), frame(CONTINUATION, END_HEADERS, 1, rest)], Response),
        (
            "several CONTINUATION",
            vec![
                split,
                frame(CONTINUATION, 0, 1, &rest[..5]),
                frame(CONTINUATION, END_HEADERS, 1, &rest[5..]),
            ],
            Response,
        ),
        (
            "POST with trailers",
            vec![opened(), data(1, false, b"a"), headers(1, true, &[("x-sum", "1")])],
            Response,
        ),
        ("te: trailers", vec![headers(1, true, &with(&[("te", "trailers")]))], Response),
    ]);
}

/// RFC 9113 §3.4, without the handshake that the other cases begin with.
#[test]
fn the_preface() {
    for bytes in
        [&b"INVALID CONNECTION PREFACE\r\n\r\n"[..], b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSX"]
    {
        let mut raw = RawServer::bare(Mode::AtOnce, Config::server());
        raw.send(bytes);
        assert_eq!(raw.of_kind(GOAWAY)[0].code(), 1);
        assert!(raw.server.is_closed().is_some());
    }
    let mut raw = RawServer::bare(Mode::AtOnce, Config::server());
    raw.send(&[&PREFACE[..], &frame(PING, 0, 0, &[0; 8])].concat());
    assert_eq!(raw.of_kind(GOAWAY)[0].code(), 1, "something before SETTINGS");

    // Our own SETTINGS go first, and the client's are acknowledged.
    let mut raw = RawServer::bare(Mode::AtOnce, Config::server());
    raw.send(&[&PREFACE[..], &settings(&[])].concat());
    assert_eq!((raw.frames[0].kind, raw.frames[0].flags), (SETTINGS, 0));
    assert_eq!(raw.of_kind(SETTINGS)[1].flags, ACK);
}

/// RFC 9113 §4.
#[test]
fn frames() {
    let large = vec![b'x'; 16_385];
    run(vec![
        ("4.1 an unknown type", vec![frame(0x16, 0, 0, &[0; 8])], Alive),
        ("4.1 undefined flags", vec![frame(PING, 0x16, 0, &[0; 8])], Alive),
        ("4.1 the reserved bit", vec![frame(PING, 0, 0x8000_0000, &[0; 8])], Alive),
        ("4.2 DATA of the largest size", vec![opened(), data(1, true, &large[1..])], Response),
        ("4.2 a large DATA", vec![opened(), data(1, true, &large)], stream(SIZE)),
        ("4.2 a large HEADERS", vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &large)], connection(SIZE)),
        (
            "4.3 a bad header block",
            vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x40])],
            connection(COMPRESSION),
        ),
        (
            "4.3 PRIORITY within a header block",
            vec![frame(HEADERS, END_STREAM, 1, &block(&get())), priority(1, 0, 9)],
            connection(PROTOCOL),
        ),
        (
            "4.3 HEADERS of another stream within a header block",
            vec![frame(HEADERS, END_STREAM, 1, &block(&get())), headers(3, true, &get())],
            connection(PROTOCOL),
        ),
        (
            "5.5 an unknown frame within a header block",
            vec![frame(HEADERS, END_STREAM, 1, &block(&get())), frame(0xff, 0, 1, &[0; 8])],
            connection(PROTOCOL),
        ),
        ("5.5 an unknown frame", vec![frame(0xff, 0, 0, &[0; 8]), ended()], Response),
    ]);
}

/// RFC 9113 §5.1.
#[test]
fn stream_states() {
    let continuation = || frame(CONTINUATION, END_HEADERS, 1, &block(&[("a", "b")]));
    let late = [Reason::StreamClosed, Reason::ProtocolError];
    let late: &'static [Reason] = Box::leak(Box::new(late));
    run(vec![
        ("idle: DATA", vec![data(1, true, b"test")], connection(PROTOCOL)),
        ("idle: RST_STREAM", vec![rst_stream(1, 8)], connection(PROTOCOL)),
        ("idle: WINDOW_UPDATE", vec![window_update(1, 100)], connection(PROTOCOL)),
        ("idle: CONTINUATION", vec![continuation()], connection(PROTOCOL)),
        ("half-closed (remote): DATA", vec![ended(), data(1, true, b"test")], stream(CLOSED)),
        ("half-closed (remote): HEADERS", vec![ended(), ended()], stream(CLOSED)),
        ("half-closed (remote): CONTINUATION", vec![ended(), continuation()], connection(PROTOCOL)),
        ("closed by RST_STREAM: DATA", vec![opened(), rst_stream(1, 8), data(1, true, b"a")], stream(CLOSED)),
        ("closed by RST_STREAM: HEADERS", vec![opened(), rst_stream(1, 8), ended()], stream(CLOSED)),
        (
            "closed by RST_STREAM: CONTINUATION",
            vec![opened(), rst_stream(1, 8), continuation()],
            connection(late),
        ),
        ("5.1.1 an even id", vec![headers(2, true, &get())], connection(PROTOCOL)),
        (
            "5.1.1 a smaller id",
            vec![headers(5, true, &get()), headers(3, true, &get())],
            connection(PROTOCOL),
        ),
        (
            "5.3.1 HEADERS that depend on themselves",
            vec![frame(
                HEADERS,
                WITH_PRIORITY | END_HEADERS | END_STREAM,
                1,
                &[&[0, 0, 0, 1, 9], &block(&get())[..]].concat(),
            )],
            stream(PROTOCOL),
        ),
        ("5.3.1 PRIORITY that depends on itself", vec![priority(1, 1, 9)], stream(PROTOCOL)),
        ("5.3.1 the same on an open stream", vec![opened(), priority(1, 1, 9)], stream(PROTOCOL)),
        ("5.4.1 a connection error", vec![frame(PING, 0, 3, &[0; 8])], connection(PROTOCOL)),
    ]);
}

/// RFC 9113 §5.1: both sides have ended the stream. Here the answer has to be out before the late frame arrives.
#[test]
fn closed_streams() {
    let cases = [
        ("DATA", data(1, true, b"test"), Reason::StreamClosed),
        ("HEADERS", ended(), Reason::StreamClosed),
        ("CONTINUATION", frame(CONTINUATION, END_HEADERS, 1, &block(&[("a", "b")])), Reason::ProtocolError),
    ];
    for (name, late, reason) in cases {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&ended());
        raw.send(&late);
        let goaway = raw.of_kind(GOAWAY);
        assert_eq!(goaway.len(), 1, "{name}");
        assert_eq!(Reason::from(goaway[0].code()), reason, "{name}");
        assert_eq!(goaway[0].number(0), 1, "{name}: the last stream");
    }
}

/// RFC 9113 §5.1.2.
#[test]
fn one_stream_too_many() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&settings(&[(4, 0)]));
    for id in 0..=128 {
        raw.send(&headers(1 + 2 * id, true, &get()));
    }
    assert_eq!(raw.of_kind(GOAWAY).len(), 0);
    let resets = raw.of_kind(RST_STREAM);
    assert_eq!(resets.len(), 1);
    assert_eq!((resets[0].stream, Reason::from(resets[0].code())), (257, Reason::RefusedStream));
}

/// RFC 9113 §6.1 to §6.4.
#[test]
fn data_headers_priority_reset() {
    let padded = |kind, stream| frame(kind, PADDED | END_HEADERS, stream, &[6, 1, 2, 3, 4]);
    run(vec![
        ("6.1 DATA on stream 0", vec![data(0, true, b"a")], connection(PROTOCOL)),
        ("6.1 DATA with too much padding", vec![opened(), padded(DATA, 1)], connection(PROTOCOL)),
        (
            "6.1 DATA without room for its padding",
            vec![opened(), frame(DATA, PADDED, 1, &[])],
            connection(SIZE),
        ),
        ("6.2 HEADERS on stream 0", vec![headers(0, true, &get())], connection(PROTOCOL)),
        ("6.2 HEADERS with too much padding", vec![padded(HEADERS, 1)], connection(PROTOCOL)),
        (
            "6.2 HEADERS too short for priority",
            vec![frame(HEADERS, WITH_PRIORITY | END_HEADERS, 1, &[0; 4])],
            connection(SIZE),
        ),
        ("6.3 PRIORITY on stream 0", vec![priority(0, 3, 9)], connection(PROTOCOL)),
        ("6.3 PRIORITY of a wrong length", vec![opened(), frame(PRIORITY, 0, 1, &[0; 4])], stream(SIZE)),
        ("6.3 the same on an idle stream", vec![frame(PRIORITY, 0, 1, &[0; 4])], stream(SIZE)),
        ("6.4 RST_STREAM on stream 0", vec![rst_stream(0, 8)], connection(PROTOCOL)),
        (
            "6.4 RST_STREAM of a wrong length",
            vec![opened(), frame(RST_STREAM, 0, 1, &[0; 3])],
            connection(SIZE),
        ),
    ]);
}

/// RFC 9113 §6.5 to §6.8.
#[test]
fn settings_ping_goaway() {
    run(vec![
        ("6.5 SETTINGS on a stream", vec![frame(SETTINGS, 0, 1, &[])], connection(PROTOCOL)),
        ("6.5 SETTINGS ACK with a payload", vec![frame(SETTINGS, ACK, 0, &[0; 6])], connection(SIZE)),
        ("6.5 SETTINGS of a wrong length", vec![frame(SETTINGS, 0, 0, &[0; 3])], connection(SIZE)),
        ("6.5.2 ENABLE_PUSH", vec![settings(&[(2, 2)])], connection(PROTOCOL)),
        ("6.5.2 INITIAL_WINDOW_SIZE", vec![settings(&[(4, 0x8000_0000)])], connection(FLOW)),
        ("6.5.2 MAX_FRAME_SIZE below", vec![settings(&[(5, 16_383)])], connection(PROTOCOL)),
        ("6.5.2 MAX_FRAME_SIZE above", vec![settings(&[(5, 16_777_216)])], connection(PROTOCOL)),
        ("6.5.2 an unknown setting", vec![settings(&[(0xff, 1)])], Alive),
        ("8441 ENABLE_CONNECT_PROTOCOL", vec![settings(&[(8, 2)])], connection(PROTOCOL)),
        ("8441 ENABLE_CONNECT_PROTOCOL taken back by a client", vec![settings(&[(8, 1), (8, 0)])], Alive),
        ("9218 NO_RFC7540_PRIORITIES", vec![settings(&[(9, 2)])], connection(PROTOCOL)),
        ("6.7 PING ACK", vec![frame(PING, ACK, 0, b"invalid!")], Alive),
        ("6.7 PING on a stream", vec![frame(PING, 0, 1, &[0; 8])], connection(PROTOCOL)),
        ("6.7 PING of a wrong length", vec![frame(PING, 0, 0, &[0; 6])], connection(SIZE)),
        ("6.8 GOAWAY on a stream", vec![frame(GOAWAY, 0, 1, &[0; 8])], connection(PROTOCOL)),
        ("6.8 GOAWAY of a wrong length", vec![frame(GOAWAY, 0, 0, &[0; 7])], connection(SIZE)),
        ("7 an unknown code in GOAWAY", vec![goaway(0, 0xff)], Alive),
        ("7 an unknown code in RST_STREAM", vec![opened(), rst_stream(1, 0xff)], Alive),
    ]);
}

/// RFC 9113 §6.9.
#[test]
fn windows() {
    let most = 0x7fff_ffff;
    run(vec![
        ("6.9 zero on the connection", vec![window_update(0, 0)], connection(PROTOCOL)),
        ("6.9 zero on a stream", vec![opened(), window_update(1, 0)], stream(PROTOCOL)),
        ("6.9 zero on an ended stream", vec![ended(), window_update(1, 0)], stream(PROTOCOL)),
        ("6.9 a wrong length", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 3])], connection(SIZE)),
        (
            "6.9.1 too much on the connection",
            vec![window_update(0, most), window_update(0, most)],
            connection(FLOW),
        ),
        (
            "6.9.1 too much on a stream",
            vec![ended(), window_update(1, most), window_update(1, most)],
            stream(FLOW),
        ),
        (
            "6.9.2 too much by a setting",
            vec![opened(), window_update(1, most - 65_535), settings(&[(4, 65_600)])],
            connection(FLOW),
        ),
        (
            "6.10 CONTINUATION on stream 0",
            vec![frame(HEADERS, END_STREAM, 1, &block(&get())), frame(CONTINUATION, END_HEADERS, 0, &[])],
            connection(PROTOCOL),
        ),
        (
            "6.10 CONTINUATION after END_HEADERS",
            vec![ended(), frame(CONTINUATION, END_HEADERS, 1, &[])],
            connection(PROTOCOL),
        ),
        (
            "6.10 CONTINUATION after CONTINUATION",
            vec![
                frame(HEADERS, END_STREAM, 1, &block(&get())),
                frame(CONTINUATION, END_HEADERS, 1, &[]),
                frame(CONTINUATION, END_HEADERS, 1, &[]),
            ],
            connection(PROTOCOL),
        ),
        (
            "6.10 CONTINUATION after DATA",
            vec![opened(), data(1, true, b"a"), frame(CONTINUATION, END_HEADERS, 1, &[])],
            connection(PROTOCOL),
        ),
    ]);
}

/// RFC 9113 §6.9.1 and §6.9.2: DATA keeps within the window, which may be tiny, negative, and opened in parts.
#[test]
fn data_keeps_within_the_window() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&settings(&[(4, 1)]));
    raw.send(&ended());
    assert_eq!(raw.of_kind(DATA).len(), 1);
    assert_eq!(raw.of_kind(DATA)[0].payload, b"h");

    raw.send(&settings(&[(4, 0)]));
    raw.send(&window_update(1, 1));
    assert_eq!(raw.of_kind(DATA).len(), 1, "the window went to -1 and is 0 now");
    raw.send(&window_update(1, 2));
    assert_eq!(raw.of_kind(DATA)[1].payload, b"el");
    raw.send(&settings(&[(4, 10)]));
    assert_eq!(raw.of_kind(DATA)[2].payload, b"lo");
    assert_eq!(raw.of_kind(DATA)[2].flags, END_STREAM);
}

/// RFC 9113 §8.
#[test]
fn messages() {
    let malformed: Vec<(&'static str, Vec<(&'static str, &'static str)>)> = vec![
        ("an upper-case name", with(&[("X-TEST", "ok")])),
        ("a space in a name", with(&[("x test", "ok")])),
        ("a control in a name", with(&[("\u{1}x", "ok")])),
        ("a colon in a name", with(&[("x:y", "ok")])),
        ("a line feed in a value", with(&[("x", "a\nb")])),
        ("a carriage return in a value", with(&[("x", "a\rb")])),
        ("a NUL in a value", with(&[("x", "a\0b")])),
        ("a space before a value", with(&[("x", " a")])),
        ("a tab behind a value", with(&[("x", "a\t")])),
        ("an unknown pseudo-field", with(&[(":test", "ok")])),
        ("a pseudo-field of a response", with(&[(":status", "200")])),
        ("a pseudo-field behind a field", [&[("x", "y")][..], &request("POST")].concat()),
        ("a connection field", with(&[("connection", "keep-alive")])),
        ("proxy-connection", with(&[("proxy-connection", "keep-alive")])),
        ("keep-alive", with(&[("keep-alive", "max=1")])),
        ("transfer-encoding", with(&[("transfer-encoding", "chunked")])),
        ("upgrade", with(&[("upgrade", "h2c")])),
        ("te", with(&[("te", "trailers, deflate")])),
        ("an empty path", replaced(":path", "")),
        ("no method", without(":method")),
        ("no scheme", without(":scheme")),
        ("no path", without(":path")),
        ("no authority", without(":authority")),
        ("two methods", [&[(":method", "POST")][..], &request("POST")].concat()),
        ("two schemes", [&[(":scheme", "http")][..], &request("POST")].concat()),
        ("two paths", [&[(":path", "/")][..], &request("POST")].concat()),
        ("another host", with(&[("host", "example.org")])),
        ("CONNECT with a path", vec![(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")]),
        ("CONNECT with a scheme", vec![(":method", "CONNECT"), (":authority", "a:1"), (":scheme", "http")]),
        ("CONNECT without authority", vec![(":method", "CONNECT")]),
        ("a content-length without content", with(&[("content-length", "1")])),
    ];
    let mut cases: Vec<Case> = malformed
        .into_iter()
        .map(|(name, fields)| (name, vec![headers(1, true, &fields)], stream(PROTOCOL)))
        .collect();
    let promising = || headers(1, false, &with(&[("content-length", "1")]));
    cases.extend([
        ("DATA longer than content-length", vec![promising(), data(1, true, b"test")], stream(PROTOCOL)),
        ("the same in two", vec![promising(), data(1, false, b"t"), data(1, true, b"est")], stream(PROTOCOL)),
        ("DATA shorter than content-length", vec![promising(), data(1, true, b"")], stream(PROTOCOL)),
        ("trailers that do not end", vec![opened(), headers(1, false, &[("x", "y")])], stream(PROTOCOL)),
        (
            "pseudo-fields in trailers",
            vec![opened(), headers(1, true, &[(":method", "GET")])],
            stream(PROTOCOL),
        ),
        ("PUSH_PROMISE", vec![frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2])], connection(PROTOCOL)),
    ]);
    run(cases);
}

/// RFC 7541, by way of frames.
#[test]
fn header_compression() {
    let prefix = block(&request("GET"));
    let wrong =
        |tail: &[u8]| vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &[&prefix[..], tail].concat())];
    let huffman_eos =
        [0x00, 0x85, 0xf2, 0xb2, 0x4a, 0x84, 0xff, 0x87, 0x49, 0x51, 0xff, 0xff, 0xff, 0xfa, 0x7f];
    run(vec![
        ("2.3.3 an index behind the table", wrong(&[0xf0]), connection(COMPRESSION)),
        ("2.3.3 a name index behind the table", wrong(&[0x7f, 0x30, 1, b'a']), connection(COMPRESSION)),
        ("4.2 a size update behind a field", wrong(&[0x20]), connection(COMPRESSION)),
        (
            "5.2 padding longer than seven bits",
            wrong(&[0x00, 1, b'a', 0x82, 0x1f, 0xff]),
            connection(COMPRESSION),
        ),
        ("5.2 padding of zeros", wrong(&[0x00, 1, b'a', 0x81, 0x18]), connection(COMPRESSION)),
        ("5.2 the end-of-string symbol", wrong(&huffman_eos), connection(COMPRESSION)),
        ("6.1 index zero", wrong(&[0x80]), connection(COMPRESSION)),
        (
            "6.3 a size update above the limit",
            vec![frame(HEADERS, END_HEADERS | END_STREAM, 1, &[&[0x3f, 0xe2, 0x1f], &prefix[..]].concat())],
            connection(COMPRESSION),
        ),
        (
            "6.3 size updates within the limit",
            vec![frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &[&[0x20, 0x3f, 0xe1, 0x1f], &prefix[..]].concat(),
            )],
            Response,
        ),
    ]);
}
