//! Storage for ciphertext that waits to leave, and for gathering plaintext. Like [`loan`](crate::loan) it belongs to
//! the thread: a connection holds some only while it has unsent bytes. What is received uses `loan` itself.

use std::cell::RefCell;

/// The largest plaintext of a record (RFC 8446 §5.1).
pub(super) const RECORD: usize = 16 * 1024;

/// How many plaintext bytes one `poll_send` takes: three full records. Their ciphertext fits into the storage that a
/// thread keeps, and a fast peer does not hold the loop for longer.
pub(super) const BATCH: usize = 3 * RECORD;

/// How much of a record is not plaintext, with room to spare: head, explicit nonce, content type and tag.
const OVERHEAD: usize = 64;

/// Storage larger than this is freed, not kept.
const KEEP_UP_TO: usize = 64 * 1024;

/// How many pieces of storage a thread keeps: one to gather plaintext, one per connection that is polled inside another.
const KEPT: usize = 4;

thread_local! {
    static SHELF: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Initialised storage of at least `length` bytes, with whatever is in it.
pub(super) fn take(length: usize) -> Vec<u8> {
    let mut storage = SHELF.try_with(|shelf| shelf.borrow_mut().pop()).ok().flatten().unwrap_or_default();
    if storage.len() < length {
        storage.resize(length, 0);
    }
    storage
}

/// Gives storage back to the thread.
pub(super) fn give_back(storage: Vec<u8>) {
    if storage.is_empty() || storage.len() > KEEP_UP_TO {
        return;
    }
    let _ = SHELF.try_with(|shelf| {
        let mut shelf = shelf.borrow_mut();
        if shelf.len() < KEPT {
            shelf.push(storage);
        }
    });
}

/// How much room the ciphertext of `length` plaintext bytes takes at most.
pub(super) fn ciphertext_room(length: usize) -> usize {
    length + (length / RECORD + 1) * OVERHEAD
}

/// A queue of ciphertext. Holds storage only while it is not empty.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    storage: Vec<u8>,
    start: usize,
    end: usize,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    #[cfg(test)]
    pub(super) fn holds_nothing(&self) -> bool {
        self.storage.capacity() == 0
    }

    /// What waits to leave.
    pub(super) fn pending(&self) -> &[u8] {
        self.storage.get(self.start..self.end).unwrap_or_default()
    }

    /// Room for `length` more bytes behind what waits. Say with [`wrote`](Self::wrote) how many were used.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        if self.storage.is_empty() {
            self.storage = take(length);
        }
        if self.storage.len() - self.end < length && self.start > 0 {
            self.storage.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.storage.len() - self.end < length {
            self.storage.resize(self.end + length, 0);
        }
        self.storage.get_mut(self.end..).unwrap_or_default()
    }

    /// `length` bytes of the room have been filled.
    pub(super) fn wrote(&mut self, length: usize) {
        self.end = (self.end + length).min(self.storage.len());
    }

    /// Puts bytes behind what waits.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for (place, byte) in self.room(bytes.len()).iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.wrote(bytes.len());
    }

    /// `length` bytes have left. The storage goes back to the thread with the last of them.
    pub(super) fn sent(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
            give_back(std::mem::take(&mut self.storage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outgoing_keeps_order_across_partial_sends_and_growth() {
        let mut out = Outgoing::default();
        out.push(b"abc");
        out.sent(2);
        out.push(&[b'd'; 70_000]);
        assert_eq!(out.len(), 70_001);
        assert_eq!(out.pending()[..3], *b"cdd");
        out.sent(70_000);
        assert_eq!(out.pending(), b"d");
        out.sent(1);
        assert!(out.is_empty());
        assert!(out.storage.is_empty(), "an empty queue holds no storage");
    }

    #[test]
    fn storage_comes_back_to_the_thread() {
        let storage = take(20_000);
        let address = storage.as_ptr();
        give_back(storage);
        let again = take(10_000);
        assert_eq!(again.as_ptr(), address);
    }
}
