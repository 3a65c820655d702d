//! From fields to a header block (RFC 7541 §6), with the dynamic table that we fill.

use std::collections::VecDeque;

use bytes::BytesMut;
use http::header::{self, HeaderName, HeaderValue};

use super::primitive::{put_integer, put_string};
use super::static_table::{STATIC, index_of};
use super::{FIELD_OVERHEAD, Pseudo};

/// The largest dynamic table that we fill, whatever the peer allows: the default of the standard, and enough for the
/// fields that repeat (S28).
const MAX_TABLE: usize = 4096;

/// A cookie shorter than this is never indexed: it could be guessed byte by byte (RFC 7541 §7.1.3).
const GUESSABLE_COOKIE: usize = 20;

/// Fields of the last block whose place is remembered.
const REMEMBERED: usize = 32;

/// Encodes the header blocks of one direction of one connection, in the order in which they are sent.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The dynamic table, newest entry first.
    entries: VecDeque<(HeaderName, HeaderValue)>,
    size: usize,
    max_size: usize,
    /// Size updates that the next block begins with: the smallest size in between and the final one (RFC 7541 §4.2).
    update: Option<(usize, usize)>,
    /// How many entries were ever inserted; the newest one has this number.
    inserted: u64,
    /// Where the fields of the last block were found, in their order. A message like the last one, as a server sends all
    /// day, finds each field at the same place without a search.
    last: Vec<Found>,
    place: usize,
}

