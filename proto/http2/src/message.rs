//! From decoded fields to a request, a response or trailers (RFC 9113 §8), under the limits of S24.
//!
//! A section is collected to its end even when a field makes it malformed, because the dynamic table must stay in step.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode, Uri, Version};

use crate::authority::HostPort;
use crate::config::{ABUSE, Limits};
use crate::error::{Malformed, Spent};
use crate::event::BodyLength;
use crate::hpack::{FIELD_OVERHEAD, Field, Pseudo};
use crate::priority::Priority;

/// The fields of one section, as they come out of its header block.
#[derive(Debug, Default)]
pub(crate) struct Section {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
    status: Option<Bytes>,
    headers: HeaderMap,
    /// The first Cookie field.
    cookie: Option<HeaderValue>,
    /// All of them joined, once there is more than one (RFC 9113 §8.2.3).
    crumbs: BytesMut,
    content_length: Option<u64>,
    malformed: Option<Malformed>,
    size: usize,
    count: usize,
    over: bool,
    /// Octets of the method and the path.
    target: usize,
    long_target: bool,
    pub(crate) spent: Option<Spent>,
}

/// A request head that obeys the rules.
#[derive(Debug, Clone)]
pub(crate) struct RequestHead {
    pub(crate) method: Method,
    uri: Uri,
    headers: HeaderMap,
    protocol: Option<Bytes>,
    pub(crate) content_length: Option<u64>,
    pub(crate) priority: Option<Priority>,
    pub(crate) expect: Expectation,
}

/// What the Expect fields of a request say together (RFC 9110 §10.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expectation {
    None,
    /// `100-continue` and nothing else.
    Continue,
    /// Something that we do not know.
    Other,
}

impl Expectation {
    fn of(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::EXPECT).iter();
        let members =
            lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')).map(<[u8]>::trim_ascii);
        members.filter(|member| !member.is_empty()).fold(Expectation::None, |before, member| {
            if before != Expectation::Other && member.eq_ignore_ascii_case(b"100-continue") {
                Expectation::Continue
            } else {
                Expectation::Other
            }
        })
    }
}

impl Section {
    /// Takes one field. Breaks off when the section is so large that decoding on would serve an attack.
    pub(crate) fn push(&mut self, field: Field, size: usize, limits: &Limits) -> ControlFlow<()> {
        self.size = self.size.saturating_add(size);
        self.count += 1;
        if let Field::Pseudo(Pseudo::Method | Pseudo::Path, value) = &field {
            self.target = self.target.saturating_add(value.len());
            self.long_target |= self.target > limits.target;
        }
        let large = size > limits.field.saturating_add(FIELD_OVERHEAD);
        if self.size > limits.header_list || self.count > limits.fields || large || self.long_target {
            self.over = true;
            if self.size > limits.header_list.saturating_mul(ABUSE) {
                self.spent = Some(Spent::HeaderList);
            } else if self.count > limits.fields.saturating_mul(ABUSE) {
                self.spent = Some(Spent::Fields);
            }
            // Nothing more is kept, but the table still has to follow.
            return if self.spent.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        match field {
            Field::Pseudo(pseudo, value) => self.pseudo(pseudo, value),
            Field::Regular(name, value) => self.regular(name, value),
            Field::Malformed => self.fault(Malformed::Field),
        }
        ControlFlow::Continue(())
    }

    /// Whether it is the target that is above its limit.
    pub(crate) fn has_long_target(&self) -> bool {
        self.long_target
    }

    /// Whether the section is above a limit.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    fn fault(&mut self, malformed: Malformed) {
        self.malformed.get_or_insert(malformed);
    }

    fn pseudo(&mut self, pseudo: Pseudo, value: Bytes) {
        if !self.headers.is_empty() || self.cookie.is_some() {
            return self.fault(Malformed::PseudoField);
        }
        let slot = match pseudo {
            Pseudo::Method => &mut self.method,
            Pseudo::Scheme => &mut self.scheme,
            Pseudo::Authority => &mut self.authority,
            Pseudo::Path => &mut self.path,
            Pseudo::Protocol => &mut self.protocol,
            Pseudo::Status => &mut self.status,
        };
        if slot.replace(value).is_some() {
            self.fault(Malformed::PseudoField);
        }
    }

