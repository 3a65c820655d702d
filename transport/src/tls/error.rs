//! What can go wrong: while a configuration is built, and on a connection.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};

/// Why a connection's handshake or traffic failed. An error seals the stream: later calls repeat it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The client spoke HTTP without TLS to a TLS port. Nothing was written; the stream can be had back by
    /// [`TlsStream::into_inner`](super::TlsStream::into_inner) to say so in plain text.
    PlainHttp,
    /// The peer's first bytes are neither TLS nor HTTP.
    NotTls,
    /// The client asked for a host name that this server has no certificate for, and there is no fallback.
    UnknownHost,
    /// The peer's certificate was not issued by a root that we trust.
    UnknownIssuer,
    /// The peer's certificate has expired.
    CertificateExpired,
    /// The peer's certificate is not valid yet; one of the two clocks may be wrong.
    CertificateNotYetValid,
    /// The server's certificate is for other names than the one that was connected to.
    WrongName {
        /// What was connected to.
        expected: String,
    },
    /// The peer's certificate was refused for another reason.
    BadCertificate(String),
    /// A client certificate is required and none came.
    NoClientCertificate,
    /// The two sides have no version of TLS in common.
    NoCommonVersion,
    /// The two sides have no cipher suite, key exchange or signature scheme in common.
    NoCommonCipher,
    /// The two sides have no application protocol in common (RFC 7301 §3.2).
    NoCommonProtocol,
    /// The peer ended the connection with a fatal alert (RFC 8446 §6).
    PeerAlert(Alert),
    /// The peer ended the connection in the middle of the handshake.
    HandshakeEof,
    /// The peer sent more handshake or control bytes than any honest one needs.
    Flood,
    /// The peer broke the rules of TLS, or a record was forged or damaged.
    Protocol(String),
    /// The stream below failed.
    Io(Arc<io::Error>),
    /// Our side failed: randomness, the clock, or used-up keys.
    Local(String),
}

/// What an alert says (RFC 8446 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert {
    /// The number on the wire, e.g. 116 for `certificate_required`.
    pub code: u8,
}

/// The connection below ended without the peer's `close_notify`: what was received may have been cut short (RFC 8446
/// §6.1). Carried by an [`io::Error`] of the kind `UnexpectedEof`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// Whether `error` says that the connection ended without the peer's `close_notify`. A message that was complete by its
/// own framing is still good.
pub fn is_truncated(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Truncated>())
}

impl Error {
    /// The TLS error inside an [`io::Error`] that a [`TlsStream`](super::TlsStream) returned.
    pub fn from_io(error: &io::Error) -> Option<&Error> {
        error.get_ref().and_then(|inner| inner.downcast_ref())
    }

