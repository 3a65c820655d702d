//! Sockets on the loop: what the transport crate's listeners and streams need of it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails is to panic")]

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use hyperman_loop::{Backend, Handle, Loop, Source, block_on};
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

/// Polls once, with a waker that does nothing.
#[cfg(target_os = "linux")]
fn poll_recv(socket: &mut Socket<Source>, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
    socket.poll_recv(&mut Context::from_waker(Waker::noop()), buffer)
}

/// Whether a call was made shows in whether it found bytes that the loop cannot have heard of yet.
#[cfg(target_os = "linux")]
#[test]
fn a_read_that_did_not_fill_its_buffer_is_followed_by_no_other() {
    on_epoll(async |handle| {
        let (mut client, mut server) = pair(&handle).await;
        send_all(&mut client, b"one").await.unwrap();
        assert_eq!(recv(&mut server).await.unwrap(), &b"one"[..]);
        // No turn of the loop lies between these.
        rustix::net::send(&client, b"two", rustix::net::SendFlags::empty()).unwrap();
        let mut buffer = BytesMut::with_capacity(64);
        assert!(poll_recv(&mut server, &mut buffer).is_pending(), "a second call was made");
        assert_eq!(recv(&mut server).await.unwrap(), &b"two"[..]);

        // Filled to the brim, a read proves nothing: the next one is made.
        send_all(&mut client, b"full").await.unwrap();
        let mut brim = BytesMut::zeroed(4);
        brim.clear();
        assert_eq!(brim.capacity(), 4);
        assert_eq!(poll_fn(|cx| server.poll_recv(cx, &mut brim)).await.unwrap(), 4);
        rustix::net::send(&client, b"more", rustix::net::SendFlags::empty()).unwrap();
        assert!(matches!(poll_recv(&mut server, &mut buffer), Poll::Ready(Ok(4))));

        // Nor does a short one once the kernel has reported the end.
        rustix::net::send(&client, b"last", rustix::net::SendFlags::empty()).unwrap();
        poll_fn(|cx| client.poll_close_write(cx)).await.unwrap();
        handle.sleep(Duration::from_millis(5)).await;
        buffer.clear();
        assert!(matches!(poll_recv(&mut server, &mut buffer), Poll::Ready(Ok(4))));
        assert!(matches!(poll_recv(&mut server, &mut buffer), Poll::Ready(Ok(0))));
        assert!(matches!(poll_recv(&mut server, &mut buffer), Poll::Ready(Ok(0))));
    });
}

/// Urgent data stops a read before the buffer is full though more is there (tcp(7)).
#[test]
fn urgent_data_does_not_hide_what_is_behind_it() {
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        let handle = event_loop.handle();
        event_loop.block_on(async {
            let (mut client, mut server) = pair(&handle).await;
            for round in 0..20 {
                send_all(&mut client, b"before").await.unwrap();
                rustix::net::send(&client, b"!", rustix::net::SendFlags::OOB).unwrap();
                send_all(&mut client, b"behind").await.unwrap();
                let mut got = Vec::new();
                while got.len() < 12 {
                    got.extend_from_slice(&recv(&mut server).await.unwrap());
                }
                assert_eq!(got, b"beforebehind", "{backend}, round {round}");
            }
        });
    }
}

/// Also when the loop waits for room and the room has just come: no turn of the loop lies between that and the drop.
#[test]
fn a_socket_that_waits_for_room_is_closed_when_it_is_dropped() {
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        let handle = event_loop.handle();
        event_loop.block_on(async {
            let (listener, address) = listen(&handle);
            let mut peer = std::net::TcpStream::connect(address).unwrap();
            let mut listener = listener;
            let mut server = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap().socket;
            peer.shutdown(std::net::Shutdown::Write).unwrap();
            let piece = [b'x'; 64 << 10];
            let waits = poll_fn(|cx| {
                while server.poll_send(cx, &[IoSlice::new(&piece)]).is_ready() {}
                Poll::Ready(())
            });
            waits.await;
            // The loop hears of the end of the other direction and goes on waiting for room.
            handle.sleep(Duration::from_millis(20)).await;
            peer.set_nonblocking(true).unwrap();
            while io::Read::read(&mut peer, &mut [0; 64 << 10]).is_ok() {}
            drop(server);
            peer.set_nonblocking(false).unwrap();
            peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            io::Read::read_to_end(&mut peer, &mut Vec::new())
                .unwrap_or_else(|error| panic!("{backend}: {error}"));
        });
    }
}

#[cfg(target_os = "linux")]
fn on_epoll(test: impl AsyncFnOnce(Handle)) {
    let event_loop = Loop::with_backend(Backend::Epoll).unwrap();
    event_loop.block_on(test(event_loop.handle()));
}
