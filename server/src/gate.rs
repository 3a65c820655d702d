//! How many connections are open, and the word that they shall end.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// What the connections of a server are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    /// Go on.
    Serve,
    /// End as soon as nothing is under way.
    Drain,
    /// End now.
    Cut,
}

/// See the module's words.
#[derive(Debug)]
pub(crate) struct Gate {
    word: AtomicU8,
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The wakers of the open connections by their tickets.
    connections: slab::Slab<Option<Waker>>,
    /// The accept loop, when it waits for room, for the last connection to end or for the word to change.
    server: Option<Waker>,
}

/// A connection's place in the gate. Given back with [`Gate::leave`].
#[derive(Debug)]
pub(crate) struct Ticket(usize);

impl Gate {
    pub(crate) fn new(limit: usize) -> Self {
        Gate { word: AtomicU8::new(Word::Serve as u8), limit, state: Mutex::default() }
    }

    /// The word that is out now.
    #[inline]
    pub(crate) fn word(&self) -> Word {
        match self.word.load(Ordering::Relaxed) {
            0 => Word::Serve,
            1 => Word::Drain,
            _ => Word::Cut,
        }
    }

    /// Gives out a word, which reaches every connection. A word cannot be taken back.
    pub(crate) fn say(&self, word: Word) {
        let mut state = self.lock();
        self.word.fetch_max(word as u8, Ordering::Relaxed);
        let mut wakers: Vec<Waker> =
            state.connections.iter_mut().filter_map(|(_, waker)| waker.clone()).collect();
        wakers.extend(state.server.take());
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether one more connection may be accepted; if not, the caller is woken when one ends.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        let room = state.connections.len() < self.limit;
        if !room {
            state.server = Some(cx.waker().clone());
        }
        room
    }

    /// Whether no connection is open any more; if some are, the caller is woken when the last one ends.
    pub(crate) fn poll_empty(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        let empty = state.connections.is_empty();
        if !empty {
            state.server = Some(cx.waker().clone());
        }
        empty
    }

    /// Registers the accept loop to hear the word.
    pub(crate) fn watch(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        match &mut state.server {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// A connection comes in.
    pub(crate) fn enter(&self) -> Ticket {
        Ticket(self.lock().connections.insert(None))
    }

    /// A connection says how it is woken. It looks at [`word`](Self::word) afterwards, so that none is missed.
    pub(crate) fn register(&self, ticket: &Ticket, cx: &Context<'_>) {
        if let Some(waker) = self.lock().connections.get_mut(ticket.0) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// A connection has ended.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        let mut state = self.lock();
        let was_full = state.connections.len() >= self.limit;
        let waker = state.connections.try_remove(ticket.0);
        let server = if was_full || state.connections.is_empty() { state.server.take() } else { None };
        drop(state);
        drop(waker);
        if let Some(server) = server {
            server.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of others runs under this lock, so what a panic left behind is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
