//! Who is who: names, issuers, dates, client certificates, ALPN.

use std::time::Duration;

use rcgen::date_time_ymd;

use super::pipe::{Network, read_to_end, run};
use super::{Authority, connected, shake};
use crate::tls::{Alert, ClientAuth, ClientTls, Error, Identity, ServerTls, Version};

fn refused(client: &ClientTls, server: &ServerTls, host: &str) -> (Error, Error) {
    match shake(client, server, host, Network::KIND) {
        (Err(client), Err(server)) => (client, server),
        (client, server) => panic!("client {client:?}, server {server:?}"),
    }
}

#[test]
fn a_server_from_another_issuer_is_refused() {
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    let (client, server) = refused(
        &known.client().build().unwrap(),
        &unknown.server(&["host.test"]).build().unwrap(),
        "host.test",
    );
    assert!(matches!(client, Error::UnknownIssuer), "{client:?}");
    assert!(client.is_certificate());
    assert!(matches!(server, Error::PeerAlert(Alert::UNKNOWN_CA)), "{server:?}");
}

#[test]
fn a_server_with_another_name_is_refused_and_the_error_names_ours() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let server = authority.server(&["host.test", "192.0.2.1"]).build().unwrap();
    for host in ["other.test", "192.0.2.2"] {
        let (error, _) = refused(&client, &server, host);
        assert!(matches!(&error, Error::WrongName { expected } if expected == host), "{error:?}");
    }
}

#[test]
fn an_address_is_verified_as_an_address_and_not_sent_as_a_name() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let server = authority.server(&["127.0.0.1", "::1"]).build().unwrap();
    for host in ["127.0.0.1", "[::1]", "::1"] {
        let (client, server) = connected(&client, &server, host, Network::KIND);
        assert_eq!(client.info().unwrap().server_name(), None);
        assert_eq!(server.info().unwrap().server_name(), None);
    }
}

#[test]
fn certificates_out_of_their_dates_are_refused() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let day = Duration::from_secs(86_400);
    let dates = |from, to| {
        let (certificate, key) = authority.issue_pem(&["host.test"], |parameters| {
            (parameters.not_before, parameters.not_after) = (from, to);
        });
        let identity = Identity::from_pem(certificate, key);
        ServerTls::builder().identity(identity).allow_expired(true).build().unwrap()
    };
    let expired = dates(date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    assert!(matches!(refused(&client, &expired, "host.test").0, Error::CertificateExpired));
    let early = dates(date_time_ymd(3000, 1, 1), date_time_ymd(3000, 1, 1) + day);
    assert!(matches!(refused(&client, &early, "host.test").0, Error::CertificateNotYetValid));
}

#[test]
fn verification_is_off_only_where_that_is_spelled_out() {
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    let server = unknown.server(&["elsewhere.test"]).build().unwrap();
    let careless = known.client().danger_accept_invalid_certificates().build().unwrap();
    assert!(!careless.verifies());
    connected(&careless, &server, "host.test", Network::KIND);
    let careful = known.client().build().unwrap();
    assert!(careful.verifies());
    refused(&careful, &server, "host.test");
}

#[test]
fn the_certificate_goes_by_the_name_that_was_asked_for() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let server = ServerTls::builder()
        .identity(authority.issue(&["fallback.test", "a.b.wild.test", "wild.test", "127.0.0.1"]))
        .host("One.test", authority.issue(&["one.test"]))
        .host("*.wild.test", authority.issue(&["*.wild.test"]))
        .host("exact.wild.test", authority.issue(&["exact.wild.test"]))
        .build()
        .unwrap();
    for (host, subject) in [
        ("one.test", "CN=one.test"),
        ("ONE.TEST", "CN=one.test"),
        ("one.test.", "CN=one.test"),
        ("x.wild.test", "CN=*.wild.test"),
        ("exact.wild.test", "CN=exact.wild.test"),
        ("a.b.wild.test", "CN=fallback.test a.b.wild.test wild.test 127.0.0.1"),
        ("wild.test", "CN=fallback.test a.b.wild.test wild.test 127.0.0.1"),
        ("fallback.test", "CN=fallback.test a.b.wild.test wild.test 127.0.0.1"),
        ("127.0.0.1", "CN=fallback.test a.b.wild.test wild.test 127.0.0.1"),
    ] {
        let (client, _) = connected(&client, &server, host, Network::KIND);
        let info = client.info().unwrap();
        assert_eq!(info.peer_certificate().unwrap().subject, subject, "{host}");
        assert_eq!(info.peer_certificate().unwrap().issuer, "CN=root", "{host}");
    }
}

#[test]
fn an_unknown_host_is_refused_where_there_is_no_fallback() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let server = ServerTls::builder().host("one.test", authority.issue(&["one.test"])).build().unwrap();
    connected(&client, &server, "one.test", Network::KIND);
    for host in ["two.test", "127.0.0.1"] {
        let (client, server) = refused(&client, &server, host);
        assert!(matches!(client, Error::PeerAlert(Alert::UNRECOGNIZED_NAME)), "{client:?}");
        assert!(matches!(server, Error::UnknownHost), "{server:?}");
    }
}

#[test]
fn a_client_certificate_reaches_the_server_with_its_names() {
    let (authority, people) = (Authority::new("root"), Authority::new("people, \"and\" more"));
    let client = authority.client().identity(people.issue(&["alice"])).build().unwrap();
    for auth in [ClientAuth::Optional(people.roots()), ClientAuth::Required(people.roots())] {
        let server = authority.server(&["host.test"]).client_auth(auth).build().unwrap();
        for network in [Network::KIND, Network::BYTE_BY_BYTE] {
            let (_, server) = connected(&client, &server, "host.test", network);
            let info = server.info().unwrap();
            let names = info.peer_certificate().unwrap();
            assert_eq!(names.subject, "CN=alice");
            assert_eq!(names.issuer, "CN=people\\, \\\"and\\\" more");
            assert_eq!(info.peer_chain().len(), 1);
            assert!(info.peer_chain().next().unwrap().starts_with(&[0x30, 0x82]), "DER");
        }
    }
}

