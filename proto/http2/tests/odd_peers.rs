//! What a server makes of clients that are within the rules and yet unusual, and of requests that are above a limit.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // What fails here fails the test.

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyperman_http2::{BodySize, Config, Error, Reason, ServerEvent, StreamId, Violation};
use support::raw::{Mode, RawServer};
use support::*;

fn id(round: u32) -> u32 {
    1 + 2 * round
}

/// The octets of a stream's DATA, and whether they ended it.
fn body(raw: &RawServer, stream: u32) -> (usize, bool) {
    let frames = raw.of_kind(DATA).into_iter().filter(|frame| frame.stream == stream);
    frames.fold((0, false), |(octets, ended), frame| {
        (octets + frame.payload.len(), ended || frame.flags & END_STREAM != 0)
    })
}

/// RFC 9113 §5.2.2: as many streams as may be open, each with a body up to its window that nobody reads, but for one.
#[test]
fn bodies_that_nobody_reads_keep_no_other_from_being_sent() {
    let mut raw = RawServer::new(Mode::Never);
    for round in 0..127 {
        raw.send(&headers(id(round), false, &request("POST")));
        for length in [16_384, 16_384, 16_384, 16_383] {
            raw.send(&data(id(round), false, &vec![0; length]));
        }
    }
    raw.mode = Mode::ReadsBody;
    raw.send(&headers(id(127), false, &request("POST")));
    for _ in 0..20 {
        assert!(receivable(&raw.server) >= 65_535, "the client may go on");
        raw.send(&data(id(127), false, &[0; 16_384]));
    }
    raw.send(&data(id(127), true, &[]));
    assert_eq!((raw.error.clone(), body(&raw, id(127))), (None, (5, true)));
}

/// Streams whose windows have grown share what the connection's can become.
#[test]
fn windows_of_streams_do_not_grow_above_that_of_their_connection() {
    let mut config = Config::server();
    config.windows.connection_max = 1024 * 1024;
    let mut raw = RawServer::with(Mode::ReadsBody, config);
    let mut granted = [65_535_u64; 20];
    for round in 0..20 {
        raw.send(&headers(id(round), false, &request("POST")));
    }
    // All within one round trip, so that each window is what limits its stream.
    for _ in 0..400 {
        for round in 0..20 {
            raw.send(&data(id(round), false, &[0; 1024]));
        }
    }
    for frame in raw.of_kind(WINDOW_UPDATE).iter().filter(|frame| frame.stream != 0) {
        granted[(frame.stream / 2) as usize] += u64::from(frame.number(0));
    }
    let targets: u64 = granted.iter().map(|granted| granted - 400 * 1024).sum();
    assert_eq!(raw.error, None);
    assert!(targets <= 20 * 65_535, "{targets}: twenty first windows are more than the connection's already");
}

/// RFC 9113 §6.9: an end and trailers take no window, and whoever is asked for more is asked for the end.
#[test]
fn the_end_of_a_body_waits_for_no_window() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&[settings(&[(4, 3)]), headers(1, true, &get()), headers(3, true, &get())].concat());
    for stream in raw.requests() {
        raw.server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
        assert!(raw.server.takes_piece(stream));
        raw.server.send_data(stream, Bytes::from_static(b"abc")).unwrap();
    }
    raw.turn();
    let [first, second] = raw.requests()[..] else { panic!("two requests") };
    assert_eq!(body(&raw, 1), (3, false));
    assert_eq!((raw.server.capacity(first), raw.server.takes_piece(first)), (0, true));
    raw.server.end(first).unwrap();
    raw.turn();
    assert_eq!(body(&raw, 1), (3, true));
    // What is no end waits, and one piece of it at most.
    assert!(raw.server.takes_piece(second));
    raw.server.send_data(second, Bytes::from_static(b"de")).unwrap();
    assert!(!raw.server.takes_piece(second));
    raw.events.clear();
    raw.send(&window_update(3, 2));
    assert_eq!(body(&raw, 3), (5, false));
    assert!(matches!(raw.events[..], [ServerEvent::Capacity { stream }] if stream == second));
    assert!(raw.server.takes_piece(second));
}

/// A body of a known length is not asked for what no window lets go, however many streams wait.
#[test]
fn a_piece_that_is_not_the_end_is_not_taken_without_a_window() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&[settings(&[(4, 0)]), headers(1, true, &get())].concat());
    let stream = raw.requests()[0];
    raw.server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Known(9)).unwrap();
    assert!(!raw.server.takes_piece(stream));
    raw.events.clear();
    raw.send(&window_update(1, 1));
    assert!(matches!(raw.events[..], [ServerEvent::Capacity { .. }]));
}

