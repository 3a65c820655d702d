//! Linux io_uring, for readiness only: waiting for a socket is a poll request in the submission ring, so arming a whole
//! batch of sockets and waiting for the next events is one system call.
//!
//! A request lasts for one report, and is answered at once if the condition holds already. The kernel keeps a socket
//! open for as long as a request for it is alive; so a request is withdrawn before its descriptor closes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use hyperman_transport::Interest;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::{Backend, Driver, Event, Key, Ready, slot_of};

/// Room for requests between two entries into the kernel, 256. When it is full, the loop enters once more.
const ENTRIES: u32 = 256;

/// Room for answers, 4,096: as many sockets can become ready in a turn before the kernel has to keep answers elsewhere.
const ANSWERS: u32 = 4096;

pub(super) fn open() -> io::Result<Box<dyn Driver>> {
    let ring = ring()?;
    if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "Linux 5.11 or newer is needed"));
    }
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    if !known.is_supported(opcode::PollAdd::CODE) || !known.is_supported(opcode::AsyncCancel::CODE) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "its poll requests are not allowed"));
    }
    Ok(Box::new(Uring { ring, slots: Vec::new(), reported: Vec::new() }))
}

/// The ring of one thread: answers are worked out only when that thread asks for them, not by interrupting it. Kernels
/// before 6.1 cannot do that.
fn ring() -> io::Result<IoUring> {
    let best = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(ANSWERS)
        .setup_clamp()
        .build(ENTRIES);
    match best {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            IoUring::builder().setup_cqsize(ANSWERS).setup_clamp().build(ENTRIES)
        }
        made => made,
    }
}

struct Uring {
    ring: IoUring,
    slots: Vec<Slot>,
    /// What was answered and not passed on yet.
    reported: Vec<Event>,
}

/// What is asked of the kernel for one socket.
#[derive(Clone, Copy)]
struct Slot {
    key: Key,
    fd: RawFd,
    /// A request for this interest is alive.
    armed: [bool; 2],
}

/// A slot that had no socket yet.
const UNUSED: Slot = Slot { key: Key::MAX, fd: -1, armed: [false; 2] };

/// The answer to a withdrawal. It would be the label of a write to the wake-up descriptor, which nobody waits for.
const WITHDRAWAL: u64 = u64::MAX;

/// A request's label: the key, and the interest in the bit that is the top one of the key's generation. Only after two
/// thousand million sockets in one slot could an answer be taken for another's, and by then it is long gone.
fn label(key: Key, interest: Interest) -> u64 {
    key & !(1 << 63) | (side(interest) as u64) << 63
}

fn side(interest: Interest) -> usize {
    match interest {
        Interest::Read => 0,
        Interest::Write => 1,
    }
}

