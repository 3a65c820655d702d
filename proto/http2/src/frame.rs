//! How frames look on the wire (RFC 9113 §4 and §6): heads, kinds, flags, and the writers of every control frame.
//!
//! What a frame *does* is not known here; see [`crate::connection`].

use bytes::{BufMut, BytesMut};

use crate::reason::Reason;

/// Octets in a frame head (RFC 9113 §4.1).
pub(crate) const HEAD_LENGTH: usize = 9;

/// The largest payload that every endpoint takes, and the one that we allow unless configured otherwise
/// (RFC 9113 §4.2).
pub(crate) const DEFAULT_MAX_FRAME_SIZE: u32 = 16_384;

/// What a client sends first (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The largest window, increment and stream id.
pub(crate) const MAX_31: u32 = 0x7fff_ffff;

/// A stream's number on its connection. Clients open odd ones (RFC 9113 §5.1.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    pub(crate) const CONNECTION: StreamId = StreamId(0);

    /// The number as it stands in frames.
    pub fn get(self) -> u32 {
        self.0
    }

    pub(crate) fn is_client(self) -> bool {
        self.0 % 2 == 1
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Frame types (RFC 9113 §6, RFC 9218 §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    /// Ignored, whatever it is (RFC 9113 §4.1).
    Unknown,
}

impl Kind {
    fn from_wire(code: u8) -> Self {
        match code {
            0 => Kind::Data,
            1 => Kind::Headers,
            2 => Kind::Priority,
            3 => Kind::RstStream,
            4 => Kind::Settings,
            5 => Kind::PushPromise,
            6 => Kind::Ping,
            7 => Kind::GoAway,
            8 => Kind::WindowUpdate,
            9 => Kind::Continuation,
            0x10 => Kind::PriorityUpdate,
            _ => Kind::Unknown,
        }
    }

    fn to_wire(self) -> u8 {
        match self {
            Kind::Data => 0,
            Kind::Headers => 1,
            Kind::Priority => 2,
            Kind::RstStream => 3,
            Kind::Settings => 4,
            Kind::PushPromise => 5,
            Kind::Ping => 6,
            Kind::GoAway => 7,
            Kind::WindowUpdate => 8,
            Kind::Continuation => 9,
            Kind::PriorityUpdate => 0x10,
            Kind::Unknown => 0xff,
        }
    }
}

/// Flags, as bits. The same bit means END_STREAM on DATA and HEADERS, ACK on SETTINGS and PING.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The nine octets before every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    pub(crate) stream: StreamId,
}

