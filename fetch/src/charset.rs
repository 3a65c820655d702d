//! Which characters the bytes of an answer stand for.

use encoding_rs::{Encoding, UTF_8};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// Decodes a body by the WHATWG's order (Encoding Standard §6): a byte order mark first, then the `charset` parameter
/// of `Content-Type`, then UTF-8. Bytes that stand for nothing become U+FFFD.
pub(crate) fn decode(headers: &HeaderMap, body: &[u8]) -> String {
    let named = headers.get(CONTENT_TYPE).and_then(|value| charset(value.as_bytes()));
    let encoding = named.and_then(Encoding::for_label).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

/// The value of the `charset` parameter of a media type (RFC 9110 §8.3.1).
fn charset(media_type: &[u8]) -> Option<&[u8]> {
    let mut rest = after(media_type, b';')?;
    loop {
        rest = rest.trim_ascii_start();
        let end_of_name = rest.iter().position(|&byte| byte == b'=' || byte == b';')?;
        let (name, tail) = rest.split_at(end_of_name);
        let Some(tail) = tail.strip_prefix(b"=") else {
            // A parameter without a value says nothing.
            rest = tail.get(1..)?;
            continue;
        };
        let (value, next) = match tail.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quoted.iter().position(|&byte| byte == b'"')?;
                (quoted.get(..end)?, quoted.get(end..)?)
            }
            None => tail.split_at(tail.iter().position(|&byte| byte == b';').unwrap_or(tail.len())),
        };
        if name.trim_ascii().eq_ignore_ascii_case(b"charset") {
            return Some(value.trim_ascii());
        }
        rest = after(next, b';')?;
    }
}

fn after(bytes: &[u8], separator: u8) -> Option<&[u8]> {
    let at = bytes.iter().position(|&byte| byte == separator)?;
    bytes.get(at + 1..)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn text(content_type: &'static str, body: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        decode(&headers, body)
    }

    #[test]
    fn the_charset_parameter_is_found_wherever_it_stands() {
        for content_type in [
            "text/html;charset=iso-8859-1",
            "text/html; Charset=\"ISO-8859-1\"",
            "text/html; flag; charset=latin1",
            "text/html; title=\"a; b\"; charset=latin1 ; x=y",
        ] {
            assert_eq!(text(content_type, b"caf\xe9"), "café", "{content_type}");
        }
    }

    #[test]
    fn without_a_charset_it_is_utf_8_and_what_is_not_becomes_a_replacement() {
        assert_eq!(text("text/html", "café".as_bytes()), "café");
        assert_eq!(text("text/html; charset=", b"a"), "a");
        assert_eq!(text("text/html; charset=no-such-thing", b"a\xff"), "a\u{fffd}");
        assert_eq!(text("text/html; title=\"charset=latin1", b"\xc3\xa9"), "é");
        assert_eq!(decode(&HeaderMap::new(), b"\xc3\xa9"), "é");
    }

    #[test]
    fn a_byte_order_mark_wins_and_is_not_part_of_the_text() {
        assert_eq!(text("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xa9"), "é");
        assert_eq!(text("text/plain; charset=utf-8", b"\xff\xfeh\0i\0"), "hi");
        assert_eq!(text("text/plain; charset=shift_jis", b"\x93\xfa\x96\x7b"), "日本");
    }
}
