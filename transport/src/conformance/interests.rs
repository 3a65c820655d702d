//! Rules 2 and 3: spurious wake-ups, replaced wakers, interests that know nothing of each other, ends that do not spin.

use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;

use super::Harness;
use super::apparatus::{Counter, KINDS, Kind, Turns, assert_quiet, pair};
use crate::readiness::ArmReadiness;

/// A wake-up after which the attempt would block again.
pub fn stolen_bytes<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let counter = Counter::new();
            assert!(counter.recv(&mut source, 64).is_pending());
            for _ in 0..10 {
                peer.write(b"stolen");
                counter.woken().await;
                let mut stolen = [0; 6];
                assert_eq!(rustix::io::read(&source, &mut stolen).unwrap(), 6);
                assert!(counter.recv(&mut source, 64).is_pending());
            }
            peer.write(b"kept");
            assert_eq!(counter.recv_exact(&mut source, 4).await, b"kept");
        }
    });
}

/// Polls for reasons of the task's own neither wake nor disarm.
pub fn idle_polls<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let counter = Counter::new();
            for _ in 0..10 {
                for _ in 0..100 {
                    assert!(counter.recv(&mut source, 64).is_pending());
                }
                turns.take(2).await;
            }
            // tokio wakes by itself a task that has used up its budget; nothing else may have woken this one.
            counter.take();
            assert!(counter.recv(&mut source, 64).is_pending());
            peer.write(b"news");
            counter.woken().await;
            assert_eq!(counter.recv_exact(&mut source, 4).await, b"news");
        }
    });
}

/// Only the waker of the last arming hears of the event.
pub fn replaced_waker<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let (first, second) = (Counter::new(), Counter::new());
            for _ in 0..3 {
                for turn_between in [0, 2] {
                    assert!(first.recv(&mut source, 64).is_pending());
                    turns.take(turn_between).await;
                    assert!(second.recv(&mut source, 64).is_pending());
                    // A loop may tell the first that it was replaced.
                    first.take();
                    peer.write(b"b");
                    second.woken().await;
                    turns.take(2).await;
                    assert_eq!(first.take(), 0, "the replaced waker was woken");
                    assert_eq!(second.recv_exact(&mut source, 1).await, b"b");
                }
            }
            let waiting = first.fill(&mut source);
            assert!(second.send_byte(&mut source).is_pending());
            first.take();
            peer.read(waiting);
            second.woken().await;
            turns.take(2).await;
            assert_eq!(first.take(), 0, "the replaced waker was woken");
        }
    });
}

/// An event for one interest neither wakes nor disarms the other, in both orders of arming.
pub fn independent<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for (kind, read_first) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
            let (mut source, mut peer) = pair(&runtime, kind);
            let (reader, writer) = (Counter::new(), Counter::new());
            if read_first {
                assert!(reader.recv(&mut source, 64).is_pending());
            }
            let mut waiting = writer.fill(&mut source);
            if !read_first {
                assert!(reader.recv(&mut source, 64).is_pending());
            }
            turns.take(2).await;
            assert!(writer.send_byte(&mut source).is_pending());
            assert!(reader.recv(&mut source, 64).is_pending());
            for _ in 0..3 {
                turns.take(2).await;
                reader.take();
                writer.take();
                peer.write(b"news");
                reader.woken().await;
                turns.take(2).await;
                waiting += assert_asleep(&writer, &mut source, kind, "bytes to read woke the writer");
                assert_eq!(reader.recv_exact(&mut source, 4).await, b"news");
                assert!(reader.recv(&mut source, 64).is_pending());
                turns.take(2).await;

                reader.take();
                peer.read(waiting);
                writer.woken().await;
                turns.take(2).await;
                assert_eq!(reader.take(), 0, "room to write woke the reader");
                waiting = writer.fill(&mut source);
                assert_ne!(waiting, 0);
            }
        }
    });
}