/// A field of the last block, and the number of its entry.
#[derive(Debug)]
struct Found {
    name: HeaderName,
    value: HeaderValue,
    number: u64,
}

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Insert,
    Without,
    /// No hop may ever index it (RFC 7541 §6.2.3).
    Never,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Encoder {
            entries: VecDeque::new(),
            size: 0,
            max_size: MAX_TABLE,
            update: None,
            inserted: 0,
            last: Vec::new(),
            place: 0,
        }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE.
    pub(crate) fn set_allowed(&mut self, allowed: usize) {
        let size = allowed.min(MAX_TABLE);
        self.update = match self.update {
            Some((least, _)) => Some((least.min(size), size)),
            None if size == self.max_size => None,
            None => Some((size, size)),
        };
    }

    /// Begins a block: every call of the other methods until the next `begin` belongs to it.
    pub(crate) fn begin(&mut self, out: &mut BytesMut) {
        self.place = 0;
        let Some((least, last)) = self.update.take() else { return };
        for size in [Some(least), (least != last).then_some(last)].into_iter().flatten() {
            self.max_size = size;
            self.evict(0);
            put_integer(size, 5, 0x20, out);
        }
    }

    /// A pseudo-field. Those that the static table holds take a byte, the rest are literals: methods and statuses are
    /// short, paths rarely repeat. An authority repeats with every request and is a field like others to the table, but
    /// its literal costs little, so it is left out as well.
    pub(crate) fn pseudo(&mut self, pseudo: Pseudo, value: &str, out: &mut BytesMut) {
        // RFC 7541 Appendix A: the first index of each name, and the values that follow from there.
        let (first, values): (usize, &[&str]) = match pseudo {
            Pseudo::Authority => (1, &[]),
            Pseudo::Method => (2, &["GET", "POST"]),
            Pseudo::Path => (4, &["/", "/index.html"]),
            Pseudo::Scheme => (6, &["http", "https"]),
            Pseudo::Status => (8, &["200", "204", "206", "304", "400", "404", "500"]),
            Pseudo::Protocol => (0, &[]),
        };
        if let Some(place) = values.iter().position(|known| *known == value) {
            put_integer(first + place, 7, 0x80, out);
            return;
        }
        put_integer(first, 4, 0, out);
        if first == 0 {
            put_string(pseudo.name().as_bytes(), out);
        }
        put_string(value.as_bytes(), out);
    }

    /// An ordinary field. A value that is not one by the rules of a `HeaderValue` still goes out, as a literal.
    pub(crate) fn field(&mut self, name: &HeaderName, value: &[u8], sensitive: bool, out: &mut BytesMut) {
        if !sensitive && let Some(index) = self.at_same_place(name, value) {
            put_integer(index, 7, 0x80, out);
            return;
        }
        let indexing = if sensitive { Indexing::Never } else { indexing(name, value) };
        if indexing != Indexing::Insert || !self.fits(name, value) {
            self.put_literal(name, value, indexing, out);
            return;
        }
        if let Some((number, entry)) = self.search(name, value) {
            put_integer(self.index(number), 7, 0x80, out);
            self.remember(name, entry, number);
            return;
        }
        match HeaderValue::from_bytes(value) {
            Ok(value) => {
                let number = self.insert(name, value.clone(), out);
                self.remember(name, value, number);
            }
            Err(_) => self.put_literal(name, value, Indexing::Without, out),
        }
    }

    /// A field that the static table knows by name and that is never worth an entry, as Content-Length.
    pub(crate) fn literal(&mut self, name: &HeaderName, value: &[u8], out: &mut BytesMut) {
        self.put_literal(name, value, Indexing::Without, out);
    }

    fn at_same_place(&mut self, name: &HeaderName, value: &[u8]) -> Option<usize> {
        let found = self.last.get(self.place)?;
        let oldest = self.inserted - self.entries.len() as u64;
        if found.number <= oldest || found.name != *name || found.value.as_bytes() != value {
            return None;
        }
        let number = found.number;
        self.place += 1;
        Some(self.index(number))
    }

    fn remember(&mut self, name: &HeaderName, value: HeaderValue, number: u64) {
        let found = Found { name: name.clone(), value, number };
        match self.last.get_mut(self.place) {
            Some(slot) => *slot = found,
            None if self.place < REMEMBERED => self.last.push(found),
            None => {}
        }
        self.place += 1;
    }

    /// Index of the entry with this number (RFC 7541 §2.3.3).
    fn index(&self, number: u64) -> usize {
        STATIC.len() + 1 + (self.inserted - number) as usize
    }

    fn search(&self, name: &HeaderName, value: &[u8]) -> Option<(u64, HeaderValue)> {
        let (place, entry) = self
            .entries
            .iter()
            .enumerate()
            .find(|(_, entry)| entry.1.as_bytes() == value && entry.0 == *name)?;
        Some((self.inserted - place as u64, entry.1.clone()))
    }

    fn fits(&self, name: &HeaderName, value: &[u8]) -> bool {
        // One entry that pushes out nearly all others costs more than it saves.
        size_of(name, value) <= self.max_size / 4 * 3
    }

    fn insert(&mut self, name: &HeaderName, value: HeaderValue, out: &mut BytesMut) -> u64 {
        match self.name_index(name) {
            Some(index) => put_integer(index, 6, 0x40, out),
            None => {
                put_integer(0, 6, 0x40, out);
                put_string(name.as_str().as_bytes(), out);
            }
        }
        put_string(value.as_bytes(), out);
        let size = size_of(name, value.as_bytes());
        self.evict(size);
        self.size += size;
        self.entries.push_front((name.clone(), value));
        self.inserted += 1;
        self.inserted
    }

    fn put_literal(&self, name: &HeaderName, value: &[u8], indexing: Indexing, out: &mut BytesMut) {
        let pattern = if indexing == Indexing::Never { 0x10 } else { 0 };
        match self.name_index(name) {
            Some(index) => put_integer(index, 4, pattern, out),
            None => {
                put_integer(0, 4, pattern, out);
                put_string(name.as_str().as_bytes(), out);
            }
        }
        put_string(value, out);
    }

    fn name_index(&self, name: &HeaderName) -> Option<usize> {
        index_of(name.as_str()).or_else(|| {
            let place = self.entries.iter().position(|entry| entry.0 == *name)?;
            Some(STATIC.len() + 1 + place)
        })
    }

    fn evict(&mut self, needed: usize) {
        while self.size + needed > self.max_size {
            let Some((name, value)) = self.entries.pop_back() else { break };
            self.size -= size_of(&name, value.as_bytes());
        }
    }
}

fn size_of(name: &HeaderName, value: &[u8]) -> usize {
    name.as_str().len() + value.len() + FIELD_OVERHEAD
}

/// What is secret is never indexed; what changes from message to message would only push out what does not.
fn indexing(name: &HeaderName, value: &[u8]) -> Indexing {
    if *name == header::AUTHORIZATION || *name == header::PROXY_AUTHORIZATION {
        return Indexing::Never;
    }
    if *name == header::COOKIE && value.len() < GUESSABLE_COOKIE {
        return Indexing::Never;
    }
    const CHANGING: [HeaderName; 12] = [
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::ETAG,
        header::LAST_MODIFIED,
        header::EXPIRES,
        header::AGE,
        header::LOCATION,
        header::SET_COOKIE,
        header::IF_MODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_RANGE,
        header::RANGE,
    ];
    if CHANGING.contains(name) { Indexing::Without } else { Indexing::Insert }
}

