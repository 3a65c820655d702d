//! Hyperman and Fetch on a GLib main context: inside a GTK application, or any other program that runs a GLib loop.
//!
//! Nothing here runs a loop, blocks, or starts a thread. A runtime is one source of the context that the program runs
//! anyway; whatever it watches, its timers and its tasks are behind that source, because GLib makes up to five system
//! calls when a source comes, goes, or is dispatched, and when a task of its own is woken.
//!
//! ```
//! use hyperman_glib::GlibRuntime;
//!
//! let context = glib::MainContext::new();
//! let runtime = GlibRuntime::new(context.clone())?;
//! context.block_on(async move {
//!     // Serve and fetch with `runtime` here; in a GTK application, in the callback of a widget.
//! #   let _ = runtime;
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Here is the loop's handle; [`source`] holds the sockets, [`timer`] the timers. `driver` is what is behind the one
//! source, and `watch` is that source.

mod driver;
pub mod source;
pub mod timer;
mod watch;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use glib::{MainContext, Priority};
use hyperman_transport::{Runtime, Spawn};

use driver::Driver;
pub use source::GlibSource;
pub use timer::{GlibAlarm, GlibTimer};

/// The priority of a runtime on its context: 150. GTK lays out at 110 and draws at 120 (a smaller number goes first), so
/// that a fast transfer never keeps a window from being drawn; idle work comes after us, at 200.
pub const DEFAULT_PRIORITY: i32 = 150;

/// A GLib main context as a loop, for Linux. Tasks stay on the thread that runs the context, and keep it alive until
/// they end.
#[derive(Clone, Debug)]
pub struct GlibRuntime {
    driver: Arc<Driver>,
}

impl GlibRuntime {
    /// The loop of `context`, e.g. `MainContext::default()` in a GTK application, at [`DEFAULT_PRIORITY`].
    ///
    /// # Errors
    /// When no descriptor is free.
    pub fn new(context: MainContext) -> io::Result<Self> {
        Self::with_priority(context, Priority::from(DEFAULT_PRIORITY))
    }

    /// The same with another priority for its sockets, timers and tasks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_priority(context: MainContext, priority: Priority) -> io::Result<Self> {
        Ok(GlibRuntime { driver: Driver::new(context, priority)? })
    }

    /// The context.
    pub fn context(&self) -> &MainContext {
        &self.driver.context
    }
}

impl Runtime for GlibRuntime {
    type Source = GlibSource;
    type Timer = GlibTimer;

    fn source(&self, socket: OwnedFd) -> io::Result<GlibSource> {
        GlibSource::register(&self.driver, socket)
    }

    fn timer(&self) -> GlibTimer {
        GlibTimer::new(GlibAlarm::new(&self.driver))
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

impl<F: Future<Output = ()> + 'static> Spawn<F> for GlibRuntime {
    /// # Panics
    /// When another thread runs the context.
    fn spawn(&self, future: F) {
        let owner = self.context().acquire();
        assert!(owner.is_ok(), "a task was started on another thread than the one that runs the context");
        let driver = Arc::clone(&self.driver);
        let (task, handle) = async_task::spawn_local(future, move |task| driver.schedule(task));
        handle.detach();
        task.schedule();
    }
}
