//! Whom the client trusts, for `https`.

use std::sync::{Mutex, OnceLock, PoisonError};

use hyperman_transport::tls::ConfigId;
pub use hyperman_transport::tls::{
    Authorities, ClientTls, ClientTlsBuilder, ConfigError, Error, Identity, Provider, TlsInfo, Version,
};

/// What a client offers by ALPN for a request that has to go over HTTP/1, or where it does not speak HTTP/2
/// ([`ClientBuilder::http2`](crate::ClientBuilder::http2)). Whatever a configuration of one's own offers, its trust and its
/// identity are used, and the client says which protocols it speaks.
pub const OFFERED: [&str; 1] = ["http/1.1"];

/// What it offers otherwise.
pub const OFFERED_WITH_HTTP2: [&str; 2] = ["h2", "http/1.1"];

/// How many configurations of requests are remembered, 32: each has the sessions of its connections, and whoever makes
/// a new configuration for every request has no use for them.
const REMEMBERED: usize = 32;

/// A client's configurations. They are made when they are first needed: reading the system's roots takes milliseconds,
/// and many clients never speak TLS.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    usual: Slots,
    unverified: Slots,
    /// Of those that requests brought, the one last used at the end.
    own: Mutex<Vec<(ConfigId, Slots)>>,
}

/// A configuration as it was given or made, and what it is with the protocols of a request.
#[derive(Clone, Debug, Default)]
struct Slots {
    given: Slot,
    http1: Slot,
    http2: Slot,
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
        Settings { usual: Slots::of(tls), ..Settings::default() }
    }

    /// The configuration of a request, and whether that may go over HTTP/2.
    pub(crate) fn get(&self, choice: &Choice, http2: bool) -> Result<ClientTls, ConfigError> {
        match choice {
            Choice::Usual => self.usual.get(http2, || ClientTls::builder().build()),
            Choice::Unverified => self
                .unverified
                .get(http2, || ClientTls::builder().danger_accept_invalid_certificates().build()),
            Choice::Own(tls) => self.own(tls, http2),
        }
    }

    fn own(&self, tls: &ClientTls, http2: bool) -> Result<ClientTls, ConfigError> {
        // Nothing panics while it holds the lock.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let known = own.iter().position(|(id, _)| *id == tls.id());
        let slots = match known {
            Some(at) => own.remove(at).1,
            None => Slots::of(tls),
        };
        let wanted = slots.get(http2, || Ok(tls.clone()));
        if own.len() >= REMEMBERED {
            own.remove(0);
        }
        own.push((tls.id(), slots));
        wanted
    }
}

impl Slots {
    fn of(tls: &ClientTls) -> Self {
        Slots { given: OnceLock::from(Ok(tls.clone())), ..Slots::default() }
    }

    fn get(
        &self,
        http2: bool,
        make: impl FnOnce() -> Result<ClientTls, ConfigError>,
    ) -> Result<ClientTls, ConfigError> {
        let slot = if http2 { &self.http2 } else { &self.http1 };
        let offered: &[&str] = if http2 { &OFFERED_WITH_HTTP2 } else { &OFFERED };
        let chosen = slot.get_or_init(|| Ok(self.given.get_or_init(make).clone()?.with_alpn(offered)));
        chosen.clone()
    }
}