    /// The kind that an [`io::Error`] with this error inside has.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Error::Io(error) => error.kind(),
            Error::HandshakeEof => io::ErrorKind::UnexpectedEof,
            Error::PeerAlert(_) => io::ErrorKind::ConnectionAborted,
            Error::Local(_) => io::ErrorKind::Other,
            _ => io::ErrorKind::InvalidData,
        }
    }

    /// Whether the peer's certificate is what was refused: another attempt will fail too, until one side's
    /// configuration changes.
    pub fn is_certificate(&self) -> bool {
        matches!(
            self,
            Error::UnknownIssuer
                | Error::CertificateExpired
                | Error::CertificateNotYetValid
                | Error::WrongName { .. }
                | Error::BadCertificate(_)
                | Error::NoClientCertificate
        )
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

impl From<Truncated> for io::Error {
    fn from(truncated: Truncated) -> io::Error {
        io::Error::new(io::ErrorKind::UnexpectedEof, truncated)
    }
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Error {
        use rustls::Error as R;
        match error {
            R::AlertReceived(alert) => Error::PeerAlert(Alert { code: alert.into() }),
            R::InvalidCertificate(reason) => certificate(reason),
            R::NoCertificatesPresented => Error::NoClientCertificate,
            R::NoApplicationProtocol => Error::NoCommonProtocol,
            R::InvalidMessage(InvalidMessage::InvalidContentType) => Error::NotTls,
            R::PeerIncompatible(reason) => incompatible(&reason),
            R::General(_)
            | R::FailedToGetCurrentTime
            | R::FailedToGetRandomBytes
            | R::EncryptError
            | R::BadMaxFragmentSize
            | R::HandshakeNotComplete => Error::Local(error.to_string()),
            other => Error::Protocol(other.to_string()),
        }
    }
}

fn certificate(reason: CertificateError) -> Error {
    use CertificateError as C;
    match reason {
        C::Expired | C::ExpiredContext { .. } => Error::CertificateExpired,
        C::NotValidYet | C::NotValidYetContext { .. } => Error::CertificateNotYetValid,
        C::UnknownIssuer => Error::UnknownIssuer,
        C::NotValidForNameContext { expected, .. } => {
            Error::WrongName { expected: expected.to_str().into_owned() }
        }
        C::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            Error::BadCertificate("it is an authority's, as one that signed itself often is".to_owned())
        }
        other => Error::BadCertificate(other.to_string().escape_debug().to_string()),
    }
}

fn incompatible(reason: &PeerIncompatible) -> Error {
    use PeerIncompatible as P;
    match reason {
        P::ServerDoesNotSupportTls12Or13
        | P::ServerTlsVersionIsDisabledByOurConfig
        | P::SupportedVersionsExtensionRequired
        | P::Tls12NotOffered
        | P::Tls12NotOfferedOrEnabled => Error::NoCommonVersion,
        P::NoCertificateRequestSignatureSchemesInCommon
        | P::NoCipherSuitesInCommon
        | P::NoKxGroupsInCommon
        | P::NoSignatureSchemesInCommon
        | P::NamedGroupsExtensionRequired
        | P::SignatureAlgorithmsExtensionRequired => Error::NoCommonCipher,
        other => Error::Protocol(format!("{other:?}")),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::PlainHttp => f.write_str("the client spoke plain HTTP to a TLS port"),
            Error::NotTls => f.write_str("the peer does not speak TLS"),
            Error::UnknownHost => f.write_str("no certificate for the host name that the client asked for"),
            Error::UnknownIssuer => {
                f.write_str("the peer's certificate comes from an issuer that is not trusted")
            }
            Error::CertificateExpired => f.write_str("the peer's certificate has expired"),
            Error::CertificateNotYetValid => f.write_str("the peer's certificate is not valid yet"),
            Error::WrongName { expected } => {
                write!(f, "the server's certificate is not for {}", expected.escape_debug())
            }
            Error::BadCertificate(reason) => write!(f, "the peer's certificate was refused: {reason}"),
            Error::NoClientCertificate => f.write_str("the client sent no certificate, and one is required"),
            Error::NoCommonVersion => f.write_str("the peer offers no version of TLS that is allowed here"),
            Error::NoCommonCipher => {
                f.write_str("no cipher suite, key exchange or signature scheme in common")
            }
            Error::NoCommonProtocol => f.write_str("no application protocol in common (ALPN)"),
            Error::PeerAlert(alert) => write!(f, "the peer ended the connection: {alert}"),
            Error::HandshakeEof => f.write_str("the peer closed the connection during the TLS handshake"),
            Error::Flood => f.write_str("the peer sent too many TLS control messages"),
            Error::Protocol(reason) => write!(f, "the peer broke the TLS protocol: {reason}"),
            Error::Io(error) => error.fmt(f),
            Error::Local(reason) => write!(f, "TLS failed on our side: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Alert {
    /// `certificate_required` (116): the server wants a client certificate.
    pub const CERTIFICATE_REQUIRED: Alert = Alert { code: 116 };
    /// `protocol_version` (70): the peer does not allow our versions of TLS.
    pub const PROTOCOL_VERSION: Alert = Alert { code: 70 };
    /// `unrecognized_name` (112): the server does not know the host name.
    pub const UNRECOGNIZED_NAME: Alert = Alert { code: 112 };
    /// `no_application_protocol` (120): ALPN found nothing in common.
    pub const NO_APPLICATION_PROTOCOL: Alert = Alert { code: 120 };
    /// `unknown_ca` (48): the peer does not trust the issuer of our certificate.
    pub const UNKNOWN_CA: Alert = Alert { code: 48 };
    /// `bad_certificate` (42): the peer refuses our certificate.
    pub const BAD_CERTIFICATE: Alert = Alert { code: 42 };
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match AlertDescription::from(self.code) {
            AlertDescription::Unknown(code) => write!(f, "alert {code}"),
            known => write!(f, "alert {} ({known:?})", self.code),
        }
    }
}

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection ended without the peer's TLS close_notify")
    }
}

