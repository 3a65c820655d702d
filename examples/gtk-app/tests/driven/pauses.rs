//! How long the main loop stands still, and how evenly the spinner turns.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gtk4::{self as gtk, glib, prelude::*};

/// How often the loop is asked whether it is alive.
const EVERY: Duration = Duration::from_millis(5);

/// Measures from one call of a timer of high priority to the next.
///
/// A pause is the loop's own doing, or the machine's, when other programs had the processor that this thread, or the X
/// server that it waited for, could have used. The kernel counts that, so it can be told apart on a busy machine.
pub(crate) struct Pauses {
    seen: Rc<Seen>,
    timer: Option<glib::SourceId>,
}

struct Seen {
    begin: Instant,
    last: Cell<Clock>,
    halted: Cell<bool>,
    calls: Cell<u32>,
    longest: Cell<Pause>,
    longest_with_waits: Cell<Duration>,
}

#[derive(Clone, Copy)]
struct Clock {
    now: Instant,
    /// How long this thread ran.
    ran: Duration,
    /// How long it and the X server waited for a processor.
    waited: Duration,
}

/// A time between two calls without the wait for a processor.
#[derive(Clone, Copy, Default)]
struct Pause {
    at: Duration,
    length: Duration,
    ran: Duration,
}

impl Pauses {
    pub(crate) fn measure() -> Self {
        let seen = Rc::new(Seen {
            begin: Instant::now(),
            last: Cell::new(Clock::read()),
            halted: Cell::new(false),
            calls: Cell::default(),
            longest: Cell::default(),
            longest_with_waits: Cell::default(),
        });
        let timer = glib::timeout_add_local_full(EVERY, glib::Priority::HIGH, {
            let seen = Rc::clone(&seen);
            move || {
                seen.look();
                glib::ControlFlow::Continue
            }
        });
        Pauses { seen, timer: Some(timer) }
    }

    /// Does not look until [`go_on`](Self::go_on).
    pub(crate) fn halt(&self) {
        self.seen.halted.set(true);
    }

    pub(crate) fn go_on(&self) {
        self.seen.last.set(Clock::read());
        self.seen.halted.set(false);
    }

    /// Ends the measurement; the longest pause that was not the wait for a processor.
    pub(crate) fn longest(self) -> Duration {
        assert!(self.seen.calls.get() > 100, "measured for too short a time");
        self.seen.longest.get().length
    }
}

impl Seen {
    fn look(&self) {
        if self.halted.get() {
            return;
        }
        let clock = Clock::read();
        let then = self.last.replace(clock);
        let all = clock.now - then.now;
        let ran = clock.ran.saturating_sub(then.ran);
        // The X server may have waited while this thread was at work, which is not to be taken off.
        let length = all.saturating_sub(clock.waited.saturating_sub(then.waited)).max(ran.min(all));
        let pause = Pause { at: then.now - self.begin, length, ran };
        self.calls.set(self.calls.get() + 1);
        if pause.length > self.longest.get().length {
            self.longest.set(pause);
        }
        self.longest_with_waits.set(self.longest_with_waits.get().max(all));
    }
}

impl Clock {
    fn read() -> Self {
        let (ran, waited) = schedstat("thread-self");
        let server = std::env::var("X_SERVER").map(|process| schedstat(&process).1);
        Clock { now: Instant::now(), ran, waited: waited + server.unwrap_or_default() }
    }
}

/// How long a thread ran, and how long it could have run but another one did. A kernel that does not count says zero.
fn schedstat(thread: &str) -> (Duration, Duration) {
    let line = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    let mut numbers = line.split(' ').map(|number| number.parse().unwrap_or_default());
    let mut next = || Duration::from_nanos(numbers.next().unwrap_or_default());
    (next(), next())
}

impl Drop for Pauses {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            timer.remove();
        }
    }
}

impl fmt::Display for Pauses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pause { at, length, ran } = self.seen.longest.get();
        write!(
            f,
            "longest pause of the main loop: {:.1} ms, {:.1} ms of it at work, {:.1} s after the beginning \
            ({:.1} ms with waits for a processor; looked {} times)",
            length.as_secs_f64() * 1e3,
            ran.as_secs_f64() * 1e3,
            at.as_secs_f64(),
            self.seen.longest_with_waits.get().as_secs_f64() * 1e3,
            self.seen.calls.get()
        )
    }
}

/// Counts the frames that a widget is drawn in.
pub(crate) struct Frames {
    drawn: Rc<Cell<u32>>,
    begin: Instant,
}

impl Frames {
    pub(crate) fn count(widget: &impl IsA<gtk::Widget>) -> Self {
        let drawn = Rc::new(Cell::new(0));
        widget.add_tick_callback({
            let drawn = Rc::clone(&drawn);
            move |_, _| {
                drawn.set(drawn.get() + 1);
                glib::ControlFlow::Continue
            }
        });
        Frames { drawn, begin: Instant::now() }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = f64::from(self.drawn.get()) / self.begin.elapsed().as_secs_f64();
        write!(f, "{} frames, {rate:.0} a second", self.drawn.get())
    }
}
