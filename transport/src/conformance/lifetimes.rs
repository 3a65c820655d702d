//! Rule 4: a dropped source is off the loop before its descriptor closes. Also many sources at once.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Harness;
use super::apparatus::{Counter, KINDS, Kind, Queue, Turns, pair, sockets};
use crate::readiness::{ArmReadiness, Runtime};

/// The old socket lives on behind a second descriptor, as it does when it was inherited; only deregistering silences it.
pub fn reused_number<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let mut reused = 0;
        for kind in KINDS {
            for _ in 0..10 {
                let (mut old, mut old_peer) = pair(&runtime, kind);
                let old_counter = Counter::new();
                assert!(old_counter.recv(&mut old, 64).is_pending());
                turns.take(1).await;
                let number = old.as_fd().as_raw_fd();
                let _old_again = rustix::io::fcntl_dupfd_cloexec(&old, number + 100).unwrap();
                let (ours, mut new_peer) = sockets(kind);
                drop(old);
                // The lowest free number that is not below the old one: the old one, if no other thread was faster.
                let ours = rustix::io::fcntl_dupfd_cloexec(&ours, number).unwrap();
                reused += usize::from(ours.as_raw_fd() == number);
                let mut new = runtime.source(ours).unwrap();
                let new_counter = Counter::new();
                assert!(new_counter.recv(&mut new, 64).is_pending());
                turns.take(2).await;
                old_counter.take();
                new_counter.take();
                old_peer.write(b"old");
                turns.take(2).await;
                assert_eq!(old_counter.take(), 0, "a dropped source woke its task");
                assert_eq!(new_counter.take(), 0, "the new source heard the old one's event");
                new_peer.write(b"new");
                assert_eq!(new_counter.recv_exact(&mut new, 3).await, b"new");
            }
        }
        assert_ne!(reused, 0, "other threads took every number; the case has tried nothing");
    });
}

/// The peer of a dropped source sees the end, armed or not.
pub fn closes<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for kind in KINDS {
            for armed in [false, true] {
                let (mut source, mut peer) = pair(&runtime, kind);
                let counter = Counter::new();
                if armed {
                    assert!(counter.recv(&mut source, 64).is_pending());
                    turns.take(1).await;
                }
                drop(source);
                turns.take(2).await;
                assert_eq!(peer.read_to_end(), b"");
                assert_eq!(counter.take(), 0);
            }
        }
    });
}

/// Else a connection's task would keep itself alive for ever.
pub fn forgets_wakers<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        let (mut source, _peer) = pair(&runtime, Kind::Tcp);
        let counter = Counter::new();
        counter.fill(&mut source);
        assert!(counter.recv(&mut source, 64).is_pending());
        turns.take(2).await;
        drop(source);
        turns.take(2).await;
        assert_eq!(Arc::strong_count(&counter), 1);
    });
}

/// A byte to each of a thousand sockets, in an order of its own, twice.
pub fn thousand_sockets<H: Harness>(harness: &H) {
    const SOCKETS: usize = 1_000;
    allow_descriptors(4 * SOCKETS as u64);
    harness.block_on(async |runtime| {
        let queue = Queue::new();
        let mut pairs: Vec<_> = (0..SOCKETS).map(|_| pair(&runtime, Kind::Unix)).collect();
        for _ in 0..2 {
            for (index, (source, _)) in pairs.iter_mut().enumerate() {
                let waker = queue.waker(index);
                assert!(poll_byte(source, &mut Context::from_waker(&waker)).is_pending());
            }
            for index in 0..SOCKETS {
                // 7 and 1,000 have no common divisor: each index comes once.
                pairs[index * 7 % SOCKETS].1.write(&[(index % 256) as u8]);
            }
            let mut read = vec![false; SOCKETS];
            while read.contains(&false) {
                for index in queue.woken().await {
                    // Also arms it anew if the wake-up was spurious.
                    let waker = queue.waker(index);
                    if read[index] {
                        continue;
                    }
                    if let Poll::Ready(byte) =
                        poll_byte(&mut pairs[index].0, &mut Context::from_waker(&waker))
                    {
                        read[index] = true;
                        // 143 is the inverse of 7 modulo 1,000.
                        assert_eq!(byte, (index * 143 % SOCKETS % 256) as u8);
                    }
                }
            }
        }
    });
}

fn poll_byte(source: &mut impl ArmReadiness, cx: &mut Context<'_>) -> Poll<u8> {
    let mut buf = BytesMut::with_capacity(8);
    source.poll_recv(cx, &mut buf).map(|received| {
        assert_eq!(received.unwrap(), 1);
        buf[0]
    })
}

/// Raises this process's limit of open descriptors to at least `wanted`.
fn allow_descriptors(wanted: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).expect("the suite needs 4,000 descriptors");
    }
}
