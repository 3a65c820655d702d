//! Where a redirect leads, and what of the request may go there.
//!
//! Two tables decide: what becomes of the method ([`METHODS`], RFC 9110 §15.4) and which fields stay behind
//! ([`CREDENTIALS`], [`CONTENT`]). A field that was left behind is gone for the rest of the chain, even where it comes
//! back to the first origin (S40).

use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE,
    COOKIE, EXPECT, HOST, HeaderName, LOCATION, PROXY_AUTHORIZATION, REFERER, TRANSFER_ENCODING,
    WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

use crate::error::{ErrorKind, RedirectFault, shown_url};
use crate::target;

/// What becomes of the method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The same request again (RFC 9110 §15.4.8, §15.4.9).
    Keep,
    /// POST becomes GET, as every browser has always done (RFC 9110 §15.4.2, §15.4.3, notes).
    PostToGet,
    /// Everything but HEAD becomes GET (RFC 9110 §15.4.4).
    ToGet,
}

/// The redirects that are followed. 300 offers a choice that is not ours to make, 304 is none, 305 and 306 are history.
const METHODS: [(StatusCode, Change); 5] = [
    (StatusCode::MOVED_PERMANENTLY, Change::PostToGet),
    (StatusCode::FOUND, Change::PostToGet),
    (StatusCode::SEE_OTHER, Change::ToGet),
    (StatusCode::TEMPORARY_REDIRECT, Change::Keep),
    (StatusCode::PERMANENT_REDIRECT, Change::Keep),
];

/// What the caller sent to one origin and did not mean for another. So is every value that is marked sensitive.
const CREDENTIALS: [HeaderName; 5] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, WWW_AUTHENTICATE, HOST];

/// What describes a body, and goes with it.
const CONTENT: [HeaderName; 7] = [
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_TYPE,
    TRANSFER_ENCODING,
    EXPECT,
];

/// The part of a request that a redirect can change.
pub(crate) struct Hop<'a> {
    pub(crate) method: &'a mut Method,
    pub(crate) url: &'a mut Url,
    pub(crate) headers: &'a mut HeaderMap,
    /// Whether `Referer` is written.
    pub(crate) referer: bool,
}

/// Whether the body goes along.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// The answer is no redirect.
    No,
    /// Ask again, with the same body.
    WithBody,
    /// Ask again, without one.
    WithoutBody,
}

/// Changes the request to the one that the answer asks for.
pub(crate) fn follow(status: StatusCode, answer: &HeaderMap, hop: &mut Hop<'_>) -> Result<Follow, ErrorKind> {
    let Some((_, change)) = METHODS.iter().find(|(redirect, _)| *redirect == status) else {
        return Ok(Follow::No);
    };
    let mut locations = answer.get_all(LOCATION).iter();
    let Some(location) = locations.next() else { return Ok(Follow::No) };
    if locations.any(|other| other != location) {
        // Somebody else may take another one of them.
        return Err(ErrorKind::Redirect(RedirectFault::BadLocation));
    }
    let next = resolve(hop.url, location)?;
    let to_get = match change {
        Change::Keep => false,
        Change::PostToGet => *hop.method == Method::POST,
        Change::ToGet => *hop.method != Method::HEAD && *hop.method != Method::GET,
    };
    if to_get {
        *hop.method = Method::GET;
        for name in &CONTENT {
            hop.headers.remove(name);
        }
    }
    let same_origin = next.origin() == hop.url.origin();
    if !same_origin {
        leave_credentials(hop.headers);
    }
    if hop.referer {
        match referer(hop.url, &next, same_origin) {
            Some(value) => hop.headers.insert(REFERER, value),
            None => hop.headers.remove(REFERER),
        };
    }
    *hop.url = next;
    Ok(if to_get { Follow::WithoutBody } else { Follow::WithBody })
}