/// RFC 9113 §5.1.1: a stream that a higher one passed over is closed.
#[test]
fn frames_on_a_stream_that_was_passed_over() {
    let cases = [
        ("WINDOW_UPDATE", window_update(3, 1), None),
        ("RST_STREAM", rst_stream(3, 8), None),
        ("PRIORITY", frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 1]), None),
        ("DATA", data(3, true, b"a"), Some(Violation::ClosedStream)),
        ("HEADERS", headers(3, true, &get()), Some(Violation::BadStreamId)),
    ];
    for (name, bytes, violation) in cases {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&headers(5, true, &get()));
        raw.send(&bytes);
        assert_eq!(raw.error, violation.map(Error::Violation), "{name}");
    }
}

/// The answers that HTTP/1.1 gives too. What comes next on the connection is served, with the table in step.
#[test]
fn s16_requests_above_a_limit_are_answered() {
    let path = format!("/{}", "a".repeat(8 * 1024));
    let value = "v".repeat(16 * 1024);
    let name = "n".repeat(16 * 1024 + 1);
    let replaced = |at: usize, value: &str| -> Vec<u8> {
        let mut fields = get();
        fields[at].1 = Box::leak(value.to_owned().into_boxed_str());
        block(&fields)
    };
    let with = |name: &str, value: &str| [block(&get()), block(&[(name, value)])].concat();
    let cases = [
        ("a path", replaced(2, &path), "414"),
        ("a method", replaced(0, &"M".repeat(8 * 1024 + 1)), "414"),
        ("a path above the whole section's limit", replaced(2, &path.repeat(9)), "414"),
        ("a path that fits", replaced(2, &path[..8 * 1024 - 3]), "200"),
        ("a value", with("x", &value), "431"),
        ("a value that fits", with("x", &value[1..]), "200"),
        ("a name", with(&name, ""), "431"),
        ("an authority", replaced(3, &value), "431"),
    ];
    for (what, fields, status) in cases {
        let mut raw = RawServer::new(Mode::AtOnce);
        let most = 16_384;
        let (first, rest) = fields.split_at(fields.len().min(most));
        let mut bytes = frame(HEADERS, END_STREAM | if rest.is_empty() { END_HEADERS } else { 0 }, 1, first);
        let parts = rest.chunks(most);
        let count = parts.len();
        for (place, part) in parts.enumerate() {
            bytes.extend(frame(9, if place + 1 == count { END_HEADERS } else { 0 }, 1, part));
        }
        raw.send(&bytes);
        assert_eq!(raw.error, None, "{what}");
        let heads = raw.of_kind(HEADERS);
        let Some(head) = heads.first().map(|frame| frame.payload.clone()) else {
            panic!("{what}: {:?}", raw.frames)
        };
        // 200 is an index of the static table; the others are literals in Huffman code or not.
        let told = match head[..] {
            [0x88, ..] => "200",
            [0x08, 3, a, b, c, ..] if [a, b, c] == *b"414" => "414",
            [0x08, 3, a, b, c, ..] if [a, b, c] == *b"431" => "431",
            [0x08, 0x82, 0x68, 0x0d, ..] => "414",
            [0x08, 0x82, 0x69, 0x97, ..] => "431",
            ref other => panic!("{what}: {other:02x?}"),
        };
        assert_eq!((told, raw.error.clone()), (status, None), "{what}");
        raw.send(&headers(3, true, &get()));
        assert_eq!(raw.requests().last().map(|stream| stream.get()), Some(3), "{what}");
    }
}

/// What stands in a head, and whether the application sees it.
#[test]
fn fields_that_look_odd() {
    let cases: [(&str, &str, bool); 6] = [
        ("te", "Trailers", true),
        ("te", "TRAILERS", true),
        ("te", "trailers,", false),
        ("te", "", false),
        ("a\"b", "c", false),
        ("a'b", "c", true),
    ];
    for (name, value, served) in cases {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&headers(1, true, &[get(), vec![(name, value)]].concat()));
        assert_eq!(!raw.requests().is_empty(), served, "{name}: {value}");
        let resets: Vec<Reason> =
            raw.of_kind(RST_STREAM).iter().map(|frame| Reason::from(frame.code())).collect();
        assert_eq!(resets, if served { vec![] } else { vec![Reason::ProtocolError] }, "{name}: {value}");
    }
}

