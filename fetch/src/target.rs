//! What a URL says about an exchange: whom to connect to, what to ask for, and as whom.
//!
//! One [`Url`] type, the WHATWG's, feeds the pool key, the name that is resolved, `Host`, the request target and the
//! redirect rules, so no two of them can read a URL differently (S46).

use std::cell::RefCell;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use url::{Host, Position, Url};

use crate::error::{Error, ErrorKind, UrlFault};

/// The schemes of the Web, as far as they are spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    #[cfg(feature = "tls")]
    Https,
}

impl Scheme {
    /// Whether it is spoken over TLS.
    pub(crate) fn is_encrypted(self) -> bool {
        !matches!(self, Scheme::Http)
    }

    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            #[cfg(feature = "tls")]
            Scheme::Https => 443,
        }
    }
}

/// Scheme, host and port (RFC 9110 §4.3.1): whom a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
}

impl Origin {
    /// The origin of a URL that [`accept`] has taken.
    pub(crate) fn of(url: &Url) -> Result<Self, ErrorKind> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            #[cfg(feature = "tls")]
            "https" => Scheme::Https,
            other => return Err(ErrorKind::SchemeNotSupported(other.to_owned())),
        };
        let host = url.host().ok_or(ErrorKind::Url(UrlFault::NoHost))?.to_owned();
        Ok(Origin { scheme, host, port: url.port().unwrap_or(scheme.default_port()) })
    }
}

/// What can be given where a URL is wanted.
pub trait IntoUrl: sealed::Sealed {
    /// The URL. It is shared, for what is asked for again and again.
    ///
    /// # Errors
    /// [`ErrorKind::Url`] for what is not a URL, and [`ErrorKind::SchemeNotSupported`].
    fn into_url(self) -> Result<Arc<Url>, Error>;
}

impl IntoUrl for &str {
    fn into_url(self) -> Result<Arc<Url>, Error> {
        parse(self)
    }
}

impl IntoUrl for String {
    fn into_url(self) -> Result<Arc<Url>, Error> {
        parse(&self)
    }
}

impl IntoUrl for &String {
    fn into_url(self) -> Result<Arc<Url>, Error> {
        parse(self)
    }
}

impl IntoUrl for Url {
    fn into_url(self) -> Result<Arc<Url>, Error> {
        accept(&self)?;
        Ok(Arc::new(self))
    }
}

impl IntoUrl for &Url {
    fn into_url(self) -> Result<Arc<Url>, Error> {
        // As a text it may be remembered, which spares a copy.
        parse(self.as_str())
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for String {}
    impl Sealed for &String {}
    impl Sealed for url::Url {}
    impl Sealed for &url::Url {}
}

thread_local! {
    static PARSED: RefCell<[Option<Parsed>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) };
}

/// A text and the URL that it is.
struct Parsed {
    text: Box<str>,
    url: Arc<Url>,
}

/// How many URLs a thread remembers the parsed form of: parsing one costs as much as half a request, and a program
/// that is busy asks for the same ones again and again.
const SLOTS: usize = 16;

/// The longest text that is remembered, in bytes.
const REMEMBERED: usize = 256;

/// Parses an absolute URL that can be asked for, or remembers it.
pub(crate) fn parse(text: &str) -> Result<Arc<Url>, Error> {
    if text.len() > REMEMBERED {
        return parse_anew(text).map(Arc::new);
    }
    // The end and the length tell most URLs of one server apart. A slot that is fought over costs no more than parsing.
    let end = text.as_bytes().last_chunk().map_or(0, |end| u64::from_ne_bytes(*end));
    let sum = (end ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let sum = usize::try_from(sum).unwrap_or_default();
    PARSED.with_borrow_mut(|slots| {
        let Some(slot) = slots.get_mut(sum % SLOTS) else { return parse_anew(text).map(Arc::new) };
        match slot {
            Some(known) if *known.text == *text => Ok(known.url.clone()),
            _ => {
                let url = Arc::new(parse_anew(text)?);
                *slot = Some(Parsed { text: text.into(), url: url.clone() });
                Ok(url)
            }
        }
    })
}

fn parse_anew(text: &str) -> Result<Url, Error> {
    // The WHATWG's parser drops tabs and line breaks wherever they stand. Somebody who glued two lines together should
    // hear of it instead of asking another host than the one that is seen.
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(ErrorKind::Url(UrlFault::Control).into());
    }
    let url = Url::parse(text).map_err(|error| ErrorKind::Url(UrlFault::Syntax(error)))?;
    accept(&url)?;
    Ok(url)
}

/// Whether the URL is one that can be asked for.
pub(crate) fn accept(url: &Url) -> Result<(), ErrorKind> {
    match url.scheme() {
        "http" => {}
        #[cfg(feature = "tls")]
        "https" => {}
        other => return Err(ErrorKind::SchemeNotSupported(other.to_owned())),
    }
    match url.host() {
        Some(Host::Domain("")) | None => Err(ErrorKind::Url(UrlFault::NoHost)),
        Some(_) => Ok(()),
    }
}

