//! What waits to be written: heads and small data in one reused buffer, large data as it was handed in, and stretches
//! that the driver sends by itself. In this order a single send carries a head and a small body.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Up to this many bytes data is copied behind its head, 4 KiB: cheaper than a second slice in the system call.
pub(crate) const COPIED: usize = 4 << 10;
/// From this many retired bytes on, the copied ones are moved to the front, 4 KiB.
const COMPACT: usize = 4 << 10;

/// The queue. `copied` holds every copied byte in order; a piece says behind which of them it comes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) copied: Vec<u8>,
    /// Copied bytes before this are retired.
    start: usize,
    /// Bytes in shared pieces.
    shared: usize,
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
struct Piece {
    /// Comes behind `copied[..behind]`.
    behind: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Shared(Bytes),
    External(u64),
}

impl Queue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.copied.len() && self.pieces.is_empty()
    }

    /// Bytes held here; external ones are not.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.copied.len() - self.start + self.shared
    }

    /// Appends data, by copy or as it is.
    #[inline]
    pub(crate) fn push(&mut self, data: Bytes) {
        if data.len() <= COPIED {
            self.copied.extend_from_slice(&data);
        } else {
            self.shared += data.len();
            self.pieces.push_back(Piece { behind: self.copied.len(), content: Content::Shared(data) });
        }
    }

    pub(crate) fn push_external(&mut self, length: u64) {
        if length > 0 {
            self.pieces.push_back(Piece { behind: self.copied.len(), content: Content::External(length) });
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.copied.clear();
        self.start = 0;
        self.shared = 0;
        self.pieces = VecDeque::new();
    }

    /// Lets go of storage that an empty queue need not keep.
    #[inline]
    pub(crate) fn release_pieces(&mut self) {
        if self.pieces.capacity() > 0 && self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    /// All of the queue, if it is one slice.
    #[inline]
    pub(crate) fn sole_slice(&self) -> Option<&[u8]> {
        if self.pieces.is_empty() { self.copied.get(self.start..) } else { None }
    }

    /// Fills `slices` from the front, as far as they go or up to an external stretch; says how many were filled.
    #[inline]
    pub(crate) fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        if self.pieces.is_empty() {
            return match (self.copied.get(self.start..), slices.first_mut()) {
                (Some(bytes), Some(slice)) if !bytes.is_empty() => {
                    *slice = IoSlice::new(bytes);
                    1
                }
                _ => 0,
            };
        }
        self.fill_pieces(slices)
    }

    fn fill_pieces<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut place = slices.iter_mut();
        let mut add = |bytes: &'a [u8]| {
            if bytes.is_empty() {
                return true;
            }
            let Some(slice) = place.next() else { return false };
            *slice = IoSlice::new(bytes);
            filled += 1;
            true
        };
        let mut at = self.start;
        for piece in &self.pieces {
            let before = self.copied.get(at..piece.behind).unwrap_or_default();
            at = piece.behind;
            let goes_on = add(before)
                && match &piece.content {
                    Content::Shared(bytes) => add(bytes),
                    Content::External(_) => false,
                };
            if !goes_on {
                return filled;
            }
        }
        add(self.copied.get(at..).unwrap_or_default());
        filled
    }

    /// How many bytes at the front the driver must send by itself.
    #[inline]
    pub(crate) fn external(&self) -> u64 {
        match self.pieces.front() {
            Some(Piece { behind, content: Content::External(length) }) if *behind == self.start => *length,
            _ => 0,
        }
    }

    /// Retires `count` bytes from the front, external ones included.
    #[inline]
    pub(crate) fn retire(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            let before = piece.behind - self.start;
            let taken = before.min(count);
            self.start += taken;
            count -= taken;
            if taken < before {
                return;
            }
            let finished = match &mut piece.content {
                Content::Shared(bytes) => {
                    let taken = bytes.len().min(count);
                    bytes.advance(taken);
                    self.shared -= taken;
                    count -= taken;
                    bytes.is_empty()
                }
                Content::External(length) => {
                    let taken = (*length).min(count as u64);
                    *length -= taken;
                    count -= usize::try_from(taken).unwrap_or(count);
                    *length == 0
                }
            };
            if !finished {
                self.compact();
                return;
            }
            self.pieces.pop_front();
        }
        self.start += count.min(self.copied.len() - self.start);
        if self.start == self.copied.len() {
            self.copied.clear();
            self.start = 0;
        } else {
            self.compact();
        }
    }

    /// A stream that never drains would otherwise keep all its retired bytes.
    fn compact(&mut self) {
        if self.start >= COMPACT && self.start >= self.copied.len() - self.start {
            self.copied.drain(..self.start);
            for piece in &mut self.pieces {
                piece.behind -= self.start;
            }
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `at_most` bytes at a time until nothing is left; external bytes show as dots.
    fn written(queue: &mut Queue, at_most: usize) -> String {
        let mut out = String::new();
        while !queue.is_empty() {
            let external = usize::try_from(queue.external()).unwrap();
            if external > 0 {
                let count = external.min(at_most);
                out.push_str(&".".repeat(count));
                queue.retire(count);
                continue;
            }
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = queue.fill(&mut slices);
            assert!(filled > 0);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            let count = bytes.len().min(at_most);
            out.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            queue.retire(count);
        }
        assert_eq!(queue.bytes(), 0);
        out
    }

    #[test]
    fn order_survives_every_write_size() {
        let large = "x".repeat(COPIED + 1);
        for at_most in [1, 2, 3, 7, 4096, 4099, 100_000] {
            let mut queue = Queue::default();
            queue.copied.extend_from_slice(b"head");
            queue.push(Bytes::from(large.clone()));
            queue.push_external(5);
            queue.push(Bytes::from_static(b"tail"));
            queue.push(Bytes::from(large.clone()));
            queue.push(Bytes::from(large.clone()));
            queue.push_external(0);
            assert_eq!(queue.bytes(), 8 + 3 * large.len());
            assert_eq!(
                written(&mut queue, at_most),
                format!("head{large}.....tail{large}{large}"),
                "{at_most}"
            );
        }
    }

    #[test]
    fn a_stream_that_never_drains_does_not_grow() {
        let mut queue = Queue::default();
        for _ in 0..1000 {
            queue.push(Bytes::from(vec![b'x'; COPIED]));
            queue.push(Bytes::from(vec![b'y'; COPIED + 1]));
            let retire = queue.bytes() - 1;
            queue.retire(retire.min(2 * COPIED + 1));
        }
        assert!(queue.copied.capacity() <= 8 * COPIED, "{}", queue.copied.capacity());
    }
}
