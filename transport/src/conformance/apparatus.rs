//! What the cases are made of: peers, wakers that count, turns of the loop.

use std::future::poll_fn;
use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::BytesMut;
use rustix::time::{ClockId, clock_gettime};

use crate::readiness::{ArmReadiness, Runtime, Timer};

/// A kind of connected socket.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A pair of Unix stream sockets.
    Unix,
    /// TCP over the loopback interface.
    Tcp,
}

/// Both kinds.
pub const KINDS: [Kind; 2] = [Kind::Unix, Kind::Tcp];

/// The other end of a source: a blocking socket of the standard library.
#[derive(Debug)]
pub enum Peer {
    /// Of a Unix pair.
    Unix(UnixStream),
    /// Of a TCP connection.
    Tcp(TcpStream),
}

impl Peer {
    /// Writes all of `bytes`.
    pub fn write(&mut self, bytes: &[u8]) {
        match self {
            Peer::Unix(socket) => socket.write_all(bytes),
            Peer::Tcp(socket) => socket.write_all(bytes),
        }
        .unwrap();
    }

    /// Reads exactly `length` bytes.
    pub fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        match self {
            Peer::Unix(socket) => socket.read_exact(&mut bytes),
            Peer::Tcp(socket) => socket.read_exact(&mut bytes),
        }
        .unwrap();
        bytes
    }

    /// Reads until the end of the file.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Peer::Unix(socket) => socket.read_to_end(&mut bytes),
            Peer::Tcp(socket) => socket.read_to_end(&mut bytes),
        }
        .unwrap();
        bytes
    }

    /// Ends the peer's direction.
    pub fn end(&self) {
        rustix::net::shutdown(self, rustix::net::Shutdown::Write).unwrap();
    }

    /// A second descriptor of the same socket, for another thread.
    pub fn again(&self) -> Peer {
        match self {
            Peer::Unix(socket) => Peer::Unix(socket.try_clone().unwrap()),
            Peer::Tcp(socket) => Peer::Tcp(socket.try_clone().unwrap()),
        }
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Peer::Unix(socket) => socket.as_fd(),
            Peer::Tcp(socket) => socket.as_fd(),
        }
    }
}

/// Two connected sockets, ours non-blocking.
pub fn sockets(kind: Kind) -> (OwnedFd, Peer) {
    let (ours, theirs) = match kind {
        Kind::Unix => {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (OwnedFd::from(ours), Peer::Unix(theirs))
        }
        Kind::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            theirs.set_nodelay(true).unwrap();
            (OwnedFd::from(listener.accept().unwrap().0), Peer::Tcp(theirs))
        }
    };
    rustix::io::ioctl_fionbio(&ours, true).unwrap();
    (ours, theirs)
}

/// A source and its peer.
pub fn pair<R: Runtime>(runtime: &R, kind: Kind) -> (R::Source, Peer) {
    let (ours, theirs) = sockets(kind);
    (runtime.source(ours).unwrap(), theirs)
}

/// A waker that counts, and passes each wake-up on to the task that waits in [`woken`](Self::woken).
#[derive(Debug, Default)]
pub struct Counter {
    wakes: AtomicUsize,
    task: Mutex<Option<Waker>>,
}

impl Counter {
    /// One that counts from 0.
    pub fn new() -> Arc<Self> {
        Arc::new(Counter::default())
    }

    /// The wake-ups since the last call of this or of [`woken`](Self::woken).
    pub fn take(&self) -> usize {
        self.wakes.swap(0, Ordering::SeqCst)
    }

