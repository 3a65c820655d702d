//! What is tokio's own in the adapter; the rules that every loop keeps are in `conformance.rs`.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use hyperman_tokio::{TokioLocal, TokioRuntime, TokioSource};
use hyperman_transport::{ArmReadiness, Interest, Runtime, Spawn, Timer, stream};
use tokio::runtime::Builder;

fn current_thread() -> tokio::runtime::Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> tokio::runtime::Runtime {
    Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()
}

fn pair(runtime: &impl Runtime<Source = TokioSource>) -> (TokioSource, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (runtime.source(OwnedFd::from(ours)).unwrap(), theirs)
}

async fn recv(source: &mut TokioSource, storage: usize) -> Vec<u8> {
    let mut buf = BytesMut::with_capacity(storage);
    poll_fn(|cx| source.poll_recv(cx, &mut buf)).await.unwrap();
    buf.to_vec()
}

/// Reads with a burst that arrives after the read has failed; `before_arming` runs between the burst and the arming.
async fn read_with_a_burst(
    source: &mut TokioSource,
    peer: &mut UnixStream,
    before_arming: impl Fn(),
) -> Vec<u8> {
    let mut failed = false;
    let mut buf = BytesMut::with_capacity(64);
    poll_fn(|cx| {
        source.arm_readiness(Interest::Read, cx, |socket| {
            let outcome = stream::recv(socket, &mut buf);
            if !failed {
                assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::WouldBlock);
                failed = true;
                peer.write_all(b"burst").unwrap();
                before_arming();
            }
            outcome
        })
    })
    .await
    .unwrap();
    buf.to_vec()
}

#[test]
fn a_burst_between_the_failed_read_and_the_arming_wakes() {
    for tokio in [current_thread(), multi_thread()] {
        tokio.block_on(async {
            let runtime = TokioRuntime::current().unwrap();
            let (mut source, mut peer) = pair(&runtime);
            // Before the driver has said a word of the socket, and after each kind of read that emptied it.
            assert_eq!(read_with_a_burst(&mut source, &mut peer, || ()).await, b"burst");
            assert_eq!(read_with_a_burst(&mut source, &mut peer, || ()).await, b"burst");
            peer.write_all(b"12345").unwrap();
            assert_eq!(recv(&mut source, 64).await, b"12345");
            assert_eq!(read_with_a_burst(&mut source, &mut peer, || ()).await, b"burst");
        });
    }
}

#[test]
fn a_burst_that_the_driver_has_seen_before_the_arming_wakes() {
    multi_thread().block_on(async {
        let runtime = TokioRuntime::current().unwrap();
        let (mut source, mut peer) = pair(&runtime);
        for _ in 0..100 {
            // Events are dispatched in the order they came, so when the probe's task runs, the burst's event is known.
            let (mut probe, mut probe_peer) = pair(&runtime);
            let (dispatched, wait) = mpsc::channel();
            runtime.spawn(async move {
                assert_eq!(recv(&mut probe, 64).await, b"probe");
                dispatched.send(()).unwrap();
            });
            let probe_peer = &mut probe_peer;
            let before_arming = || {
                let mut probe_peer: &UnixStream = probe_peer;
                probe_peer.write_all(b"probe").unwrap();
                wait.recv_timeout(Duration::from_secs(10)).unwrap();
            };
            assert_eq!(read_with_a_burst(&mut source, &mut peer, before_arming).await, b"burst");
        }
    });
}

#[test]
fn a_read_that_did_not_fill_its_storage_arms_without_a_system_call() {
    current_thread().block_on(async {
        let runtime = TokioRuntime::current().unwrap();
        let (mut source, mut peer) = pair(&runtime);
        peer.write_all(b"first").unwrap();
        assert_eq!(recv(&mut source, 64).await, b"first");
        peer.write_all(b"second").unwrap();
        // A system call would find the bytes; the driver has had no turn to tell of them.
        let mut buf = BytesMut::with_capacity(64);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(source.poll_recv(&mut cx, &mut buf).is_pending());
        assert_eq!(recv(&mut source, 64).await, b"second");
        // One that did fill it attempts again.
        peer.write_all(b"thirdfourth").unwrap();
        assert_eq!(recv(&mut source, 5).await, b"third");
        assert!(matches!(source.poll_recv(&mut cx, &mut buf), Poll::Ready(Ok(6))));
    });
}

