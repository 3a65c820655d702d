//! Whom the client trusts, for `https`.

use std::sync::OnceLock;

pub use hyperman_transport::tls::{
    Authorities, ClientTls, ClientTlsBuilder, ConfigError, Error, Identity, Provider, TlsInfo, Version,
};

/// The protocols that a client offers by ALPN: what a configuration of one's own should offer too.
pub const OFFERED: [&str; 1] = ["http/1.1"];

/// The same of a client that speaks HTTP/2 where the server does ([`ClientBuilder::http2`](crate::ClientBuilder::http2)).
pub const OFFERED_WITH_HTTP2: [&str; 2] = ["h2", "http/1.1"];

/// A client's configurations. They are made when they are first needed: reading the system's roots takes milliseconds,
/// and many clients never speak TLS.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    usual: Slot,
    usual_http2: Slot,
    unverified: Slot,
    unverified_http2: Slot,
}

type Slot = OnceLock<Result<ClientTls, ConfigError>>;

/// Which configuration a request wants.
#[derive(Debug, Default)]
pub(crate) enum Choice {
    /// The client's.
    #[default]
    Usual,
    /// None that verifies.
    Unverified,
    /// Its own.
    Own(ClientTls),
}

impl Settings {
    pub(crate) fn of(tls: &ClientTls) -> Self {
        Settings { usual: OnceLock::from(Ok(tls.clone())), ..Settings::default() }
    }

    /// The configuration of a request, and whether that may go over HTTP/2. A request's own says so itself.
    pub(crate) fn get(&self, choice: &Choice, http2: bool) -> Result<ClientTls, ConfigError> {
        let (plain, other, verify) = match choice {
            Choice::Own(tls) => return Ok(tls.clone()),
            Choice::Usual => (&self.usual, &self.usual_http2, true),
            Choice::Unverified => (&self.unverified, &self.unverified_http2, false),
        };
        let plain = plain.get_or_init(|| {
            let builder = ClientTls::builder().alpn(OFFERED);
            if verify { builder } else { builder.danger_accept_invalid_certificates() }.build()
        });
        if !http2 {
            return plain.clone();
        }
        let with_http2 = || plain.clone().map(|tls| tls.with_alpn(OFFERED_WITH_HTTP2));
        other.get_or_init(with_http2).clone()
    }
}
