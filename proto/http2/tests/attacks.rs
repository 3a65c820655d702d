//! The floods and games of S20 to S31, each played against a server: memory stays bounded, and the connection ends with
//! ENHANCE_YOUR_CALM when a budget is spent. What honest peers do stays within the budgets.

mod support;

use std::time::Duration;

use hyperman_http2::{
    CloseReason, Config, Error, Limits, Malformed, Reason, ServerEvent, Spent, StreamError, Timeout,
    Violation,
};
use support::raw::{Mode, RawServer};
use support::*;

/// Repeats a script, numbered, until the connection ends; how often that took.
fn flood(raw: &mut RawServer, most: u32, script: impl Fn(u32) -> Vec<u8>) -> u32 {
    for round in 0..most {
        raw.send(&script(round));
        if raw.error.is_some() {
            return round;
        }
    }
    most
}

fn id(round: u32) -> u32 {
    1 + 2 * round
}

fn assert_calm(raw: &RawServer, spent: Spent) {
    assert_eq!(raw.error, Some(Error::Spent(spent)));
    let told = raw.of_kind(GOAWAY).last().map(|frame| Reason::from(frame.code()));
    assert_eq!(told, Some(Reason::EnhanceYourCalm));
}

/// S20: each flood of frames that are cheap to send and of no use.
#[test]
fn floods_of_control_frames() {
    let floods: Vec<(&str, Vec<u8>)> = vec![
        ("ping", frame(PING, 0, 0, &[0; 8])),
        ("ping acknowledgement", frame(PING, ACK, 0, &[0; 8])),
        ("settings", settings(&[(3, 100)])),
        ("empty settings", settings(&[])),
        ("settings acknowledgement", frame(SETTINGS, ACK, 0, &[])),
        ("priority", frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 1])),
        ("priority of idle streams", frame(PRIORITY, 0, 999, &[0, 0, 0, 3, 1])),
        ("priority update", frame(PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 1, b'u', b'=', b'1'])),
        ("empty data", data(1, false, &[])),
        ("data that is all padding", frame(DATA, PADDED, 1, &[3, 0, 0, 0])),
        ("small window updates", window_update(1, 1)),
        ("small window updates of the connection", window_update(0, 1)),
        ("unknown frames", frame(0x77, 0, 0, &[0; 100])),
        ("resets of a stream that is gone", rst_stream(1, 8)),
    ];
    for (name, flooding) in floods {
        let mut raw = RawServer::new(Mode::Never);
        raw.send(&headers(1, false, &request("POST")));
        let rounds = flood(&mut raw, 2_000, |_| flooding.clone());
        assert!((990..=1_020).contains(&rounds), "{name}: {rounds}");
        assert_calm(&raw, Spent::ControlFrames);
        assert!(raw.frames.len() <= 1_100, "{name}: {} answers", raw.frames.len());
    }
}

/// A hundred pings a second, for an hour, are no flood; nor are window updates for a large download.
#[test]
fn honest_control_frames_are_no_flood() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, true, &get()));
    for _ in 0..36_000 {
        raw.now += Duration::from_millis(100);
        raw.send(&frame(PING, 0, 0, &[0; 8]).repeat(10));
        raw.frames.clear();
        raw.events.clear();
    }
    assert_eq!(raw.error, None);

    let mut raw = RawServer::new(Mode::AtOnce);
    raw.answer = letters(60_000_000);
    raw.send(&headers(1, true, &get()));
    let update = [window_update(1, 16_384), window_update(0, 16_384)].concat();
    let mut received = 0;
    while received < 60_000_000 {
        raw.send(&update);
        received += raw.of_kind(DATA).iter().map(|frame| frame.payload.len()).sum::<usize>();
        raw.frames.clear();
        assert_eq!(raw.error, None, "after {received} octets");
    }
}

/// S21, and what it was first: streams that are opened and reset at once.
#[test]
fn rapid_reset() {
    for mode in [Mode::ReadsBody, Mode::Never] {
        let mut raw = RawServer::new(mode);
        let rounds = flood(&mut raw, 5_000, |round| {
            [headers(id(round), false, &request("POST")), rst_stream(id(round), 8)].concat()
        });
        assert_eq!(rounds, 200, "{mode:?}");
        assert_calm(&raw, Spent::Resets);
    }
}

