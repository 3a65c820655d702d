//! Sessions are resumed, and never across hosts or configurations (S81).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use super::pipe::{Network, close, pipe, read_to_end, run, send_all};
use super::{Authority, Ends, connected, library_client, library_stream};
use crate::tls::{ClientAuth, ClientTls, Error, ServerTls};

/// A short exchange, in which the tickets reach the client; whether both sides say that the session was resumed.
fn exchange((mut client, mut server): Ends) -> bool {
    run(
        async {
            send_all(&mut client, b"hello").await.unwrap();
            close(&mut client).await.unwrap();
            read_to_end(&mut client).await.1.unwrap();
        },
        async {
            read_to_end(&mut server).await.1.unwrap();
            close(&mut server).await.unwrap();
        },
    );
    let resumed = [&client, &server].map(|stream| stream.info().unwrap().is_resumed());
    assert_eq!(resumed[0], resumed[1]);
    resumed[0]
}

fn resumes(client: &ClientTls, server: &ServerTls) -> [bool; 2] {
    [0, 1].map(|_| exchange(connected(client, server, "host.test", Network::KIND)))
}

#[test]
fn the_second_connection_resumes_unless_one_side_does_not_want_to() {
    let authority = Authority::new("root");
    let (on, off) = (authority.server(&["host.test"]), authority.server(&["host.test"]).resumption(false));
    let (on, off) = (on.build().unwrap(), off.build().unwrap());
    assert_eq!(resumes(&authority.client().build().unwrap(), &on), [false, true]);
    assert_eq!(resumes(&authority.client().build().unwrap(), &off), [false, false]);
    assert_eq!(resumes(&authority.client().resumption(false).build().unwrap(), &on), [false, false]);
}

#[test]
fn a_resumed_session_still_knows_the_client() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let auth = ClientAuth::Required(people.roots());
    let server = authority.server(&["host.test"]).client_auth(auth).build().unwrap();
    let client = authority.client().identity(people.issue(&["alice"])).build().unwrap();
    assert!(!exchange(connected(&client, &server, "host.test", Network::KIND)));
    let (client, server) = connected(&client, &server, "host.test", Network::KIND);
    assert_eq!(server.info().unwrap().peer_certificate().unwrap().subject, "CN=alice");
    assert!(exchange((client, server)));
}

#[test]
fn a_reload_and_another_configuration_end_old_sessions() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let client = authority.client().build().unwrap();
    assert_eq!(resumes(&client, &server), [false, true]);
    server.reload().unwrap();
    assert_eq!(resumes(&client, &server), [false, true]);
    // The same trust with another protocol list has sessions of its own.
    assert_eq!(resumes(&client.with_alpn(["h2"]), &server), [false, true]);
}

/// A client's store that offers any host's session to any other: what an attacker would do.
#[derive(Debug, Default)]
struct AnyHost {
    tls12: Mutex<Option<Tls12ClientSessionValue>>,
    tls13: Mutex<Vec<Tls13ClientSessionValue>>,
    offered: AtomicUsize,
}

impl ClientSessionStore for AnyHost {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        *self.tls12.lock().unwrap() = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let value = self.tls12.lock().unwrap().clone();
        self.offered.fetch_add(usize::from(value.is_some()), Ordering::Relaxed);
        value
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        *self.tls12.lock().unwrap() = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.tls13.lock().unwrap().push(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let value = self.tls13.lock().unwrap().pop();
        self.offered.fetch_add(usize::from(value.is_some()), Ordering::Relaxed);
        value
    }
}

#[test]
fn a_session_of_one_host_opens_no_other_with_stricter_client_auth() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    // Both hosts use one certificate, so that nothing but the session's key keeps them apart.
    let identity = authority.issue(&["open.test", "closed.test", "asks.test"]);
    let server = ServerTls::builder()
        .host("open.test", identity.clone())
        .host_with_client_auth("closed.test", identity.clone(), ClientAuth::Required(people.roots()))
        .host_with_client_auth("asks.test", identity, ClientAuth::Optional(people.roots()))
        .build()
        .unwrap();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let store = Arc::new(AnyHost::default());
        let mut config = library_client(&authority, &[version]);
        config.resumption = Resumption::store(store.clone());
        let config = Arc::new(config);
        let connect = |host: &str| {
            let (near, far) = pipe(Network::KIND);
            let (client, server) = run(library_stream(&config, near, host).handshake(), server.accept(far));
            (client.map_err(|failure| failure.error), server.map_err(|failure| failure.error))
        };
        let (client, accepted) = connect("open.test");
        assert!(!exchange((client.unwrap(), accepted.unwrap())));
        assert_eq!(store.offered.load(Ordering::Relaxed), 0);

        let (_, refused) = connect("closed.test");
        assert_eq!(store.offered.load(Ordering::Relaxed), 1, "the other host's session was offered");
        assert!(matches!(refused, Err(Error::NoClientCertificate)), "{refused:?}");

        let (client, server) = connect("open.test");
        assert!(exchange((client.unwrap(), server.unwrap())), "at home the same store does resume");

        let (client, server) = connect("asks.test");
        assert_eq!(store.offered.load(Ordering::Relaxed), 3);
        assert!(!exchange((client.unwrap(), server.unwrap())), "a full handshake, in which it asks");
    }
}

#[test]
fn requests_for_a_host_with_other_rules_are_misdirected() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let identity = authority.issue(&["one.test", "two.test", "closed.test"]);
    let server = ServerTls::builder()
        .identity(identity.clone())
        .host("one.test", identity.clone())
        .host("two.test", identity.clone())
        .host_with_client_auth("closed.test", identity, ClientAuth::Optional(people.roots()))
        .build()
        .unwrap();
    let client = authority.client().build().unwrap();
    let (near, far) = connected(&client, &server, "one.test", Network::KIND);
    let info = far.info().unwrap();
    assert!(info.serves("one.test") && info.serves("TWO.test.") && info.serves("elsewhere.test"));
    assert!(!info.serves("closed.test"));
    assert!(near.info().unwrap().serves("closed.test"), "a client is not asked");
}

#[test]
fn early_data_is_not_offered_to_clients_that_would_like_it() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let store = Arc::new(AnyHost::default());
    let mut config = library_client(&authority, &[&rustls::version::TLS13]);
    config.enable_early_data = true;
    config.resumption = Resumption::store(store.clone());
    let config = Arc::new(config);
    let (near, far) = pipe(Network::KIND);
    let (client, accepted) = run(library_stream(&config, near, "host.test").handshake(), server.accept(far));
    assert!(!exchange((client.unwrap(), accepted.unwrap())));
    // It has a ticket, and the ticket allows no early data (RFC 8446 §4.2.10).
    let name = ServerName::try_from("host.test").unwrap();
    let mut again = rustls::ClientConnection::new(config, name).unwrap();
    assert_eq!(store.offered.load(Ordering::Relaxed), 1);
    assert!(again.early_data().is_none());
}
