//! Heads that were parsed before. A keep-alive client sends the same field block, and often the same request line,
//! again and again; comparing and cloning costs a fraction of parsing.
//!
//! The cache belongs to a thread (it comes with the [`Loan`](crate::Loan)). A connection compares what it gets only
//! with slots that it matched before, and otherwise looks up by a keyed hash of the whole block: no client can find out
//! from our timing what another one sent, piece by piece. What is kept is a copy, so no receive buffer is pinned.

use std::hash::BuildHasher;

use bytes::Bytes;
use http::uri::PathAndQuery;

use crate::config::Limits;
use crate::error::Error;
use crate::fields::{self, Fields};
use crate::framing::AnsweredMethod;
use crate::request_line::{self, RequestLine};
use crate::write::ReadyHead;

/// Longest field block that is kept, 2 KiB: a browser's, with cookies.
const MAX_BLOCK: usize = 2 << 10;
/// Longest request line that is kept, 256 bytes.
const MAX_LINE: usize = 256;
/// Slots for blocks, and for lines; a power of two.
const SLOTS: usize = 64;
/// Places in the filter of what was seen once; a power of two.
const SEEN: usize = 256;

/// Parsed heads, shared by the connections of one thread.
#[derive(Debug)]
pub struct HeadCache {
    hasher: foldhash::fast::FixedState,
    blocks: Vec<Option<Block>>,
    lines: Vec<Option<Line>>,
    /// Hashes that were met once. Only what comes a second time is worth a slot.
    seen: Box<[u64]>,
    generation: u32,
    /// What the last plain answer began with.
    pub(crate) ready: ReadyHead,
}

/// Where a connection found its last head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Remembered {
    slot: u8,
    /// 0 is nothing.
    generation: u32,
}

/// A field block, from its first field to its empty line, and its parsed form.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) bytes: Bytes,
    hash: u64,
    generation: u32,
    count: u32,
    longest: u32,
    pub(crate) fields: Fields,
}

/// A request line with its CRLF, and its parsed form.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) bytes: Bytes,
    hash: u64,
    generation: u32,
    pub(crate) method: AnsweredMethod,
    /// The target, where nothing is special about the line: HTTP/1.1, no CONNECT, no absolute form.
    pub(crate) plain: Option<PathAndQuery>,
    pub(crate) line: RequestLine,
}

impl Block {
    /// A block that another connection put here is held to the limits of this one.
    #[inline]
    pub(crate) fn fits(&self, line_length: usize, limits: &Limits) -> bool {
        self.count as usize <= limits.fields
            && self.longest as usize <= limits.field
            && line_length + self.bytes.len() <= limits.head
    }
}

impl HeadCache {
    /// An empty cache. `seed` must be random and secret: it keeps clients from aiming at slots.
    pub fn new(seed: u64) -> Self {
        HeadCache {
            hasher: foldhash::fast::FixedState::with_seed(seed),
            blocks: (0..SLOTS).map(|_| None).collect(),
            lines: (0..SLOTS).map(|_| None).collect(),
            seen: vec![0; SEEN].into_boxed_slice(),
            generation: 0,
            ready: ReadyHead::default(),
        }
    }

    #[inline]
    pub(crate) fn block(&self, at: Remembered) -> Option<&Block> {
        let block = self.blocks.get(usize::from(at.slot))?.as_ref()?;
        (block.generation == at.generation).then_some(block)
    }

    #[inline]
    pub(crate) fn line(&self, at: Remembered) -> Option<&Line> {
        let line = self.lines.get(usize::from(at.slot))?.as_ref()?;
        (line.generation == at.generation).then_some(line)
    }

    /// The parsed form of a whole field block of `count` lines: from a slot, or parsed now. `at` becomes the slot, if
    /// there is one.
    pub(crate) fn fields(
        &mut self,
        head: &Bytes,
        start: usize,
        count: usize,
        at: &mut Remembered,
    ) -> Result<Fields, Error> {
        let block = head.get(start..).unwrap_or_default();
        if block.len() > MAX_BLOCK {
            return fields::parse(head, start, count);
        }
        let hash = self.hasher.hash_one(block);
        let [one, other] = ways(hash);
        for slot in [one, other] {
            if let Some(Some(kept)) = self.blocks.get(usize::from(slot))
                && kept.hash == hash
                && kept.bytes == block
            {
                *at = Remembered { slot, generation: kept.generation };
                return Ok(kept.fields.clone());
            }
        }
        if !self.is_second_time(hash) {
            return fields::parse(head, start, count);
        }
        let bytes = Bytes::copy_from_slice(block);
        let fields = fields::parse(&bytes, 0, count)?;
        let longest = block.split(|&byte| byte == b'\n').map(|line| line.len().saturating_sub(1)).max();
        let generation = self.next_generation();
        let slot = if self.blocks.get(usize::from(one)).is_some_and(Option::is_none) { one } else { other };
        let kept = Block {
            bytes,
            hash,
            generation,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            longest: u32::try_from(longest.unwrap_or(0)).unwrap_or(u32::MAX),
            fields: fields.clone(),
        };
        if let Some(place) = self.blocks.get_mut(usize::from(slot)) {
            *place = Some(kept);
            *at = Remembered { slot, generation };
        }
        Ok(fields)
    }

    /// Keeps a request line that was parsed, if it comes a second time; or finds the slot that has it.
    pub(crate) fn keep_line(&mut self, bytes: &[u8], at: &mut Remembered) {
        if bytes.len() > MAX_LINE {
            return;
        }
        let hash = self.hasher.hash_one(bytes);
        let [one, other] = ways(hash);
        for slot in [one, other] {
            if let Some(Some(kept)) = self.lines.get(usize::from(slot))
                && kept.hash == hash
                && kept.bytes == bytes
            {
                *at = Remembered { slot, generation: kept.generation };
                return;
            }
        }
        if !self.is_second_time(hash) {
            return;
        }
        // Parsed once more, out of the copy, so that nothing in the slot pins a receive buffer.
        let bytes = Bytes::copy_from_slice(bytes);
        let Ok(line) = request_line::parse(&bytes.slice(..bytes.len().saturating_sub(2))) else { return };
        let generation = self.next_generation();
        let slot = if self.lines.get(usize::from(one)).is_some_and(Option::is_none) { one } else { other };
        if let Some(place) = self.lines.get_mut(usize::from(slot)) {
            let method = AnsweredMethod::from(&line.method);
            let plain = line.http11 && !line.absolute && method != AnsweredMethod::Connect;
            let plain = plain.then(|| line.uri.path_and_query().cloned()).flatten();
            *place = Some(Line { bytes, hash, generation, method, plain, line });
            *at = Remembered { slot, generation };
        }
    }

    /// Whether this hash was met before; it is from now on.
    fn is_second_time(&mut self, hash: u64) -> bool {
        let Some(place) = self.seen.get_mut((hash >> 32) as usize % SEEN) else { return false };
        if *place == hash {
            return true;
        }
        *place = hash;
        false
    }

    fn next_generation(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1).max(1);
        self.generation
    }
}

/// The two slots a hash may live in.
#[inline]
fn ways(hash: u64) -> [u8; 2] {
    let one = (hash % SLOTS as u64) as u8;
    // The second one depends on other bits, so two hashes that share one way rarely share both.
    let other = ((hash >> 16) % SLOTS as u64) as u8;
    [one, other]
}
