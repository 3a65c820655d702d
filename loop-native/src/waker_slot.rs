//! A place for the waker of whoever waits on something.

use std::cell::UnsafeCell;
use std::fmt;
use std::task::Waker;

use crate::task;

/// Holds the last waker that was put in. It is kept when it wakes, so that a task that waits for the same thing again
/// and again neither clones nor drops its waker.
#[derive(Default)]
pub(crate) struct WakerSlot(UnsafeCell<Option<Waker>>);

impl WakerSlot {
    /// Puts a waker in, unless the one that is there wakes the same task.
    #[inline]
    pub(crate) fn set(&self, waker: &Waker) {
        if !self.holds(waker) {
            self.replace(waker.clone());
        }
    }

    /// Whether the waker that is there wakes the same task as this one.
    #[inline]
    pub(crate) fn holds(&self, waker: &Waker) -> bool {
        // SAFETY: the slot is not `Sync`, and the reference ends before other code could run: `will_wake` compares two
        // pointers and calls nothing.
        let there = unsafe { &*self.0.get() };
        there.as_ref().is_some_and(|there| there.will_wake(waker))
    }

    /// Wakes whoever waits.
    #[inline]
    pub(crate) fn wake(&self) {
        // SAFETY: the slot is not `Sync`; waking a task of ours runs no code but ours, which does not know of slots, so
        // nothing changes the slot while the reference lives.
        let there = unsafe { &*self.0.get() };
        if there.as_ref().is_none_or(task::wake_if_ours) {
            return;
        }
        self.wake_foreign();
    }

    #[cold]
    fn wake_foreign(&self) {
        // Waking runs code that is not ours; it may come back to this slot, so no reference into it may be alive.
        let Some(waker) = self.take() else { return };
        waker.wake_by_ref();
        // SAFETY: as in `set`: the reference ends at once and nothing is called while it lives.
        let there = unsafe { &*self.0.get() };
        if there.is_none() {
            self.replace(waker);
        }
    }

    /// Empties the slot.
    #[inline]
    pub(crate) fn take(&self) -> Option<Waker> {
        // SAFETY: the slot is not `Sync`, and nothing else runs while the reference lives.
        let there = unsafe { &mut *self.0.get() };
        there.take()
    }

    fn replace(&self, waker: Waker) {
        let old = self.take();
        // SAFETY: as in `take`. The place is empty, so the assignment drops nothing.
        let there = unsafe { &mut *self.0.get() };
        *there = Some(waker);
        // Dropping a waker may run code that is not ours; the slot is whole again by now.
        drop(old);
    }
}

impl fmt::Debug for WakerSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WakerSlot")
    }
}
