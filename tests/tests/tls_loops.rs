//! TLS on real sockets on every loop, client and server in one task. What TLS itself does is tested in `transport`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use hyperman_transport::tls::{Authorities, ClientTls, ServerTls, TlsStream, development_certificate};
use hyperman_transport::{ByteStream, ListenOptions, Listener, Runtime, Socket, Timer, connect_tcp};

/// Both handles, for `localhost`.
fn handles() -> (ClientTls, ServerTls) {
    let made = development_certificate(["localhost"]).unwrap();
    let roots = Authorities::from_pem(&made.certificate_pem);
    let server = ServerTls::builder().identity(made.identity()).alpn(["h2", "http/1.1"]).build().unwrap();
    (ClientTls::builder().only_authorities(roots).alpn(["h2"]).build().unwrap(), server)
}

/// Waits for two futures at once.
async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut a, mut b) = (None, None);
    poll_fn(move |cx| {
        if a.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(cx)
        {
            a = Some(value);
        }
        if b.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(cx)
        {
            b = Some(value);
        }
        match (a.take(), b.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (a, b) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// Two plain sockets that are connected to each other.
async fn sockets<R: Runtime>(runtime: &R) -> (Socket<R::Source>, Socket<R::Source>) {
    let any = "127.0.0.1:0".parse().unwrap();
    let mut listener = Listener::bind_tcp(runtime.clone(), any, &ListenOptions::default()).unwrap();
    let address = listener.local_addr().unwrap().unwrap();
    let connect = connect_tcp(runtime, address, None).unwrap();
    let (near, far) = both(connect, poll_fn(|cx| listener.poll_accept(cx))).await;
    (near.unwrap(), far.unwrap().socket)
}

type Stream<R> = TlsStream<Socket<<R as Runtime>::Source>>;

async fn connected<R: Runtime>(
    runtime: &R,
    client: &ClientTls,
    server: &ServerTls,
) -> (Stream<R>, Stream<R>) {
    let (near, far) = sockets(runtime).await;
    let connecting = client.stream(near, "localhost").unwrap().handshake();
    let (near, far) = both(connecting, server.accept(far)).await;
    (near.ok().unwrap(), far.ok().unwrap())
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
                    sent += taken.unwrap();
                    moved = true;
                }
            } else if !closed && let Poll::Ready(done) = stream.poll_close_write(cx) {
                done.unwrap();
                closed = true;
            }
            if !ended {
                let mut buf = BytesMut::with_capacity(16 * 1024);
                if let Poll::Ready(got) = stream.poll_recv(cx, &mut buf) {
                    ended = got.unwrap() == 0;
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

async fn a_mebibyte_goes_both_ways<R: Runtime>(runtime: R) {
    let (client, server) = handles();
    let (near, far) = connected(&runtime, &client, &server).await;
    for stream in [&near, &far] {
        assert_eq!(stream.info().unwrap().alpn(), Some(&b"h2"[..]));
    }
    let (up, down) = (pattern(1 << 20, 1), pattern(1 << 20, 2));
    let (got_down, got_up) = both(exchange(near, up.clone()), exchange(far, down.clone())).await;
    assert!(got_up == up && got_down == down);
}

async fn sessions_are_resumed<R: Runtime>(runtime: R) {
    let (client, server) = handles();
    for expected in [false, true, true] {
        let (near, far) = connected(&runtime, &client, &server).await;
        assert_eq!(near.info().unwrap().is_resumed(), expected);
        let (got_down, got_up) = both(exchange(near, vec![1; 100]), exchange(far, vec![2; 100])).await;
        assert_eq!((got_up, got_down), (vec![1; 100], vec![2; 100]));
    }
}

/// What a server's head timer does to a client that says nothing, or half of a hello.
async fn a_silent_client_is_dropped_by_a_timer<R: Runtime>(runtime: R) {
    let (_, server) = handles();
    for said in [&b""[..], &[22, 3, 1, 2, 0, 1, 0]] {
        let (mut near, far) = sockets(&runtime).await;
        if !said.is_empty() {
            poll_fn(|cx| near.poll_send(cx, &[IoSlice::new(said)])).await.unwrap();
        }
        let mut accepting = Some(Box::pin(server.accept(far)));
        let mut timer = runtime.timer();
        let deadline = Instant::now() + Duration::from_millis(30);
        poll_fn(|cx| {
            let handshake = accepting.as_mut().unwrap();
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
}

async fn a_client_that_hangs_up_ends_the_handshake<R: Runtime>(runtime: R) {
    let (_, server) = handles();
    let (near, far) = sockets(&runtime).await;
    drop(near);
    let failure = server.accept(far).await.err().unwrap();
    assert!(matches!(failure.error, hyperman_transport::tls::Error::HandshakeEof), "{}", failure.error);
}

/// Makes one test per loop out of each case.
macro_rules! on_every_loop {
    ($($case:ident)*) => {
        mod native {
            $(#[test]
            fn $case() {
                hyperman_loop::block_on(super::$case).unwrap();
            })*
        }

        mod tokio_current_thread {
            $(#[test]
            fn $case() {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    super::$case(hyperman_tokio::TokioRuntime::current().unwrap()).await;
                });
            })*
        }

        mod tokio_multi_thread {
            $(#[test]
            fn $case() {
                let mut builder = tokio::runtime::Builder::new_multi_thread();
                let runtime = builder.worker_threads(2).enable_all().build().unwrap();
                let handle = hyperman_tokio::TokioRuntime::new(runtime.handle().clone());
                // As a task: it must be `Send`, and may move between the threads.
                let task = runtime.spawn(super::$case(handle));
                runtime.block_on(task).unwrap();
            })*
        }

        mod smol_local {
            $(#[test]
            fn $case() {
                let executor = std::rc::Rc::new(smol::LocalExecutor::new());
                smol::block_on(executor.run(super::$case(hyperman_smol::SmolLocal::new(&executor))));
            })*
        }
    };
}

on_every_loop! {
    a_mebibyte_goes_both_ways
    sessions_are_resumed
    a_silent_client_is_dropped_by_a_timer
    a_client_that_hangs_up_ends_the_handshake
}
