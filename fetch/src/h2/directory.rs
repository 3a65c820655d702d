//! The HTTP/2 connections of a client, by their whole identity (S42), and who is about to make one.
//!
//! Many requests to an origin that is not connected yet wait for the first of them to connect: what the server speaks is
//! known then, and if that is HTTP/2 one connection carries them all.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyperman_transport::Runtime;

use crate::h2::hub::Shared;
use crate::pool::{Key, PoolLimits};

/// How often all connections are looked at for those that are idle for too long.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Directory<R: Runtime> {
    limits: PoolLimits,
    listed: Mutex<Listed<R>>,
}

struct Listed<R: Runtime> {
    entries: HashMap<Key, Entry<R>, RandomState>,
    swept: Option<Instant>,
}

struct Entry<R: Runtime> {
    current: Option<Arc<Shared<R>>>,
    /// Somebody connects.
    ticket: Option<Arc<Ticket>>,
    /// The server chose HTTP/1.1 when it was asked last.
    http1: bool,
}

/// What there is for a request.
pub(super) enum Found<R: Runtime> {
    /// A connection.
    Shared(Arc<Shared<R>>),
    /// The server speaks HTTP/1.1.
    Http1,
    /// Somebody else connects: wait for it, then look again.
    Wait(Arc<Ticket>),
    /// Nobody connects yet: whoever asked is the one.
    Connect(Promise<R>),
}

impl<R: Runtime> Directory<R> {
    pub(crate) fn shared(limits: PoolLimits) -> Arc<Self> {
        let listed = Listed { entries: HashMap::default(), swept: None };
        Arc::new(Directory { limits, listed: Mutex::new(listed) })
    }

    /// What there is for a request with this identity.
    pub(super) fn find(self: &Arc<Self>, key: &Key, now: Instant) -> Found<R> {
        loop {
            let (found, _dropped) = {
                let mut listed = self.lock();
                let dropped = listed.sweep(&self.limits, now);
                (listed.find(self, key), dropped)
            };
            match found {
                Found::Shared(shared) if !self.limits.is_over(&shared, now) && shared.is_open(now) => {
                    return Found::Shared(shared);
                }
                Found::Shared(shared) => self.remove(&shared),
                found => return found,
            }
        }
    }

    /// A new connection, which takes the place of an earlier one.
    pub(super) fn put(&self, shared: &Arc<Shared<R>>) {
        let _dropped = {
            let mut listed = self.lock();
            let entry = listed.entry(&shared.key);
            entry.http1 = false;
            let earlier = entry.current.replace(shared.clone());
            (earlier, listed.make_room(&self.limits))
        };
    }

    /// The server speaks HTTP/1.1.
    pub(super) fn note_http1(&self, key: &Key) {
        self.lock().entry(key).http1 = true;
    }

    /// Nobody is on this connection any more; it goes where it is not kept.
    pub(super) fn left(&self, shared: &Arc<Shared<R>>) {
        if self.limits.per_host == 0 || self.limits.total == 0 || shared.is_spent() {
            self.remove(shared);
        }
    }

    /// Forgets a connection; whoever is on it stays.
    pub(super) fn remove(&self, shared: &Arc<Shared<R>>) {
        let mut listed = self.lock();
        let entry = listed.entries.get_mut(&shared.key);
        let _dropped = entry
            .and_then(|entry| entry.current.take_if(|current| Arc::ptr_eq(current, shared)))
            .inspect(|_| drop(listed));
    }

    /// Closes the connections that nobody uses.
    pub(crate) fn clear(&self) {
        let _dropped: Vec<Arc<Shared<R>>> = {
            let mut listed = self.lock();
            let entries = listed.entries.values_mut();
            entries
                .filter_map(|entry| entry.current.take_if(|shared| shared.idle_since().is_some()))
                .collect()
        };
    }

