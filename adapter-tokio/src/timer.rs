//! A timer on tokio's wheel.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Instant;

use hyperman_transport::alarm::{Alarm, LazyTimer};
use tokio::runtime::Handle;
use tokio::time::Sleep;

/// A timer; nothing is allocated before it is first armed.
pub type TokioTimer = LazyTimer<WheelAlarm>;

/// One place on tokio's wheel.
#[derive(Debug)]
pub struct WheelAlarm {
    handle: Handle,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl WheelAlarm {
    pub(crate) fn new(handle: Handle) -> Self {
        WheelAlarm { handle, sleep: None }
    }
}

impl Alarm for WheelAlarm {
    fn now(&self) -> Instant {
        // Not the system's clock: a test may have paused tokio's.
        tokio::time::Instant::now().into_std()
    }

    fn set(&mut self, at: Instant) {
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(at.into()),
            None => {
                let _entered = self.handle.enter();
                self.sleep = Some(Box::pin(tokio::time::sleep_until(at.into())));
            }
        }
    }

    /// Polls outside tokio's budget: when that is spent, a poll would come back without having noted the waker.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sleep {
            Some(sleep) => pin!(tokio::task::coop::unconstrained(sleep.as_mut())).poll(cx),
            None => Poll::Pending,
        }
    }

    fn may_have_gone_off(&self, _at: Instant) -> bool {
        // Cheaper than a look at the clock.
        self.sleep.as_ref().is_none_or(|sleep| sleep.is_elapsed())
    }
}