impl Head {
    /// The head that `bytes` begin with; `None` when they are too few.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let &[l0, l1, l2, kind, flags, s0, s1, s2, s3] = bytes.first_chunk::<HEAD_LENGTH>()?;
        Some(Head {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind: Kind::from_wire(kind),
            flags,
            // The reserved bit is ignored (RFC 9113 §4.1).
            stream: StreamId(u32::from_be_bytes([s0, s1, s2, s3]) & MAX_31),
        })
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Why padding could not be taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadPadding {
    /// There is no room for the pad length itself: FRAME_SIZE_ERROR.
    Missing,
    /// As long as the payload or longer: PROTOCOL_ERROR (RFC 9113 §6.1).
    TooLong,
}

/// Where the content of a padded payload stands: how many octets before it, how many behind.
pub(crate) fn padding(head: &Head, payload: &[u8]) -> Result<(usize, usize), BadPadding> {
    if !head.has(flag::PADDED) {
        return Ok((0, 0));
    }
    let &pad = payload.first().ok_or(BadPadding::Missing)?;
    let pad = usize::from(pad);
    if pad >= payload.len() { Err(BadPadding::TooLong) } else { Ok((1, pad)) }
}

/// An unsigned number of 32 bits at `at`.
pub(crate) fn number(payload: &[u8], at: usize) -> Option<u32> {
    payload.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Settings by their number (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// Octets of one setting.
pub(crate) const SETTING_LENGTH: usize = 6;

/// Writes a frame head.
pub(crate) fn put_head(out: &mut BytesMut, length: usize, kind: Kind, flags: u8, stream: StreamId) {
    let length = length as u32;
    out.put_u32((length << 8) | u32::from(kind.to_wire()));
    out.put_u8(flags);
    out.put_u32(stream.0);
}

pub(crate) fn put_settings(out: &mut BytesMut, settings: &[(u16, u32)]) {
    put_head(out, settings.len() * SETTING_LENGTH, Kind::Settings, 0, StreamId::CONNECTION);
    for &(id, value) in settings {
        out.put_u16(id);
        out.put_u32(value);
    }
}

pub(crate) fn put_settings_ack(out: &mut BytesMut) {
    put_head(out, 0, Kind::Settings, flag::ACK, StreamId::CONNECTION);
}

pub(crate) fn put_ping(out: &mut BytesMut, payload: [u8; 8], ack: bool) {
    put_head(out, payload.len(), Kind::Ping, if ack { flag::ACK } else { 0 }, StreamId::CONNECTION);
    out.extend_from_slice(&payload);
}

pub(crate) fn put_window_update(out: &mut BytesMut, stream: StreamId, increment: u32) {
    put_head(out, 4, Kind::WindowUpdate, 0, stream);
    out.put_u32(increment);
}

pub(crate) fn put_reset(out: &mut BytesMut, stream: StreamId, reason: Reason) {
    put_head(out, 4, Kind::RstStream, 0, stream);
    out.put_u32(reason.into());
}

pub(crate) fn put_goaway(out: &mut BytesMut, last: u32, reason: Reason, debug: &[u8]) {
    put_head(out, 8 + debug.len(), Kind::GoAway, 0, StreamId::CONNECTION);
    out.put_u32(last);
    out.put_u32(reason.into());
    out.extend_from_slice(debug);
}

/// Splits a header block over HEADERS and as many CONTINUATION frames as it takes (RFC 9113 §4.3).
pub(crate) fn put_header_block(
    out: &mut BytesMut,
    stream: StreamId,
    end_stream: bool,
    block: &[u8],
    max: usize,
) {
    let mut kind = Kind::Headers;
    let mut flags = if end_stream { flag::END_STREAM } else { 0 };
    let mut rest = block;
    loop {
        let (part, behind) = rest.split_at_checked(max).unwrap_or((rest, &[]));
        if behind.is_empty() {
            flags |= flag::END_HEADERS;
        }
        put_head(out, part.len(), kind, flags, stream);
        out.extend_from_slice(part);
        if behind.is_empty() {
            return;
        }
        (kind, flags, rest) = (Kind::Continuation, 0, behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let mut out = BytesMut::new();
        put_head(&mut out, 0x12345, Kind::Headers, 0x25, StreamId(7));
        assert_eq!(out[..], [0x01, 0x23, 0x45, 0x01, 0x25, 0, 0, 0, 7]);
        let head = Head::parse(&out).unwrap();
        assert_eq!(head, Head { length: 0x12345, kind: Kind::Headers, flags: 0x25, stream: StreamId(7) });
        assert_eq!(Head::parse(&out[..8]), None);
    }

    #[test]
    fn the_reserved_bit_of_a_stream_id_is_ignored() {
        let head = Head::parse(&[0, 0, 0, 0xee, 0, 0x80, 0, 0, 1]).unwrap();
        assert_eq!((head.kind, head.stream), (Kind::Unknown, StreamId(1)));
    }

    #[test]
    fn padding_is_checked_against_the_payload() {
        let head = Head { length: 0, kind: Kind::Data, flags: flag::PADDED, stream: StreamId(1) };
        assert_eq!(padding(&head, &[]), Err(BadPadding::Missing));
        assert_eq!(padding(&head, &[1]), Err(BadPadding::TooLong));
        assert_eq!(padding(&head, &[0]), Ok((1, 0)));
        assert_eq!(padding(&head, &[2, b'a', 0, 0]), Ok((1, 2)));
        assert_eq!(padding(&Head { flags: 0, ..head }, &[9]), Ok((0, 0)));
    }

    #[test]
    fn a_long_header_block_is_continued() {
        let mut out = BytesMut::new();
        put_header_block(&mut out, StreamId(1), true, b"abcde", 2);
        let expected: [u8; 32] = [
            0, 0, 2, 1, 1, 0, 0, 0, 1, b'a', b'b', //
            0, 0, 2, 9, 0, 0, 0, 0, 1, b'c', b'd', //
            0, 0, 1, 9, 4, 0, 0, 0, 1, b'e',
        ];
        assert_eq!(out[..], expected);
    }
}
