//! JSON with line breaks and indentation, while it passes through. Numbers, strings and the order of members stay as
//! they came: nothing is parsed, white space is moved.

/// How deep indentation goes; what nests deeper stays at this margin. A hostile document must not make each of its
/// bytes a screenful.
const DEEPEST: usize = 64;

/// Re-indents a JSON document that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Indenter {
    depth: usize,
    place: Place,
    /// An opening bracket was written and nothing after it: its line break waits until it is known not to be empty.
    opened: bool,
    colours: bool,
    written: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    /// In a number or a keyword.
    Word,
    String,
    /// After a backslash in a string.
    Escape,
}

const WORD: &[u8] = b"\x1b[36m";
const STRING: &[u8] = b"\x1b[32m";
const PLAIN: &[u8] = b"\x1b[0m";

impl Indenter {
    /// With or without colours for strings, numbers and keywords.
    pub(crate) fn new(colours: bool) -> Self {
        Indenter { colours, ..Indenter::default() }
    }

    /// The next piece, re-indented, appended to `out`.
    pub(crate) fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for &byte in piece {
            if self.is_bare_control(byte) {
                out.extend(byte.escape_ascii());
                self.written = true;
                continue;
            }
            match self.place {
                Place::Outside => self.outside(byte, out),
                Place::Word => {
                    if byte.is_ascii_whitespace() || b"{}[]:,\"".contains(&byte) {
                        self.colour(PLAIN, out);
                        self.place = Place::Outside;
                        self.outside(byte, out);
                    } else {
                        out.push(byte);
                    }
                }
                Place::Escape => {
                    out.push(byte);
                    self.place = Place::String;
                }
                Place::String => {
                    out.push(byte);
                    match byte {
                        b'\\' => self.place = Place::Escape,
                        b'"' => {
                            self.place = Place::Outside;
                            self.colour(PLAIN, out);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// No JSON holds a bare control but for white space between its parts (RFC 8259 §2, §7), and none may reach a terminal.
    fn is_bare_control(&self, byte: u8) -> bool {
        let between = matches!(self.place, Place::Outside | Place::Word);
        byte.is_ascii_control() && !(between && byte.is_ascii_whitespace())
    }

    /// The end: a line of its own for the prompt.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.written {
            self.colour(PLAIN, out);
            out.push(b'\n');
        }
    }

    fn outside(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte.is_ascii_whitespace() {
            return;
        }
        self.written = true;
        let empty = self.opened && matches!(byte, b'}' | b']');
        if std::mem::take(&mut self.opened) && !empty {
            self.line(out);
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                self.depth += 1;
                self.opened = true;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if !empty {
                    self.line(out);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                self.line(out);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                self.colour(STRING, out);
                out.push(byte);
                self.place = Place::String;
            }
            other => {
                self.colour(WORD, out);
                out.push(other);
                self.place = Place::Word;
            }
        }
    }

    fn line(&self, out: &mut Vec<u8>) {
        out.push(b'\n');
        out.resize(out.len() + 2 * self.depth.min(DEEPEST), b' ');
    }

    fn colour(&self, code: &[u8], out: &mut Vec<u8>) {
        if self.colours {
            out.extend_from_slice(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indented(text: &str) -> String {
        let whole = |step: usize| {
            let (mut indenter, mut out) = (Indenter::new(false), Vec::new());
            text.as_bytes().chunks(step).for_each(|piece| indenter.push(piece, &mut out));
            indenter.finish(&mut out);
            String::from_utf8(out).expect("text")
        };
        let first = whole(1);
        for step in 2..=text.len() {
            assert_eq!(whole(step), first, "in pieces of {step}");
        }
        first
    }

    #[test]
    fn members_and_elements_get_lines() {
        assert_eq!(
            indented(r#"{"a":[1,2.50e3,{"b" : null}],"c":{},"d":[ ]}"#),
            "{\n  \"a\": [\n    1,\n    2.50e3,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}\n"
        );
    }

    #[test]
    fn colours_begin_and_end_with_what_they_show() {
        let (mut indenter, mut out) = (Indenter::new(true), Vec::new());
        indenter.push(b"[12,\"a\"]", &mut out);
        indenter.finish(&mut out);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "[\n  \u{1b}[36m12\u{1b}[0m,\n  \u{1b}[32m\"a\"\u{1b}[0m\n]\u{1b}[0m\n");
    }

    #[test]
    fn strings_stay_as_they_are() {
        let text = r#""a, b: {\"[\\" "#;
        assert_eq!(indented(text), format!("{}\n", text.trim_end()));
        assert_eq!(indented("[\"\\\\\",1]"), "[\n  \"\\\\\",\n  1\n]\n");
    }

    #[test]
    fn bare_controls_are_escaped() {
        assert_eq!(indented("\u{1b}[\"a\u{1b}[31m\n\u{7f}\"]"), "\\x1b[\n  \"a\\x1b[31m\\n\\x7f\"\n]\n");
    }

    #[test]
    fn nothing_stays_nothing_and_depth_is_bounded() {
        assert_eq!(indented(" \n"), "");
        let deep = "[".repeat(2000);
        let (mut indenter, mut out) = (Indenter::new(false), Vec::new());
        indenter.push(deep.as_bytes(), &mut out);
        assert!(out.len() < 2000 * (2 * DEEPEST + 2));
        indenter.push("]]".repeat(2000).as_bytes(), &mut out);
    }
}
