//! A client's configuration: whom it trusts, and who it is.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::error::{ConfigError, Error};
use super::identity::{Authorities, Check, Identity};
use super::info::Version;
use super::stream::TlsStream;
use super::{Provider, versions};
use crate::stream::ByteStream;

/// How many servers a client remembers sessions of.
const SESSIONS: usize = 256;

/// What a [`ClientTls`] is made from.
#[derive(Clone, Debug)]
pub struct ClientTlsBuilder {
    roots: Roots,
    authorities: Vec<Authorities>,
    identity: Option<Identity>,
    alpn: Vec<Vec<u8>>,
    least: Version,
    resumption: bool,
    verify: bool,
    provider: Provider,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roots {
    System,
    Bundled,
    None,
}

/// A client's TLS configuration: a cheap handle that all its connections share.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    id: ConfigId,
    verify: bool,
}

/// Tells configurations apart, for use in the key of a connection pool. Clones of a configuration have the same;
/// configurations that were built separately never do, so a connection made under one is never used under another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigId(u64);

impl ConfigId {
    fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ConfigId(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

impl ClientTls {
    /// A configuration that trusts the system's roots: TLS 1.2 and later, session resumption, no ALPN, no certificate
    /// of our own.
    pub fn builder() -> ClientTlsBuilder {
        ClientTlsBuilder {
            roots: Roots::System,
            authorities: Vec::new(),
            identity: None,
            alpn: Vec::new(),
            least: Version::Tls12,
            resumption: true,
            verify: true,
            provider: Provider::default(),
        }
    }

    /// Which configuration this is.
    pub fn id(&self) -> ConfigId {
        self.id
    }

    /// Whether servers are verified. Only [`ClientTlsBuilder::danger_accept_invalid_certificates`] turns that off.
    pub fn verifies(&self) -> bool {
        self.verify
    }

    /// The same trust with other application protocols; a configuration of its own, with sessions of its own.
    #[must_use]
    pub fn with_alpn<P: AsRef<[u8]>>(&self, protocols: impl IntoIterator<Item = P>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        ClientTls { config: Arc::new(config), id: ConfigId::next(), verify: self.verify }
    }

    /// A stream over a connection to `host`: a host name, or an IP address, with or without brackets. The name goes out
    /// as SNI and must be in the server's certificate; an address is not sent and must be there as an address. The
    /// handshake has not begun.
    ///
    /// # Errors
    /// [`Error::WrongName`] when `host` is neither a name nor an address.
    pub fn stream<T: ByteStream>(&self, stream: T, host: &str) -> Result<TlsStream<T>, Error> {
        let name = server_name(host).ok_or_else(|| Error::WrongName { expected: host.to_owned() })?;
        let asked = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase()),
            _ => None,
        };
        let connection = UnbufferedClientConnection::new(self.config.clone(), name)?;
        Ok(TlsStream::client(stream, connection, asked))
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls")
            .field("id", &self.id)
            .field("verify", &self.verify)
            .finish_non_exhaustive()
    }
}

/// A host as it stands in a URL, as the name to verify. A trailing dot is not part of names in certificates, nor is the
/// zone of a link-local address.
fn server_name(host: &str) -> Option<ServerName<'static>> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let address = inner.split_once('%').map_or(inner, |(address, _zone)| address);
    if let Ok(address) = address.parse::<IpAddr>() {
        return Some(ServerName::IpAddress(address.into()));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    ServerName::try_from(name.to_owned()).ok()
}

impl ClientTlsBuilder {
    /// Trusts these too. Default: the system's roots, and Mozilla's bundled ones on a system that has none.
    #[must_use]
    pub fn add_authorities(mut self, authorities: Authorities) -> Self {
        self.authorities.push(authorities);
        self
    }

    /// Trusts these, and neither the system's roots nor any other that was named before.
    #[must_use]
    pub fn only_authorities(mut self, authorities: Authorities) -> Self {
        self.roots = Roots::None;
        self.authorities = vec![authorities];
        self
    }

