//! Which socket an event belongs to: slots with generations, so that an event of a socket that is gone is never heard
//! by the one that came after it into the same slot.

use std::cell::Cell;
use std::rc::Rc;

use crate::backend::{Key, Ready};
use crate::waker_slot::WakerSlot;

/// What is known of a socket, and who waits for it.
#[derive(Debug)]
pub(crate) struct Readiness {
    flags: Cell<u8>,
    pub(crate) reader: WakerSlot,
    pub(crate) writer: WakerSlot,
}

/// The flags of a [`Readiness`] beyond those of [`Ready`].
const READER_WAITS: u8 = 8;
const WRITER_WAITS: u8 = 16;

impl Readiness {
    /// A new socket is taken to be ready: an attempt will tell.
    fn new() -> Self {
        Readiness {
            flags: Cell::new(Ready::READ | Ready::WRITE),
            reader: WakerSlot::default(),
            writer: WakerSlot::default(),
        }
    }

    /// Whether all of `flags` are known to hold.
    #[inline]
    pub(crate) fn is(&self, flags: u8) -> bool {
        self.flags.get() & flags == flags
    }

    /// An attempt would have blocked, or a read has drained the socket.
    #[inline]
    pub(crate) fn clear(&self, flags: u8) {
        self.flags.set(self.flags.get() & !flags);
    }

    /// Somebody waits for a read.
    #[inline]
    pub(crate) fn reader_waits(&self) {
        self.flags.set(self.flags.get() | READER_WAITS);
    }

    /// Whether somebody waits for a read, and the socket has nothing for them.
    #[inline]
    pub(crate) fn reader_is_waiting(&self) -> bool {
        self.flags.get() & (READER_WAITS | Ready::READ) == READER_WAITS
    }

    /// Somebody waits for a write.
    #[inline]
    pub(crate) fn writer_waits(&self) {
        self.flags.set(self.flags.get() | WRITER_WAITS);
    }

    /// Notes what the kernel reported, and wakes those who waited for it.
    #[inline]
    pub(crate) fn report(&self, ready: Ready) {
        let before = self.flags.get();
        let mut woken = 0;
        if ready.0 & Ready::READ != 0 {
            woken |= before & READER_WAITS;
        }
        if ready.0 & Ready::WRITE != 0 {
            woken |= before & WRITER_WAITS;
        }
        self.flags.set((before | ready.0) & !woken);
        if woken & READER_WAITS != 0 {
            self.reader.wake();
        }
        if woken & WRITER_WAITS != 0 {
            self.writer.wake();
        }
    }
}

/// The sockets of a loop.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    readiness: Option<Rc<Readiness>>,
}

impl Registry {
    /// Takes a slot. `None` when four billion are taken.
    pub(crate) fn insert(&mut self) -> Option<(Key, Rc<Readiness>)> {
        let readiness = Rc::new(Readiness::new());
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.slots.len()).ok().filter(|index| *index != u32::MAX)?;
                self.slots.push(Slot { generation: 0, readiness: None });
                index
            }
        };
        let slot = self.slots.get_mut(index as usize)?;
        slot.readiness = Some(Rc::clone(&readiness));
        Some((Key::from(slot.generation) << 32 | Key::from(index), readiness))
    }

    /// Gives a slot back; what was in it is handed out, so that it is dropped when nothing is borrowed.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Rc<Readiness>> {
        let (generation, index) = parts(key);
        let slot = self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation)?;
        let readiness = slot.readiness.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        Some(readiness)
    }

    /// The socket that has this key, if it is still there.
    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<Rc<Readiness>> {
        let (generation, index) = parts(key);
        let slot = self.slots.get(index as usize).filter(|slot| slot.generation == generation)?;
        slot.readiness.clone()
    }
}

#[inline]
fn parts(key: Key) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}
