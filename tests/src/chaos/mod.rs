//! A made-up network and clock around any loop.
//!
//! From a seed, [`Chaos`] shortens reads and writes, makes sockets look not ready and wakes their tasks later, in
//! another order or for nothing, resets connections, fails `accept` for want of descriptors, and keeps a clock of its
//! own that jumps to the next deadline as soon as nothing else moves. The same seed asks for the same again; the sockets
//! are the kernel's, so the order in which two of them become ready may differ from run to run.

mod clock;
mod source;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyperman_transport::{Runtime, Spawn};

pub use clock::{ChaosTimer, Ticking};
pub use source::ChaosSource;

use clock::Clock;

/// How often each kind of trouble comes, out of 1,000 system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Troubles {
    /// A read or write moves only a few bytes.
    pub short: u32,
    /// A socket looks not ready; its task is woken a little later.
    pub late: u32,
    /// The connection is reset.
    pub reset: u32,
    /// `accept` fails with `EMFILE`.
    pub exhausted: u32,
    /// The longest that a wake-up is late.
    pub lateness: Duration,
}

impl Default for Troubles {
    fn default() -> Self {
        Troubles { short: 300, late: 200, reset: 0, exhausted: 50, lateness: Duration::from_millis(500) }
    }
}

/// See the module's words.
#[derive(Debug)]
pub struct Chaos<R> {
    inner: R,
    world: Arc<World>,
}

impl<R: Clone> Clone for Chaos<R> {
    fn clone(&self) -> Self {
        Chaos { inner: self.inner.clone(), world: Arc::clone(&self.world) }
    }
}

/// What all sockets and timers of one made-up network share.
#[derive(Debug)]
pub(crate) struct World {
    troubles: Troubles,
    state: Mutex<State>,
    sources: AtomicUsize,
    timers: AtomicUsize,
}

#[derive(Debug)]
struct State {
    random: Random,
    clock: Clock,
    /// Grows with everything that happens, so that the clock sees when nothing does.
    activity: u64,
    turns: u64,
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Runtime> Chaos<R> {
    /// A made-up network around `inner`.
    pub fn new(inner: R, seed: u64, troubles: Troubles) -> Self {
        let state =
            State { random: Random::new(seed), clock: Clock::new(Instant::now()), activity: 0, turns: 0 };
        let (sources, timers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Chaos { inner, world: Arc::new(World { troubles, state: Mutex::new(state), sources, timers }) }
    }

    /// The future that turns the clock forward; to be run beside what is tested, for as long as that runs.
    /// `quiet_turns` is after how many turns of the loop without anything happening nothing more will happen by itself:
    /// a few on a loop that asks for events in every turn.
    pub fn ticking(&self, quiet_turns: u32) -> Ticking<R> {
        Ticking::new(Arc::clone(&self.world), self.inner.clone(), quiet_turns)
    }

    /// How many turns of the loop [`ticking`](Self::ticking) has seen.
    pub fn turns(&self) -> u64 {
        self.world.lock().turns
    }

    /// How many sockets are registered now.
    pub fn sources(&self) -> usize {
        self.world.sources.load(Ordering::SeqCst)
    }

    /// How many timers exist now.
    pub fn timers(&self) -> usize {
        self.world.timers.load(Ordering::SeqCst)
    }

    /// A number below `bound` out of the seed.
    pub fn below(&self, bound: u64) -> u64 {
        self.world.lock().random.below(bound)
    }
}

impl<R: Runtime> Runtime for Chaos<R> {
    type Source = ChaosSource<R::Source>;
    type Timer = ChaosTimer;

    fn source(&self, socket: OwnedFd) -> io::Result<Self::Source> {
        Ok(ChaosSource::new(self.inner.source(socket)?, Arc::clone(&self.world)))
    }

    fn timer(&self) -> ChaosTimer {
        ChaosTimer::new(Arc::clone(&self.world))
    }

    fn now(&self) -> Instant {
        self.world.lock().clock.now()
    }
}

impl<R: Spawn<F>, F: Future<Output = ()>> Spawn<F> for Chaos<R> {
    fn spawn(&self, future: F) {
        self.inner.spawn(future);
    }
}

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Whether something happens that happens in `thousandths` out of 1,000 cases.
    pub fn happens(&mut self, thousandths: u32) -> bool {
        self.below(1000) < u64::from(thousandths)
    }
}
