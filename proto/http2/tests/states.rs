//! S27: every frame type on every kind of stream, in every state, with payloads of every length up to a little more than
//! any frame's fixed part. Nothing may panic, and a connection that goes on must go on well.
#![allow(clippy::indexing_slicing)] // The bytes are the test's own.

mod support;

use http::{HeaderMap, StatusCode};
use hyperman_http2::{BodySize, Config, Reason};
use support::raw::{Mode, RawClient, RawServer};
use support::*;

const KINDS: [u8; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0a, 0x10, 0xff];
const FLAGS: [u8; 8] = [0, 1, 4, 5, 8, 0x0d, 0x20, 0xff];

/// The stream ids of interest: the connection, those in a state below, even ones, idle ones, the largest.
const IDS: [u32; 9] = [0, 1, 2, 3, 5, 7, 9, 99, 0x7fff_ffff];

fn payloads() -> Vec<Vec<u8>> {
    let mut payloads: Vec<Vec<u8>> = (0..=14).map(|length| vec![0; length]).collect();
    payloads.extend((1..=14).map(|length| vec![0xff; length]));
    payloads.push(vec![0xff; 300]);
    payloads.push(block(&get()));
    payloads.push([&[255][..], &block(&get())].concat());
    payloads.push(vec![0, 0, 0, 1, 16, 0x82]);
    payloads.push(vec![1, 0x82, 0]);
    payloads
}

/// Streams in every state a server knows: 1 is open, 3 half-closed (remote), 5 closed, 7 reset by the client, 9 idle. An
/// answer on 1 makes it half-closed (local).
fn states(server: &mut RawServer, answered: bool) {
    server.send(
        &[
            headers(1, false, &request("POST")),
            headers(3, true, &get()),
            headers(5, true, &get()),
            headers(7, false, &request("POST")),
            rst_stream(7, 8),
        ]
        .concat(),
    );
    let requests = server.requests();
    server.respond(requests[2]);
    if answered {
        server.respond(requests[0]);
    }
    server.turn();
    server.frames.clear();
}

#[test]
fn every_frame_on_every_stream_of_a_server() {
    let payloads = payloads();
    let mut cases = 0;
    for answered in [false, true] {
        for kind in KINDS {
            for flags in FLAGS {
                for id in IDS {
                    for payload in &payloads {
                        let mut raw = RawServer::new(Mode::Never);
                        states(&mut raw, answered);
                        raw.send(&frame(kind, flags, id, payload));
                        aftermath(&mut raw);
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, 2 * 13 * 8 * 9 * payloads.len());
}

/// Either the connection is over, and has said so with a GOAWAY, or it still serves.
fn aftermath(raw: &mut RawServer) {
    if raw.error.is_some() {
        assert_eq!(raw.of_kind(GOAWAY).len(), 1, "{:?}", raw.error);
        assert!(raw.server.is_closed().is_some());
        return;
    }
    assert_eq!(raw.of_kind(GOAWAY).len(), 0);
    raw.send(&headers(0x7fff_fffd, true, &get()));
    let served = raw.requests().last().is_some_and(|stream| stream.get() >= 0x7fff_fffd);
    assert!(served || raw.error.is_some(), "{:?}", raw.frames);
}

#[test]
fn every_frame_before_and_within_the_handshake() {
    for kind in KINDS {
        for flags in FLAGS {
            for id in IDS {
                for payload in &payloads() {
                    let frame = frame(kind, flags, id, payload);
                    let mut raw = RawServer::bare(Mode::AtOnce, Config::server());
                    raw.send(&[&hyperman_http2::PREFACE[..], &frame].concat());
                    let settings = kind == SETTINGS && id == 0 && flags & ACK == 0 && payload.len() % 6 == 0;
                    assert!(settings || raw.error.is_some() || payload.len() > 16_384, "{frame:?}");

                    let mut raw = RawServer::new(Mode::AtOnce);
                    raw.send(&support::frame(HEADERS, END_STREAM, 1, &block(&get())[..7]));
                    raw.send(&frame);
                    assert!(raw.error.is_some() || (kind == CONTINUATION && id == 1), "{frame:?}");
                }
            }
        }
    }
}

#[test]
fn every_frame_on_every_stream_of_a_client() {
    for kind in KINDS {
        for flags in FLAGS {
            for id in IDS {
                for payload in &payloads() {
                    let mut raw = RawClient::new();
                    // 1 waits for its answer, 3 reads one, 5 has one, 7 was cancelled, 9 is idle.
                    for _ in 0..4 {
                        raw.get();
                    }
                    raw.send(&headers(3, false, &[(":status", "200")]));
                    raw.send(&headers(5, true, &[(":status", "200")]));
                    let cancelled = raw.client.open_streams();
                    assert_eq!(cancelled, 4);
                    raw.frames.clear();
                    raw.send(&frame(kind, flags, id, payload));
                    match &raw.error {
                        Some(hyperman_http2::Error::GoAway { .. }) | None => {}
                        Some(error) => assert_eq!(raw.of_kind(GOAWAY).len(), 1, "{error:?}"),
                    }
                }
            }
        }
    }
}

/// RFC 9113 §8.5: nothing but DATA belongs to a tunnel, and its end is END_STREAM.
#[test]
fn header_fields_inside_of_a_tunnel_reset_it() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &[(":method", "CONNECT"), (":authority", "a:1")]));
    let [stream] = raw.requests()[..] else { panic!("{:?}", raw.events) };
    raw.server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    raw.send(&data(1, false, b"in the tunnel"));
    assert_eq!(raw.of_kind(RST_STREAM).len(), 0);
    raw.send(&headers(1, true, &[("x", "y")]));
    let codes: Vec<u32> = raw.of_kind(RST_STREAM).iter().map(|frame| frame.code()).collect();
    assert_eq!(codes, [u32::from(Reason::ProtocolError)]);
}

/// RFC 9110 §10.1.1: an expectation that nobody knows is answered with 417, and the connection goes on.
#[test]
fn an_unknown_expectation_is_refused() {
    let mut raw = RawServer::new(Mode::AtOnce);
    raw.send(&headers(1, true, &[get(), vec![("expect", "the unexpected")]].concat()));
    assert_eq!(raw.requests(), []);
    let [head] = raw.of_kind(HEADERS)[..] else { panic!("{:?}", raw.frames) };
    assert_eq!((head.stream, head.flags & END_STREAM), (1, END_STREAM));
    raw.send(&headers(3, true, &get()));
    assert_eq!(raw.requests().len(), 1);
    assert_eq!(raw.of_kind(RST_STREAM).len() + raw.of_kind(GOAWAY).len(), 0);
}

/// Behind the GOAWAY that ends a connection, nothing is said of streams whose handlers are dropped for it.
#[test]
fn a_fault_of_the_connection_is_the_last_word() {
    let mut raw = RawServer::new(Mode::Never);
    raw.send(&headers(1, false, &request("POST")));
    let [stream] = raw.requests()[..] else { panic!("{:?}", raw.events) };
    raw.send(&frame(PING, 0, 0, b"short"));
    assert!(raw.error.is_some());
    raw.server.finished(stream);
    raw.turn();
    assert_eq!(raw.frames.last().map(|frame| frame.kind), Some(GOAWAY));
    assert_eq!(raw.of_kind(RST_STREAM).len(), 0);
}