    fn lock(&self) -> MutexGuard<'_, Listed<R>> {
        // Nothing panics while it holds the lock.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Runtime> Listed<R> {
    fn entry(&mut self, key: &Key) -> &mut Entry<R> {
        // Looked up first: a key is cloned only once.
        if !self.entries.contains_key(key) {
            self.entries.insert(key.clone(), Entry { current: None, ticket: None, http1: false });
        }
        self.entries.entry(key.clone()).or_insert(Entry { current: None, ticket: None, http1: false })
    }

    fn find(&mut self, directory: &Arc<Directory<R>>, key: &Key) -> Found<R> {
        let entry = self.entry(key);
        if let Some(current) = &entry.current {
            return Found::Shared(current.clone());
        }
        if entry.http1 {
            return Found::Http1;
        }
        if let Some(ticket) = &entry.ticket {
            return Found::Wait(ticket.clone());
        }
        let ticket = Arc::<Ticket>::default();
        entry.ticket = Some(ticket.clone());
        Found::Connect(Promise { directory: directory.clone(), key: key.clone(), ticket, failed: false })
    }

    fn sweep(&mut self, limits: &PoolLimits, now: Instant) -> Vec<Arc<Shared<R>>> {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < SWEEP_EVERY) {
            return Vec::new();
        }
        self.swept = Some(now);
        let entries = self.entries.values_mut();
        let dropped =
            entries.filter_map(|entry| entry.current.take_if(|shared| limits.is_over(shared, now))).collect();
        // What is known of a server that speaks HTTP/1.1 is worth keeping: it saves others from waiting.
        self.entries.retain(|_, entry| entry.current.is_some() || entry.ticket.is_some() || entry.http1);
        dropped
    }

    /// Takes out the connection that was idle for longest, where there are too many.
    fn make_room(&mut self, limits: &PoolLimits) -> Option<Arc<Shared<R>>> {
        if self.entries.values().filter(|entry| entry.current.is_some()).count() <= limits.total {
            return None;
        }
        let idle = self.entries.values_mut().filter_map(|entry| {
            let since = entry.current.as_ref()?.idle_since().filter(|_| entry.ticket.is_none())?;
            Some((since, entry))
        });
        idle.min_by_key(|(since, _)| *since).and_then(|(_, entry)| entry.current.take())
    }
}

impl PoolLimits {
    /// Whether a connection is idle for too long or too old.
    fn is_over<R: Runtime>(&self, shared: &Shared<R>, now: Instant) -> bool {
        let age = now.saturating_duration_since(shared.opened);
        self.lifetime.is_some_and(|lifetime| age >= lifetime)
            || shared.idle_since().is_some_and(|since| now.saturating_duration_since(since) >= self.idle)
    }
}

/// What those wait for who do not connect themselves.
#[derive(Default)]
pub(super) struct Ticket {
    state: Mutex<(Option<Outcome>, Vec<Waker>)>,
}

/// What became of an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is worth looking again.
    Over,
    /// It failed; others try for themselves.
    Failed,
}

impl Ticket {
    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (outcome, waiting) = &mut *state;
        if let Some(outcome) = outcome {
            return Poll::Ready(*outcome);
        }
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn tell(&self, outcome: Outcome) {
        let waiting = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.0 = Some(outcome);
            std::mem::take(&mut state.1)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Whoever has it connects. When it is dropped the others look again: at what was put into the directory, or, where it
/// was dropped because nobody wanted the connection any more, for who is next.
pub(super) struct Promise<R: Runtime> {
    directory: Arc<Directory<R>>,
    key: Key,
    ticket: Arc<Ticket>,
    failed: bool,
}

impl<R: Runtime> Promise<R> {
    /// There is no connection.
    pub(super) fn fail(mut self) {
        self.failed = true;
    }
}

impl<R: Runtime> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(entry) = self.directory.lock().entries.get_mut(&self.key) {
            entry.ticket = None;
        }
        self.ticket.tell(if self.failed { Outcome::Failed } else { Outcome::Over });
    }
}