#[test]
fn end_of_file_right_behind_the_last_bytes_is_found() {
    for tokio in [current_thread(), multi_thread()] {
        tokio.block_on(async {
            let runtime = TokioRuntime::current().unwrap();
            let (mut source, mut peer) = pair(&runtime);
            peer.write_all(b"last").unwrap();
            drop(peer);
            assert_eq!(recv(&mut source, 64).await, b"last");
            assert_eq!(recv(&mut source, 64).await, b"");
            assert_eq!(recv(&mut source, 64).await, b"");
        });
    }
}

#[test]
fn a_short_write_arms_until_the_peer_has_read() {
    current_thread().block_on(async {
        let runtime = TokioRuntime::current().unwrap();
        let (mut source, peer) = pair(&runtime);
        let block = vec![7; 8 << 20];
        let sent = poll_fn(|cx| source.poll_send(cx, &[IoSlice::new(&block)])).await.unwrap();
        assert!(sent < block.len());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(source.poll_send(&mut cx, &[IoSlice::new(&block)]).is_pending());
        peer.set_nonblocking(true).unwrap();
        let (mut reader, rest) = (runtime.source(OwnedFd::from(peer)).unwrap(), block.len() - sent);
        let (done, all_read) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let mut total = 0;
            while total < 8 << 20 {
                total += recv(&mut reader, 65_536).await.len();
            }
            let _ = done.send(total);
        });
        let mut left = &block[..rest];
        while !left.is_empty() {
            let sent = poll_fn(|cx| source.poll_send(cx, &[IoSlice::new(left)])).await.unwrap();
            left = &left[sent..];
        }
        assert_eq!(all_read.await.unwrap(), 8 << 20);
    });
}

#[test]
fn a_later_deadline_is_kept_though_the_wheel_fires_for_the_earlier_one() {
    current_thread().block_on(async {
        tokio::time::pause();
        let runtime = TokioRuntime::current().unwrap();
        let start = runtime.now();
        let mut timer = runtime.timer();
        let (first, second) = (start + Duration::from_secs(1), start + Duration::from_secs(60));
        let polls = Cell::new(0);
        assert!(timer.poll_deadline(first, &mut Context::from_waker(Waker::noop())).is_pending());
        poll_fn(|cx| {
            polls.set(polls.get() + 1);
            timer.poll_deadline(second, cx)
        })
        .await;
        // The wheel counts whole milliseconds and rounds up.
        let late = runtime.now().checked_duration_since(second).unwrap();
        assert!(late <= Duration::from_millis(1), "{late:?}");
        assert_eq!(polls.get(), 3, "armed, woken by the first deadline, woken by the second");
    });
}

#[test]
fn a_task_whose_budget_is_spent_still_arms_its_timer() {
    current_thread().block_on(async {
        tokio::time::pause();
        let runtime = TokioRuntime::current().unwrap();
        let deadline = runtime.now() + Duration::from_secs(1);
        let mut timer = runtime.timer();
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            while pin!(tokio::task::coop::consume_budget())
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_ready()
            {}
            timer.poll_deadline(deadline, cx)
        })
        .await;
        assert_eq!(polls, 2);
    });
}

#[test]
fn tasks_that_are_not_send_stay_on_their_thread() {
    let here = std::thread::current().id();
    let set = tokio::task::LocalSet::new();
    let ran = Rc::new(Cell::new(None));
    let task = ran.clone();
    current_thread().block_on(set.run_until(async move {
        TokioLocal::current().unwrap().spawn(async move { task.set(Some(std::thread::current().id())) });
    }));
    current_thread().block_on(set);
    assert_eq!(ran.get(), Some(here));
}

#[test]
fn outside_a_runtime_there_is_no_current_one() {
    assert!(TokioRuntime::current().is_err());
    assert!(TokioLocal::current().is_err());
}
