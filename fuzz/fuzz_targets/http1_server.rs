//! Any bytes, cut anyhow: the server never panics and keeps its promises, with and without a cache of heads.
#![no_main]

use hyperman_fuzz::{expand, pieces, server_log};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], bool, &[u8])| {
    let (lengths, eof, bytes) = input;
    let bytes = expand(bytes);
    let pieces = pieces(&bytes, lengths);
    assert_eq!(server_log(&pieces, eof, false), server_log(&pieces, eof, true));
});
