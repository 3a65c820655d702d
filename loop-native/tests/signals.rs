//! Signals. The tests send them to their own process, so each uses signals of its own.

#![expect(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::task::Poll;
use std::thread;

use hyperman_loop::signal::{Signal, signals};
use hyperman_loop::{Backend, Loop, block_on};
use rustix::process::{getpid, kill_process};

fn send(signal: rustix::process::Signal) {
    kill_process(getpid(), signal).unwrap();
}

/// Sends to this thread: the signal has been handled when this returns, which one to the process need not have been.
fn raise(signal: libc::c_int) {
    // SAFETY: the signal is one that the test handles.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

#[test]
fn a_signal_wakes_everyone_who_listens() {
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        let handle = event_loop.handle();
        event_loop.block_on(async {
            let mut one = signals(&handle, &[Signal::User1, Signal::User2]).unwrap();
            let mut two = signals(&handle, &[Signal::User2]).unwrap();
            let waiting = handle.spawn_with_handle(async move { two.recv().await.unwrap() });
            // From another thread, while the loop waits or before: both must do.
            let sender = thread::spawn(|| send(rustix::process::Signal::USR2));
            assert_eq!(one.recv().await.unwrap(), Signal::User2);
            assert_eq!(waiting.await.unwrap(), Signal::User2);
            sender.join().unwrap();

            for round in 0..200 {
                send(rustix::process::Signal::USR1);
                assert_eq!(one.recv().await.unwrap(), Signal::User1, "round {round}");
            }
        });
    }
}

#[test]
fn signals_that_nobody_has_taken_yet_are_one() {
    block_on(|handle| async move {
        let mut listening = signals(&handle, &[Signal::WindowChange, Signal::Hangup]).unwrap();
        // Far more than the socket pair holds.
        for _ in 0..100_000 {
            raise(libc::SIGWINCH);
        }
        raise(libc::SIGHUP);
        assert_eq!(listening.recv().await.unwrap(), Signal::Hangup);
        assert_eq!(listening.recv().await.unwrap(), Signal::WindowChange);
        let more = std::future::poll_fn(|cx| Poll::Ready(listening.poll_recv(cx).is_ready())).await;
        assert!(!more, "a signal was given twice");
    })
    .unwrap();
}
