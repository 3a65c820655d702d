//! A GLib source that wakes a task once.
//!
//! GLib's sources report a level: as long as a socket is readable, its source fires in every turn. So a source is there
//! only while a task waits, and is gone when it has fired.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// At most one GLib source, and whom it will wake. Dropping it takes the source off its context.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    source: Option<glib::Source>,
    waiting: Arc<Waiting>,
}

/// Whom to wake; empty once that has happened. The lock is for GLib, whose sources may be used from any thread; nobody
/// contends for it.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Option<Waker>>);

impl Waiting {
    /// What the source does when it fires.
    pub(crate) fn wake(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Alarm {
    /// If the source is still to fire, makes it wake `waker`; says whether it is.
    pub(crate) fn rewire(&self, waker: &Waker) -> bool {
        match &mut *self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(waiting) => {
                waiting.clone_from(waker);
                true
            }
            None => false,
        }
    }

    /// Puts the source that `new` makes in the place of the one that is there, to wake `waker`.
    pub(crate) fn set(&mut self, waker: &Waker, new: impl FnOnce(Arc<Waiting>) -> glib::Source) {
        self.clear();
        *self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.source = Some(new(self.waiting.clone()));
    }

    /// Takes the source off its context, and forgets whom it was to wake.
    pub(crate) fn clear(&mut self) {
        if let Some(source) = self.source.take() {
            source.destroy();
        }
        let waker = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(waker);
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.clear();
    }
}
