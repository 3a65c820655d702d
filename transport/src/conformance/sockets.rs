//! Listeners, connects and streams on the loop: how sockets come to be, and how they end.

use std::fs;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::BytesMut;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Harness;
use super::apparatus::{Counter, KINDS, Kind, Turns, assert_quiet, pair};
use crate::connect::{Connect, connect_tcp, connect_unix};
use crate::listen::{Accepted, ListenOptions, Listener};
use crate::readiness::{ArmReadiness, Runtime};
use crate::stream::{ByteStream, PeerAddr, Socket};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A listener and a connect on one loop; each knows the other's address.
pub fn ipv4<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| tcp(&runtime, LOOPBACK).await);
}

/// The same.
pub fn ipv6<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| tcp(&runtime, (Ipv6Addr::LOCALHOST, 0).into()).await);
}

async fn tcp<R: Runtime>(runtime: &R, address: SocketAddr) {
    let mut listener = Listener::bind_tcp(runtime.clone(), address, &ListenOptions::default()).unwrap();
    let address = listener.local_addr().unwrap().unwrap();
    assert_ne!(address.port(), 0);
    for _ in 0..20 {
        let connect = connect_tcp(runtime, address, Some(SocketAddr::new(address.ip(), 0))).unwrap();
        let (client, accepted) = meet(&mut listener, connect).await;
        let own: SocketAddr = rustix::net::getsockname(&client).unwrap().try_into().unwrap();
        assert_eq!((accepted.peer.inet(), own.ip()), (Some(own), address.ip()));
        assert_eq!(accepted.peer.to_string(), own.to_string());
        assert!(sockopt::tcp_nodelay(&client).unwrap() && sockopt::tcp_nodelay(&accepted.socket).unwrap());
    }
}

/// A Unix listener and a connect on one loop; the client has no address.
pub fn unix<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let folder = Folder::new();
        let path = folder.file("socket");
        let mut listener = Listener::bind_unix(runtime.clone(), &path, &ListenOptions::default()).unwrap();
        assert_eq!(listener.local_addr().unwrap(), None);
        for _ in 0..20 {
            let (_client, accepted) = meet(&mut listener, connect_unix(&runtime, &path).unwrap()).await;
            assert_eq!(accepted.peer, PeerAddr::Unix(None));
            assert_eq!(accepted.peer.to_string(), "unix:");
        }
    });
}

/// Lets a connect and its listener wait, then both go on, and a byte pass.
async fn meet<R: Runtime>(
    listener: &mut Listener<R>,
    connect: Connect<R::Source>,
) -> (Socket<R::Source>, Accepted<R::Source>) {
    let (accepter, connecter) = (Counter::new(), Counter::new());
    let mut connect = pin!(connect);
    let mut client = connecter.ready(|cx| connect.as_mut().poll(cx)).await.unwrap();
    let mut accepted = accepter.ready(|cx| listener.poll_accept(cx)).await.unwrap();
    assert!(accepter.poll(|cx| listener.poll_accept(cx)).is_pending());
    let mut buf = BytesMut::with_capacity(64);
    assert!(accepter.poll(|cx| accepted.socket.poll_recv(cx, &mut buf)).is_pending());
    assert!(matches!(connecter.send_byte(client.source_mut()), Poll::Ready(Ok(1))));
    let received = accepter.ready(|cx| accepted.socket.poll_recv(cx, &mut buf)).await;
    assert_eq!((received.unwrap(), &buf[..]), (1, &b"x"[..]));
    (client, accepted)
}

/// Both on one port by two sockets, or by one that tells IPv4 peers as mapped addresses.
pub fn dual_stack<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let apart = ListenOptions::default();
        let six = Listener::bind_tcp(runtime.clone(), everywhere, &apart).unwrap();
        let port = six.local_addr().unwrap().unwrap().port();
        // Succeeds only if the first socket left IPv4 alone.
        Listener::bind_tcp(runtime.clone(), (Ipv4Addr::UNSPECIFIED, port).into(), &apart).unwrap();

        let together = ListenOptions { dual_stack: true, ..apart };
        let mut both = Listener::bind_tcp(runtime.clone(), everywhere, &together).unwrap();
        let port = both.local_addr().unwrap().unwrap().port();
        let connect = connect_tcp(&runtime, (Ipv4Addr::LOCALHOST, port).into(), None).unwrap();
        let (_client, accepted) = meet(&mut both, connect).await;
        let peer = accepted.peer.inet().unwrap();
        assert_eq!(peer.ip().to_canonical(), Ipv4Addr::LOCALHOST);
    });
}

