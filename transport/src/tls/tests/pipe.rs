//! Two streams joined in memory, and an executor that polls only tasks that were woken: a lost wake-up is a deadlock,
//! and a deadlock is a failed test.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::BytesMut;

use crate::stream::ByteStream;

/// How adverse the network is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    /// The most bytes one receive or send moves.
    pub(super) chunk: usize,
    /// How many bytes are on their way at most.
    pub(super) capacity: usize,
}

impl Network {
    pub(super) const KIND: Network = Network { chunk: usize::MAX, capacity: 256 * 1024 };
    pub(super) const BYTE_BY_BYTE: Network = Network { chunk: 1, capacity: 1 };
}

#[derive(Debug, Default)]
struct Half {
    bytes: VecDeque<u8>,
    closed: bool,
    /// Nobody will read this any more.
    gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    total: usize,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    network: Network,
    read: Rc<RefCell<Half>>,
    write: Rc<RefCell<Half>>,
    /// How many sends were made.
    pub(super) sends: Rc<Cell<usize>>,
    /// How many receives were tried.
    pub(super) receives: Rc<Cell<usize>>,
}

/// Both ends of a connection.
pub(super) fn pipe(network: Network) -> (End, End) {
    let (one, other) = (Rc::new(RefCell::new(Half::default())), Rc::new(RefCell::new(Half::default())));
    let end = |read: &Rc<RefCell<Half>>, write: &Rc<RefCell<Half>>| End {
        network,
        read: read.clone(),
        write: write.clone(),
        sends: Rc::default(),
        receives: Rc::default(),
    };
    (end(&one, &other), end(&other, &one))
}

impl End {
    /// Bytes that this end sent and the other has not received yet.
    pub(super) fn on_the_way(&self) -> Vec<u8> {
        self.write.borrow().bytes.iter().copied().collect()
    }

    /// Takes these bytes away.
    pub(super) fn take_off_the_way(&self) -> Vec<u8> {
        self.write.borrow_mut().bytes.drain(..).collect()
    }

    /// How many bytes this end has sent in all.
    pub(super) fn sent(&self) -> usize {
        self.write.borrow().total
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut half = self.write.borrow_mut();
        half.closed = true;
        half.reader.take().into_iter().for_each(Waker::wake);
        drop(half);
        let mut half = self.read.borrow_mut();
        half.gone = true;
        half.writer.take().into_iter().for_each(Waker::wake);
    }
}

impl ByteStream for End {
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        self.receives.set(self.receives.get() + 1);
        let mut half = self.read.borrow_mut();
        let spare = buf.capacity() - buf.len();
        assert!(spare > 0, "a receive into a full buffer");
        let length = half.bytes.len().min(spare).min(self.network.chunk);
        if length == 0 {
            if half.closed {
                return Poll::Ready(Ok(0));
            }
            half.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        buf.extend(half.bytes.drain(..length));
        half.writer.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(length))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.sends.set(self.sends.get() + 1);
        let mut half = self.write.borrow_mut();
        assert!(!half.closed, "a send after the end");
        if half.gone {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = (self.network.capacity - half.bytes.len()).min(self.network.chunk);
        if room == 0 {
            half.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = half.bytes.len();
        let bytes = data.iter().flat_map(|slice| slice.iter().copied()).take(room);
        half.bytes.extend(bytes);
        let sent = half.bytes.len() - before;
        half.total += sent;
        half.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close_write(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut half = self.write.borrow_mut();
        half.closed = true;
        half.reader.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs two tasks to their ends.
pub(super) fn run<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let flags = [Arc::new(Flag(AtomicBool::new(true))), Arc::new(Flag(AtomicBool::new(true)))];
    let (mut a, mut b) = (None, None);
    while a.is_none() || b.is_none() {
        let mut awake = poll_if_woken(&mut a, one.as_mut(), &flags[0]);
        awake |= poll_if_woken(&mut b, other.as_mut(), &flags[1]);
        assert!(awake, "deadlock: done {}, {}", a.is_some(), b.is_some());
    }
    (a.unwrap(), b.unwrap())
}

fn poll_if_woken<F: Future>(out: &mut Option<F::Output>, future: Pin<&mut F>, flag: &Arc<Flag>) -> bool {
    if out.is_some() || !flag.0.swap(false, Ordering::Relaxed) {
        return false;
    }
    let waker = Waker::from(flag.clone());
    if let Poll::Ready(value) = future.poll(&mut Context::from_waker(&waker)) {
        *out = Some(value);
    }
    true
}

/// Sends everything and flushes.
pub(super) async fn send_all<S: ByteStream>(stream: &mut S, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let sent = poll_fn(|cx| stream.poll_send(cx, &[IoSlice::new(data)])).await?;
        assert!(sent > 0, "no progress");
        data = &data[sent..];
    }
    poll_fn(|cx| stream.poll_flush(cx)).await
}

/// Receives up to the end, or to an error.
pub(super) async fn read_to_end<S: ByteStream>(stream: &mut S) -> (Vec<u8>, io::Result<()>) {
    let mut all = Vec::new();
    let mut buf = BytesMut::with_capacity(4096);
    loop {
        buf.clear();
        match poll_fn(|cx| stream.poll_recv(cx, &mut buf)).await {
            Ok(0) => return (all, Ok(())),
            Ok(received) => {
                assert_eq!(received, buf.len());
                all.extend_from_slice(&buf);
            }
            Err(error) => return (all, Err(error)),
        }
    }
}

/// Receives exactly so many bytes.
pub(super) async fn read_exact<S: ByteStream>(stream: &mut S, length: usize) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    while all.len() < length {
        let mut buf = BytesMut::with_capacity((length - all.len()).min(16 * 1024));
        if poll_fn(|cx| stream.poll_recv(cx, &mut buf)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        all.extend_from_slice(&buf);
    }
    Ok(all)
}

/// Ends our direction.
pub(super) async fn close<S: ByteStream>(stream: &mut S) -> io::Result<()> {
    poll_fn(|cx| stream.poll_close_write(cx)).await
}