/// Checks that the writer of a full socket slept. TCP may make room by itself at any time (it moves its limits, and its
/// acknowledgements come late): there the room is filled again, and its size returned.
fn assert_asleep(writer: &Arc<Counter>, source: &mut impl ArmReadiness, kind: Kind, why: &str) -> usize {
    let wakes = writer.take();
    let room = writer.fill(source);
    assert!(
        matches!(kind, Kind::Tcp) || (wakes, room) == (0, 0),
        "{why}: {wakes} wake-ups, {room} bytes of room"
    );
    room
}

/// The peer has ended its direction; ours goes on, and the loop has nothing to do meanwhile.
pub fn half_closed<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let mut turns = Turns::new(&runtime);
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let (reader, writer) = (Counter::new(), Counter::new());
            assert!(reader.recv(&mut source, 64).is_pending());
            peer.end();
            let mut buf = BytesMut::with_capacity(64);
            assert_eq!(reader.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap(), 0);
            reader.take();

            let mut waiting = writer.fill(&mut source);
            turns.take(20).await;
            waiting += assert_asleep(&writer, &mut source, kind, "the end of the file woke the writer");
            assert_quiet(&runtime, "half-closed, writer armed").await;
            assert!(reader.take() <= 1, "the end of the file woke the reader again and again");
            waiting += assert_asleep(&writer, &mut source, kind, "the end of the file woke the writer");

            peer.read(waiting);
            writer.woken().await;
            assert!(matches!(writer.send_byte(&mut source), Poll::Ready(Ok(1))));
            assert_eq!(peer.read(1), b"x");
            assert_quiet(&runtime, "half-closed, nothing armed").await;
        }
    });
}

/// The peer has closed both directions; the source is still there, and nobody polls it.
pub fn hung_up<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            for armed in [false, true] {
                let (mut source, peer) = pair(&runtime, kind);
                let counter = Counter::new();
                if armed {
                    assert!(counter.recv(&mut source, 64).is_pending());
                }
                drop(peer);
                rustix::net::shutdown(&source, rustix::net::Shutdown::Write).unwrap();
                assert_quiet(&runtime, "hung up").await;
                if armed {
                    let wakes = counter.take();
                    assert!((1..=3).contains(&wakes), "{wakes} wake-ups");
                }
                let mut buf = BytesMut::with_capacity(64);
                assert_eq!(counter.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap(), 0);
                assert_quiet(&runtime, "hung up and read").await;
            }
        }
    });
}

/// Back-pressure: bytes have come and the task does not read them.
pub fn unread<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let counter = Counter::new();
            assert!(counter.recv(&mut source, 64).is_pending());
            peer.write(&[b'u'; 1000]);
            counter.woken().await;
            assert_quiet(&runtime, "unread bytes").await;
            peer.write(&[b'u'; 1000]);
            assert_quiet(&runtime, "more unread bytes").await;
            assert!(counter.take() <= 1, "woken again for bytes that nobody asked for");
            assert_eq!(counter.recv_exact(&mut source, 2000).await, [b'u'; 2000]);
        }
    });
}

/// A reset wakes the reader, who gets the error, and leaves the loop quiet.
pub fn reset<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let (mut source, peer) = pair(&runtime, Kind::Tcp);
        let counter = Counter::new();
        assert!(counter.recv(&mut source, 64).is_pending());
        // Closing with no time to linger resets (socket(7)).
        rustix::net::sockopt::set_socket_linger(&peer, Some(std::time::Duration::ZERO)).unwrap();
        drop(peer);
        let mut buf = BytesMut::with_capacity(64);
        let outcome = counter.ready(|cx| source.poll_recv(cx, &mut buf)).await;
        assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        assert_quiet(&runtime, "reset").await;
        assert!(matches!(counter.send_byte(&mut source), Poll::Ready(Err(_))));
        assert_quiet(&runtime, "reset and written").await;
    });
}
