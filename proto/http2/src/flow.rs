//! Flow-control windows (RFC 9113 §5.2, §6.9): how much we may send, and how much we let the peer send.

use std::time::{Duration, Instant};

use crate::frame::MAX_31;

/// The window of a stream or connection before any setting or update (RFC 9113 §6.9.2).
pub(crate) const DEFAULT_WINDOW: u32 = 65_535;

/// What the peer lets us send. It may be negative after the peer lowered its initial window size (RFC 9113 §6.9.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendWindow(i64);

/// A window grew above 2^31-1 (RFC 9113 §6.9.1).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl SendWindow {
    pub(crate) fn new(size: u32) -> Self {
        SendWindow(i64::from(size))
    }

    pub(crate) fn size(self) -> i64 {
        self.0
    }

    pub(crate) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub(crate) fn spend(&mut self, octets: usize) {
        self.0 -= octets as i64;
    }

    /// An update, or the difference between two initial window sizes.
    pub(crate) fn change(&mut self, difference: i64) -> Result<(), Overflow> {
        let size = self.0 + difference;
        if size > i64::from(MAX_31) {
            return Err(Overflow);
        }
        self.0 = size;
        Ok(())
    }
}

/// What we let the peer send. At any time `granted + held + due` is `target`.
#[derive(Debug)]
pub(crate) struct ReceiveWindow {
    /// What the peer may still send.
    granted: i64,
    /// Received, but not yet taken by the application.
    held: u32,
    /// Taken by the application, but not yet granted again.
    due: u32,
    target: u32,
    max: u32,
    updated: Option<Instant>,
}