impl std::error::Error for Truncated {}

/// Why a configuration cannot be used. What was in use before stays in use.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Arc<io::Error>,
    },
    /// There is no certificate where one was expected.
    NoCertificate {
        /// The file, or what else the bytes came from.
        origin: String,
    },
    /// A certificate cannot be parsed.
    BadCertificate {
        /// The file, or what else the bytes came from.
        origin: String,
        /// Why.
        reason: String,
    },
    /// There is no private key where one was expected.
    NoPrivateKey {
        /// The file, or what else the bytes came from.
        origin: String,
    },
    /// The private key is encrypted with a pass phrase; it has to be stored without one.
    EncryptedPrivateKey {
        /// The file, or what else the bytes came from.
        origin: String,
    },
    /// The private key cannot be parsed, or is of a kind that is not supported.
    BadPrivateKey {
        /// The file, or what else the bytes came from.
        origin: String,
        /// Why.
        reason: String,
    },
    /// The private key does not belong to the certificate.
    KeyMismatch {
        /// The certificate's file, or what else the bytes came from.
        origin: String,
    },
    /// The certificate has expired. A server may be told to use it nevertheless.
    Expired {
        /// The certificate's file, or what else the bytes came from.
        origin: String,
        /// Since when, in the form `2026-12-02T07:00:00Z`.
        not_after: String,
    },
    /// A host name is not one.
    BadHostName(String),
    /// The same host name was configured twice.
    DuplicateHostName(String),
    /// A server without any certificate.
    NoIdentity,
    /// Client certificates are to be checked, or servers to be verified, against no root at all.
    NoRoots,
    /// What the TLS library refuses for another reason.
    Library(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            ConfigError::NoCertificate { origin } => write!(f, "{origin}: no certificate in it"),
            ConfigError::BadCertificate { origin, reason } => {
                write!(f, "{origin}: not a usable certificate: {reason}")
            }
            ConfigError::NoPrivateKey { origin } => write!(f, "{origin}: no private key in it"),
            ConfigError::EncryptedPrivateKey { origin } => {
                write!(f, "{origin}: the private key is encrypted; store it without a pass phrase")
            }
            ConfigError::BadPrivateKey { origin, reason } => {
                write!(f, "{origin}: not a usable private key: {reason}")
            }
            ConfigError::KeyMismatch { origin } => {
                write!(f, "{origin}: the private key does not belong to the certificate")
            }
            ConfigError::Expired { origin, not_after } => {
                write!(f, "{origin}: the certificate has expired on {not_after}")
            }
            ConfigError::BadHostName(name) => write!(f, "{}: not a host name", name.escape_debug()),
            ConfigError::DuplicateHostName(name) => write!(f, "{name}: configured twice"),
            ConfigError::NoIdentity => f.write_str("a TLS server needs a certificate"),
            ConfigError::NoRoots => f.write_str("no root certificate to verify the peer with"),
            ConfigError::Library(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConfigError::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }
}
