//! The byte classes of RFC 9110 §5.6 and RFC 3986, and the validators of small strings built from them.

/// Bits of [`CLASS`].
const TOKEN: u8 = 1;
const HOST: u8 = 2;
const TARGET: u8 = 4;
const VALUE: u8 = 8;
const ADDRESS: u8 = 16;

// Evaluated at compile time only, where an index out of range is a compile error.
#[allow(clippy::indexing_slicing)]
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        let mut class = 0;
        if b.is_ascii_alphanumeric() || in_set(b, b"!#$%&'*+-.^_`|~") {
            class |= TOKEN;
        }
        // unreserved and sub-delims; `%` is checked apart, because two digits must follow. A comma, which the grammar
        // would allow, is what a hop makes of two Host lines.
        if b.is_ascii_alphanumeric() || in_set(b, b"-._~!$&'()*+;=") {
            class |= HOST;
        }
        // Browsers send more than RFC 3986 allows raw in a query; what can end a line, a part or a target stays out.
        if b.is_ascii_graphic() && b != b'#' {
            class |= TARGET;
        }
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            class |= VALUE;
        }
        // IPv6 and IPvFuture literals between the brackets (RFC 3986 §3.2.2); a zone has no place in HTTP.
        if b.is_ascii_hexdigit() || in_set(b, b":.") {
            class |= ADDRESS;
        }
        table[byte] = class;
        byte += 1;
    }
    table
}

#[allow(clippy::indexing_slicing)]
const fn in_set(byte: u8, set: &[u8]) -> bool {
    let mut at = 0;
    while at < set.len() {
        if set[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

static CLASS: [u8; 256] = classes();

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASS.get(usize::from(byte)).is_some_and(|bits| bits & class != 0)
}

#[inline]
pub(crate) fn is_token_byte(byte: u8) -> bool {
    is(byte, TOKEN)
}

/// token (RFC 9110 §5.6.2)
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is(byte, TOKEN))
}

/// What a request target may be made of, before its form is looked at: visible ASCII without `#`.
pub(crate) fn is_target(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is(byte, TARGET))
}

/// field-value, including obs-text (RFC 9110 §5.5). Eight bytes at a time, the last eight perhaps twice; a tab is rare
/// enough to be left to the slow way.
#[inline]
pub(crate) fn is_field_value(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else { return is_field_value_slowly(bytes) };
    let suspicious = bytes
        .chunks_exact(8)
        .filter_map(<[u8]>::first_chunk)
        .fold(control_in(last), |found, chunk| found | control_in(chunk));
    suspicious == 0 || is_field_value_slowly(bytes)
}

/// Not 0 if a byte is below a blank or is DEL.
#[inline]
fn control_in(bytes: &[u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let word = u64::from_le_bytes(*bytes);
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    let delete = (word ^ (ONES * 0x7f)).wrapping_sub(ONES) & !(word ^ (ONES * 0x7f));
    (below | delete) & (ONES * 0x80)
}

fn is_field_value_slowly(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// A byte that may stand inside a quoted string without a backslash, or behind one.
pub(crate) fn is_value_byte(byte: u8) -> bool {
    is(byte, VALUE)
}

/// Without blanks at both ends: SP and HTAB only.
#[inline]
pub(crate) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// `uri-host [ ":" port ]` (RFC 9110 §7.2). All of it may be empty: that is what a client without an authority sends.
pub(crate) fn is_host(bytes: &[u8]) -> bool {
    split_port(bytes).is_some_and(|(host, port)| !host.is_empty() || port.is_none())
}

/// The host and the port of `uri-host [ ":" port ]`; `None` where it is not one.
pub(crate) fn split_port(bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (host, rest) = if bytes.first() == Some(&b'[') {
        let close = memchr::memchr(b']', bytes)?;
        let (host, rest) = bytes.split_at_checked(close + 1)?;
        is_ip_literal(host).then_some((host, rest))?
    } else {
        let end = memchr::memchr(b':', bytes).unwrap_or(bytes.len());
        let (host, rest) = bytes.split_at_checked(end)?;
        is_reg_name(host).then_some((host, rest))?
    };
    match rest {
        [] => Some((host, None)),
        [b':', port @ ..] => is_port(port).then_some((host, Some(port))),
        _ => None,
    }
}

fn is_ip_literal(bytes: &[u8]) -> bool {
    let [b'[', inner @ .., b']'] = bytes else { return false };
    match inner {
        // IPvFuture: "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
        [b'v' | b'V', rest @ ..] => {
            match memchr::memchr(b'.', rest).and_then(|dot| rest.split_at_checked(dot)) {
                Some((version, [_dot, address @ ..])) => {
                    !version.is_empty()
                        && version.iter().all(u8::is_ascii_hexdigit)
                        && !address.is_empty()
                        && address.iter().all(|&byte| byte == b':' || is(byte, HOST))
                }
                _ => false,
            }
        }
        _ => {
            inner.iter().all(|&byte| is(byte, ADDRESS))
                && std::str::from_utf8(inner).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
        }
    }
}

/// reg-name or IPv4address (RFC 3986 §3.2.2)
fn is_reg_name(mut bytes: &[u8]) -> bool {
    loop {
        bytes = match bytes {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [byte, rest @ ..] if is(*byte, HOST) => rest,
            _ => return false,
        };
    }
}

/// Port digits; none at all are allowed by the grammar. Not more than a port number can have.
fn is_port(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_digit)
        && (bytes.is_empty() || decimal(bytes).is_some_and(|port| port <= u64::from(u16::MAX)))
}

/// Digits only, checked against overflow (S04).
pub(crate) fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s11_host_grammar() {
        for good in [
            "",
            "a",
            "example.com",
            "example.com:80",
            "example.com:",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:80",
            "[v1.fe:80]",
            "a_b",
            "%41.example",
            "xn--bcher-kva.example",
        ] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b",
            "a/b",
            "user@host",
            "a:b",
            "a:80:80",
            "[::1",
            "::1",
            "[::1]80",
            "[::1]:x",
            "[g::1]",
            "a:65536",
            "%4",
            "%zz",
            "a\r",
            "a\0",
            "[v.x]",
            "[fe80::1%25eth0]",
            "a,b",
            "b\u{fc}cher",
            "a?b",
            "a#b",
            "a\\b",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn s13_field_values_at_every_length_and_position() {
        for length in 1..40 {
            for position in 0..length {
                for byte in 0..=255u8 {
                    let mut value = vec![b'x'; length];
                    value[position] = byte;
                    let good = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
                    assert_eq!(is_field_value(&value), good, "{byte} at {position} of {length}");
                }
            }
        }
        assert!(is_field_value(b""));
    }

    #[test]
    fn s04_decimal_is_digits_that_fit() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"007"), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in
            ["", "+1", "-1", "1 ", " 1", "0x1", "1,1", "18446744073709551616", "99999999999999999999", "1_0"]
        {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }
}
