//! The kernel interfaces that the loop can wait on, behind one vtable, and the choice among them.

#[cfg(target_os = "linux")]
mod epoll;
#[cfg(target_os = "linux")]
mod io_uring;
#[cfg(any(
    test,
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "netbsd",
    target_os = "dragonfly"
))]
mod kqueue;
mod poll;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::time::Duration;

use hyperman_transport::Interest;

/// The environment variable that forces a backend.
const VARIABLE: &str = "HYPERMAN_BACKEND";

/// What the loop waits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// Linux: edge-triggered, one registration for the life of a socket.
    Epoll,
    /// Linux: readiness by poll requests in a ring, so that waiting for a whole batch of sockets costs one system call.
    IoUring,
    /// BSD and macOS: edge-triggered, one registration for the life of a socket.
    Kqueue,
    /// Every Unix: the list of sockets goes to the kernel each time.
    Poll,
}

type Opener = fn() -> io::Result<Box<dyn Driver>>;

/// What this system has, in the order in which [`Loop::new`](crate::Loop::new) tries it. After the first `false` nothing
/// is tried by itself.
const BACKENDS: &[(Backend, bool, Opener)] = &[
    #[cfg(target_os = "linux")]
    (Backend::Epoll, true, epoll::open),
    #[cfg(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "openbsd",
        target_os = "netbsd",
        target_os = "dragonfly"
    ))]
    (Backend::Kqueue, true, kqueue::open),
    (Backend::Poll, true, poll::open),
    #[cfg(target_os = "linux")]
    (Backend::IoUring, false, io_uring::open),
];

impl Backend {
    /// All there are, on whatever system.
    const ALL: [Backend; 4] = [Backend::Epoll, Backend::IoUring, Backend::Kqueue, Backend::Poll];

    /// The backends that work on this machine now. [`Loop::new`](crate::Loop::new) takes the first.
    pub fn available() -> Vec<Backend> {
        BACKENDS.iter().filter(|(.., open)| open().is_ok()).map(|(backend, ..)| *backend).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Backend::Epoll => "epoll",
            Backend::IoUring => "io_uring",
            Backend::Kqueue => "kqueue",
            Backend::Poll => "poll",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name of a backend that there is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBackend {
    name: String,
}

impl fmt::Display for UnknownBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no backend is called {:?}", self.name)
    }
}

impl std::error::Error for UnknownBackend {}

impl FromStr for Backend {
    type Err = UnknownBackend;

    /// The names are `epoll`, `io_uring`, `kqueue` and `poll`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Backend::ALL
            .into_iter()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| UnknownBackend { name: name.to_owned() })
    }
}

/// Opens the backend that `HYPERMAN_BACKEND` names, else the first that works.
pub(crate) fn open_default() -> io::Result<Box<dyn Driver>> {
    match std::env::var_os(VARIABLE) {
        Some(name) if !name.is_empty() => open_named(&name.to_string_lossy()),
        _ => open_first(),
    }
}

fn open_named(name: &str) -> io::Result<Box<dyn Driver>> {
    match name.parse() {
        Ok(backend) => open(backend),
        Err(unknown) => {
            Err(refusal(io::ErrorKind::InvalidInput, &format_args!("{VARIABLE}={name}: {unknown}")))
        }
    }
}

fn open_first() -> io::Result<Box<dyn Driver>> {
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for (_, _, open) in BACKENDS.iter().take_while(|(_, by_itself, _)| *by_itself) {
        match open() {
            Ok(driver) => return Ok(driver),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Opens one backend.
pub(crate) fn open(backend: Backend) -> io::Result<Box<dyn Driver>> {
    match BACKENDS.iter().find(|(there, ..)| *there == backend) {
        Some((.., open)) => open()
            .map_err(|error| refusal(error.kind(), &format_args!("{backend} does not work here ({error})"))),
        None => Err(refusal(io::ErrorKind::Unsupported, &format_args!("this system has no {backend}"))),
    }
}

/// An error that says what would work.
fn refusal(kind: io::ErrorKind, what: &dyn fmt::Display) -> io::Error {
    let names: Vec<&str> = Backend::available().into_iter().map(Backend::name).collect();
    io::Error::new(kind, format!("{what}; this machine can do: {}", names.join(", ")))
}

/// Names a registration in what the kernel reports: a slot, and which occupant of it.
pub(crate) type Key = u64;

/// The key of the descriptor that other threads wake the loop by.
pub(crate) const WAKE_KEY: Key = Key::MAX;

/// A number for the slot of a key, small and without gaps, for tables; the wake-up descriptor's is 0.
fn slot_of(key: Key) -> usize {
    (key as u32).wrapping_add(1) as usize
}

/// What the kernel said of one socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) key: Key,
    pub(crate) ready: Ready,
}

/// A set of conditions of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready(pub(crate) u8);

impl Ready {
    /// A read will not block.
    pub(crate) const READ: u8 = 1;
    /// A write will not block.
    pub(crate) const WRITE: u8 = 2;
    /// A read that does not fill its buffer may leave something behind: end of file, an error, urgent data.
    pub(crate) const MORE_BEHIND: u8 = 4;
}

/// One kernel interface.
pub(crate) trait Driver {
    /// Which one.
    fn backend(&self) -> Backend;

    /// Whether a registered socket reports every change by itself; [`arm`](Driver::arm) is then not called.
    fn edge_triggered(&self) -> bool;

    /// Starts to watch a descriptor.
    fn add(&mut self, fd: BorrowedFd<'_>, key: Key) -> io::Result<()>;

    /// Asks for one report of `interest`.
    fn arm(&mut self, fd: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()>;

    /// Forgets a descriptor, which is still open. No event with this key is reported after.
    fn remove(&mut self, fd: BorrowedFd<'_>, key: Key);

    /// Waits for events, at most `timeout` (rounded up to what the kernel can measure), and appends them. Being
    /// interrupted is not an error.
    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()>;
}

/// Rounded up, so that no timer is early and none is waited for in a busy loop; at most a day, since the kernels' own
/// limits differ.
#[inline]
fn whole_milliseconds(timeout: Duration) -> rustix::event::Timespec {
    let seconds = timeout.as_secs().min(LONGEST_WAIT) as i32;
    let milliseconds = timeout.subsec_nanos().div_ceil(1_000_000) as i32;
    // 999.5 ms are a whole second.
    let (seconds, milliseconds) =
        if milliseconds == 1000 { (seconds + 1, 0) } else { (seconds, milliseconds) };
    rustix::event::Timespec { tv_sec: seconds.into(), tv_nsec: (milliseconds * 1_000_000).into() }
}

/// A day, in seconds. A loop that wakes up once a day for nothing harms nobody.
const LONGEST_WAIT: u64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up_to_milliseconds() {
        let cases = [
            (Duration::ZERO, (0, 0)),
            (Duration::from_nanos(1), (0, 1_000_000)),
            (Duration::from_nanos(1_000_000), (0, 1_000_000)),
            (Duration::from_nanos(1_000_001), (0, 2_000_000)),
            (Duration::from_nanos(2_999_000_001), (3, 0)),
            (Duration::from_nanos(2_999_000_000), (2, 999_000_000)),
            (Duration::MAX, (86_401, 0)),
        ];
        for (timeout, (seconds, nanoseconds)) in cases {
            let rounded = whole_milliseconds(timeout);
            assert_eq!((rounded.tv_sec, rounded.tv_nsec), (seconds, nanoseconds), "{timeout:?}");
        }
    }
}
