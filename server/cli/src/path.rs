//! From the path of a request target to a path below the served folder. Bytes in, bytes out: nothing is looked up.
//!
//! The path is cut at its slashes first and decoded then, so an encoded slash never becomes a separator. What is not
//! an ordinary name (`.`, `..`, NUL, a slash inside of a name) is refused here, before any system call; the open
//! itself is confined a second time by [`Root`](crate::root::Root).

/// A path below the served folder: names joined by single slashes, none of them empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    bytes: Vec<u8>,
    directory: bool,
    hidden: bool,
}

/// Why a target names no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// It does not begin with a slash.
    NotAbsolute,
    /// A percent sign without two hexadecimal digits behind it (RFC 3986 §2.1).
    BadEscape,
    /// A NUL byte, which no file name can hold.
    Nul,
    /// A segment `.` or `..`. A client removes them before it sends (RFC 3986 §5.2.4), an attacker does not.
    DotSegment,
    /// A slash written as `%2F`: no file name can hold one.
    EncodedSlash,
}

impl FilePath {
    /// Decodes the path of a request target, without its query. Empty segments are dropped: `//a///b` is `a/b`.
    ///
    /// # Errors
    /// What [`PathError`] lists.
    pub fn parse(target: &str) -> Result<Self, PathError> {
        let raw = target.as_bytes().strip_prefix(b"/").ok_or(PathError::NotAbsolute)?;
        let mut path = FilePath { bytes: Vec::with_capacity(raw.len() + 16), directory: true, hidden: false };
        for (place, segment) in raw.split(|&byte| byte == b'/').enumerate() {
            path.directory = segment.is_empty();
            if !segment.is_empty() {
                path.push_segment(segment, place == 0)?;
            }
        }
        Ok(path)
    }

    fn push_segment(&mut self, segment: &[u8], first: bool) -> Result<(), PathError> {
        if !self.bytes.is_empty() {
            self.bytes.push(b'/');
        }
        let start = self.bytes.len();
        let mut rest = segment.iter();
        while let Some(&byte) = rest.next() {
            let byte = match byte {
                b'%' => {
                    let (high, low) = (rest.next().copied(), rest.next().copied());
                    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                    match (digit(high), digit(low)) {
                        (Some(high), Some(low)) => u8::try_from(high << 4 | low).unwrap_or(0),
                        _ => return Err(PathError::BadEscape),
                    }
                }
                other => other,
            };
            match byte {
                0 => return Err(PathError::Nul),
                b'/' => return Err(PathError::EncodedSlash),
                byte => self.bytes.push(byte),
            }
        }
        match self.bytes.get(start..).unwrap_or_default() {
            b"." | b".." => return Err(PathError::DotSegment),
            // RFC 8615: well-known locations are made to be found.
            b".well-known" if first => {}
            [b'.', ..] => self.hidden = true,
            _ => {}
        }
        Ok(())
    }

    /// The decoded path, relative to the folder: `.` for the folder itself.
    pub fn bytes(&self) -> &[u8] {
        if self.bytes.is_empty() { b"." } else { &self.bytes }
    }

    /// Whether the target ended in a slash, so that only a directory can be meant.
    pub fn is_directory(&self) -> bool {
        self.directory
    }

    /// Whether a name on the way begins with a dot (`.well-known` at the top does not count).
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// The names on the way, from the top.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty())
    }

    /// The last name; empty for the folder itself.
    pub fn name(&self) -> &[u8] {
        self.bytes.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// The path of `name` inside this directory.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> FilePath {
        let mut bytes = Vec::with_capacity(self.bytes.len() + name.len() + 1);
        bytes.extend_from_slice(&self.bytes);
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        FilePath { bytes, directory: false, hidden: self.hidden }
    }

    /// The path of the sibling whose name is this one's with `suffix` behind it.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> FilePath {
        let mut bytes = Vec::with_capacity(self.bytes.len() + suffix.len());
        bytes.extend_from_slice(&self.bytes);
        bytes.extend_from_slice(suffix.as_bytes());
        FilePath { bytes, directory: false, hidden: self.hidden }
    }
}