/// S21: a handler that is still running takes a place, reset or not.
#[test]
fn a_reset_makes_no_room_while_the_handler_runs() {
    let mut raw = RawServer::new(Mode::Never);
    raw.drops_handlers = false;
    for round in 0..128 {
        raw.send(&headers(id(round), true, &get()));
        raw.send(&rst_stream(id(round), 8));
    }
    assert_eq!(raw.requests().len(), 128);
    raw.send(&headers(id(128), true, &get()));
    assert_eq!(raw.requests().len(), 128, "no further handler");
    let refused = raw.of_kind(RST_STREAM);
    assert_eq!((refused[0].stream, Reason::from(refused[0].code())), (257, Reason::RefusedStream));
    // As handlers end, streams are taken again.
    let first = raw.requests()[0];
    raw.server.finished(first);
    raw.send(&headers(id(129), true, &get()));
    assert_eq!(raw.requests().len(), 129);
}

/// A browser that leaves a page cancels what is open, again and again, and other work goes on in between.
#[test]
fn honest_resets_are_no_flood() {
    let mut raw = RawServer::new(Mode::ReadsBody);
    let mut next = 0;
    for _ in 0..50 {
        for _ in 0..100 {
            raw.send(&headers(id(next), false, &request("POST")));
            raw.send(&rst_stream(id(next), 8));
            next += 1;
        }
        for _ in 0..50 {
            raw.send(&headers(id(next), true, &get()));
            next += 1;
        }
        raw.now += Duration::from_secs(3);
    }
    assert_eq!(raw.error, None);
}

/// A stream of events, or a large file, is left when its reader has had enough of it.
#[test]
fn answers_that_are_left_half_way_are_no_flood() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.answer = vec![b'x'; 30_000].into();
    raw.send(&settings(&[(4, 10_000)]));
    for round in 0..2_000 {
        raw.send(&headers(id(round), true, &get()));
        raw.send(&rst_stream(id(round), 8));
        raw.send(&window_update(0, 10_000));
    }
    assert_eq!(raw.error, None);
    assert_eq!(raw.requests().len(), 2_000);
}

/// S22: the primitives by which a client makes the server reset a stream, so that no reset of its own is counted.
#[test]
fn resets_that_the_peer_provokes() {
    type Primitive = (&'static str, Box<dyn Fn(u32) -> Vec<u8>>);
    let open = |stream| headers(stream, false, &request("POST"));
    let primitives: Vec<Primitive> = vec![
        ("a window update of zero", Box::new(move |s| [open(s), window_update(s, 0)].concat())),
        ("a window that overflows", Box::new(move |s| [open(s), window_update(s, 0x7fff_ffff)].concat())),
        ("data behind the end", Box::new(|s| [headers(s, true, &get()), data(s, true, b"a")].concat())),
        ("headers behind the end", Box::new(|s| headers(s, true, &get()).repeat(2))),
        ("a priority of a wrong length", Box::new(move |s| [open(s), frame(PRIORITY, 0, s, &[0])].concat())),
        (
            "a stream that depends on itself",
            Box::new(move |s| {
                [open(s), frame(PRIORITY, 0, s, &[&s.to_be_bytes()[..], &[1]].concat())].concat()
            }),
        ),
        ("a malformed head", Box::new(|s| headers(s, true, &[(":method", "GET")]))),
        ("a head above the limits", Box::new(|s| headers(s, true, &[get(), vec![("a", "b"); 200]].concat()))),
        ("malformed trailers", Box::new(move |s| [open(s), headers(s, true, &[(":path", "/")])].concat())),
        (
            "a body longer than promised",
            Box::new(|s| {
                let head = headers(s, false, &[request("POST"), vec![("content-length", "1")]].concat());
                [head, data(s, false, b"ab")].concat()
            }),
        ),
    ];
    for (name, primitive) in primitives {
        let mut raw = RawServer::new(Mode::Never);
        let rounds = flood(&mut raw, 1_000, |round| primitive(id(round)));
        assert_eq!(rounds, 200, "{name}");
        assert_calm(&raw, Spent::Resets);
        assert!(raw.running.len() <= 1, "{name}: each handler was to be dropped, the last one by the error");
    }
}

/// S21: streams above the limit cost us little, and a client may open some before it knows the limit; but not for ever.
#[test]
fn a_flood_of_refused_streams() {
    let mut raw = RawServer::new(Mode::Never);
    let rounds = flood(&mut raw, 2_000, |round| headers(id(round), true, &get()));
    assert_eq!(rounds, 128 + 1_000);
    assert_calm(&raw, Spent::ControlFrames);
    assert_eq!(raw.requests().len(), 128);
}

/// S23: a header block that never ends, in frames of any size, empty ones included.
#[test]
fn continuation_flood() {
    for (size, spent, at) in
        [(0, Spent::Continuations, 32), (1, Spent::Continuations, 32), (16_384, Spent::HeaderList, 15)]
    {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&frame(HEADERS, END_STREAM, 1, &block(&get())));
        let rounds = flood(&mut raw, 1_000, |_| frame(CONTINUATION, 0, 1, &vec![0; size]));
        assert_eq!(rounds, at, "frames of {size} octets");
        assert_calm(&raw, spent);
        assert_eq!(raw.requests().len(), 0);
    }
}

