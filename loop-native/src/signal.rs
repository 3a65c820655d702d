//! Signals as something a task waits for.
//!
//! The handler sets a bit and writes one byte into a socket pair; the loop hears of the other end. Several may listen to
//! the same signal, each hears it, and what was installed before by others still runs. A signal that was ever listened to
//! no longer has its default effect, also after the last listener is gone.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use bytes::BytesMut;
use hyperman_transport::{ArmReadiness, Runtime};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};
use signal_hook_registry::SigId;

use crate::event_loop::Handle;
use crate::source::Source;

/// A signal that can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// `SIGINT`: control-C.
    Interrupt,
    /// `SIGTERM`: the polite end.
    Terminate,
    /// `SIGHUP`: the terminal is gone, or a daemon is to reload.
    Hangup,
    /// `SIGQUIT`: control-backslash.
    Quit,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
    /// `SIGCHLD`: a child process has ended or stopped.
    Child,
    /// `SIGWINCH`: the terminal has another size.
    WindowChange,
}

/// All signals, in the order of their bits.
const SIGNALS: [(Signal, rustix::process::Signal); 8] = [
    (Signal::Interrupt, rustix::process::Signal::INT),
    (Signal::Terminate, rustix::process::Signal::TERM),
    (Signal::Hangup, rustix::process::Signal::HUP),
    (Signal::Quit, rustix::process::Signal::QUIT),
    (Signal::User1, rustix::process::Signal::USR1),
    (Signal::User2, rustix::process::Signal::USR2),
    (Signal::Child, rustix::process::Signal::CHILD),
    (Signal::WindowChange, rustix::process::Signal::WINCH),
];

/// Listens to some signals from now on.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// use hyperman_loop::{block_on, signal};
///
/// let why = block_on(|handle| async move {
///     let mut ending = signal::signals(&handle, &[signal::Signal::Interrupt, signal::Signal::Terminate])?;
///     ending.recv().await
/// })??;
/// println!("ended by {why:?}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The system calls', e.g. when no descriptor is free.
pub fn signals(handle: &Handle, wanted: &[Signal]) -> io::Result<Signals> {
    let (read, write) = socket_pair()?;
    let noted = Arc::new(Noted { pending: AtomicU32::new(0), write });
    let mut listening = Signals {
        source: handle.source(read)?,
        noted: Arc::clone(&noted),
        registered: Vec::new(),
        received: BytesMut::with_capacity(RECEIVED),
    };
    for (bit, (signal, number)) in SIGNALS.iter().enumerate() {
        if !wanted.contains(signal) {
            continue;
        }
        let noted = Arc::clone(&noted);
        let action = move || noted.note(bit);
        // SAFETY: the action does an atomic operation and one `send` that does not block, which are both allowed in a
        // signal handler (signal-safety(7)); it neither allocates nor locks nor panics. The registry restores `errno`.
        let id = unsafe { signal_hook_registry::register(number.as_raw(), action) }?;
        listening.registered.push(id);
    }
    Ok(listening)
}

/// Signals that a task waits for. Dropping it stops listening.
#[derive(Debug)]
pub struct Signals {
    source: Source,
    noted: Arc<Noted>,
    registered: Vec<SigId>,
    received: BytesMut,
}

/// Bytes taken at once from the socket pair. Their number means nothing.
const RECEIVED: usize = 64;

impl Signals {
    /// Waits for the next signal. Signals of one kind that come before the first of them was taken are one.
    ///
    /// # Errors
    /// When the loop cannot watch the socket pair.
    pub async fn recv(&mut self) -> io::Result<Signal> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv), for hand-written futures.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Signal>> {
        loop {
            if let Some(signal) = self.noted.take() {
                return Poll::Ready(Ok(signal));
            }
            self.received.clear();
            match self.source.poll_recv(cx, &mut self.received) {
                // A byte says no more than "look again".
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Drop for Signals {
    /// Unregistering waits for handlers that run at the moment; only then the socket pair closes.
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook_registry::unregister(id);
        }
    }
}

/// What the handler leaves for the task.
#[derive(Debug)]
struct Noted {
    /// One bit for each signal of [`SIGNALS`].
    pending: AtomicU32,
    write: OwnedFd,
}

impl Noted {
    /// Runs in the signal handler.
    fn note(&self, bit: usize) {
        self.pending.fetch_or(1 << bit, Ordering::Release);
        // It does not block. When the socket is full, the task will be woken by what is in it. The other end is open:
        // it closes after the last handler has returned (see the drop of `Signals`), so this raises no SIGPIPE.
        let _ = rustix::net::send(&self.write, &[1], SendFlags::empty());
    }

    fn take(&self) -> Option<Signal> {
        let pending = self.pending.load(Ordering::Acquire);
        let bit = SIGNALS.get(pending.trailing_zeros() as usize)?;
        self.pending.fetch_and(!(pending & pending.wrapping_neg()), Ordering::AcqRel);
        Some(bit.0)
    }
}

fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)?;
    for end in [&read, &write] {
        rustix::io::ioctl_fionbio(end, true)?;
        rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok((read, write))
}
