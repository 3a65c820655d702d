//! Many futures inside one, each woken by itself: the exchanges of an HTTP/2 connection.
//!
//! A connection with a hundred streams must not poll a hundred handlers because one of them has something to say. Each
//! berth has a waker of its own, which notes the berth and wakes the connection. Berths and their storage are used
//! again, so that a stream whose handler is ready at once allocates nothing.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// See the module's words. `T` is what lies in a berth, pinned there.
pub(crate) struct Fleet<T> {
    berths: Vec<Berth<T>>,
    free: Vec<usize>,
    calls: Arc<Mutex<Calls>>,
    answering: Vec<usize>,
}

struct Berth<T> {
    content: Pin<Box<T>>,
    bell: Arc<Bell>,
    waker: Waker,
    taken: bool,
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
        Fleet { berths: Vec::new(), free: Vec::new(), calls: Arc::default(), answering: Vec::new() }
    }

    /// Takes a berth, which holds what the last one left there, or `empty()` if it is new. It counts as rung.
    pub(crate) fn take(&mut self, empty: impl FnOnce() -> T) -> usize {
        let berth = self.free.pop().unwrap_or_else(|| {
            let berth = self.berths.len();
            let bell = Arc::new(Bell { berth, rung: AtomicBool::new(false), calls: Arc::clone(&self.calls) });
            let waker = Waker::from(Arc::clone(&bell));
            self.berths.push(Berth { content: Box::pin(empty()), bell, waker, taken: false });
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

    /// Which berths have rung since the last call. From here on the next ring wakes `cx`.
    pub(crate) fn rung(&mut self, cx: &Context<'_>) -> Option<usize> {
        loop {
            if self.answering.is_empty() {
                let mut calls = lock(&self.calls);
                if calls.rung.is_empty() {
                    match &mut calls.connection {
                        Some(waker) => waker.clone_from(cx.waker()),
                        none => *none = Some(cx.waker().clone()),
                    }
                    return None;
                }
                std::mem::swap(&mut self.answering, &mut calls.rung);
            }
            while let Some(berth) = self.answering.pop() {
                let Some(place) = self.berths.get(berth) else { continue };
                place.bell.rung.store(false, Ordering::Release);
                if place.taken {
                    return Some(berth);
                }
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
}
