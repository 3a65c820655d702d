//! BSD's and macOS's kqueue, edge-triggered: both filters of a socket are registered when it comes, and removed when it
//! goes.
//!
//! The system calls are in [`System`], a thin layer with nothing to decide; the rest is tested on any Unix against one
//! that is made up.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use hyperman_transport::Interest;

use super::{Backend, Driver, Event, Key, Ready};

#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "netbsd",
    target_os = "dragonfly"
))]
pub(super) fn open() -> io::Result<Box<dyn Driver>> {
    Ok(Box::new(Kqueue { system: kernel::Kernel::new()?, reports: Vec::new() }))
}

/// One filter of one descriptor, to be registered or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    fd: RawFd,
    interest: Interest,
    key: Key,
    add: bool,
}

/// What the kernel said of one filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    key: Key,
    interest: Interest,
    /// `EV_EOF` or `EV_ERROR`.
    ended: bool,
}

/// The two system calls.
trait System {
    /// Makes one change. Filters report edges (`EV_CLEAR`).
    fn change(&mut self, change: Change) -> io::Result<()>;

    /// Waits for reports and appends them; none when the time is up or a signal came.
    fn wait(&mut self, timeout: Option<Duration>, reports: &mut Vec<Report>) -> io::Result<()>;
}

struct Kqueue<S> {
    system: S,
    reports: Vec<Report>,
}

impl<S: System> Driver for Kqueue<S> {
    fn backend(&self) -> Backend {
        Backend::Kqueue
    }

    fn edge_triggered(&self) -> bool {
        true
    }