    fn regular(&mut self, name: HeaderName, value: HeaderValue) {
        if is_connection_field(&name)
            || (name == header::TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers"))
        {
            return self.fault(Malformed::ConnectionField);
        }
        if name == header::COOKIE {
            return self.crumb(value);
        }
        if name == header::CONTENT_LENGTH {
            match (parse_length(value.as_bytes()), self.content_length) {
                (Some(length), None) => self.content_length = Some(length),
                // The same number twice is one number (RFC 9110 §8.6).
                (Some(length), Some(before)) if length == before => return,
                _ => return self.fault(Malformed::BadContentLength),
            }
        }
        // A map takes 32,768 names; `fields` is far below, unless configured otherwise.
        if self.headers.try_append(name, value).is_err() {
            self.over = true;
        }
    }

    fn crumb(&mut self, crumb: HeaderValue) {
        let Some(first) = &mut self.cookie else {
            self.cookie = Some(crumb);
            return;
        };
        if self.crumbs.is_empty() {
            self.crumbs.extend_from_slice(first.as_bytes());
        }
        self.crumbs.extend_from_slice(b"; ");
        self.crumbs.extend_from_slice(crumb.as_bytes());
        first.set_sensitive(first.is_sensitive() || crumb.is_sensitive());
    }

    fn take_headers(&mut self) -> HeaderMap {
        if let Some(first) = self.cookie.take() {
            let mut cookie = first.clone();
            if !self.crumbs.is_empty() {
                let joined = HeaderValue::from_maybe_shared(self.crumbs.split().freeze());
                cookie = joined.unwrap_or(cookie);
                cookie.set_sensitive(first.is_sensitive());
            }
            self.headers.insert(header::COOKIE, cookie);
        }
        std::mem::take(&mut self.headers)
    }

    /// The section as a request head (RFC 9113 §8.3.1, §8.5; RFC 8441 §4).
    pub(crate) fn into_request(mut self, connect_protocol: bool) -> Result<RequestHead, Malformed> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        if self.status.is_some() {
            return Err(Malformed::PseudoField);
        }
        let method = self.method.take().ok_or(Malformed::MissingPseudoField)?;
        let method = Method::from_bytes(&method).map_err(|_| Malformed::BadPseudoField)?;
        if let Some(protocol) = &self.protocol
            && !(connect_protocol && method == Method::CONNECT && is_token(protocol))
        {
            return Err(Malformed::BadPseudoField);
        }
        let uri = if method == Method::CONNECT && self.protocol.is_none() {
            self.connect_target()?
        } else {
            self.target(&method)?
        };
        let protocol = self.protocol.take();
        let priority = self.headers.get("priority").map(|field| Priority::default().merge(field.as_bytes()));
        let expect = Expectation::of(&self.headers);
        // A CONNECT has no content: what follows is the tunnel's (RFC 9110 §9.3.6).
        let content_length = self.content_length.filter(|_| method != Method::CONNECT);
        let headers = self.take_headers();
        Ok(RequestHead { method, uri, headers, protocol, content_length, priority, expect })
    }

    fn connect_target(&mut self) -> Result<Uri, Malformed> {
        if self.scheme.is_some() || self.path.is_some() {
            return Err(Malformed::BadPseudoField);
        }
        let value = self.authority.take().ok_or(Malformed::MissingPseudoField)?;
        if host_port(&value)?.port.is_none() {
            return Err(Malformed::BadPseudoField);
        }
        // Which port a Host field means that has none is not known: no scheme belongs to the request.
        self.check_host(Some(&value), None)?;
        let authority = Authority::from_maybe_shared(value).map_err(|_| Malformed::BadPseudoField)?;
        let mut parts = http::uri::Parts::default();
        parts.authority = Some(authority);
        Uri::from_parts(parts).map_err(|_| Malformed::BadPseudoField)
    }

