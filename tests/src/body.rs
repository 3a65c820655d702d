//! Bodies to send.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyperman_transport::Timer;

use crate::chaos::ChaosTimer;

/// A body of 64 KiB pieces that counts how many were asked for.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// How many more there are.
    pub left: usize,
    /// How many were asked for.
    pub made: Arc<AtomicUsize>,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        self.made.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 65_536])))))
    }
}

/// A body in pieces, with a pause of made-up time between them.
#[derive(Debug)]
pub struct Paced {
    left: Bytes,
    piece: usize,
    gap: Duration,
    timer: ChaosTimer,
    until: Option<Instant>,
    sized: bool,
}

impl Paced {
    /// `whole` in pieces of `piece` bytes, each `gap` after the last; `sized` says its length in advance.
    pub fn new(timer: ChaosTimer, whole: Bytes, piece: usize, gap: Duration, sized: bool) -> Self {
        Paced { left: whole, piece: piece.max(1), gap, timer, until: None, sized }
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        if let Some(until) = this.until {
            ready!(this.timer.poll_deadline(until, cx));
        }
        if this.left.is_empty() {
            return Poll::Ready(None);
        }
        this.until = (!this.gap.is_zero()).then(|| this.timer.now() + this.gap);
        let piece = this.left.split_to(this.piece.min(this.left.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { SizeHint::with_exact(self.left.len() as u64) } else { SizeHint::new() }
    }
}
