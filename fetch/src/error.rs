//! What can go wrong with an exchange, one variant for each thing that a caller could do something about.
//!
//! What a peer sent is escaped before it is shown, and the URL that an error carries has lost its user name, password
//! and fragment: an error may end in a log.

use std::fmt;
use std::io;

use http::StatusCode;
use url::Url;

/// The error of whoever wrote a request body or serialised a value.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an exchange failed.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    url: Option<Url>,
    processed: bool,
    /// Whether the head of an answer came before.
    answered: bool,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Error { inner: Box::new(Inner { kind, url: None, processed: false, answered: false }) }
    }

    /// An error after the head of an answer: the server has certainly seen the request.
    pub(crate) fn answered(kind: ErrorKind) -> Self {
        Error { inner: Box::new(Inner { kind, url: None, processed: true, answered: true }) }
    }

    /// Names the URL that the exchange was about, unless one is named already.
    pub(crate) fn about(mut self, url: &Url) -> Self {
        if self.inner.url.is_none() {
            self.inner.url = Some(shown_url(url));
        }
        self
    }

    pub(crate) fn maybe_processed(mut self, processed: bool) -> Self {
        self.inner.processed = processed;
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    /// The URL that was asked for last, without user name, password and fragment.
    pub fn url(&self) -> Option<&Url> {
        self.inner.url.as_ref()
    }

    /// Whether the server may have acted on the request. False means that it certainly has not, so the request can be
    /// made again whatever its method is.
    pub fn request_may_have_been_processed(&self) -> bool {
        self.inner.processed
    }

    /// Whether a deadline passed: the connect deadline or the total one.
    pub fn is_timeout(&self) -> bool {
        matches!(self.inner.kind, ErrorKind::ConnectTimeout | ErrorKind::Timeout)
    }

    /// Whether no connection came about.
    pub fn is_connect(&self) -> bool {
        #[cfg(feature = "tls")]
        if matches!(self.inner.kind, ErrorKind::Tls(_) | ErrorKind::TlsConfig(_)) {
            return true;
        }
        matches!(
            self.inner.kind,
            ErrorKind::Connect { .. }
                | ErrorKind::ConnectTimeout
                | ErrorKind::Resolve { .. }
                | ErrorKind::ResolverBusy
        )
    }

    /// Whether the request could never be made as it was written: its URL, fields or body are at fault.
    pub fn is_request(&self) -> bool {
        matches!(
            self.inner.kind,
            ErrorKind::Url(_)
                | ErrorKind::SchemeNotSupported(_)
                | ErrorKind::Request(_)
                | ErrorKind::Http2Request(_)
                | ErrorKind::Field(_)
                | ErrorKind::Encode(_)
        )
    }

    /// Whether the answer's head came but not its whole body: the connection or the stream ended, what came was not what
    /// the head announced, or a deadline or a limit was passed. What the caller has read by then is a part.
    pub fn is_partial(&self) -> bool {
        self.inner.answered || matches!(self.inner.kind, ErrorKind::PartialBody(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.url {
            Some(url) => write!(f, "{} ({url})", self.inner.kind),
            None => self.inner.kind.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.kind {
            ErrorKind::Url(UrlFault::Syntax(source)) => Some(source),
            ErrorKind::Request(source) => Some(source),
            ErrorKind::Http2Request(source) => Some(source),
            ErrorKind::Http2(source) => Some(source),
            ErrorKind::Http2Stream(source) => Some(source),
            ErrorKind::Encode(source) | ErrorKind::RequestBody(source) => Some(&**source),
            ErrorKind::Resolve { source, .. }
            | ErrorKind::Connect { source, .. }
            | ErrorKind::Send(source)
            | ErrorKind::Receive(source)
            | ErrorKind::PartialBody(PartialBody::Transport(source))
            | ErrorKind::Loop(source) => Some(source),
            ErrorKind::Protocol(source) => Some(source),
            ErrorKind::Json(source) => Some(source),
            #[cfg(feature = "tls")]
            ErrorKind::Tls(source) => Some(source),
            #[cfg(feature = "tls")]
            ErrorKind::TlsConfig(source) => Some(source),
            _ => None,
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error::new(kind)
    }
}

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The URL cannot be asked for.
    Url(UrlFault),
    /// The scheme is one that this build does not speak.
    SchemeNotSupported(String),
    /// The request cannot be written as HTTP/1.
    Request(hyperman_http1::Misuse),
    /// The request cannot be written as HTTP/2.
    Http2Request(hyperman_http2::Misuse),
    /// A field's name or value holds what a field cannot hold; the text says which.
    Field(String),
    /// A value could not be written as JSON, a form or a query.
    Encode(BoxError),
    /// The stream that gives the request's body failed.
    RequestBody(BoxError),
    /// The host's name has no address.
    Resolve {
        /// The name.
        host: String,
        /// What the system's resolver said.
        source: io::Error,
    },
    /// More names wait to be looked up than the resolver queues.
    ResolverBusy,
    /// No address of the host took the connection.
    Connect {
        /// The host and port.
        authority: String,
        /// What the last address said.
        source: io::Error,
    },
    /// There is no TLS connection: the certificate is not to be trusted, or the handshake failed.
    #[cfg(feature = "tls")]
    Tls(hyperman_transport::tls::Error),
    /// The TLS configuration cannot be had.
    #[cfg(feature = "tls")]
    TlsConfig(hyperman_transport::tls::ConfigError),
    /// The connect deadline passed: names looked up and handshakes included.
    ConnectTimeout,
    /// The total deadline passed.
    Timeout,
    /// The request could not be sent, and no answer was there to be read.
    Send(io::Error),
    /// The connection failed before the answer began.
    Receive(io::Error),
    /// The server closed the connection without an answer.
    EmptyReply,
    /// A connection kept from an earlier exchange ended without an answer, and the request is not one that may be
    /// made twice (RFC 9110 §9.2.2).
    StaleConnection,
    /// What the server sent is not an HTTP answer that we take.
    Protocol(hyperman_http1::Error),
    /// An HTTP/2 connection ended, and this exchange with it.
    Http2(hyperman_http2::Error),
    /// The exchange's stream on an HTTP/2 connection ended early.
    Http2Stream(hyperman_http2::StreamError),
    /// The answer's body ended before it was whole.
    PartialBody(PartialBody),
    /// The answer's body is longer than the given limit, in bytes.
    BodyTooLarge(u64),
    /// The answer's status says that the request failed, and that was asked not to be an answer.
    Status(StatusCode),
    /// More redirects followed one another than the given limit.
    TooManyRedirects(u32),
    /// A redirect led where the client does not go.
    Redirect(RedirectFault),
    /// The answer's body is not the JSON that was asked for.
    Json(serde_json::Error),
    /// The connection that the answer arrived on cannot be taken over: the server did not switch protocols.
    NotUpgraded,
    /// The loop for a blocking call could not be had.
    Loop(io::Error),
}

/// Why a URL cannot be asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum UrlFault {
    /// It is not a URL by the WHATWG's rules.
    Syntax(url::ParseError),
    /// It holds a control character or a line break.
    Control,
    /// It names no host.
    NoHost,
    /// Its user name or password cannot be sent.
    Credentials,
}

/// How a body ended early.
#[derive(Debug)]
#[non_exhaustive]
pub enum PartialBody {
    /// The server closed the connection.
    Closed,
    /// The connection failed.
    Transport(io::Error),
}

/// Why a redirect was not followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RedirectFault {
    /// `Location` is not a URL, or one that cannot be asked for.
    BadLocation,
    /// It led from `https` to a scheme without encryption.
    Downgrade,
    /// The body has to be sent again, and it was a stream that is used up.
    BodyNotReplayable,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::Url(fault) => write!(f, "bad URL: {fault}"),
            ErrorKind::SchemeNotSupported(scheme) => {
                write!(f, "the scheme \"{}\" is not supported", scheme.escape_debug())
            }
            ErrorKind::Request(misuse) => write!(f, "the request cannot be sent: {misuse}"),
            ErrorKind::Http2Request(misuse) => write!(f, "the request cannot be sent: {misuse}"),
            ErrorKind::Field(text) => write!(f, "bad request field: {}", text.escape_debug()),
            ErrorKind::Encode(error) => write!(f, "a value could not be written: {error}"),
            ErrorKind::RequestBody(error) => write!(f, "the request's body failed: {error}"),
            ErrorKind::Resolve { host, source } => {
                write!(f, "could not resolve host {}: {source}", host.escape_debug())
            }
            ErrorKind::ResolverBusy => f.write_str("too many names wait to be looked up"),
            ErrorKind::Connect { authority, source } => {
                write!(f, "failed to connect to {}: {source}", authority.escape_debug())
            }
            #[cfg(feature = "tls")]
            ErrorKind::Tls(error) => error.fmt(f),
            #[cfg(feature = "tls")]
            ErrorKind::TlsConfig(error) => error.fmt(f),
            ErrorKind::ConnectTimeout => f.write_str("connecting took too long"),
            ErrorKind::Timeout => f.write_str("the exchange took too long"),
            ErrorKind::Send(error) => write!(f, "sending failed: {error}"),
            ErrorKind::Receive(error) => write!(f, "receiving failed: {error}"),
            ErrorKind::EmptyReply => f.write_str("the server closed the connection without an answer"),
            ErrorKind::StaleConnection => f.write_str(
                "a kept connection ended without an answer, and the request may not be made twice",
            ),
            ErrorKind::Protocol(error) => write!(f, "bad answer: {error}"),
            ErrorKind::Http2(error) => write!(f, "the HTTP/2 connection failed: {error}"),
            ErrorKind::Http2Stream(error) => write!(f, "the HTTP/2 stream failed: {error}"),
            ErrorKind::PartialBody(PartialBody::Closed) => {
                f.write_str("the server closed the connection before the body was whole")
            }
            ErrorKind::PartialBody(PartialBody::Transport(error)) => {
                write!(f, "the connection failed before the body was whole: {error}")
            }
            ErrorKind::BodyTooLarge(limit) => write!(f, "the body is longer than {limit} bytes"),
            ErrorKind::Status(status) => write!(f, "the server answered {status}"),
            ErrorKind::TooManyRedirects(limit) => write!(f, "more than {limit} redirects"),
            ErrorKind::Redirect(fault) => write!(f, "redirect not followed: {fault}"),
            ErrorKind::Json(error) => write!(f, "the body is not the JSON that was expected: {error}"),
            ErrorKind::NotUpgraded => f.write_str("the server did not switch protocols"),
            ErrorKind::Loop(error) => write!(f, "no loop for a blocking call: {error}"),
        }
    }
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlFault::Syntax(error) => error.fmt(f),
            UrlFault::Control => f.write_str("it holds a control character"),
            UrlFault::NoHost => f.write_str("it names no host"),
            UrlFault::Credentials => f.write_str("its user name or password cannot be sent"),
        }
    }
}

impl fmt::Display for RedirectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RedirectFault::BadLocation => "Location is not a URL that can be asked for",
            RedirectFault::Downgrade => "it leads from https to http",
            RedirectFault::BodyNotReplayable => "the body would have to be sent again, and it is used up",
        })
    }
}

/// The URL as it may be shown: no user name, password or fragment.
pub(crate) fn shown_url(url: &Url) -> Url {
    let mut url = url.clone();
    // Both fail only for URLs that cannot have a user name at all.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    url
}
