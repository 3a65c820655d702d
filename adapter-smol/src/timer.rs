//! A timer of async-io's reactor.
//!
//! The reactor's timers are in a tree behind a lock. A connection moves its deadline with every request, nearly always
//! to a later time; so the reactor's timer is left where it is as long as it fires no later than the deadline, at the
//! price of a wake-up now and then that finds nothing to do.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hyperman_transport::Timer;

/// A timer.
#[derive(Debug)]
pub struct SmolTimer {
    timer: async_io::Timer,
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    fires_at: Instant,
    waker: Waker,
}

impl SmolTimer {
    pub(crate) fn new() -> Self {
        SmolTimer { timer: async_io::Timer::never(), armed: None }
    }
}

impl Timer for SmolTimer {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let now = Instant::now();
        if deadline <= now {
            return Poll::Ready(());
        }
        let fires_in_time = match &self.armed {
            Some(armed) => now < armed.fires_at && armed.fires_at <= deadline,
            None => false,
        };
        let fires_at = match &self.armed {
            Some(armed) if fires_in_time && armed.waker.will_wake(cx.waker()) => return Poll::Pending,
            Some(armed) if fires_in_time => armed.fires_at,
            _ => {
                self.timer.set_at(deadline);
                deadline
            }
        };
        if Pin::new(&mut self.timer).poll(cx).is_ready() {
            // It passed between the two readings of the clock; a later deadline is for the next poll to arm.
            self.armed = None;
            if fires_at < deadline {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(());
        }
        self.armed = Some(Armed { fires_at, waker: cx.waker().clone() });
        Poll::Pending
    }

    fn disarm(&mut self) {
        if self.armed.take().is_some() {
            // `Timer::clear` would keep the waker.
            self.timer = async_io::Timer::never();
        }
    }
}