/// RFC 9110 §9.3.6: a tunnel has no content whose length could be wrong.
#[test]
fn a_connect_with_a_content_length() {
    let mut raw = RawServer::new(Mode::Never);
    let connect = [(":method", "CONNECT"), (":authority", "example.com:443"), ("content-length", "1")];
    raw.send(&[headers(1, false, &connect), data(1, false, b"through"), data(1, true, b"it")].concat());
    assert_eq!((raw.error.clone(), raw.of_kind(RST_STREAM).len()), (None, 0));
    let through: usize = raw
        .events
        .iter()
        .map(|event| if let ServerEvent::Data { data, .. } = event { data.len() } else { 0 })
        .sum();
    assert_eq!(through, 9);
}

/// RFC 9113 §8.2.3, S24: as many crumbs as a section takes, and as long.
#[test]
fn cookie_crumbs_are_joined_in_their_order() {
    let mut raw = RawServer::new(Mode::Never);
    let crumbs: Vec<String> = (0..150).map(|number| format!("name{number}=value")).collect();
    let fields: Vec<(&str, &str)> = crumbs.iter().map(|crumb| ("cookie", crumb.as_str())).collect();
    raw.send(&headers(1, true, &[get(), fields].concat()));
    let ServerEvent::Request { request, .. } = &raw.events[0] else { panic!("{:?}", raw.events) };
    assert_eq!(request.headers()["cookie"], crumbs.join("; "));
    assert_eq!(request.headers().get_all("cookie").iter().count(), 1);
}

/// The order in which streams get their answers, of 40,000 octets each: those that end behind the first 65,535 octets,
/// which are the connection's window.
fn order(before: &[Vec<u8>], streams: &[u32], between: &[Vec<u8>]) -> Vec<u32> {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.answer = letters(40_000);
    raw.send(&settings(&[(4, 0)]));
    raw.send(&before.concat());
    for stream in streams {
        raw.send(&headers(*stream, true, &get()));
    }
    raw.send(&settings(&[(4, 40_000)]));
    raw.frames.clear();
    raw.send(&between.concat());
    raw.send(&window_update(0, 1_000_000));
    let ends = raw.of_kind(DATA).into_iter().filter(|frame| frame.flags & END_STREAM != 0);
    ends.map(|frame| frame.stream).collect()
}

fn update(stream: u32, field: &str) -> Vec<u8> {
    frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes()[..], field.as_bytes()].concat())
}

/// RFC 9218 §7.1.
#[test]
fn priority_updates_before_their_request_and_while_it_waits() {
    assert_eq!(order(&[], &[1, 3, 5], &[]), [3, 5], "in their order");
    assert_eq!(order(&[update(5, "u=0"), update(1, "u=7")], &[1, 3, 5], &[]), [3, 1]);
    assert_eq!(order(&[], &[1, 3, 5, 7], &[update(7, "u=0")]), [7, 3, 5]);
}

#[test]
fn a_stream_id_is_shown_as_its_number() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&headers(7, true, &get()));
    let shown: Vec<String> = raw.requests().iter().map(StreamId::to_string).collect();
    assert_eq!(shown, ["7"]);
}

/// RFC 9113 §8.5: what goes through a tunnel is no body, and has no largest size.
#[test]
fn a_tunnel_carries_more_than_a_body_may_have() {
    let mut config = Config::server();
    config.limits.body = 10;
    let mut raw = RawServer::with(Mode::Never, config);
    raw.send(&headers(1, false, &[(":method", "CONNECT"), (":authority", "example.com:443")]));
    raw.send(&data(1, false, b"more than ten octets"));
    assert_eq!((raw.error.clone(), raw.of_kind(RST_STREAM).len()), (None, 0));
}

/// S20: a body whose pieces are each taken at once, so that the application waits again and again and never for long.
#[test]
fn a_body_that_dribbles_is_slow_however_often_it_is_waited_for() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    let stream = raw.requests()[0];
    let mut seconds = 0;
    while raw.of_kind(RST_STREAM).is_empty() && seconds < 60 {
        raw.server.want_body(stream, true);
        raw.advance(Duration::from_secs(1));
        seconds += 1;
        raw.server.want_body(stream, false);
        raw.send(&data(1, false, b"x"));
        raw.server.release(stream, 1);
    }
    assert!((10..=20).contains(&seconds), "{seconds}");

    // The time in which the application does something else is not the peer's.
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    for _ in 0..60 {
        raw.server.want_body(stream, true);
        raw.advance(Duration::from_secs(1));
        raw.server.want_body(stream, false);
        raw.send(&data(1, false, &[0; 600]));
        raw.server.release(stream, 600);
        raw.advance(Duration::from_secs(5));
    }
    assert_eq!((raw.error.clone(), raw.of_kind(RST_STREAM).len()), (None, 0));
}
