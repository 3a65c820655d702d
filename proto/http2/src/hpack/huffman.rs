//! The Huffman code of HPACK (RFC 7541 §5.2 and Appendix B), both directions.
//!
//! The code is canonical: the lengths alone determine it. So the lengths are all that is written down here, and every
//! table is computed from them at compile time.

use bytes::{BufMut, BytesMut};

/// Code lengths in bits, by symbol. The last one, 256, is the end-of-string symbol, which never appears on the wire.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, //
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, //
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, //
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, //
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, //
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, //
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, //
    30,
];

/// The longest code, in bits.
const LONGEST: usize = 30;

/// Codes up to this many bits are found by one look-up; they cover all of printable ASCII that is common in fields.
const DIRECT_BITS: u32 = 8;

/// Everything the two directions need, computed from [`LENGTHS`].
struct Code {
    /// The code of each byte, in its lowest bits.
    words: [u32; 256],
    /// For each eight bits: the symbol whose code they begin with and its length, or length 0 when the code is longer.
    direct: [(u8, u8); 256],
    /// For each length: the first code of the *next* length, aligned to the left of 32 bits, or 0 when no code is so
    /// long. A window below it holds a code of at most this length.
    limit: [u64; LONGEST + 1],
    /// For each length: what to add to a code of that length to get its place in `order`.
    offset: [i32; LONGEST + 1],
    /// Symbols in the order of their codes.
    order: [u16; 257],
}

static CODE: Code = build();

// Runs at compile time only, where an index out of bounds is a compile error.
#[allow(clippy::indexing_slicing)]
const fn build() -> Code {
    let mut code = Code {
        words: [0; 256],
        direct: [(0, 0); 256],
        limit: [0; LONGEST + 1],
        offset: [0; LONGEST + 1],
        order: [0; 257],
    };
    let mut next: u32 = 0;
    let mut place: usize = 0;
    let mut length: usize = 1;
    while length <= LONGEST {
        next <<= 1;
        code.offset[length] = place as i32 - next as i32;
        let first = place;
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                code.order[place] = symbol as u16;
                if symbol < 256 {
                    code.words[symbol] = next;
                    if length <= DIRECT_BITS as usize {
                        let shift = DIRECT_BITS as usize - length;
                        let mut tail = 0;
                        while tail < 1 << shift {
                            code.direct[((next as usize) << shift) + tail] = (symbol as u8, length as u8);
                            tail += 1;
                        }
                    }
                }
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        if place > first {
            code.limit[length] = (next as u64) << (32 - length);
        }
        length += 1;
    }
    code
}

/// How many bytes [`encode`] will append for `text`.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(length_of(byte))).sum();
    bits.div_ceil(8)
}

fn length_of(byte: u8) -> u8 {
    LENGTHS.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Appends `text` in Huffman code, padded with the high bits of the end-of-string symbol, which are all ones.
pub(super) fn encode(text: &[u8], out: &mut BytesMut) {
    let mut window: u64 = 0;
    let mut filled: u32 = 0;
    for &byte in text {
        let word = CODE.words.get(usize::from(byte)).copied().unwrap_or(0);
        let length = u32::from(length_of(byte));
        window = (window << length) | u64::from(word);
        filled += length;
        if filled >= 32 {
            filled -= 32;
            out.put_u32((window >> filled) as u32);
        }
    }
    while filled >= 8 {
        filled -= 8;
        out.put_u8((window >> filled) as u8);
    }
    if filled > 0 {
        let padding = 8 - filled;
        out.put_u8((((window << padding) | ((1 << padding) - 1)) & 0xff) as u8);
    }
}

/// Why a Huffman-coded string was refused (RFC 7541 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadHuffman;

/// Appends what `coded` stands for to `out`. Its cost is linear in `coded`: no symbol takes more than a walk over the
/// code lengths.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), BadHuffman> {
    out.reserve(coded.len().saturating_mul(8) / 5 + 1);
    let mut rest = coded.iter();
    // The next bits, the first one leftmost; only the first `filled` of them are there.
    let mut window: u64 = 0;
    let mut filled: u32 = 0;
    loop {
        while filled <= 56 {
            let Some(&byte) = rest.next() else { break };
            window |= u64::from(byte) << (56 - filled);
            filled += 8;
        }
        if filled == 0 {
            return Ok(());
        }
        let (symbol, length) = next_symbol(window);
        if length > filled || symbol == 256 {
            return end_padding(window, filled);
        }
        out.push(symbol as u8);
        window <<= length;
        filled -= length;
    }
}

/// The symbol at the left of the window and the length of its code. What lies beyond the input reads as zeros; the
/// caller compares the length with what was there.
fn next_symbol(window: u64) -> (u16, u32) {
    let (symbol, length) = CODE.direct.get((window >> 56) as usize).copied().unwrap_or((0, 0));
    if length > 0 {
        return (u16::from(symbol), u32::from(length));
    }
    let bits = window >> 32;
    let longer = CODE.limit.iter().zip(&CODE.offset).enumerate().skip(DIRECT_BITS as usize + 1);
    for (length, (&limit, &offset)) in longer {
        if bits < limit {
            let word = (bits >> (32 - length)) as i32;
            let place = usize::try_from(word + offset).unwrap_or(usize::MAX);
            return (CODE.order.get(place).copied().unwrap_or(256), length as u32);
        }
    }
    (256, LONGEST as u32)
}

/// What is left over must be a strict prefix of the end-of-string symbol: fewer than eight bits, all ones.
fn end_padding(window: u64, filled: u32) -> Result<(), BadHuffman> {
    let all_ones = filled < 8 && window >> (64 - filled) == (1 << filled) - 1;
    if all_ones { Ok(()) } else { Err(BadHuffman) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = BytesMut::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_len(text));
        out.to_vec()
    }

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, BadHuffman> {
        let mut out = Vec::new();
        decode(coded, &mut out)?;
        Ok(out)
    }

    /// The two strings of RFC 7541 Appendix C.4.1 and C.6.1.
    #[test]
    fn the_examples_of_the_standard() {
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(encoded(b"www.example.com"), host);
        assert_eq!(decoded(&host).unwrap(), b"www.example.com");
        let date = [
            0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66,
            0xe0, 0x82, 0xa6, 0x2d, 0x1b, 0xff,
        ];
        assert_eq!(encoded(b"Mon, 21 Oct 2013 20:13:21 GMT"), date);
        assert_eq!(decoded(&date).unwrap(), b"Mon, 21 Oct 2013 20:13:21 GMT");
    }

    #[test]
    fn every_byte_alone_and_in_every_pair_comes_back() {
        for first in 0..=255u8 {
            assert_eq!(decoded(&encoded(&[first])).unwrap(), [first]);
            for second in 0..=255u8 {
                assert_eq!(decoded(&encoded(&[first, second])).unwrap(), [first, second]);
            }
        }
    }

    #[test]
    fn padding_of_eight_bits_or_of_other_bits_than_ones_is_refused() {
        assert_eq!(decoded(&[0x1f]).unwrap(), b"a", "five bits of `a` and three ones");
        assert_eq!(decoded(&[0x1f, 0xff]), Err(BadHuffman), "eleven ones");
        assert_eq!(decoded(&[0xff]), Err(BadHuffman), "eight ones");
        assert_eq!(decoded(&[0x18]), Err(BadHuffman), "zeros");
    }

    #[test]
    fn the_end_of_string_symbol_is_refused() {
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(BadHuffman));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc, 0x1f]), Err(BadHuffman));
    }
}
