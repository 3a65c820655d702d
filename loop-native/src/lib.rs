//! Hyperman's own event loop: one thread, an executor, timers, signals, wake-ups from other threads.
//!
//! ```
//! use std::time::Duration;
//!
//! let answer = hyperman_loop::block_on(|handle| async move {
//!     let task = handle.spawn_with_handle(async { 40 });
//!     handle.sleep(Duration::from_millis(2)).await;
//!     task.await.unwrap_or(0) + 2
//! })?;
//! assert_eq!(answer, 42);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A [`Loop`] owns everything: tasks, timers, the registrations of sockets. A [`Handle`] is what tasks pass around; it
//! is the loop's [`Runtime`](hyperman_transport::Runtime) and [`Spawn`](hyperman_transport::Spawn), and stays on the
//! loop's thread. Wakers may go anywhere.
//!
//! # One turn
//!
//! 1. Up to 128 woken tasks are polled, in the order in which they were woken.
//! 2. The kernel is asked for events; it may wait until the next timer is due if no task is left to run.
//! 3. The clock is read, once.
//! 4. Events and due timers wake their tasks, and wake-ups of other threads are collected.
//!
//! So a task that wakes itself for ever holds up neither sockets nor timers, and neither the depth of the stack nor the
//! number of system calls depends on how many tasks are ready.
//!
//! # Panics
//!
//! A task that panics is dropped after the panic hook has reported it; the other tasks go on. A panic of the future
//! given to `block_on` goes to the caller.
//!
//! # Backends
//!
//! See [`Backend`]. Sockets are registered edge-triggered where the system can do that: once when they come, and never
//! again. A source remembers what the kernel last said of its socket, so that a read that did not fill its buffer needs
//! no second one that fails.

mod backend;
mod event_loop;
mod join;
mod registry;
mod remote;
mod run_queue;
pub mod signal;
mod source;
mod task;
mod timer;
mod waker_slot;

pub use backend::{Backend, UnknownBackend};
pub use event_loop::{Handle, Loop, block_on};
pub use join::{JoinError, JoinHandle};
pub use source::Source;
pub use timer::{Sleep, Timer};
