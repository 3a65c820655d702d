//! The loop itself: what one turn does, and the handle that tasks hold.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyperman_transport::{Interest, Runtime, Spawn};

use crate::backend::{self, Backend, Driver, Event, Key, WAKE_KEY};
use crate::join::JoinHandle;
use crate::registry::{Readiness, Registry};
use crate::remote::Remote;
use crate::run_queue::RunQueue;
use crate::source::Source;
use crate::task::{self, TaskPtr, TaskRef};
use crate::timer::{Sleep, Timer, Timers};

/// How many polls of tasks one turn makes before it asks the kernel again, 128: enough that the system call does not
/// count, few enough that sockets and timers wait for tens of microseconds at most.
const POLLS_PER_TURN: u32 = 128;

/// A timer that is due later than this need not be waited for exactly yet, 2 s: no turn takes a quarter of that.
const FAR_AWAY: Duration = Duration::from_secs(2);

/// An event loop, and the owner of everything on it. Dropping it drops its tasks.
#[derive(Debug)]
pub struct Loop {
    handle: Handle,
}

impl Loop {
    /// A loop on the best backend of this system, or the one that the environment variable `HYPERMAN_BACKEND` names.
    ///
    /// # Errors
    /// When the backend cannot be had; the text then says which ones can. Otherwise the system calls', e.g. when no
    /// descriptor is free.
    pub fn new() -> io::Result<Loop> {
        Self::over(backend::open_default()?)
    }

    /// A loop on this backend and no other.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_backend(backend: Backend) -> io::Result<Loop> {
        Self::over(backend::open(backend)?)
    }

    fn over(mut driver: Box<dyn Driver>) -> io::Result<Loop> {
        static LAST_ID: AtomicU64 = AtomicU64::new(NO_LOOP);
        let remote = Arc::new(Remote::new()?);
        let watched = remote.with_bell(|bell| {
            driver.add(bell, WAKE_KEY)?;
            driver.arm(bell, WAKE_KEY, Interest::Read)
        });
        watched.unwrap_or(Ok(()))?;
        let now = Instant::now();
        let core = Core {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            backend: driver.backend(),
            edge_triggered: driver.edge_triggered(),
            running: Cell::new(false),
            closed: Cell::new(false),
            now: Cell::new(now),
            long_wait: Cell::new(LongWait { next: now, holds_until: now, time: Duration::ZERO }),
            tasks: RunQueue::default(),
            registry: RefCell::default(),
            timers: RefCell::default(),
            driver: RefCell::new(driver),
            remote,
        };
        Ok(Loop { handle: Handle { core: Rc::new(core) } })
    }

    /// What tasks need of the loop.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs the loop until `future` is ready. Tasks that are left stay where they are, for the next call.
    ///
    /// # Panics
    /// When `future` does, when this loop runs already, and when the kernel refuses to wait, which only happens if
    /// somebody closes descriptors that are not theirs.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.core.block_on(future)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.handle.core.close();
    }
}

/// Runs one future on a loop of its own, here and now: `future` makes it, given a handle of that loop.
///
/// It may be called anywhere that may block: also in a task of another loop or of another runtime, which it holds up.
///
/// # Errors
/// When a loop cannot be had, see [`Loop::new`].
pub fn block_on<F: Future>(future: impl FnOnce(Handle) -> F) -> io::Result<F::Output> {
    let event_loop = Loop::new()?;
    let future = future(event_loop.handle());
    Ok(event_loop.block_on(future))
}

/// A loop, as its tasks see it. Cheap to clone, and bound to the loop's thread.
#[derive(Clone)]
pub struct Handle {
    core: Rc<Core>,
}

