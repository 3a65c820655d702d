//! The made-up clock: timers by deadline, wake-ups that come late, and the future that turns time forward.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyperman_transport::{Runtime, Timer};

use super::World;

/// The time, and who waits for it.
#[derive(Debug)]
pub(super) struct Clock {
    now: Instant,
    waiting: BTreeMap<(Instant, u64), Waker>,
    next: u64,
}

impl Clock {
    pub(super) fn new(now: Instant) -> Self {
        Clock { now, waiting: BTreeMap::new(), next: 0 }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Wakes `waker` once `after` has passed.
    pub(super) fn wake_after(&mut self, after: Duration, waker: &Waker) -> (Instant, u64) {
        self.wake_at(self.now + after, waker)
    }

    fn wake_at(&mut self, deadline: Instant, waker: &Waker) -> (Instant, u64) {
        self.next += 1;
        let key = (deadline, self.next);
        self.waiting.insert(key, waker.clone());
        key
    }

    /// How far away the next deadline is.
    fn ahead(&self) -> Option<Duration> {
        let (&(deadline, _), _) = self.waiting.first_key_value()?;
        Some(deadline.saturating_duration_since(self.now))
    }

    /// Turns time to the next deadline and takes out who waits for it.
    fn advance(&mut self) -> Vec<Waker> {
        let Some((&(deadline, _), _)) = self.waiting.first_key_value() else { return Vec::new() };
        self.now = self.now.max(deadline);
        let later = self.waiting.split_off(&(self.now, u64::MAX));
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }
}

/// How long nothing may happen in real time before the clock makes a leap, 5 ms. Loopback delivers within the system
/// call that sends, unless the machine is so busy that the kernel puts it off.
const LEAP_REST: Duration = Duration::from_millis(5);

/// Turns the clock forward whenever nothing else happens. Never ready.
pub struct Ticking<R: Runtime> {
    world: Arc<World>,
    inner: R,
    timer: R::Timer,
    next_turn: Instant,
    quiet_turns: u32,
    quiet: u32,
    seen: u64,
}

impl<R: Runtime> Unpin for Ticking<R> {}

impl<R: Runtime> Ticking<R> {
    pub(super) fn new(world: Arc<World>, inner: R, quiet_turns: u32) -> Self {
        let (timer, next_turn) = (inner.timer(), inner.now());
        Ticking { world, timer, inner, next_turn, quiet_turns, quiet: 0, seen: 0 }
    }

    /// Looks whether anything happened since the last turn, and if not, turns the clock. Says when to look again.
    fn tick(&mut self) -> Duration {
        let mut state = self.world.lock();
        state.turns += 1;
        if state.activity != self.seen {
            self.seen = state.activity;
            self.quiet = 0;
            return MOMENT;
        }
        self.quiet += 1;
        let Some(ahead) = state.clock.ahead() else { return MOMENT };
        if self.quiet < self.quiet_turns {
            return MOMENT;
        }
        if ahead > self.world.troubles.lateness && self.quiet == self.quiet_turns {
            return LEAP_REST;
        }
        self.quiet = 0;
        let mut due = state.clock.advance();
        // Those whose time has come at once run in any order.
        for last in (1..due.len()).rev() {
            let other = state.random.below(last as u64 + 1) as usize;
            due.swap(last, other);
        }
        drop(state);
        due.into_iter().for_each(Waker::wake);
        MOMENT
    }
}

/// The shortest time after now: a timer that far ahead rings in the loop's next turn, after it has asked for events.
const MOMENT: Duration = Duration::from_nanos(1);

impl<R: Runtime> Future for Ticking<R> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.timer.poll_deadline(this.next_turn, cx).is_ready() {
            let rest = this.tick();
            this.next_turn = this.inner.now() + rest;
            if this.timer.poll_deadline(this.next_turn, cx).is_ready() {
                // A loop that reads its clock all the time.
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

/// A timer of the made-up clock.
#[derive(Debug)]
pub struct ChaosTimer {
    world: Arc<World>,
    armed: Option<(Instant, u64)>,
}

impl ChaosTimer {
    pub(super) fn new(world: Arc<World>) -> Self {
        world.timers.fetch_add(1, Ordering::SeqCst);
        ChaosTimer { world, armed: None }
    }

    /// The made-up time.
    pub fn now(&self) -> Instant {
        self.world.lock().clock.now()
    }
}

impl Timer for ChaosTimer {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.disarm();
        let mut state = self.world.lock();
        state.activity += 1;
        if state.clock.now >= deadline {
            return Poll::Ready(());
        }
        self.armed = Some(state.clock.wake_at(deadline, cx.waker()));
        Poll::Pending
    }

    fn disarm(&mut self) {
        if let Some(key) = self.armed.take() {
            let waker = self.world.lock().clock.waiting.remove(&key);
            drop(waker);
        }
    }
}

impl Drop for ChaosTimer {
    fn drop(&mut self) {
        self.disarm();
        self.world.timers.fetch_sub(1, Ordering::SeqCst);
    }
}