/// S23: above the limit but within reason, the request is answered and the tables stay in step.
#[test]
fn a_large_head_is_answered_with_431() {
    let large = "x".repeat(70_000);
    let fields = [get(), vec![("x", &large[..])]].concat();
    let bytes = block(&fields);
    let mut raw = RawServer::new(Mode::AtOnce);
    let parts: Vec<&[u8]> = bytes.chunks(16_384).collect();
    for (place, part) in parts.iter().enumerate() {
        let kind = if place == 0 { HEADERS } else { CONTINUATION };
        let end = if place + 1 == parts.len() { END_HEADERS } else { 0 };
        raw.send(&frame(kind, end | if place == 0 { END_STREAM } else { 0 }, 1, part));
    }
    let answer = raw.of_kind(HEADERS)[0];
    assert_eq!(answer.flags, END_HEADERS | END_STREAM);
    assert!(answer.payload.windows(3).any(|part| part == b"431"), "{answer:?}");
    assert_eq!(raw.requests().len(), 0);
    raw.send(&headers(3, true, &get()));
    assert_eq!(raw.requests().len(), 1);
    assert_eq!(raw.error, None);
}

/// S24: one octet on the wire that stands for a large field, and one that stands for a field of no octets.
#[test]
fn header_bombs() {
    // An entry of 4,000 octets in the dynamic table, then references to it.
    let value = "v".repeat(3_950);
    let mut large = block(&[("x", &value)]);
    large[0] = 0x40;
    large.extend_from_slice(&[0xbe; 10_000]);
    // A cookie crumb of one octet, and references to it.
    let mut crumbs = block(&[("cookie", "a")]);
    crumbs[0] = 0x40;
    crumbs.extend_from_slice(&[0xbe; 10_000]);
    for (name, bomb, spent) in [("large", large, Spent::HeaderList), ("crumbs", crumbs, Spent::Fields)] {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[block(&get()), bomb].concat()));
        assert_calm(&raw, spent);
        assert_eq!(raw.requests().len(), 0, "{name}");
    }
}

/// S24: the answer is large, the client has asked for much and reads nothing, or as good as nothing.
#[test]
fn readers_that_stall() {
    for trickle in [0, 15] {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.answer = letters(100_000);
        raw.send(&settings(&[(4, 0)]));
        for round in 0..100 {
            raw.send(&headers(id(round), true, &get()));
        }
        for _ in 0..80 {
            raw.advance(Duration::from_secs(1));
            if trickle > 0 {
                for round in 0..100 {
                    raw.send(&window_update(id(round), trickle));
                }
            }
            if raw.server.open_streams() == 0 {
                break;
            }
        }
        let resets = raw.of_kind(RST_STREAM);
        assert_eq!(resets.len(), 100, "{trickle} octets a second");
        assert!(resets.iter().all(|frame| Reason::from(frame.code()) == Reason::Cancel));
        assert_eq!((raw.server.open_streams(), raw.error.clone()), (0, None));
    }
}

/// A reader that is slow but reads is let alone.
#[test]
fn a_slow_reader_is_served() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.answer = letters(100_000);
    raw.send(&settings(&[(4, 0)]));
    raw.send(&headers(1, true, &get()));
    for _ in 0..98 {
        raw.advance(Duration::from_secs(40));
        raw.send(&[window_update(0, 1024), window_update(1, 1024)].concat());
    }
    assert_eq!(raw.of_kind(RST_STREAM), Vec::<&Frame>::new());
    assert_eq!(raw.of_kind(DATA).last().unwrap().flags, END_STREAM);
}

