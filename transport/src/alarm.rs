//! A timer over a loop's own, moved as seldom as can be.
//!
//! A connection moves its deadline with every request, nearly always to a later time, and to move a timer of a loop means
//! its lock, its tree or a system call. So [`LazyTimer`] leaves the loop's timer, the alarm, where it is as long as that
//! goes off no later than the deadline: a move is paid for once in many requests, and the price is a wake-up that finds
//! nothing to do.

use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::readiness::Timer;

/// A timer of a loop, as [`LazyTimer`] uses it.
pub trait Alarm: Unpin {
    /// The loop's time.
    fn now(&self) -> Instant;

    /// Moves it to `at`, whether it has gone off or not.
    fn set(&mut self, at: Instant);

    /// Ready when it has gone off since the last [`set`](Self::set); until then it will wake `cx`, and nobody else.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Whether it may have gone off, having been set to `at`.
    fn may_have_gone_off(&self, at: Instant) -> bool {
        at <= self.now()
    }
}

/// See the module's words.
#[derive(Debug)]
pub struct LazyTimer<A> {
    alarm: A,
    /// What the alarm is set to, however long ago that was.
    set_to: Option<Instant>,
    /// Whom it wakes; `None` while disarmed.
    waker: Option<Waker>,
}

impl<A> LazyTimer<A> {
    /// Over an alarm that has not been set.
    pub fn new(alarm: A) -> Self {
        LazyTimer { alarm, set_to: None, waker: None }
    }
}

impl<A: Alarm> Timer for LazyTimer<A> {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let in_time = self.set_to.is_some_and(|at| at <= deadline && !self.alarm.may_have_gone_off(at));
        if in_time && self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        if deadline <= self.alarm.now() {
            return Poll::Ready(());
        }
        if !in_time {
            self.alarm.set(deadline);
            self.set_to = Some(deadline);
        }
        while self.alarm.poll(cx).is_ready() {
            self.waker = None;
            if self.set_to.replace(deadline) == Some(deadline) {
                return Poll::Ready(());
            }
            // The earlier time that it was left at passed between the looks at the clock.
            self.alarm.set(deadline);
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn disarm(&mut self) {
        if self.waker.take().is_some() {
            // Wakes nobody, and stays: the next deadline is often a later one.
            let _ = self.alarm.poll(&mut Context::from_waker(Waker::noop()));
        }
    }
}