    /// Trusts Mozilla's bundled roots in place of the system's.
    #[must_use]
    pub fn bundled_roots(mut self) -> Self {
        self.roots = Roots::Bundled;
        self
    }

    /// The certificate to show to servers that ask for one.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The application protocols to offer, the preferred one first. Default: none.
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

    /// Whether sessions are remembered and resumed. Default: yes, of up to 256 servers.
    #[must_use]
    pub fn resumption(mut self, on: bool) -> Self {
        self.resumption = on;
        self
    }

    /// Who does the arithmetic.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// **Dangerous**: talks to whoever answers, whatever certificate it shows. Anybody on the way can then read and
    /// change everything. Meant for a development server on one's own machine, and even there
    /// [`only_authorities`](Self::only_authorities) does it properly.
    #[must_use]
    pub fn danger_accept_invalid_certificates(mut self) -> Self {
        self.verify = false;
        self
    }

    /// Reads and checks everything. The system's roots are read once per process.
    ///
    /// # Errors
    /// What cannot be used, with the file that it is in.
    pub fn build(self) -> Result<ClientTls, ConfigError> {
        let library = |error: rustls::Error| ConfigError::Library(error.to_string());
        let crypto = self.provider.crypto();
        let builder = ClientConfig::builder_with_provider(crypto.clone())
            .with_protocol_versions(versions(self.least))
            .map_err(library)?;
        let builder = if self.verify {
            builder.with_root_certificates(self.trusted()?)
        } else {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnything(crypto.clone())))
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                // An expired certificate is the server's to refuse; it may be the only one there is.
                let certified = identity.load(&crypto, Check::AnyDate)?;
                builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)))
            }
        };
        config.alpn_protocols = self.alpn;
        config.enable_early_data = false;
        config.resumption = match self.resumption {
            true => Resumption::in_memory_sessions(SESSIONS),
            false => Resumption::disabled(),
        };
        Ok(ClientTls { config: Arc::new(config), id: ConfigId::next(), verify: self.verify })
    }

    fn trusted(&self) -> Result<Arc<RootCertStore>, ConfigError> {
        let base = match self.roots {
            Roots::System => system_roots(),
            Roots::Bundled => Arc::new(bundled_roots()),
            Roots::None => Arc::new(RootCertStore::empty()),
        };
        if self.authorities.is_empty() {
            return if base.is_empty() { Err(ConfigError::NoRoots) } else { Ok(base) };
        }
        let mut roots = RootCertStore::clone(&base);
        for authorities in &self.authorities {
            authorities.add_to(&mut roots)?;
        }
        Ok(Arc::new(roots))
    }
}

/// The system's roots, read at the first call; the bundled ones where there are none.
fn system_roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        // A system's store may hold entries that are no roots; they are passed over.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(if roots.is_empty() { bundled_roots() } else { roots })
    };
    ROOTS.get_or_init(read).clone()
}

fn bundled_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// Verifies nothing at all.
#[derive(Debug)]
struct AcceptAnything(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(host: &str) -> Option<String> {
        server_name(host).map(|name| name.to_str().into_owned())
    }

    #[test]
    fn hosts_of_urls_become_names_to_verify() {
        assert_eq!(shown("example.org").as_deref(), Some("example.org"));
        assert_eq!(shown("example.org.").as_deref(), Some("example.org"));
        assert_eq!(shown("192.0.2.1").as_deref(), Some("192.0.2.1"));
        assert_eq!(shown("[2001:db8::1]").as_deref(), Some("2001:db8::1"));
        assert_eq!(shown("fe80::1%eth0").as_deref(), Some("fe80::1"));
        assert_eq!(shown("exa mple.org"), None);
        assert_eq!(shown("example.org\r\n"), None);
        assert_eq!(shown(""), None);
    }
}
