//! A task: a future with a head in front of it, in one allocation, and the waker that points at it.
//!
//! Who may touch what:
//!
//! * The future and the `Cell`s of the head belong to the loop's thread. Other threads hold wakers, and read of the
//!   head only what never changes, and the two atomics.
//! * The loop holds one reference until the future has been dropped, which happens on its thread. So whoever drops the
//!   last reference, on whatever thread, frees memory and nothing else.
//! * Pointers to a task come from `Box::into_raw` and never from a reference to the head: they reach the future too.

use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use crate::event_loop;
use crate::remote::Remote;

/// Points at a task that is alive.
pub(crate) type TaskPtr = NonNull<Head>;

/// What stands in front of every future.
#[derive(Debug)]
pub(crate) struct Head {
    functions: &'static Functions,
    references: AtomicUsize,
    /// Which loop the task belongs to.
    loop_id: u64,
    remote: Arc<Remote>,
    /// Whether another thread has queued the task and the loop has not collected it yet.
    remotely_queued: AtomicBool,

    // Everything below is touched by the loop's thread only.
    /// Whether the task is in the run queue.
    pub(crate) queued: Cell<bool>,
    /// Whether the future has been dropped, or is being dropped.
    pub(crate) done: Cell<bool>,
    /// Whether the future is to be dropped instead of polled.
    pub(crate) aborted: Cell<bool>,
    /// The next task of the run queue.
    pub(crate) next_queued: Cell<Option<TaskPtr>>,
    /// The neighbours in the list of all tasks of the loop.
    pub(crate) previous: Cell<Option<TaskPtr>>,
    pub(crate) next: Cell<Option<TaskPtr>>,
}

/// What depends on the type of the future.
#[derive(Debug)]
struct Functions {
    poll: unsafe fn(TaskPtr, &mut Context<'_>) -> Poll<()>,
    drop_future: unsafe fn(TaskPtr),
    free: unsafe fn(TaskPtr),
}

#[repr(C)]
struct Task<F> {
    head: Head,
    future: UnsafeCell<ManuallyDrop<F>>,
}

impl<F: Future<Output = ()>> Task<F> {
    const FUNCTIONS: Functions =
        Functions { poll: Self::poll, drop_future: Self::drop_future, free: Self::free };

    /// # Safety
    /// On the loop's thread, before `drop_future`, and not from within itself.
    unsafe fn poll(task: TaskPtr, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: `task` points at a whole `Task<F>`: the pointer was made from one in `new`, with these functions.
        let future = unsafe { &(*task.cast::<Task<F>>().as_ptr()).future };
        // SAFETY: the caller's promise makes this the only reference. The future never moves: it stays in its
        // allocation until `drop_future` ends it there.
        let future = unsafe { Pin::new_unchecked(&mut **future.get()) };
        future.poll(cx)
    }

    /// # Safety
    /// On the loop's thread, once, and not from within `poll`.
    unsafe fn drop_future(task: TaskPtr) {
        // SAFETY: as in `poll`; and the caller calls it once, so the value is still there.
        unsafe { ManuallyDrop::drop(&mut *(*task.cast::<Task<F>>().as_ptr()).future.get()) }
    }

    /// # Safety
    /// The last reference is gone.
    unsafe fn free(task: TaskPtr) {
        // SAFETY: the pointer came from `Box::into_raw` of this type, and nobody else has it any more. The future is
        // `ManuallyDrop`: it was dropped before, on its thread.
        drop(unsafe { Box::from_raw(task.cast::<Task<F>>().as_ptr()) });
    }
}

/// A counted reference to a task.
#[derive(Debug)]
pub(crate) struct TaskRef(TaskPtr);

// SAFETY: what a `TaskRef` offers to a thread other than the loop's is counting references, `remotely_queued` (both
// atomic) and `remote` (which is `Sync`). The rest of `Head` is reached through `TaskPtr`, which is not `Send`.
unsafe impl Send for TaskRef {}

impl TaskRef {
    /// A new task; the caller holds its one reference, and owes `drop_future`.
    pub(crate) fn new<F: Future<Output = ()> + 'static>(
        future: F,
        loop_id: u64,
        remote: Arc<Remote>,
    ) -> Self {
        let head = Head {
            functions: &Task::<F>::FUNCTIONS,
            references: AtomicUsize::new(1),
            loop_id,
            remote,
            remotely_queued: AtomicBool::new(false),
            queued: Cell::new(false),
            done: Cell::new(false),
            aborted: Cell::new(false),
            next_queued: Cell::new(None),
            previous: Cell::new(None),
            next: Cell::new(None),
        };
        let task = Box::new(Task { head, future: UnsafeCell::new(ManuallyDrop::new(future)) });
        // SAFETY: a box is never null.
        TaskRef(unsafe { NonNull::new_unchecked(Box::into_raw(task)) }.cast())
    }

    /// The same task; it is alive as long as some reference is.
    #[inline]
    pub(crate) fn as_ptr(&self) -> TaskPtr {
        self.0
    }

    /// Gives the reference up without counting down: somebody else owns it from now on.
    #[inline]
    pub(crate) fn into_ptr(self) -> TaskPtr {
        ManuallyDrop::new(self).0
    }

