//! Files that cannot be used, and their replacement while running.

use std::path::PathBuf;

use super::pipe::Network;
use super::{Authority, connected};
use crate::tls::{
    Authorities, ClientAuth, ClientTls, ConfigError, Identity, ServerTls, development_certificate,
};

fn server(certificate: &str, key: &str) -> Result<ServerTls, ConfigError> {
    ServerTls::builder().identity(Identity::from_pem(certificate, key)).build()
}

#[test]
fn each_thing_that_may_be_wrong_with_a_pair_has_its_error() {
    use ConfigError as E;

    let authority = Authority::new("root");
    let (certificate, key) = authority.issue_pem(&["host.test"], |_| {});
    let (_, other_key) = authority.issue_pem(&["host.test"], |_| {});
    assert!(server(&certificate, &key).is_ok());
    assert!(matches!(server(&certificate, &other_key), Err(E::KeyMismatch { .. })));
    assert!(matches!(server("", &key), Err(E::NoCertificate { .. })));
    assert!(matches!(server(&key, &key), Err(E::NoCertificate { .. })));
    assert!(matches!(server(&certificate, ""), Err(E::NoPrivateKey { .. })));
    assert!(matches!(server(&certificate, &certificate), Err(E::NoPrivateKey { .. })));
    let damaged = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    assert!(matches!(server(damaged, &key), Err(E::BadCertificate { .. })));
    let damaged = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n";
    assert!(matches!(server(&certificate, damaged), Err(E::BadPrivateKey { .. })));
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert!(matches!(server(&certificate, encrypted), Err(E::EncryptedPrivateKey { .. })));
    let (expired, key) = authority.issue_pem(&["host.test"], |parameters| {
        parameters.not_after = rcgen::date_time_ymd(2021, 3, 4);
    });
    let error = server(&expired, &key).unwrap_err();
    assert_eq!(
        error.to_string(),
        "certificate in memory: the certificate has expired on 2021-03-04T00:00:00Z"
    );
    assert!(matches!(ServerTls::builder().build(), Err(E::NoIdentity)));
    let missing = Identity::from_files("/nonexistent/certificate.pem", "/nonexistent/key.pem");
    let error = ServerTls::builder().identity(missing).build().unwrap_err();
    assert!(matches!(&error, E::Unreadable { path, .. } if path.ends_with("certificate.pem")), "{error}");
}

#[test]
fn host_names_are_checked() {
    let authority = Authority::new("root");
    let with = |names: &[&str]| {
        let identity = authority.issue(&["host.test"]);
        names.iter().fold(ServerTls::builder(), |builder, name| builder.host(*name, identity.clone())).build()
    };
    assert!(with(&["a.test", "*.a.test", "b.test."]).is_ok());
    for bad in ["", "*", "*.", "a b.test", "a.*.test", "https://a.test"] {
        assert!(matches!(with(&[bad]), Err(ConfigError::BadHostName(name)) if name == bad), "{bad}");
    }
    assert!(matches!(with(&["a.test", "A.test."]), Err(ConfigError::DuplicateHostName(_))));
}

#[test]
fn authorities_that_are_none_are_refused() {
    let authority = Authority::new("root");
    let auth = |roots| authority.server(&["host.test"]).client_auth(ClientAuth::Required(roots)).build();
    assert!(auth(authority.roots()).is_ok());
    assert!(matches!(auth(Authorities::from_pem("")), Err(ConfigError::NoCertificate { .. })));
    assert!(matches!(auth(Authorities::from_der(Vec::new())), Err(ConfigError::NoCertificate { .. })));
    assert!(matches!(auth(Authorities::from_der(vec![vec![1]])), Err(ConfigError::BadCertificate { .. })));
    assert!(matches!(auth(Authorities::from_file("/nonexistent")), Err(ConfigError::Unreadable { .. })));
    let client = ClientTls::builder().only_authorities(Authorities::from_pem("nothing")).build();
    assert!(matches!(client, Err(ConfigError::NoCertificate { .. })));
}

struct Files {
    _directory: tempfile::TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("certificate.pem"), directory.path().join("key.pem"));
        Files { _directory: directory, certificate, key }
    }

    fn write(&self, (certificate, key): (String, String)) {
        std::fs::write(&self.certificate, certificate).unwrap();
        std::fs::write(&self.key, key).unwrap();
    }
}

