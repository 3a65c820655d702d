//! Connections that are kept between exchanges.
//!
//! A connection is kept under its whole identity ([`Key`]) and comes back only to a request that has the same one
//! (S42). Whether it is still alive is asked when it is taken out. What is too old goes when the pool is used next. No task
//! watches over idle connections, unless somebody starts one: see `attend`.

use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::attend::Attendant;
use crate::target::Origin;

/// How many connections are kept, and for how long.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolLimits {
    /// Idle connections per identity. Default 32: a burst wider than that is rare, and each costs the server memory.
    pub per_host: usize,
    /// Idle connections in all. Default 256, a quarter of the usual limit on open files.
    pub total: usize,
    /// How long a connection may be idle. Default 90 s: servers close theirs after 60 to 120.
    pub idle: Duration,
    /// How long a connection may be used at all, counted from its connect; `None`, the default, does not limit it.
    /// A limit makes a client follow a name whose addresses change.
    pub lifetime: Option<Duration>,
}

impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits { per_host: 32, total: 256, idle: Duration::from_secs(90), lifetime: None }
    }
}

/// The whole identity of a connection: two requests may share one only where every part is equal. Whatever else decides
/// whom a connection reaches or as whom (TLS configuration, proxy chain and credentials) becomes a field here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) origin: Origin,
    /// The address the connection comes from, where the client asks for one.
    pub(crate) local: Option<IpAddr>,
    /// Which TLS configuration it was made with (S42): trust, certificate, protocols.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<hyperman_transport::tls::ConfigId>,
}

impl Key {
    /// The identity of a connection without TLS.
    pub(crate) fn plain(origin: Origin, local: Option<IpAddr>) -> Self {
        Key {
            origin,
            local,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

/// What the pool must know of the things it keeps.
pub(crate) trait Keep {
    fn key(&self) -> &Key;
    fn opened(&self) -> Instant;
    /// When it was put here last.
    fn idle_since(&self) -> Instant;
    fn set_idle_since(&mut self, now: Instant);
}

/// Idle connections by identity.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    limits: PoolLimits,
    shelves: Mutex<Shelves<C>>,
}

#[derive(Debug)]
struct Shelves<C> {
    /// The one that came last, of whatever identity: a caller who asks one server again and again finds it here, by one
    /// comparison.
    latest: Option<C>,
    /// Each shelf in the order of `idle_since`, the latest last. An empty shelf stays until the next sweep: its owner
    /// is probably in use and about to come back.
    by_key: HashMap<Key, VecDeque<C>, RandomState>,
    total: usize,
    /// When all shelves are looked through next.
    sweep_at: Option<Instant>,
    /// Who wants to know that a connection was put here.
    attendant: Attendant,
}

/// How often all shelves are looked through for what is too old.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

impl<C: Keep> Pool<C> {
    pub(crate) fn shared(limits: PoolLimits) -> Arc<Self> {
        Arc::new(Self::new(limits))
    }

    fn new(limits: PoolLimits) -> Self {
        Pool {
            limits,
            shelves: Mutex::new(Shelves {
                latest: None,
                by_key: HashMap::default(),
                total: 0,
                sweep_at: None,
                attendant: Attendant::default(),
            }),
        }
    }

    /// The connection with this identity that was used last, if one is young enough. The caller checks whether it is
    /// alive and asks again when it is not.
    pub(crate) fn take(&self, key: &Key, now: Instant) -> Option<C> {
        let (taken, _dropped) = self.with(|shelves| {
            let dropped = shelves.sweep(now, &self.limits);
            (shelves.remove(key), dropped)
        });
        taken.filter(|connection| !self.limits.expired(connection, now))
    }

    /// Keeps a connection; another one goes where the limits are reached.
    pub(crate) fn put(&self, mut connection: C, now: Instant) {
        if self.limits.per_host == 0 || self.limits.total == 0 || self.limits.expired_age(&connection, now) {
            return;
        }
        connection.set_idle_since(now);
        let (_dropped, attendant) =
            self.with(|shelves| (shelves.insert(connection, &self.limits), shelves.attendant.call()));
        if let Some(attendant) = attendant {
            attendant.wake();
        }
    }

    /// Whoever is to be told of the next connection that is put here.
    pub(crate) fn attend(&self, waker: &Waker) {
        self.with(|shelves| shelves.attendant.wait(waker));
    }

    /// Drops the connections that are too old or not as they should be. When the next one is too old, if there is one.
    pub(crate) fn look(&self, now: Instant, mut is_good: impl FnMut(&mut C) -> bool) -> Option<Instant> {
        let mut spent = |connection: &mut C| self.limits.expired(connection, now) || !is_good(connection);
        let (next, _dropped) = self.with(|shelves| {
            let mut dropped: Vec<C> = shelves.latest.take_if(&mut spent).into_iter().collect();
            for shelf in shelves.by_key.values_mut() {
                for mut connection in std::mem::take(shelf) {
                    if spent(&mut connection) {
                        dropped.push(connection)
                    } else {
                        shelf.push_back(connection)
                    }
                }
            }
            shelves.total -= dropped.len();
            let kept = shelves.latest.iter().chain(shelves.by_key.values().flatten());
            (kept.map(Keep::idle_since).min(), dropped)
        });
        next?.checked_add(self.limits.idle)
    }

    /// Drops every connection with this identity: one of them was found dead, and the others are of its age.
    pub(crate) fn forget(&self, key: &Key) {
        let _dropped = self.with(|shelves| {
            let latest = shelves.latest.take_if(|latest| latest.key() == key);
            let shelf = shelves.by_key.remove(key);
            shelves.total -= shelf.as_ref().map_or(0, VecDeque::len) + usize::from(latest.is_some());
            (latest, shelf)
        });
    }

    /// Drops every connection.
    pub(crate) fn clear(&self) {
        let _dropped = self.with(|shelves| {
            shelves.total = 0;
            (shelves.latest.take(), std::mem::take(&mut shelves.by_key))
        });
    }

    /// What `change` returns is dropped after the lock is: closing a socket is a system call.
    fn with<T>(&self, change: impl FnOnce(&mut Shelves<C>) -> T) -> T {
        // Nothing panics while it holds the lock.
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut shelves)
    }
}

impl<C: Keep> Shelves<C> {
    fn sweep(&mut self, now: Instant, limits: &PoolLimits) -> Vec<C> {
        let due = self.sweep_at.is_none_or(|sweep_at| now >= sweep_at);
        let mut dropped = Vec::new();
        if due {
            self.sweep_at = now.checked_add(SWEEP_EVERY);
            dropped.extend(self.latest.take_if(|latest| limits.expired(latest, now)));
            for shelf in self.by_key.values_mut() {
                while shelf.front().is_some_and(|connection| limits.expired(connection, now)) {
                    dropped.extend(shelf.pop_front());
                }
            }
            self.by_key.retain(|_, shelf| !shelf.is_empty());
            self.total -= dropped.len();
        }
        dropped
    }

