//! Names to addresses, off the loop: the system's resolver (getaddrinfo) on a few threads of ours.
//!
//! getaddrinfo blocks, so it must not run on a loop; it is also the only resolver that reads what the system's owner
//! set up (hosts file, search list, mDNS), so it is the one that is used. Threads start on demand, are few, and end
//! when they have had nothing to do for a while; names wait in a bounded queue (S85). Several callers who want one name
//! share one lookup. Addresses written as such never come here.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// The most threads that look names up at once. A lookup waits for the network, so it is not a matter of cores.
const THREADS: usize = 4;

/// The most different names that wait for a thread. Beyond it a caller hears that the resolver is busy.
const QUEUE: usize = 1024;

/// How long a thread waits for another name before it ends.
const IDLE: Duration = Duration::from_secs(10);

type LookupFn = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks names up on a bounded number of threads. Dropping it lets the threads end.
pub(crate) struct Resolver {
    shared: Arc<Shared>,
}

struct Shared {
    lookup: Box<LookupFn>,
    state: Mutex<State>,
    /// Signalled when a name was queued or the resolver was dropped.
    changed: Condvar,
    idle: Duration,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Lookup>>,
    under_way: HashMap<String, Arc<Lookup>>,
    threads: usize,
    /// Threads that wait for a name.
    waiting: usize,
    closed: bool,
}

/// One name that is being looked up, for everybody who wants it.
struct Lookup {
    name: String,
    progress: Mutex<Progress>,
}

enum Progress {
    Waiting(Vec<Waker>),
    Done(Result<Arc<[SocketAddr]>, (io::ErrorKind, String)>),
}

/// Why a lookup was not even queued.
#[derive(Debug)]
pub(crate) enum Refused {
    Busy,
    Thread(io::Error),
}

impl Resolver {
    pub(crate) fn new() -> Self {
        Self::with(Box::new(|name| Ok((name, 0).to_socket_addrs()?.collect())), IDLE)
    }

    fn with(lookup: Box<LookupFn>, idle: Duration) -> Self {
        let shared = Shared { lookup, state: Mutex::default(), changed: Condvar::new(), idle };
        Resolver { shared: Arc::new(shared) }
    }

    /// Starts to look `name` up, or joins a lookup of it that is under way.
    pub(crate) fn resolve(&self, name: &str) -> Result<Resolution, Refused> {
        let mut state = self.shared.lock();
        if let Some(lookup) = state.under_way.get(name) {
            return Ok(Resolution { lookup: lookup.clone(), place: None });
        }
        if state.queue.len() >= QUEUE {
            return Err(Refused::Busy);
        }
        // Each queued name has been promised to one waiting thread; start another when none is left.
        if state.queue.len() >= state.waiting && state.threads < THREADS {
            match self.shared.clone().start_thread() {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(Refused::Thread(error)),
                Err(_) => {}
            }
        }
        let lookup =
            Arc::new(Lookup { name: name.to_owned(), progress: Mutex::new(Progress::Waiting(Vec::new())) });
        state.queue.push_back(lookup.clone());
        state.under_way.insert(name.to_owned(), lookup.clone());
        drop(state);
        self.shared.changed.notify_one();
        Ok(Resolution { lookup, place: None })
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock, and every state in between is a valid one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_thread(self: Arc<Self>) -> io::Result<()> {
        let builder = thread::Builder::new().name("fetch-resolve".to_owned());
        builder.spawn(move || self.run()).map(drop)
    }

    fn run(&self) {
        while let Some(lookup) = self.next() {
            let outcome = (self.lookup)(&lookup.name);
            let outcome = outcome.map(Arc::from).map_err(|error| (error.kind(), error.to_string()));
            self.lock().under_way.remove(&lookup.name);
            lookup.finish(outcome);
        }
    }

    /// The next name that somebody still waits for; `None` ends the thread.
    fn next(&self) -> Option<Arc<Lookup>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                break;
            }
            if let Some(lookup) = state.queue.pop_front() {
                // Held by the table and by us only: everybody who asked has gone.
                if Arc::strong_count(&lookup) == 2 {
                    state.under_way.remove(&lookup.name);
                    continue;
                }
                return Some(lookup);
            }
            state.waiting += 1;
            let (locked, wait) =
                self.changed.wait_timeout(state, self.idle).unwrap_or_else(PoisonError::into_inner);
            state = locked;
            state.waiting -= 1;
            if wait.timed_out() && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        None
    }
}

