//! The executor: order, fairness, panics, wake-ups from threads, nesting, and what is left at the end.

#![expect(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use hyperman_loop::{Backend, Handle, JoinError, Loop, block_on};
use hyperman_transport::{ListenOptions, Listener, Runtime, Spawn, Timer, connect_tcp};

fn on_every_backend(test: impl AsyncFn(Handle)) {
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        assert_eq!(event_loop.handle().backend(), backend);
        event_loop.block_on(test(event_loop.handle()));
    }
}

/// Pending once, woken at once.
fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn a_million_ready_futures_run_in_bounded_stack() {
    let chain = || {
        block_on(|_| async {
            let mut sum = 0_u64;
            for n in 0..1_000_000_u64 {
                sum += async move { n }.await;
            }
            sum
        })
        .unwrap()
    };
    // It would overflow after a few thousand, were they nested.
    let sum = thread::Builder::new().stack_size(256 << 10).spawn(chain).unwrap().join().unwrap();
    assert_eq!(sum, 499_999_500_000);
}

#[test]
fn a_million_tasks_that_start_each_other_run_in_bounded_stack() {
    fn start_next(handle: Handle, left: u32, done: Rc<Cell<bool>>) {
        handle.clone().spawn(async move {
            match left {
                0 => done.set(true),
                _ => start_next(handle, left - 1, done),
            }
        });
    }
    let run = || {
        block_on(|handle| async move {
            let done = Rc::new(Cell::new(false));
            start_next(handle.clone(), 1_000_000, Rc::clone(&done));
            while !done.get() {
                yield_now().await;
            }
            yield_now().await;
            assert_eq!(handle.tasks(), 1);
        })
        .unwrap();
    };
    thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn tasks_run_in_the_order_in_which_they_were_woken() {
    block_on(|handle| async move {
        let order = Rc::new(RefCell::new(Vec::new()));
        for n in 0..300 {
            let order = Rc::clone(&order);
            handle.spawn(async move {
                yield_now().await;
                order.borrow_mut().push(n);
            });
        }
        while handle.tasks() > 1 {
            yield_now().await;
        }
        assert_eq!(*order.borrow(), (0..300).collect::<Vec<_>>());
    })
    .unwrap();
}

#[test]
fn a_task_that_wakes_itself_for_ever_starves_neither_sockets_nor_timers() {
    on_every_backend(async |handle| {
        let polls = Rc::new(Cell::new(0_u64));
        let counted = Rc::clone(&polls);
        let busy = handle.spawn_with_handle(poll_fn::<(), _>(move |cx| {
            counted.set(counted.get() + 1);
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener = Listener::bind_tcp(handle.clone(), any_port, &ListenOptions::default()).unwrap();
        let address = listener.local_addr().unwrap().unwrap();
        let accepting = handle.spawn_with_handle(async move {
            poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
        });
        connect_tcp(&handle, address, None).unwrap().await.unwrap();
        accepting.await.unwrap();
        handle.sleep(Duration::from_millis(2)).await;
        assert!(polls.get() > 0);
        busy.abort();
        assert_eq!(busy.await, Err(JoinError::Aborted));
    });
}

#[test]
fn a_panic_ends_its_task_and_no_other() {
    block_on(|handle| async move {
        let dropped = Rc::new(Cell::new(false));
        let guard = SetOnDrop(Rc::clone(&dropped));
        let panicking = handle.spawn_with_handle(async move {
            let _guard = guard;
            yield_now().await;
            panic!("on purpose");
        });
        let fine = handle.spawn_with_handle(async {
            for _ in 0..10 {
                yield_now().await;
            }
            7
        });
        assert_eq!(panicking.await, Err::<(), _>(JoinError::Panicked));
        assert!(dropped.get(), "what the task held is dropped");
        assert_eq!(fine.await, Ok(7));
        assert_eq!(handle.tasks(), 1);
    })
    .unwrap();
}

#[test]
fn a_destructor_that_panics_ends_its_task_and_no_other() {
    struct PanicOnDrop;
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            panic!("on purpose, while dropped");
        }
    }
    block_on(|handle| async move {
        let held = PanicOnDrop;
        let aborted = handle.spawn_with_handle(async move {
            let _held = held;
            pending::<()>().await;
        });
        yield_now().await;
        aborted.abort();
        let fine = handle.spawn_with_handle(async { 7 });
        assert_eq!(fine.await, Ok(7));
        assert_eq!(aborted.await, Err(JoinError::Aborted));
        assert_eq!(handle.tasks(), 1);
    })
    .unwrap();
}

#[test]
fn a_panic_of_the_main_future_reaches_the_caller_and_the_loop_goes_on() {
    let event_loop = Loop::new().unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        event_loop.block_on(async { panic!("on purpose") })
    }));
    assert!(caught.is_err());
    let handle = event_loop.handle();
    assert_eq!(event_loop.block_on(async { handle.spawn_with_handle(async { 3 }).await }), Ok(3));
}

