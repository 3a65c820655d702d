//! Many futures inside one, each woken by itself: the exchanges of an HTTP/2 connection.
//!
//! A connection with a hundred streams must not poll a hundred handlers because one of them has something to say. Each
//! berth has a waker of its own, which notes the berth and wakes the connection. Berths and their storage are used
//! again, so that a stream whose handler is ready at once allocates nothing.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// How many times a berth that rings again and again is named in one turn. More is no news from elsewhere: its future
/// wakes itself to let others go first, and some will not get on before that has happened, as under tokio's budget for a
/// task.
const RINGS_PER_TURN: u32 = 8;

/// See the module's words. `T` is what lies in a berth, pinned there.
pub(crate) struct Fleet<T> {
    berths: Vec<Berth<T>>,
    free: Vec<usize>,
    calls: Arc<Mutex<Calls>>,
    answering: Vec<usize>,
    /// Those that have rung too often in this turn.
    postponed: Vec<usize>,
    turn: u64,
}

struct Berth<T> {
    content: Pin<Box<T>>,
    bell: Arc<Bell>,
    waker: Waker,
    taken: bool,
    /// When it was named last, and how often since then.
    turn: u64,
    rings: u32,
}

/// Which berths have rung since the connection last looked.
#[derive(Debug, Default)]
struct Calls {
    rung: Vec<usize>,
    connection: Option<Waker>,
}

struct Bell {
    berth: usize,
    rung: AtomicBool,
    calls: Arc<Mutex<Calls>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut calls = lock(&self.calls);
        calls.rung.push(self.berth);
        let connection = calls.connection.take();
        drop(calls);
        if let Some(connection) = connection {
            connection.wake();
        }
    }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Fleet<T> {
    /// A fleet without a berth.
    pub(crate) fn new() -> Self {
        Fleet {
            berths: Vec::new(),
            free: Vec::new(),
            calls: Arc::default(),
            answering: Vec::new(),
            postponed: Vec::new(),
            turn: 0,
        }
    }

    /// Takes a berth, which holds what the last one left there, or `empty()` if it is new. It counts as rung.
    pub(crate) fn take(&mut self, empty: impl FnOnce() -> T) -> usize {
        let berth = self.free.pop().unwrap_or_else(|| {
            let berth = self.berths.len();
            let bell = Arc::new(Bell { berth, rung: AtomicBool::new(false), calls: Arc::clone(&self.calls) });
            let waker = Waker::from(Arc::clone(&bell));
            let content = Box::pin(empty());
            self.berths.push(Berth { content, bell, waker, taken: false, turn: 0, rings: 0 });
            berth
        });
        if let Some(place) = self.berths.get_mut(berth) {
            place.taken = true;
        }
        berth
    }

    /// Gives a berth back; its content stays there for the next one, so it must be emptied first.
    pub(crate) fn give_back(&mut self, berth: usize) {
        if let Some(place) = self.berths.get_mut(berth)
            && place.taken
        {
            place.taken = false;
            self.free.push(berth);
        }
    }

    /// What lies in a berth, and the context to poll it in.
    pub(crate) fn get(&mut self, berth: usize) -> Option<(Pin<&mut T>, Context<'_>)> {
        let place = self.berths.get_mut(berth).filter(|place| place.taken)?;
        Some((place.content.as_mut(), Context::from_waker(&place.waker)))
    }

    /// A turn of the connection begins, in which every berth may be named again.
    pub(crate) fn begin_turn(&mut self) {
        self.turn += 1;
        self.answering.append(&mut self.postponed);
    }

    /// Which berths have rung since the last call. From here on the next ring wakes `cx`, and so does what is left for
    /// the next turn.
    pub(crate) fn rung(&mut self, cx: &Context<'_>) -> Option<usize> {
        loop {
            if self.answering.is_empty() {
                let mut calls = lock(&self.calls);
                if calls.rung.is_empty() {
                    match &mut calls.connection {
                        Some(waker) => waker.clone_from(cx.waker()),
                        none => *none = Some(cx.waker().clone()),
                    }
                    drop(calls);
                    if !self.postponed.is_empty() {
                        cx.waker().wake_by_ref();
                    }
                    return None;
                }
                std::mem::swap(&mut self.answering, &mut calls.rung);
            }
            while let Some(berth) = self.answering.pop() {
                let Some(place) = self.berths.get_mut(berth) else { continue };
                if !place.taken {
                    place.bell.rung.store(false, Ordering::Release);
                    continue;
                }
                if place.turn != self.turn {
                    (place.turn, place.rings) = (self.turn, 0);
                }
                place.rings += 1;
                if place.rings > RINGS_PER_TURN {
                    self.postponed.push(berth);
                    continue;
                }
                place.bell.rung.store(false, Ordering::Release);
                return Some(berth);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_the_berths_that_rang_are_named_and_the_connection_is_woken_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let mut fleet = Fleet::new();
        let berths: Vec<usize> = (0..4).map(|_| fleet.take(|| ())).collect();
        let wakers: Vec<Waker> =
            berths.iter().map(|&berth| fleet.get(berth).unwrap().1.waker().clone()).collect();
        assert_eq!(fleet.rung(&cx), None);
        wakers[2].wake_by_ref();
        wakers[2].wake_by_ref();
        wakers[0].wake_by_ref();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        let mut rung = [fleet.rung(&cx), fleet.rung(&cx)];
        rung.sort();
        assert_eq!(rung, [Some(0), Some(2)]);
        assert_eq!(fleet.rung(&cx), None);
        wakers[1].wake_by_ref();
        fleet.give_back(1);
        assert_eq!(fleet.rung(&cx), None, "a berth that was given back rings for nobody");
        assert_eq!(fleet.take(|| ()), 1);
    }

    #[test]
    fn a_berth_that_rings_without_end_is_left_for_the_next_turn() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let mut fleet = Fleet::new();
        let berth = fleet.take(|| ());
        let bell = fleet.get(berth).unwrap().1.waker().clone();
        for _ in 0..3 {
            fleet.begin_turn();
            bell.wake_by_ref();
            for _ in 0..RINGS_PER_TURN {
                assert_eq!(fleet.rung(&cx), Some(berth));
                bell.wake_by_ref();
            }
            let before = count.0.load(Ordering::SeqCst);
            assert_eq!(fleet.rung(&cx), None);
            assert_eq!(count.0.load(Ordering::SeqCst), before + 1, "the connection is told to come back");
        }
        fleet.begin_turn();
        assert_eq!(fleet.rung(&cx), Some(berth), "what was left over is named without ringing again");
        assert_eq!(fleet.rung(&cx), None);
    }
}
