//! A body out of a pipe, a terminal or a device: read on a thread of its own, because such a read may wait for as long as
//! somebody likes, and meanwhile the server may answer and deadlines pass.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use bytes::Bytes;
use http_body::Frame;

/// How much is read at once, 64 KiB: what a pipe holds.
const PIECE: usize = 64 << 10;

pub(crate) struct Piped {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Signalled when a piece was taken, or nobody wants one any more.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    /// What was read last: the end where it is empty. The next read waits until it is taken, so that a fast writer cannot
    /// fill the memory.
    piece: Option<io::Result<Bytes>>,
    waker: Option<Waker>,
    unwanted: bool,
}

impl Piped {
    /// Begins to read.
    pub(crate) fn new(reader: impl Read + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let thread = shared.clone();
        thread::Builder::new().name("fetch-upload".to_owned()).spawn(move || thread.read_all(reader))?;
        Ok(Piped { shared })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_all(&self, mut reader: impl Read) {
        loop {
            let mut piece = vec![0; PIECE];
            let read = loop {
                match reader.read(&mut piece) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let last = !matches!(read, Ok(1..));
            let read = read.map(|count| {
                piece.truncate(count);
                Bytes::from(piece)
            });
            if !self.hand_over(read) || last {
                return;
            }
        }
    }

    /// Waits for the place to be free. False when nobody wants it.
    fn hand_over(&self, read: io::Result<Bytes>) -> bool {
        let mut state = self.lock();
        while state.piece.is_some() && !state.unwanted {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.unwanted {
            return false;
        }
        state.piece = Some(read);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

impl http_body::Body for Piped {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut state = self.shared.lock();
        let Some(piece) = state.piece.take() else {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        drop(state);
        self.shared.taken.notify_one();
        Poll::Ready(match piece {
            Ok(piece) if piece.is_empty() => None,
            piece => Some(piece.map(Frame::data)),
        })
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        self.shared.lock().unwanted = true;
        self.shared.taken.notify_one();
    }
}
