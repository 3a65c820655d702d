//! The certificate that the program serves with: a given one, or one for development.

use std::net::IpAddr;

use hyperman::Listen;
use hyperman::tls::{ConfigError, Identity, ServerTls, development_certificate};

use crate::options::ServeOptions;

/// The TLS settings that the options ask for, if they ask for any.
///
/// # Errors
/// What is wrong with the certificate or its key.
pub fn settings(options: &ServeOptions) -> Result<Option<ServerTls>, ConfigError> {
    if !options.tls {
        return Ok(None);
    }
    let identity = match (&options.cert, &options.key) {
        (Some(certificate), Some(key)) => Identity::from_files(certificate, key),
        _ => development_certificate(own_names(options.addresses()))?.identity(),
    };
    ServerTls::builder().identity(identity).alpn(["h2", "http/1.1"]).build().map(Some)
}

/// What this machine is called from itself, and the addresses that are listened on.
fn own_names<'a>(addresses: impl Iterator<Item = &'a Listen>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    for address in addresses {
        let Listen::Tcp(address) = address else { continue };
        let ip: IpAddr = address.ip();
        if !ip.is_loopback() && !ip.is_unspecified() {
            names.push(ip.to_string());
        }
    }
    names
}
