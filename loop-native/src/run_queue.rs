//! The tasks of one loop: the list of all, and the queue of those that were woken.
//!
//! Both are chains through the heads of the tasks, so waking and ending a task allocate nothing. The loop holds one
//! reference to each task in the list of all. A task that ends while it is queued leaves that reference to the queue.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::task::{self, Head, TaskPtr, TaskRef};

#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    first: Cell<Option<TaskPtr>>,
    last: Cell<Option<TaskPtr>>,
    /// Any one of all tasks that have not ended.
    all: Cell<Option<TaskPtr>>,
    alive: Cell<usize>,
    /// The task that is being polled or dropped.
    current: Cell<Option<TaskPtr>>,
}

impl RunQueue {
    /// Takes a new task in, and queues it.
    pub(crate) fn insert(&self, task: TaskRef) {
        let task = task.into_ptr();
        let head = head(&task);
        let next = self.all.replace(Some(task));
        head.next.set(next);
        if let Some(next) = &next {
            self::head(next).previous.set(Some(task));
        }
        self.alive.set(self.alive.get() + 1);
        self.push(task);
    }

    /// Queues a task, unless it is queued or has ended. The caller knows that it is alive and of this loop.
    #[inline]
    pub(crate) fn push(&self, task: TaskPtr) {
        let head = head(&task);
        if head.queued.get() || head.done.get() {
            return;
        }
        head.queued.set(true);
        head.next_queued.set(None);
        match self.last.replace(Some(task)) {
            Some(last) => self::head(&last).next_queued.set(Some(task)),
            None => self.first.set(Some(task)),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    /// How many tasks have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive.get()
    }

    /// Polls woken tasks, in the order in which they were woken, until none is left or `budget` is used up. A task
    /// that panics is dropped.
    pub(crate) fn run(&self, budget: &mut u32) {
        loop {
            // One guard around many polls; it costs nothing while nobody panics.
            match catch_unwind(AssertUnwindSafe(|| self.run_unguarded(budget))) {
                Ok(()) => return,
                Err(_reported_by_the_panic_hook) => self.bury(),
            }
        }
    }

    fn run_unguarded(&self, budget: &mut u32) {
        while *budget > 0 {
            let Some(task) = self.pop() else { return };
            *budget -= 1;
            self.current.set(Some(task));
            let head = head(&task);
            if !head.done.get() {
                // SAFETY: the loop holds a reference until `release`. This is the loop's thread, as `RunQueue` is not
                // `Send`; the task is not being polled, as only this function polls and never from within itself: the
                // loop cannot be entered again while it runs; `done` says that the future has not been dropped.
                if !head.aborted.get() && unsafe { task::poll(task) }.is_pending() {
                    continue;
                }
                self.end(task);
            }
            self.release(task);
        }
    }

    #[inline]
    fn pop(&self) -> Option<TaskPtr> {
        let task = self.first.get()?;
        let head = head(&task);
        let next = head.next_queued.get();
        self.first.set(next);
        if next.is_none() {
            self.last.set(None);
        }
        head.queued.set(false);
        Some(task)
    }

    /// Takes a task off the list of all and drops its future, which may panic: then all but `release` is done.
    fn end(&self, task: TaskPtr) {
        let head = head(&task);
        head.done.set(true);
        let (previous, next) = (head.previous.take(), head.next.take());
        match &previous {
            Some(previous) => self::head(previous).next.set(next),
            None => self.all.set(next),
        }
        if let Some(next) = &next {
            self::head(next).previous.set(previous);
        }
        self.alive.set(self.alive.get() - 1);
        // SAFETY: the loop still holds its reference; `done` was false, so this is the one call; the poll has returned
        // or unwound.
        unsafe { task::drop_future(task) };
    }

    /// Gives the loop's reference up, or leaves it to the queue.
    fn release(&self, task: TaskPtr) {
        if !head(&task).queued.get() {
            // SAFETY: the reference that `insert` gave up; a task is released once: from here on it is in neither
            // chain, and `push` takes in no task that has ended.
            drop(unsafe { TaskRef::from_ptr(task) });
        }
    }

    /// Ends the task that has just panicked.
    fn bury(&self) {
        let Some(task) = self.current.take() else { return };
        if !head(&task).done.get() {
            // A destructor that panics as well is reported by the hook; what it left is not ours to clean.
            let _ = catch_unwind(AssertUnwindSafe(|| self.end(task)));
        }
        self.release(task);
    }

    /// Ends all tasks, also those that the destructors of others start.
    pub(crate) fn close(&self) {
        while let Some(task) = self.all.get() {
            let _ = catch_unwind(AssertUnwindSafe(|| self.end(task)));
            self.release(task);
        }
        while let Some(task) = self.pop() {
            self.release(task);
        }
    }
}

/// Every `TaskPtr` in a chain of the loop is alive: the loop's reference is released after it left both.
#[inline]
fn head(task: &TaskPtr) -> &Head {
    let task: &NonNull<Head> = task;
    // SAFETY: see above; for the argument of `push` it is the caller's promise. Only shared references to heads are
    // made, on any thread.
    unsafe { task.as_ref() }
}
