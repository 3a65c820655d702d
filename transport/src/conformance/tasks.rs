//! Tasks: started, woken from anywhere, and fair to the rest of the loop.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use super::apparatus::{Counter, Turns, pause};
use super::{Harness, Task};
use crate::readiness::Spawn;

/// The other thread's wake-up finds the loop now busy, now waiting in the kernel.
pub fn woken_from_a_thread<H: Harness>(harness: &H) {
    harness.block_on(async |_runtime| {
        let (asked, asks) = mpsc::channel::<(Arc<AtomicBool>, Waker)>();
        let thread = thread::spawn(move || {
            for (flag, waker) in asks {
                flag.store(true, Ordering::SeqCst);
                waker.wake();
            }
        });
        for _ in 0..2_000 {
            answered(&asked).await;
        }
        drop(asked);
        thread.join().unwrap();
    });
}

/// A hundred tasks, each woken ten times from another thread; they start further ones.
pub fn spawned<H: Harness>(harness: &H) {
    const TASKS: usize = 100;
    harness.block_on(async |runtime| {
        let (asked, asks) = mpsc::channel::<(Arc<AtomicBool>, Waker)>();
        let thread = thread::spawn(move || {
            for (flag, waker) in asks {
                flag.store(true, Ordering::SeqCst);
                waker.wake();
            }
        });
        let (ended, counter) = (Arc::new(AtomicUsize::new(0)), Counter::new());
        for _ in 0..TASKS {
            let (asked, ended, counter) = (asked.clone(), ended.clone(), counter.clone());
            let task: Task = Box::pin(async move {
                for _ in 0..10 {
                    answered(&asked).await;
                }
                ended.fetch_add(1, Ordering::SeqCst);
                counter.wake();
            });
            runtime.spawn(task);
        }
        while ended.load(Ordering::SeqCst) < TASKS {
            counter.woken().await;
        }
        drop(asked);
        thread.join().unwrap();
    });
}

/// Wakers outlive their tasks: in a queue, in another thread.
pub fn woken_too_late<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let counter = Counter::new();
        for _ in 0..10 {
            let (wakers, counter) = (wakers.clone(), counter.clone());
            let task: Task = Box::pin(async move {
                poll_fn(|cx| {
                    wakers.lock().unwrap().push(cx.waker().clone());
                    Poll::Ready(())
                })
                .await;
                counter.wake();
            });
            runtime.spawn(task);
            let mut turns = Turns::new(&runtime);
            turns.take(1).await;
        }
        counter.woken().await;
        let kept: Vec<Waker> = std::mem::take(&mut wakers.lock().unwrap());
        let late = kept.clone();
        thread::spawn(move || late.into_iter().for_each(Waker::wake)).join().unwrap();
        kept.into_iter().for_each(Waker::wake);
        Turns::new(&runtime).take(2).await;
    });
}

/// Sockets and timers get their turns beside a task that is always ready to run.
pub fn self_waking<H: Harness>(harness: &H) {
    harness.block_on(async |runtime| {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, counter) = (stop.clone(), Counter::new());
        let ended = counter.clone();
        let task: Task = Box::pin(async move {
            poll_fn(|cx| {
                if stopped.load(Ordering::SeqCst) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            ended.wake();
        });
        runtime.spawn(task);
        Turns::new(&runtime).take(10).await;
        pause(&runtime, Duration::from_millis(10)).await;
        stop.store(true, Ordering::SeqCst);
        counter.woken().await;
    });
}

/// Asks the other thread for a wake-up and waits for it.
async fn answered(asked: &mpsc::Sender<(Arc<AtomicBool>, Waker)>) {
    let flag = Arc::new(AtomicBool::new(false));
    poll_fn(|cx| {
        if flag.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        asked.send((flag.clone(), cx.waker().clone())).unwrap();
        Poll::Pending
    })
    .await;
}
