//! HTTP/2 frames in bytes, for a peer that sends what no machine of ours would.

use crate::peer::Peer;

/// Frame types and flags (RFC 9113 §6).
#[allow(missing_docs)] // they are the standard's names
pub mod kind {
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
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const WITH_PRIORITY: u8 = 0x20;
}

use kind::*;

/// A frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// What follows its head.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The number of 32 bits at this place of the payload.
    ///
    /// # Panics
    /// When there is none.
    pub fn number(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk());
        u32::from_be_bytes(*bytes.expect("a number"))
    }

    /// The status of a head: one of the static table, or a literal as ours writes it.
    ///
    /// # Panics
    /// When it begins with something else.
    pub fn status(&self) -> u16 {
        match *self.payload.as_slice() {
            [index @ 0x88..=0x8e, ..] => [200, 204, 206, 304, 400, 404, 500][usize::from(index - 0x88)],
            [0x08, 3, a, b, c, ..] => [a, b, c].iter().fold(0, |n, digit| 10 * n + u16::from(digit - b'0')),
            ref other => panic!("no status: {other:02x?}"),
        }
    }

    /// Whether it is the last of its stream.
    pub fn ends(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}

/// A frame in bytes.
///
/// # Panics
/// When the payload is longer than a frame can be.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let length = u32::try_from(payload.len()).expect("a payload that a frame can have");
    let mut frame = length.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header block of literals, none of them indexed (RFC 7541 §6.2.2).
///
/// # Panics
/// When a text is longer than 16 KiB.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            match text.len() {
                length @ 0..127 => block.push(u8::try_from(length).expect("below 127")),
                length => {
                    let rest = length - 127;
                    let low = u8::try_from(rest % 128).expect("below 128");
                    let high = u8::try_from(rest / 128).ok().filter(|high| *high < 128);
                    block.extend([127, low | 128, high.expect("a shorter text")]);
                }
            }
            block.extend(text.as_bytes());
        }
    }
    block
}

/// The fields of a request, with others behind them.
pub fn request<'a>(method: &'a str, path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<u8> {
    let pseudo = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    block(&[&pseudo[..], more].concat())
}

/// HEADERS that are a whole header block.
pub fn headers(stream: u32, end_stream: bool, block: impl AsRef<[u8]>) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | u8::from(end_stream), stream, block)
}

/// DATA.
pub fn data(stream: u32, end_stream: bool, content: impl AsRef<[u8]>) -> Vec<u8> {
    frame(DATA, u8::from(end_stream), stream, content)
}

/// SETTINGS.
pub fn settings(entries: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in entries {
        payload.extend(id.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, payload)
}

/// WINDOW_UPDATE.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, increment.to_be_bytes())
}

/// RST_STREAM.
pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, code.to_be_bytes())
}

/// What a client sends first: the preface, its settings, and the acknowledgement of ours.
pub fn opening(entries: &[(u16, u32)]) -> Vec<u8> {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    [&preface[..], &settings(entries), &frame(SETTINGS, ACK, 0, [])].concat()
}

impl Peer {
    /// The next frame.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn frame(&mut self) -> Frame {
        let head = self.exactly(9);
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = self.exactly(usize::try_from(length).expect("24 bits"));
        Frame { kind: head[3], flags: head[4], stream, payload }
    }

    /// The frames up to the first that is looked for.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn frames_until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.frame();
            let found = wanted(&frame);
            frames.push(frame);
            if found {
                return frames;
            }
        }
    }
}
