//! TLS as `localhost`, with a certificate made for this process: for our own sides, and for the plain peers, which use
//! rustls by itself.

use std::sync::{Arc, LazyLock};

use hyperman_transport::tls::{Authorities, ClientTls, ServerTls, development_certificate};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The configurations of both sides.
#[derive(Debug)]
pub struct Tls {
    /// Of Fetch.
    pub client: ClientTls,
    /// Of Hyperman.
    pub server: ServerTls,
    /// Of a plain client that speaks HTTP/1.1, and of one that speaks HTTP/2.
    pub(crate) plain_client: [Arc<rustls::ClientConfig>; 2],
    /// Of a plain server, the same way.
    pub(crate) plain_server: [Arc<rustls::ServerConfig>; 2],
}

/// What all of this process uses.
///
/// # Panics
/// When it cannot be made.
pub fn tls() -> &'static Tls {
    static TLS: LazyLock<Tls> = LazyLock::new(make);
    &TLS
}

fn make() -> Tls {
    let made = development_certificate(["localhost"]).expect("a certificate");
    let client = ClientTls::builder().only_authorities(Authorities::from_pem(&made.certificate_pem));
    let server = ServerTls::builder().identity(made.identity()).alpn(["h2", "http/1.1"]);
    let certificate = CertificateDer::from_pem_slice(made.certificate_pem.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(made.key_pem.as_bytes()).expect("a key");
    let plain_client = ["http/1.1", "h2"].map(|protocol| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).expect("an authority");
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        Arc::new(config)
    });
    let plain_server = ["http/1.1", "h2"].map(|protocol| {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.clone_key())
            .expect("an identity");
        config.alpn_protocols = vec![protocol.into()];
        Arc::new(config)
    });
    Tls {
        client: client.build().expect("a client's side"),
        server: server.build().expect("a server's side"),
        plain_client,
        plain_server,
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
