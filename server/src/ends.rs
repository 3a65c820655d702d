//! What a connection lies between, whatever protocol it speaks: its stream, and the application.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::Scheme;
use http::{Request, Response, Version};
use tower_service::Service;

use crate::body::{Body, ConnectionInfo};
use crate::interim::Interim;
use crate::refusal::Refusal;
use crate::settings::Settings;

/// See the module's words.
pub(crate) struct Ends<IO, S> {
    pub(crate) stream: IO,
    pub(crate) service: S,
    pub(crate) settings: Arc<Settings>,
    pub(crate) info: Arc<ConnectionInfo>,
    /// Whether a request is handed on as it came: there is nothing to be checked about it, and nothing to be added.
    unadorned: bool,
}

impl<IO, S> Ends<IO, S> {
    /// The ends of a connection that is not, or not yet, encrypted.
    pub(crate) fn new(stream: IO, service: S, settings: Arc<Settings>, info: ConnectionInfo) -> Self {
        let mut ends = Ends { stream, service, settings, info: Arc::new(info), unadorned: false };
        ends.unadorned = ends.adds_nothing();
        ends
    }

    /// More is known of the connection.
    #[cfg(feature = "tls")]
    pub(crate) fn learn(&mut self, info: ConnectionInfo) {
        self.info = Arc::new(info);
        self.unadorned = self.adds_nothing();
    }

    fn adds_nothing(&self) -> bool {
        let config = &self.settings.config;
        !config.connection_extension && !config.interim_extension && !self.info.is_encrypted()
    }

    /// Whether the request is for a host that this connection's handshake was not for: one with a TLS configuration of
    /// its own, whose client certificates may be checked differently (S81); or for one that only a handshake could be for
    /// (RFC 9110 §7.4). The answer is 421 (RFC 9110 §15.5.20).
    #[inline]
    pub(crate) fn is_misdirected<T>(&self, request: &Request<T>) -> bool {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.info.tls {
            return !tls.serves(asked_host(request));
        }
        // In HTTP/2 every request names a scheme, and a gateway that has ended TLS passes its own on.
        request.uri().scheme() == Some(&Scheme::HTTPS) && request.version() != Version::HTTP_2
    }

    /// Tells who wants to know of a request that the service does not hear of.
    pub(crate) fn tell(&self, refusal: &Refusal<'_>) {
        if let Some(on_refusal) = &self.settings.config.on_refusal {
            on_refusal.tell(refusal);
        }
    }

    /// Adds to a request what the owner wants it to carry, and gives the other end of its [`Interim`].
    #[inline]
    pub(crate) fn extend(&self, request: &mut Request<Body>) -> Option<Interim> {
        if self.is_unadorned() {
            return None;
        }
        self.extend_slowly(request)
    }

    /// Whether a request is handed on as it came.
    #[inline]
    pub(crate) fn is_unadorned(&self) -> bool {
        self.unadorned
    }

    #[inline(never)]
    fn extend_slowly(&self, request: &mut Request<Body>) -> Option<Interim> {
        let config = &self.settings.config;
        if config.connection_extension {
            request.extensions_mut().insert(ConnectionInfo::clone(&self.info));
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.info.tls {
            request.extensions_mut().insert(tls.clone());
        }
        config.interim_extension.then(|| {
            let interim = Interim::default();
            request.extensions_mut().insert(interim.clone());
            interim
        })
    }
}

/// The host that a request is for, without a port; empty where it names none.
#[cfg(feature = "tls")]
fn asked_host<T>(request: &Request<T>) -> &str {
    if let Some(host) = request.uri().host() {
        return host;
    }
    let host =
        request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.rsplit_once(':') {
        // The last colon of an address in brackets may be one of its own.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

/// A service as a connection sees it: what its futures of type `F` come to is known, whoever polls them.
pub(crate) trait App<F, B> {
    /// Why there is no answer.
    type Failure: std::fmt::Display;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Failure>>;
    fn call(&mut self, request: Request<Body>) -> F;
    fn poll_answer(future: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<Result<Response<B>, Self::Failure>>;
}

impl<S, B> App<S::Future, B> for S
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Display,
{
    type Failure = S::Error;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Service::poll_ready(self, cx)
    }

    #[inline]
    fn call(&mut self, request: Request<Body>) -> S::Future {
        Service::call(self, request)
    }

    #[inline]
    fn poll_answer(future: Pin<&mut S::Future>, cx: &mut Context<'_>) -> Poll<Result<Response<B>, S::Error>> {
        future.poll(cx)
    }
}
