//! Non-blocking connect, TCP and Unix.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, sockopt};

use crate::readiness::{ArmReadiness, Interest, Runtime};
use crate::stream::Socket;
use crate::system::stream_socket;

/// Starts to connect to a TCP address, from `local` if one is given. Small segments leave at once (`TCP_NODELAY`).
///
/// # Errors
/// What the system calls refuse at once; what the network refuses comes from the future.
pub fn connect_tcp<R: Runtime>(
    runtime: &R,
    address: SocketAddr,
    local: Option<SocketAddr>,
) -> io::Result<Connect<R::Source>> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = stream_socket(family)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if let Some(local) = local {
        rustix::net::bind(&socket, &local)?;
    }
    let started = rustix::net::connect(&socket, &address);
    Connect::start(runtime, socket, started)
}

/// Starts to connect to a Unix socket.
///
/// # Errors
/// As [`connect_tcp`]; a full queue is `WouldBlock`.
pub fn connect_unix<R: Runtime>(runtime: &R, path: &Path) -> io::Result<Connect<R::Source>> {
    let socket = stream_socket(AddressFamily::UNIX)?;
    let started = rustix::net::connect(&socket, &SocketAddrUnix::new(path)?);
    Connect::start(runtime, socket, started)
}

/// A connect under way. Ready with the connected socket; dropping it closes the socket.
#[derive(Debug)]
pub struct Connect<S> {
    source: Option<S>,
    under_way: bool,
}

impl<S: ArmReadiness> Connect<S> {
    fn start<R: Runtime<Source = S>>(
        runtime: &R,
        socket: OwnedFd,
        started: rustix::io::Result<()>,
    ) -> io::Result<Self> {
        let under_way = match started {
            Ok(()) => false,
            // An interrupted connect goes on by itself (connect(2)).
            Err(Errno::INPROGRESS | Errno::INTR) => true,
            Err(error) => return Err(error.into()),
        };
        Ok(Connect { source: Some(runtime.source(socket)?), under_way })
    }
}

impl<S: ArmReadiness> Future for Connect<S> {
    type Output = io::Result<Socket<S>>;

    /// # Panics
    /// When it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(mut source) = this.source.take() else { panic!("Connect polled after it was ready") };
        if !this.under_way {
            return Poll::Ready(Ok(Socket::new(source)));
        }
        let outcome = source.arm_readiness(Interest::Write, cx, |socket| {
            if let Err(error) = sockopt::socket_error(socket)? {
                return Err(error.into());
            }
            // No error yet is not yet a connection: only a peer's name is.
            match rustix::net::getpeername(socket) {
                Ok(_) => Ok(()),
                Err(Errno::NOTCONN) => Err(io::ErrorKind::WouldBlock.into()),
                Err(error) => Err(error.into()),
            }
        });
        match outcome {
            Poll::Pending => {
                this.source = Some(source);
                Poll::Pending
            }
            Poll::Ready(outcome) => Poll::Ready(outcome.map(|()| Socket::new(source))),
        }
    }
}
