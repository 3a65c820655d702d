//! A request under construction.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Version};
use hyperman_transport::Runtime;
use serde::Serialize;
use url::Url;

use crate::body::Body;
use crate::call::{self, Notice};
use crate::client::{Config, Inner, Redirects};
use crate::error::{Error, ErrorKind};
use crate::response::Response;
use crate::target;

/// A request under construction. What cannot be sent is told by [`send`](Self::send), not before.
#[must_use = "a request is only made by `send` or `wait`"]
pub struct RequestBuilder<R: Runtime> {
    client: Arc<Inner<R>>,
    parts: Box<Parts>,
}

/// The request, and what it wants different from its client. Does not know the loop.
pub(crate) struct Parts {
    pub(crate) method: Method,
    /// Where to, unless there is a `fault`.
    pub(crate) url: Option<Arc<Url>>,
    /// The first thing that is wrong with the request.
    pub(crate) fault: Option<Error>,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// Default fields that this request goes without.
    pub(crate) omitted: Vec<HeaderName>,
    pub(crate) body: Body,
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) redirects: Redirects,
    pub(crate) expect_continue: Option<Duration>,
    pub(crate) max_body: Option<u64>,
    pub(crate) watch: Option<Watcher>,
    #[cfg(feature = "tls")]
    pub(crate) tls: crate::tls::Choice,
}

pub(crate) type Watcher = Box<dyn FnMut(Notice<'_>) + Send>;

impl<R: Runtime> RequestBuilder<R> {
    pub(crate) fn new(client: Arc<Inner<R>>, method: Method, url: Result<Arc<Url>, Error>) -> Self {
        let parts = Box::new(Parts::new(&client.config, method, url));
        RequestBuilder { client, parts }
    }

    /// Uses this TLS configuration instead of the client's. Connections made with different ones are never shared.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: &crate::tls::ClientTls) -> Self {
        self.parts.tls = crate::tls::Choice::Own(tls.clone());
        self
    }

    /// Takes any certificate for this request and those it is redirected to: anybody on the way can read and change
    /// what is exchanged. For tests and for machines of one's own.
    #[cfg(feature = "tls")]
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.parts.tls = crate::tls::Choice::Unverified;
        self
    }

    /// Adds a field; one of the same name stays beside it.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName>,
        V: TryInto<HeaderValue>,
        N::Error: fmt::Display,
        V::Error: fmt::Display,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.parts.headers.append(name, value);
            }
            (Err(error), _) => self.parts.fail(ErrorKind::Field(error.to_string())),
            (Ok(name), Err(error)) => self.parts.fail(ErrorKind::Field(format!("{name}: {error}"))),
        }
        self
    }

    /// Adds fields; each replaces those of the same name.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.parts.headers.extend(headers);
        self
    }

    /// Leaves a default field of the client out of this request.
    pub fn omit_header(mut self, name: HeaderName) -> Self {
        self.parts.omitted.push(name);
        self
    }

    /// Logs in by Basic credentials (RFC 7617), in place of those in the URL.
    pub fn basic_auth(mut self, user: &str, password: &str) -> Self {
        let pair = format!("{user}:{password}");
        match target::basic(pair.as_bytes()) {
            Ok(value) => {
                self.parts.headers.insert(AUTHORIZATION, value);
            }
            Err(kind) => self.parts.fail(kind),
        }
        self
    }

    /// Logs in by a bearer token (RFC 6750).
    pub fn bearer_auth(mut self, token: &str) -> Self {
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.parts.headers.insert(AUTHORIZATION, value);
            }
            Err(error) => self.parts.fail(ErrorKind::Field(format!("authorization: {error}"))),
        }
        self
    }

    /// Appends to the URL's query: any struct, map or list of pairs that is one level deep.
    pub fn query<T: Serialize + ?Sized>(mut self, query: &T) -> Self {
        let Some(url) = &mut self.parts.url else { return self };
        let outcome = {
            let mut pairs = Arc::make_mut(url).query_pairs_mut();
            let serializer = serde_urlencoded::Serializer::new(&mut pairs);
            query.serialize(serializer).map(drop)
        };
        if url.query() == Some("") {
            Arc::make_mut(url).set_query(None);
        }
        if let Err(error) = outcome {
            self.parts.fail(ErrorKind::Encode(error.into()));
        }
        self
    }

    /// The body: bytes, text, or [`Body::stream`].
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.parts.body = body.into();
        self
    }

    /// A body in JSON, with its `Content-Type` unless there is one.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.parts.typed_body("application/json", body),
            Err(error) => self.parts.fail(ErrorKind::Encode(error.into())),
        }
        self
    }

    /// A body as HTML forms send it, with its `Content-Type` unless there is one.
    pub fn form<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_urlencoded::to_string(value) {
            Ok(body) => self.parts.typed_body("application/x-www-form-urlencoded", body.into_bytes()),
            Err(error) => self.parts.fail(ErrorKind::Encode(error.into())),
        }
        self
    }

    /// The version that is spoken: HTTP/1.1, the default, or HTTP/1.0.
    pub fn version(mut self, version: Version) -> Self {
        self.parts.version = version;
        self
    }

    /// How long the exchange may take, from [`send`](Self::send) to the last byte of the answer.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.parts.timeout = timeout.into();
        self
    }

    /// How long a new connection may take, its name's lookup included.
    pub fn connect_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.parts.connect_timeout = timeout.into();
        self
    }

    /// Whether redirects are followed.
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.parts.redirects = redirects;
        self
    }

    /// Asks with `Expect: 100-continue` whether the body is wanted (RFC 9110 §10.1.1). A server that says nothing for
    /// `patience` gets it all the same; one that answers 417 is asked once more without the question.
    pub fn expect_continue(mut self, patience: Duration) -> Self {
        self.parts.expect_continue = Some(patience);
        self
    }

    /// The longest body of the answer that is taken, in bytes.
    pub fn max_body(mut self, limit: impl Into<Option<u64>>) -> Self {
        self.parts.max_body = limit.into();
        self
    }

    /// Calls `watch` with what happens before the answer is there: connections, interim answers, redirects.
    pub fn watch(mut self, watch: impl FnMut(Notice<'_>) + Send + 'static) -> Self {
        self.parts.watch = Some(Box::new(watch));
        self
    }

    /// Makes the request. The future is ready with the answer's head; dropping it, or the answer, ends the exchange.
    pub fn send(self) -> impl Future<Output = Result<Response<R>, Error>> + use<R> {
        call::run(self.client, self.parts)
    }

    /// Makes the request and blocks until the answer's head is there, on a loop that the call brings along: it works
    /// where no loop runs, and also inside a program that has one, which it holds up meanwhile.
    ///
    /// # Errors
    /// As [`send`](Self::send)'s future, and [`ErrorKind::Loop`].
    #[cfg(feature = "native")]
    pub fn wait(self) -> Result<crate::blocking::Response, Error> {
        crate::blocking::run(self.client.config.clone(), self.parts)
    }
}

