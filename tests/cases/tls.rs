//! TLS on the loop's sockets, client and server in one task, whatever goes over it. What TLS itself does is tested in
//! `transport`.

use std::future::poll_fn;
use std::io::IoSlice;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hyperman_tests::carrier::Carrier;
use hyperman_transport::tls::{Authorities, ClientTls, ServerTls, TlsStream, development_certificate};
use hyperman_transport::{ByteStream, ListenOptions, Listener, Runtime, Socket, Timer, connect_tcp};
use smol::future::zip;

use crate::{Rt, block_on};

hyperman_tests::cases! {
    TLS:
        a_mebibyte_goes_both_ways
        sessions_are_resumed
        a_silent_client_is_dropped_by_a_timer
        a_client_that_hangs_up_ends_the_handshake;
}

/// Both handles, for `localhost`.
fn handles() -> (ClientTls, ServerTls) {
    let made = development_certificate(["localhost"]).expect("a certificate");
    let roots = Authorities::from_pem(&made.certificate_pem);
    let server =
        ServerTls::builder().identity(made.identity()).alpn(["h2", "http/1.1"]).build().expect("a side");
    (ClientTls::builder().only_authorities(roots).alpn(["h2"]).build().expect("a side"), server)
}

/// Two plain sockets that are connected to each other.
async fn sockets(runtime: &Rt) -> (Plain, Plain) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let mut listener = Listener::bind_tcp(runtime.clone(), any, &ListenOptions::default()).expect("a port");
    let address = listener.local_addr().expect("an address").expect("a TCP address");
    let connect = connect_tcp(runtime, address, None).expect("a socket");
    let (near, far) = zip(connect, poll_fn(|cx| listener.poll_accept(cx))).await;
    (near.expect("a connection"), far.expect("a connection").socket)
}

type Plain = Socket<<Rt as Runtime>::Source>;

type Stream = TlsStream<Plain>;

async fn connected(runtime: &Rt, client: &ClientTls, server: &ServerTls) -> (Stream, Stream) {
    let (near, far) = sockets(runtime).await;
    let connecting = client.stream(near, "localhost").expect("a stream").handshake();
    let (near, far) = zip(connecting, server.accept(far)).await;
    (near.expect("a session"), far.expect("a session"))
}

fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

/// Sends `out` and ends, while it receives up to the end.
async fn exchange<S: ByteStream>(mut stream: S, out: Vec<u8>) -> Vec<u8> {
    let (mut sent, mut closed, mut ended) = (0, false, false);
    let mut received = Vec::new();
    poll_fn(|cx| {
        loop {
            let mut moved = false;
            if sent < out.len() {
                if let Poll::Ready(taken) = stream.poll_send(cx, &[IoSlice::new(&out[sent..])]) {
                    sent += taken.expect("room");
                    moved = true;
                }
            } else if !closed && let Poll::Ready(done) = stream.poll_close_write(cx) {
                done.expect("an end");
                closed = true;
            }
            if !ended {
                let mut buf = BytesMut::with_capacity(16 * 1024);
                if let Poll::Ready(got) = stream.poll_recv(cx, &mut buf) {
                    ended = got.expect("bytes") == 0;
                    received.extend_from_slice(&buf);
                    moved = true;
                }
            }
            if closed && ended {
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
    .await;
    received
}

fn a_mebibyte_goes_both_ways(_: Carrier) {
    block_on(|runtime: Rt| async move {
        let (client, server) = handles();
        let (near, far) = connected(&runtime, &client, &server).await;
        for stream in [&near, &far] {
            assert_eq!(stream.info().expect("a session").alpn(), Some(&b"h2"[..]));
        }
        let (up, down) = (pattern(1 << 20, 1), pattern(1 << 20, 2));
        let (got_down, got_up) = zip(exchange(near, up.clone()), exchange(far, down.clone())).await;
        assert!(got_up == up && got_down == down);
    });
}

fn sessions_are_resumed(_: Carrier) {
    block_on(|runtime: Rt| async move {
        let (client, server) = handles();
        for expected in [false, true, true] {
            let (near, far) = connected(&runtime, &client, &server).await;
            assert_eq!(near.info().expect("a session").is_resumed(), expected);
            let (got_down, got_up) = zip(exchange(near, vec![1; 100]), exchange(far, vec![2; 100])).await;
            assert_eq!((got_up, got_down), (vec![1; 100], vec![2; 100]));
        }
    });
}

/// What a server's head timer does to a client that says nothing, or half of a hello.
fn a_silent_client_is_dropped_by_a_timer(_: Carrier) {
    block_on(|runtime: Rt| async move {
        let (_, server) = handles();
        for said in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
            let (mut near, far) = sockets(&runtime).await;
            if !said.is_empty() {
                poll_fn(|cx| near.poll_send(cx, &[IoSlice::new(said)])).await.expect("room");
            }
            let mut accepting = Some(Box::pin(server.accept(far)));
            let mut timer = runtime.timer();
            let deadline = Instant::now() + Duration::from_millis(30);
            poll_fn(|cx| {
                let handshake = accepting.as_mut().expect("a handshake");
                assert!(handshake.as_mut().poll(cx).is_pending());
                timer.poll_deadline(deadline, cx)
            })
            .await;
            accepting.take();
            // The client sees the end, or a reset where its bytes were not all read.
            let mut buf = BytesMut::with_capacity(64);
            let end = poll_fn(|cx| near.poll_recv(cx, &mut buf)).await;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    });
}

fn a_client_that_hangs_up_ends_the_handshake(_: Carrier) {
    block_on(|runtime: Rt| async move {
        let (_, server) = handles();
        let (near, far) = sockets(&runtime).await;
        drop(near);
        let failure = server.accept(far).await.expect_err("a failure");
        assert!(matches!(failure.error, hyperman_transport::tls::Error::HandshakeEof), "{}", failure.error);
    });
}
