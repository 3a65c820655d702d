//! Storage that belongs to the thread, not to the connection.
//!
//! A connection that has nothing half-read and nothing half-written needs no buffer. Each turn of a connection borrows
//! one from its thread and hands it back when it holds nothing; ten thousand idle connections share one.

use std::cell::Cell;

use bytes::BytesMut;

/// What one receive can take, 16 KiB: a TLS record, and more than any browser's head.
pub const RECEIVE_STORAGE: usize = 16 * 1024;

/// How many buffers of each kind a thread keeps. Connections that are polled inside one another (a handler that calls
/// out through a client on the same thread) take one each.
const KEPT: usize = 4;

thread_local! {
    static RECEIVE: Shelf = const { Shelf { buffers: [const { Cell::new(None) }; KEPT] } };
}

struct Shelf {
    buffers: [Cell<Option<BytesMut>>; KEPT],
}

/// An empty buffer with at least [`RECEIVE_STORAGE`] bytes of spare capacity.
pub fn take() -> BytesMut {
    let kept = RECEIVE.try_with(|shelf| shelf.buffers.iter().find_map(Cell::take)).ok().flatten();
    let mut buffer = kept.unwrap_or_default();
    if buffer.capacity() < RECEIVE_STORAGE {
        // Cheap while no slice of the old storage is alive: the storage is taken back, not allocated anew.
        buffer.reserve(RECEIVE_STORAGE);
    }
    buffer
}

/// Gives a buffer back. What it holds is forgotten; one that grew far beyond [`RECEIVE_STORAGE`] is freed.
pub fn give_back(mut buffer: BytesMut) {
    buffer.clear();
    if buffer.capacity() > 4 * RECEIVE_STORAGE {
        return;
    }
    let _ = RECEIVE.try_with(|shelf| {
        for place in &shelf.buffers {
            let there = place.take();
            if there.is_none() {
                place.set(Some(buffer));
                return;
            }
            place.set(there);
        }
    });
}
