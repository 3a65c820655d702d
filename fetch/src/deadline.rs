//! A point in time that may not be passed, if there is one.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyperman_transport::{Runtime, Timer};

/// A deadline and the timer for it. Without one, nothing is ever armed.
pub(crate) struct Deadline<T> {
    armed: Option<(Instant, T)>,
}

impl<T: Timer> Deadline<T> {
    pub(crate) fn after<R: Runtime<Timer = T>>(runtime: &R, time: Option<Duration>) -> Self {
        // What lies beyond the clock's range never comes.
        let at = time.and_then(|time| runtime.now().checked_add(time));
        Deadline { armed: at.map(|at| (at, runtime.timer())) }
    }

    /// Whether it has passed; otherwise the task is woken when it does.
    pub(crate) fn has_passed(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.armed {
            None => false,
            Some((at, timer)) => matches!(timer.poll_deadline(*at, cx), Poll::Ready(())),
        }
    }
}
