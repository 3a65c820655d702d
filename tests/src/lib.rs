//! What crosses crates: every case on every loop, chaos, interoperability.
//!
//! The cases are written once, in `cases/`, and compiled for each loop by the small files in `tests/`, so that what
//! runs is the concrete server and client of that loop. The peers here are plain blocking sockets that know just
//! enough of HTTP to read an answer.

// All of this is part of tests, where a panic is a failure with its place.
#![allow(clippy::expect_used, clippy::indexing_slicing)]

pub mod chaos;
pub mod peer;

use hyperman::Shutdown;

/// Cuts a server when it is dropped, so that a failed assertion ends its test instead of leaving it to hang.
#[derive(Debug)]
pub struct EndOnDrop(pub Shutdown);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cut();
    }
}