impl Lookup {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Result<Arc<[SocketAddr]>, (io::ErrorKind, String)>) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Done(outcome));
        if let Progress::Waiting(wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// A name that is being looked up. Ready with its addresses, their ports 0. Dropping it gives the wish up.
pub(crate) struct Resolution {
    lookup: Arc<Lookup>,
    /// Where our waker stands in the lookup's list.
    place: Option<usize>,
}

impl Future for Resolution {
    type Output = io::Result<Arc<[SocketAddr]>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match &mut *this.lookup.lock() {
            Progress::Done(Ok(addresses)) => Poll::Ready(Ok(addresses.clone())),
            Progress::Done(Err((kind, text))) => Poll::Ready(Err(io::Error::new(*kind, text.clone()))),
            Progress::Waiting(wakers) => {
                match this.place.and_then(|place| wakers.get_mut(place)) {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => {
                        this.place = Some(wakers.len());
                        wakers.push(cx.waker().clone());
                    }
                }
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::task::Wake;
    use std::time::Instant;

    use super::*;

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// A lookup that says when it began and ends when it is told to.
    fn gated() -> (Resolver, mpsc::Receiver<String>, mpsc::Sender<()>, Arc<AtomicUsize>) {
        let (began, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let most = Arc::new(AtomicUsize::new(0));
        let (running, seen) = (AtomicUsize::new(0), most.clone());
        let lookup = move |name: &str| {
            seen.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            began.send(name.to_owned()).map_err(io::Error::other)?;
            released.lock().expect("lock").recv().map_err(io::Error::other)?;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
        };
        (Resolver::with(Box::new(lookup), IDLE), begun, release, most)
    }

    #[test]
    fn s85_lookups_run_on_at_most_four_threads() {
        let (resolver, begun, release, most) = gated();
        let names: Vec<String> = (0..20).map(|n| format!("host{n}")).collect();
        let waiting: Vec<_> = names.iter().map(|name| resolver.resolve(name).expect("queued")).collect();
        let first: Vec<String> = (0..THREADS).map(|_| begun.recv().expect("begun")).collect();
        assert_eq!(resolver.shared.lock().threads, THREADS);
        assert_eq!(resolver.shared.lock().queue.len(), 16);
        assert_eq!(first.len(), 4);
        for _ in 0..20 {
            release.send(()).expect("a thread waits");
        }
        for resolution in waiting {
            assert_eq!(&*block_on(resolution).expect("an address"), [SocketAddr::from(([127, 0, 0, 1], 0))]);
        }
        assert_eq!(most.load(Ordering::SeqCst), 4);
    }

    #[test]
    fn s85_the_queue_is_bounded_and_names_nobody_waits_for_are_passed_over() {
        let (resolver, begun, release, _) = gated();
        let held: Vec<_> =
            (0..THREADS).map(|n| resolver.resolve(&format!("held{n}")).expect("queued")).collect();
        for _ in 0..THREADS {
            begun.recv().expect("begun");
        }
        let queued: Vec<_> =
            (0..QUEUE).map(|n| resolver.resolve(&format!("q{n}")).expect("queued")).collect();
        assert!(matches!(resolver.resolve("one-too-many"), Err(Refused::Busy)));
        drop(queued);
        for _ in 0..THREADS {
            release.send(()).expect("a thread waits");
        }
        for resolution in held {
            block_on(resolution).expect("an address");
        }
        // The abandoned names are skipped, so the next lookup that begins is one that somebody wants.
        let wanted = loop {
            match resolver.resolve("wanted") {
                Ok(resolution) => break resolution,
                Err(Refused::Busy) => thread::yield_now(),
                Err(Refused::Thread(error)) => panic!("{error}"),
            }
        };
        assert_eq!(begun.recv().expect("begun"), "wanted");
        release.send(()).expect("a thread waits");
        block_on(wanted).expect("an address");
    }

    #[test]
    fn callers_of_one_name_share_one_lookup() {
        let (resolver, begun, release, _) = gated();
        let waiting: Vec<_> = (0..500).map(|_| resolver.resolve("one").expect("queued")).collect();
        assert_eq!(begun.recv().expect("begun"), "one");
        release.send(()).expect("a thread waits");
        for resolution in waiting {
            assert_eq!(block_on(resolution).expect("an address").len(), 1);
        }
        assert!(begun.try_recv().is_err(), "looked up twice");
    }

    #[test]
    fn threads_end_when_they_are_idle_and_when_the_resolver_goes() {
        let lookup = Box::new(|_: &str| Ok(Vec::new()));
        let resolver = Resolver::with(lookup, Duration::from_millis(1));
        block_on(resolver.resolve("a").expect("queued")).expect("no address");
        let patience = Instant::now() + Duration::from_secs(20);
        while resolver.shared.lock().threads > 0 {
            assert!(Instant::now() < patience, "an idle thread stays");
            thread::yield_now();
        }
        let (resolver, begun, release, _) = gated();
        let resolution = resolver.resolve("a").expect("queued");
        begun.recv().expect("begun");
        release.send(()).expect("a thread waits");
        block_on(resolution).expect("an address");
        let shared = Arc::downgrade(&resolver.shared);
        drop(resolver);
        while shared.strong_count() > 0 {
            assert!(Instant::now() < patience, "a thread outlives its resolver");
            thread::yield_now();
        }
    }

    #[test]
    fn a_failed_lookup_says_why() {
        let lookup = Box::new(|_: &str| Err(io::Error::new(io::ErrorKind::NotFound, "no such name")));
        let resolver = Resolver::with(lookup, IDLE);
        let error = block_on(resolver.resolve("nowhere").expect("queued")).expect_err("no address");
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::NotFound, "no such name".to_owned()));
    }
}
