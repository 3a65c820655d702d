//! What crosses crates: every case on every loop, chaos, interoperability.
//!
//! The cases are written once, in `cases/`, and compiled for each loop by the small files in `tests/`, so that what
//! runs is the concrete server and client of that loop. The peers here are plain blocking sockets: those of HTTP/1 know
//! just enough of it to read an answer, those of HTTP/2 drive our machine, and TLS is rustls by itself.

// All of this is part of tests, where a panic is a failure with its place.
#![allow(clippy::expect_used, clippy::indexing_slicing)]

pub mod body;
pub mod caller;
pub mod carrier;
pub mod chaos;
pub mod frames;
pub mod http2;
pub mod matrix;
pub mod native;
pub mod peer;
pub mod replier;
pub mod script;
pub mod tls;
mod wire;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use hyperman::Shutdown;

/// Cuts a server when it is dropped, so that a failed assertion ends its test instead of leaving it to hang.
#[derive(Debug)]
pub struct EndOnDrop(pub Shutdown);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.cut();
    }
}

/// How long a case may take before it counts as hanging, 60 s: none takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a case in a thread of its own, and fails when it does not end.
///
/// # Panics
/// When the case does, or hangs.
pub fn watched(case: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let running = thread::spawn(move || {
        case();
        let _ = tell.send(());
    });
    match told.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("the case hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = running.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
