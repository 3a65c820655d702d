//! Timers: a heap with four children per node, whose entries know where they are.
//!
//! A server moves its deadlines with every request and hardly ever lets one pass. So moving one to a later time only
//! notes it: the entry stays where it is, and is put where it belongs when the earlier time has come. Disarming notes
//! that nobody waits. Only a new timer, an earlier deadline, and a drop touch the heap.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::event_loop::Handle;
use crate::waker_slot::WakerSlot;

/// A timer of a [`Loop`](crate::Loop).
#[derive(Debug)]
pub struct Timer {
    handle: Handle,
    entry: Rc<Entry>,
}

impl Timer {
    pub(crate) fn new(handle: Handle) -> Self {
        let entry = Entry {
            deadline: Cell::new(None),
            place: Cell::new(NOWHERE),
            key: Cell::new(handle.loop_time()),
            waker: WakerSlot::default(),
        };
        Timer { handle, entry: Rc::new(entry) }
    }
}

impl hyperman_transport::Timer for Timer {
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let entry = &self.entry;
        if deadline <= self.handle.loop_time() {
            entry.deadline.set(None);
            return Poll::Ready(());
        }
        entry.deadline.set(Some(deadline));
        entry.waker.set(cx.waker());
        if entry.place.get() == NOWHERE || deadline < entry.key.get() {
            self.handle.timers(|timers| timers.place(entry, deadline));
        }
        Poll::Pending
    }

    fn disarm(&mut self) {
        self.entry.deadline.set(None);
        // Else it goes with the entry, when the key has passed: a timer that is armed and disarmed all the time keeps
        // its waker.
        if self.entry.place.get() == NOWHERE {
            drop(self.entry.waker.take());
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.entry.place.get() != NOWHERE {
            self.handle.timers(|timers| timers.remove(&self.entry));
        }
    }
}

/// Ready once some time has passed, see [`Handle::sleep`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    timer: Timer,
    deadline: Option<Instant>,
}

impl Sleep {
    /// The time runs from now, not from the start of this turn of the loop. What lies beyond the clock's range never
    /// comes.
    pub(crate) fn new(timer: Timer, time: Duration) -> Self {
        Sleep { timer, deadline: Instant::now().checked_add(time) }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.deadline {
            Some(deadline) => hyperman_transport::Timer::poll_deadline(&mut self.timer, deadline, cx),
            None => Poll::Pending,
        }
    }
}

/// One timer. It is in the heap from the first arming until its key has passed or it is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    /// When the owner wants to be woken; never before `key` while in the heap.
    deadline: Cell<Option<Instant>>,
    /// Where in the heap, or [`NOWHERE`].
    place: Cell<usize>,
    /// By what the heap sorts it.
    key: Cell<Instant>,
    waker: WakerSlot,
}

const NOWHERE: usize = usize::MAX;

/// Children per node: a node's children share two cache lines, and the tree is half as deep as a binary one.
const ARITY: usize = 4;

/// The armed timers of a loop, the earliest key first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    key: Instant,
    entry: Rc<Entry>,
}

#[expect(
    clippy::indexing_slicing,
    reason = "places come from the heap's own length; a wrong one must not go unseen"
)]
impl Timers {
    /// When the loop has to look at its timers next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|node| node.key)
    }

    /// Puts an entry where `key` belongs, which is earlier than before if it is in the heap.
    fn place(&mut self, entry: &Rc<Entry>, key: Instant) {
        let place = entry.place.get();
        entry.key.set(key);
        match self.heap.get_mut(place) {
            Some(node) => {
                node.key = key;
                self.sift_up(place);
            }
            None => {
                self.heap.push(Node { key, entry: Rc::clone(entry) });
                self.sift_up(self.heap.len() - 1);
            }
        }
    }

    fn remove(&mut self, entry: &Entry) {
        let place = entry.place.replace(NOWHERE);
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            // What came from the end may belong further up or further down.
            self.sift_up(place);
            self.sift_down(place);
        }
    }

    /// The next timer whose key and deadline have passed, or that has none. Timers that were moved to a later time are
    /// put where they belong.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Rc<Entry>> {
        while let Some(node) = self.heap.first_mut().filter(|node| node.key <= now) {
            match node.entry.deadline.get() {
                Some(deadline) if deadline > now => {
                    node.key = deadline;
                    node.entry.key.set(deadline);
                    self.sift_down(0);
                }
                _ => {
                    let entry = Rc::clone(&node.entry);
                    self.remove(&entry);
                    return Some(entry);
                }
            }
        }
        None
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].key <= self.heap[place].key {
                break;
            }
            self.heap.swap(parent, place);
            self.settle(place);
            place = parent;
        }
        self.settle(place);
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let first = place * ARITY + 1;
            let last = (first + ARITY).min(self.heap.len());
            let Some(least) = (first..last).min_by_key(|child| self.heap[*child].key) else { break };
            if self.heap[place].key <= self.heap[least].key {
                break;
            }
            self.heap.swap(place, least);
            self.settle(place);
            place = least;
        }
        self.settle(place);
    }

    fn settle(&self, place: usize) {
        self.heap[place].entry.place.set(place);
    }
}