impl<R: Runtime> fmt::Debug for RequestBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder")
            .field("method", &self.parts.method)
            .field("url", &self.parts.url.as_ref().map(|url| url.as_str()))
            .field("fault", &self.parts.fault)
            .field("body", &self.parts.body)
            .finish_non_exhaustive()
    }
}

impl Parts {
    pub(crate) fn new(config: &Config, method: Method, url: Result<Arc<Url>, Error>) -> Self {
        let (url, fault) = match url {
            Ok(url) => (Some(url), None),
            Err(fault) => (None, Some(fault)),
        };
        let mut parts = Parts {
            method,
            url,
            fault,
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            omitted: Vec::new(),
            body: Body::empty(),
            timeout: config.timeout,
            connect_timeout: config.connect_timeout,
            redirects: config.redirects,
            expect_continue: None,
            max_body: config.max_body,
            watch: None,
            #[cfg(feature = "tls")]
            tls: crate::tls::Choice::Usual,
        };
        if let Some(url) = &mut parts.url {
            match target::take_credentials(url) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    parts.headers.insert(AUTHORIZATION, value);
                }
                Err(kind) => parts.fail(kind),
            }
        }
        parts
    }

    /// Remembers the first thing that is wrong.
    fn fail(&mut self, kind: ErrorKind) {
        if let (None, Some(url)) = (&self.fault, &self.url) {
            self.fault = Some(Error::new(kind).about(url));
        }
    }

    fn typed_body(&mut self, media_type: &'static str, body: Vec<u8>) {
        self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(media_type));
        self.body = body.into();
    }
}
