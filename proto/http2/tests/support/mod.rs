//! Frames written by hand, and endpoints driven in memory under virtual time.
#![allow(dead_code, clippy::disallowed_methods, clippy::unwrap_used, clippy::indexing_slicing)]

pub mod exchange;
pub mod pair;
pub mod raw;

use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyperman_http2::Connection;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 0x10;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const WITH_PRIORITY: u8 = 0x20;

/// A frame as it was written to the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The error code of RST_STREAM or GOAWAY.
    pub fn code(&self) -> u32 {
        let at = if self.kind == GOAWAY { 4 } else { 0 };
        self.number(at)
    }

    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in entries {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

/// A header block of literals without indexing (RFC 7541 §6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            if text.len() < 127 {
                out.push(text.len() as u8);
            } else {
                out.push(127);
                let mut rest = text.len() - 127;
                while rest >= 128 {
                    out.push(128 | (rest % 128) as u8);
                    rest /= 128;
                }
                out.push(rest as u8);
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

pub fn get() -> Vec<(&'static str, &'static str)> {
    request("GET")
}

pub fn request(method: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![(":method", method), (":scheme", "http"), (":path", "/"), (":authority", "example.com")]
}

/// HEADERS that are a whole header block.
pub fn headers(stream: u32, end_stream: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | u8::from(end_stream), stream, &block(fields))
}

pub fn data(stream: u32, end_stream: bool, content: &[u8]) -> Vec<u8> {
    frame(DATA, u8::from(end_stream), stream, content)
}

/// Takes a stream of frames apart. The client's preface is skipped.
pub fn parse(mut wire: &[u8]) -> Vec<Frame> {
    wire = wire.strip_prefix(hyperman_http2::PREFACE).unwrap_or(wire);
    let mut frames = Vec::new();
    while !wire.is_empty() {
        let length = u32::from_be_bytes([0, wire[0], wire[1], wire[2]]) as usize;
        let stream = u32::from_be_bytes(wire[5..9].try_into().unwrap());
        frames.push(Frame { kind: wire[3], flags: wire[4], stream, payload: wire[9..9 + length].to_vec() });
        wire = &wire[9 + length..];
    }
    frames
}

/// Takes all that a machine wants to write.
pub fn written(machine: &mut Connection) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let part = write_once(machine);
        if part.is_empty() {
            return out;
        }
        out.extend_from_slice(&part);
    }
}

/// One write, as large as the machine makes it.
pub fn write_once(machine: &mut Connection) -> Vec<u8> {
    let mut slices = [IoSlice::new(&[]); 64];
    let filled = machine.poll_transmit(&mut slices);
    let out: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
    machine.transmitted(out.len());
    out
}

pub fn feed(machine: &mut Connection, bytes: &[u8]) {
    machine.read_buf().extend_from_slice(bytes);
    machine.received(bytes.len());
}

/// Octets on their way in one direction, each batch with the time at which it arrives.
#[derive(Default)]
pub struct Path {
    under_way: std::collections::VecDeque<(Instant, Vec<u8>)>,
}

impl Path {
    pub fn send(&mut self, now: Instant, delay: Duration, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.under_way.push_back((now + delay, bytes));
        }
    }

    pub fn arrival(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    pub fn receive(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.arrival()? <= now { self.under_way.pop_front().map(|(_, bytes)| bytes) } else { None }
    }
}

/// What the peer may send on the whole connection, once it has been told all.
pub fn receivable(machine: &Connection) -> i64 {
    let windows = machine.connection_windows();
    windows.granted + i64::from(windows.due)
}

pub fn letters(length: usize) -> Bytes {
    Bytes::from(vec![b'x'; length])
}
