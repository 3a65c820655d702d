//! A timer on tokio's wheel.
//!
//! A connection moves its deadline with every request, nearly always to a later time. So the timer on the wheel is
//! left where it is as long as it fires no later than the deadline, and is moved on only when it has fired: a move is
//! paid for once in many requests, and the price is a wake-up that finds nothing to do.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use hyperman_transport::Timer;
use tokio::runtime::Handle;
use tokio::time::Sleep;

/// A timer; nothing is allocated before it is first armed.
#[derive(Debug)]
pub struct TokioTimer {
    handle: Handle,
    armed: Option<Armed>,
}

#[derive(Debug)]
struct Armed {
    sleep: Pin<Box<Sleep>>,
    fires_at: Instant,
    /// Whom `sleep` wakes; `None` while disarmed.
    waker: Option<Waker>,
}

impl TokioTimer {
    pub(crate) fn new(handle: Handle) -> Self {
        TokioTimer { handle, armed: None }
    }
}

impl Timer for TokioTimer {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(armed) = &self.armed
            && armed.fires_in_time(deadline)
            && armed.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            return Poll::Pending;
        }
        if deadline <= tokio::time::Instant::now().into_std() {
            return Poll::Ready(());
        }
        let armed = self.armed.get_or_insert_with(|| {
            let _entered = self.handle.enter();
            let sleep = Box::pin(tokio::time::sleep_until(deadline.into()));
            Armed { sleep, fires_at: deadline, waker: None }
        });
        armed.poll(deadline, cx)
    }

    fn disarm(&mut self) {
        let Some(armed) = &mut self.armed else { return };
        if armed.waker.take().is_some() {
            // Cheaper than to leave the wheel, which takes its lock: the next deadline is often a later one.
            let _ = armed.poll_sleep(&mut Context::from_waker(Waker::noop()));
        }
    }
}

impl Armed {
    /// Whether the wheel's timer is still to fire, and no later than `deadline`.
    fn fires_in_time(&self, deadline: Instant) -> bool {
        self.fires_at <= deadline && !self.sleep.is_elapsed()
    }

    fn poll(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.fires_at != deadline && !self.fires_in_time(deadline) {
                self.sleep.as_mut().reset(deadline.into());
                self.fires_at = deadline;
            }
            if self.poll_sleep(cx).is_pending() {
                self.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            self.waker = None;
            if self.fires_at == deadline {
                return Poll::Ready(());
            }
        }
    }

    /// Polls outside tokio's budget: when that is spent, a poll would come back without having noted the waker.
    fn poll_sleep(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        pin!(tokio::task::coop::unconstrained(self.sleep.as_mut())).poll(cx)
    }
}
