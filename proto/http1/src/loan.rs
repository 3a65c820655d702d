//! Storage that belongs to the thread and is lent to a machine for one turn.

use bytes::BytesMut;

use crate::cache::HeadCache;

/// Beyond this much, storage of an empty write buffer is let go, 64 KiB.
const KEPT: usize = 64 << 10;

/// Up to this many unread bytes move between the loan's large storage and a small one of their own, 1 KiB: a peer that
/// sends half a head and waits holds no more than it sent.
const SMALL: usize = 1 << 10;

/// What a driver lends a machine at the beginning of a turn ([`Server::lend`](crate::Server::lend)) and takes back at
/// its end. A machine that was lent nothing allocates for itself.
#[derive(Debug, Default)]
pub struct Loan {
    /// Storage to receive into; empty.
    pub read: BytesMut,
    /// Storage for heads and small bodies to be written; empty.
    pub write: Vec<u8>,
    /// Heads that were parsed before on this thread.
    pub heads: Option<Box<HeadCache>>,
    /// The value of the Date field, in the form of RFC 9110 §5.6.7, rendered once a second by the driver. All zero: no
    /// Date is written.
    pub date: [u8; 29],
}

/// Moves the storage of an empty write buffer back to the loan, or frees it.
#[inline]
pub(crate) fn give_back(storage: &mut Vec<u8>, place: &mut Vec<u8>) {
    if place.capacity() == 0 && storage.capacity() <= KEPT {
        std::mem::swap(storage, place);
    } else {
        *storage = Vec::new();
    }
}

/// Gives a machine the loan's storage to receive into, with the few bytes that it may still hold.
#[inline]
pub(crate) fn lend_read(read: &mut BytesMut, place: &mut BytesMut) {
    if read.is_empty() {
        std::mem::swap(read, place);
    } else if read.len() <= SMALL && place.is_empty() && place.capacity() > read.capacity() {
        place.extend_from_slice(read);
        *read = std::mem::take(place);
    }
}

/// Moves the receive storage back to the loan. What is unread stays, in a storage of its own size if it is little.
#[inline]
pub(crate) fn give_back_read(read: &mut BytesMut, place: &mut BytesMut) {
    if read.is_empty() {
        // What is swapped in owns nothing as a rule; if it does, it is let go.
        std::mem::swap(place, read);
        if read.capacity() > 0 {
            *read = BytesMut::new();
        }
    } else if read.len() <= SMALL && read.capacity() > 2 * SMALL && place.capacity() == 0 {
        let rest = BytesMut::from(&**read);
        *place = std::mem::replace(read, rest);
        place.clear();
    }
}
