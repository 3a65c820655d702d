//! What a handshake agreed on, and who the peer is.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, CommonState, HandshakeKind, ProtocolVersion};

use super::certificate::Certificate;
use super::server::Hosts;

/// A version of TLS. Older ones are not spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        })
    }
}

/// What a connection's handshake agreed on. Cheap to clone; a server gives it to requests as an extension.
#[derive(Clone)]
pub struct TlsInfo {
    agreed: Arc<Agreed>,
}

struct Agreed {
    version: Version,
    cipher_suite: &'static str,
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    resumed: bool,
    chain: Vec<CertificateDer<'static>>,
    certificate: Option<PeerCertificate>,
    hosts: Option<Arc<Hosts>>,
}

/// The names in the peer's certificate. The certificate has been verified before it is shown here, unless
/// verification was switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Whom it is for, in the form of RFC 4514: `CN=alice,O=Example`. Control characters are escaped.
    pub subject: String,
    /// Who issued it, in the same form.
    pub issuer: String,
    /// The serial number in lower-case hexadecimal digits.
    pub serial: String,
}

impl TlsInfo {
    /// What `state` tells after the handshake.
    pub(super) fn new(state: &CommonState, server_name: Option<String>, hosts: Option<Arc<Hosts>>) -> Self {
        let chain = state.peer_certificates().unwrap_or_default().to_vec();
        let certificate = chain.first().and_then(|leaf| PeerCertificate::parse(leaf));
        TlsInfo {
            agreed: Arc::new(Agreed {
                version: match state.protocol_version() {
                    Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
                    _ => Version::Tls12,
                },
                cipher_suite: state.negotiated_cipher_suite().map_or("", |suite| suite_name(suite.suite())),
                alpn: state.alpn_protocol().map(<[u8]>::to_vec),
                server_name,
                resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
                chain,
                certificate,
                hosts,
            }),
        }
    }

    /// The version of TLS.
    pub fn version(&self) -> Version {
        self.agreed.version
    }

    /// The cipher suite, by the name that IANA's registry gives it.
    pub fn cipher_suite(&self) -> &'static str {
        self.agreed.cipher_suite
    }

    /// The application protocol that ALPN agreed on, e.g. `h2` or `http/1.1`.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.agreed.alpn.as_deref()
    }

    /// The host name that the client asked for (SNI), in lower case. `None` for IP addresses.
    pub fn server_name(&self) -> Option<&str> {
        self.agreed.server_name.as_deref()
    }

    /// Whether an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.agreed.resumed
    }

    /// The peer's certificate and its chain as DER, as they were sent; empty when there was none.
    pub fn peer_chain(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.agreed.chain.iter().map(|certificate| &**certificate)
    }

    /// The names in the peer's certificate, if it sent one that can be read.
    pub fn peer_certificate(&self) -> Option<&PeerCertificate> {
        self.agreed.certificate.as_ref()
    }

    /// On a server: whether a request for `host` (without a port) may be answered on this connection. It may not when
    /// `host` has a configuration of its own that the handshake did not use, because its client certificates may be
    /// checked differently; the answer is then 421 (RFC 9110 §15.5.20).
    pub fn serves(&self, host: &str) -> bool {
        match &self.agreed.hosts {
            Some(hosts) => hosts.same(self.server_name(), Some(host)),
            None => true,
        }
    }
}

impl fmt::Debug for TlsInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsInfo")
            .field("version", &self.agreed.version)
            .field("cipher_suite", &self.agreed.cipher_suite)
            .field("alpn", &self.agreed.alpn.as_ref().map(|alpn| alpn.escape_ascii().to_string()))
            .field("server_name", &self.agreed.server_name)
            .field("resumed", &self.agreed.resumed)
            .field("peer_certificate", &self.agreed.certificate)
            .finish_non_exhaustive()
    }
}

impl PeerCertificate {
    fn parse(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::parse(der)?;
        Some(PeerCertificate {
            subject: certificate.subject()?,
            issuer: certificate.issuer()?,
            serial: certificate.serial(),
        })
    }
}

/// The library names the suites of TLS 1.3 a little differently than the registry.
fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}
