//! What carries the messages of a case.

use std::fmt;
use std::net::SocketAddr;

use hyperman_fetch::{Client, ClientBuilder};
use hyperman_transport::{Listener, Runtime};

use crate::tls::tls;

/// A version of HTTP, and whether it goes over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// HTTP/1.1 on the bare socket.
    Http1,
    /// HTTP/1.1 over TLS.
    Http1Tls,
    /// HTTP/2 on the bare socket, by prior knowledge.
    Http2,
    /// HTTP/2 over TLS, agreed on by ALPN.
    Http2Tls,
}

impl Carrier {
    /// Where a case runs that is about what an application sees.
    pub const EVERY: &[Carrier] = &[Carrier::Http1, Carrier::Http1Tls, Carrier::Http2, Carrier::Http2Tls];
    /// Where a case runs that is about the bytes of HTTP/1 or about what only HTTP/1 has.
    pub const ONE: &[Carrier] = &[Carrier::Http1, Carrier::Http1Tls];
    /// Where a case runs that is about what only HTTP/2 has.
    pub const TWO: &[Carrier] = &[Carrier::Http2, Carrier::Http2Tls];
    /// Where a case runs that is about TLS itself, whatever goes over it.
    pub const TLS: &[Carrier] = &[Carrier::Http1Tls];

    /// Whether it is HTTP/2.
    pub fn is_http2(self) -> bool {
        matches!(self, Carrier::Http2 | Carrier::Http2Tls)
    }

    /// Whether it goes over TLS.
    pub fn is_secure(self) -> bool {
        matches!(self, Carrier::Http1Tls | Carrier::Http2Tls)
    }

    /// As a part of a test's name.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Http1 => "http1",
            Carrier::Http1Tls => "http1_tls",
            Carrier::Http2 => "h2",
            Carrier::Http2Tls => "h2_tls",
        }
    }

    /// The beginning of the URLs of a server that listens on this port of the loopback.
    pub fn base(self, port: u16) -> String {
        let scheme = if self.is_secure() { "https" } else { "http" };
        format!("{scheme}://localhost:{port}")
    }

    /// The server's side of a listener.
    pub fn endpoint<R: Runtime>(self, listener: Listener<R>) -> hyperman::Endpoint<R> {
        if self.is_secure() {
            hyperman::Endpoint::tls(listener, tls().server.clone())
        } else {
            hyperman::Endpoint::new(listener)
        }
    }

    /// A client that knows `localhost`, trusts the servers here, and speaks this version.
    pub fn client<R: Runtime>(self, runtime: R) -> ClientBuilder<R> {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let builder = Client::builder(runtime).resolve("localhost", [loopback]).tls(&tls().client);
        match self {
            Carrier::Http1 | Carrier::Http1Tls => builder.http2(false),
            Carrier::Http2 => builder.http2_prior_knowledge(),
            Carrier::Http2Tls => builder.http2(true),
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carrier::Http1 => "HTTP/1.1",
            Carrier::Http1Tls => "HTTP/1.1 over TLS",
            Carrier::Http2 => "h2",
            Carrier::Http2Tls => "h2 over TLS",
        })
    }
}
