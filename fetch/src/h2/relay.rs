//! Who waits on a connection, and the waker that socket and timer hold in their place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// See the words of [`super`].
#[derive(Default)]
pub(super) struct Relay {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Whether something may be ready since the last turn began.
    rung: bool,
    seats: Vec<Option<Waker>>,
    /// Who looks after the connection while nobody uses it.
    attendant: Option<Waker>,
    free: Vec<usize>,
}

impl Relay {
    /// A place for one waiter.
    pub(super) fn seat(&self) -> usize {
        let mut waiting = self.lock();
        if let Some(seat) = waiting.free.pop() {
            return seat;
        }
        waiting.seats.push(None);
        waiting.seats.len() - 1
    }

    /// Gives a place back.
    pub(super) fn give_back(&self, seat: usize) {
        let _waker = self.swap(seat, None);
        self.lock().free.push(seat);
    }

    /// Whoever has this place wants to be woken.
    pub(super) fn wait(&self, seat: usize, waker: &Waker) {
        let _old = self.swap(seat, Some(waker.clone()));
    }

    /// The waker in a place, which waits no longer.
    pub(super) fn call(&self, seat: usize) -> Option<Waker> {
        self.swap(seat, None)
    }

    /// Whoever looks after the connection is to be woken by the next ring.
    pub(super) fn attend(&self, waker: &Waker) {
        let _old = self.lock().attendant.replace(waker.clone());
    }

    /// Whether it has rung since it was asked last.
    pub(super) fn take_rung(&self) -> bool {
        std::mem::take(&mut self.lock().rung)
    }

    /// Notes that something may be ready, and wakes everybody.
    pub(super) fn ring(&self) {
        let attendant = {
            let mut waiting = self.lock();
            waiting.rung = true;
            waiting.attendant.take()
        };
        if let Some(attendant) = attendant {
            attendant.wake();
        }
        self.wake_all();
    }

    /// Wakes everybody. A waker may run anything, so none is called or dropped under the lock.
    pub(super) fn wake_all(&self) {
        let woken: Vec<Waker> = self.lock().seats.iter_mut().filter_map(Option::take).collect();
        woken.into_iter().for_each(Waker::wake);
    }

    fn swap(&self, seat: usize, waker: Option<Waker>) -> Option<Waker> {
        let mut waiting = self.lock();
        waiting.seats.get_mut(seat).and_then(|place| std::mem::replace(place, waker))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_ring_wakes_everybody_who_waits_and_is_remembered_for_whoever_comes_next() {
        let relay = Arc::new(Relay::default());
        let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::default()).collect();
        let seats: Vec<usize> = counts.iter().map(|_| relay.seat()).collect();
        for (seat, count) in seats.iter().zip(&counts) {
            relay.wait(*seat, &Waker::from(count.clone()));
        }
        // One leaves; its place goes to somebody else, who does not wait yet.
        relay.give_back(1);
        assert_eq!(relay.seat(), 1);
        assert!(!relay.take_rung());
        Waker::from(relay.clone()).wake();
        let woken: Vec<usize> = counts.iter().map(|count| count.0.load(Ordering::SeqCst)).collect();
        assert_eq!(woken, [1, 0, 1]);
        assert!(relay.take_rung());
        assert!(!relay.take_rung());
        assert!(relay.call(0).is_none(), "who was woken does not wait");
    }
}