/// `Location` against the URL that was asked for (RFC 9110 §10.2.2).
fn resolve(base: &Url, location: &HeaderValue) -> Result<Url, ErrorKind> {
    const BAD: ErrorKind = ErrorKind::Redirect(RedirectFault::BadLocation);
    // Servers send bytes beyond ASCII there; they are meant as UTF-8.
    let text = std::str::from_utf8(location.as_bytes()).map_err(|_| BAD)?;
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(BAD);
    }
    let mut next = base.join(text).map_err(|_| BAD)?;
    if base.scheme() == "https" && next.scheme() != "https" {
        return Err(ErrorKind::Redirect(RedirectFault::Downgrade));
    }
    target::accept(&next)?;
    // A server must not choose as whom we log in somewhere.
    let _ = next.set_username("");
    let _ = next.set_password(None);
    if next.fragment().is_none() {
        next.set_fragment(base.fragment());
    }
    Ok(next)
}

fn leave_credentials(headers: &mut HeaderMap) {
    let sensitive: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| value.is_sensitive() || CREDENTIALS.contains(name))
        .map(|(name, _)| name.clone())
        .collect();
    for name in sensitive {
        headers.remove(name);
    }
}

/// `Referer` by the policy that browsers have by default (strict-origin-when-cross-origin), without user name,
/// password and fragment (S47).
fn referer(from: &Url, to: &Url, same_origin: bool) -> Option<HeaderValue> {
    if from.scheme() == "https" && to.scheme() != "https" {
        return None;
    }
    let mut shown = shown_url(from);
    if !same_origin {
        shown.set_path("/");
        shown.set_query(None);
    }
    HeaderValue::try_from(shown.as_str()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Request {
        method: Method,
        url: Url,
        headers: HeaderMap,
        referer: bool,
    }

    impl Request {
        fn new(method: Method, url: &str) -> Self {
            let url = Url::parse(url).expect("a URL");
            Request { method, url, headers: HeaderMap::new(), referer: false }
        }

        fn field(mut self, name: &'static str, value: &'static str) -> Self {
            self.headers.append(name, HeaderValue::from_static(value));
            self
        }

        fn follow(&mut self, status: u16, location: &str) -> Result<Follow, ErrorKind> {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut answer = HeaderMap::new();
            answer.insert(LOCATION, HeaderValue::from_bytes(location.as_bytes()).expect("a value"));
            let Request { method, url, headers, referer } = self;
            follow(status, &answer, &mut Hop { method, url, headers, referer: *referer })
        }
    }

    #[test]
    fn the_method_follows_rfc_9110() {
        let table = [
            (301, "GET", "GET", Follow::WithBody),
            (301, "POST", "GET", Follow::WithoutBody),
            (301, "PUT", "PUT", Follow::WithBody),
            (302, "POST", "GET", Follow::WithoutBody),
            (302, "HEAD", "HEAD", Follow::WithBody),
            (302, "DELETE", "DELETE", Follow::WithBody),
            (303, "POST", "GET", Follow::WithoutBody),
            (303, "PUT", "GET", Follow::WithoutBody),
            (303, "HEAD", "HEAD", Follow::WithBody),
            (307, "POST", "POST", Follow::WithBody),
            (308, "POST", "POST", Follow::WithBody),
            (308, "PATCH", "PATCH", Follow::WithBody),
            (300, "GET", "GET", Follow::No),
            (304, "GET", "GET", Follow::No),
            (305, "GET", "GET", Follow::No),
            (306, "GET", "GET", Follow::No),
            (201, "POST", "POST", Follow::No),
        ];
        for (status, before, after, expected) in table {
            let method = Method::from_bytes(before.as_bytes()).expect("a method");
            let mut request = Request::new(method, "http://a/").field("content-type", "text/plain");
            let followed = request.follow(status, "/next").expect("a good redirect");
            assert_eq!((followed, request.method.as_str()), (expected, after), "{status} {before}");
            assert_eq!(request.headers.contains_key(CONTENT_TYPE), before == after, "{status} {before}");
        }
    }

    #[test]
    fn location_is_resolved_and_keeps_the_fragment() {
        for (location, expected) in [
            ("../x?y", "http://a.example/x?y#top"),
            ("/x#own", "http://a.example/x#own"),
            ("//b.example/x", "http://b.example/x#top"),
            ("?q", "http://a.example/one/two?q#top"),
            ("http://user:secret@b.example/", "http://b.example/#top"),
            ("/caf\u{e9}", "http://a.example/caf%C3%A9#top"),
        ] {
            let mut request = Request::new(Method::GET, "http://a.example/one/two#top");
            assert_eq!(request.follow(302, location).expect("a good redirect"), Follow::WithBody);
            assert_eq!(request.url.as_str(), expected, "{location}");
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for location in ["http://", "http://a%00b/", "http://[::1", "http://a/\tb"] {
            let mut request = Request::new(Method::GET, "http://a/");
            let outcome = request.follow(302, location);
            assert!(matches!(outcome, Err(ErrorKind::Redirect(RedirectFault::BadLocation))), "{location:?}");
        }
        for location in ["file:///etc/passwd", "ftp://a/", "javascript:alert(1)", "data:,x"] {
            let mut request = Request::new(Method::GET, "http://a/");
            let outcome = request.follow(302, location);
            assert!(matches!(outcome, Err(ErrorKind::SchemeNotSupported(_))), "{location:?}");
        }
    }

    #[test]
    fn two_locations_are_none() {
        for (second, good) in [("/x", true), ("/y", false)] {
            let mut answer = HeaderMap::new();
            answer.append(LOCATION, HeaderValue::from_static("/x"));
            answer.append(LOCATION, HeaderValue::from_static(second));
            let Request { mut method, mut url, mut headers, referer } =
                Request::new(Method::GET, "http://a/");
            let mut hop = Hop { method: &mut method, url: &mut url, headers: &mut headers, referer };
            assert_eq!(follow(StatusCode::FOUND, &answer, &mut hop).is_ok(), good);
        }
    }

    #[test]
    fn s40_https_never_becomes_http() {
        let mut request = Request::new(Method::GET, "https://a/");
        let outcome = request.follow(301, "http://a/");
        assert!(matches!(outcome, Err(ErrorKind::Redirect(RedirectFault::Downgrade))));
    }

    #[test]
    fn s40_credentials_stay_with_their_origin_and_never_come_back() {
        let secret = || {
            let mut token = HeaderValue::from_static("t");
            token.set_sensitive(true);
            let mut request = Request::new(Method::GET, "http://a.example/")
                .field("authorization", "Basic eA==")
                .field("cookie", "a=b")
                .field("cookie", "c=d")
                .field("proxy-authorization", "Basic eA==")
                .field("host", "virtual.example")
                .field("accept", "text/html");
            request.headers.insert("x-api-key", token);
            request
        };
        let mut same = secret();
        same.follow(302, "http://a.example:80/next").expect("a good redirect");
        assert_eq!(same.headers.len(), 7, "the same origin gets everything");
        for other in
            ["http://b.example/", "http://a.example:81/", "http://sub.a.example/", "http://a.example./"]
        {
            let mut request = secret();
            request.follow(302, other).expect("a good redirect");
            assert_eq!(request.headers.keys().collect::<Vec<_>>(), ["accept"], "{other}");
            request.follow(302, "http://a.example/").expect("a good redirect");
            assert_eq!(request.headers.keys().collect::<Vec<_>>(), ["accept"], "{other} and back");
        }
    }

    #[test]
    fn s47_the_referer_shows_no_secret() {
        let mut request = Request::new(Method::GET, "http://user:secret@a.example/x?y#z");
        request.follow(302, "/next").expect("a good redirect");
        assert!(!request.headers.contains_key(REFERER), "not by default");
        let mut request = Request::new(Method::GET, "http://user:secret@a.example/x?y#z");
        request.referer = true;
        request.follow(302, "/next").expect("a good redirect");
        assert_eq!(request.headers.get(REFERER).expect("a referer"), "http://a.example/x?y");
        request.follow(302, "http://b.example/").expect("a good redirect");
        assert_eq!(request.headers.get(REFERER).expect("a referer"), "http://a.example/");
    }
}
