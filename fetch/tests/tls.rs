//! `https` against servers that are not ours: openssl and nginx's kin are in the program's tests; here what a caller
//! sees when a certificate is good, bad, or not looked at.
#![cfg(feature = "tls")]
#![allow(clippy::expect_used, clippy::unwrap_used)] // a test fails where it panics

use std::convert::Infallible;
use std::sync::mpsc;

use http::{Request, Response};
use hyperman::{Body, Listen, Server, Shutdown, service_fn};
use hyperman_fetch::error::ErrorKind;
use hyperman_fetch::tls::{Authorities, ClientTls, Error as TlsError, OFFERED};
use hyperman_fetch::{Client, Error};
use hyperman_transport::tls::{DevelopmentCertificate, ServerTls, development_certificate};

struct Secure {
    url: String,
    made: DevelopmentCertificate,
    shutdown: Shutdown,
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.shutdown.cut();
    }
}

/// A server for `localhost`.
fn serve() -> Secure {
    let made = development_certificate(["localhost"]).unwrap();
    let tls = ServerTls::builder().identity(made.identity()).alpn(["h2", "http/1.1"]).build().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let service = service_fn(|request: Request<Body>| async move {
            let said = format!(
                "{} {:?}",
                request.uri().path(),
                request.extensions().get::<hyperman::tls::TlsInfo>().is_some()
            );
            Ok::<_, Infallible>(Response::new(Body::from(said)))
        });
        let bound = Server::new(service).listen_tls("127.0.0.1:0", &tls).bind().unwrap();
        let Listen::Tcp(address) = bound.addresses().first().unwrap().clone() else { panic!("TCP") };
        bound
            .run_with(|shutdown| {
                tell.send((address.port(), shutdown)).unwrap();
                Ok(())
            })
            .unwrap();
    });
    let (port, shutdown) = told.recv().unwrap();
    Secure { url: format!("https://localhost:{port}/a"), made, shutdown }
}

fn trusting(secure: &Secure) -> ClientTls {
    let authorities = Authorities::from_pem(&secure.made.certificate_pem);
    ClientTls::builder().only_authorities(authorities).alpn(OFFERED).build().unwrap()
}

fn ask(tls: Option<ClientTls>, url: &str, danger: bool) -> Result<String, Error> {
    hyperman_loop::block_on(|handle| async move {
        let mut builder = Client::builder(handle).resolve("other.test", [([127, 0, 0, 1], 0).into()]);
        if let Some(tls) = &tls {
            builder = builder.tls(tls);
        }
        let client = builder.build();
        let mut request = client.get(url);
        if danger {
            request = request.danger_accept_invalid_certificates();
        }
        request.send().await?.text().await
    })
    .unwrap()
}

#[test]
fn a_trusted_server_is_asked_over_tls() {
    let secure = serve();
    assert_eq!(ask(Some(trusting(&secure)), &secure.url, false).unwrap(), "/a true");
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused_unless_that_is_spelled_out() {
    let secure = serve();
    let error = ask(None, &secure.url, false).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Tls(TlsError::UnknownIssuer)), "{error:?}");
    assert!(error.is_connect() && !error.request_may_have_been_processed());
    assert_eq!(ask(None, &secure.url, true).unwrap(), "/a true");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let secure = serve();
    let url = secure.url.replace("localhost", "other.test");
    let error = ask(Some(trusting(&secure)), &url, false).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Tls(TlsError::WrongName { .. })), "{error:?}");
}

#[test]
fn s42_a_request_that_does_not_verify_shares_no_connection_with_one_that_does() {
    let secure = serve();
    let (tls, url) = (trusting(&secure), secure.url.clone());
    hyperman_loop::block_on(|handle| async move {
        let client = Client::builder(handle).tls(&tls).build();
        let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        for danger in [true, false, true, false] {
            let count = connections.clone();
            let mut request = client.get(&url).watch(move |notice: hyperman_fetch::Notice<'_>| {
                if let hyperman_fetch::Notice::Connected { reused: false, .. } = notice {
                    count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            });
            if danger {
                request = request.danger_accept_invalid_certificates();
            }
            request.send().await.unwrap().text().await.unwrap();
        }
        assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 2);
    })
    .unwrap();
}
