//! Wake-ups from other threads: a queue under a lock, and a descriptor that ends the loop's wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::task::TaskRef;

/// What a waker on another thread reaches of its loop.
#[derive(Debug)]
pub(crate) struct Remote {
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    woken: Vec<TaskRef>,
    /// Gone once the loop is.
    bell: Option<Bell>,
    /// Whether the bell has been rung since the queue was last emptied.
    rung: bool,
}

impl Remote {
    pub(crate) fn new() -> io::Result<Self> {
        let bell = Some(Bell::new()?);
        Ok(Remote { queue: Mutex::new(Queue { woken: Vec::new(), bell, rung: false }) })
    }

    /// Queues a task and rings the bell, if the loop is still there.
    pub(crate) fn wake(&self, task: TaskRef) {
        let mut queue = self.lock();
        if queue.bell.is_none() {
            // Not under the lock: this may be the last reference.
            drop(queue);
            drop(task);
            return;
        }
        queue.woken.push(task);
        if !queue.rung {
            queue.rung = true;
            if let Some(bell) = &queue.bell {
                bell.ring();
            }
        }
    }

    /// Swaps the queue for an empty one, and silences the bell.
    pub(crate) fn collect(&self, into: &mut Vec<TaskRef>) {
        let mut queue = self.lock();
        if queue.rung {
            queue.rung = false;
            if let Some(bell) = &queue.bell {
                bell.silence();
            }
        }
        std::mem::swap(&mut queue.woken, into);
    }

    /// Runs `f` with the descriptor that becomes readable when the bell rings.
    pub(crate) fn with_bell<T>(&self, f: impl FnOnce(BorrowedFd<'_>) -> T) -> Option<T> {
        self.lock().bell.as_ref().map(|bell| f(bell.fd()))
    }

    /// The loop is gone: later wake-ups do nothing.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        let woken = std::mem::take(&mut queue.woken);
        queue.bell = None;
        drop(queue);
        drop(woken);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that could panic runs under the lock but `Vec::push`, which leaves the queue whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A descriptor that becomes readable when it is rung.
#[derive(Debug)]
struct Bell {
    read: OwnedFd,
    /// The other end where there is no eventfd.
    #[cfg(not(target_os = "linux"))]
    write: OwnedFd,
}

#[cfg(target_os = "linux")]
impl Bell {
    fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(Bell { read: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Cannot block: it is rung once between two silences, so the counter stays at one.
    fn ring(&self) {
        let _ = rustix::io::write(&self.read, &1_u64.to_ne_bytes());
    }

    fn silence(&self) {
        let _ = rustix::io::read(&self.read, &mut [0_u8; 8]);
    }
}

#[cfg(not(target_os = "linux"))]
impl Bell {
    fn new() -> io::Result<Self> {
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::ioctl_fionbio(end, true)?;
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        Ok(Bell { read, write })
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// Cannot block: it is rung once between two silences, so the pipe holds at most one byte.
    fn ring(&self) {
        let _ = rustix::io::write(&self.write, &[1]);
    }

    fn silence(&self) {
        let _ = rustix::io::read(&self.read, &mut [0_u8; 8]);
    }
}
