//! Header compression (RFC 7541): the only place that knows how a field looks inside a header block.
//!
//! [`Decoder`] turns a complete header block into fields, [`Encoder`] the reverse. Two kinds of trouble are kept apart.
//! A block that cannot be *decoded* is a [`CompressionError`]: the dynamic tables of the two ends no longer agree, so the
//! connection is lost (RFC 9113 §4.3). A field that decodes well but is *malformed*, as an upper-case name, concerns its
//! message alone; it is reported as [`Field::Malformed`] and decoding goes on, so that the tables stay in step.
//!
//! Why this is ours and not the codec of the `h2` crate: that codec stops in the middle of the block at a malformed
//! field, which leaves its dynamic table out of step, and it reports the one trouble and the other with the same value,
//! so neither COMPRESSION_ERROR nor the stream error that RFC 9113 §8.1.1 asks for can be told from it. It also holds
//! 28 KiB per connection, where this engine owns what the peer put into its dynamic table and nothing more.

mod decode;
mod encode;
mod huffman;
mod primitive;
mod static_table;
#[cfg(test)]
#[allow(clippy::disallowed_types, clippy::disallowed_methods, clippy::unwrap_used, clippy::indexing_slicing)]
mod vectors;

use std::fmt;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;

/// The pseudo-fields that exist (RFC 9113 §8.3, RFC 8441 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pseudo {
    Authority,
    Method,
    Path,
    Protocol,
    Scheme,
    Status,
}

impl Pseudo {
    const ALL: [Pseudo; 6] =
        [Pseudo::Authority, Pseudo::Method, Pseudo::Path, Pseudo::Protocol, Pseudo::Scheme, Pseudo::Status];

    /// The name as it stands in a header block, colon included.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pseudo::Authority => ":authority",
            Pseudo::Method => ":method",
            Pseudo::Path => ":path",
            Pseudo::Protocol => ":protocol",
            Pseudo::Scheme => ":scheme",
            Pseudo::Status => ":status",
        }
    }

    fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|pseudo| pseudo.name().as_bytes() == name)
    }
}

/// A field as it came out of a header block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    /// A pseudo-field; its value obeys the rules for field values, nothing more.
    Pseudo(Pseudo, Bytes),
    /// An ordinary field.
    Regular(HeaderName, HeaderValue),
    /// A field that no message may carry (RFC 9113 §8.2.1): an upper-case or otherwise forbidden name, an unknown
    /// pseudo-field, or a value with forbidden bytes or with white space at an end.
    Malformed,
}

/// What a field counts for against a table or a limit beside its own bytes (RFC 7541 §4.1, RFC 9113 §6.5.2).
pub(crate) const FIELD_OVERHEAD: usize = 32;

/// Why a header block could not be decoded. The connection cannot go on (RFC 9113 §4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionError {
    /// The block ends within a field.
    Truncated,
    /// An integer takes more than 28 bits (RFC 7541 §5.1).
    IntegerTooLarge,
    /// An index of zero or behind the end of the tables (RFC 7541 §2.3.3, §6.1).
    BadIndex,
    /// A string in bad Huffman code (RFC 7541 §5.2).
    Huffman,
    /// A table size update that is larger than we allowed, or that does not stand at the start of its block
    /// (RFC 7541 §4.2, §6.3).
    BadSizeUpdate,
    /// The table size update that our settings ask for is missing (RFC 7541 §4.2).
    MissingSizeUpdate,
}

impl fmt::Display for CompressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompressionError::Truncated => "the header block ends within a field",
            CompressionError::IntegerTooLarge => "an integer in the header block is too large",
            CompressionError::BadIndex => "an index in the header block leads nowhere",
            CompressionError::Huffman => "a string in the header block has bad Huffman code",
            CompressionError::BadSizeUpdate => "a dynamic table size update that is not allowed",
            CompressionError::MissingSizeUpdate => "the dynamic table size update is missing",
        })
    }
}
