//! An answer: its head, and its body in the form that the caller wants.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use http_body::Body as _;
use hyperman_transport::Runtime;
use serde::de::DeserializeOwned;
use url::Url;

use crate::charset;
use crate::error::{Error, ErrorKind};
use crate::incoming::{Incoming, Upgraded};

/// An answer whose head has arrived. Dropping it closes the connection if more of the body is to come.
pub struct Response<R: Runtime> {
    head: http::Response<()>,
    url: Arc<Url>,
    peer: SocketAddr,
    trailers: Option<Box<HeaderMap>>,
    body: Incoming<R>,
}

impl<R: Runtime> Response<R> {
    pub(crate) fn new(head: http::Response<()>, url: Arc<Url>, peer: SocketAddr, body: Incoming<R>) -> Self {
        Response { head, url, peer, trailers: None, body }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.head.status()
    }

    /// The version that the server speaks.
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// The fields of the head.
    pub fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// The URL that gave this answer, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The server's address.
    pub fn remote_addr(&self) -> SocketAddr {
        self.peer
    }

    /// The head: status, version, fields, and what the protocol left in the extensions.
    pub fn head(&self) -> &http::Response<()> {
        &self.head
    }

    /// The length of the body where it was announced, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.body.announced()
    }

    /// This answer, unless its status is one of the 4xx and 5xx.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] then.
    pub fn error_for_status(self) -> Result<Self, Error> {
        let status = self.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(Error::new(ErrorKind::Status(status)).maybe_processed(true).about(&self.url));
        }
        Ok(self)
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// When the body does not arrive whole, or breaks a limit or deadline.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let Some(frame) = frame else { return Ok(None) };
            match frame.map_err(|error| error.about(&self.url))?.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
            }
        }
    }

    /// The trailers, once [`chunk`](Self::chunk) has come to the end.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        if let Some(whole) = self.body.take_whole() {
            return Ok(whole);
        }
        let Response { url, body, .. } = self;
        let collected = body.collect().await.map_err(|error| error.about(&url))?;
        Ok(collected.0)
    }

    /// The whole body and the trailers.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn bytes_and_trailers(self) -> Result<(Bytes, Option<HeaderMap>), Error> {
        let Response { url, body, .. } = self;
        body.collect().await.map_err(|error| error.about(&url))
    }

    /// The whole body as text: in the charset that a byte order mark or `Content-Type` names, otherwise in UTF-8. What
    /// stands for no character becomes U+FFFD.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn text(self) -> Result<String, Error> {
        let Response { head, url, body, .. } = self;
        let (bytes, _) = body.collect().await.map_err(|error| error.about(&url))?;
        Ok(charset::decode(head.headers(), &bytes))
    }

    /// The whole body, read as JSON.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and [`ErrorKind::Json`].
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let Response { url, body, .. } = self;
        let (bytes, _) = body.collect().await.map_err(|error| error.about(&url))?;
        // A mark is not JSON, but a reader may overlook it (RFC 8259 §8.1).
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        serde_json::from_slice(text)
            .map_err(|error| Error::new(ErrorKind::Json(error)).maybe_processed(true).about(&url))
    }

    /// The body alone, as a stream.
    pub fn into_body(self) -> Incoming<R> {
        self.body
    }

    /// The answer as the `http` crate has it.
    pub fn into_http(self) -> http::Response<Incoming<R>> {
        let (parts, ()) = self.head.into_parts();
        http::Response::from_parts(parts, self.body)
    }

    /// Takes the connection over after an answer that switches protocols: 101, or 2xx to CONNECT.
    ///
    /// # Errors
    /// [`ErrorKind::NotUpgraded`] for any other answer.
    pub fn into_upgraded(self) -> Result<Upgraded<R>, Error> {
        let Response { url, body, .. } = self;
        body.into_upgraded()
            .ok_or_else(|| Error::new(ErrorKind::NotUpgraded).maybe_processed(true).about(&url))
    }
}

impl<R: Runtime> fmt::Debug for Response<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.head.status())
            .field("version", &self.head.version())
            .field("url", &self.url.as_str())
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}
