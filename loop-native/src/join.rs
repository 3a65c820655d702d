//! What a task gave in the end, for whoever started it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::event_loop::Handle;
use crate::task::TaskRef;
use crate::waker_slot::WakerSlot;

/// Waits for the end of a task, see [`Handle::spawn_with_handle`]. Dropping it lets the task run on.
#[derive(Debug)]
pub struct JoinHandle<T> {
    handle: Handle,
    task: Option<TaskRef>,
    outcome: Rc<Outcome<T>>,
}

/// Why a task gave no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// It panicked; the panic hook has reported it.
    Panicked,
    /// It was aborted, or its loop ended.
    Aborted,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinError::Panicked => "the task panicked",
            JoinError::Aborted => "the task was aborted before it was ready",
        })
    }
}

impl std::error::Error for JoinError {}

impl<T> JoinHandle<T> {
    pub(crate) fn new<F: Future<Output = T> + 'static>(handle: Handle, future: F) -> Self
    where
        T: 'static,
    {
        let outcome = Rc::new(Outcome { result: RefCell::new(None), waiting: WakerSlot::default() });
        let reporting = Reporting { future, report: Report(Rc::clone(&outcome)) };
        let task = handle.spawn_task(reporting);
        JoinHandle { handle, task, outcome }
    }

    /// Has the task dropped in the loop's next turn, if it is not ready by then.
    pub fn abort(&self) {
        if let Some(task) = &self.task {
            self.handle.abort(task);
        }
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.outcome.result.borrow().is_some() || Rc::strong_count(&self.outcome) == 1
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// When it is polled after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.outcome.result.borrow_mut().take() {
            Some(result) => Poll::Ready(result),
            None if Rc::strong_count(&self.outcome) == 1 => panic!("JoinHandle polled after it was ready"),
            None => {
                self.outcome.waiting.set(cx.waker());
                Poll::Pending
            }
        }
    }
}

/// What the task and its handle share.
#[derive(Debug)]
struct Outcome<T> {
    result: RefCell<Option<Result<T, JoinError>>>,
    waiting: WakerSlot,
}

pin_project! {
    /// The task's future, which puts its output where the handle finds it.
    struct Reporting<F: Future> {
        #[pin]
        future: F,
        report: Report<F::Output>,
    }
}

impl<F: Future> Future for Reporting<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let unwinding = Unwinding { report: this.report, armed: Cell::new(true) };
        let polled = this.future.poll(cx);
        unwinding.armed.set(false);
        polled.map(|output| this.report.give(Ok(output)))
    }
}

struct Report<T>(Rc<Outcome<T>>);

impl<T> Report<T> {
    /// The first result counts.
    fn give(&self, result: Result<T, JoinError>) {
        let mut place = self.0.result.borrow_mut();
        if place.is_none() {
            *place = Some(result);
            drop(place);
            self.0.waiting.wake();
        }
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        self.give(Err(JoinError::Aborted));
    }
}

/// Tells a panic of the task from its being dropped.
struct Unwinding<'a, T> {
    report: &'a Report<T>,
    armed: Cell<bool>,
}

impl<T> Drop for Unwinding<'_, T> {
    fn drop(&mut self) {
        if self.armed.get() {
            self.report.give(Err(JoinError::Panicked));
        }
    }
}
