//! All streams of a connection: those that are open, and what has to be known of those that are not any more.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use crate::flow::{Overflow, SendWindow};
use crate::frame::StreamId;
use crate::stream::{ClosedBy, Stream};

/// Resets that are remembered, so that late frames are judged rightly. More than are in flight within a round trip.
const REMEMBERED_RESETS: usize = 256;

/// Streams that ended well and whose send window is remembered: an update that crosses the end of its stream is judged by
/// it (RFC 9113 §6.9.1), however fast the stream was answered.
const REMEMBERED_WINDOWS: usize = 16;

/// Gaps in the peer's stream ids that are remembered. A peer that counts up by two has none.
const REMEMBERED_GAPS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<usize>,
    places: HashMap<StreamId, usize, BuildHasherDefault<IdHasher>>,
    /// The stream that was asked for last, and its place: what a frame or a command does asks for the same one many times.
    recent: Option<(StreamId, usize)>,
    /// Streams that the peer may consider open or whose handler still runs, by who opened them.
    pub(crate) highest_remote: u32,
    pub(crate) highest_local: u32,
    resets: VecDeque<(StreamId, ClosedBy)>,
    gaps: VecDeque<(u32, u32)>,
    windows: VecDeque<(StreamId, SendWindow)>,
}

/// What is known about a stream without an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Never opened.
    Idle,
    /// Passed over by a higher id, so never to be opened (RFC 9113 §5.1.1).
    Skipped,
    /// Ended by a reset.
    Reset(ClosedBy),
    /// Ended by END_STREAM in both directions.
    Ended,
}

impl Streams {
    fn place(&self, id: StreamId) -> Option<usize> {
        match self.recent {
            Some((recent, place)) if recent == id => Some(place),
            _ => self.places.get(&id).copied(),
        }
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.slots.get(self.place(id)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.recent = Some((id, place));
        self.slots.get_mut(place)?.as_mut()
    }

    pub(crate) fn insert(&mut self, stream: Stream) {
        let id = stream.id;
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(stream);
            self.places.insert(id, place);
            self.recent = Some((id, place));
        }
    }

    pub(crate) fn remove(&mut self, id: StreamId) {
        self.recent = None;
        let Some(place) = self.places.remove(&id) else { return };
        self.free.push(place);
        let Some(stream) = self.slots.get_mut(place).and_then(Option::take) else { return };
        if !stream.reset {
            if self.windows.len() == REMEMBERED_WINDOWS {
                self.windows.pop_front();
            }
            self.windows.push_back((id, stream.send.window));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().flatten()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter().flatten()
    }

    /// An update for a stream that has ended: whether its window would still be in range.
    pub(crate) fn late_update(&mut self, id: StreamId, increment: u32) -> Result<(), Overflow> {
        match self.windows.iter_mut().find(|(ended, _)| *ended == id) {
            Some((_, window)) => window.change(increment.into()),
            None => Ok(()),
        }
    }

    /// The peer opens `id`, which is higher than any before.
    pub(crate) fn note_remote(&mut self, id: StreamId) {
        let first = if self.highest_remote == 0 { 1 } else { self.highest_remote + 2 };
        if id.0 > first {
            if self.gaps.len() == REMEMBERED_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back((first, id.0));
        }
        self.highest_remote = id.0;
    }

    pub(crate) fn note_reset(&mut self, id: StreamId, by: ClosedBy) {
        if self.resets.len() == REMEMBERED_RESETS {
            self.resets.pop_front();
        }
        self.resets.push_back((id, by));
    }

    /// What became of a stream that has no entry. `local` says whether it is ours to open.
    pub(crate) fn absent(&self, id: StreamId, local: bool) -> Absent {
        let highest = if local { self.highest_local } else { self.highest_remote };
        if id.0 > highest {
            return Absent::Idle;
        }
        if !local && self.gaps.iter().any(|&(first, behind)| (first..behind).contains(&id.0)) {
            return Absent::Skipped;
        }
        // The last entry counts: a stream that the peer resets after us is reset by the peer.
        match self.resets.iter().rev().find(|(reset, _)| *reset == id) {
            Some(&(_, by)) => Absent::Reset(by),
            None => Absent::Ended,
        }
    }

    /// Frees the storage of an idle connection. Late frames are not to be expected then.
    pub(crate) fn shrink(&mut self) {
        if self.places.is_empty() {
            (self.slots, self.free, self.places) = (Vec::new(), Vec::new(), HashMap::default());
            self.resets.shrink_to_fit();
        }
    }
}

/// Stream ids are small numbers that their sender counts up; a multiplication spreads them well enough for the few
/// hundred that may be open.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_streams_are_told_apart() {
        let mut streams = Streams::default();
        streams.note_remote(StreamId(1));
        streams.note_remote(StreamId(7));
        streams.note_reset(StreamId(7), ClosedBy::Us);
        let table = [
            (1, Absent::Ended),
            (3, Absent::Skipped),
            (5, Absent::Skipped),
            (7, Absent::Reset(ClosedBy::Us)),
            (9, Absent::Idle),
        ];
        for (id, absent) in table {
            assert_eq!(streams.absent(StreamId(id), false), absent, "stream {id}");
        }
        assert_eq!(streams.absent(StreamId(2), true), Absent::Idle);
        streams.note_reset(StreamId(7), ClosedBy::Peer);
        assert_eq!(streams.absent(StreamId(7), false), Absent::Reset(ClosedBy::Peer));
    }

    #[test]
    fn memory_of_closed_streams_is_bounded() {
        let mut streams = Streams::default();
        for id in (1..40_000).step_by(4) {
            streams.note_remote(StreamId(id));
            streams.note_reset(StreamId(id), ClosedBy::Us);
        }
        assert_eq!((streams.resets.len(), streams.gaps.len()), (REMEMBERED_RESETS, REMEMBERED_GAPS));
    }
}
