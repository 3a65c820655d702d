//! However the same bytes are cut, the same events come out, in both roles.
#![no_main]

use hyperman_fuzz::{client_log, expand, method, pieces, server_log};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, bool, bool, &[u8], &[u8])| {
    let (choice, eof, unfold, lengths, bytes) = input;
    let bytes = &expand(bytes)[..];
    let cut = pieces(bytes, lengths);
    let mut single: Vec<&[u8]> = bytes.chunks(1).collect();
    single.push(&[]);
    let whole = server_log(&[bytes], eof, false);
    assert_eq!(whole, server_log(&cut, eof, false));
    assert_eq!(whole, server_log(&single, eof, true));
    let method = method(choice);
    let whole = client_log(&method, &[bytes], eof, unfold);
    assert_eq!(whole, client_log(&method, &cut, eof, unfold));
    assert_eq!(whole, client_log(&method, &single, eof, unfold));
});
