//! The certificate that the program serves with: a given one, or one for development.

use std::net::IpAddr;

use hyperman::Listen;
use hyperman::tls::{ConfigError, Identity, ServerTls, development_certificate};

use crate::announce;
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

/// What this machine is called from itself, the addresses that are listened on, and where that is every address, the one
/// and the name by which others reach it.
fn own_names<'a>(addresses: impl Iterator<Item = &'a Listen>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let mut add = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for address in addresses {
        let Listen::Tcp(address) = address else { continue };
        let ip: IpAddr = address.ip();
        if !ip.is_unspecified() {
            add(ip.to_string());
            continue;
        }
        announce::outward(&ip).iter().for_each(|ip| add(ip.to_string()));
        host_name().into_iter().for_each(&mut add);
    }
    names
}

/// The name of this machine, where it can stand in a certificate.
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(label).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_development_certificate_has_each_name_once() {
        let tcp = |address: &str| Listen::Tcp(address.parse().unwrap());
        let names = |addresses: &[Listen]| own_names(addresses.iter());
        let own = ["localhost", "127.0.0.1", "::1"];
        assert_eq!(names(&[tcp("127.0.0.1:1"), tcp("[::1]:2"), Listen::Unix("/x".into())]), own);
        let more = [own.as_slice(), &["127.0.0.2", "192.0.2.7"]].concat();
        assert_eq!(
            names(&[tcp("192.0.2.7:443"), tcp("127.0.0.2:443"), tcp("192.0.2.7:80")]).len(),
            more.len()
        );
        let everywhere = names(&[tcp("0.0.0.0:443"), tcp("0.0.0.0:8443")]);
        assert_eq!(
            everywhere.iter().filter(|name| Some(*name) == host_name().as_ref()).count(),
            1,
            "{everywhere:?}"
        );
    }
}
