//! A timer of async-io's reactor.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use hyperman_transport::alarm::{Alarm, LazyTimer};

/// A timer.
pub type SmolTimer = LazyTimer<ReactorAlarm>;

/// One place in the reactor's tree of timers.
#[derive(Debug)]
pub struct ReactorAlarm {
    timer: async_io::Timer,
}

impl ReactorAlarm {
    pub(crate) fn new() -> Self {
        ReactorAlarm { timer: async_io::Timer::never() }
    }
}

impl Alarm for ReactorAlarm {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn set(&mut self, at: Instant) {
        self.timer.set_at(at);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.timer).poll(cx).map(drop)
    }
}
