//! What somebody else has sent or named, as a terminal may be shown it: without what would move its cursor, change its
//! colours or make it type. Text stays text.

use std::fmt::Write as _;

/// The bytes with their control characters, those beyond ASCII as well, and whatever is not UTF-8 escaped. Line ends and
/// tabs stay.
pub(crate) fn harmless(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() && !matches!(character, '\r' | '\n' | '\t') {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        let _ = write!(shown, "{}", chunk.invalid().escape_ascii());
    }
    shown
}

/// A name in one line.
pub(crate) fn one_line(name: &str) -> String {
    let escape = |character: char| -> String {
        if character.is_control() { character.escape_default().collect() } else { character.into() }
    };
    name.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_and_controls_are_escaped() {
        for (bytes, shown) in [
            (&b"HTTP/1.1 200 OK\r\nx:\ty\r\n"[..], "HTTP/1.1 200 OK\r\nx:\ty\r\n"),
            ("caf\u{e9} \u{65e5}".as_bytes(), "caf\u{e9} \u{65e5}"),
            (b"a\x1b[31mb\x07\x7f", "a\\u{1b}[31mb\\u{7}\\u{7f}"),
            ("\u{9b}31m\u{85}".as_bytes(), "\\u{9b}31m\\u{85}"),
            (b"\x9b31m\xff", "\\x9b31m\\xff"),
        ] {
            assert_eq!(harmless(bytes), shown);
        }
        assert_eq!(one_line("a\nb\u{1b}c"), "a\\nb\\u{1b}c");
    }
}
