//! A server's configuration: certificates by host name, client certificates, and their replacement while running.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::BytesMut;
use rustls::pki_types::DnsName;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::{RootCertStore, ServerConfig};

use super::error::ConfigError;
use super::handshake::Handshake;
use super::identity::{Authorities, Check, Identity};
use super::info::Version;
use super::stream::TlsStream;
use super::{Provider, versions};
use crate::stream::ByteStream;

/// Whether clients are asked for a certificate.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// Not asked.
    #[default]
    None,
    /// Asked; one that comes must have been issued by the authorities.
    Optional(Authorities),
    /// Asked, and the handshake fails without one that was issued by the authorities.
    Required(Authorities),
}

/// What a [`ServerTls`] is made from, and made from again at a reload.
#[derive(Clone, Debug)]
pub struct ServerTlsBuilder {
    fallback: Option<Identity>,
    hosts: Vec<Host>,
    client_auth: ClientAuth,
    alpn: Vec<Vec<u8>>,
    least: Version,
    resumption: bool,
    check: Check,
    provider: Provider,
}

#[derive(Clone, Debug)]
struct Host {
    name: String,
    identity: Identity,
    /// `None`: as the server in general.
    client_auth: Option<ClientAuth>,
}

/// A server's TLS configuration: a cheap handle that all its listeners and connections share.
#[derive(Clone)]
pub struct ServerTls {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held while a replacement is built, so that two of them do not race.
    recipe: Mutex<ServerTlsBuilder>,
    current: RwLock<Arc<Hosts>>,
}

/// The configurations in use, by host name.
///
/// Each host name has one of its own, with a ticket key of its own: a session that began on one host cannot be resumed
/// on another, which might check client certificates differently.
pub(super) struct Hosts {
    exact: HashMap<String, usize>,
    /// By the name without its `*.`.
    wildcard: HashMap<String, usize>,
    fallback: Option<usize>,
    served: Vec<Served>,
}

struct Served {
    config: Arc<ServerConfig>,
    /// Hosts with the same number check client certificates in the same way.
    policy: usize,
}

impl ServerTls {
    /// A configuration without certificate: TLS 1.2 and later, session resumption, no client certificates, no ALPN.
    pub fn builder() -> ServerTlsBuilder {
        ServerTlsBuilder {
            fallback: None,
            hosts: Vec::new(),
            client_auth: ClientAuth::None,
            alpn: Vec::new(),
            least: Version::Tls12,
            resumption: true,
            check: Check::ValidNow,
            provider: Provider::default(),
        }
    }

    /// Reads all files again. Handshakes that begin from now on use what they hold, connections keep what they have.
    /// Sessions from before are not resumed.
    ///
    /// # Errors
    /// What is wrong with the new files. What was in use before stays in use.
    pub fn reload(&self) -> Result<(), ConfigError> {
        let recipe = self.shared.recipe.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.put(recipe.load()?);
        Ok(())
    }

    /// Goes over to another recipe, in the way of [`reload`](Self::reload).
    ///
    /// # Errors
    /// As [`reload`](Self::reload).
    pub fn replace(&self, builder: ServerTlsBuilder) -> Result<(), ConfigError> {
        let mut recipe = self.shared.recipe.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.put(builder.load()?);
        *recipe = builder;
        Ok(())
    }

    /// A stream over an accepted connection. Its handshake has not begun.
    pub fn stream<T: ByteStream>(&self, stream: T) -> TlsStream<T> {
        self.stream_after(stream, BytesMut::new())
    }

    /// The same when bytes that belong to TLS have been received already, e.g. behind a PROXY header.
    ///
    /// Bytes that came before both sides agreed to begin TLS do not belong to it and must not be given here: they would
    /// be what somebody else injected.
    pub fn stream_after<T: ByteStream>(&self, stream: T, received: BytesMut) -> TlsStream<T> {
        TlsStream::server(stream, received, self.current())
    }

    /// Accepts: a future that is ready once the handshake is over. Dropping it drops the connection.
    pub fn accept<T: ByteStream>(&self, stream: T) -> Handshake<T> {
        self.stream(stream).handshake()
    }

    fn current(&self) -> Arc<Hosts> {
        self.shared.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("recipe", &self.shared.recipe).finish()
    }
}

impl Shared {
    fn put(&self, hosts: Hosts) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hosts);
    }
}

