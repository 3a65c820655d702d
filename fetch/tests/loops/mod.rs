//! The loops that every case runs on: our own, and tokio's two.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longer than any case takes; one that hangs fails then.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a case in a thread and fails when it does not end.
pub fn watched(case: impl FnOnce() + Send + 'static) {
    let (tell, done) = mpsc::channel();
    let thread = thread::spawn(move || {
        case();
        let _ = tell.send(());
    });
    match done.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the case hangs"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Makes one test per loop out of each `async fn case<R: Runtime>(runtime: R)`.
#[macro_export]
macro_rules! on_every_loop {
    ($($case:ident)*) => {
        mod native {
            $(#[test]
            fn $case() {
                $crate::loops::watched(|| hyperman_loop::block_on(super::$case).expect("a loop"));
            })*
        }

        mod tokio_current_thread {
            $(#[test]
            fn $case() {
                $crate::loops::watched(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                    runtime.expect("a runtime").block_on(async {
                        super::$case(hyperman_tokio::TokioRuntime::current().expect("inside")).await;
                    });
                });
            })*
        }

        mod tokio_multi_thread {
            $(#[test]
            fn $case() {
                $crate::loops::watched(|| {
                    let mut builder = tokio::runtime::Builder::new_multi_thread();
                    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
                    let handle = hyperman_tokio::TokioRuntime::new(runtime.handle().clone());
                    // As a task: it must be `Send`, and may move between the threads.
                    let task = runtime.spawn(super::$case(handle));
                    runtime.block_on(task).expect("the case");
                });
            })*
        }
    };
}