/// S20 (data dribble): an application that waits for capacity is told when its stream has stalled.
#[test]
fn a_streaming_answer_that_stalls() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&settings(&[(4, 0)]));
    raw.send(&headers(1, true, &get()));
    let stream = raw.requests()[0];
    let size = hyperman_http2::BodySize::Unknown;
    raw.server.send_head(stream, http::StatusCode::OK, &http::HeaderMap::new(), size).unwrap();
    assert_eq!(raw.server.capacity(stream), 0);
    for _ in 0..8 {
        raw.advance(Duration::from_secs(15));
    }
    let stalled = StreamError::Timeout(Timeout::WriteStall);
    assert!(
        raw.events.iter().any(|event| matches!(event, ServerEvent::Reset { error, .. } if *error == stalled))
    );
}

/// S25: DATA of one octet each, on streams whose application does not read.
#[test]
fn small_data_that_nobody_reads() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    let rounds = flood(&mut raw, 60_000, |_| data(1, false, b"a"));
    assert_eq!(rounds, 16_384);
    assert_calm(&raw, Spent::SmallData);
}

/// S25: as long as the application reads, small messages may come for ever.
#[test]
fn small_data_that_is_read() {
    let mut raw = RawServer::new(Mode::ReadsBody);
    raw.send(&headers(1, false, &request("POST")));
    let rounds = flood(&mut raw, 100_000, |_| data(1, false, b"a"));
    assert_eq!((rounds, raw.error), (100_000, None));
}

/// S25: padding counts against both windows and is given back to both.
#[test]
fn padding_is_given_back() {
    let mut raw = RawServer::new(Mode::ReadsBody);
    let before = receivable(&raw.server);
    raw.send(&headers(1, false, &request("POST")));
    let padded = frame(DATA, PADDED, 1, &[&[255][..], &[b'x'; 100], &[0; 255]].concat());
    for _ in 0..10_000 {
        raw.send(&padded);
        assert_eq!(raw.error, None);
        assert_eq!(raw.of_kind(RST_STREAM).len(), 0);
    }
    assert_eq!(receivable(&raw.server), before);
    let granted: u32 = raw.of_kind(WINDOW_UPDATE).iter().filter(|f| f.stream == 1).map(|f| f.number(0)).sum();
    assert!(granted > 3_560_000 - 65_535, "{granted}");
}

/// S26.
#[test]
fn a_giant_settings_frame() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&settings(&[(0x99, 1); 32]));
    assert_eq!(raw.error, None);
    raw.send(&settings(&[(0x99, 1); 33]));
    assert_calm(&raw, Spent::SettingsEntries);
}

/// RFC 9113 §6.9: more than the window allows, of a stream and of the connection.
#[test]
fn windows_that_are_exceeded() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    raw.send(&data(1, false, &[0; 16_384]).repeat(4));
    assert_eq!(raw.of_kind(RST_STREAM).len(), 1, "65,535 octets fit, 65,536 do not");
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::FlowControlError);
    assert_eq!(receivable(&raw.server), 256 * 1024, "all is given back");

    let mut fixed = Config::server();
    fixed.windows.connection_max = fixed.windows.connection;
    let mut raw = RawServer::with(Mode::Never, fixed);
    for round in 0..6 {
        raw.send(&headers(id(round), false, &request("POST")));
        raw.send(&data(id(round), false, &[0; 16_384]).repeat(3));
    }
    assert_eq!(raw.error, Some(Error::Violation(Violation::WindowExceeded)), "16 frames fit into 256 KiB");
}

/// S29.
#[test]
fn a_client_cannot_push() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]));
    assert_eq!(raw.error, Some(Error::Violation(Violation::UnexpectedPush)));
}

/// S30: what would be something else behind a gateway to HTTP/1.1.
#[test]
fn what_http1_could_not_carry_is_refused() {
    let bad: Vec<Vec<(&str, &str)>> = vec![
        vec![(":method", "GET /\r\n"), (":scheme", "http"), (":path", "/"), (":authority", "a")],
        vec![(":method", "GET"), (":scheme", "http"), (":path", "/ HTTP/1.1\r\nx: y"), (":authority", "a")],
        vec![(":method", "GET"), (":scheme", "http"), (":path", "/a b"), (":authority", "a")],
        vec![(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a\r\nx: y")],
        vec![(":method", "GET"), (":scheme", "http://b/?"), (":path", "/"), (":authority", "a")],
        [get(), vec![("x", "a\r\ny: z")]].concat(),
        [get(), vec![("x\r\ny", "z")]].concat(),
        [get(), vec![("content-length", "1"), ("content-length", "2")]].concat(),
    ];
    for fields in bad {
        let mut raw = RawServer::new(Mode::AtOnce);
        raw.send(&headers(1, true, &fields));
        assert_eq!(raw.requests().len(), 0, "{fields:?}");
        assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::ProtocolError, "{fields:?}");
    }
}

/// S30: the one fault that is also answered.
#[test]
fn a_host_that_differs_is_answered_with_400() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&headers(1, true, &[get(), vec![("host", "example.org")]].concat()));
    assert_eq!(raw.of_kind(HEADERS)[0].payload[0], 0x80 | 12, "400 in the static table");
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::ProtocolError);
    assert_eq!(raw.requests().len(), 0);
}