#[test]
fn without_a_client_certificate_optional_goes_on_and_required_ends() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let client = authority.client().build().unwrap();
    let optional =
        authority.server(&["host.test"]).client_auth(ClientAuth::Optional(people.roots())).build().unwrap();
    let (_, accepted) = connected(&client, &optional, "host.test", Network::KIND);
    assert!(accepted.info().unwrap().peer_certificate().is_none());
    assert_eq!(accepted.info().unwrap().peer_chain().len(), 0);

    let required =
        authority.server(&["host.test"]).client_auth(ClientAuth::Required(people.roots())).build().unwrap();
    // In TLS 1.3 the client is done before the server has seen that no certificate came (RFC 8446 §4.4.2).
    let (client, server) = shake(&client, &required, "host.test", Network::KIND);
    assert!(matches!(server, Err(Error::NoClientCertificate)), "{server:?}");
    let ((got, end), ()) = run(read_to_end(&mut client.unwrap()), async {});
    assert_eq!(got, b"");
    let error = end.unwrap_err();
    let inner = Error::from_io(&error);
    assert!(matches!(inner, Some(Error::PeerAlert(Alert::CERTIFICATE_REQUIRED))), "{error:?}");
}

#[test]
fn a_client_certificate_from_elsewhere_is_refused_even_where_it_is_optional() {
    let (authority, people, others) =
        (Authority::new("root"), Authority::new("people"), Authority::new("others"));
    let client = authority.client().identity(others.issue(&["mallory"])).build().unwrap();
    for auth in [ClientAuth::Optional(people.roots()), ClientAuth::Required(people.roots())] {
        let server = authority.server(&["host.test"]).client_auth(auth).build().unwrap();
        let (_, accepted) = shake(&client, &server, "host.test", Network::KIND);
        let error = accepted.err().unwrap();
        // A client whose issuer is not among those that the server names sends nothing at all.
        assert!(matches!(error, Error::UnknownIssuer | Error::NoClientCertificate), "{error:?}");
    }
}

#[test]
fn the_servers_preference_among_the_protocols_decides() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).alpn(["h2", "http/1.1"]).build().unwrap();
    let cases: [(&[&str], Option<&[u8]>); 3] =
        [(&["http/1.1", "h2"], Some(b"h2")), (&["http/1.1"], Some(b"http/1.1")), (&[], None)];
    for (offered, agreed) in cases {
        let client = authority.client().alpn(offered).build().unwrap();
        let (client, server) = connected(&client, &server, "host.test", Network::KIND);
        assert_eq!(client.info().unwrap().alpn(), agreed);
        assert_eq!(server.info().unwrap().alpn(), agreed);
    }
}

#[test]
fn nothing_in_common_ends_the_handshake_with_the_reason() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).alpn(["http/1.1"]).build().unwrap();
    let client = authority.client().alpn(["h2"]).build().unwrap();
    let (client, server) = refused(&client, &server, "host.test");
    assert!(matches!(client, Error::PeerAlert(Alert::NO_APPLICATION_PROTOCOL)), "{client:?}");
    assert!(matches!(server, Error::NoCommonProtocol), "{server:?}");

    let server = authority.server(&["host.test"]).min_version(Version::Tls13).build().unwrap();
    let old = std::sync::Arc::new(super::library_client(&authority, &[&rustls::version::TLS12]));
    let (near, far) = super::pipe(Network::KIND);
    let (client, server) =
        run(super::library_stream(&old, near, "host.test").handshake(), server.accept(far));
    let (client, server) = (client.unwrap_err().error, server.unwrap_err().error);
    assert!(matches!(client, Error::PeerAlert(Alert::PROTOCOL_VERSION)), "{client:?}");
    assert!(matches!(server, Error::NoCommonVersion), "{server:?}");
}

#[test]
fn the_cipher_suite_has_its_registered_name() {
    let authority = Authority::new("root");
    let (client, _) = connected(
        &authority.client().build().unwrap(),
        &authority.server(&["host.test"]).build().unwrap(),
        "host.test",
        Network::KIND,
    );
    assert_eq!(client.info().unwrap().cipher_suite(), "TLS_AES_256_GCM_SHA384");
}

#[test]
fn configurations_are_told_apart() {
    let authority = Authority::new("root");
    let builder = authority.client();
    let one = builder.clone().build().unwrap();
    let same_again = builder.clone().build().unwrap();
    let careless = builder.danger_accept_invalid_certificates().build().unwrap();
    let h2 = one.with_alpn(["h2"]);
    let ids = [one.id(), same_again.id(), careless.id(), h2.id()];
    let distinct: std::collections::HashSet<_> = ids.into_iter().collect();
    assert_eq!(distinct.len(), 4);
    assert_eq!(one.clone().id(), one.id());
}

#[cfg(all(feature = "tls-ring", feature = "tls-aws-lc-rs"))]
#[test]
fn providers_stand_side_by_side_and_understand_each_other() {
    use crate::tls::Provider;

    let authority = Authority::new("root");
    for (near, far) in [(Provider::Ring, Provider::AwsLcRs), (Provider::AwsLcRs, Provider::Ring)] {
        let client = authority.client().provider(near).build().unwrap();
        let server = authority.server(&["host.test"]).provider(far).build().unwrap();
        connected(&client, &server, "host.test", Network::BYTE_BY_BYTE);
    }
}
