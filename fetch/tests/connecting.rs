//! From a name to a connection: addresses that do not answer, and how long that may take, on every loop.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

mod loops;
mod peer;

use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hyperman_fetch::{Client, ErrorKind};
use hyperman_transport::Runtime;
use rustix::net::{AddressFamily, SocketType};

use peer::Peer;

on_every_loop! {
    a_silent_address_hands_over_after_its_head_start
    a_refusing_address_hands_over_at_once
    the_connect_deadline_is_told_apart_from_the_total_one
    names_are_looked_up_and_asked_for
    a_local_address_is_used
}

/// An address whose kernel drops every attempt to connect: a listener whose queue is full and that nobody accepts from.
struct Silent {
    address: SocketAddr,
    _listener: OwnedFd,
    _queued: TcpStream,
}

impl Silent {
    fn new(address: SocketAddr) -> Silent {
        let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&listener, &address).expect("a free address");
        rustix::net::listen(&listener, 0).expect("listens");
        let address = rustix::net::getsockname(&listener).expect("a name").try_into().expect("an address");
        let queued = TcpStream::connect(address).expect("the queue takes one");
        Silent { address, _listener: listener, _queued: queued }
    }
}

fn answers_once() -> Peer {
    Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 204 No Content\r\n\r\n");
    })
}

async fn a_silent_address_hands_over_after_its_head_start<R: Runtime>(runtime: R) {
    let peer = answers_once();
    let silent = Silent::new(SocketAddr::from(([127, 0, 0, 2], peer.address().port())));
    let client = Client::builder(runtime).resolve("two.test", [silent.address, peer.address()]).build();
    let started = client.runtime().now();
    let url = format!("http://two.test:{}/", peer.address().port());
    let answer = client.get(url).send().await.expect("an answer");
    assert_eq!(answer.remote_addr(), peer.address());
    let waited = client.runtime().now().duration_since(started);
    assert!(waited >= Duration::from_millis(250), "the first address had no head start: {waited:?}");
    assert!(
        waited < Duration::from_secs(10),
        "the second address was not tried beside the first: {waited:?}"
    );
}

async fn a_refusing_address_hands_over_at_once<R: Runtime>(runtime: R) {
    let peer = answers_once();
    // Nobody listens on these.
    let refusing = (2..=40).map(|last| SocketAddr::from(([127, 0, 0, last], 0)));
    let client = Client::builder(runtime).resolve("many.test", refusing.chain([peer.address()])).build();
    let started = Instant::now();
    let url = format!("http://many.test:{}/", peer.address().port());
    let answer = client.get(url).send().await.expect("an answer");
    assert_eq!(answer.remote_addr(), peer.address());
    // 39 head starts would be nearly ten seconds.
    assert!(started.elapsed() < Duration::from_secs(5), "each refusal was waited out");
}

async fn the_connect_deadline_is_told_apart_from_the_total_one<R: Runtime>(runtime: R) {
    let silent = Silent::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let url = format!("http://{}/", silent.address);
    let client = Client::new(runtime);
    let moment = Duration::from_millis(50);
    let started = client.runtime().now();
    let error = client.get(&url).connect_timeout(moment).send().await.expect_err("no connection");
    assert!(matches!(error.kind(), ErrorKind::ConnectTimeout), "{error:?}");
    assert!(error.is_connect() && error.is_timeout() && !error.request_may_have_been_processed());
    assert!(client.runtime().now().duration_since(started) >= moment, "too early");
    let error = client.get(&url).timeout(moment).send().await.expect_err("no connection");
    assert!(matches!(error.kind(), ErrorKind::Timeout), "{error:?}");
    assert!(error.is_timeout() && !error.is_connect() && !error.request_may_have_been_processed());
}

async fn names_are_looked_up_and_asked_for<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for _ in 0..2 {
            assert!(conn.head().contains("\r\nhost: localhost:"));
            conn.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let client = Client::new(runtime);
    for host in ["localhost", "LocalHost"] {
        // Only a name in capitals is another text; it is the same host.
        let url = format!("http://{host}:{}/", peer.address().port());
        assert_eq!(client.get(url).send().await.expect("an answer").status(), 204);
    }
    let error = client.get("http://no-such-name.invalid/").send().await.expect_err("no such name");
    assert!(
        matches!(error.kind(), ErrorKind::Resolve { host, .. } if host == "no-such-name.invalid"),
        "{error:?}"
    );
    assert!(error.is_connect() && !error.request_may_have_been_processed());
}

async fn a_local_address_is_used<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert_eq!(conn.client().ip().to_string(), "127.0.0.9");
        conn.head();
        conn.send("HTTP/1.1 204 No Content\r\n\r\n");
    });
    let local = "127.0.0.9".parse().expect("an address");
    let client = Client::builder(runtime).local_address(Some(local)).build();
    assert_eq!(client.get(peer.url("/")).send().await.expect("an answer").status(), 204);
}