impl Entry {
    /// Wakes the owner, who then finds that the deadline has passed; if nobody waits, forgets who did.
    pub(crate) fn fire(&self) {
        match self.deadline.get() {
            Some(_) => self.waker.wake(),
            None => drop(self.waker.take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(at: Instant) -> Rc<Entry> {
        Rc::new(Entry {
            deadline: Cell::new(None),
            place: Cell::new(NOWHERE),
            key: Cell::new(at),
            waker: WakerSlot::default(),
        })
    }

    /// What `Timer::poll_deadline` does, without a loop.
    fn arm(timers: &mut Timers, entry: &Rc<Entry>, deadline: Instant) {
        entry.deadline.set(Some(deadline));
        if entry.place.get() == NOWHERE || deadline < entry.key.get() {
            timers.place(entry, deadline);
        }
    }

    fn assert_whole(timers: &Timers) {
        for (place, node) in timers.heap.iter().enumerate() {
            assert_eq!(node.entry.place.get(), place);
            assert_eq!(node.entry.key.get(), node.key);
            assert!(place == 0 || timers.heap[(place - 1) / ARITY].key <= node.key, "at {place}");
        }
    }

    /// A small generator of numbers that look random, the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    #[test]
    fn fires_what_a_sorted_map_fires() {
        let start = Instant::now();
        let at = |millisecond: u64| start + Duration::from_millis(millisecond);
        for seed in 0..50 {
            let mut numbers = Numbers(seed);
            let mut timers = Timers::default();
            let entries: Vec<_> = (0..200).map(|_| entry(start)).collect();
            let mut expected = BTreeMap::new();
            for now in 0..400 {
                for _ in 0..numbers.below(20) {
                    let which = numbers.below(200) as usize;
                    match numbers.below(10) {
                        0 => {
                            // As `disarm`.
                            entries[which].deadline.set(None);
                            expected.remove(&which);
                        }
                        1 => {
                            // As the drop of a timer, and a new one.
                            if entries[which].place.get() != NOWHERE {
                                timers.remove(&entries[which]);
                            }
                            entries[which].deadline.set(None);
                            expected.remove(&which);
                        }
                        _ => {
                            let deadline = now + 1 + numbers.below(300);
                            arm(&mut timers, &entries[which], at(deadline));
                            expected.insert(which, deadline);
                        }
                    }
                }
                assert_whole(&timers);
                assert!(timers.heap.len() <= 200, "no entry is there twice");
                let mut fired = Vec::new();
                while let Some(due) = timers.pop_due(at(now)) {
                    let which = entries.iter().position(|entry| Rc::ptr_eq(entry, &due)).unwrap();
                    if due.deadline.take().is_some() {
                        fired.push(which);
                    }
                }
                fired.sort_unstable();
                let mut due: Vec<_> = expected
                    .iter()
                    .filter(|(_, deadline)| **deadline <= now)
                    .map(|(which, _)| *which)
                    .collect();
                due.sort_unstable();
                assert_eq!(fired, due, "seed {seed}, at {now} ms");
                expected.retain(|_, deadline| *deadline > now);
                assert!(timers.next().is_none_or(|next| next > at(now)));
            }
        }
    }

    #[test]
    fn moving_a_deadline_to_later_leaves_the_heap_alone() {
        let start = Instant::now();
        let mut timers = Timers::default();
        let moved = entry(start);
        arm(&mut timers, &moved, start + Duration::from_secs(1));
        for second in 2..1000 {
            arm(&mut timers, &moved, start + Duration::from_secs(second));
            assert_eq!(timers.next(), Some(start + Duration::from_secs(1)));
        }
        assert!(timers.pop_due(start + Duration::from_secs(1)).is_none(), "it is not due");
        assert_eq!(timers.next(), Some(start + Duration::from_secs(999)));
    }
}
