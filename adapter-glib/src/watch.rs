//! The one GLib source of a runtime.
//!
//! Made by hand, for two things that the bindings have no way to say. It is asked before the context waits, so that a
//! task or a timer of this thread needs no system call to be heard. And it may recurse: GLib takes the descriptors of
//! any other source out of its set before each dispatch and puts them back afterwards, and wakes itself for either.

use std::ffi::c_int;
use std::mem::{ManuallyDrop, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Arc, Weak};

use glib::ffi::{self, GSource, GSourceFunc, GSourceFuncs, gboolean, gpointer};
use glib::translate::{IntoGlib, from_glib_full};
use glib::{MainContext, Priority, Source};

use crate::driver::Driver;

/// A source of `context` that has `driver` take a turn whenever `epoll` is readable or the driver says so. It must be
/// destroyed before `epoll` closes.
pub(crate) fn watch(
    context: &MainContext,
    priority: Priority,
    epoll: BorrowedFd<'_>,
    driver: Weak<Driver>,
) -> Source {
    // SAFETY: GLib allocates as many bytes as it is told and fills in the part that is its own; the driver, which is
    // the rest, is written before anything can call the functions. It only reads them. The source is ours alone until
    // it is attached.
    let source: Source = unsafe {
        let source = ffi::g_source_new((&raw const FUNCTIONS).cast_mut(), size_of::<Watch>() as u32);
        (&raw mut (*source.cast::<Watch>()).driver).write(ManuallyDrop::new(driver));
        ffi::g_source_add_unix_fd(source, epoll.as_raw_fd(), ffi::G_IO_IN);
        ffi::g_source_set_can_recurse(source, ffi::GTRUE);
        ffi::g_source_set_priority(source, priority.into_glib());
        from_glib_full(source)
    };
    source.attach(Some(context));
    source
}

/// What GLib allocates. Any thread that runs the context may use the driver in it.
#[repr(C)]
struct Watch {
    source: GSource,
    driver: ManuallyDrop<Weak<Driver>>,
}

static FUNCTIONS: GSourceFuncs = GSourceFuncs {
    prepare: Some(prepare),
    check: Some(check),
    dispatch: Some(dispatch),
    finalize: Some(finalize),
    closure_callback: None,
    closure_marshal: None,
};

/// # Safety
/// `source` is one that [`watch`] made, and has not been finalized.
unsafe fn driver(source: *mut GSource) -> Option<Arc<Driver>> {
    // SAFETY: so it is a `Watch` whose driver was written and is still there.
    unsafe { (*source.cast::<Watch>()).driver.upgrade() }
}

/// Before the context waits: whether it need not, and otherwise for how long it may.
unsafe extern "C" fn prepare(source: *mut GSource, timeout: *mut c_int) -> gboolean {
    // SAFETY: GLib calls this for sources of these functions, with a place for the answer.
    unsafe {
        let wait = driver(source).and_then(|driver| driver.wait());
        // Up to the next whole millisecond, or a timer would be looked at too early, again and again.
        let milliseconds = wait.map(|wait| wait.as_nanos().div_ceil(1_000_000));
        *timeout = milliseconds.map_or(-1, |milliseconds| milliseconds.try_into().unwrap_or(c_int::MAX));
        (milliseconds == Some(0)).into_glib()
    }
}

/// After it has waited: whether to dispatch though no descriptor is readable.
unsafe extern "C" fn check(source: *mut GSource) -> gboolean {
    // SAFETY: GLib calls this for sources of these functions.
    let wait = unsafe { driver(source) }.and_then(|driver| driver.wait());
    wait.is_some_and(|wait| wait.is_zero()).into_glib()
}

unsafe extern "C" fn dispatch(source: *mut GSource, _: GSourceFunc, _: gpointer) -> gboolean {
    // SAFETY: GLib calls this for sources of these functions.
    let Some(driver) = (unsafe { driver(source) }) else { return ffi::G_SOURCE_REMOVE };
    driver.turn();
    ffi::G_SOURCE_CONTINUE
}

unsafe extern "C" fn finalize(source: *mut GSource) {
    // SAFETY: GLib calls this once, at last.
    unsafe { ManuallyDrop::drop(&mut (*source.cast::<Watch>()).driver) }
}
