//! The cases, written once. Each loop's program includes this module and says at its root what the loop is: `Rt`, its
//! `Runtime`, and `block_on`, which runs a future on it.
//!
//! A case is a function of the carrier that it runs on, and one entry in the `cases!` list of its module: under `EVERY`
//! when it is about what an application sees, under `ONE` when it is about HTTP/1's bytes, under `TWO` when it is about
//! what only HTTP/2 has, under `TLS` when it is about what is below both.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

mod client;
mod server;
mod tls;
mod together;

use std::process::ExitCode;

/// Runs all of them on this loop.
pub fn run(on: &str) -> ExitCode {
    let mut all = Vec::new();
    all.extend_from_slice(server::CASES);
    all.extend_from_slice(client::CASES);
    all.extend_from_slice(together::CASES);
    all.push(tls::CASES);
    hyperman_tests::matrix::run(on, &all)
}
