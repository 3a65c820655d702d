//! Any bytes, cut anyhow: the client never panics and keeps its promises.
#![no_main]

use hyperman_fuzz::{client_log, expand, method, pieces};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, bool, bool, &[u8], &[u8])| {
    let (choice, eof, unfold, lengths, bytes) = input;
    let bytes = expand(bytes);
    client_log(&method(choice), &pieces(&bytes, lengths), eof, unfold);
});