    fn target(&mut self, method: &Method) -> Result<Uri, Malformed> {
        let scheme = read_scheme(&self.scheme.take().ok_or(Malformed::MissingPseudoField)?)?;
        let path = read_path(self.path.take().ok_or(Malformed::MissingPseudoField)?, method)?;
        let value = self.authority.take();
        let scheme_port = match scheme.as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        self.check_host(value.as_ref(), scheme_port)?;
        let authority = value.map(Authority::from_maybe_shared).transpose();
        let authority = authority.map_err(|_| Malformed::BadPseudoField)?;
        let mut parts = http::uri::Parts::default();
        parts.scheme = authority.is_some().then_some(scheme);
        parts.authority = authority;
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).map_err(|_| Malformed::BadPseudoField)
    }

    /// Host is checked like an authority, is there at most once, and names the same place as `:authority`, if both are
    /// there; one of them must be (S11, RFC 9113 §8.3.1).
    fn check_host(&self, authority: Option<&Bytes>, scheme_port: Option<u16>) -> Result<(), Malformed> {
        let authority = authority.map(|value| host_port(value)).transpose()?;
        let mut hosts = self.headers.get_all(header::HOST).iter();
        let Some(host) = hosts.next() else {
            return authority.map(drop).ok_or(Malformed::MissingPseudoField);
        };
        if hosts.next().is_some() {
            return Err(Malformed::HostMismatch);
        }
        let host = host_port(host.as_bytes())?;
        match authority {
            Some(authority) if !authority.is_same(&host, scheme_port) => Err(Malformed::HostMismatch),
            _ => Ok(()),
        }
    }

    /// The section as the head of a response (RFC 9113 §8.3.2), with its Content-Length.
    pub(crate) fn into_response(mut self) -> Result<(http::Response<()>, Option<u64>), Malformed> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        let request = [&self.method, &self.scheme, &self.authority, &self.path, &self.protocol];
        if request.into_iter().any(Option::is_some) {
            return Err(Malformed::PseudoField);
        }
        let status = self.status.take().ok_or(Malformed::MissingPseudoField)?;
        let status = StatusCode::from_bytes(&status).map_err(|_| Malformed::BadPseudoField)?;
        let content_length = self.content_length;
        let mut response = http::Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = Version::HTTP_2;
        *response.headers_mut() = self.take_headers();
        Ok((response, content_length))
    }

    /// The section as trailers (RFC 9113 §8.1). Names that would change what the message means are left out (S09).
    pub(crate) fn into_trailers(mut self) -> Result<HeaderMap, Malformed> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        let pseudo = [&self.method, &self.scheme, &self.authority, &self.path, &self.protocol, &self.status];
        if pseudo.into_iter().any(Option::is_some) {
            return Err(Malformed::PseudoField);
        }
        let mut trailers = std::mem::take(&mut self.headers);
        for name in &FORBIDDEN_TRAILERS {
            trailers.remove(name);
        }
        Ok(trailers)
    }
}

impl RequestHead {
    /// What follows the head.
    pub(crate) fn body(&self, end_stream: bool) -> BodyLength {
        match self.content_length {
            _ if end_stream => BodyLength::Empty,
            Some(length) => BodyLength::Known(length),
            None => BodyLength::Unknown,
        }
    }

    pub(crate) fn into_request(self) -> http::Request<()> {
        let mut request = http::Request::new(());
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.headers;
        if let Some(protocol) = self.protocol {
            request.extensions_mut().insert(crate::event::Protocol(protocol));
        }
        request
    }
}

