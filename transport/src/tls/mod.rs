//! TLS over any [`ByteStream`](crate::ByteStream), both roles.
//!
//! * [`ServerTls`] and [`ClientTls`] are configurations: cheap handles, built once, shared by all connections.
//! * [`TlsStream`] is a stream over another: it reads and writes plaintext, the other one ciphertext. Its handshake runs
//!   by itself with the first read or write, or is waited for with [`TlsStream::poll_handshake`].
//! * [`TlsInfo`] says what was agreed, and who the peer is.
//!
//! Nothing here has a timer: a server's first-byte-to-head timer covers the handshake from outside, and dropping a
//! stream cancels it. Early data (0-RTT) is off: it can be replayed by anybody who recorded it (RFC 8446 §8).
//!
//! ```
//! # #[cfg(feature = "tls-development")] fn example() -> Result<(), hyperman_transport::tls::ConfigError> {
//! use hyperman_transport::tls::{Authorities, ClientTls, ServerTls, development_certificate};
//!
//! let made = development_certificate(["localhost"])?;
//! let server = ServerTls::builder().identity(made.identity()).alpn(["h2", "http/1.1"]).build()?;
//! let client = ClientTls::builder().only_authorities(Authorities::from_pem(&made.certificate_pem)).build()?;
//! # let _ = (server, client); Ok(()) }
//! # #[cfg(feature = "tls-development")] example().unwrap();
//! ```
//!
//! A connection that waits between two records holds no buffer, neither for reading nor for writing; what it received
//! into and what it encrypts into belongs to its thread.

mod certificate;
mod client;
mod engine;
mod error;
mod handshake;
mod hello;
mod identity;
mod info;
mod server;
mod storage;
mod stream;

#[cfg(any(test, feature = "tls-development"))]
mod development;

#[cfg(test)]
mod tests;

pub use client::{ClientTls, ClientTlsBuilder, ConfigId};
#[cfg(any(test, feature = "tls-development"))]
pub use development::{DevelopmentCertificate, development_certificate};
pub use error::{Alert, ConfigError, Error, Truncated, is_truncated};
pub use handshake::{Handshake, HandshakeFailure};
pub use identity::{Authorities, Identity};
pub use info::{PeerCertificate, TlsInfo, Version};
pub use server::{ClientAuth, ServerTls, ServerTlsBuilder};
pub use stream::TlsStream;

use std::sync::Arc;

use rustls::SupportedProtocolVersion;
use rustls::crypto::CryptoProvider;
use rustls::server::ProducesTickets;

/// Who does the arithmetic. Chosen per configuration, never for the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// The crate `ring`: builds with a C compiler alone.
    #[cfg(feature = "tls-ring")]
    Ring,
    /// The crate `aws-lc-rs`.
    #[cfg(feature = "tls-aws-lc-rs")]
    AwsLcRs,
}

impl Default for Provider {
    /// `ring`, where it was built in.
    fn default() -> Self {
        #[cfg(feature = "tls-ring")]
        return Provider::Ring;
        #[cfg(all(feature = "tls-aws-lc-rs", not(feature = "tls-ring")))]
        return Provider::AwsLcRs;
        #[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc-rs")))]
        compile_error!("TLS needs the feature `tls`, `tls-ring` or `tls-aws-lc-rs`");
    }
}

impl Provider {
    fn crypto(self) -> Arc<CryptoProvider> {
        Arc::new(match self {
            #[cfg(feature = "tls-ring")]
            Provider::Ring => rustls::crypto::ring::default_provider(),
            #[cfg(feature = "tls-aws-lc-rs")]
            Provider::AwsLcRs => rustls::crypto::aws_lc_rs::default_provider(),
        })
    }

    /// A new ticket key, which changes by itself every few hours.
    fn tickets(self) -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
        match self {
            #[cfg(feature = "tls-ring")]
            Provider::Ring => rustls::crypto::ring::Ticketer::new(),
            #[cfg(feature = "tls-aws-lc-rs")]
            Provider::AwsLcRs => rustls::crypto::aws_lc_rs::Ticketer::new(),
        }
    }
}

/// The versions from `least` on.
fn versions(least: Version) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
    static NEWER: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    match least {
        Version::Tls12 => &BOTH,
        Version::Tls13 => &NEWER,
    }
}
