//! The same bytes mean the same, however they are cut: at every byte, and byte by byte.
#![allow(clippy::indexing_slicing)] // The bytes are the test's own.

mod support;

use hyperman_http2::{ClientEvent, ServerEvent};
use support::raw::{Mode, RawClient, RawServer};
use support::*;

/// A conversation that uses every frame.
fn requests() -> Vec<u8> {
    let head = block(
        &[request("POST"), vec![("cookie", "a=1"), ("cookie", "b=2"), ("content-length", "7")]].concat(),
    );
    [
        frame(HEADERS, WITH_PRIORITY | PADDED, 1, &[&[2, 0, 0, 0, 0, 9][..], &head[..20], &[0, 0]].concat()),
        frame(CONTINUATION, 0, 1, &head[20..30]),
        frame(CONTINUATION, END_HEADERS, 1, &head[30..]),
        frame(PRIORITY_UPDATE, 0, 0, &[0, 0, 0, 1, b'u', b'=', b'1']),
        data(1, false, b"abc"),
        frame(PING, 0, 0, b"12345678"),
        frame(DATA, PADDED, 1, &[2, b'd', b'e', 0, 0]),
        settings(&[(4, 100), (1, 0)]),
        window_update(0, 1000),
        window_update(1, 1000),
        data(1, false, b"fg"),
        headers(1, true, &[("x-sum", "1")]),
        headers(3, true, &get()),
        headers(5, false, &get()),
        rst_stream(5, 8),
        frame(0x55, 0, 7, b"unknown"),
        headers(7, true, &[("x", "no pseudo-fields")]),
        headers(9, true, &get()),
        goaway(0, 0),
    ]
    .concat()
}

/// Events in words, with adjacent DATA of a stream joined: where a frame ends is not part of the meaning.
fn in_words(events: &[ServerEvent]) -> Vec<String> {
    events.iter().map(|event| format!("{event:?}")).collect()
}

fn served(parts: &[&[u8]]) -> (Vec<String>, Vec<Frame>) {
    let mut raw = RawServer::new(Mode::ReadsBody);
    for part in parts {
        raw.send(part);
    }
    assert_eq!(raw.error, None);
    (in_words(&raw.events), raw.frames)
}

#[test]
fn requests_cut_at_every_byte() {
    let bytes = requests();
    let whole = served(&[&bytes]);
    assert_eq!(whole.0.len(), 11, "{:#?}", whole.0);
    for at in 1..bytes.len() {
        let (events, frames) = served(&[&bytes[..at], &bytes[at..]]);
        assert_eq!(events, whole.0, "cut at {at}");
        assert_eq!(sorted(frames), sorted(whole.1.clone()), "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(served(&single).0, whole.0);
}

/// What is written is the same but for its order, which depends on what else is waiting.
fn sorted(mut frames: Vec<Frame>) -> Vec<(u8, u32, Vec<u8>)> {
    frames.sort_by_key(|frame| (frame.kind, frame.stream));
    frames.into_iter().map(|frame| (frame.kind, frame.stream, frame.payload)).collect()
}

#[test]
fn responses_cut_at_every_byte() {
    let bytes = [
        headers(1, false, &[(":status", "103"), ("link", "a")]),
        frame(HEADERS, 0, 1, &block(&[(":status", "200")])),
        frame(CONTINUATION, END_HEADERS, 1, &block(&[("x", "y")])),
        data(1, false, b"hello"),
        frame(DATA, PADDED, 1, &[1, b'!', 0]),
        headers(1, true, &[("x-sum", "1")]),
        settings(&[(3, 7)]),
        headers(3, false, &[(":status", "200"), ("content-length", "1")]),
        data(3, true, b"too long"),
        goaway(3, 0),
    ]
    .concat();
    let received = |parts: &[&[u8]]| {
        let mut raw = RawClient::new();
        raw.get();
        raw.get();
        for part in parts {
            raw.send(part);
        }
        assert_eq!(raw.error, None);
        let events: Vec<String> = raw.events.iter().map(|event: &ClientEvent| format!("{event:?}")).collect();
        events
    };
    let whole = received(&[&bytes]);
    assert_eq!(whole.len(), 10, "{whole:#?}");
    for at in 1..bytes.len() {
        assert_eq!(received(&[&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(received(&single), whole);
}