    /// Ready once there was a wake-up since the last call.
    pub async fn woken(&self) {
        poll_fn(|cx| {
            *self.task.lock().unwrap() = Some(cx.waker().clone());
            if self.take() > 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Runs `poll` with this waker.
    pub fn poll<T>(self: &Arc<Self>, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    /// Runs `poll` with this waker until it is ready.
    pub async fn ready<T>(self: &Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        loop {
            match self.poll(&mut poll) {
                Poll::Ready(value) => return value,
                Poll::Pending => self.woken().await,
            }
        }
    }

    /// One `poll_recv` with this waker; the bytes when it is ready.
    pub fn recv(self: &Arc<Self>, source: &mut impl ArmReadiness, storage: usize) -> Poll<Vec<u8>> {
        let mut buf = BytesMut::with_capacity(storage);
        self.poll(|cx| source.poll_recv(cx, &mut buf)).map(|received| {
            assert_eq!(received.unwrap(), buf.len());
            buf.to_vec()
        })
    }

    /// Receives until `length` bytes are there.
    pub async fn recv_exact(self: &Arc<Self>, source: &mut impl ArmReadiness, length: usize) -> Vec<u8> {
        let mut buf = BytesMut::with_capacity(length);
        while buf.len() < length {
            let received = self.ready(|cx| source.poll_recv(cx, &mut buf)).await.unwrap();
            assert_ne!(received, 0, "end of file");
        }
        buf.to_vec()
    }

    /// Sends until the socket is full and armed with this waker; says how much it took.
    pub fn fill(self: &Arc<Self>, source: &mut impl ArmReadiness) -> usize {
        let block = [0x5a; 65_536];
        let mut total = 0;
        while let Poll::Ready(sent) = self.poll(|cx| source.poll_send(cx, &[IoSlice::new(&block)])) {
            total += sent.unwrap();
        }
        total
    }

    /// One send of one byte with this waker.
    pub fn send_byte(self: &Arc<Self>, source: &mut impl ArmReadiness) -> Poll<std::io::Result<usize>> {
        self.poll(|cx| source.poll_send(cx, &[IoSlice::new(b"x")]))
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        let task = self.task.lock().unwrap().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// Many wakers of one task, told apart.
#[derive(Debug, Default)]
pub struct Queue {
    woken: Mutex<Vec<usize>>,
    task: Mutex<Option<Waker>>,
}

/// The waker number `index` of a queue.
struct Ticket {
    index: usize,
    queue: Arc<Queue>,
}

impl Queue {
    /// One that nobody has woken.
    pub fn new() -> Arc<Self> {
        Arc::new(Queue::default())
    }

    /// The waker with this number.
    pub fn waker(self: &Arc<Self>, index: usize) -> Waker {
        Waker::from(Arc::new(Ticket { index, queue: self.clone() }))
    }

    /// The numbers that were woken since the last call; at least one.
    pub async fn woken(&self) -> Vec<usize> {
        poll_fn(|cx| {
            *self.task.lock().unwrap() = Some(cx.waker().clone());
            let woken = std::mem::take(&mut *self.woken.lock().unwrap());
            if woken.is_empty() { Poll::Pending } else { Poll::Ready(woken) }
        })
        .await
    }
}

impl Wake for Ticket {
    fn wake(self: Arc<Self>) {
        self.queue.woken.lock().unwrap().push(self.index);
        let task = self.queue.task.lock().unwrap().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// A way to let the loop take turns: what happened on any socket before a turn, the loop has told of after it.
#[derive(Debug)]
pub struct Turns<R: Runtime> {
    source: R::Source,
    peer: Peer,
}

impl<R: Runtime> Turns<R> {
    /// Turns of this loop.
    pub fn new(runtime: &R) -> Self {
        let (source, peer) = pair(runtime, Kind::Unix);
        Turns { source, peer }
    }

    /// Lets the loop take at least `turns` turns.
    pub async fn take(&mut self, turns: usize) {
        let counter = Counter::new();
        for _ in 0..turns {
            assert!(counter.recv(&mut self.source, 8).is_pending());
            self.peer.write(b"t");
            assert_eq!(counter.recv_exact(&mut self.source, 1).await, b"t");
        }
    }
}

/// Waits on the loop's own timer.
pub async fn pause<R: Runtime>(runtime: &R, time: Duration) {
    let mut timer = runtime.timer();
    let deadline = runtime.now() + time;
    poll_fn(|cx| timer.poll_deadline(deadline, cx)).await;
}

/// Fails when the thread computes while it should wait for a timer.
pub async fn assert_quiet<R: Runtime>(runtime: &R, what: &str) {
    const LENGTH: Duration = Duration::from_millis(120);
    let before = thread_time();
    pause(runtime, LENGTH).await;
    let spent = thread_time() - before;
    assert!(spent < LENGTH / 4, "{what}: {spent:?} of processor time in {LENGTH:?} of waiting");
}

/// The processor time that this thread has used.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
