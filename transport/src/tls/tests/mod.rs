//! Pairs of our own ends joined in memory; real peers are in `tests/tls_peers.rs`.

mod authentication;
mod configuration;
mod hostile;
mod pipe;
mod resumption;
mod traffic;

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::{
    Authorities, ClientTls, ClientTlsBuilder, Identity, Provider, ServerTls, ServerTlsBuilder, TlsStream,
};
use pipe::{End, Network, pipe, run};

/// An authority made for one test.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(parameters, key) }
    }

    fn roots(&self) -> Authorities {
        Authorities::from_pem(&self.pem)
    }

    /// A certificate for names and addresses, which are also its subject, and its key; as PEM.
    fn issue_pem(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut parameters = CertificateParams::new(names.clone()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, names.join(" "));
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn issue(&self, names: &[&str]) -> Identity {
        let (certificate, key) = self.issue_pem(names, |_| {});
        Identity::from_pem(certificate, key)
    }

    fn server(&self, names: &[&str]) -> ServerTlsBuilder {
        ServerTls::builder().identity(self.issue(names))
    }

    fn client(&self) -> ClientTlsBuilder {
        ClientTls::builder().only_authorities(self.roots())
    }
}

/// The library's own client configuration, for what ours does not offer.
fn library_client(authority: &Authority, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap()).unwrap();
    ClientConfig::builder_with_provider(Provider::default().crypto())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A stream of ours under the library's configuration.
fn library_stream(config: &Arc<ClientConfig>, stream: End, host: &str) -> TlsStream<End> {
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let connection = UnbufferedClientConnection::new(config.clone(), name).unwrap();
    TlsStream::client(stream, connection, Some(host.to_owned()))
}

type Ends = (TlsStream<End>, TlsStream<End>);
type Failures = (Result<TlsStream<End>, super::Error>, Result<TlsStream<End>, super::Error>);

/// Both handshakes: the client's stream and the server's, or what either failed with.
fn shake(client: &ClientTls, server: &ServerTls, host: &str, network: Network) -> Failures {
    let (near, far) = pipe(network);
    let connecting = client.stream(near, host).unwrap().handshake();
    let accepting = server.accept(far);
    let (client, server) = run(connecting, accepting);
    (client.map_err(|failure| failure.error), server.map_err(|failure| failure.error))
}

/// Two ends after a handshake that must not fail.
fn connected(client: &ClientTls, server: &ServerTls, host: &str, network: Network) -> Ends {
    match shake(client, server, host, network) {
        (Ok(client), Ok(server)) => (client, server),
        (client, server) => panic!("client {client:?}, server {server:?}"),
    }
}
