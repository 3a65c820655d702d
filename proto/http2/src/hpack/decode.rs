//! From a header block to fields (RFC 7541 §3 and §6), with the dynamic table that the peer fills.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};

use super::primitive::Reader;
use super::static_table::{STATIC, StaticName};
use super::{CompressionError, FIELD_OVERHEAD, Field, Pseudo};

/// Decodes the header blocks of one direction of one connection, in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The dynamic table, newest entry first.
    entries: VecDeque<Entry>,
    size: usize,
    /// The size that the peer chose, at most `allowed`.
    max_size: usize,
    /// SETTINGS_HEADER_TABLE_SIZE as the peer knows it.
    allowed: usize,
    /// Our setting went below what the peer uses: its next block must begin with a size update (RFC 7541 §4.2).
    update_due: bool,
    /// Counts the changes of the dynamic table. Equal bytes decode to equal fields while it stands still.
    version: u64,
    scratch: Vec<u8>,
}

/// Field name and value of an entry; what is malformed is kept as its length, which the table size still counts.
#[derive(Debug, Clone)]
struct Entry {
    name: Name,
    value: Value,
}

#[derive(Debug, Clone)]
enum Name {
    Pseudo(Pseudo),
    Field(HeaderName),
    Malformed(usize),
}

#[derive(Debug, Clone)]
enum Value {
    /// Of a pseudo-field, whose readers want bytes.
    Pseudo(Bytes),
    Field(HeaderValue),
    Malformed(usize),
}

impl Decoder {
    pub(crate) fn new(table_size: usize) -> Self {
        Decoder {
            entries: VecDeque::new(),
            size: 0,
            max_size: table_size,
            allowed: table_size,
            update_due: false,
            version: 0,
            scratch: Vec::new(),
        }
    }

    /// The peer has acknowledged a SETTINGS_HEADER_TABLE_SIZE of ours.
    pub(crate) fn set_allowed(&mut self, allowed: usize) {
        self.allowed = allowed;
        self.update_due = allowed < self.max_size;
    }