impl Handle {
    /// Starts a task and gives something to wait for its end with, or to abort it by. When the loop has ended, the
    /// future is dropped at once.
    pub fn spawn_with_handle<F: Future + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        JoinHandle::new(self.clone(), future)
    }

    /// Ready once `time` has passed since this call.
    pub fn sleep(&self, time: Duration) -> Sleep {
        Sleep::new(self.timer(), time)
    }

    /// What the loop waits with.
    pub fn backend(&self) -> Backend {
        self.core.backend
    }

    /// How many tasks the loop has that have not ended; the future given to `block_on` counts as one.
    pub fn tasks(&self) -> usize {
        self.core.tasks.alive()
    }

    /// `None` when the loop has ended; the future is dropped then.
    pub(crate) fn spawn_task<F: Future<Output = ()> + 'static>(&self, future: F) -> Option<TaskRef> {
        self.core.spawn(future)
    }

    pub(crate) fn abort(&self, task: &TaskRef) {
        self.core.abort(task);
    }

    #[inline]
    pub(crate) fn loop_time(&self) -> Instant {
        self.core.now()
    }

    #[inline]
    pub(crate) fn timers<T>(&self, f: impl FnOnce(&mut Timers) -> T) -> T {
        f(&mut self.core.timers.borrow_mut())
    }

    pub(crate) fn register(&self, fd: BorrowedFd<'_>) -> io::Result<(Key, Rc<Readiness>)> {
        let core = &*self.core;
        let (key, readiness) = core.registry.borrow_mut().insert().ok_or(io::ErrorKind::OutOfMemory)?;
        if let Err(error) = core.driver.borrow_mut().add(fd, key) {
            core.registry.borrow_mut().remove(key);
            return Err(error);
        }
        Ok((key, readiness))
    }

    pub(crate) fn deregister(&self, fd: BorrowedFd<'_>, key: Key) {
        self.core.driver.borrow_mut().remove(fd, key);
        let readiness = self.core.registry.borrow_mut().remove(key);
        drop(readiness);
    }

    /// Whether the kernel reports every change by itself.
    #[inline]
    pub(crate) fn is_edge_triggered(&self) -> bool {
        self.core.edge_triggered
    }

    /// Asks for a report, where the kernel does not report by itself.
    #[inline]
    pub(crate) fn arm(&self, fd: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        if self.core.edge_triggered {
            return Ok(());
        }
        self.core.driver.borrow_mut().arm(fd, key, interest)
    }
}

impl Runtime for Handle {
    type Source = Source;
    type Timer = Timer;

    fn source(&self, socket: OwnedFd) -> io::Result<Source> {
        Source::new(self.clone(), socket)
    }

    fn timer(&self) -> Timer {
        Timer::new(self.clone())
    }

    fn now(&self) -> Instant {
        self.core.now()
    }
}

impl<F: Future<Output = ()> + 'static> Spawn<F> for Handle {
    /// When the loop has ended, the future is dropped at once.
    fn spawn(&self, future: F) {
        drop(self.core.spawn(future));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("loop", &self.core.id).finish_non_exhaustive()
    }
}

/// What a loop is made of. Nothing that is borrowed here stays borrowed while code that is not ours runs.
struct Core {
    /// Never given twice in a process, unlike the address.
    id: u64,
    backend: Backend,
    edge_triggered: bool,
    running: Cell<bool>,
    closed: Cell<bool>,
    now: Cell<Instant>,
    long_wait: Cell<LongWait>,
    tasks: RunQueue,
    registry: RefCell<Registry>,
    timers: RefCell<Timers>,
    driver: RefCell<Box<dyn Driver>>,
    remote: Arc<Remote>,
}

