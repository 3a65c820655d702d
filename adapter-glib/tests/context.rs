//! What GLib asks of us beyond the suite.

#![allow(clippy::expect_used)] // a test fails where it panics

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use glib::{MainContext, Priority};
use hyperman_glib::GlibRuntime;
use hyperman_transport::{Runtime, Spawn, Timer};

fn start() -> (MainContext, GlibRuntime) {
    let context = MainContext::new();
    let runtime = GlibRuntime::new(context.clone()).expect("descriptors are free");
    (context, runtime)
}

/// A task that is ready again whenever it has run.
async fn restless() {
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn tasks_that_are_always_ready_hold_up_the_context_for_a_turn_only() {
    let (context, runtime) = start();
    for _ in 0..10 {
        runtime.spawn(restless());
    }
    // Each returns, and a source that is more important has its turn in between.
    let drawn = Rc::new(Cell::new(0));
    for frame in 1..=5 {
        let drawn = Rc::clone(&drawn);
        assert!(context.iteration(false), "nothing to do though tasks are ready");
        context.spawn_local_with_priority(Priority::HIGH_IDLE, async move { drawn.set(frame) });
    }
    assert!(context.iteration(false));
    assert_eq!(drawn.get(), 5);
}

#[test]
fn a_task_may_run_the_context_in_turn() {
    // As a program does that shows a dialog and waits for the answer.
    let (context, runtime) = start();
    let (steps, ended) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (inner, outer) = (Rc::clone(&steps), Rc::clone(&steps));
    let (spawner, other) = (runtime.clone(), runtime.clone());
    let (nested, over) = (context.clone(), Rc::clone(&ended));
    runtime.spawn(async move {
        spawner.spawn(async move {
            let mut timer = other.timer();
            let soon = other.now() + Duration::from_millis(5);
            poll_fn(|cx| timer.poll_deadline(soon, cx)).await;
            inner.set(1);
        });
        while outer.get() == 0 {
            nested.iteration(true);
        }
        over.set(true);
    });
    while !ended.get() {
        context.iteration(true);
    }
    assert_eq!(steps.get(), 1);
}

#[test]
fn without_anything_to_do_the_context_sleeps() {
    let (context, runtime) = start();
    let ended = Rc::new(Cell::new(false));
    let (waits, over) = (runtime.clone(), Rc::clone(&ended));
    runtime.spawn(async move {
        let mut timer = waits.timer();
        let soon = waits.now() + Duration::from_millis(60);
        poll_fn(|cx| timer.poll_deadline(soon, cx)).await;
        over.set(true);
    });
    let (start, mut turns) = (Instant::now(), 0);
    while !ended.get() {
        context.iteration(true);
        turns += 1;
    }
    assert!(start.elapsed() >= Duration::from_millis(60));
    // One to start the task and one for the timer; a spinning context would take thousands.
    assert!(turns <= 10, "{turns} turns");
}

#[test]
fn another_thread_may_not_start_tasks_while_this_one_runs_the_context() {
    let (context, runtime) = start();
    let _runs = context.acquire().expect("nobody else knows the context");
    assert!(thread::spawn(move || runtime.spawn(restless())).join().is_err());
}

#[test]
fn what_is_left_of_a_runtime_does_not_disturb_the_context() {
    let (context, runtime) = start();
    let mut timer = runtime.timer();
    let counted = std::task::Waker::noop();
    let soon = runtime.now() + Duration::from_millis(1);
    assert!(timer.poll_deadline(soon, &mut std::task::Context::from_waker(counted)).is_pending());
    drop((timer, runtime));
    thread::sleep(Duration::from_millis(5));
    assert!(!context.iteration(false), "the source outlived its runtime");
}
