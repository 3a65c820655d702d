//! Idle connections, looked after: what servers say on them is heard though nobody asks anything.
//!
//! A client starts no tasks of its own, and a waker that did the work itself would do it inside of whatever loop wakes it.
//! So it is a future that whoever wants it starts, on the client's loop.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyperman_transport::{Runtime, Timer};

use crate::client::Inner;
use crate::connection::Connection;
use crate::h2::Directory;
use crate::pool::Pool;

/// How long it rests between two looks, 50 ms: under load connections become idle and busy again all the time.
const REST: Duration = Duration::from_millis(50);

/// See [`Client::attend`](crate::Client::attend).
pub(crate) struct Attend<R: Runtime> {
    pool: Weak<Pool<Box<Connection<R>>>>,
    directory: Weak<Directory<R>>,
    runtime: R,
    timer: R::Timer,
    rested: Option<Instant>,
}

impl<R: Runtime> Attend<R> {
    pub(crate) fn new(client: &Inner<R>) -> Self {
        Attend {
            pool: Arc::downgrade(&client.pool),
            directory: Arc::downgrade(&client.multiplexed),
            runtime: client.runtime.clone(),
            timer: client.runtime.timer(),
            rested: None,
        }
    }

    /// Ready once the client is gone, with the exchanges on it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(next) = self.look(cx) else { return Poll::Ready(()) };
            match next {
                Some(next) if self.timer.poll_deadline(next, cx).is_ready() => {}
                _ => return Poll::Pending,
            }
        }
    }

    /// One look, unless it rests: when the next one is due, if nothing happens before. `None` where the client is gone.
    fn look(&mut self, cx: &mut Context<'_>) -> Option<Option<Instant>> {
        let (pool, directory) = (self.pool.upgrade()?, self.directory.upgrade()?);
        // First the wakers, then the look: what comes meanwhile wakes again.
        pool.attend(cx.waker());
        directory.attend(cx.waker());
        let now = self.runtime.now();
        if let Some(rested) = self.rested.filter(|rested| now < *rested) {
            return Some(Some(rested));
        }
        self.rested = now.checked_add(REST);
        let pooled = pool.look(now, |connection| connection.is_silent(cx));
        let shared = directory.look(now, cx.waker());
        let next = pooled.into_iter().chain(shared).min();
        Some(next.max(self.rested.filter(|_| next.is_some())))
    }
}

/// Who is to be told that a connection became idle, or that there will be none any more.
#[derive(Debug, Default)]
pub(crate) struct Attendant(Option<Waker>);

impl Attendant {
    pub(crate) fn wait(&mut self, waker: &Waker) {
        match &mut self.0 {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// To be woken once no lock is held.
    #[inline]
    pub(crate) fn call(&mut self) -> Option<Waker> {
        self.0.take()
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}
