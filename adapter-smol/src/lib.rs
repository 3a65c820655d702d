//! Hyperman and Fetch on smol: sockets and timers on async-io's reactor, tasks on an executor of the program's.
//!
//! [`SmolRuntime`] is for an [`Executor`], whose tasks may move between threads, [`SmolLocal`] for a [`LocalExecutor`].
//! Both refer to the executor without keeping it alive, as its own tasks hold them: the program that made it decides
//! when it ends, and its tasks end with it.
//!
//! ```
//! use std::rc::Rc;
//! use hyperman_smol::SmolLocal;
//!
//! let executor = Rc::new(smol::LocalExecutor::new());
//! let runtime = SmolLocal::new(&executor);
//! smol::block_on(executor.run(async move {
//!     // Serve and fetch with `runtime` here.
//! #   let _ = runtime;
//! }));
//! ```
//!
//! Here are the loop's handles; [`source`] holds the sockets, [`timer`] the timers.

#![forbid(unsafe_code)]

pub mod source;
pub mod timer;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::{self, Rc};
use std::sync::{self, Arc};
use std::time::Instant;

use async_executor::{Executor, LocalExecutor};
use hyperman_transport::{Runtime, Spawn};

pub use source::SmolSource;
pub use timer::{ReactorAlarm, SmolTimer};

/// An [`Executor`] and async-io as a loop; tasks must be `Send`.
#[derive(Clone, Debug)]
pub struct SmolRuntime {
    executor: Handle,
}

#[derive(Clone, Debug)]
enum Handle {
    Owned(sync::Weak<Executor<'static>>),
    Static(&'static Executor<'static>),
}

impl SmolRuntime {
    /// Tasks run on `executor` while somebody runs that and holds it.
    pub fn new(executor: &Arc<Executor<'static>>) -> Self {
        SmolRuntime { executor: Handle::Owned(Arc::downgrade(executor)) }
    }

    /// Tasks run on an executor that is there for good, such as a `static` one.
    pub fn from_static(executor: &'static Executor<'static>) -> Self {
        SmolRuntime { executor: Handle::Static(executor) }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Spawn<F> for SmolRuntime {
    /// On an executor that has ended, the future is dropped.
    fn spawn(&self, future: F) {
        match &self.executor {
            Handle::Static(executor) => executor.spawn(future).detach(),
            Handle::Owned(executor) => {
                if let Some(executor) = executor.upgrade() {
                    executor.spawn(future).detach();
                }
            }
        }
    }
}

/// A [`LocalExecutor`] and async-io as a loop; tasks stay on the executor's thread.
#[derive(Clone, Debug)]
pub struct SmolLocal {
    executor: rc::Weak<LocalExecutor<'static>>,
}

impl SmolLocal {
    /// Tasks run on `executor` while somebody runs that and holds it.
    pub fn new(executor: &Rc<LocalExecutor<'static>>) -> Self {
        SmolLocal { executor: Rc::downgrade(executor) }
    }
}

impl<F: Future<Output = ()> + 'static> Spawn<F> for SmolLocal {
    /// On an executor that has ended, the future is dropped.
    fn spawn(&self, future: F) {
        if let Some(executor) = self.executor.upgrade() {
            executor.spawn(future).detach();
        }
    }
}

macro_rules! runtime_on_async_io {
    ($($handle:ty),*) => {$(
        impl Runtime for $handle {
            type Source = SmolSource;
            type Timer = SmolTimer;

            fn source(&self, socket: OwnedFd) -> io::Result<SmolSource> {
                SmolSource::register(socket)
            }

            fn timer(&self) -> SmolTimer {
                SmolTimer::new(ReactorAlarm::new())
            }

            fn now(&self) -> Instant {
                Instant::now()
            }
        }
    )*};
}

runtime_on_async_io!(SmolRuntime, SmolLocal);