/// Framing, routing, request modifiers, credentials, and what says how to read the content: none of it may come behind
/// the content (RFC 9110 §6.5.1). The names are the same as on HTTP/1.1.
const FORBIDDEN_TRAILERS: [HeaderName; 32] = [
    header::AGE,
    header::AUTHORIZATION,
    HeaderName::from_static("authentication-info"),
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::EXPECT,
    header::EXPIRES,
    header::HOST,
    HeaderName::from_static("http2-settings"),
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LOCATION,
    header::MAX_FORWARDS,
    header::PRAGMA,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::RETRY_AFTER,
    header::SET_COOKIE,
    header::TE,
    header::TRAILER,
    header::VARY,
    header::WWW_AUTHENTICATE,
];

/// The names of RFC 9113 §8.2.2. TE is looked at apart, for its value.
pub(crate) fn is_connection_field(name: &HeaderName) -> bool {
    *name == header::CONNECTION
        || *name == header::TRANSFER_ENCODING
        || *name == header::UPGRADE
        || name == "keep-alive"
        || name == "proxy-connection"
}

/// Whether a trailer field may be sent.
pub(crate) fn is_forbidden_trailer(name: &HeaderName) -> bool {
    is_connection_field(name) || FORBIDDEN_TRAILERS.contains(name)
}

/// Digits only (S04).
pub(crate) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |length, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}

fn host_port(value: &[u8]) -> Result<HostPort<'_>, Malformed> {
    HostPort::parse(value).ok_or(Malformed::BadPseudoField)
}

/// token (RFC 9110 §5.6.2)
fn is_token(bytes: &[u8]) -> bool {
    let is_token_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_token_byte)
}

/// scheme (RFC 3986 §3.1)
fn read_scheme(value: &[u8]) -> Result<Scheme, Malformed> {
    if !value.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(Malformed::BadPseudoField);
    }
    Scheme::try_from(value).map_err(|_| Malformed::BadPseudoField)
}

