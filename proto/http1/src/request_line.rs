//! `method SP target SP version`: exactly one blank between the parts, and a target in the form that the method needs
//! (RFC 9112 §3).

use bytes::Bytes;
use http::{Method, Uri, Version};

use crate::error::{Error, Excerpt};
use crate::grammar::{is_target, split_port};

/// A parsed request line.
#[derive(Clone, Debug)]
pub(crate) struct RequestLine {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// HTTP/1.1, or a later minor version, which is treated like it (RFC 9110 §2.5); else HTTP/1.0.
    pub(crate) http11: bool,
    /// The target was in absolute form, so its authority counts instead of Host (RFC 9112 §3.2.2).
    pub(crate) absolute: bool,
}

/// Reads a request line without its CRLF. The target stays a slice of it.
pub(crate) fn parse(line: &Bytes) -> Result<RequestLine, Error> {
    let malformed = || Error::InvalidRequestLine(Excerpt::of(line));
    let method_end = memchr::memchr(b' ', line).ok_or_else(malformed)?;
    let (method, rest) = line.split_at_checked(method_end).ok_or_else(malformed)?;
    let rest = rest.get(1..).unwrap_or_default();
    let target_length = memchr::memchr(b' ', rest).ok_or_else(malformed)?;
    let version = rest.get(target_length + 1..).unwrap_or_default();
    if target_length == 0 {
        return Err(malformed());
    }
    let http11 = match parse_version(version) {
        Ok(http11) => http11,
        Err(_) if is_foreign(method, rest.get(..target_length).unwrap_or_default(), version) => {
            return Err(Error::NotHttp(Excerpt::of(line)));
        }
        Err(error) => return Err(error),
    };
    let method = Method::from_bytes(method).map_err(|_| Error::InvalidMethod(Excerpt::of(method)))?;
    let target = line.slice(method_end + 1..method_end + 1 + target_length);
    let (uri, absolute) = parse_target(&method, target)?;
    Ok(RequestLine { method, uri, http11, absolute })
}

/// Whether these are the words of somebody who means no HTTP/1 (RFC 9112 §2.2 speaks of what appears to be a request
/// message). Everything that could be a slip of somebody who does, is none.
fn is_foreign(method: &[u8], target: &[u8], version: &[u8]) -> bool {
    let is_word = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_alphabetic);
    let names_http = version.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"http"));
    is_word(method) && is_word(target) && is_word(version) && !names_http
}

/// Whether the version is 1.1 or later within HTTP/1; an error for every other major number.
pub(crate) fn parse_version(version: &[u8]) -> Result<bool, Error> {
    match version {
        b"HTTP/1.1" => Ok(true),
        b"HTTP/1.0" => Ok(false),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            match major {
                b'1' => Ok(true),
                // HTTP/0.9 had no version to send.
                b'0' => Err(Error::InvalidVersion(Excerpt::of(version))),
                _ => Err(Error::UnsupportedVersion(Excerpt::of(version))),
            }
        }
        _ => Err(Error::InvalidVersion(Excerpt::of(version))),
    }
}

/// The version as the `http` crate names it.
#[inline]
pub(crate) fn version(http11: bool) -> Version {
    if http11 { Version::HTTP_11 } else { Version::HTTP_10 }
}

fn parse_target(method: &Method, target: Bytes) -> Result<(Uri, bool), Error> {
    let form = target_form(method, &target).ok_or_else(|| Error::InvalidTarget(Excerpt::of(&target)))?;
    let excerpt_source = target.clone();
    let uri =
        Uri::from_maybe_shared(target).map_err(|_| Error::InvalidTarget(Excerpt::of(&excerpt_source)))?;
    Ok((uri, form == TargetForm::Absolute))
}

/// The four forms of RFC 9112 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetForm {
    Origin,
    Absolute,
    Authority,
    Asterisk,
}

/// The form that a target has, if its method may have it. User information has no place in a request (RFC 9110
/// §4.2.4).
pub(crate) fn target_form(method: &Method, target: &[u8]) -> Option<TargetForm> {
    if !is_target(target) {
        return None;
    }
    if *method == Method::CONNECT {
        let (host, port) = split_port(target)?;
        let complete = !host.is_empty() && port.is_some_and(|port| !port.is_empty());
        return complete.then_some(TargetForm::Authority);
    }
    match target {
        [b'/', ..] => Some(TargetForm::Origin),
        b"*" => (*method == Method::OPTIONS).then_some(TargetForm::Asterisk),
        _ => {
            let colon = memchr::memchr(b':', target)?;
            let (scheme, rest) = target.split_at_checked(colon)?;
            let rest = rest.strip_prefix(b"://")?;
            let end = rest.iter().position(|&byte| byte == b'/' || byte == b'?').unwrap_or(rest.len());
            let (host, _) = split_port(rest.get(..end)?)?;
            let complete = is_scheme(scheme) && !host.is_empty();
            complete.then_some(TargetForm::Absolute)
        }
    }
}

