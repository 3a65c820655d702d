//! Deadlines that pass.

use std::net::SocketAddr;
use std::time::Duration;

use hyperman_fetch::ErrorKind;
use hyperman_tests::carrier::Carrier;
use hyperman_transport::Runtime;

use super::one;
use crate::block_on;

hyperman_tests::cases! {
    EVERY:
        the_total_deadline_covers_head_and_body
        the_connect_deadline_is_kept;
}

fn the_total_deadline_covers_head_and_body(on: Carrier) {
    block_on(|runtime| async move {
        let client = on.client(runtime.clone()).build();
        for said in ["nothing", "head", "half"] {
            let server = one(on, move |peer| {
                peer.request();
                if said != "nothing" {
                    peer.begin(200, 9);
                }
                if said == "half" {
                    assert_eq!(peer.send(b"half"), 4);
                }
                peer.expect_given_up();
            });
            let begun = runtime.now();
            let sending = client.get(server.url("/")).timeout(Duration::from_millis(300)).send();
            let error = match sending.await {
                Ok(response) => response.text().await.expect_err("half a body"),
                Err(error) => error,
            };
            assert!(matches!(error.kind(), ErrorKind::Timeout), "{error:?}");
            assert!(runtime.now() - begun >= Duration::from_millis(300));
            server.end();
        }
    });
}

fn the_connect_deadline_is_kept(on: Carrier) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};
    block_on(|runtime| async move {
        // A queue of one that is full: further handshakes are not answered.
        let tcp = || {
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .expect("a socket")
        };
        let listening = tcp();
        rustix::net::bind(&listening, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        rustix::net::listen(&listening, 0).expect("listen");
        let address: SocketAddr =
            rustix::net::getsockname(&listening).expect("an address").try_into().expect("TCP");
        let waiting: Vec<_> = (0..4).map(|_| tcp()).collect();
        for socket in &waiting {
            let _ = rustix::net::connect(socket, &address);
        }
        let url = on.base(address.port());
        let client = on.client(runtime.clone()).connect_timeout(Duration::from_millis(80)).build();
        let begun = runtime.now();
        let error = client.get(&*url).send().await.expect_err("no connection");
        assert!(matches!(error.kind(), ErrorKind::ConnectTimeout), "{error:?}");
        assert!(error.is_connect() && error.is_timeout() && !error.request_may_have_been_processed());
        assert!(runtime.now() - begun >= Duration::from_millis(80));
        drop((listening, waiting));
        let error = client.get(&*url).send().await.expect_err("no connection");
        assert!(matches!(error.kind(), ErrorKind::Connect { .. }), "{error:?}");
    });
}