    /// See the field of the same name.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Whether the dynamic table holds nothing, so that a fresh decoder could take the place of this one.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Decodes a complete block and hands each field with its size, the 32 octets of RFC 9113 §6.5.2 included, to
    /// `sink`. When the sink breaks off, the rest of the block is not decoded and the decoder is of no more use.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut sink: impl FnMut(Field, usize) -> ControlFlow<()>,
    ) -> Result<(), CompressionError> {
        let mut reader = Reader::new(block);
        self.size_updates(&mut reader)?;
        while let Some(first) = reader.peek() {
            let entry = match first {
                0x80.. => {
                    let index = reader.integer(7)?;
                    self.entry(index)?
                }
                0x40.. => {
                    let entry = self.literal(&mut reader, 6)?;
                    self.insert(entry.clone());
                    entry
                }
                // A size update behind a field (RFC 7541 §4.2).
                0x20.. => return Err(CompressionError::BadSizeUpdate),
                0x10.. => {
                    let mut entry = self.literal(&mut reader, 4)?;
                    if let Value::Field(value) = &mut entry.value {
                        value.set_sensitive(true);
                    }
                    entry
                }
                _ => self.literal(&mut reader, 4)?,
            };
            let size = entry.size();
            if sink(entry.into_field(), size).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn size_updates(&mut self, reader: &mut Reader<'_>) -> Result<(), CompressionError> {
        while let Some(0x20..=0x3f) = reader.peek() {
            let size = reader.integer(5)?;
            if size > self.allowed {
                return Err(CompressionError::BadSizeUpdate);
            }
            self.update_due = false;
            self.max_size = size;
            self.evict(0);
            self.version += 1;
        }
        // An empty block has no first field to stand before, so nothing is missing from it yet.
        if self.update_due && reader.peek().is_some() {
            return Err(CompressionError::MissingSizeUpdate);
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<Entry, CompressionError> {
        let place = index.checked_sub(1).ok_or(CompressionError::BadIndex)?;
        if let Some((name, value)) = STATIC.get(place) {
            return Ok(match name {
                StaticName::Pseudo(pseudo) => Entry {
                    name: Name::Pseudo(*pseudo),
                    value: Value::Pseudo(Bytes::from_static(value.as_bytes())),
                },
                StaticName::Field(name) => Entry {
                    name: Name::Field(name.clone()),
                    value: Value::Field(HeaderValue::from_static(value)),
                },
            });
        }
        self.entries.get(place - STATIC.len()).cloned().ok_or(CompressionError::BadIndex)
    }

    fn name(&self, index: usize) -> Result<Name, CompressionError> {
        let place = index.checked_sub(1).ok_or(CompressionError::BadIndex)?;
        if let Some((name, _)) = STATIC.get(place) {
            return Ok(match name {
                StaticName::Pseudo(pseudo) => Name::Pseudo(*pseudo),
                StaticName::Field(name) => Name::Field(name.clone()),
            });
        }
        self.entries
            .get(place - STATIC.len())
            .map(|entry| entry.name.clone())
            .ok_or(CompressionError::BadIndex)
    }

    /// A literal field whose name index has `prefix` bits (RFC 7541 §6.2).
    fn literal(&mut self, reader: &mut Reader<'_>, prefix: u32) -> Result<Entry, CompressionError> {
        let name = match reader.integer(prefix)? {
            0 => Name::read(reader.string(&mut self.scratch)?),
            index => self.name(index)?,
        };
        let value = Value::read(reader.string(&mut self.scratch)?, &name);
        Ok(Entry { name, value })
    }

    /// An entry larger than the table empties it and is not kept (RFC 7541 §4.4).
    fn insert(&mut self, entry: Entry) {
        let size = entry.size();
        self.evict(size);
        if size <= self.max_size {
            self.size += size;
            self.entries.push_front(entry);
        }
        self.version += 1;
    }

    fn evict(&mut self, needed: usize) {
        while self.size + needed > self.max_size {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.size();
        }
    }
}

impl Entry {
    fn size(&self) -> usize {
        let name = match &self.name {
            Name::Pseudo(pseudo) => pseudo.name().len(),
            Name::Field(name) => name.as_str().len(),
            Name::Malformed(length) => *length,
        };
        let value = match &self.value {
            Value::Pseudo(value) => value.len(),
            Value::Field(value) => value.len(),
            Value::Malformed(length) => *length,
        };
        name + value + FIELD_OVERHEAD
    }

    fn into_field(self) -> Field {
        match (self.name, self.value) {
            (Name::Pseudo(pseudo), Value::Pseudo(value)) => Field::Pseudo(pseudo, value),
            (Name::Field(name), Value::Field(value)) => Field::Regular(name, value),
            _ => Field::Malformed,
        }
    }
}

impl Name {
    fn read(name: &[u8]) -> Self {
        if name.first() == Some(&b':') {
            return Pseudo::from_name(name).map_or(Name::Malformed(name.len()), Name::Pseudo);
        }
        match HeaderName::from_lowercase(name) {
            // The type takes a quotation mark, which no token has (RFC 9110 §5.6.2).
            Ok(field) if !name.contains(&b'"') => Name::Field(field),
            _ => Name::Malformed(name.len()),
        }
    }
}

impl Value {
    /// The byte rules of RFC 9113 §8.2.1, and of RFC 9110 §5.5 on top: what HTTP/1.1 could not carry is refused here as
    /// well, so that nothing becomes something else on its way through a gateway.
    fn read(value: &[u8], name: &Name) -> Self {
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if blank(value.first()) || blank(value.last()) {
            return Value::Malformed(value.len());
        }
        match name {
            Name::Pseudo(_) if value.iter().all(|&byte| byte > 0x20 && byte != 0x7f) => {
                Value::Pseudo(Bytes::copy_from_slice(value))
            }
            Name::Field(_) => {
                HeaderValue::from_bytes(value).map_or(Value::Malformed(value.len()), Value::Field)
            }
            _ => Value::Malformed(value.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, CompressionError> {
        let mut fields = Vec::new();
        decoder.decode(block, |field, _| {
            fields.push(match field {
                Field::Pseudo(pseudo, value) => {
                    (pseudo.name().into(), String::from_utf8(value.to_vec()).unwrap())
                }
                Field::Regular(name, value) => (name.to_string(), value.to_str().unwrap().into()),
                Field::Malformed => ("malformed".into(), String::new()),
            });
            ControlFlow::Continue(())
        })?;
        Ok(fields)
    }

    fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    /// RFC 7541 Appendix C.3: three requests on one connection, without Huffman code.
    #[test]
    fn the_requests_of_the_standard() {
        let mut decoder = Decoder::new(4096);
        let first = b"\x82\x86\x84\x41\x0fwww.example.com";
        let common =
            [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
        assert_eq!(decode(&mut decoder, first).unwrap(), pairs(&common));
        assert_eq!(decoder.size, 57);
        let mut second = common.to_vec();
        second.push(("cache-control", "no-cache"));
        assert_eq!(decode(&mut decoder, b"\x82\x86\x84\xbe\x58\x08no-cache").unwrap(), pairs(&second));
        assert_eq!(decoder.size, 110);
        let third = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ];
        let block = b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value";
        assert_eq!(decode(&mut decoder, block).unwrap(), pairs(&third));
        assert_eq!(decoder.size, 164);
    }

    /// S28, and the cases that the standard wants answered with COMPRESSION_ERROR.
    #[test]
    fn blocks_that_cannot_be_decoded() {
        let cases: [(&[u8], CompressionError); 9] = [
            (b"\x80", CompressionError::BadIndex),
            (b"\xbe", CompressionError::BadIndex),
            (b"\x7e\x01a", CompressionError::BadIndex),
            (b"\x82\x20", CompressionError::BadSizeUpdate),
            (b"\x3f\xe2\x1f\x82", CompressionError::BadSizeUpdate),
            (b"\x40\x01a", CompressionError::Truncated),
            (b"\x40\x0aab", CompressionError::Truncated),
            (b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff", CompressionError::Huffman),
            (b"\xff\xff\xff\xff\xff\xff\x01", CompressionError::IntegerTooLarge),
        ];
        for (block, error) in cases {
            assert_eq!(decode(&mut Decoder::new(4096), block), Err(error), "{block:02x?}");
        }
    }

    #[test]
    fn a_malformed_field_leaves_the_table_in_step() {
        let mut decoder = Decoder::new(4096);
        let block = b"\x40\x01A\x01b\x40\x01c\x01d\x40\x05:what\x01e\x40\x01f\x02 g\x40\x01h\x02i\n";
        let names: Vec<String> =
            decode(&mut decoder, block).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["malformed", "c", "malformed", "malformed", "malformed"]);
        assert_eq!(decoder.size, 34 + 34 + 38 + 35 + 35);
        assert_eq!(decode(&mut decoder, b"\xc1").unwrap(), pairs(&[("c", "d")]));
        // A good name stays usable when only the value beside it was bad.
        assert_eq!(decode(&mut decoder, b"\x0f\x30\x01z").unwrap(), pairs(&[("f", "z")]));
    }

    #[test]
    fn the_table_shrinks_when_told_and_a_missing_update_is_an_error() {
        let mut decoder = Decoder::new(4096);
        decode(&mut decoder, b"\x40\x01a\x01b\x40\x01c\x01d").unwrap();
        decoder.set_allowed(40);
        assert_eq!(decode(&mut decoder, b"\x82"), Err(CompressionError::MissingSizeUpdate));
        assert_eq!(decode(&mut decoder, b"\x3f\x09\xbe").unwrap(), pairs(&[("c", "d")]));
        assert_eq!(decode(&mut decoder, b"\xbf"), Err(CompressionError::BadIndex));
        assert_eq!(decode(&mut decoder, b"\x20").unwrap(), []);
        assert!(decoder.is_empty());
    }

    #[test]
    fn the_version_moves_with_the_table_and_only_then() {
        let mut decoder = Decoder::new(4096);
        decode(&mut decoder, b"\x82\x00\x01a\x01b\x10\x01a\x01b").unwrap();
        assert_eq!(decoder.version(), 0);
        decode(&mut decoder, b"\x40\x01a\x01b").unwrap();
        assert_eq!(decoder.version(), 1);
        decode(&mut decoder, b"\xbe\x20").unwrap_err();
        decode(&mut decoder, b"\x20").unwrap();
        assert_eq!(decoder.version(), 2);
    }

    #[test]
    fn a_field_that_must_never_be_indexed_is_marked_sensitive() {
        let mut sensitive = Vec::new();
        let block = b"\x10\x01a\x01b\x00\x01c\x01d";
        Decoder::new(4096)
            .decode(block, |field, size| {
                assert_eq!(size, 34);
                if let Field::Regular(_, value) = field {
                    sensitive.push(value.is_sensitive());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(sensitive, [true, false]);
    }
}