/// Writes a file name as one segment of a URL's path: everything but RFC 3986's unreserved characters is encoded, so
/// no byte of it can end an attribute, a segment or a field.
pub fn encode_segment(name: &[u8], out: &mut String) {
    for &byte in name {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                for digit in [byte >> 4, byte & 15] {
                    out.extend(char::from_digit(digit.into(), 16).map(|digit| digit.to_ascii_uppercase()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_targets_become_relative_paths() {
        for (target, bytes, directory) in [
            ("/", &b"."[..], true),
            ("//", b".", true),
            ("/a", b"a", false),
            ("/a/", b"a", true),
            ("/a/b.txt", b"a/b.txt", false),
            ("//a///b//", b"a/b", true),
            ("/a%20b", b"a b", false),
            ("/%C3%A4", "ä".as_bytes(), false),
            ("/ä", "ä".as_bytes(), false),
            ("/%ff%FE", b"\xff\xfe", false),
            ("/a%3fb%23", b"a?b#", false),
            ("/a+b", b"a+b", false),
            ("/a%5cb\\c", b"a\\b\\c", false),
            ("/%252e%252e/x", b"%2e%2e/x", false),
            ("/...", b"...", false),
            ("/..a/b..", b"..a/b..", false),
            ("/c:/x", b"c:/x", false),
        ] {
            let path = FilePath::parse(target).unwrap();
            assert_eq!((path.bytes(), path.is_directory()), (bytes, directory), "{target}");
        }
    }

    #[test]
    fn s94_hostile_targets_are_refused_before_any_lookup() {
        for (target, error) in [
            ("", PathError::NotAbsolute),
            ("*", PathError::NotAbsolute),
            ("etc/passwd", PathError::NotAbsolute),
            ("/..", PathError::DotSegment),
            ("/../etc/passwd", PathError::DotSegment),
            ("/a/../../etc/passwd", PathError::DotSegment),
            ("/a/..", PathError::DotSegment),
            ("/.", PathError::DotSegment),
            ("/./a", PathError::DotSegment),
            ("/%2e%2e/etc/passwd", PathError::DotSegment),
            ("/%2E./etc/passwd", PathError::DotSegment),
            ("/.%2e/etc/passwd", PathError::DotSegment),
            ("/%2e/a", PathError::DotSegment),
            ("/..%2fetc%2fpasswd", PathError::EncodedSlash),
            ("/%2fetc/passwd", PathError::EncodedSlash),
            ("/a%2Fb", PathError::EncodedSlash),
            ("/a%00.html", PathError::Nul),
            ("/%00", PathError::Nul),
            ("/%", PathError::BadEscape),
            ("/%2", PathError::BadEscape),
            ("/%zz", PathError::BadEscape),
            ("/%+1", PathError::BadEscape),
            ("/a%2/b", PathError::BadEscape),
            ("/%u002e", PathError::BadEscape),
        ] {
            assert_eq!(FilePath::parse(target), Err(error), "{target}");
        }
    }

    #[test]
    fn names_with_a_leading_dot_are_hidden_wherever_they_stand() {
        for (target, hidden) in [
            ("/.env", true),
            ("/%2eenv", true),
            ("/.git/config", true),
            ("/a/.b/c", true),
            ("/a.b", false),
            ("/.well-known/acme-challenge/x", false),
            ("/.well-known/.x", true),
            ("/a/.well-known/x", true),
        ] {
            assert_eq!(FilePath::parse(target).unwrap().is_hidden(), hidden, "{target}");
        }
    }

    #[test]
    fn an_encoded_segment_decodes_to_its_name_and_holds_no_special_byte() {
        for byte in 1..=255_u8 {
            if byte == b'/' {
                continue;
            }
            let name = [b'n', byte];
            let mut encoded = String::from("/");
            encode_segment(&name, &mut encoded);
            assert_eq!(FilePath::parse(&encoded).unwrap().bytes(), name);
            assert!(
                encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte)),
                "{encoded}"
            );
        }
    }

    #[test]
    fn siblings_and_children_keep_to_their_place() {
        let path = FilePath::parse("/a/b.js").unwrap();
        assert_eq!(path.with_suffix(".br").bytes(), b"a/b.js.br");
        assert_eq!(path.name(), b"b.js");
        let root = FilePath::parse("/").unwrap();
        assert_eq!(root.join(b"index.html").bytes(), b"index.html");
        assert_eq!(FilePath::parse("/d/").unwrap().join(b"i").bytes(), b"d/i");
        assert_eq!(root.name(), b"");
        assert_eq!(root.segments().count(), 0);
        assert_eq!(path.segments().collect::<Vec<_>>(), [&b"a"[..], b"b.js"]);
    }
}