/// S31: one timer from the first byte of the connection to the last of a head, and one for every later frame.
#[test]
fn slow_heads() {
    let timeout = Some(Error::Timeout(Timeout::Head));
    let mut config = Config::server();
    config.timeouts.settings = None;
    let mut raw = RawServer::bare(Mode::AtOnce, config);
    raw.advance(Duration::from_secs(9));
    raw.send(&hyperman_http2::PREFACE[..5]);
    for byte in &hyperman_http2::PREFACE[5..] {
        raw.advance(Duration::from_secs(1));
        raw.send(&[*byte]);
    }
    assert_eq!(raw.error, None);
    raw.advance(Duration::from_secs(2));
    assert_eq!(raw.error, timeout, "the settings have not come");

    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&frame(HEADERS, END_STREAM, 1, &block(&get())));
    for _ in 0..29 {
        raw.advance(Duration::from_secs(1));
        raw.send(&frame(CONTINUATION, 0, 1, &[]));
    }
    assert_eq!(raw.error, None);
    raw.advance(Duration::from_secs(1));
    assert_eq!(raw.error, timeout, "a header block that dribbles");

    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, true, &get()));
    for _ in 0..20 {
        raw.send(&frame(PING, 0, 0, &[0; 8])[..5]);
        raw.advance(Duration::from_secs(20));
        raw.send(&frame(PING, 0, 0, &[0; 8])[5..]);
    }
    assert_eq!(raw.error, None, "each frame has its own time");
}

#[test]
fn a_slow_body() {
    let mut raw = RawServer::new(Mode::ReadsBody);
    raw.send(&headers(1, false, &request("POST")));
    for _ in 0..60 {
        raw.advance(Duration::from_secs(1));
        raw.send(&data(1, false, &[0; 501]));
    }
    assert!(!raw.events.iter().any(|event| matches!(event, ServerEvent::Reset { .. })));
    for _ in 0..30 {
        raw.advance(Duration::from_secs(1));
        raw.send(&data(1, false, &[0; 400]));
    }
    let slow = StreamError::Timeout(Timeout::BodyRate);
    assert!(
        raw.events.iter().any(|event| matches!(event, ServerEvent::Reset { error, .. } if *error == slow))
    );
}

#[test]
fn bodies_above_the_limit() {
    let limits = Limits { body: 1000, ..Limits::default() };
    let config = Config { limits, ..Config::server() };
    let mut raw = RawServer::with(Mode::ReadsBody, config.clone());
    raw.send(&headers(1, false, &[request("POST"), vec![("content-length", "1001")]].concat()));
    assert_eq!(raw.requests().len(), 0, "refused by its length");
    assert!(raw.of_kind(HEADERS)[0].payload.windows(3).any(|part| part == b"413"));
    raw.send(&data(1, true, &[0; 1001]));
    assert_eq!((raw.error.clone(), raw.of_kind(RST_STREAM).len()), (None, 0), "the rest is thrown away");
    assert_eq!(raw.server.open_streams(), 0);
    raw.send(&headers(3, false, &[request("POST"), vec![("content-length", "99999")]].concat()));
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::NoError, "too much to throw away");

    let mut raw = RawServer::with(Mode::ReadsBody, config);
    raw.send(&headers(1, false, &request("POST")));
    raw.send(&data(1, false, &[0; 600]));
    raw.send(&data(1, false, &[0; 600]));
    assert!(raw.of_kind(HEADERS)[0].payload.windows(3).any(|part| part == b"413"));
    let Some(ServerEvent::Reset { error, .. }) = raw.events.last() else { panic!("{:?}", raw.events) };
    assert_eq!(*error, StreamError::BodyTooLarge);
    assert_eq!((raw.error.clone(), raw.of_kind(RST_STREAM).len()), (None, 0));
    raw.send(&data(1, false, &[0; 16_000]).repeat(4));
    assert_eq!(raw.of_kind(RST_STREAM).len(), 0, "the rest is thrown away");
    raw.send(&data(1, false, &[0; 16_000]).repeat(4));
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::NoError, "but not for ever");
    assert_eq!(receivable(&raw.server), 256 * 1024, "all is given back");
}

