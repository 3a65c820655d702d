//! What the HTTP/2 targets share: frames made of fuzz input, and the bytes that a machine writes.
#![allow(dead_code)]

use std::io::IoSlice;

use hyperman_http2::Connection;

/// The settings of a peer, and its acknowledgement of ours.
pub const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";

/// Beginnings of header blocks that are right: `GET /`, `POST /` with five bytes, an answer, an interim one.
const BLOCKS: [&[u8]; 4] =
    [b"\x82\x86\x84\x41\x01a", b"\x83\x86\x84\x41\x01a\x5c\x015", b"\x88", b"\x08\x03103"];

/// Turns input into frames: each takes a kind, flags, a stream and a length from it, and then its payload. So the fuzzer
/// need not find out about lengths by itself, nor about the fields that every message has: a kind from 0x80 on gives
/// a HEADERS frame that begins with one of [`BLOCKS`]. Input that begins with an odd byte is taken as it is.
pub fn frames(input: &[u8]) -> Vec<u8> {
    let Some((&how, mut rest)) = input.split_first() else { return Vec::new() };
    if how % 2 == 1 {
        return rest.to_vec();
    }
    let mut out = Vec::new();
    while let [kind, flags, stream, length, tail @ ..] = rest {
        let (payload, behind) = tail.split_at(usize::from(*length).min(tail.len()));
        let (kind, block) = match kind {
            0x80.. => (1, BLOCKS[usize::from(kind % 4)]),
            _ => (kind % 18, &b""[..]),
        };
        out.extend_from_slice(&((block.len() + payload.len()) as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[kind, *flags, 0, 0, 0, *stream]);
        out.extend_from_slice(block);
        out.extend_from_slice(payload);
        rest = behind;
    }
    out
}

/// Takes all that is to be written, in writes of a few slices, and checks that it is made of whole frames.
pub fn drain(machine: &mut Connection) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let mut slices = [IoSlice::new(&[]); 3];
        let filled = machine.poll_transmit(&mut slices);
        let before = out.len();
        for slice in &slices[..filled] {
            out.extend_from_slice(slice);
        }
        machine.transmitted(out.len() - before);
        if out.len() == before {
            break;
        }
    }
    assert!(!machine.has_transmit());
    let mut rest = out.strip_prefix(&hyperman_http2::PREFACE[..]).unwrap_or(&out);
    while !rest.is_empty() {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        assert!(length <= 16_384, "a frame larger than the peer allows");
        rest = &rest[9 + length..];
    }
    out
}

pub fn feed(machine: &mut Connection, bytes: &[u8]) {
    machine.read_buf().extend_from_slice(bytes);
    machine.received(bytes.len());
}
