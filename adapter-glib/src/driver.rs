//! What is behind a runtime's one source: an epoll descriptor that watches every socket, a heap of timers, and the tasks
//! that are to run.
//!
//! A turn asks the kernel what has happened, wakes whom that concerns, and runs tasks until there are none, or until it
//! has taken long enough that a window might have to be drawn. No lock is held while a waker or a task runs, or is
//! dropped: each may come back here.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use async_task::Runnable;
use glib::{MainContext, Priority};
use hyperman_transport::Interest;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use slab::Slab;

use crate::watch::watch;

/// How long a turn runs tasks, 2 ms: an eighth of the time that there is to draw a frame.
const TURN: Duration = Duration::from_millis(2);

/// How many events one turn takes, 64. What is left makes the next one come at once.
const EVENTS: usize = 64;

const SOCKET: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) context: MainContext,
    watch: glib::Source,
    epoll: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sockets: Slab<[Direction; 2]>,
    timers: BTreeMap<TimerKey, Waker>,
    tasks: VecDeque<Runnable>,
}

/// A timer's deadline, and its number.
pub(crate) type TimerKey = (Instant, u64);

/// What is known of one direction of a socket, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    /// An attempt would block: one has, or has left nothing, and no event came since.
    pub(crate) blocked: bool,
    /// It has ended, or the connection is broken: attempts do not block, and no further event need come.
    pub(crate) ended: bool,
    pub(crate) waker: Option<Waker>,
}

impl Driver {
    pub(crate) fn new(context: MainContext, priority: Priority) -> io::Result<Arc<Self>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Arc::new_cyclic(|driver| {
            let watch = watch(&context, priority, epoll.as_fd(), driver.clone());
            Driver { context, watch, epoll, state: Mutex::default() }
        }))
    }

    /// What `f` takes out of the state is dropped by the caller, when the lock is free.
    fn locked<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    // ---------------------------------------------------------------------------------------------------------- turns

    /// How long there is nothing to do unless a socket has news; `None` for ever.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.locked(|state| match state.timers.keys().next() {
            _ if !state.tasks.is_empty() => Some(Duration::ZERO),
            first => first.map(|(deadline, _)| deadline.saturating_duration_since(Instant::now())),
        })
    }

    /// What the source does when it is dispatched.
    pub(crate) fn turn(&self) {
        let start = Instant::now();
        let woken = self.locked(|state| state.report(&self.epoll, start));
        woken.into_iter().for_each(Waker::wake);
        while let Some(task) = self.locked(|state| state.tasks.pop_front()) {
            task.run();
            if start.elapsed() >= TURN {
                break;
            }
        }
    }

    /// Lets a task run, in the turn that runs or in the next one.
    pub(crate) fn schedule(&self, task: Runnable) {
        self.locked(|state| state.tasks.push_back(task));
        self.ask_again();
    }

    /// The thread that runs the context asks before it waits; if it is another one, it may be waiting by now.
    fn ask_again(&self) {
        if !self.context.is_owner() {
            self.context.wakeup();
        }
    }

    // -------------------------------------------------------------------------------------------------------- sockets

    pub(crate) fn register(&self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.locked(|state| {
            let place = state.sockets.vacant_entry();
            let key = place.key();
            epoll::add(&self.epoll, socket, epoll::EventData::new_u64(key as u64), SOCKET)?;
            place.insert(Default::default());
            Ok(key)
        })
    }

    pub(crate) fn deregister(&self, key: usize, socket: BorrowedFd<'_>) {
        drop(self.locked(|state| {
            // It can only fail for a socket that is not registered.
            let _ = epoll::delete(&self.epoll, socket);
            state.sockets.try_remove(key)
        }));
    }

    /// Looks at a direction of a registered socket, with the lock held.
    #[expect(clippy::indexing_slicing, reason = "a key is a source's own until that is dropped")]
    pub(crate) fn with<T>(&self, key: usize, interest: Interest, f: impl FnOnce(&mut Direction) -> T) -> T {
        self.locked(|state| {
            let [read, write] = &mut state.sockets[key];
            f(if interest == Interest::Read { read } else { write })
        })
    }

    // --------------------------------------------------------------------------------------------------------- timers

    /// Has `waker` woken at the time of `key`, instead of the waker that was there.
    pub(crate) fn wake_at(&self, key: TimerKey, waker: &Waker) {
        drop(self.locked(|state| state.timers.insert(key, waker.clone())));
        self.ask_again();
    }

    pub(crate) fn cancel(&self, key: TimerKey) {
        drop(self.locked(|state| state.timers.remove(&key)));
    }
}

impl Drop for Driver {
    /// The source is gone before its descriptor closes.
    fn drop(&mut self) {
        self.watch.destroy();
    }
}

impl State {
    /// Notes what has happened; who waited for it.
    fn report(&mut self, epoll: &OwnedFd, now: Instant) -> Vec<Waker> {
        let mut woken = Vec::new();
        let mut events =
            [epoll::Event { flags: EventFlags::empty(), data: epoll::EventData::new_u64(0) }; EVENTS];
        // It does not wait, so nothing interrupts it.
        let count = epoll::wait(epoll, &mut events, Some(&Timespec::default())).unwrap_or(0);
        for event in events.iter().take(count) {
            let (key, flags) = (event.data.u64(), event.flags);
            let Some([read, write]) = self.sockets.get_mut(key as usize) else { continue };
            let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            read.report(
                flags.contains(EventFlags::IN),
                broken | flags.contains(EventFlags::RDHUP),
                &mut woken,
            );
            write.report(flags.contains(EventFlags::OUT), broken, &mut woken);
        }
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= now) {
            woken.push(first.remove());
        }
        woken
    }
}

impl Direction {
    fn report(&mut self, ready: bool, ended: bool, woken: &mut Vec<Waker>) {
        self.ended |= ended;
        if ready || ended {
            self.blocked = false;
            woken.extend(self.waker.take());
        }
    }
}