    /// Takes over a reference that [`into_ptr`](Self::into_ptr) gave up.
    ///
    /// # Safety
    /// There is such a reference, and it is taken over once.
    #[inline]
    pub(crate) unsafe fn from_ptr(task: TaskPtr) -> Self {
        TaskRef(task)
    }

    /// Ends the time in which wake-ups of other threads are left out because one is queued already.
    pub(crate) fn collected(&self) {
        // SAFETY: the task is alive while `self` is.
        let head = unsafe { self.0.as_ref() };
        // Acquires what every thread that has woken the task since wrote before it did.
        head.remotely_queued.swap(false, Ordering::AcqRel);
    }

    /// Has the future dropped instead of polled, from its next turn on. On the loop's thread only.
    pub(crate) fn abort(&self) {
        self.head().aborted.set(true);
    }

    fn head(&self) -> &Head {
        // SAFETY: the task is alive while `self` is.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        // Relaxed: a reference is made from one that is there, as for `Arc`.
        let before = self.head().references.fetch_add(1, Ordering::Relaxed);
        // Leaked wakers must not make the count wrap around and the task be freed too early, as for `Arc`.
        if before > isize::MAX as usize {
            std::process::abort();
        }
        TaskRef(self.0)
    }
}

impl Drop for TaskRef {
    #[inline]
    fn drop(&mut self) {
        if self.head().references.fetch_sub(1, Ordering::Release) == 1 {
            // Everything that was done through the other references happens before the task is freed.
            fence(Ordering::Acquire);
            let free = self.head().functions.free;
            // SAFETY: this was the last reference.
            unsafe { free(self.0) };
        }
    }
}

/// Polls the task's future once.
///
/// # Safety
/// `task` is alive; on the loop's thread, not from within this function for the same task, and before [`drop_future`].
#[inline]
pub(crate) unsafe fn poll(task: TaskPtr) -> Poll<()> {
    // SAFETY: the caller's promise.
    let functions = unsafe { task.as_ref() }.functions;
    // Not counted, and never dropped: the caller keeps the task alive for as long as the waker is lent.
    // SAFETY: the table keeps the contract of `RawWaker`, see `WAKER`.
    let waker = ManuallyDrop::new(unsafe { Waker::new(task.as_ptr().cast_const().cast(), &WAKER) });
    // SAFETY: the caller's promise.
    unsafe { (functions.poll)(task, &mut Context::from_waker(&waker)) }
}

/// Drops the task's future where it is.
///
/// # Safety
/// `task` is alive; on the loop's thread, once, and not from within [`poll`] of the same task.
pub(crate) unsafe fn drop_future(task: TaskPtr) {
    // SAFETY: the caller's promise.
    unsafe { (task.as_ref().functions.drop_future)(task) }
}

/// A counted waker of the task.
pub(crate) fn waker(task: &TaskRef) -> Waker {
    // SAFETY: the table keeps the contract of `RawWaker`, see `WAKER`; the reference goes into the waker.
    unsafe { Waker::new(task.clone().into_ptr().as_ptr().cast_const().cast(), &WAKER) }
}

/// Wakes what the waker is for, if that is a task of some loop of this crate; else says no. Runs no code that is not ours.
#[inline]
pub(crate) fn wake_if_ours(waker: &Waker) -> bool {
    if !std::ptr::eq(waker.vtable(), &WAKER) {
        return false;
    }
    // SAFETY: `waker` has the table `WAKER`.
    let task = unsafe { lent(waker.data()) };
    wake_task(&task);
    true
}

/// The data pointer is a `TaskPtr` with one reference of its own (or with a lent one, which is neither given up nor
/// counted down). All four functions may be called on any thread.
static WAKER: RawWakerVTable = RawWakerVTable::new(clone_waker, wake, wake_by_ref, drop_waker);

/// # Safety
/// For all four: `data` is the data pointer of a waker with the table [`WAKER`].
#[inline]
unsafe fn lent(data: *const ()) -> ManuallyDrop<TaskRef> {
    // SAFETY: the pointer of a waker is never null, and its reference is not given up here.
    ManuallyDrop::new(TaskRef(unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }))
}

unsafe fn clone_waker(data: *const ()) -> RawWaker {
    // SAFETY: see `lent`.
    let task = unsafe { lent(data) };
    std::mem::forget(TaskRef::clone(&task));
    RawWaker::new(data, &WAKER)
}

unsafe fn wake(data: *const ()) {
    // SAFETY: see `lent`; this consumes the waker, and so its reference.
    let task = ManuallyDrop::into_inner(unsafe { lent(data) });
    wake_task(&task);
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: see `lent`.
    let task = unsafe { lent(data) };
    wake_task(&task);
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: see `lent`; this consumes the waker, and so its reference.
    drop(ManuallyDrop::into_inner(unsafe { lent(data) }));
}

#[inline]
fn wake_task(task: &TaskRef) {
    let head = task.head();
    // On the loop's own thread, while the loop runs: no atomic, no lock, no system call.
    if event_loop::schedule_here(head.loop_id, task.as_ptr()) {
        return;
    }
    // Releases what this thread wrote before, see `collected`.
    if !head.remotely_queued.swap(true, Ordering::AcqRel) {
        head.remote.wake(task.clone());
    }
}