    fn remove(&mut self, key: &Key) -> Option<C> {
        let latest = self.latest.take_if(|latest| latest.key() == key);
        let removed = latest.or_else(|| self.by_key.get_mut(key)?.pop_back());
        self.total -= usize::from(removed.is_some());
        removed
    }

    /// Keeps a connection and returns those that had to make room.
    fn insert(&mut self, connection: C, limits: &PoolLimits) -> [Option<C>; 2] {
        let room = if self.total >= limits.total { self.oldest() } else { None };
        self.total += 1;
        let Some(previous) = self.latest.replace(connection) else { return [room, None] };
        let same = self.latest.as_ref().is_some_and(|latest| latest.key() == previous.key());
        let shelf = match self.by_key.get_mut(previous.key()) {
            Some(shelf) => shelf,
            None => self.by_key.entry(previous.key().clone()).or_default(),
        };
        shelf.push_back(previous);
        if shelf.len() + usize::from(same) > limits.per_host {
            self.total -= 1;
            return [room, shelf.pop_front()];
        }
        [room, None]
    }

    /// Takes the connection out that has been idle for longest.
    fn oldest(&mut self) -> Option<C> {
        let fronts = self.by_key.values_mut().filter(|shelf| !shelf.is_empty());
        let shelf = fronts.min_by_key(|shelf| shelf.front().map(Keep::idle_since));
        let oldest = shelf.and_then(VecDeque::pop_front).or_else(|| self.latest.take())?;
        self.total -= 1;
        Some(oldest)
    }
}

impl PoolLimits {
    fn expired(&self, connection: &impl Keep, now: Instant) -> bool {
        now.saturating_duration_since(connection.idle_since()) >= self.idle
            || self.expired_age(connection, now)
    }

