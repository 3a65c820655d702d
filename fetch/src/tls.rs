//! Whom the client trusts, for `https`.

use std::sync::OnceLock;

pub use hyperman_transport::tls::{
    Authorities, ClientTls, ClientTlsBuilder, ConfigError, Error, Identity, Provider, TlsInfo, Version,
};

/// The protocols that a client offers by ALPN: what a configuration of one's own should offer too.
pub const OFFERED: [&str; 1] = ["http/1.1"];

/// A client's configurations. They are made when they are first needed: reading the system's roots takes milliseconds,
/// and many clients never speak TLS.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    usual: OnceLock<Result<ClientTls, ConfigError>>,
    unverified: OnceLock<Result<ClientTls, ConfigError>>,
}

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
        Settings { usual: OnceLock::from(Ok(tls.clone())), unverified: OnceLock::new() }
    }

    /// The configuration of a request.
    pub(crate) fn get(&self, choice: &Choice) -> Result<ClientTls, ConfigError> {
        let made = match choice {
            Choice::Own(tls) => return Ok(tls.clone()),
            Choice::Usual => self.usual.get_or_init(|| ClientTls::builder().alpn(OFFERED).build()),
            Choice::Unverified => self.unverified.get_or_init(|| {
                ClientTls::builder().danger_accept_invalid_certificates().alpn(OFFERED).build()
            }),
        };
        made.clone()
    }
}
