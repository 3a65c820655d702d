//! A timer of a GLib main context.
//!
//! A connection moves its deadline with every request, nearly always to a later time. So the GLib source is left where
//! it is as long as it fires no later than the deadline, at the price of a wake-up now and then that finds nothing to do.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use glib::ControlFlow;
use hyperman_transport::Timer;

use crate::GlibRuntime;
use crate::alarm::Alarm;

/// The longest wait that one GLib source is asked for, a day: GLib counts milliseconds in 32 bits (50 days).
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A timer.
#[derive(Debug)]
pub struct GlibTimer {
    runtime: GlibRuntime,
    alarm: Alarm,
    /// When `alarm` fires, if it is set.
    fires_at: Instant,
}

impl GlibTimer {
    pub(crate) fn new(runtime: GlibRuntime) -> Self {
        GlibTimer { runtime, alarm: Alarm::default(), fires_at: Instant::now() }
    }
}

impl Timer for GlibTimer {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let wait = deadline.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return Poll::Ready(());
        }
        if self.fires_at <= deadline && self.alarm.rewire(cx.waker()) {
            return Poll::Pending;
        }
        // Up to the next whole millisecond: GLib would round down, and fire early.
        let wait = Duration::from_millis(wait.min(LONGEST_WAIT).as_nanos().div_ceil(1_000_000) as u64);
        self.fires_at = deadline;
        let runtime = &self.runtime;
        self.alarm.set(cx.waker(), |waiting| {
            let fire = move || {
                waiting.wake();
                ControlFlow::Break
            };
            let source = glib::timeout_source_new(wait, None, runtime.priority, fire);
            runtime.attach(&source);
            source
        });
        Poll::Pending
    }

    fn disarm(&mut self) {
        self.alarm.clear();
    }
}