impl Core {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _running = Running::start(self);
        self.now.set(Instant::now());
        let mut future = pin!(future);
        // The future stays here, and a task stands for it in the queue: its waker is the future's.
        let woken = Rc::new(Cell::new(true));
        let Some(stand_in) = self.spawn(StandIn { woken: Rc::clone(&woken) }) else {
            panic!("a loop that has ended cannot run")
        };
        let _stand_in = AbortOnDrop { core: self, task: &stand_in };
        let waker = task::waker(&stand_in);
        let mut cx = Context::from_waker(&waker);
        let mut events = Vec::new();
        loop {
            let mut budget = POLLS_PER_TURN;
            loop {
                if woken.replace(false) {
                    if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                        return output;
                    }
                    budget = budget.saturating_sub(1);
                }
                self.tasks.run(&mut budget);
                if budget == 0 || !woken.get() {
                    break;
                }
            }
            self.turn(woken.get() || !self.tasks.is_empty(), &mut events);
        }
    }

    /// Asks the kernel, and passes on what it says. Does not wait if there is `more_to_run`. `events` is storage.
    fn turn(&self, more_to_run: bool, events: &mut Vec<Event>) {
        let timeout = if more_to_run { Some(Duration::ZERO) } else { self.until_next_timer() };
        if let Err(error) = self.driver.borrow_mut().wait(timeout, events) {
            panic!("{} refuses to wait: {error}", self.backend);
        }
        let now = Instant::now();
        self.now.set(now);
        for event in events.iter() {
            if event.key == WAKE_KEY {
                self.collect_remote();
                continue;
            }
            let readiness = self.registry.borrow().get(event.key);
            if let Some(readiness) = readiness {
                readiness.report(event.ready);
            }
        }
        events.clear();
        self.fire_timers(now);
    }

    /// How long there is nothing to do; `None` for ever.
    #[inline]
    fn until_next_timer(&self) -> Option<Duration> {
        let next = self.timers.borrow().next()?;
        let long = self.long_wait.get();
        if long.next == next && self.now.get() < long.holds_until {
            return Some(long.time);
        }
        Some(self.measure(next))
    }

    /// Most turns of most servers have the same far timer before them. For those the wait is worked out once in a
    /// while, too short by more than the while, so that it costs neither a look at the clock nor arithmetic each time.
    #[cold]
    fn measure(&self, next: Instant) -> Duration {
        let now = Instant::now();
        let left = next.saturating_duration_since(now);
        if left <= FAR_AWAY {
            return left;
        }
        let time = left - FAR_AWAY / 2;
        self.long_wait.set(LongWait { next, holds_until: now + FAR_AWAY / 4, time });
        time
    }

    fn fire_timers(&self, now: Instant) {
        if self.timers.borrow().next().is_none_or(|next| next > now) {
            return;
        }
        loop {
            let due = self.timers.borrow_mut().pop_due(now);
            let Some(due) = due else { return };
            due.fire();
        }
    }

    /// Queues the tasks that other threads have woken.
    fn collect_remote(&self) {
        let mut woken = Vec::new();
        self.remote.collect(&mut woken);
        if !self.edge_triggered {
            let armed =
                self.remote.with_bell(|bell| self.driver.borrow_mut().arm(bell, WAKE_KEY, Interest::Read));
            if let Some(Err(error)) = armed {
                panic!("{} refuses to watch: {error}", self.backend);
            }
        }
        for task in woken {
            task.collected();
            self.tasks.push(task.as_ptr());
        }
    }

    fn spawn<F: Future<Output = ()> + 'static>(&self, future: F) -> Option<TaskRef> {
        if self.closed.get() {
            return None;
        }
        let task = TaskRef::new(future, self.id, Arc::clone(&self.remote));
        self.tasks.insert(task.clone());
        Some(task)
    }

    /// The task's future is dropped when the task's turn comes, not here: it may be what is running now.
    fn abort(&self, task: &TaskRef) {
        task.abort();
        self.tasks.push(task.as_ptr());
    }

    #[inline]
    fn now(&self) -> Instant {
        if self.running.get() { self.now.get() } else { Instant::now() }
    }

    /// Drops all tasks. Sources and timers that are held elsewhere keep what they need, and wake nobody any more.
    fn close(&self) {
        self.closed.set(true);
        {
            // Destructors may wake tasks of this loop; here is where they are.
            let _here = Here::enter(self);
            self.tasks.close();
        }
        self.remote.with_bell(|bell| self.driver.borrow_mut().remove(bell, WAKE_KEY));
        self.remote.close();
    }
}

/// A wait that is good for many turns.
#[derive(Clone, Copy)]
struct LongWait {
    /// For the timer that is due then.
    next: Instant,
    holds_until: Instant,
    time: Duration,
}

/// The future of `block_on` as the run queue knows it.
struct StandIn {
    woken: Rc<Cell<bool>>,
}

impl Future for StandIn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.woken.set(true);
        Poll::Pending
    }
}

struct AbortOnDrop<'a> {
    core: &'a Core,
    task: &'a TaskRef,
}

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.core.abort(self.task);
    }
}

/// The time in which a loop runs.
struct Running<'a> {
    core: &'a Core,
    _here: Here,
}

impl<'a> Running<'a> {
    fn start(core: &'a Core) -> Self {
        assert!(
            !core.running.replace(true),
            "this loop runs already: block_on was called in one of its tasks"
        );
        Running { core, _here: Here::enter(core) }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.core.running.set(false);
    }
}

/// No loop has this number.
const NO_LOOP: u64 = 0;

thread_local! {
    /// The loop that runs on this thread, the innermost if they are nested: its number, and where it is.
    static HERE: Cell<(u64, *const Core)> = const { Cell::new((NO_LOOP, std::ptr::null())) };
}

/// While it lives, the loop is the one that runs on this thread.
struct Here {
    outer: (u64, *const Core),
}

impl Here {
    fn enter(core: &Core) -> Self {
        Here { outer: HERE.replace((core.id, core)) }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.set(self.outer);
    }
}

/// Queues a task of loop `id`, if that loop is the one that runs on this thread; else says no.
#[inline]
pub(crate) fn schedule_here(id: u64, task: TaskPtr) -> bool {
    let (here, core) = HERE.get();
    if here != id {
        return false;
    }
    // SAFETY: the number is that of a loop only between `enter` and the drop of `Here`, both in functions that borrow
    // the loop; so it is alive, and this is its thread.
    let core = unsafe { &*core };
    core.tasks.push(task);
    true
}