/// A path begins with a slash; the asterisk is for OPTIONS (RFC 9113 §8.3.1). A fragment never belongs to it, nor do
/// bytes beyond ASCII (S30, RFC 3986 §3.3).
fn read_path(value: Bytes, method: &Method) -> Result<PathAndQuery, Malformed> {
    if &value[..] == b"/" {
        return Ok(PathAndQuery::from_static("/"));
    }
    let asterisk = &value[..] == b"*" && *method == Method::OPTIONS;
    let visible = value.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#');
    if (value.first() != Some(&b'/') && !asterisk) || !visible {
        return Err(Malformed::BadPseudoField);
    }
    PathAndQuery::from_maybe_shared(value).map_err(|_| Malformed::BadPseudoField)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(fields: &[(&str, &str)]) -> Section {
        let limits = Limits::default();
        let mut section = Section::default();
        for (name, value) in fields {
            let bytes = Bytes::copy_from_slice(value.as_bytes());
            let field = match *name {
                ":method" => Field::Pseudo(Pseudo::Method, bytes),
                ":scheme" => Field::Pseudo(Pseudo::Scheme, bytes),
                ":authority" => Field::Pseudo(Pseudo::Authority, bytes),
                ":path" => Field::Pseudo(Pseudo::Path, bytes),
                ":protocol" => Field::Pseudo(Pseudo::Protocol, bytes),
                ":status" => Field::Pseudo(Pseudo::Status, bytes),
                _ => Field::Regular(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap()),
            };
            assert!(section.push(field, name.len() + value.len() + 32, &limits).is_continue());
        }
        section
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "example.com"), (":path", "/a?b")];

    fn with(more: &[(&'static str, &'static str)]) -> Section {
        section(&[&GET[..], more].concat())
    }

    fn without(name: &str) -> Section {
        let fields: Vec<_> = GET.into_iter().filter(|(field, _)| *field != name).collect();
        section(&fields)
    }

    fn replaced(name: &str, value: &'static str) -> Section {
        section(&GET.map(|(field, before)| (field, if field == name { value } else { before })))
    }

    #[test]
    fn a_request_has_all_its_parts() {
        let head = with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("content-length", "5")]);
        let head = head.into_request(false).unwrap();
        assert_eq!(head.content_length, Some(5));
        let request = head.into_request();
        assert_eq!(request.uri(), "https://example.com/a?b");
        assert_eq!(request.headers()["cookie"], "a=1; b=2");
        assert_eq!(request.version(), Version::HTTP_2);
    }

    /// The pseudo-field rules of RFC 9113 §8.3.1 and §8.5, one line each.
    #[test]
    fn malformed_requests() {
        let cases: Vec<(Section, Malformed)> = vec![
            (without(":method"), Malformed::MissingPseudoField),
            (without(":scheme"), Malformed::MissingPseudoField),
            (without(":path"), Malformed::MissingPseudoField),
            (without(":authority"), Malformed::MissingPseudoField),
            (replaced(":path", ""), Malformed::BadPseudoField),
            (replaced(":path", "a"), Malformed::BadPseudoField),
            (replaced(":path", "*"), Malformed::BadPseudoField),
            (replaced(":path", "/a#b"), Malformed::BadPseudoField),
            (replaced(":path", "/\u{7f}"), Malformed::BadPseudoField),
            (replaced(":path", "/\u{e9}"), Malformed::BadPseudoField),
            (replaced(":method", "G T"), Malformed::BadPseudoField),
            (replaced(":scheme", ":"), Malformed::BadPseudoField),
            (replaced(":scheme", ""), Malformed::BadPseudoField),
            (replaced(":scheme", "1http"), Malformed::BadPseudoField),
            (replaced(":authority", "user@example.com"), Malformed::BadPseudoField),
            (replaced(":authority", "example.com:x"), Malformed::BadPseudoField),
            (replaced(":authority", "example.com:65536"), Malformed::BadPseudoField),
            (replaced(":authority", "example.com,other.example"), Malformed::BadPseudoField),
            (replaced(":authority", "[zz]"), Malformed::BadPseudoField),
            (
                section(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "a:65536")]),
                Malformed::BadPseudoField,
            ),
            (replaced(":authority", ""), Malformed::BadPseudoField),
            (replaced(":method", "CONNECT"), Malformed::BadPseudoField),
            (with(&[(":status", "200")]), Malformed::PseudoField),
            (with(&[(":path", "/")]), Malformed::PseudoField),
            (with(&[("a", "b"), (":protocol", "x")]), Malformed::PseudoField),
            (with(&[(":protocol", "websocket")]), Malformed::BadPseudoField),
            (with(&[("host", "other.example")]), Malformed::HostMismatch),
            (with(&[("host", "example.com"), ("host", "example.com")]), Malformed::HostMismatch),
            (with(&[("host", "a b")]), Malformed::BadPseudoField),
            (with(&[("connection", "close")]), Malformed::ConnectionField),
            (with(&[("keep-alive", "1")]), Malformed::ConnectionField),
            (with(&[("proxy-connection", "close")]), Malformed::ConnectionField),
            (with(&[("transfer-encoding", "chunked")]), Malformed::ConnectionField),
            (with(&[("upgrade", "h2c")]), Malformed::ConnectionField),
            (with(&[("te", "trailers, deflate")]), Malformed::ConnectionField),
            (with(&[("content-length", "+1")]), Malformed::BadContentLength),
            (with(&[("content-length", "1"), ("content-length", "2")]), Malformed::BadContentLength),
            (
                section(&[(":method", "CONNECT"), (":authority", "a:1"), (":path", "/")]),
                Malformed::BadPseudoField,
            ),
            (section(&[(":method", "CONNECT"), (":authority", "a")]), Malformed::BadPseudoField),
            (
                section(&[(":method", "CONNECT"), (":authority", "a:1"), ("host", "b:1")]),
                Malformed::HostMismatch,
            ),
            (section(&[(":method", "CONNECT")]), Malformed::MissingPseudoField),
        ];
        for (place, (section, malformed)) in cases.into_iter().enumerate() {
            assert_eq!(section.into_request(false).map(|_| ()), Err(malformed), "case {place}");
        }
    }

    #[test]
    fn requests_that_look_odd_and_are_fine() {
        let cases: Vec<Section> = vec![
            with(&[("host", "EXAMPLE.com:443")]),
            with(&[("te", "trailers")]),
            with(&[("content-length", "3"), ("content-length", "3")]),
            section(&[(":method", "CONNECT"), (":authority", "example.com:443")]),
            section(&[(":method", "OPTIONS"), (":scheme", "http"), (":authority", "a"), (":path", "*")]),
            section(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), ("host", "a")]),
        ];
        for (place, section) in cases.into_iter().enumerate() {
            assert!(section.into_request(false).is_ok(), "case {place}");
        }
    }

    #[test]
    fn an_extended_connect_needs_the_setting() {
        let fields: Vec<_> = [&GET[1..], &[(":method", "CONNECT"), (":protocol", "websocket")]].concat();
        let request = section(&fields).into_request(true).unwrap().into_request();
        assert_eq!(request.extensions().get::<crate::Protocol>().unwrap().as_str(), "websocket");
        assert!(section(&fields).into_request(false).is_err());
        for no_token in ["", "web socket"] {
            let fields: Vec<_> = [&GET[1..], &[(":method", "CONNECT"), (":protocol", no_token)]].concat();
            assert!(section(&fields).into_request(true).is_err(), "{no_token:?}");
        }
    }

    #[test]
    fn expectations_are_a_list_over_all_lines() {
        for (lines, expectation) in [
            (&[][..], Expectation::None),
            (&[""], Expectation::None),
            (&["100-Continue"], Expectation::Continue),
            (&["100-continue, ,100-continue", "100-continue"], Expectation::Continue),
            (&["100-continue, x"], Expectation::Other),
            (&["x", "100-continue"], Expectation::Other),
            (&["100-continue;q=1"], Expectation::Other),
        ] {
            let fields: Vec<_> = lines.iter().map(|line| ("expect", *line)).collect();
            let head = with(&fields).into_request(false).unwrap();
            assert_eq!(head.expect, expectation, "{lines:?}");
        }
    }

    #[test]
    fn responses_need_a_status_and_nothing_of_a_request() {
        let (response, length) =
            section(&[(":status", "404"), ("content-length", "7")]).into_response().unwrap();
        assert_eq!((response.status().as_u16(), length), (404, Some(7)));
        for fields in [vec![], vec![(":status", "20")], vec![(":status", "abc")], vec![(":status", "099")]] {
            assert!(section(&fields).into_response().is_err(), "{fields:?}");
        }
        let both = section(&[(":status", "200"), (":path", "/")]).into_response();
        assert_eq!(both.map(|_| ()), Err(Malformed::PseudoField));
    }

    #[test]
    fn trailers_lose_what_would_change_the_message() {
        let trailers =
            section(&[("x-sum", "1"), ("content-length", "9"), ("host", "a")]).into_trailers().unwrap();
        assert_eq!(trailers.len(), 1);
        assert_eq!(section(&[(":path", "/")]).into_trailers(), Err(Malformed::PseudoField));
    }

    /// S24: crumbs count one by one, and so do the 32 octets of each field.
    #[test]
    fn a_section_above_its_limits_is_known_and_then_refused() {
        let limits = Limits { header_list: 1000, fields: 10, ..Limits::default() };
        let crumb = || Field::Regular(header::COOKIE, HeaderValue::from_static("a"));
        let mut section = Section::default();
        for _ in 0..10 {
            assert!(section.push(crumb(), 39, &limits).is_continue());
        }
        assert!(!section.is_over());
        for _ in 10..40 {
            assert!(section.push(crumb(), 39, &limits).is_continue());
        }
        assert!(section.is_over() && section.spent.is_none());
        assert!(section.push(crumb(), 39, &limits).is_break());
        assert_eq!(section.spent, Some(Spent::Fields));

        let mut section = Section::default();
        assert!(section.push(crumb(), 4001, &limits).is_break());
        assert_eq!(section.spent, Some(Spent::HeaderList));
    }
}