    fn add(&mut self, fd: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        let read = Change { fd, interest: Interest::Read, key, add: true };
        let write = Change { interest: Interest::Write, ..read };
        self.system.change(read)?;
        match self.system.change(write) {
            // The reading end of a pipe, such as the wake-up descriptor, cannot be written to.
            Err(error) if key == super::WAKE_KEY && error.kind() != io::ErrorKind::OutOfMemory => Ok(()),
            Err(error) => {
                let _ = self.system.change(Change { add: false, ..read });
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    fn arm(&mut self, _fd: BorrowedFd<'_>, _key: Key, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>, key: Key) {
        for interest in [Interest::Read, Interest::Write] {
            // It can only fail for a filter that is not there, and then there is nothing to remove.
            let _ = self.system.change(Change { fd: fd.as_raw_fd(), interest, key, add: false });
        }
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        self.system.wait(timeout, &mut self.reports)?;
        events.extend(self.reports.drain(..).map(|report| Event { key: report.key, ready: ready(report) }));
        Ok(())
    }
}

/// The end of the reading side is reported by the read filter alone, and does not concern writes (half-close). Behind it
/// a short read proves nothing: the report of the end may be the one that also told of the last bytes.
fn ready(report: Report) -> Ready {
    Ready(match (report.interest, report.ended) {
        (Interest::Read, false) => Ready::READ,
        (Interest::Read, true) => Ready::READ | Ready::MORE_BEHIND,
        (Interest::Write, false) => Ready::WRITE,
        (Interest::Write, true) => Ready::WRITE | Ready::READ | Ready::MORE_BEHIND,
    })
}

/// The thin layer: nothing here decides anything.
#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "openbsd",
    target_os = "netbsd",
    target_os = "dragonfly"
))]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use hyperman_transport::Interest;
    use rustix::buffer::spare_capacity;
    use rustix::event::Timespec;
    use rustix::event::kqueue::{self, EventFilter, EventFlags};
    use rustix::io::Errno;

    use super::{Change, Report, System};
    use crate::backend::Key;

    /// How many events one call takes, 256, as for epoll.
    const BATCH: usize = 256;

    /// What a filter carries for us is as wide as a pointer; a key needs 64 bits.
    const _: () = assert!(usize::BITS == 64, "the kqueue backend needs a 64-bit system");

    pub(super) struct Kernel {
        kqueue: OwnedFd,
        events: Vec<kqueue::Event>,
    }

    impl Kernel {
        pub(super) fn new() -> io::Result<Self> {
            let kqueue = kqueue::kqueue()?;
            // A child process does not inherit it across fork; this is for exec.
            rustix::io::fcntl_setfd(&kqueue, rustix::io::FdFlags::CLOEXEC)?;
            Ok(Kernel { kqueue, events: Vec::with_capacity(BATCH) })
        }
    }

    impl System for Kernel {
        fn change(&mut self, change: Change) -> io::Result<()> {
            let filter = match change.interest {
                Interest::Read => EventFilter::Read(change.fd),
                Interest::Write => EventFilter::Write(change.fd),
            };
            let flags = if change.add { EventFlags::ADD | EventFlags::CLEAR } else { EventFlags::DELETE };
            let data = std::ptr::without_provenance_mut(change.key as usize);
            let changes = [kqueue::Event::new(filter, flags, data)];
            let mut none: [kqueue::Event; 0] = [];
            // SAFETY: the descriptor is open: it was borrowed for this call (see `Driver`), and the filter is removed
            // before it closes.
            unsafe { kqueue::kevent_timespec(&self.kqueue, &changes, &mut none, Some(&NO_TIME)) }?;
            Ok(())
        }

        fn wait(&mut self, timeout: Option<Duration>, reports: &mut Vec<Report>) -> io::Result<()> {
            self.events.clear();
            let timeout = timeout.map(crate::backend::whole_milliseconds);
            // SAFETY: no changes are made.
            let waited = unsafe {
                kqueue::kevent_timespec(&self.kqueue, &[], spare_capacity(&mut self.events), timeout.as_ref())
            };
            match waited {
                Ok(_) => {}
                Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            reports.extend(self.events.iter().filter_map(report));
            Ok(())
        }
    }

    const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    fn report(event: &kqueue::Event) -> Option<Report> {
        let interest = match event.filter() {
            EventFilter::Read(_) => Interest::Read,
            EventFilter::Write(_) => Interest::Write,
            _ => return None,
        };
        let ended = event.flags().intersects(EventFlags::EOF | EventFlags::ERROR);
        Some(Report { key: event.udata().addr() as Key, interest, ended })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, VecDeque};
    use std::os::fd::AsFd;
    use std::rc::Rc;

    use rustix::io::Errno;

    use super::*;
    use crate::backend::WAKE_KEY;

    /// A kernel that keeps filters as kqueue does: one for each descriptor and interest, with the key of the last `add`.
    #[derive(Clone, Default)]
    struct Fake(Rc<RefCell<State>>);

    #[derive(Default)]
    struct State {
        filters: BTreeMap<(RawFd, u8), Key>,
        refuse_write: Option<Errno>,
        turns: VecDeque<Vec<(RawFd, Interest, bool)>>,
        waited: Vec<Option<Duration>>,
    }

    fn side(interest: Interest) -> u8 {
        u8::from(interest == Interest::Write)
    }

    impl System for Fake {
        fn change(&mut self, change: Change) -> io::Result<()> {
            let mut state = self.0.borrow_mut();
            if change.add
                && change.interest == Interest::Write
                && let Some(refused) = state.refuse_write
            {
                return Err(refused.into());
            }
            let filter = (change.fd, side(change.interest));
            if change.add {
                state.filters.insert(filter, change.key);
                return Ok(());
            }
            state.filters.remove(&filter).map(drop).ok_or_else(|| Errno::NOENT.into())
        }

        fn wait(&mut self, timeout: Option<Duration>, reports: &mut Vec<Report>) -> io::Result<()> {
            let mut state = self.0.borrow_mut();
            state.waited.push(timeout);
            let turn = state.turns.pop_front().unwrap_or_default();
            for (fd, interest, ended) in turn {
                if let Some(key) = state.filters.get(&(fd, side(interest))) {
                    reports.push(Report { key: *key, interest, ended });
                }
            }
            Ok(())
        }
    }

    fn driver() -> (Fake, Kqueue<Fake>) {
        let fake = Fake::default();
        (fake.clone(), Kqueue { system: fake, reports: Vec::new() })
    }

    fn socket() -> std::os::unix::net::UnixStream {
        std::os::unix::net::UnixStream::pair().unwrap().0
    }

    #[test]
    fn both_filters_come_and_go_with_the_socket() {
        let (fake, mut driver) = driver();
        let socket = socket();
        let fd = socket.as_raw_fd();
        driver.add(socket.as_fd(), 7).unwrap();
        assert_eq!(fake.0.borrow().filters, BTreeMap::from([((fd, 0), 7), ((fd, 1), 7)]));
        driver.arm(socket.as_fd(), 7, Interest::Read).unwrap();
        assert_eq!(fake.0.borrow().filters.len(), 2, "arming costs nothing");
        driver.remove(socket.as_fd(), 7);
        assert!(fake.0.borrow().filters.is_empty());
        // A second time, and for a socket that never was: nothing happens.
        driver.remove(socket.as_fd(), 7);
    }

    #[test]
    fn a_socket_that_is_half_registered_is_taken_back() {
        let (fake, mut driver) = driver();
        let socket = socket();
        fake.0.borrow_mut().refuse_write = Some(Errno::NOMEM);
        assert_eq!(driver.add(socket.as_fd(), 7).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert!(fake.0.borrow().filters.is_empty());
    }

    #[test]
    fn the_reading_end_of_a_pipe_will_do_as_wake_up_descriptor() {
        let (fake, mut driver) = driver();
        let socket = socket();
        fake.0.borrow_mut().refuse_write = Some(Errno::INVAL);
        driver.add(socket.as_fd(), WAKE_KEY).unwrap();
        assert_eq!(fake.0.borrow().filters, BTreeMap::from([((socket.as_raw_fd(), 0), WAKE_KEY)]));
        assert!(driver.add(socket.as_fd(), 1).is_err(), "but not as a socket");
    }

    #[test]
    fn reports_become_events() {
        let (fake, mut driver) = driver();
        let (a, b) = (socket(), socket());
        driver.add(a.as_fd(), 1).unwrap();
        driver.add(b.as_fd(), 2).unwrap();
        fake.0.borrow_mut().turns = VecDeque::from([
            vec![
                (a.as_raw_fd(), Interest::Read, false),
                (b.as_raw_fd(), Interest::Write, false),
                (a.as_raw_fd(), Interest::Read, true),
                (b.as_raw_fd(), Interest::Write, true),
            ],
            vec![],
            vec![(b.as_raw_fd(), Interest::Read, false)],
        ]);
        let event = |key, ready| Event { key, ready: Ready(ready) };
        let mut events = Vec::new();
        driver.wait(None, &mut events).unwrap();
        assert_eq!(
            events,
            [
                event(1, Ready::READ),
                event(2, Ready::WRITE),
                event(1, Ready::READ | Ready::MORE_BEHIND),
                event(2, Ready::READ | Ready::WRITE | Ready::MORE_BEHIND),
            ]
        );
        events.clear();
        driver.wait(Some(Duration::from_millis(3)), &mut events).unwrap();
        assert_eq!(events, [], "what was reported is not reported again");
        driver.remove(b.as_fd(), 2);
        driver.wait(Some(Duration::ZERO), &mut events).unwrap();
        assert_eq!(events, [], "nobody hears of a socket that was removed");
        assert_eq!(fake.0.borrow().waited, [None, Some(Duration::from_millis(3)), Some(Duration::ZERO)]);
    }

    #[test]
    fn a_number_that_is_used_again_has_the_key_of_its_new_socket() {
        let (fake, mut driver) = driver();
        let socket = socket();
        driver.add(socket.as_fd(), 1).unwrap();
        driver.remove(socket.as_fd(), 1);
        driver.add(socket.as_fd(), 1 << 32 | 1).unwrap();
        fake.0.borrow_mut().turns.push_back(vec![(socket.as_raw_fd(), Interest::Read, false)]);
        let mut events = Vec::new();
        driver.wait(None, &mut events).unwrap();
        assert_eq!(events, [Event { key: 1 << 32 | 1, ready: Ready(Ready::READ) }]);
    }
}