#[test]
fn a_task_may_abort_itself() {
    block_on(|handle| async move {
        let own = Rc::new(RefCell::new(None::<hyperman_loop::JoinHandle<()>>));
        let seen = Rc::clone(&own);
        let polls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&polls);
        let task = handle.spawn_with_handle(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            seen.borrow().as_ref().unwrap().abort();
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        *own.borrow_mut() = Some(task);
        while handle.tasks() > 1 {
            yield_now().await;
        }
        assert_eq!(polls.get(), 1);
        assert!(own.borrow().as_ref().unwrap().is_finished());
    })
    .unwrap();
}

#[test]
fn tasks_left_by_one_call_go_on_in_the_next() {
    let event_loop = Loop::new().unwrap();
    let handle = event_loop.handle();
    let task = handle.spawn_with_handle(async {
        for _ in 0..1000 {
            yield_now().await;
        }
        5
    });
    event_loop.block_on(yield_now());
    assert!(!task.is_finished());
    assert_eq!(event_loop.block_on(task), Ok(5));
}

#[test]
#[should_panic(expected = "this loop runs already")]
fn a_loop_cannot_be_run_by_its_own_task() {
    let event_loop = Loop::new().unwrap();
    event_loop.block_on(async { event_loop.block_on(async {}) });
}

#[test]
fn no_wake_up_of_many_threads_is_lost() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 2_000;
    on_every_backend(async |handle| {
        let wanted = Arc::new(AtomicUsize::new(0));
        let waiting = {
            let wanted = Arc::clone(&wanted);
            let mut threads = Vec::new();
            handle.spawn_with_handle(poll_fn(move |cx| {
                if threads.is_empty() {
                    for _ in 0..THREADS {
                        let (waker, wanted) = (cx.waker().clone(), Arc::clone(&wanted));
                        threads.push(thread::spawn(move || {
                            for _ in 0..ROUNDS {
                                wanted.fetch_add(1, Ordering::Relaxed);
                                waker.wake_by_ref();
                            }
                        }));
                    }
                }
                // Relaxed is enough: a wake-up brings along what its thread did before.
                if wanted.load(Ordering::Relaxed) < THREADS * ROUNDS {
                    return Poll::Pending;
                }
                threads.drain(..).for_each(|thread| thread.join().unwrap());
                Poll::Ready(())
            }))
        };
        waiting.await.unwrap();
    });
}

#[test]
fn wakers_outlive_their_task_and_their_loop() {
    let waker = block_on(|handle| async move {
        let waker = handle.spawn_with_handle(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).await.unwrap();
        waker.wake_by_ref();
        assert!(waker.will_wake(&waker.clone()));
        waker
    })
    .unwrap();
    waker.wake_by_ref();
    thread::spawn(move || waker.wake()).join().unwrap();
}

#[test]
fn loops_nest() {
    let answer = block_on(|outer| async move {
        let task = outer.spawn_with_handle(async {
            // Another loop inside a task of the first, whose waker is woken from in there.
            let outer_waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
            block_on(|inner| async move {
                inner.sleep(Duration::from_millis(1)).await;
                outer_waker.wake();
                inner.spawn_with_handle(async { 20 }).await.unwrap()
            })
            .unwrap()
        });
        task.await.unwrap() + 22
    });
    assert_eq!(answer.unwrap(), 42);
}

#[test]
fn foreign_wakers_are_woken_by_sources_and_timers() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    on_every_backend(async |handle| {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut timer = handle.timer();
        let deadline = Instant::now() + Duration::from_millis(2);
        assert!(timer.poll_deadline(deadline, &mut Context::from_waker(&waker)).is_pending());
        handle.sleep(Duration::from_millis(10)).await;
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    });
}