/// The peer sent more than it was granted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl ReceiveWindow {
    pub(crate) fn new(size: u32, max: u32) -> Self {
        ReceiveWindow {
            granted: i64::from(size),
            held: 0,
            due: 0,
            target: size,
            max: max.max(size),
            updated: None,
        }
    }

    /// The size that it is refilled to.
    pub(crate) fn target(&self) -> u32 {
        self.target
    }

    /// What will be granted with the next update.
    pub(crate) fn due(&self) -> u32 {
        self.due
    }

    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    pub(crate) fn granted(&self) -> i64 {
        self.granted
    }

    pub(crate) fn receive(&mut self, octets: u32) -> Result<(), Exceeded> {
        if i64::from(octets) > self.granted {
            return Err(Exceeded);
        }
        self.granted -= i64::from(octets);
        self.held += octets;
        Ok(())
    }

    /// The application took `octets`; what was not held is not counted.
    pub(crate) fn release(&mut self, octets: u32) -> u32 {
        let octets = octets.min(self.held);
        self.held -= octets;
        self.due += octets;
        octets
    }

    /// The first size was announced and has come into force: it differs from what was assumed so far.
    pub(crate) fn resize(&mut self, from: u32, to: u32) {
        self.granted += i64::from(to) - i64::from(from);
        self.target = self.target.saturating_add(to).saturating_sub(from);
    }

    /// Raises the size at once; the difference is granted with the next update.
    pub(crate) fn raise(&mut self, target: u32) {
        self.due += target.saturating_sub(self.target);
        self.target = self.target.max(target);
    }

    /// The increment to announce now: once half of the window is due, so that updates are rare and the peer never stands
    /// still for want of one.
    ///
    /// Where the window [`limits`](Self::limits) the transfer it is doubled, by no more than there is `room` for.
    pub(crate) fn update(&mut self, now: Instant, round_trip: Option<Duration>, room: u32) -> Option<u32> {
        if !self.is_due() {
            return None;
        }
        if self.limits(now, round_trip) {
            let doubled = self.target.saturating_mul(2);
            self.raise(doubled.min(self.max).min(self.target.saturating_add(room)));
        }
        self.updated = Some(now);
        self.grant()
    }

    fn is_due(&self) -> bool {
        self.due >= self.target.div_ceil(2)
    }

    /// Whether an update is due so soon after the last one that the window itself is what limits the transfer: within two
    /// round trips. An application that reads slowly is not taken for that: nothing is due before it has read.
    pub(crate) fn limits(&self, now: Instant, round_trip: Option<Duration>) -> bool {
        let soon = match (self.updated, round_trip) {
            (Some(before), Some(round_trip)) => now.saturating_duration_since(before) < round_trip * 2,
            _ => false,
        };
        soon && self.target < self.max && self.is_due()
    }

    /// The increment to announce when less than `reserve` is left to the peer because what it sent was not taken: the
    /// window is doubled then.
    pub(crate) fn relieve(&mut self, reserve: u32) -> Option<u32> {
        if self.granted >= i64::from(reserve) || self.target >= self.max {
            return None;
        }
        self.raise(self.target.saturating_mul(2).min(self.max));
        self.grant()
    }

    /// Announces all that is due.
    pub(crate) fn grant(&mut self) -> Option<u32> {
        let increment = std::mem::take(&mut self.due);
        self.granted += i64::from(increment);
        (increment > 0).then_some(increment)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests are the driver.
mod tests {
    use super::*;

    const TRIP: Option<Duration> = Some(Duration::from_millis(20));

    #[test]
    fn a_send_window_may_be_negative_but_not_above_its_limit() {
        let mut window = SendWindow::new(10);
        window.spend(10);
        window.change(-5).unwrap();
        assert_eq!((window.size(), window.available()), (-5, 0));
        window.change(6).unwrap();
        assert_eq!(window.available(), 1);
        assert_eq!(window.change(i64::from(MAX_31)), Err(Overflow));
        assert_eq!(window.size(), 1);
    }

    #[test]
    fn an_update_is_due_when_half_of_the_window_was_taken() {
        let now = Instant::now();
        let mut window = ReceiveWindow::new(100, 100);
        window.receive(60).unwrap();
        assert_eq!(window.release(49), 49);
        assert_eq!(window.update(now, TRIP, u32::MAX), None);
        assert_eq!(window.release(1), 1);
        assert_eq!(window.update(now, TRIP, u32::MAX), Some(50));
        assert_eq!((window.granted(), window.due()), (90, 0));
        assert_eq!(window.release(1000), 10, "no more than was held");
        assert_eq!(window.receive(91), Err(Exceeded));
    }

    #[test]
    fn a_window_that_limits_the_transfer_grows_to_its_maximum() {
        let mut now = Instant::now();
        let mut window = ReceiveWindow::new(100, 300);
        let mut targets = Vec::new();
        for _ in 0..4 {
            window.receive(window.granted() as u32).unwrap();
            window.release(u32::MAX);
            window.update(now, TRIP, u32::MAX).unwrap();
            targets.push(window.target());
            assert_eq!(window.granted(), i64::from(window.target()));
            now += Duration::from_millis(20);
        }
        assert_eq!(targets, [100, 200, 300, 300]);
    }

    #[test]
    fn a_window_grows_by_no_more_than_there_is_room_for() {
        let now = Instant::now();
        let mut window = ReceiveWindow::new(100, 300);
        for (room, target) in [(0, 100), (50, 150), (0, 150), (1000, 300)] {
            window.updated = Some(now);
            window.receive(window.granted() as u32).unwrap();
            window.release(u32::MAX);
            window.update(now, TRIP, room).unwrap();
            assert_eq!(window.target(), target);
        }
    }

    #[test]
    fn a_window_full_of_what_nobody_takes_is_doubled() {
        let mut window = ReceiveWindow::new(100, 300);
        window.receive(60).unwrap();
        assert_eq!(window.relieve(40), None, "enough is left");
        assert_eq!(window.relieve(41), Some(100));
        window.receive(140).unwrap();
        assert_eq!(window.relieve(41), Some(100), "no more than the largest size");
        window.receive(100).unwrap();
        assert_eq!((window.relieve(41), window.granted(), window.held()), (None, 0, 300));
    }

    #[test]
    fn a_slow_application_does_not_make_it_grow() {
        let mut now = Instant::now();
        let mut window = ReceiveWindow::new(100, 1000);
        for _ in 0..10 {
            window.receive(50).unwrap();
            window.release(50);
            window.update(now, TRIP, u32::MAX).unwrap();
            now += Duration::from_millis(41);
        }
        assert_eq!(window.target(), 100);
    }
}
