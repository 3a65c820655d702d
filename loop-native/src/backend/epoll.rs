//! Linux epoll, edge-triggered: one `epoll_ctl` when a socket comes, one when it goes, none between.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use hyperman_transport::Interest;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

use super::{Backend, Driver, Event, Key, Ready};

/// How many events one call takes, 256. More than are ready at once on most servers, and 3 KiB.
const BATCH: usize = 256;

pub(super) fn open() -> io::Result<Box<dyn Driver>> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    Ok(Box::new(Epoll { epoll, events: Vec::with_capacity(BATCH) }))
}

struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Driver for Epoll {
    fn backend(&self) -> Backend {
        Backend::Epoll
    }

    fn edge_triggered(&self) -> bool {
        true
    }

    fn add(&mut self, fd: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        let interest = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::PRI
            | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), interest)?)
    }

    fn arm(&mut self, _fd: BorrowedFd<'_>, _key: Key, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>, _key: Key) {
        // Closing would do it too, but not while a duplicate of the descriptor is alive somewhere (epoll(7)). It can
        // only fail for a descriptor that is not registered, and then there is nothing to remove.
        let _ = epoll::delete(&self.epoll, fd);
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        self.events.clear();
        let timeout = timeout.map(super::whole_milliseconds);
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        events.extend(
            self.events.iter().map(|event| Event { key: event.data.u64(), ready: ready(event.flags) }),
        );
        Ok(())
    }
}

/// Both directions learn of an error or a hang-up: the attempt finds out which it was.
#[inline]
fn ready(flags: epoll::EventFlags) -> Ready {
    const IN: u32 = epoll::EventFlags::IN.bits();
    const OUT: u32 = epoll::EventFlags::OUT.bits();
    const BROKEN: u32 = epoll::EventFlags::HUP.union(epoll::EventFlags::ERR).bits();
    let flags = flags.bits();
    let read = u8::from(flags & IN != 0) * Ready::READ;
    let write = u8::from(flags & OUT != 0) * Ready::WRITE;
    // What else there is are urgent data and the ends of directions.
    let behind = match flags & !(IN | OUT) {
        0 => 0,
        more if more & BROKEN != 0 => Ready::READ | Ready::WRITE | Ready::MORE_BEHIND,
        _ => Ready::READ | Ready::MORE_BEHIND,
    };
    Ready(read | write | behind)
}
