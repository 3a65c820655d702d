//! Hyperman and Fetch on a tokio runtime that is there already.
//!
//! [`TokioRuntime`] is for tasks that tokio may move between its threads, [`TokioLocal`] for tasks that stay on one
//! (inside a [`LocalSet`](tokio::task::LocalSet) or a [`LocalRuntime`](tokio::runtime::LocalRuntime)). Neither starts a
//! thread or a reactor: sockets are registered with the driver of the runtime that the program runs on, which must
//! have been built with its I/O and time drivers (`enable_all`, or `#[tokio::main]`).
//!
//! ```
//! use hyperman_tokio::TokioRuntime;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let runtime = TokioRuntime::current()?;
//! # let _ = runtime;
//! # Ok::<(), std::io::Error>(())
//! # })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Here are the loop's handle and its two ways to start a task; [`source`] holds the sockets, [`timer`] the timers.

#![forbid(unsafe_code)]

pub mod source;
pub mod timer;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use hyperman_transport::{Runtime, Spawn};
use tokio::runtime::Handle;

pub use source::TokioSource;
pub use timer::{TokioTimer, WheelAlarm};

/// A tokio runtime as a loop; tasks must be `Send`.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
}

impl TokioRuntime {
    /// The runtime behind `handle`.
    pub fn new(handle: Handle) -> Self {
        TokioRuntime { handle }
    }

    /// The runtime that the caller runs on.
    ///
    /// # Errors
    /// When the caller is not inside one.
    pub fn current() -> io::Result<Self> {
        Handle::try_current().map(Self::new).map_err(io::Error::other)
    }
}

impl Runtime for TokioRuntime {
    type Source = TokioSource;
    type Timer = TokioTimer;

    /// # Panics
    /// When the runtime was built without its I/O driver.
    fn source(&self, socket: OwnedFd) -> io::Result<TokioSource> {
        let _entered = self.handle.enter();
        TokioSource::register(socket)
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer::new(WheelAlarm::new(self.handle.clone()))
    }

    fn now(&self) -> Instant {
        // Not the system's clock: a test may have paused tokio's.
        tokio::time::Instant::now().into_std()
    }
}

impl<F: Future<Output = ()> + Send + 'static> Spawn<F> for TokioRuntime {
    fn spawn(&self, future: F) {
        drop(self.handle.spawn(future));
    }
}

/// A tokio runtime as a loop for tasks that stay on the thread that starts them.
#[derive(Clone, Debug)]
pub struct TokioLocal {
    runtime: TokioRuntime,
}

impl TokioLocal {
    /// The runtime that the caller runs on. Tasks can be started while the caller is inside a `LocalSet` or a
    /// `LocalRuntime`.
    ///
    /// # Errors
    /// When the caller is not inside a runtime.
    pub fn current() -> io::Result<Self> {
        Ok(TokioLocal { runtime: TokioRuntime::current()? })
    }
}

impl Runtime for TokioLocal {
    type Source = TokioSource;
    type Timer = TokioTimer;

    fn source(&self, socket: OwnedFd) -> io::Result<TokioSource> {
        self.runtime.source(socket)
    }

    fn timer(&self) -> TokioTimer {
        self.runtime.timer()
    }

    fn now(&self) -> Instant {
        self.runtime.now()
    }
}

impl<F: Future<Output = ()> + 'static> Spawn<F> for TokioLocal {
    /// # Panics
    /// Outside a `LocalSet` and a `LocalRuntime`: there is no thread that the task could stay on.
    fn spawn(&self, future: F) {
        drop(tokio::task::spawn_local(future));
    }
}
