//! The end of a connection as one of HTTP/1.1: closing it without losing the last answer, or handing it to another
//! protocol.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyperman_transport::ByteStream;

use super::{Http1, Phase, Step};
use crate::ends::{App, Ends};

impl<F, B> Http1<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// Writes the last bytes, then ends our direction.
    pub(super) fn close<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        // Throws away what came, and lets the timers run.
        if self.as_mut().project().machine.next_event().is_err() {
            return Step::Done;
        }
        if self.as_mut().transmit(ends, cx) == Step::Done {
            return Step::Done;
        }
        let this = self.project();
        if this.machine.has_transmit() || ends.stream.poll_flush(cx).is_pending() {
            return Step::Stalled;
        }
        if this.machine.is_cut_short() {
            // An orderly end of our direction would be the end of the answer. See `Connection`'s drop.
            return Step::Done;
        }
        match ends.stream.poll_close_write(cx) {
            Poll::Pending => {
                // The word of TLS that it is over.
                this.machine.set_unflushed(true);
                Step::Stalled
            }
            Poll::Ready(Ok(())) if this.machine.needs_linger() && !*this.read_ended => {
                *this.phase = Phase::Lingering;
                Step::Moved
            }
            Poll::Ready(_) => Step::Done,
        }
    }

    pub(super) fn linger<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let thrown_away = self.as_mut().project().machine.next_event();
        if thrown_away.is_err() || !self.machine.needs_linger() {
            return Step::Done;
        }
        self.read(ends, cx)
    }

    /// Carries bytes between the stream and whoever took the upgrade.
    pub(super) fn tunnel<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> Step {
        let this = self.project();
        let extras = this.extras.get_or_insert_default();
        if extras.http2.is_some() {
            return Step::Done;
        }
        if extras.tunnel.is_none() {
            let early = this.machine.take_upgraded().unwrap_or_default();
            match extras.upgrade.take() {
                Some(offer) => extras.tunnel = Some(offer.accept(early)),
                None => return Step::Done,
            }
        }
        let Some(tunnel) = &mut extras.tunnel else { return Step::Done };
        match tunnel.poll(&mut ends.stream, cx) {
            Poll::Pending => Step::Stalled,
            Poll::Ready(_) => Step::Done,
        }
    }
}
