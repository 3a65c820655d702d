//! POSIX poll: the list of descriptors that somebody waits on goes to the kernel each time. For where nothing better is.
//!
//! A descriptor is in the list from its arming until it was reported, so one that nobody waits on never ends a wait.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use hyperman_transport::Interest;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::{Backend, Driver, Event, Key, Ready, slot_of};

pub(super) fn open() -> io::Result<Box<dyn Driver>> {
    Ok(Box::new(Poll::default()))
}

#[derive(Default)]
struct Poll {
    /// What goes to the kernel; each has its [`Waited`] at the same place.
    list: Vec<PollFd<'static>>,
    waited: Vec<Waited>,
    /// Where in the list a slot is, or [`NOWHERE`].
    places: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Waited {
    key: Key,
    fd: RawFd,
    events: PollFlags,
}

const NOWHERE: u32 = u32::MAX;

impl Poll {
    fn place_of(&self, key: Key) -> Option<usize> {
        let place = self.places.get(slot_of(key)).copied().filter(|place| *place != NOWHERE)? as usize;
        // The slot may have had another occupant.
        self.waited.get(place).filter(|waited| waited.key == key).map(|_| place)
    }

    fn take_off(&mut self, place: usize) {
        self.list.swap_remove(place);
        let gone = self.waited.swap_remove(place);
        self.note_place(gone.key, NOWHERE);
        if let Some(moved) = self.waited.get(place).copied() {
            self.note_place(moved.key, place as u32);
        }
    }

    fn note_place(&mut self, key: Key, place: u32) {
        let slot = slot_of(key);
        if slot >= self.places.len() {
            self.places.resize(slot + 1, NOWHERE);
        }
        if let Some(there) = self.places.get_mut(slot) {
            *there = place;
        }
    }
}

impl Driver for Poll {
    fn backend(&self) -> Backend {
        Backend::Poll
    }

    fn edge_triggered(&self) -> bool {
        false
    }

    fn add(&mut self, _fd: BorrowedFd<'_>, _key: Key) -> io::Result<()> {
        Ok(())
    }

    fn arm(&mut self, fd: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        let wanted = match interest {
            Interest::Read => PollFlags::IN | PollFlags::PRI,
            Interest::Write => PollFlags::OUT,
        };
        match self.place_of(key) {
            Some(place) => {
                if let (Some(waited), Some(there)) = (self.waited.get_mut(place), self.list.get_mut(place)) {
                    waited.events |= wanted;
                    *there = poll_fd(waited);
                }
            }
            None => {
                let waited = Waited { key, fd: fd.as_raw_fd(), events: wanted };
                let place = u32::try_from(self.list.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
                self.list.push(poll_fd(&waited));
                self.waited.push(waited);
                self.note_place(key, place);
            }
        }
        Ok(())
    }

    fn remove(&mut self, _fd: BorrowedFd<'_>, key: Key) {
        if let Some(place) = self.place_of(key) {
            self.take_off(place);
        }
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let timeout = timeout.map(super::whole_milliseconds);
        let mut reported = match rustix::event::poll(&mut self.list, timeout.as_ref()) {
            Ok(reported) => reported,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // From the end, since what leaves the list is replaced by the last.
        let mut place = self.list.len();
        while reported > 0 && place > 0 {
            place -= 1;
            let (Some(there), Some(waited)) = (self.list.get_mut(place), self.waited.get_mut(place)) else {
                break;
            };
            let flags = there.revents();
            if flags.is_empty() {
                continue;
            }
            reported -= 1;
            let ready = ready(flags);
            events.push(Event { key: waited.key, ready });
            if ready.0 & Ready::READ != 0 {
                waited.events -= PollFlags::IN | PollFlags::PRI;
            }
            if ready.0 & Ready::WRITE != 0 {
                waited.events -= PollFlags::OUT;
            }
            if waited.events.is_empty() {
                self.take_off(place);
            } else {
                *there = poll_fd(waited);
            }
        }
        Ok(())
    }
}

/// Errors and hang-ups are reported to both directions: the attempt finds out which it was.
fn ready(flags: PollFlags) -> Ready {
    let broken = flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    let mut ready = 0;
    if broken || flags.intersects(PollFlags::IN | PollFlags::PRI) {
        ready |= Ready::READ;
    }
    if broken || flags.contains(PollFlags::OUT) {
        ready |= Ready::WRITE;
    }
    // `MORE_BEHIND` is not needed: an arming reports what stands already.
    Ready(ready)
}

fn poll_fd(waited: &Waited) -> PollFd<'static> {
    // SAFETY: a descriptor is in the list only until `remove`, and is open until then (see `Driver::remove`).
    PollFd::from_borrowed_fd(unsafe { BorrowedFd::borrow_raw(waited.fd) }, waited.events)
}
