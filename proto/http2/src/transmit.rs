//! What waits to be written: frames in one reused buffer, with bodies passed through uncopied in between.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// A body below this many octets is copied behind its frame head: cheaper than a slice of its own.
pub(crate) const COPIED: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Transmit {
    /// Frame heads, control frames and small bodies that wait, back to back.
    frames: BytesMut,
    /// The order of everything that waits.
    segments: VecDeque<Segment>,
    queued: usize,
    /// Octets ever queued.
    written: u64,
}

#[derive(Debug)]
enum Segment {
    /// So many octets from the front of `frames`.
    Frames(usize),
    Body(Bytes),
}

impl Transmit {
    pub(crate) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Octets that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Octets ever queued: the place of the next one in the whole output of the connection.
    pub(crate) fn position(&self) -> u64 {
        self.written
    }

    /// Whether anything at or behind `position` was handed to the transport.
    pub(crate) fn has_sent(&self, position: u64) -> bool {
        self.written - self.queued as u64 > position
    }

    /// Appends what `write` puts into the buffer.
    pub(crate) fn frames<R>(&mut self, write: impl FnOnce(&mut BytesMut) -> R) -> R {
        let before = self.frames.len();
        let result = write(&mut self.frames);
        let added = self.frames.len().saturating_sub(before);
        self.queued += added;
        self.written += added as u64;
        match self.segments.back_mut() {
            Some(Segment::Frames(length)) => *length += added,
            _ => self.segments.push_back(Segment::Frames(added)),
        }
        result
    }

    /// Appends a body behind the frame head that was written last.
    pub(crate) fn body(&mut self, body: Bytes) {
        if body.len() < COPIED {
            self.frames(|out| out.extend_from_slice(&body));
            return;
        }
        self.queued += body.len();
        self.written += body.len() as u64;
        self.segments.push_back(Segment::Body(body));
    }

    /// Fills `slices` from the front; returns how many it filled.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut frames: &[u8] = &self.frames;
        let mut filled = 0;
        let waiting = self.segments.iter().filter_map(|segment| match segment {
            Segment::Frames(length) => {
                let (part, rest) = frames.split_at_checked(*length)?;
                frames = rest;
                (!part.is_empty()).then_some(part)
            }
            Segment::Body(body) => Some(&body[..]),
        });
        for (slot, part) in slices.iter_mut().zip(waiting) {
            *slot = IoSlice::new(part);
            filled += 1;
        }
        filled
    }

    /// Retires `octets` from the front.
    pub(crate) fn retire(&mut self, octets: usize) {
        let mut left = octets.min(self.queued);
        self.queued -= left;
        while let Some(segment) = self.segments.front_mut() {
            let length = match segment {
                Segment::Frames(length) => *length,
                Segment::Body(body) => body.len(),
            };
            let done = left.min(length);
            match segment {
                Segment::Frames(length) => {
                    *length -= done;
                    self.frames.advance(done);
                }
                Segment::Body(body) => body.advance(done),
            }
            left -= done;
            if done < length {
                break;
            }
            self.segments.pop_front();
        }
    }

    /// Takes over a buffer to write into, when it has none of its own.
    pub(crate) fn lend(&mut self, buffer: &mut BytesMut) {
        if self.frames.capacity() == 0 {
            std::mem::swap(&mut self.frames, buffer);
        }
    }

    /// Gives the buffer back when nothing waits in it.
    pub(crate) fn reclaim(&mut self, buffer: &mut BytesMut) {
        if self.queued == 0 {
            self.frames.clear();
            if buffer.capacity() == 0 {
                std::mem::swap(&mut self.frames, buffer);
            }
            self.frames = BytesMut::new();
            self.segments = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(transmit: &Transmit) -> Vec<Vec<u8>> {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = transmit.slices(&mut slices);
        slices[..filled].iter().map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn large_bodies_keep_their_place_between_frames() {
        let mut transmit = Transmit::default();
        let large = Bytes::from(vec![7; COPIED]);
        transmit.frames(|out| out.extend_from_slice(b"head"));
        transmit.body(Bytes::from_static(b"small"));
        transmit.body(large.clone());
        transmit.frames(|out| out.extend_from_slice(b"tail"));
        assert_eq!(content(&transmit), [&b"headsmall"[..], &large[..], b"tail"]);
        assert_eq!(transmit.queued(), 13 + COPIED);
        transmit.retire(8);
        assert_eq!(content(&transmit)[0], b"l");
        transmit.retire(1 + COPIED - 1);
        assert_eq!(content(&transmit), [&[7u8][..], b"tail"]);
        assert!(transmit.has_sent(8) && !transmit.has_sent(transmit.position() - 5));
        transmit.retire(5);
        assert!(transmit.is_empty() && content(&transmit).is_empty());
    }
}