/// scheme (RFC 3986 §3.1)
fn is_scheme(scheme: &[u8]) -> bool {
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<RequestLine, Error> {
        parse(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn all_four_target_forms() {
        for (text, uri) in [
            ("GET / HTTP/1.1", "/"),
            ("GET /a/b?c=d&e HTTP/1.1", "/a/b?c=d&e"),
            ("GET //double//slash HTTP/1.1", "//double//slash"),
            ("GET /{curly}|pipe HTTP/1.1", "/{curly}|pipe"),
            ("GET http://example.com HTTP/1.1", "http://example.com/"),
            ("GET http://example.com:8080/a?b HTTP/1.0", "http://example.com:8080/a?b"),
            ("GET http://[::1]/ HTTP/1.1", "http://[::1]/"),
            ("CONNECT example.com:443 HTTP/1.1", "example.com:443"),
            ("CONNECT [::1]:443 HTTP/1.1", "[::1]:443"),
            ("OPTIONS * HTTP/1.1", "*"),
            ("BREW-IT /pot HTTP/1.1", "/pot"),
        ] {
            assert_eq!(line(text).unwrap().uri.to_string(), uri, "{text}");
        }
    }

    #[test]
    fn targets_in_no_or_the_wrong_form_are_refused() {
        for text in [
            "GET * HTTP/1.1",
            "GET example.com:80 HTTP/1.1",
            "GET a HTTP/1.1",
            "CONNECT / HTTP/1.1",
            "CONNECT example.com HTTP/1.1",
            "CONNECT example.com: HTTP/1.1",
            "CONNECT http://a:80 HTTP/1.1",
            "CONNECT u@a:80 HTTP/1.1",
            "CONNECT :80 HTTP/1.1",
            "GET http:///a HTTP/1.1",
            "GET http://user@host/ HTTP/1.1",
            "GET http://u:p@host/ HTTP/1.1",
            "GET http:/a HTTP/1.1",
            "GET 1http://a/ HTTP/1.1",
            "GET http://a:b/ HTTP/1.1",
            "GET /a#b HTTP/1.1",
            "GET /\u{e9} HTTP/1.1",
            "GET /\t HTTP/1.1",
            "GET /\0 HTTP/1.1",
            "GET /\u{7f} HTTP/1.1",
            "OPTIONS ** HTTP/1.1",
            "GET http://a b/ HTTP/1.1",
            "GET ?a HTTP/1.1",
            "GET http://:80/ HTTP/1.1",
            "GET http://[::1/ HTTP/1.1",
        ] {
            let error = line(text).unwrap_err();
            let refused = matches!(error, Error::InvalidTarget(_) | Error::InvalidVersion(_));
            assert!(refused, "{text} {error}");
        }
    }

    #[test]
    fn what_is_foreign_is_told_from_what_is_wrong() {
        for text in ["INVALID CONNECTION PREFACE", "EHLO mail there", "SSH two dot"] {
            assert!(matches!(line(text), Err(Error::NotHttp(_))), "{text}");
        }
        for text in
            ["GET / FOO", "GET a HTTP", "GET a http", "GET * FOO", "GET a:1 FOO", "a b", "a b c d", "a b 1.1"]
        {
            assert!(!matches!(line(text), Err(Error::NotHttp(_))), "{text}");
        }
    }

    #[test]
    fn s11_absolute_form_is_told_apart() {
        assert!(line("GET http://a/ HTTP/1.1").unwrap().absolute);
        assert!(!line("GET /http://a/ HTTP/1.1").unwrap().absolute);
        assert!(!line("CONNECT a:1 HTTP/1.1").unwrap().absolute);
    }

    #[test]
    fn exactly_one_blank_between_the_parts() {
        for text in [
            "GET",
            "GET ",
            "GET /",
            "GET  / HTTP/1.1",
            "GET /  HTTP/1.1",
            " GET / HTTP/1.1",
            "GET / HTTP/1.1 ",
            "GET\t/ HTTP/1.1",
            "GET /\tHTTP/1.1",
            "",
            "G(T / HTTP/1.1",
            "GET / / HTTP/1.1",
            "G\0T / HTTP/1.1",
        ] {
            assert!(line(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn versions() {
        assert!(line("GET / HTTP/1.1").unwrap().http11);
        assert!(line("GET / HTTP/1.9").unwrap().http11);
        assert!(!line("GET / HTTP/1.0").unwrap().http11);
        for text in ["HTTP/2.0", "HTTP/3.1", "HTTP/9.9"] {
            assert!(matches!(line(&format!("PRI * {text}")), Err(Error::UnsupportedVersion(_))), "{text}");
        }
        for text in [
            "http/1.1",
            "HTTP/1.10",
            "HTTP/11",
            "HTTP/1,1",
            "HTTP/0.9",
            "HTTP/1.",
            "HTTP/2",
            "HTTP/+1.1",
            "HTTPS/1.1",
            "HTTP /1.1",
            "HTTP/1.1\r",
        ] {
            assert!(matches!(line(&format!("GET / {text}")), Err(Error::InvalidVersion(_))), "{text}");
        }
    }
}
