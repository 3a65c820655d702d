//! Listening sockets, TCP and Unix.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, sockopt};

use crate::readiness::{ArmReadiness, Interest, Runtime};
use crate::stream::{PeerAddr, Socket};
use crate::system::{self, stream_socket};

/// How a listening socket is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenOptions {
    /// The length of the kernel's queue of connections that wait to be accepted. Default 4,096 (the kernel caps it at
    /// `net.core.somaxconn`).
    pub backlog: i32,
    /// Whether several sockets may share the port (`SO_REUSEPORT`). Default no: a second server on a port in use is
    /// an error that its owner should see.
    pub reuse_port: bool,
    /// Whether an IPv6 socket takes IPv4 connections too. Default no: `[::]` and `0.0.0.0` are listened on separately.
    pub dual_stack: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        ListenOptions { backlog: 4096, reuse_port: false, dual_stack: false }
    }
}

/// A listening socket on some loop.
#[derive(Debug)]
pub struct Listener<R: Runtime> {
    runtime: R,
    source: R::Source,
    tcp: bool,
}

/// A connection that was just accepted.
#[derive(Debug)]
pub struct Accepted<S> {
    /// The connected socket, already on the loop.
    pub socket: Socket<S>,
    /// Who connected.
    pub peer: PeerAddr,
}

impl<R: Runtime> Listener<R> {
    /// Listens on a TCP address; port 0 lets the kernel pick one, see [`local_addr`](Self::local_addr).
    ///
    /// # Errors
    /// The system calls', e.g. `AddrInUse` and `PermissionDenied`.
    pub fn bind_tcp(runtime: R, address: SocketAddr, options: &ListenOptions) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = stream_socket(family)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if options.reuse_port {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        if address.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, !options.dual_stack)?;
        }
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, options.backlog)?;
        Self::from_socket(runtime, socket)
    }

    /// Listens on a Unix socket. A socket file that nobody listens on any more is replaced; any other file there is an
    /// `AddrInUse` error.
    ///
    /// # Errors
    /// The system calls'.
    pub fn bind_unix(runtime: R, path: &Path, options: &ListenOptions) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let socket = stream_socket(AddressFamily::UNIX)?;
        match rustix::net::bind(&socket, &address) {
            Err(Errno::ADDRINUSE) if is_stale(path, &address)? => {
                rustix::fs::unlink(path)?;
                rustix::net::bind(&socket, &address)?;
            }
            bound => bound?,
        }
        rustix::net::listen(&socket, options.backlog)?;
        Self::from_socket(runtime, socket)
    }

    /// Takes over a socket that listens already, e.g. one handed down by a parent process.
    ///
    /// # Errors
    /// When the descriptor is not a socket, or the loop cannot take it.
    pub fn from_socket(runtime: R, socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let family = rustix::net::getsockname(&socket)?.address_family();
        let tcp = family == AddressFamily::INET || family == AddressFamily::INET6;
        let source = runtime.source(socket)?;
        Ok(Listener { runtime, source, tcp })
    }

    /// The address that is listened on; `None` for a Unix socket.
    ///
    /// # Errors
    /// The system call's.
    pub fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        if !self.tcp {
            return Ok(None);
        }
        let address = rustix::net::getsockname(&self.source)?;
        Ok(Some(address.try_into()?))
    }

    /// The loop that this listener is on.
    pub fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Accepts one connection and puts it on the loop; small segments leave at once (`TCP_NODELAY`).
    ///
    /// A connection that was reset before it was accepted is passed over.
    ///
    /// # Errors
    /// `EMFILE` and `ENFILE` mean that no descriptor is free, `ENOBUFS`, `ENOMEM` and `ENOSPC` that memory or the loop's
    /// share of it is short: the queue stays as it is, so wait for a moment before the next call. Anything else ends the
    /// listener.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted<R::Source>>> {
        let accepted = self.source.arm_readiness(Interest::Read, cx, |socket| {
            loop {
                match system::accept(socket) {
                    Err(error) if GONE_BEFORE_ACCEPT.contains(&error) => {}
                    other => return Ok(other?),
                }
            }
        });
        let (socket, address) = match accepted {
            Poll::Ready(accepted) => accepted?,
            Poll::Pending => return Poll::Pending,
        };
        if self.tcp {
            // A peer that is gone already makes this fail; its connection then ends at the first read.
            let _ = sockopt::set_tcp_nodelay(&socket, true);
        }
        let peer = peer_addr(address);
        let source = self.runtime.source(socket)?;
        Poll::Ready(Ok(Accepted { socket: Socket::new(source), peer }))
    }
}

impl<R: Runtime> AsFd for Listener<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// What `accept` reports of a connection that ended in the queue (accept(2): treat them like `EAGAIN`, by retrying).
const GONE_BEFORE_ACCEPT: [Errno; 7] = [
    Errno::CONNABORTED,
    Errno::PROTO,
    Errno::NETDOWN,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::NETUNREACH,
    Errno::NOPROTOOPT,
];

fn peer_addr(address: Option<SocketAddrAny>) -> PeerAddr {
    let Some(address) = address else { return PeerAddr::Unix(None) };
    if let Ok(inet) = SocketAddr::try_from(address.clone()) {
        return PeerAddr::Inet(inet);
    }
    let path = SocketAddrUnix::try_from(address)
        .ok()
        .and_then(|unix| unix.path_bytes().map(|bytes| PathBuf::from(std::ffi::OsStr::from_bytes(bytes))));
    PeerAddr::Unix(path)
}

/// Whether `path` is a socket on which nobody listens any more.
fn is_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<bool> {
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.file_type().is_socket() {
        return Ok(false);
    }
    let probe = stream_socket(AddressFamily::UNIX)?;
    Ok(matches!(rustix::net::connect(&probe, address), Err(Errno::CONNREFUSED)))
}
