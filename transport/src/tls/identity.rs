//! Certificates and keys of ours, and the roots that peers are checked against: where they come from, and the checks
//! that they pass before they are used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::certificate::{Certificate, Date};
use super::error::ConfigError;

/// A certificate with its chain, and the private key that belongs to it. Files are read when the configuration is built,
/// and again at each reload.
#[derive(Clone)]
pub struct Identity {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Files { certificates: PathBuf, key: PathBuf },
    Pem { certificates: Arc<[u8]>, key: Arc<[u8]> },
    Der { certificates: Vec<CertificateDer<'static>>, key: Arc<PrivateKeyDer<'static>> },
}

/// How bytes in memory are called in errors.
const IN_MEMORY: &str = "certificate in memory";

impl Identity {
    /// PEM files: the certificate followed by its chain, and the private key. Both may be in one file.
    pub fn from_files(certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Identity { source: Source::Files { certificates: certificates.into(), key: key.into() } }
    }

    /// The same as text in memory.
    pub fn from_pem(certificates: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Identity {
            source: Source::Pem { certificates: certificates.as_ref().into(), key: key.as_ref().into() },
        }
    }

    /// DER: the certificate followed by its chain, and the private key as PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    /// When the key is none of these.
    pub fn from_der(chain: Vec<Vec<u8>>, key: Vec<u8>) -> Result<Self, ConfigError> {
        let key = PrivateKeyDer::try_from(key).map_err(|reason| ConfigError::BadPrivateKey {
            origin: IN_MEMORY.into(),
            reason: reason.to_string(),
        })?;
        let certificates = chain.into_iter().map(CertificateDer::from).collect();
        Ok(Identity { source: Source::Der { certificates, key: Arc::new(key) } })
    }

    /// Reads, parses and checks.
    pub(super) fn load(
        &self,
        provider: &CryptoProvider,
        check: Check,
    ) -> Result<Arc<CertifiedKey>, ConfigError> {
        let (chain, key, origin) = match &self.source {
            Source::Files { certificates, key } => {
                let origin = certificates.display().to_string();
                let chain = parse_certificates(&read(certificates)?, &origin)?;
                (chain, parse_key(&read(key)?, &key.display().to_string())?, origin)
            }
            Source::Pem { certificates, key } => {
                (parse_certificates(certificates, IN_MEMORY)?, parse_key(key, IN_MEMORY)?, IN_MEMORY.into())
            }
            Source::Der { certificates, key } => (certificates.clone(), key.clone_key(), IN_MEMORY.into()),
        };
        let Some(leaf) = chain.first() else { return Err(ConfigError::NoCertificate { origin }) };
        if let Check::ValidNow = check {
            check_not_expired(leaf, &origin)?;
        }
        match CertifiedKey::from_der(chain, key, provider) {
            Ok(certified) => Ok(Arc::new(certified)),
            Err(rustls::Error::InconsistentKeys(_)) => Err(ConfigError::KeyMismatch { origin }),
            Err(rustls::Error::InvalidCertificate(reason)) => {
                Err(ConfigError::BadCertificate { origin, reason: reason.to_string() })
            }
            Err(other) => Err(ConfigError::BadPrivateKey { origin, reason: other.to_string() }),
        }
    }
}

/// Shows where the identity comes from, never the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Files { certificates, key } => {
                f.debug_struct("Identity").field("certificates", certificates).field("key", key).finish()
            }
            Source::Pem { .. } | Source::Der { .. } => f.write_str("Identity(in memory)"),
        }
    }
}

/// Whether an expired certificate is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    ValidNow,
    AnyDate,
}

/// Certificates of authorities that peers are checked against.
#[derive(Clone)]
pub struct Authorities {
    source: AuthoritySource,
}

#[derive(Clone)]
enum AuthoritySource {
    File(PathBuf),
    Pem(Arc<[u8]>),
    Der(Vec<CertificateDer<'static>>),
}

impl Authorities {
    /// A PEM file with one certificate or more.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Authorities { source: AuthoritySource::File(path.into()) }
    }

    /// The same as text in memory.
    pub fn from_pem(certificates: impl AsRef<[u8]>) -> Self {
        Authorities { source: AuthoritySource::Pem(certificates.as_ref().into()) }
    }

    /// Certificates as DER.
    pub fn from_der(certificates: Vec<Vec<u8>>) -> Self {
        let certificates = certificates.into_iter().map(CertificateDer::from).collect();
        Authorities { source: AuthoritySource::Der(certificates) }
    }

    /// Adds them all to `roots`.
    ///
    /// # Errors
    /// When there is none, or one of them cannot be a root.
    pub(super) fn add_to(&self, roots: &mut RootCertStore) -> Result<(), ConfigError> {
        const MEMORY: &str = "authorities in memory";
        let (certificates, origin) = match &self.source {
            AuthoritySource::File(path) => {
                let origin = path.display().to_string();
                (parse_certificates(&read(path)?, &origin)?, origin)
            }
            AuthoritySource::Pem(bytes) => (parse_certificates(bytes, MEMORY)?, MEMORY.into()),
            AuthoritySource::Der(certificates) => (certificates.clone(), MEMORY.into()),
        };
        if certificates.is_empty() {
            return Err(ConfigError::NoCertificate { origin });
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|reason| ConfigError::BadCertificate {
                origin: origin.clone(),
                reason: reason.to_string(),
            })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            AuthoritySource::File(path) => f.debug_tuple("Authorities").field(path).finish(),
            AuthoritySource::Pem(_) | AuthoritySource::Der(_) => f.write_str("Authorities(in memory)"),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error: Arc::new(error) })
}

fn parse_certificates(bytes: &[u8], origin: &str) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| ConfigError::BadCertificate { origin: origin.into(), reason: error.to_string() })?;
    if certificates.is_empty() {
        return Err(ConfigError::NoCertificate { origin: origin.into() });
    }
    Ok(certificates)
}

fn parse_key(bytes: &[u8], origin: &str) -> Result<PrivateKeyDer<'static>, ConfigError> {
    const ENCRYPTED: [&[u8]; 2] = [b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED"];
    let origin = origin.to_owned();
    if ENCRYPTED.iter().any(|mark| bytes.windows(mark.len()).any(|window| window == *mark)) {
        return Err(ConfigError::EncryptedPrivateKey { origin });
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => ConfigError::NoPrivateKey { origin },
        other => ConfigError::BadPrivateKey { origin, reason: other.to_string() },
    })
}

fn check_not_expired(leaf: &CertificateDer<'_>, origin: &str) -> Result<(), ConfigError> {
    let Some(certificate) = Certificate::parse(leaf) else {
        let reason = "it is not in the form of RFC 5280".to_owned();
        return Err(ConfigError::BadCertificate { origin: origin.into(), reason });
    };
    let not_after = certificate.not_after();
    if not_after < Date::now() {
        return Err(ConfigError::Expired { origin: origin.into(), not_after: not_after.to_string() });
    }
    Ok(())
}
