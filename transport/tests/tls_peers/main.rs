//! TLS against other people's implementations, as programs on real sockets: OpenSSL's and Python's.

// A test fails by panicking; the lint knows tests by their attribute only, not what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod client;
mod harness;
mod server;
