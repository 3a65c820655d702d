//! From an origin to a connected stream: addresses, then a race between them.
//!
//! The race follows RFC 8305 (Happy Eyeballs): the families take turns, each attempt has a head start of 250 ms on the
//! next, a failed one hands over at once, and the first connection that comes about wins.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
#[cfg(feature = "tls")]
use hyperman_transport::tls::TlsStream;
use hyperman_transport::{ArmReadiness, ByteStream, Connect, Runtime, Socket, Timer, connect_tcp};
use rustix::net::RecvFlags;

/// The head start of a connection attempt on the next one (RFC 8305 §5 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// What an exchange is spoken over: a plain socket, or a layer over one.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stream<S> {
    /// A plain TCP connection.
    Plain(Socket<S>),
    /// TLS over one.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<Socket<S>>>),
}

impl<S: ArmReadiness> Stream<S> {
    /// Looks whether the socket has something to read, without taking it: `WouldBlock` says that it has nothing. What a
    /// layer has taken from the socket already is not seen here.
    pub(crate) fn peek(&self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => peek(socket),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => peek(tls.get_ref()),
        }
    }
}

impl<S: ArmReadiness> Stream<S> {
    /// Whether the server chose HTTP/2 by ALPN (RFC 9113 §3.2).
    pub(crate) fn chose_http2(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.info().is_some_and(|info| info.alpn() == Some(b"h2")),
        }
    }
}

fn peek<S: ArmReadiness>(socket: &Socket<S>) -> io::Result<()> {
    let socket = socket.as_fd();
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    rustix::net::recv(socket, &mut [0; 1], flags)?;
    Ok(())
}

impl<S: ArmReadiness> ByteStream for Stream<S> {
    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        match self {
            Stream::Plain(socket) => socket.will_wake_to_read(cx),
            // What was decrypted already may be more than what was taken.
            #[cfg(feature = "tls")]
            Stream::Tls(_) => false,
        }
    }

    #[inline]
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(socket) => socket.poll_recv(cx, buf),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.poll_recv(cx, buf),
        }
    }

    #[inline]
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(socket) => socket.poll_send(cx, data),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.poll_send(cx, data),
        }
    }

    #[inline]
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(socket) => socket.poll_flush(cx),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.poll_flush(cx),
        }
    }

    fn poll_close_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(socket) => socket.poll_close_write(cx),
            #[cfg(feature = "tls")]
            Stream::Tls(tls) => tls.poll_close_write(cx),
        }
    }
}

/// Attempts to connect to one of several addresses.
pub(crate) struct Race<R: Runtime> {
    runtime: R,
    local: Option<IpAddr>,
    waiting: VecDeque<SocketAddr>,
    running: Vec<(SocketAddr, Connect<R::Source>)>,
    timer: R::Timer,
    /// When the next attempt may start while one is running.
    next: Option<Instant>,
    failure: Option<io::Error>,
}

impl<R: Runtime> Race<R> {
    pub(crate) fn new(runtime: R, addresses: &[SocketAddr], port: u16, local: Option<IpAddr>) -> Self {
        let reachable = addresses
            .iter()
            .filter(|address| local.is_none_or(|local| local.is_ipv4() == address.is_ipv4()))
            .map(|address| {
                let mut address = *address;
                address.set_port(port);
                address
            });
        let timer = runtime.timer();
        let waiting = take_turns(reachable);
        Race { runtime, local, waiting, running: Vec::new(), timer, next: None, failure: None }
    }

    /// Ready with the first connection that comes about, or with the last failure.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(SocketAddr, Socket<R::Source>)>> {
        loop {
            if let Some(winner) = self.poll_running(cx) {
                return Poll::Ready(Ok(winner));
            }
            let head_start_over = match self.next {
                Some(next) if !self.running.is_empty() => self.timer.poll_deadline(next, cx).is_ready(),
                _ => true,
            };
            if self.waiting.is_empty() && self.running.is_empty() {
                let failure = self.failure.take();
                let none = || io::Error::new(io::ErrorKind::AddrNotAvailable, "no usable address");
                return Poll::Ready(Err(failure.unwrap_or_else(none)));
            }
            if !head_start_over || self.waiting.is_empty() {
                return Poll::Pending;
            }
            self.start_next();
        }
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> Option<(SocketAddr, Socket<R::Source>)> {
        let mut index = 0;
        while let Some((address, connect)) = self.running.get_mut(index) {
            let address = *address;
            match Pin::new(connect).poll(cx) {
                Poll::Ready(Ok(socket)) => return Some((address, socket)),
                Poll::Ready(Err(error)) => {
                    self.failure = Some(error);
                    self.running.swap_remove(index);
                    self.next = None;
                }
                Poll::Pending => index += 1,
            }
        }
        None
    }

    fn start_next(&mut self) {
        let Some(address) = self.waiting.pop_front() else { return };
        let local = self.local.map(|local| SocketAddr::new(local, 0));
        match connect_tcp(&self.runtime, address, local) {
            Ok(connect) => {
                self.running.push((address, connect));
                self.next = Some(self.runtime.now() + HEAD_START);
            }
            Err(error) => self.failure = Some(error),
        }
    }
}

/// The addresses with the families in turn, the family of the first one first (RFC 8305 §4). Within a family the order
/// stays: the system has sorted it (RFC 6724).
fn take_turns(addresses: impl Iterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let mut addresses = addresses.peekable();
    let first_is_v4 = addresses.peek().is_some_and(SocketAddr::is_ipv4);
    let (first, second): (Vec<_>, Vec<_>) = addresses.partition(|address| address.is_ipv4() == first_is_v4);
    let mut turns = VecDeque::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        match (first.next(), second.next()) {
            (None, None) => return turns,
            (one, other) => turns.extend(one.into_iter().chain(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_and_keep_their_order() {
        let parse = |text: &&str| text.parse::<SocketAddr>().expect("an address");
        let order = ["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"];
        let turns: Vec<String> =
            take_turns(order.iter().map(parse)).iter().map(ToString::to_string).collect();
        assert_eq!(turns, ["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]);
        assert!(take_turns(std::iter::empty()).is_empty());
    }
}