impl Uring {
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: poll requests and withdrawals refer to no memory of ours. The descriptor is open now, and the
            // kernel holds the socket itself from when it has taken the request.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0, None)?;
            // The kernel may take no requests while it has answers that it finds no room for.
            self.take_answers()?;
        }
    }

    /// Hands over the requests, has the kernel work out what is due, and waits for `wanted` answers.
    fn enter(&mut self, wanted: u32, timeout: Option<Duration>) -> io::Result<()> {
        let timespec = timeout.map(Timespec::from);
        let mut arguments = SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        let requests = self.ring.submission().len() as u32;
        // Asking for events even when none are wanted makes the kernel finish what a withdrawal began.
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        // SAFETY: `EXT_ARG` says that the argument is what `SubmitArgs` is made for; it and the time that it points at
        // live until the call returns, and only as many requests are handed over as were pushed.
        let entered =
            unsafe { self.ring.submitter().enter(requests, wanted, flags.bits(), Some(&arguments)) };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                // The time is up; a signal came; or the answers have to be taken first.
                Some(Errno::TIME | Errno::INTR | Errno::BUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Moves what the kernel has answered to `reported`.
    fn take_answers(&mut self) -> io::Result<()> {
        let mut half_closed = Vec::new();
        for answer in self.ring.completion() {
            if answer.user_data() == WITHDRAWAL {
                continue;
            }
            let interest = if answer.user_data() >> 63 == 0 { Interest::Read } else { Interest::Write };
            let slot = self.slots.get_mut(slot_of(slot_part(answer.user_data())));
            let slot = slot.filter(|slot| label(slot.key, interest) == answer.user_data());
            // The socket may be gone, and its slot be another's.
            let Some(slot) = slot else { continue };
            let alive = cqueue::more(answer.flags());
            // A request that failed is reported too: the attempt finds out why.
            let flags = PollFlags::from_bits_truncate(answer.result().max(0) as u16);
            let broken =
                answer.result() < 0 || flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            if interest == Interest::Write && !broken && !flags.contains(PollFlags::OUT) {
                if !alive {
                    half_closed.push((slot.fd, answer.user_data()));
                }
                continue;
            }
            if let Some(armed) = slot.armed.get_mut(side(interest)) {
                *armed = alive;
            }
            self.reported.push(Event { key: slot.key, ready: ready(interest, broken) });
        }
        for (fd, label) in half_closed {
            // io_uring also answers when the peer has ended its direction, and would do so again and again. A lasting
            // request answers once for that, and again when there is room.
            let request = opcode::PollAdd::new(Fd(fd), u32::from(PollFlags::OUT.bits())).multi(true);
            self.push(&request.build().user_data(label))?;
        }
        Ok(())
    }
}

impl Driver for Uring {
    fn backend(&self) -> Backend {
        Backend::IoUring
    }

    fn edge_triggered(&self) -> bool {
        false
    }

    fn add(&mut self, fd: BorrowedFd<'_>, key: Key) -> io::Result<()> {
        let slot = slot_of(key);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, UNUSED);
        }
        if let Some(there) = self.slots.get_mut(slot) {
            *there = Slot { key, fd: fd.as_raw_fd(), armed: [false; 2] };
        }
        Ok(())
    }

    fn arm(&mut self, fd: BorrowedFd<'_>, key: Key, interest: Interest) -> io::Result<()> {
        let Some(slot) = self.slots.get(slot_of(key)).filter(|slot| slot.key == key) else { return Ok(()) };
        if slot.armed.get(side(interest)).copied().unwrap_or(true) {
            return Ok(());
        }
        let events = match interest {
            Interest::Read => PollFlags::IN | PollFlags::PRI,
            Interest::Write => PollFlags::OUT,
        };
        let request = opcode::PollAdd::new(Fd(fd.as_raw_fd()), u32::from(events.bits()));
        self.push(&request.build().user_data(label(key, interest)))?;
        if let Some(armed) =
            self.slots.get_mut(slot_of(key)).and_then(|slot| slot.armed.get_mut(side(interest)))
        {
            *armed = true;
        }
        Ok(())
    }

    fn remove(&mut self, _fd: BorrowedFd<'_>, key: Key) {
        let Some(slot) = self.slots.get_mut(slot_of(key)).filter(|slot| slot.key == key) else { return };
        let armed = std::mem::take(&mut slot.armed);
        let mut withdrawn = Ok(());
        for interest in [Interest::Read, Interest::Write] {
            if armed.get(side(interest)) == Some(&true) {
                // No removal of a poll request: it does nothing to one that has been triggered and whose answer is not
                // worked out yet, and a lasting one would hold the socket open from then on.
                let withdrawal = opcode::AsyncCancel::new(label(key, interest)).build().user_data(WITHDRAWAL);
                withdrawn = withdrawn.and(self.push(&withdrawal));
            }
        }
        if armed.contains(&true) {
            // At once: the peer is to see the end when the descriptor closes, not when the loop turns next. If even
            // that fails, the requests go with the ring.
            let _ = withdrawn.and_then(|()| self.enter(0, None));
        }
    }

    fn wait(&mut self, timeout: Option<Duration>, events: &mut Vec<Event>) -> io::Result<()> {
        let at_once = timeout == Some(Duration::ZERO) || !self.reported.is_empty();
        self.enter(u32::from(!at_once), timeout.filter(|_| !at_once))?;
        self.take_answers()?;
        events.append(&mut self.reported);
        Ok(())
    }
}

/// The part of a label, or of a key, that is the slot's number.
fn slot_part(label: u64) -> Key {
    label & u64::from(u32::MAX)
}

/// An error or a hang-up concerns both directions. `MORE_BEHIND` is not needed: an arming reports what stands already.
fn ready(interest: Interest, broken: bool) -> Ready {
    Ready(match (interest, broken) {
        (_, true) => Ready::READ | Ready::WRITE,
        (Interest::Read, false) => Ready::READ,
        (Interest::Write, false) => Ready::WRITE,
    })
}