    fn expired_age(&self, connection: &impl Keep, now: Instant) -> bool {
        self.lifetime.is_some_and(|lifetime| now.saturating_duration_since(connection.opened()) >= lifetime)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Host;

    use super::*;
    use crate::target::Scheme;

    #[derive(Debug)]
    struct Kept {
        key: Key,
        id: u32,
        opened: Instant,
        idle_since: Instant,
    }

    impl Keep for Kept {
        fn key(&self) -> &Key {
            &self.key
        }
        fn opened(&self) -> Instant {
            self.opened
        }
        fn idle_since(&self) -> Instant {
            self.idle_since
        }
        fn set_idle_since(&mut self, now: Instant) {
            self.idle_since = now;
        }
    }

    fn key(host: &str) -> Key {
        let host = Host::Domain(host.to_owned());
        Key::plain(Origin { scheme: Scheme::Http, host, port: 80 }, None)
    }

    fn kept(key: &Key, id: u32, now: Instant) -> Kept {
        Kept { key: key.clone(), id, opened: now, idle_since: now }
    }

    fn total(pool: &Pool<Kept>) -> usize {
        let shelves = pool.shelves.lock().expect("lock");
        let shelved = shelves.by_key.values().map(VecDeque::len).sum::<usize>();
        assert_eq!(shelves.total, shelved + usize::from(shelves.latest.is_some()));
        shelves.total
    }

    #[test]
    fn the_connection_used_last_comes_first() {
        let (pool, now, key) = (Pool::new(PoolLimits::default()), Instant::now(), key("a"));
        for id in 0..3 {
            pool.put(kept(&key, id, now), now);
        }
        let order: Vec<u32> = std::iter::from_fn(|| pool.take(&key, now)).map(|kept| kept.id).collect();
        assert_eq!(order, [2, 1, 0]);
        assert_eq!(total(&pool), 0);
    }

    #[test]
    fn limits_per_host_and_in_all_drop_the_oldest() {
        let limits = PoolLimits { per_host: 2, total: 3, ..PoolLimits::default() };
        let (pool, now) = (Pool::new(limits), Instant::now());
        let at = |second| now + Duration::from_secs(second);
        for id in 0..3 {
            pool.put(kept(&key("a"), id, now), at(u64::from(id)));
        }
        pool.put(kept(&key("b"), 3, now), at(3));
        pool.put(kept(&key("c"), 4, now), at(4));
        assert_eq!(total(&pool), 3);
        assert_eq!(pool.take(&key("a"), at(5)).map(|kept| kept.id), Some(2));
        assert!(pool.take(&key("a"), at(5)).is_none());
        assert_eq!(pool.take(&key("b"), at(5)).map(|kept| kept.id), Some(3));
        assert_eq!(pool.take(&key("c"), at(5)).map(|kept| kept.id), Some(4));
    }

    #[test]
    fn what_is_idle_or_alive_for_too_long_goes() {
        let lifetime = Some(Duration::from_secs(100));
        let limits = PoolLimits { idle: Duration::from_secs(10), lifetime, ..PoolLimits::default() };
        let (pool, now, key_a) = (Pool::new(limits), Instant::now(), key("a"));
        pool.put(kept(&key_a, 0, now), now);
        assert!(pool.take(&key_a, now + Duration::from_secs(10)).is_none());
        pool.put(kept(&key_a, 1, now), now + Duration::from_secs(100));
        assert_eq!(total(&pool), 0, "past its lifetime");
        pool.put(kept(&key_a, 2, now), now + Duration::from_secs(95));
        assert!(pool.take(&key_a, now + Duration::from_secs(101)).is_none());
        // A sweep also takes what nobody asks for, and the shelf it lay on.
        let later = now + Duration::from_secs(200);
        pool.put(kept(&key_a, 3, later), later);
        pool.put(kept(&key("b"), 4, later), later + Duration::from_secs(50));
        pool.take(&key("c"), later + Duration::from_secs(51));
        assert_eq!(pool.shelves.lock().expect("lock").by_key.len(), 0);
    }

    #[test]
    fn forget_and_clear_drop_what_they_say() {
        let (pool, now) = (Pool::new(PoolLimits::default()), Instant::now());
        for (host, id) in [("a", 0), ("a", 1), ("b", 2), ("c", 3)] {
            pool.put(kept(&key(host), id, now), now);
        }
        pool.forget(&key("a"));
        assert_eq!(total(&pool), 2);
        assert!(pool.take(&key("a"), now).is_none());
        pool.clear();
        assert_eq!(total(&pool), 0);
        assert!(pool.take(&key("b"), now).is_none());
    }

    fn any_key() -> impl Strategy<Value = Key> {
        let host = prop_oneof![
            Just(Host::Domain("a".to_owned())),
            Just(Host::Domain("a.".to_owned())),
            Just(Host::Domain("b".to_owned())),
            Just(Host::Ipv4([127, 0, 0, 1].into())),
            Just(Host::Ipv6([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1].into())),
        ];
        let local = prop_oneof![
            Just(None),
            Just(Some(IpAddr::from([127, 0, 0, 1]))),
            Just(Some(IpAddr::from([127, 0, 0, 2]))),
        ];
        (host, prop_oneof![Just(80), Just(81)], local)
            .prop_map(|(host, port, local)| Key::plain(Origin { scheme: Scheme::Http, host, port }, local))
    }

    proptest! {
        #[test]
        fn s42_identities_that_differ_never_share_a_connection(keys in prop::collection::vec(any_key(), 1..40)) {
            let (pool, now) = (Pool::new(PoolLimits::default()), Instant::now());
            for (id, key) in (0..).zip(&keys) {
                pool.put(kept(key, id, now), now);
                let wanted = keys.get(usize::try_from(id * 7).expect("small") % keys.len()).expect("in range");
                if let Some(taken) = pool.take(wanted, now) {
                    prop_assert_eq!(&taken.key, wanted);
                }
            }
        }
    }
}
