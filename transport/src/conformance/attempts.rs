//! Rules 1 and 5: the attempt comes first, and no wake-up is lost between it and the arming.

use std::io::{self, ErrorKind, IoSlice};
use std::task::Poll;
use std::thread;

use bytes::BytesMut;
use rustix::net::sockopt;

use super::Harness;
use super::apparatus::{Counter, KINDS, Kind, pair, sockets};
use crate::readiness::{ArmReadiness, Interest, Runtime};
use crate::stream;

/// Bytes that wait already are read, and bytes that fit are sent, before the loop has taken a turn.
pub fn fresh_source<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (ours, mut peer) = sockets(kind);
            peer.write(b"early");
            // On loopback the bytes are there when `write` returns.
            let mut source = runtime.source(ours).unwrap();
            let counter = Counter::new();
            assert_eq!(counter.recv(&mut source, 64), Poll::Ready(b"early".to_vec()));
            assert!(matches!(counter.send_byte(&mut source), Poll::Ready(Ok(1))));
            assert_eq!(peer.read(1), b"x");
            // The general form attempts every time, whatever the loop believes.
            assert!(counter.recv(&mut source, 64).is_pending());
            peer.write(b"more");
            let mut buf = BytesMut::with_capacity(64);
            let outcome = counter
                .poll(|cx| source.arm_readiness(Interest::Read, cx, |socket| stream::recv(socket, &mut buf)));
            assert!(matches!(outcome, Poll::Ready(Ok(4))), "{outcome:?}");
        }
    });
}

/// An error of the attempt ends the call; `Interrupted` is no error.
pub fn errors_and_interrupts<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for interest in [Interest::Read, Interest::Write] {
            let (mut source, _peer) = pair(&runtime, Kind::Unix);
            let counter = Counter::new();
            let mut outcomes = vec![ErrorKind::BrokenPipe, ErrorKind::Interrupted, ErrorKind::Interrupted];
            let outcome = counter
                .poll(|cx| source.arm_readiness::<()>(interest, cx, |_| Err(outcomes.pop().unwrap().into())));
            let Poll::Ready(Err(error)) = outcome else { panic!("{outcome:?}") };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert!(outcomes.is_empty());
        }
    });
}

/// Bytes that arrive after the read has failed and before the loop is armed.
pub fn burst_before_arming_read<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let counter = Counter::new();
            for round in 0..200 {
                let (mut failed, mut buf) = (false, BytesMut::with_capacity(64));
                counter
                    .ready(|cx| {
                        source.arm_readiness(Interest::Read, cx, |socket| {
                            let outcome = stream::recv(socket, &mut buf);
                            if !failed {
                                failed = true;
                                assert!(would_block(&outcome), "{outcome:?}");
                                peer.write(b"burst");
                                let_others_run();
                            }
                            outcome
                        })
                    })
                    .await
                    .unwrap();
                assert_eq!(&buf[..], b"burst", "round {round}");
            }
        }
    });
}

/// Room that comes after the write has failed and before the loop is armed.
pub fn room_before_arming_write<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (ours, mut peer) = sockets(kind);
            sockopt::set_socket_send_buffer_size(&ours, 4096).unwrap();
            let mut source = runtime.source(ours).unwrap();
            let counter = Counter::new();
            // TCP may take its time to tell that it has room (delayed acknowledgements).
            let rounds = if matches!(kind, Kind::Tcp) { 20 } else { 200 };
            for _ in 0..rounds {
                // Nothing has been armed when the first write fails.
                let (mut failed, mut waiting) = (false, 0);
                while !failed {
                    waiting += counter
                        .ready(|cx| {
                            source.arm_readiness(Interest::Write, cx, |socket| {
                                let outcome = stream::send(socket, &[IoSlice::new(&[b'w'; 1024])]);
                                if !failed && would_block(&outcome) {
                                    failed = true;
                                    peer.read(waiting);
                                    waiting = 0;
                                    let_others_run();
                                }
                                outcome
                            })
                        })
                        .await
                        .unwrap();
                }
                peer.read(waiting);
            }
        }
    });
}

/// A thread sends bursts and waits for an answer to each; one wake-up lost, and both wait for ever.
pub fn bursts<H: Harness>(harness: &H) {
    const ROUNDS: usize = 2_000;
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let sender = thread::spawn(move || {
                for round in 0..ROUNDS {
                    // Several writes, so that some fall between a read and the arming that follows it.
                    for _ in 0..=round % 4 {
                        peer.write(b"b");
                    }
                    assert_eq!(peer.read(1), b"x");
                }
            });
            let counter = Counter::new();
            for round in 0..ROUNDS {
                let mut left = round % 4 + 1;
                while left > 0 {
                    let mut buf = BytesMut::with_capacity(16);
                    let received = counter.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap();
                    assert!(0 < received && received <= left);
                    left -= received;
                }
                assert!(matches!(counter.send_byte(&mut source), Poll::Ready(Ok(1))));
            }
            sender.join().unwrap();
        }
    });
}

