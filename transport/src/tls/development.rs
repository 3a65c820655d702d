//! Certificates for development, made on the spot. They prove nothing to anybody who was not given them.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

use super::error::ConfigError;
use super::identity::Identity;

/// A certificate that signs itself, with its key.
#[derive(Clone)]
pub struct DevelopmentCertificate {
    /// The certificate as PEM. A client that is given it as an authority accepts the server.
    pub certificate_pem: String,
    /// The private key as PEM (PKCS #8).
    pub key_pem: String,
}

impl DevelopmentCertificate {
    /// For a server's configuration.
    pub fn identity(&self) -> Identity {
        Identity::from_pem(&self.certificate_pem, &self.key_pem)
    }
}

/// Shows the certificate, never the key.
impl std::fmt::Debug for DevelopmentCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevelopmentCertificate")
            .field("certificate", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// One day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a certificate is valid, in days: no longer than browsers accept from anybody.
const VALID_DAYS: u32 = 397;

/// Makes a certificate for host names and IP addresses, valid from yesterday (clocks differ) for 397 days.
///
/// # Errors
/// [`ConfigError::BadHostName`] for what is neither, and when there is no randomness for a key.
pub fn development_certificate<N: Into<String>>(
    names: impl IntoIterator<Item = N>,
) -> Result<DevelopmentCertificate, ConfigError> {
    let library = |error: rcgen::Error| ConfigError::Library(error.to_string());
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    for name in &names {
        let host = name.strip_prefix("*.").unwrap_or(name);
        if name.parse::<IpAddr>().is_err() && rustls::pki_types::DnsName::try_from(host).is_err() {
            return Err(ConfigError::BadHostName(name.clone()));
        }
    }
    let mut parameters = CertificateParams::new(names).map_err(library)?;
    parameters.distinguished_name.push(DnType::CommonName, "Hyperman development certificate");
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(DAY);
    parameters.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_1970.saturating_sub(DAY);
    parameters.not_after = parameters.not_before + VALID_DAYS * DAY;
    let key = KeyPair::generate().map_err(library)?;
    let certificate = parameters.self_signed(&key).map_err(library)?;
    Ok(DevelopmentCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
}
