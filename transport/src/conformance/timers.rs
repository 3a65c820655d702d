//! Timers: never early, re-armed in place, cancelled, in the past, ten thousand at once.

use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use super::Harness;
use super::apparatus::{Counter, Queue, Turns, pause};
use crate::readiness::{Runtime, Timer};

/// Longer than any case takes.
const FAR: Duration = Duration::from_secs(3600);

/// Ready without a turn of the loop, however the timer was armed before.
pub fn past<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let counter = Counter::new();
        let mut timer = runtime.timer();
        pause(&runtime, Duration::from_millis(5)).await;
        let past = runtime.now() - Duration::from_millis(3);
        assert!(counter.poll(|cx| timer.poll_deadline(past, cx)).is_ready());
        assert!(counter.poll(|cx| timer.poll_deadline(runtime.now() + FAR, cx)).is_pending());
        assert!(counter.poll(|cx| timer.poll_deadline(past, cx)).is_ready());
    });
}

/// Deadlines within and between milliseconds.
pub fn never_early<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let counter = Counter::new();
        let mut timer = runtime.timer();
        for step in 0..60 {
            let deadline = runtime.now() + Duration::from_micros(step * 137);
            counter.ready(|cx| timer.poll_deadline(deadline, cx)).await;
            assert_not_early::<H>(&runtime, deadline);
        }
    });
}

/// The wake-up of the first deadline, if it comes, finds the timer not ready.
pub fn moved_later<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let counter = Counter::new();
        let mut timer = runtime.timer();
        let start = runtime.now();
        assert!(counter.poll(|cx| timer.poll_deadline(start + Duration::from_millis(5), cx)).is_pending());
        let mut deadline = start;
        for step in 2..6 {
            deadline = start + Duration::from_millis(10 * step);
            assert!(counter.poll(|cx| timer.poll_deadline(deadline, cx)).is_pending());
        }
        counter.ready(|cx| timer.poll_deadline(deadline, cx)).await;
        assert_not_early::<H>(&runtime, deadline);
    });
}

/// Ready at the second deadline, long before the first; again with timers that were moved away and back.
pub fn moved_earlier<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let counter = Counter::new();
        let mut timer = runtime.timer();
        for _ in 0..3 {
            let start = runtime.now();
            assert!(counter.poll(|cx| timer.poll_deadline(start + FAR, cx)).is_pending());
            let soon = start + Duration::from_millis(8);
            counter.ready(|cx| timer.poll_deadline(soon, cx)).await;
            assert_not_early::<H>(&runtime, soon);
            assert!(runtime.now() < start + FAR / 2);
        }
    });
}

/// One timer, one deadline after the other.
pub fn again<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let counter = Counter::new();
        let mut timer = runtime.timer();
        for _ in 0..10 {
            let deadline = runtime.now() + Duration::from_millis(2);
            counter.ready(|cx| timer.poll_deadline(deadline, cx)).await;
            assert_not_early::<H>(&runtime, deadline);
            // What has passed stays passed.
            assert!(counter.poll(|cx| timer.poll_deadline(deadline, cx)).is_ready());
        }
    });
}

/// Disarmed or dropped, a timer wakes nobody; disarmed, it can be armed again.
pub fn cancelled<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let (disarmed, dropped) = (Counter::new(), Counter::new());
        let deadline = runtime.now() + Duration::from_millis(5);
        let mut timer = runtime.timer();
        assert!(disarmed.poll(|cx| timer.poll_deadline(deadline, cx)).is_pending());
        timer.disarm();
        timer.disarm();
        let mut other = runtime.timer();
        assert!(dropped.poll(|cx| other.poll_deadline(deadline, cx)).is_pending());
        drop(other);
        runtime.timer().disarm();

        pause(&runtime, Duration::from_millis(20)).await;
        turns.take(2).await;
        assert_eq!((disarmed.take(), dropped.take()), (0, 0));
        assert_eq!(Arc::strong_count(&dropped), 1, "a dropped timer keeps its task");

        let deadline = runtime.now() + Duration::from_millis(5);
        assert!(disarmed.poll(|cx| timer.poll_deadline(deadline, cx)).is_pending());
        disarmed.ready(|cx| timer.poll_deadline(deadline, cx)).await;
        assert_not_early::<H>(&runtime, deadline);
    });
}

/// Only the last poll's waker is woken, also when the deadline did not change.
pub fn replaced_waker<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for moved in [0, 1] {
            let (first, second) = (Counter::new(), Counter::new());
            let mut timer = runtime.timer();
            let deadline = runtime.now() + Duration::from_millis(8);
            assert!(first.poll(|cx| timer.poll_deadline(deadline, cx)).is_pending());
            let deadline = deadline + Duration::from_millis(moved);
            assert!(second.poll(|cx| timer.poll_deadline(deadline, cx)).is_pending());
            first.take();
            second.ready(|cx| timer.poll_deadline(deadline, cx)).await;
            turns.take(2).await;
            assert_eq!(first.take(), 0, "the replaced waker was woken");
        }
    });
}

/// Ten thousand deadlines within 50 ms, armed in an order of their own, some moved and some dropped.
pub fn ten_thousand<H: Harness>(harness: &H) {
    const TIMERS: usize = 10_000;
    harness.block_on(async |runtime| {
        let queue = Queue::new();
        // Far enough that a busy machine has armed most of them by then.
        let start = runtime.now() + Duration::from_millis(200);
        let deadline = |index: usize| start + Duration::from_micros((index * 7919 % 50_000) as u64);
        let mut timers: Vec<Option<<H::Runtime as Runtime>::Timer>> = Vec::new();
        let mut left = 0;
        for index in 0..TIMERS {
            let mut timer = runtime.timer();
            let waker = queue.waker(index);
            let mut cx = Context::from_waker(&waker);
            if index % 3 == 0 {
                assert!(timer.poll_deadline(start + FAR, &mut cx).is_pending());
            }
            let kept = timer.poll_deadline(deadline(index), &mut cx).is_pending() && index % 5 != 0;
            left += usize::from(kept);
            timers.push(kept.then_some(timer));
        }
        assert_ne!(left, 0, "arming took so long that no deadline was left");
        while left > 0 {
            for index in queue.woken().await {
                let Some(timer) = &mut timers[index] else { continue };
                let waker = queue.waker(index);
                if timer.poll_deadline(deadline(index), &mut Context::from_waker(&waker)).is_ready() {
                    assert_not_early::<H>(&runtime, deadline(index));
                    timers[index] = None;
                    left -= 1;
                }
            }
        }
    });
}

/// Across turns of the loop and waits.
pub fn monotonic<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let mut last = runtime.now();
        for round in 0..20 {
            turns.take(1).await;
            if round % 4 == 0 {
                pause(&runtime, Duration::from_millis(2)).await;
                assert!(runtime.now() > last, "time stood still over a wait");
            }
            let now = runtime.now();
            assert!(now >= last);
            last = now;
        }
    });
}

fn assert_not_early<H: Harness>(runtime: &H::Runtime, deadline: Instant) {
    assert!(runtime.now() >= deadline, "early by the loop's own time");
    assert!(H::VIRTUAL_TIME || Instant::now() >= deadline, "early by the system's clock");
}