/// A second server must hear that the first is there; what a dead one left behind must not stop it.
pub fn in_use<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let options = ListenOptions::default();
        let first = Listener::bind_tcp(runtime.clone(), LOOPBACK, &options).unwrap();
        let address = first.local_addr().unwrap().unwrap();
        let second = Listener::bind_tcp(runtime.clone(), address, &options).err().unwrap();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        let shared = ListenOptions { reuse_port: true, ..options.clone() };
        let one = Listener::bind_tcp(runtime.clone(), LOOPBACK, &shared).unwrap();
        let shared_address = one.local_addr().unwrap().unwrap();
        Listener::bind_tcp(runtime.clone(), shared_address, &shared).unwrap();

        let folder = Folder::new();
        let path = folder.file("socket");
        let first = Listener::bind_unix(runtime.clone(), &path, &options).unwrap();
        let second = Listener::bind_unix(runtime.clone(), &path, &options).err().unwrap();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        drop(first);
        // The file outlives its listener.
        assert!(path.exists());
        Listener::bind_unix(runtime.clone(), &path, &options).unwrap();

        let path = folder.file("notes");
        fs::write(&path, "notes").unwrap();
        let refused = Listener::bind_unix(runtime.clone(), &path, &options).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"notes");
    });
}

/// Nobody listens: the error comes out of the call or of the future, and the loop is quiet.
pub fn refused<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let outcome = connected(connect_tcp(&runtime, address, None)).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionRefused);

        let folder = Folder::new();
        let path = folder.file("socket");
        let outcome = connected(connect_unix(&runtime, &path)).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NotFound);
        drop(Listener::bind_unix(runtime.clone(), &path, &ListenOptions::default()).unwrap());
        let outcome = connected(connect_unix(&runtime, &path)).await;
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_quiet(&runtime, "refused").await;
    });
}

async fn connected<S: ArmReadiness>(started: io::Result<Connect<S>>) -> io::Result<()> {
    let mut connect = pin!(started?);
    poll_fn(|cx| connect.as_mut().poll(cx)).await.map(drop)
}

/// A connect that the listener's full queue holds up, given up by its task.
pub fn dropped_connect<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let full = ListenOptions { backlog: 0, ..ListenOptions::default() };
        let listener = Listener::bind_tcp(runtime.clone(), LOOPBACK, &full).unwrap();
        let address = listener.local_addr().unwrap().unwrap();
        let counter = Counter::new();
        let mut connects = Vec::new();
        // The queue takes one more than it was asked for, and the next is held up for a second at least.
        loop {
            let mut connect = Box::pin(connect_tcp(&runtime, address, None).unwrap());
            turns.take(5).await;
            let held_up = counter.poll(|cx| connect.as_mut().poll(cx)).is_pending();
            connects.push(connect);
            if held_up {
                break;
            }
            assert!(connects.len() < 10, "no connect was held up");
        }
        turns.take(5).await;
        counter.take();
        drop(connects);
        turns.take(5).await;
        assert_eq!(counter.take(), 0, "a dropped connect woke its task");
        assert_eq!(Arc::strong_count(&counter), 1);
        drop(listener);
    });
}

/// A socket that another process listens on, and left blocking.
pub fn taken_over<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let theirs = std::net::TcpListener::bind(LOOPBACK).unwrap();
        let address = theirs.local_addr().unwrap();
        let mut listener = Listener::from_socket(runtime.clone(), OwnedFd::from(theirs)).unwrap();
        assert_eq!(listener.local_addr().unwrap(), Some(address));
        assert!(Counter::new().poll(|cx| listener.poll_accept(cx)).is_pending());
        meet(&mut listener, connect_tcp(&runtime, address, None).unwrap()).await;

        let no_socket = OwnedFd::from(fs::File::open("/dev/null").unwrap());
        assert!(Listener::from_socket(runtime.clone(), no_socket).is_err());
    });
}

/// The peer reads our end of file and still sends.
pub fn close_write<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (source, mut peer) = pair(&runtime, kind);
            let mut socket = Socket::new(source);
            let counter = Counter::new();
            let sent = counter.poll(|cx| socket.poll_send(cx, &[IoSlice::new(b"last")]));
            assert!(matches!(sent, Poll::Ready(Ok(4))));
            assert!(matches!(counter.poll(|cx| socket.poll_flush(cx)), Poll::Ready(Ok(()))));
            assert!(matches!(counter.poll(|cx| socket.poll_close_write(cx)), Poll::Ready(Ok(()))));
            assert_eq!(peer.read_to_end(), b"last");
            peer.write(b"answer");
            assert_eq!(counter.recv_exact(socket.source_mut(), 6).await, b"answer");
            // Sending is over, and says so by an error, not by a signal.
            let sent = counter.poll(|cx| socket.poll_send(cx, &[IoSlice::new(b"more")]));
            let Poll::Ready(Err(error)) = sent else { panic!("{sent:?}") };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
    });
}