/// A thread reads from a socket whose buffer is small: thousands of writes that fail while it makes room.
pub fn blocked_writes<H: Harness>(harness: &H) {
    const LENGTH: usize = 8 << 20;
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (ours, mut peer) = sockets(kind);
            sockopt::set_socket_send_buffer_size(&ours, 4096).unwrap();
            let mut source = runtime.source(ours).unwrap();
            let reader = thread::spawn(move || peer.read(LENGTH));
            let counter = Counter::new();
            let (block, mut left) = ([b'w'; 4096], LENGTH);
            while left > 0 {
                let slices = [IoSlice::new(&block[..left.min(block.len())])];
                left -= counter.ready(|cx| source.poll_send(cx, &slices)).await.unwrap();
            }
            assert!(reader.join().unwrap().iter().all(|byte| *byte == b'w'));
        }
    });
}

/// After a read that did not fill its storage, after one that just did, and with bytes that come right behind.
pub fn short_read<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let counter = Counter::new();
            for _ in 0..50 {
                peer.write(b"short");
                assert_eq!(counter.recv_exact(&mut source, 5).await, b"short");
                peer.write(b"behind");
                assert_eq!(counter.recv_exact(&mut source, 6).await, b"behind");
                assert!(counter.recv(&mut source, 64).is_pending());
                peer.write(b"later");
                let mut buf = BytesMut::with_capacity(64);
                assert_eq!(counter.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap(), 5);
                // Larger than the storage: what is left is found without a further event.
                peer.write(b"larger than the storage");
                assert_eq!(counter.recv_exact(&mut source, 6).await, b"larger");
                assert_eq!(counter.recv(&mut source, 64), Poll::Ready(b" than the storage".to_vec()));
            }
        }
    });
}

/// A buffer without spare capacity is misuse, and stays apart from the end of the file.
pub fn full_buffer<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let (mut source, mut peer) = pair(&runtime, Kind::Unix);
        let counter = Counter::new();
        let mut buf = BytesMut::with_capacity(64);
        buf.resize(buf.capacity(), 0);
        for _ in 0..2 {
            let outcome = counter.poll(|cx| source.poll_recv(cx, &mut buf));
            let Poll::Ready(Err(error)) = outcome else { panic!("{outcome:?}") };
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            peer.write(b"kept");
        }
        assert_eq!(counter.recv_exact(&mut source, 8).await, b"keptkept");
    });
}

/// The last bytes and the end of the file arrive together, and no event follows.
pub fn end_behind_bytes<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        for kind in KINDS {
            for armed in [false, true] {
                let (mut source, mut peer) = pair(&runtime, kind);
                let counter = Counter::new();
                if armed {
                    assert!(counter.recv(&mut source, 64).is_pending());
                }
                peer.write(b"last");
                peer.end();
                assert_eq!(counter.recv_exact(&mut source, 4).await, b"last");
                for _ in 0..2 {
                    let mut buf = BytesMut::with_capacity(64);
                    assert_eq!(counter.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap(), 0);
                }
            }
        }
    });
}

/// More than the socket's buffers hold, in both directions in turn, through short writes and short reads.
pub fn large_transfer<H: Harness>(harness: &H) {
    const LENGTH: usize = 8 << 20;
    harness.block_on(async |runtime| {
        for kind in KINDS {
            let (mut source, mut peer) = pair(&runtime, kind);
            let sent: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
            let echo = thread::spawn(move || {
                let bytes = peer.read(LENGTH);
                peer.write(&bytes);
            });
            let counter = Counter::new();
            let mut left = &sent[..];
            while !left.is_empty() {
                let (first, second) = left.split_at(left.len() / 2);
                let slices = [IoSlice::new(first), IoSlice::new(second)];
                let taken = counter.ready(|cx| source.poll_send(cx, &slices)).await.unwrap();
                assert_ne!(taken, 0);
                left = &left[taken..];
            }
            assert!(counter.recv_exact(&mut source, LENGTH).await == sent, "other bytes came back");
            echo.join().unwrap();
        }
    });
}

/// Gives a loop that has threads of its own the time to see the event before it is armed for it.
fn let_others_run() {
    for _ in 0..10 {
        thread::yield_now();
    }
}

fn would_block(outcome: &io::Result<usize>) -> bool {
    outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}
