//! Hyperman and Fetch on a GLib main context: inside a GTK application, or any other program that runs a GLib loop.
//!
//! Nothing here runs a loop, blocks, or starts a thread: sockets and timers are sources of the context that the
//! program runs anyway, and tasks are futures on it.
//!
//! ```
//! use hyperman_glib::GlibRuntime;
//!
//! let context = glib::MainContext::new();
//! let runtime = GlibRuntime::new(context.clone());
//! context.block_on(async move {
//!     // Serve and fetch with `runtime` here; in a GTK application, in the callback of a widget.
//! #   let _ = runtime;
//! });
//! ```
//!
//! Here is the loop's handle; [`source`] holds the sockets, [`timer`] the timers, and `alarm` what both are made of.

#![forbid(unsafe_code)]

mod alarm;
pub mod source;
pub mod timer;

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use glib::{MainContext, Priority};
use hyperman_transport::{Runtime, Spawn};

pub use source::GlibSource;
pub use timer::GlibTimer;

/// The priority of everything that we add to a context: 150. GTK lays out at 110 and draws at 120 (a smaller number
/// goes first), so that a fast transfer never keeps a window from being drawn; idle work comes after us, at 200.
pub const DEFAULT_PRIORITY: i32 = 150;

/// A GLib main context as a loop. Tasks stay on the thread that runs the context, and keep it alive until they end.
#[derive(Clone, Debug)]
pub struct GlibRuntime {
    context: MainContext,
    priority: Priority,
}

impl GlibRuntime {
    /// The loop of `context`, e.g. `MainContext::default()` in a GTK application, at [`DEFAULT_PRIORITY`].
    pub fn new(context: MainContext) -> Self {
        GlibRuntime { context, priority: Priority::from(DEFAULT_PRIORITY) }
    }

    /// The same with another priority for its sockets, timers and tasks.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Self {
        GlibRuntime { priority, ..self }
    }

    /// The context.
    pub fn context(&self) -> &MainContext {
        &self.context
    }

    fn attach(&self, source: &glib::Source) {
        source.attach(Some(&self.context));
    }
}

impl Runtime for GlibRuntime {
    type Source = GlibSource;
    type Timer = GlibTimer;

    fn source(&self, socket: OwnedFd) -> io::Result<GlibSource> {
        Ok(GlibSource::new(self.clone(), socket))
    }

    fn timer(&self) -> GlibTimer {
        GlibTimer::new(self.clone())
    }

    fn now(&self) -> Instant {
        Instant::now()
    }
}

impl<F: Future<Output = ()> + 'static> Spawn<F> for GlibRuntime {
    /// # Panics
    /// When another thread runs the context.
    fn spawn(&self, future: F) {
        drop(self.context.spawn_local_with_priority(self.priority, future));
    }
}
