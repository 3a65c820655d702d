//! A timer of a GLib main context.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use hyperman_transport::alarm::{Alarm, LazyTimer};

use crate::driver::{Driver, TimerKey};

/// A timer.
pub type GlibTimer = LazyTimer<GlibAlarm>;

/// One place in the runtime's heap.
#[derive(Debug)]
pub struct GlibAlarm {
    driver: Arc<Driver>,
    key: TimerKey,
}

/// Counts the alarms, so that no two have the same key.
static LAST: AtomicU64 = AtomicU64::new(0);

impl GlibAlarm {
    pub(crate) fn new(driver: &Arc<Driver>) -> Self {
        GlibAlarm { driver: Arc::clone(driver), key: (Instant::now(), LAST.fetch_add(1, Relaxed)) }
    }
}

impl Alarm for GlibAlarm {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn set(&mut self, at: Instant) {
        self.driver.cancel(self.key);
        self.key.0 = at;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.key.0 <= Instant::now() {
            self.driver.cancel(self.key);
            return Poll::Ready(());
        }
        self.driver.wake_at(self.key, cx.waker());
        Poll::Pending
    }
}

impl Drop for GlibAlarm {
    fn drop(&mut self) {
        self.driver.cancel(self.key);
    }
}