struct SetOnDrop(Rc<Cell<bool>>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

/// A task that holds a handle, and starts another task when it is dropped.
struct SpawnOnDrop(Handle, Rc<Cell<bool>>);

impl Future for SpawnOnDrop {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for SpawnOnDrop {
    fn drop(&mut self) {
        let dropped = SetOnDrop(Rc::clone(&self.1));
        self.0.spawn(async move {
            let _dropped = dropped;
            pending::<()>().await;
        });
    }
}

#[test]
fn dropping_a_loop_drops_its_tasks_also_those_that_start_meanwhile() {
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        let handle = event_loop.handle();
        let (plain, late) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let guard = SetOnDrop(Rc::clone(&plain));
        handle.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
        handle.spawn(SpawnOnDrop(handle.clone(), Rc::clone(&late)));
        event_loop.block_on(yield_now());
        let finished = handle.spawn_with_handle(pending::<()>());
        let mut timer = handle.timer();
        let waker = Waker::noop();
        let later = Instant::now() + Duration::from_secs(60);
        assert!(timer.poll_deadline(later, &mut Context::from_waker(waker)).is_pending());
        drop(event_loop);
        assert!(plain.get() && late.get());
        assert!(finished.is_finished());
        assert_eq!(handle.tasks(), 0);
        // A future that comes too late is dropped at once.
        let too_late = Rc::new(Cell::new(false));
        let guard = SetOnDrop(Rc::clone(&too_late));
        handle.spawn(async move { drop(guard) });
        assert!(too_late.get());
    }
}

/// How many descriptors this process has.
#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Other tests of this program open descriptors at the same time, so this one runs in a process of its own.
#[cfg(target_os = "linux")]
#[test]
fn no_descriptor_is_left() {
    const NAME: &str = "HYPERMAN_LOOP_TEST_DESCRIPTORS";
    if std::env::var_os(NAME).is_none() {
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "no_descriptor_is_left", "--test-threads=1"])
            .env(NAME, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let before = descriptors();
    let mut leaked = Vec::new();
    for backend in Backend::available() {
        let event_loop = Loop::with_backend(backend).unwrap();
        let handle = event_loop.handle();
        let socket = event_loop.block_on(async {
            let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let mut listener =
                Listener::bind_tcp(handle.clone(), any_port, &ListenOptions::default()).unwrap();
            let address = listener.local_addr().unwrap().unwrap();
            let mut sockets = Vec::new();
            for _ in 0..100 {
                let connecting = connect_tcp(&handle, address, None).unwrap();
                let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
                sockets.push((connecting.await.unwrap(), accepted.socket));
            }
            let (kept, _) = sockets.swap_remove(50);
            // A task that never ends holds the rest, and is what wakes; its waker outlives the loop.
            let waker = handle.spawn_with_handle(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).await;
            leaked.push(waker.unwrap());
            handle.spawn(async move {
                let _held = (listener, sockets);
                pending::<()>().await;
            });
            yield_now().await;
            kept
        });
        drop(event_loop);
        // A source that outlives its loop is closed by its owner, quietly.
        drop(socket);
        drop(handle);
        assert_eq!(descriptors(), before, "{backend}");
    }
}

#[test]
fn what_is_forced_and_what_can_be_had() {
    let available = Backend::available();
    assert!(available.contains(&Backend::Poll), "every Unix has it");
    for backend in &available {
        assert_eq!(backend.to_string().parse(), Ok(*backend));
    }
    let unknown = "select".parse::<Backend>().unwrap_err();
    assert_eq!(unknown.to_string(), "no backend is called \"select\"");
    #[cfg(target_os = "linux")]
    {
        let refused = Loop::with_backend(Backend::Kqueue).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        let text = refused.to_string();
        assert!(text.starts_with("this system has no kqueue; this machine can do: epoll, poll"), "{text}");
    }
}

/// The environment belongs to the process, so each value gets one.
#[test]
fn the_environment_forces_a_backend() {
    const NAME: &str = "HYPERMAN_LOOP_TEST_FORCED";
    if std::env::var_os(NAME).is_some() {
        match Loop::new() {
            Ok(event_loop) => println!("<{}>", event_loop.handle().backend()),
            Err(error) => println!("<{:?}: {error}>", error.kind()),
        }
        return;
    }
    let forced = |value: &str| {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_environment_forces_a_backend", "--nocapture"])
            .env(NAME, "1")
            .env("HYPERMAN_BACKEND", value)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_once('<').and_then(|(_, rest)| rest.split_once(">\n")).unwrap().0.to_owned()
    };
    for backend in Backend::available() {
        assert_eq!(forced(&backend.to_string()), backend.to_string());
    }
    assert_eq!(forced(""), Backend::available().first().unwrap().to_string());
    let refused = forced("wepoll");
    assert!(refused.starts_with("InvalidInput: HYPERMAN_BACKEND=wepoll: no backend is called"), "{refused}");
    assert!(refused.contains("this machine can do: "), "{refused}");
}
