//! The stream of a connection: a plain socket, or TLS over one.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use bytes::BytesMut;
use hyperman_transport::{ArmReadiness, ByteStream, FileRegion, HangUp, Socket};

#[cfg(feature = "tls")]
use hyperman_transport::tls::{TlsStream, is_truncated};

/// See the module's words.
pub(crate) enum Wire<S: ArmReadiness> {
    Plain(Socket<S>),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<Socket<S>>>),
}

impl<S: ArmReadiness> ByteStream for Wire<S> {
    #[inline(always)]
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        match self {
            Wire::Plain(socket) => socket.poll_recv(cx, buf),
            // A request says by itself where it ends, so an end without `close_notify` is no more than an end: what it
            // cuts short is seen to be incomplete.
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => match tls.poll_recv(cx, buf) {
                Poll::Ready(Err(error)) if is_truncated(&error) => Poll::Ready(Ok(0)),
                received => received,
            },
        }
    }

    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        match self {
            Wire::Plain(socket) => socket.will_wake_to_read(cx),
            // What was decrypted already may be more than what was taken.
            #[cfg(feature = "tls")]
            Wire::Tls(_) => false,
        }
    }

    #[inline(always)]
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Wire::Plain(socket) => socket.poll_send(cx, data),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.poll_send(cx, data),
        }
    }

    #[inline]
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Wire::Plain(socket) => socket.poll_flush(cx),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.poll_flush(cx),
        }
    }

    fn poll_close_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Wire::Plain(socket) => socket.poll_close_write(cx),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.poll_close_write(cx),
        }
    }

    fn reset_on_close(&mut self) {
        match self {
            Wire::Plain(socket) => socket.reset_on_close(),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.reset_on_close(),
        }
    }

    fn hang_up(&self) -> HangUp {
        match self {
            Wire::Plain(socket) => socket.hang_up(),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.hang_up(),
        }
    }

    fn unacknowledged(&self) -> Option<u64> {
        match self {
            Wire::Plain(socket) => socket.unacknowledged(),
            #[cfg(feature = "tls")]
            Wire::Tls(tls) => tls.unacknowledged(),
        }
    }

    fn can_send_file(&self) -> bool {
        match self {
            Wire::Plain(socket) => socket.can_send_file(),
            #[cfg(feature = "tls")]
            Wire::Tls(_) => false,
        }
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        region: &mut FileRegion<'_>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Wire::Plain(socket) => socket.poll_send_file(cx, region),
            #[cfg(feature = "tls")]
            Wire::Tls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}