impl ServerTlsBuilder {
    /// The certificate for every host name that has none of its own, and for clients that name no host.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.fallback = Some(identity);
        self
    }

    /// The certificate for a host name. `*.example.org` stands for all names with exactly one more label (RFC 6125
    /// §6.4.3); a name that is configured itself goes first.
    #[must_use]
    pub fn host(mut self, name: impl Into<String>, identity: Identity) -> Self {
        self.hosts.push(Host { name: name.into(), identity, client_auth: None });
        self
    }

    /// The same, with client certificates of its own.
    #[must_use]
    pub fn host_with_client_auth(
        mut self,
        name: impl Into<String>,
        identity: Identity,
        client_auth: ClientAuth,
    ) -> Self {
        self.hosts.push(Host { name: name.into(), identity, client_auth: Some(client_auth) });
        self
    }

    /// Whether clients are asked for a certificate. Default: no.
    #[must_use]
    pub fn client_auth(mut self, client_auth: ClientAuth) -> Self {
        self.client_auth = client_auth;
        self
    }

    /// The application protocols, the preferred one first (RFC 7301). Default: none, so that nothing is negotiated.
    #[must_use]
    pub fn alpn<P: AsRef<[u8]>>(mut self, protocols: impl IntoIterator<Item = P>) -> Self {
        self.alpn = protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        self
    }

    /// The oldest version that is accepted. Default: TLS 1.2.
    #[must_use]
    pub fn min_version(mut self, version: Version) -> Self {
        self.least = version;
        self
    }

    /// Whether clients get tickets with which they resume a session. Default: yes.
    #[must_use]
    pub fn resumption(mut self, on: bool) -> Self {
        self.resumption = on;
        self
    }

    /// Uses a certificate even when it has expired. Default: an expired one is refused, at a reload too.
    #[must_use]
    pub fn allow_expired(mut self, allow: bool) -> Self {
        self.check = if allow { Check::AnyDate } else { Check::ValidNow };
        self
    }

    /// Who does the arithmetic.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// What cannot be used, with the file that it is in.
    pub fn build(self) -> Result<ServerTls, ConfigError> {
        let current = RwLock::new(Arc::new(self.load()?));
        Ok(ServerTls { shared: Arc::new(Shared { recipe: Mutex::new(self), current }) })
    }

    fn load(&self) -> Result<Hosts, ConfigError> {
        let mut hosts = Hosts {
            exact: HashMap::new(),
            wildcard: HashMap::new(),
            fallback: None,
            served: Vec::with_capacity(self.hosts.len() + 1),
        };
        if let Some(identity) = &self.fallback {
            hosts.served.push(Served { config: self.config(identity, &self.client_auth)?, policy: 0 });
            hosts.fallback = Some(0);
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let (client_auth, policy) = match &host.client_auth {
                None => (&self.client_auth, 0),
                Some(own) => (own, number + 1),
            };
            let place = hosts.served.len();
            hosts.served.push(Served { config: self.config(&host.identity, client_auth)?, policy });
            hosts.name(&host.name, place)?;
        }
        if hosts.served.is_empty() {
            return Err(ConfigError::NoIdentity);
        }
        Ok(hosts)
    }

    fn config(&self, identity: &Identity, auth: &ClientAuth) -> Result<Arc<ServerConfig>, ConfigError> {
        let library = |error: rustls::Error| ConfigError::Library(error.to_string());
        let crypto = self.provider.crypto();
        let certified = identity.load(&crypto, self.check)?;
        let builder = ServerConfig::builder_with_provider(crypto.clone())
            .with_protocol_versions(versions(self.least))
            .map_err(library)?;
        let verifier = |authorities: &Authorities| {
            let mut roots = RootCertStore::empty();
            authorities.add_to(&mut roots)?;
            Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto.clone()))
        };
        let unusable = |error: rustls::server::VerifierBuilderError| ConfigError::Library(error.to_string());
        let builder = match auth {
            ClientAuth::None => builder.with_no_client_auth(),
            ClientAuth::Optional(authorities) => {
                let verifier = verifier(authorities)?.allow_unauthenticated().build().map_err(unusable)?;
                builder.with_client_cert_verifier(verifier)
            }
            ClientAuth::Required(authorities) => {
                builder.with_client_cert_verifier(verifier(authorities)?.build().map_err(unusable)?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols.clone_from(&self.alpn);
        // Sessions live in the tickets that clients keep; the server stores none.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.max_early_data_size = 0;
        if self.resumption {
            config.ticketer = self.provider.tickets().map_err(library)?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

impl Hosts {
    fn name(&mut self, name: &str, place: usize) -> Result<(), ConfigError> {
        let lower = name.to_ascii_lowercase();
        let (names, key) = match lower.strip_prefix("*.") {
            Some(parent) => (&mut self.wildcard, parent),
            None => (&mut self.exact, lower.as_str()),
        };
        let key = key.strip_suffix('.').unwrap_or(key);
        if DnsName::try_from(key).is_err() {
            return Err(ConfigError::BadHostName(name.to_owned()));
        }
        match names.insert(key.to_owned(), place) {
            None => Ok(()),
            Some(_) => Err(ConfigError::DuplicateHostName(name.to_owned())),
        }
    }

    /// The configuration for the host that a client named.
    pub(super) fn config(&self, server_name: Option<&str>) -> Option<Arc<ServerConfig>> {
        self.find(server_name).map(|served| served.config.clone())
    }

    /// Whether both hosts are served under the same rules for client certificates.
    pub(super) fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        match (self.find(one), self.find(other)) {
            (Some(one), Some(other)) => one.policy == other.policy,
            _ => false,
        }
    }

    fn find(&self, name: Option<&str>) -> Option<&Served> {
        let named = name.and_then(|name| {
            let lower = name.to_ascii_lowercase();
            let lower = lower.strip_suffix('.').unwrap_or(&lower);
            let by_parent = || self.wildcard.get(lower.split_once('.')?.1);
            self.exact.get(lower).or_else(by_parent).copied()
        });
        self.served.get(named.or(self.fallback)?)
    }
}