#[cfg(test)]
mod tests {
    use super::super::{Decoder, Field};
    use super::*;
    use proptest::prelude::*;
    use std::ops::ControlFlow;

    fn encode(encoder: &mut Encoder, fields: &[(&str, &str)]) -> BytesMut {
        let mut out = BytesMut::new();
        encoder.begin(&mut out);
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            encoder.field(&name, value.as_bytes(), false, &mut out);
        }
        out
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        decoder
            .decode(block, |field, _| {
                match field {
                    Field::Regular(name, value) => {
                        fields.push((name.to_string(), value.to_str().unwrap().to_owned()))
                    }
                    other => panic!("{other:?}"),
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        fields
    }

    #[test]
    fn a_message_like_the_last_one_takes_a_byte_per_field() {
        let mut encoder = Encoder::new();
        let fields = [("server", "hyperman"), ("date", "Mon, 21 Oct 2013 20:13:21 GMT"), ("x-one", "1")];
        assert!(encode(&mut encoder, &fields).len() > 30);
        assert_eq!(encode(&mut encoder, &fields)[..], [0xc0, 0xbf, 0xbe]);
        let other = [("date", "Mon, 21 Oct 2013 20:13:21 GMT"), ("server", "hyperman")];
        assert_eq!(encode(&mut encoder, &other)[..], [0xbf, 0xc0]);
    }

    #[test]
    fn secrets_are_never_indexed_and_changing_fields_are_not() {
        let mut encoder = Encoder::new();
        let mut out = BytesMut::new();
        encoder.begin(&mut out);
        encoder.field(&header::AUTHORIZATION, b"a", false, &mut out);
        encoder.field(&header::COOKIE, b"short=1", false, &mut out);
        encoder.field(&header::CONTENT_LENGTH, b"1", false, &mut out);
        assert_eq!(out[..2], [0x1f, 0x08]);
        assert!(encoder.entries.is_empty());
    }

    #[test]
    fn the_pseudo_fields_of_the_static_table_take_a_byte() {
        let mut encoder = Encoder::new();
        let mut out = BytesMut::new();
        encoder.begin(&mut out);
        encoder.pseudo(Pseudo::Method, "GET", &mut out);
        encoder.pseudo(Pseudo::Scheme, "https", &mut out);
        encoder.pseudo(Pseudo::Status, "500", &mut out);
        encoder.pseudo(Pseudo::Path, "/a", &mut out);
        assert_eq!(out[..], [0x82, 0x87, 0x8e, 0x04, 0x02, b'/', b'a']);
    }

    #[test]
    fn a_smaller_table_is_announced_before_it_is_used() {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new(4096);
        let fields = [("x-a", "1"), ("x-b", "2")];
        decode(&mut decoder, &encode(&mut encoder, &fields));
        encoder.set_allowed(0);
        encoder.set_allowed(100);
        decoder.set_allowed(100);
        let block = encode(&mut encoder, &fields);
        assert_eq!(block[..3], [0x20, 0x3f, 0x45]);
        assert_eq!(decode(&mut decoder, &block).len(), 2);
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same_fields(
            blocks in prop::collection::vec(
                (prop::collection::vec(("[a-e]{1,3}|date|server|via", "[a-c0-9 -]{0,5}[a-c]|[!-~]{0,900}"), 0..8),
                    prop::option::of(0usize..6000)),
                1..30),
        ) {
            let mut encoder = Encoder::new();
            let mut decoder = Decoder::new(4096);
            for (fields, resize) in &blocks {
                if let Some(size) = resize {
                    encoder.set_allowed(*size);
                    decoder.set_allowed((*size).min(4096));
                }
                let borrowed: Vec<_> = fields.iter().map(|(n, v)| (n.as_str(), v.trim_matches(' '))).collect();
                let expected: Vec<_> = borrowed.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
                let block = encode(&mut encoder, &borrowed);
                prop_assert_eq!(decode(&mut decoder, &block), expected);
            }
        }
    }
}
