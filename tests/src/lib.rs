//! What crosses crates: every case on every loop, chaos, interoperability.
