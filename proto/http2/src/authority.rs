//! `uri-host [ ":" port ]`, as `:authority` and Host hold it (RFC 9110 §7.2, RFC 9113 §8.3.1), by the same rules as on
//! HTTP/1.1 (S30): whatever becomes of a request, it must not name another host there than here.

/// A host and its port, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostPort<'a> {
    /// A name, an IPv4 address, or an address in brackets. Never empty.
    pub(crate) host: &'a [u8],
    /// `None` where it is left out or left empty.
    pub(crate) port: Option<u16>,
}

impl<'a> HostPort<'a> {
    /// Takes `text` apart; `None` where it is not what the grammar says. User information has no place in a request.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        let (host, rest) = if text.first() == Some(&b'[') {
            let close = text.iter().position(|&byte| byte == b']')?;
            let (host, rest) = text.split_at_checked(close + 1)?;
            is_address(host).then_some((host, rest))?
        } else {
            let end = text.iter().position(|&byte| byte == b':').unwrap_or(text.len());
            let (host, rest) = text.split_at_checked(end)?;
            (!host.is_empty() && is_name(host)).then_some((host, rest))?
        };
        let port = match rest {
            [] => None,
            [b':', digits @ ..] => read_port(digits)?,
            _ => return None,
        };
        Some(HostPort { host, port })
    }

    /// Whether both name the same place, without regard to case and to the port that the scheme has anyway (RFC 9113
    /// §8.3.1, RFC 3986 §6.2.3).
    pub(crate) fn is_same(&self, other: &HostPort<'_>, scheme_port: Option<u16>) -> bool {
        self.host.eq_ignore_ascii_case(other.host) && self.port.or(scheme_port) == other.port.or(scheme_port)
    }
}

/// A port number, or nothing.
fn read_port(digits: &[u8]) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    digits
        .iter()
        .try_fold(0_u16, |port, &byte| {
            let digit = byte.is_ascii_digit().then(|| u16::from(byte - b'0'))?;
            port.checked_mul(10)?.checked_add(digit)
        })
        .map(Some)
}

/// reg-name or IPv4address (RFC 3986 §3.2.2). A comma, which the grammar would allow, is what a hop makes of two Host
/// lines.
fn is_name(mut bytes: &[u8]) -> bool {
    loop {
        bytes = match bytes {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [byte, rest @ ..] if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(byte) => rest,
            _ => return false,
        };
    }
}

/// An IPv6 address in brackets; a zone has no place in HTTP.
fn is_address(bytes: &[u8]) -> bool {
    let [b'[', inner @ .., b']'] = bytes else { return false };
    std::str::from_utf8(inner).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_ports() {
        for (text, host, port) in [
            ("a", "a", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("a:", "a", None),
            ("a:0", "a", Some(0)),
            ("a:00080", "a", Some(80)),
            ("a:65535", "a", Some(65_535)),
            ("127.0.0.1:1", "127.0.0.1", Some(1)),
            ("[::1]", "[::1]", None),
            ("[2001:db8::1]:443", "[2001:db8::1]", Some(443)),
            ("a_b.c-d", "a_b.c-d", None),
            ("a%41", "a%41", None),
        ] {
            let expected = HostPort { host: host.as_bytes(), port };
            assert_eq!(HostPort::parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn s11_what_is_no_host() {
        for text in [
            "",
            ":80",
            "a:b",
            "a:65536",
            "a:99999999999",
            "a:-1",
            "a:1:2",
            "a,b",
            "a b",
            "u@a",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "<a>",
            "\"a\"",
            "a%",
            "a%4",
            "a%zz",
            "[::1",
            "[zz]",
            "[]",
            "[::1]x",
            "[fe80::1%25eth0]",
            "::1",
            "\u{e9}",
            "a\t",
        ] {
            assert_eq!(HostPort::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_port_of_the_scheme_may_be_left_out() {
        let same = |one: &str, other: &str, port| {
            HostPort::parse(one.as_bytes())
                .unwrap()
                .is_same(&HostPort::parse(other.as_bytes()).unwrap(), port)
        };
        assert!(same("a", "A:80", Some(80)));
        assert!(same("a:", "a", None));
        assert!(!same("a", "a:443", Some(80)));
        assert!(!same("a", "b", Some(80)));
        assert!(!same("a:81", "a", Some(80)));
    }
}
