//! Sockets on the loop: what the transport crate's listeners and streams need of it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails is to panic")]

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;

use bytes::BytesMut;
use hyperman_loop::{Handle, Source, block_on};
use hyperman_transport::{ByteStream, ListenOptions, Listener, Socket, connect_tcp};

fn listen(handle: &Handle) -> (Listener<Handle>, SocketAddr) {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind_tcp(handle.clone(), any_port, &ListenOptions::default()).unwrap();
    let address = listener.local_addr().unwrap().unwrap();
    (listener, address)
}

async fn pair(handle: &Handle) -> (Socket<Source>, Socket<Source>) {
    let (mut listener, address) = listen(handle);
    let client = connect_tcp(handle, address, None).unwrap().await.unwrap();
    let server = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
    (client, server.socket)
}

async fn recv(socket: &mut Socket<Source>) -> io::Result<BytesMut> {
    let mut buffer = BytesMut::with_capacity(1024);
    poll_fn(|cx| socket.poll_recv(cx, &mut buffer)).await?;
    Ok(buffer)
}

async fn send_all(socket: &mut Socket<Source>, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let sent = poll_fn(|cx| socket.poll_send(cx, &[IoSlice::new(data)])).await?;
        data = &data[sent..];
    }
    Ok(())
}

#[test]
fn bytes_go_both_ways() {
    block_on(|handle| async move {
        let (mut client, mut server) = pair(&handle).await;
        send_all(&mut client, b"ping").await.unwrap();
        assert_eq!(recv(&mut server).await.unwrap(), &b"ping"[..]);
        send_all(&mut server, b"pong").await.unwrap();
        assert_eq!(recv(&mut client).await.unwrap(), &b"pong"[..]);
        drop(client);
        assert_eq!(recv(&mut server).await.unwrap(), &b""[..]);
    })
    .unwrap();
}

#[test]
fn an_echo_of_more_than_the_kernel_buffers() {
    const SIZE: usize = 8 << 20;
    block_on(|handle| async move {
        let (mut client, mut server) = pair(&handle).await;
        let echo = handle.spawn_with_handle(async move {
            loop {
                let data = recv(&mut server).await.unwrap();
                if data.is_empty() {
                    return poll_fn(|cx| server.poll_close_write(cx)).await.unwrap();
                }
                send_all(&mut server, &data).await.unwrap();
            }
        });
        let pattern: Vec<u8> = (0..SIZE).map(|n| (n % 251) as u8).collect();
        let mut got = Vec::with_capacity(SIZE);
        let mut sent = 0;
        poll_fn(|cx| {
            // Both directions at once in one task: neither may wait for the other.
            while sent < SIZE {
                let Poll::Ready(n) = client.poll_send(cx, &[IoSlice::new(&pattern[sent..])]) else { break };
                sent += n.unwrap();
            }
            loop {
                let mut buffer = BytesMut::with_capacity(64 << 10);
                let Poll::Ready(n) = client.poll_recv(cx, &mut buffer) else { return Poll::Pending };
                assert_ne!(n.unwrap(), 0, "the echo ended early");
                got.extend_from_slice(&buffer);
                if got.len() == SIZE {
                    return Poll::Ready(());
                }
            }
        })
        .await;
        assert!(got == pattern);
        poll_fn(|cx| client.poll_close_write(cx)).await.unwrap();
        echo.await.unwrap();
        assert_eq!(recv(&mut client).await.unwrap(), &b""[..]);
    })
    .unwrap();
}

#[test]
fn the_end_of_the_file_is_seen_when_it_comes_with_the_last_bytes() {
    block_on(|handle| async move {
        let (mut client, mut server) = pair(&handle).await;
        send_all(&mut client, b"last").await.unwrap();
        poll_fn(|cx| client.poll_close_write(cx)).await.unwrap();
        assert_eq!(recv(&mut server).await.unwrap(), &b"last"[..]);
        assert_eq!(recv(&mut server).await.unwrap(), &b""[..]);
        // Half-closed: the other direction still works.
        send_all(&mut server, b"bye").await.unwrap();
        assert_eq!(recv(&mut client).await.unwrap(), &b"bye"[..]);
    })
    .unwrap();
}

#[test]
fn a_refused_connect_is_an_error() {
    block_on(|handle| async move {
        let (listener, address) = listen(&handle);
        drop(listener);
        let refused = connect_tcp(&handle, address, None).unwrap().await;
        assert_eq!(refused.err().map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
    })
    .unwrap();
}
