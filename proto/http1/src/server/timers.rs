//! Deadlines of a server's connection. Nothing here reads a clock: [`Server::handle_timeout`] brings the time.

use std::time::{Duration, Instant};

use super::{Answer, Receive, Server};
use crate::error::Timeout;

/// How much longer a body may fall short of its rate before its time is up. Arriving bytes earn time, never more than
/// the whole grace: a fast beginning must not pay for a long stall.
#[derive(Clone, Copy, Debug)]
pub(super) enum RateClock {
    /// Nobody waits for the body.
    Paused(Duration),
    /// Runs out then.
    Until(Instant),
}

impl Default for RateClock {
    fn default() -> Self {
        RateClock::Paused(Duration::ZERO)
    }
}

impl Server {
    /// The next deadline, and which timer it belongs to.
    #[inline]
    pub fn poll_timeout(&self) -> Option<(Instant, Timeout)> {
        let timeouts = &self.config.timeouts;
        let waits_to_write = self.waits_to_write();
        let reading = if self.closed.is_some() {
            (self.linger && !waits_to_write).then(|| {
                let quiet = self.since + timeouts.linger;
                (quiet.min(self.moved + timeouts.linger_most), Timeout::Linger)
            })
        } else {
            match self.receive {
                Receive::Head { .. } if !self.read.is_empty() => {
                    Some((self.since + timeouts.head, Timeout::Head))
                }
                Receive::Head { .. } if !waits_to_write && self.answer == Answer::None => {
                    Some((self.since + timeouts.idle, Timeout::Idle))
                }
                Receive::Body(_) => match self.rate {
                    RateClock::Until(deadline) => Some((deadline, Timeout::BodyRate)),
                    RateClock::Paused(_) => None,
                },
                _ => None,
            }
        };
        if !waits_to_write {
            return reading;
        }
        let writing = (self.moved + timeouts.write_stall, Timeout::WriteStall);
        match reading {
            Some(reading) if reading.0 <= writing.0 => Some(reading),
            _ => Some(writing),
        }
    }

    /// The deadline of a machine that [`is_idle`](Self::is_idle): what [`poll_timeout`](Self::poll_timeout) says then.
    #[inline]
    pub fn idle_timeout(&self) -> Instant {
        self.since + self.config.timeouts.idle
    }

    /// The timer that has run out, if one has.
    #[inline]
    pub(super) fn passed_timeout(&self) -> Option<Timeout> {
        self.poll_timeout().filter(|(deadline, _)| *deadline <= self.now).map(|(_, timeout)| timeout)
    }

    /// A body begins.
    pub(super) fn start_rate(&mut self) {
        self.rate = RateClock::Paused(self.config.timeouts.body_grace);
        self.pause_or_resume();
    }

    /// The body's time runs while somebody waits for it, and while it is only read to be thrown away.
    pub(super) fn pause_or_resume(&mut self) {
        let runs = self.body_wanted || self.ignoring;
        self.rate = match self.rate {
            RateClock::Paused(left) if runs => RateClock::Until(self.now + left),
            RateClock::Until(deadline) if !runs => {
                RateClock::Paused(deadline.saturating_duration_since(self.now))
            }
            unchanged => unchanged,
        };
    }

    /// Bytes of a body have come.
    pub(super) fn earn_time(&mut self, bytes: u64) {
        let timeouts = &self.config.timeouts;
        let earned = Duration::from_millis(bytes.saturating_mul(1000) / timeouts.body_rate.max(1));
        let most = timeouts.body_grace;
        match &mut self.rate {
            RateClock::Paused(left) => *left = left.saturating_add(earned).min(most),
            RateClock::Until(deadline) => {
                let full = self.now + most;
                *deadline = deadline.checked_add(earned).unwrap_or(full).min(full);
            }
        }
    }
}
