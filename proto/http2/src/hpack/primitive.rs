//! Integers and strings of HPACK (RFC 7541 §5), read from a slice and written to a buffer.

use bytes::{BufMut, BytesMut};

use super::{CompressionError, huffman};

/// What is left of a header block.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &'a [u8]) -> Self {
        Reader { rest: block }
    }

    /// The first byte of the next representation; it stays to be read as the first byte of its integer.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn byte(&mut self) -> Result<u8, CompressionError> {
        let (&first, rest) = self.rest.split_first().ok_or(CompressionError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// An integer whose first bits are the lowest `prefix` bits of the next byte (RFC 7541 §5.1).
    pub(super) fn integer(&mut self, prefix: u32) -> Result<usize, CompressionError> {
        let mask = (1u32 << prefix) - 1;
        let mut value = u32::from(self.byte()?) & mask;
        if value < mask {
            return Ok(value as usize);
        }
        // Four more bytes carry 28 bits, far above any index, length or table size that we would accept.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value as usize);
            }
        }
        Err(CompressionError::IntegerTooLarge)
    }

    /// A string (RFC 7541 §5.2); one in Huffman code is put into `scratch`.
    pub(super) fn string<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Result<&'s [u8], CompressionError>
    where
        'a: 's,
    {
        let coded = self.peek().ok_or(CompressionError::Truncated)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(CompressionError::Truncated)?;
        self.rest = rest;
        if !coded {
            return Ok(text);
        }
        scratch.clear();
        huffman::decode(text, scratch).map_err(|_| CompressionError::Huffman)?;
        Ok(scratch)
    }
}

/// Writes `value` with `prefix` bits in the first byte, whose other bits are those of `pattern`.
pub(super) fn put_integer(value: usize, prefix: u32, pattern: u8, out: &mut BytesMut) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.put_u8(pattern | value as u8);
        return;
    }
    out.put_u8(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.put_u8(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

/// Writes a string, in Huffman code where that is shorter.
pub(super) fn put_string(text: &[u8], out: &mut BytesMut) {
    let coded = huffman::encoded_len(text);
    if coded < text.len() {
        put_integer(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        put_integer(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 Appendix C.1.
    #[test]
    fn the_integers_of_the_standard() {
        let cases: [(usize, u32, &[u8]); 3] =
            [(10, 5, &[0x0a]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])];
        for (value, prefix, wire) in cases {
            let mut out = BytesMut::new();
            put_integer(value, prefix, 0, &mut out);
            assert_eq!(out, wire);
            assert_eq!(Reader::new(wire).integer(prefix), Ok(value));
        }
    }

    #[test]
    fn an_integer_that_ends_early_or_never_is_refused() {
        assert_eq!(Reader::new(&[]).integer(7), Err(CompressionError::Truncated));
        assert_eq!(Reader::new(&[0x7f]).integer(7), Err(CompressionError::Truncated));
        assert_eq!(Reader::new(&[0x7f, 0x80]).integer(7), Err(CompressionError::Truncated));
        let endless = [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader::new(&endless).integer(7), Err(CompressionError::IntegerTooLarge));
    }

    #[test]
    fn a_string_longer_than_its_block_is_refused() {
        let mut scratch = Vec::new();
        assert_eq!(Reader::new(&[0x03, b'a', b'b']).string(&mut scratch), Err(CompressionError::Truncated));
        assert_eq!(Reader::new(&[0x02, b'a', b'b']).string(&mut scratch), Ok(&b"ab"[..]));
    }
}