/// The request target in origin form (RFC 9112 §3.2.1).
pub(crate) fn request_target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// Host and port as `Host` shows them (RFC 9110 §7.2): no user name, and no port where it is the scheme's own.
pub(crate) fn authority(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

/// Takes user name and password off the URL and writes them as Basic credentials (RFC 7617 §2), so that neither can
/// reach a field, an error or a redirect by way of the URL (S47).
pub(crate) fn take_credentials(url: &mut Arc<Url>) -> Result<Option<HeaderValue>, ErrorKind> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok(None);
    }
    let mut pair: Vec<u8> = percent_decode_str(url.username()).collect();
    // A colon in the name would move the line between name and password (RFC 7617 §2).
    if pair.contains(&b':') || !url.has_host() {
        return Err(ErrorKind::Url(UrlFault::Credentials));
    }
    pair.push(b':');
    pair.extend(percent_decode_str(url.password().unwrap_or_default()));
    if pair.iter().any(u8::is_ascii_control) {
        return Err(ErrorKind::Url(UrlFault::Credentials));
    }
    let url = Arc::make_mut(url);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    basic(&pair).map(Some)
}

/// `Basic` and the pair in base64, marked sensitive.
pub(crate) fn basic(pair: &[u8]) -> Result<HeaderValue, ErrorKind> {
    let mut text = String::from("Basic ");
    STANDARD.encode_string(pair, &mut text);
    let mut value = HeaderValue::try_from(text).map_err(|_| ErrorKind::Url(UrlFault::Credentials))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        match parse(text) {
            Ok(url) => panic!("{text:?} was taken as {url}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn s46_hosts_that_other_parsers_misread_are_refused() {
        for text in [
            "http://good.example%2fevil.example/",
            "http://good.example%00.evil.example/",
            "http://exa mple.com/",
            "http://[::1/",
            "http://[::1]evil/",
            "http://[fe80::1%25eth0]/",
            "http://:80/",
            "http:///",
            "http://user@/",
            "http://host:65536/",
            "http://host:80a/",
            "http://1.2.3.4.5/",
            "http://xn--a/",
            "relative/path",
            "",
        ] {
            assert!(fault(text).starts_with("bad URL: "), "{text:?}: {}", fault(text));
        }
    }

    #[test]
    fn s46_control_characters_are_refused_not_dropped() {
        for text in [
            "http://exam\nple.com/",
            "http://example.com/\r\nX: y",
            "http://example.com/\t",
            "\u{0}http://a/",
        ] {
            assert_eq!(fault(text), "bad URL: it holds a control character", "{text:?}");
        }
    }

    #[test]
    fn s46_one_reading_feeds_origin_host_and_target() {
        let url = parse("http://USER:pw@Bücher.Example:80/a/../b c?d=e f#frag").expect("a URL");
        let origin = Origin::of(&url).expect("an origin");
        assert_eq!(origin.host, Host::Domain("xn--bcher-kva.example".to_owned()));
        assert_eq!(origin.port, 80);
        assert_eq!(authority(&url), "xn--bcher-kva.example");
        assert_eq!(request_target(&url), "/b%20c?d=e%20f");
        let url = parse("http://0x7f.1:8080").expect("a URL");
        assert_eq!(authority(&url), "127.0.0.1:8080");
        assert_eq!(request_target(&url), "/");
        let url = parse("http://[0:0::1]:81/?").expect("a URL");
        assert_eq!(authority(&url), "[::1]:81");
        assert_eq!(request_target(&url), "/?");
        let url = parse("http://good.example\\@evil.example/").expect("a URL");
        assert_eq!(authority(&url), "good.example");
    }

    #[test]
    fn s46_a_long_run_of_dot_segments_is_read_in_linear_time() {
        let text = format!("http://a/{}", "../x/".repeat(200_000));
        let started = std::time::Instant::now();
        assert_eq!(request_target(&parse(&text).expect("a URL")), "/x/");
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn schemes_that_are_not_spoken_are_named() {
        assert_eq!(fault("ftp://example.com/"), "the scheme \"ftp\" is not supported");
        assert_eq!(fault("localhost:8080/x"), "the scheme \"localhost\" is not supported");
    }

    #[test]
    fn s47_credentials_leave_the_url_and_become_a_sensitive_field() {
        let mut url = parse("http://Aladdin:open%20sesame@example.com/x").expect("a URL");
        let value = take_credentials(&mut url).expect("credentials").expect("some");
        assert_eq!(value.as_bytes(), b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
        assert_eq!(url.as_str(), "http://example.com/x");
        let mut url = parse("http://a%3Ab:c@example.com/").expect("a URL");
        assert!(take_credentials(&mut url).is_err(), "a colon in the name moves the split");
        let mut url = parse("http://a%0d%0aX:c@example.com/").expect("a URL");
        assert!(take_credentials(&mut url).is_err(), "controls cannot be sent");
    }
}