/// The system would refuse them all together.
pub fn many_slices<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let (mut source, mut peer) = pair(&runtime, Kind::Tcp);
        let counter = Counter::new();
        let bytes: Vec<u8> = (0..3000).map(|at| (at % 251) as u8).collect();
        let slices: Vec<_> = bytes.iter().map(|byte| IoSlice::new(std::slice::from_ref(byte))).collect();
        let mut sent = 0;
        while sent < bytes.len() {
            sent += counter.ready(|cx| source.poll_send(cx, &slices[sent..])).await.unwrap();
        }
        assert_eq!(peer.read(3000), bytes);
        // None at all is no error.
        assert!(matches!(counter.poll(|cx| source.poll_send(cx, &[])), Poll::Ready(Ok(0))));
    });
}

/// More than the socket holds, from the middle of a file, to its early end, and to a peer that is gone.
#[cfg(target_os = "linux")]
pub fn send_file<H: Harness>(harness: &H) {
    use std::os::fd::AsFd;

    use crate::stream::FileRegion;

    const LENGTH: usize = 6 << 20;
    harness.block_on(async |runtime| {
        let folder = Folder::new();
        let path = folder.file("content");
        let content: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &content).unwrap();
        let file = fs::File::open(&path).unwrap();
        for kind in KINDS {
            let (source, mut peer) = pair(&runtime, kind);
            let mut socket = Socket::new(source);
            assert!(socket.can_send_file());
            let counter = Counter::new();
            let wanted = LENGTH - 1000;
            let mut reader = peer.again();
            let reader = std::thread::spawn(move || reader.read(wanted));
            let mut region = FileRegion { file: file.as_fd(), offset: 700, length: wanted as u64 };
            while region.length > 0 {
                let before = region.length;
                let sent = counter.ready(|cx| socket.poll_send_file(cx, &mut region)).await.unwrap();
                assert_eq!(region.length, before - sent as u64);
                assert_ne!(sent, 0);
            }
            assert_eq!(region.offset, (LENGTH - 300) as u64);
            assert!(reader.join().unwrap() == content[700..LENGTH - 300], "other bytes arrived");

            let mut region = FileRegion { file: file.as_fd(), offset: (LENGTH - 300) as u64, length: 1000 };
            let sent = counter.ready(|cx| socket.poll_send_file(cx, &mut region)).await.unwrap();
            assert_eq!((sent, region.length), (300, 700));
            peer.read(300);
            let sent = counter.ready(|cx| socket.poll_send_file(cx, &mut region)).await.unwrap();
            assert_eq!(sent, 0, "the file has ended early");

            drop(peer);
            let mut region = FileRegion { file: file.as_fd(), offset: 0, length: LENGTH as u64 };
            let error = loop {
                // The first may still go out: the peer's refusal comes after it.
                if let Err(error) = counter.ready(|cx| socket.poll_send_file(cx, &mut region)).await {
                    break error;
                }
            };
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        }
    });
}

/// Accepts with no descriptor free: an error at each attempt, a loop that waits, and the connection once one is free.
///
/// It is not in the table: it needs a process of its own, as the limit holds for all threads.
pub fn out_of_descriptors<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let mut listener = Listener::bind_tcp(runtime.clone(), LOOPBACK, &ListenOptions::default()).unwrap();
        let address = listener.local_addr().unwrap().unwrap();
        let counter = Counter::new();
        assert!(counter.poll(|cx| listener.poll_accept(cx)).is_pending());
        assert_quiet(&runtime, "before").await;

        let limit = getrlimit(Resource::Nofile);
        let client = std::net::TcpStream::connect(address).unwrap();
        let next = rustix::io::fcntl_dupfd_cloexec(&client, 0).unwrap();
        let taken = std::os::fd::AsRawFd::as_raw_fd(&next).unsigned_abs().into();
        setrlimit(Resource::Nofile, Rlimit { current: Some(taken), maximum: limit.maximum }).unwrap();
        drop(next);
        counter.woken().await;
        for _ in 0..3 {
            let Poll::Ready(Err(error)) = counter.poll(|cx| listener.poll_accept(cx)) else {
                panic!("accepted without a descriptor")
            };
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
        }
        turns.take(2).await;
        counter.take();
        assert_quiet(&runtime, "out of descriptors").await;
        assert!(counter.take() <= 1, "woken again and again for a connection that cannot be accepted");

        setrlimit(Resource::Nofile, limit).unwrap();
        let accepted = counter.ready(|cx| listener.poll_accept(cx)).await.unwrap();
        assert_eq!(accepted.peer.inet(), Some(client.local_addr().unwrap()));
    });
}

/// A folder of the case's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("hyperman-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::join(&self.0, name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