/// An upload that the answer did not want is thrown away for a while, then stopped without blame.
#[test]
fn uploads_behind_an_answer() {
    let mut raw = RawServer::new(Mode::AtOnce);
    let before = receivable(&raw.server);
    raw.send(&headers(1, false, &request("POST")));
    raw.send(&data(1, false, &[0; 16_000]).repeat(4));
    assert_eq!(raw.of_kind(RST_STREAM).len(), 0);
    assert_eq!(raw.of_kind(WINDOW_UPDATE).iter().filter(|frame| frame.stream == 1).count(), 1);
    raw.send(&data(1, false, &[0; 16_000]));
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::NoError);
    raw.send(&data(1, true, &[0; 16_000]));
    assert_eq!(
        (raw.of_kind(RST_STREAM).len(), raw.error.clone()),
        (1, None),
        "what was under way is ignored"
    );
    assert_eq!(receivable(&raw.server), before);
    assert_eq!(raw.server.open_streams(), 0);
}

/// An upload that neither ends nor goes on holds no stream for ever, though its answer is out.
#[test]
fn uploads_that_stop_behind_an_answer() {
    let mut raw = RawServer::new(Mode::AtOnce);
    for round in 0..100 {
        raw.send(&headers(id(round), false, &request("POST")));
    }
    assert_eq!(raw.server.open_streams(), 100);
    for _ in 0..8 {
        raw.advance(Duration::from_secs(2));
    }
    let resets = raw.of_kind(RST_STREAM);
    assert_eq!(resets.len(), 100);
    assert!(resets.iter().all(|frame| Reason::from(frame.code()) == Reason::NoError));
    assert_eq!((raw.server.open_streams(), raw.error.clone()), (0, None));
}

#[test]
fn a_transport_that_takes_nothing_ends_the_connection() {
    let mut config = Config::server();
    config.timeouts.idle = None;
    let mut raw = RawServer::with(Mode::AtOnce, config);
    feed(&mut raw.server, &frame(PING, 0, 0, &[0; 8]));
    assert!(raw.server.next_event().is_ok());
    for written in [0, 5] {
        raw.server.handle_timeout(raw.now);
        let mut slices = [std::io::IoSlice::new(&[])];
        assert_eq!(raw.server.poll_transmit(&mut slices), 1);
        raw.server.transmitted(written);
        raw.now += Duration::from_secs(59);
        raw.server.handle_timeout(raw.now);
        assert!(raw.server.next_event().is_ok());
    }
    raw.now += Duration::from_secs(1);
    raw.server.handle_timeout(raw.now);
    assert_eq!(raw.server.next_event().unwrap_err(), Error::Timeout(Timeout::Blocked));
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.answer = letters(1_000);
    let mut round = 0;
    while raw.server.wants_read() {
        feed(&mut raw.server, &headers(id(round), true, &get()));
        while let Ok(Some(ServerEvent::Request { stream, .. })) = raw.server.next_event() {
            raw.respond(stream);
        }
        let mut slices = [std::io::IoSlice::new(&[])];
        raw.server.poll_transmit(&mut slices);
        round += 1;
        assert!(round < 5_000, "it never stops reading");
    }
    assert!(raw.server.queued() < 300 * 1024);
}

#[test]
fn idle_connections_are_closed() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&headers(1, true, &get()));
    raw.advance(Duration::from_secs(59));
    assert_eq!(raw.server.is_closed(), None);
    raw.advance(Duration::from_secs(1));
    assert_eq!(raw.server.is_closed(), Some(CloseReason::Idle));
    assert_eq!((raw.of_kind(GOAWAY)[0].number(0), raw.of_kind(GOAWAY)[0].code()), (1, 0));
}

#[test]
fn malformed_requests_say_why() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    raw.send(&headers(1, false, &[("x", "y")]));
    let Some(ServerEvent::Reset { error, .. }) = raw.events.last() else { panic!() };
    assert_eq!(error.to_string(), "malformed message: trailers that do not end the message");
    assert_eq!(*error, StreamError::Malformed(Malformed::TrailersNotLast));
}
