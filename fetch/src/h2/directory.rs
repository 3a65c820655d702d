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

use crate::attend::Attendant;
use crate::h2::hub::{Shared, Standing};
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
    /// Who wants to know that a connection came or became idle.
    attendant: Attendant,
}

struct Entry<R: Runtime> {
    /// As a rule there is one. Others come where a server refuses streams on it.
    lines: Vec<Arc<Shared<R>>>,
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
        let listed = Listed { entries: HashMap::default(), swept: None, attendant: Attendant::default() };
        Arc::new(Directory { limits, listed: Mutex::new(listed) })
    }

    /// What there is for a request with this identity, other than the connections that refused it: one that takes another
    /// stream at once, or else one where it has to wait.
    pub(super) fn find(self: &Arc<Self>, key: &Key, now: Instant, refused: &[Arc<Shared<R>>]) -> Found<R> {
        loop {
            let (lines, _dropped) = {
                let mut listed = self.lock();
                let dropped = listed.sweep(&self.limits, now);
                (listed.entry(key).lines.clone(), dropped)
            };
            let mut full = None;
            for shared in &lines {
                let standing =
                    if self.limits.is_over(shared, now) { Standing::Gone } else { shared.standing(now) };
                match standing {
                    Standing::Gone => self.remove(shared),
                    _ if is_among(refused, shared) => {}
                    Standing::Free => return Found::Shared(shared.clone()),
                    Standing::Full => full = full.or(Some(shared)),
                }
            }
            if let Some(full) = full {
                return Found::Shared(full.clone());
            }
            let mut listed = self.lock();
            let entry = listed.entry(key);
            if !entry.lines.iter().any(|line| !is_among(&lines, line)) {
                return entry.otherwise(self, key);
            }
        }
    }

    /// A new connection.
    pub(super) fn put(&self, shared: &Arc<Shared<R>>) {
        let _dropped = {
            let mut listed = self.lock();
            let entry = listed.entry(&shared.key);
            entry.http1 = false;
            entry.lines.push(shared.clone());
            listed.make_room(&self.limits)
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
        self.call_attendant();
    }

    /// Whoever is to be told of the next connection that becomes idle.
    pub(crate) fn attend(&self, waker: &Waker) {
        self.lock().attendant.wait(waker);
    }

    fn call_attendant(&self) {
        let attendant = self.lock().attendant.call();
        if let Some(attendant) = attendant {
            attendant.wake();
        }
    }

    /// Hears what servers say on idle connections, and drops those that are over or too old. When the next one is too old,
    /// if there is one.
    pub(crate) fn look(&self, now: Instant, waker: &Waker) -> Option<Instant> {
        let lines: Vec<Arc<Shared<R>>> =
            self.lock().entries.values().flat_map(|entry| &entry.lines).cloned().collect();
        let mut next = None;
        for shared in &lines {
            if !shared.attend(now, waker) || self.limits.is_over(shared, now) {
                self.remove(shared);
            } else if let Some(since) = shared.idle_since() {
                next = next.into_iter().chain(since.checked_add(self.limits.idle)).min();
            }
        }
        next
    }

    /// Forgets a connection; whoever is on it stays.
    pub(super) fn remove(&self, shared: &Arc<Shared<R>>) {
        let _dropped: Vec<Arc<Shared<R>>> = {
            let mut listed = self.lock();
            let lines = listed.entries.get_mut(&shared.key).map(|entry| &mut entry.lines);
            lines.map_or_else(Vec::new, |lines| {
                lines.extract_if(.., |line| Arc::ptr_eq(line, shared)).collect()
            })
        };
    }

    /// Closes the connections that nobody uses.
    pub(crate) fn clear(&self) {
        let _dropped: Vec<Arc<Shared<R>>> = self.lock().extract(|line| line.idle_since().is_some());
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
            self.entries.insert(key.clone(), Entry::default());
        }
        self.entries.entry(key.clone()).or_default()
    }

    /// Takes out the connections that are like this. They are to be dropped once the lock is free.
    fn extract(&mut self, is_meant: impl Fn(&Arc<Shared<R>>) -> bool) -> Vec<Arc<Shared<R>>> {
        let entries = self.entries.values_mut();
        entries.flat_map(|entry| entry.lines.extract_if(.., |line| is_meant(line))).collect()
    }

    fn sweep(&mut self, limits: &PoolLimits, now: Instant) -> Vec<Arc<Shared<R>>> {
        if self.swept.is_some_and(|swept| now.saturating_duration_since(swept) < SWEEP_EVERY) {
            return Vec::new();
        }
        self.swept = Some(now);
        let dropped = self.extract(|line| limits.is_over(line, now));
        // What is known of a server that speaks HTTP/1.1 is worth keeping: it saves others from waiting.
        self.entries.retain(|_, entry| !entry.lines.is_empty() || entry.ticket.is_some() || entry.http1);
        dropped
    }

    /// Takes out the connection that was idle for longest, where there are too many.
    fn make_room(&mut self, limits: &PoolLimits) -> Option<Arc<Shared<R>>> {
        if self.entries.values().map(|entry| entry.lines.len()).sum::<usize>() <= limits.total {
            return None;
        }
        // Where somebody connects, what looks idle may be about to be used.
        let settled = self.entries.values().filter(|entry| entry.ticket.is_none());
        let lines = settled.flat_map(|entry| &entry.lines);
        let (_, oldest) =
            lines.filter_map(|line| Some((line.idle_since()?, line))).min_by_key(|(since, _)| *since)?;
        let oldest = oldest.clone();
        self.extract(|line| Arc::ptr_eq(line, &oldest)).pop()
    }
}

impl<R: Runtime> Entry<R> {
    /// What there is where no connection is.
    fn otherwise(&mut self, directory: &Arc<Directory<R>>, key: &Key) -> Found<R> {
        if self.http1 {
            return Found::Http1;
        }
        if let Some(ticket) = &self.ticket {
            return Found::Wait(ticket.clone());
        }
        let ticket = Arc::<Ticket>::default();
        self.ticket = Some(ticket.clone());
        Found::Connect(Promise { directory: directory.clone(), key: key.clone(), ticket, failed: false })
    }
}

impl<R: Runtime> Default for Entry<R> {
    fn default() -> Self {
        Entry { lines: Vec::new(), ticket: None, http1: false }
    }
}

fn is_among<R: Runtime>(lines: &[Arc<Shared<R>>], wanted: &Arc<Shared<R>>) -> bool {
    lines.iter().any(|line| Arc::ptr_eq(line, wanted))
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