#[test]
fn a_reload_takes_new_files_and_a_bad_pair_leaves_the_old_in_place() {
    let authority = Authority::new("root");
    let files = Files::new();
    let issue = |subject: &str| authority.issue_pem(&["host.test", subject], |_| {});
    files.write(issue("first.test"));
    let server =
        ServerTls::builder().identity(Identity::from_files(&files.certificate, &files.key)).build().unwrap();
    let client = authority.client().build().unwrap();
    let subject = || {
        let (client, _) = connected(&client, &server, "host.test", Network::KIND);
        client.info().unwrap().peer_certificate().unwrap().subject.clone()
    };
    assert_eq!(subject(), "CN=host.test first.test");

    // The certificate alone is new: the pair does not match.
    std::fs::write(&files.certificate, issue("second.test").0).unwrap();
    let error = server.reload().unwrap_err();
    assert!(
        matches!(&error, ConfigError::KeyMismatch { origin } if *origin == files.certificate.display().to_string())
    );
    assert_eq!(subject(), "CN=host.test first.test");

    std::fs::remove_file(&files.key).unwrap();
    assert!(matches!(server.reload(), Err(ConfigError::Unreadable { path, .. }) if path == files.key));
    assert_eq!(subject(), "CN=host.test first.test");

    files.write(authority.issue_pem(&["host.test"], |p| p.not_after = rcgen::date_time_ymd(2020, 1, 1)));
    assert!(matches!(server.reload(), Err(ConfigError::Expired { .. })));
    assert_eq!(subject(), "CN=host.test first.test");

    let handle = server.clone();
    files.write(issue("third.test"));
    handle.reload().unwrap();
    assert_eq!(subject(), "CN=host.test third.test", "all handles see the new pair");

    server.replace(authority.server(&["host.test", "fourth.test"])).unwrap();
    assert_eq!(subject(), "CN=host.test fourth.test");
    assert!(matches!(server.replace(ServerTls::builder()), Err(ConfigError::NoIdentity)));
    server.reload().unwrap();
    assert_eq!(subject(), "CN=host.test fourth.test", "the refused recipe is forgotten");
}

#[test]
fn a_connection_outlives_the_certificate_it_began_with() {
    use super::pipe::{read_exact, run, send_all};

    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let client = authority.client().build().unwrap();
    let (mut near, mut far) = connected(&client, &server, "host.test", Network::KIND);
    server.replace(authority.server(&["host.test"])).unwrap();
    let (sent, got) = run(send_all(&mut near, b"still here"), read_exact(&mut far, 10));
    sent.unwrap();
    assert_eq!(got.unwrap(), b"still here");
}

#[test]
fn a_development_certificate_serves_the_names_it_was_made_for() {
    let made = development_certificate(["localhost", "127.0.0.1", "*.dev.localhost"]).unwrap();
    let server = ServerTls::builder().identity(made.identity()).build().unwrap();
    let client =
        ClientTls::builder().only_authorities(Authorities::from_pem(&made.certificate_pem)).build().unwrap();
    for host in ["localhost", "127.0.0.1", "x.dev.localhost"] {
        connected(&client, &server, host, Network::KIND);
    }
    let bad = development_certificate(["not a name"]);
    assert!(matches!(bad, Err(ConfigError::BadHostName(name)) if name == "not a name"));
    assert!(!format!("{made:?}").contains("PRIVATE"), "keys are not shown");
}

#[test]
fn keys_are_taken_as_der_too() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    let authority = Authority::new("root");
    let (certificate, key) = authority.issue_pem(&["host.test"], |_| {});
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap().to_vec();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap().secret_der().to_vec();
    let identity = Identity::from_der(vec![certificate], key).unwrap();
    let server = ServerTls::builder().identity(identity).build().unwrap();
    connected(&authority.client().build().unwrap(), &server, "host.test", Network::KIND);
    assert!(matches!(Identity::from_der(Vec::new(), vec![1, 2, 3]), Err(ConfigError::BadPrivateKey { .. })));
}

#[test]
fn the_systems_roots_or_the_bundled_ones_are_there() {
    // Neither trusts our authority; both are built without being asked for anything else.
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    for client in [ClientTls::builder(), ClientTls::builder().bundled_roots()] {
        let added = client.clone().add_authorities(authority.roots()).build().unwrap();
        connected(&added, &server, "host.test", Network::KIND);
        let (refused, _) = super::shake(&client.build().unwrap(), &server, "host.test", Network::KIND);
        assert!(matches!(refused, Err(crate::tls::Error::UnknownIssuer)), "{refused:?}");
    }
}
