//! Another protocol takes a connection over: `Upgrade` (RFC 9110 §7.8) and `CONNECT` (§9.3.6).
//!
//! The connection's future goes on driving its socket; the application holds an [`Upgraded`], the other end of a pair
//! of bounded queues. So an upgraded connection can be used from any task or thread, on every loop.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use http::Request;
use hyperman_transport::ByteStream;

use crate::body::QUEUE_BYTES;

/// The connection of `request` once it speaks the other protocol.
///
/// Call it before answering; the future is ready after the answer (101, or 2xx to `CONNECT`) has left. A request that
/// asked for no upgrade, and an answer that refused it, give [`NotUpgraded`].
pub fn on<B>(request: &mut Request<B>) -> OnUpgrade {
    request.extensions_mut().remove::<OnUpgrade>().unwrap_or_default()
}

/// The connection was not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUpgraded;

impl std::fmt::Display for NotUpgraded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was not upgraded")
    }
}

impl std::error::Error for NotUpgraded {}

/// See [`on`].
#[derive(Debug, Clone, Default)]
pub struct OnUpgrade(Option<Arc<Mutex<Promise>>>);

#[derive(Debug, Default)]
struct Promise {
    upgraded: Option<Upgraded>,
    broken: bool,
    waiter: Option<Waker>,
}

/// The connection's side of the promise.
#[derive(Debug)]
pub(crate) struct Offer(Arc<Mutex<Promise>>);

pub(crate) fn offer() -> (Offer, OnUpgrade) {
    let promise = Arc::new(Mutex::new(Promise::default()));
    (Offer(Arc::clone(&promise)), OnUpgrade(Some(promise)))
}

impl Offer {
    /// Hands the connection over; `early` are the bytes that were read past the head.
    pub(crate) fn accept(self, early: Bytes) -> Tunnel {
        let pipe = Arc::new(Mutex::new(Pipe::default()));
        lock(&pipe).incoming.push(early);
        let mut promise = lock(&self.0);
        promise.upgraded = Some(Upgraded { pipe: Arc::clone(&pipe) });
        let waiter = promise.waiter.take();
        drop(promise);
        wake(waiter);
        Tunnel { pipe, sending: Bytes::new(), read_ended: false, write_ended: false }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let mut promise = lock(&self.0);
        promise.broken = true;
        let waiter = promise.waiter.take();
        drop(promise);
        wake(waiter);
    }
}

impl Future for OnUpgrade {
    type Output = Result<Upgraded, NotUpgraded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(promise) = &self.0 else { return Poll::Ready(Err(NotUpgraded)) };
        let mut promise = lock(promise);
        if let Some(upgraded) = promise.upgraded.take() {
            return Poll::Ready(Ok(upgraded));
        }
        if promise.broken {
            return Poll::Ready(Err(NotUpgraded));
        }
        promise.waiter = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Both directions between the application and the connection.
#[derive(Debug, Default)]
struct Pipe {
    incoming: Lane,
    outgoing: Lane,
    /// The stream failed, or the server cut the connection.
    failed: bool,
}

#[derive(Debug, Default)]
struct Lane {
    chunks: VecDeque<Bytes>,
    buffered: usize,
    ended: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Lane {
    fn push(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.buffered += data.len();
            self.chunks.push_back(data);
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let data = self.chunks.pop_front()?;
        self.buffered -= data.len();
        Some(data)
    }

    fn is_full(&self) -> bool {
        self.buffered >= QUEUE_BYTES
    }

    /// Nobody reads this lane any more.
    fn abandon(&mut self) {
        self.chunks.clear();
        self.buffered = 0;
        self.ended = true;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn park(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}

/// The connection's end of the pipe.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pipe: Arc<Mutex<Pipe>>,
    sending: Bytes,
    read_ended: bool,
    write_ended: bool,
}

impl Tunnel {
    /// Carries bytes both ways until both directions have ended or the stream fails.
    pub(crate) fn poll<IO: ByteStream>(
        &mut self,
        stream: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let received = self.poll_receive(stream, cx)?;
        let sent = self.poll_send(stream, cx)?;
        if received.is_ready() && sent.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_receive<IO: ByteStream>(
        &mut self,
        stream: &mut IO,
        cx: &mut Context<'_>,
    ) -> Result<Poll<()>, io::Error> {
        while !self.read_ended {
            {
                let mut pipe = lock(&self.pipe);
                if pipe.incoming.is_full() {
                    park(&mut pipe.incoming.writer, cx);
                    return Ok(Poll::Pending);
                }
            }
            let mut buffer = BytesMut::with_capacity(hyperman_transport::loan::RECEIVE_STORAGE);
            match stream.poll_recv(cx, &mut buffer) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Ready(Ok(received)) => {
                    let mut pipe = lock(&self.pipe);
                    if received == 0 {
                        self.read_ended = true;
                        pipe.incoming.ended = true;
                    } else if !pipe.incoming.ended {
                        pipe.incoming.push(buffer.freeze());
                    }
                    let reader = pipe.incoming.reader.take();
                    drop(pipe);
                    wake(reader);
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    fn poll_send<IO: ByteStream>(
        &mut self,
        stream: &mut IO,
        cx: &mut Context<'_>,
    ) -> Result<Poll<()>, io::Error> {
        while !self.write_ended {
            if self.sending.is_empty() {
                let mut pipe = lock(&self.pipe);
                if let Some(data) = pipe.outgoing.pop() {
                    self.sending = data;
                    let writer = pipe.outgoing.writer.take();
                    drop(pipe);
                    wake(writer);
                } else if pipe.outgoing.ended {
                    drop(pipe);
                    match stream.poll_close_write(cx)? {
                        Poll::Pending => return Ok(Poll::Pending),
                        Poll::Ready(()) => self.write_ended = true,
                    }
                    continue;
                } else {
                    park(&mut pipe.outgoing.reader, cx);
                    drop(pipe);
                    let _ = stream.poll_flush(cx)?;
                    return Ok(Poll::Pending);
                }
            }
            match stream.poll_send(cx, &[IoSlice::new(&self.sending)])? {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(sent) => self.sending.advance(sent.min(self.sending.len())),
            }
        }
        Ok(Poll::Ready(()))
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let mut pipe = lock(&self.pipe);
        pipe.failed = !(self.read_ended && self.write_ended);
        pipe.incoming.ended = true;
        let wakers = [pipe.incoming.reader.take(), pipe.outgoing.writer.take()];
        drop(pipe);
        wakers.into_iter().for_each(wake);
    }
}

/// A connection that was handed over to the application. Dropping it ends our direction after what was sent.
#[derive(Debug)]
pub struct Upgraded {
    pipe: Arc<Mutex<Pipe>>,
}

impl Upgraded {
    /// The next bytes from the peer; `None` at the end of its direction.
    ///
    /// # Errors
    /// `ConnectionAborted` when the connection ended before its end of file.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut pipe = lock(&self.pipe);
        if let Some(data) = pipe.incoming.pop() {
            let writer = pipe.incoming.writer.take();
            drop(pipe);
            wake(writer);
            return Poll::Ready(Ok(Some(data)));
        }
        if pipe.failed {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if pipe.incoming.ended {
            return Poll::Ready(Ok(None));
        }
        park(&mut pipe.incoming.reader, cx);
        Poll::Pending
    }

    /// The same as a future.
    ///
    /// # Errors
    /// As [`poll_chunk`](Self::poll_chunk).
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Ready when there is room to [`send`](Self::send).
    ///
    /// # Errors
    /// `BrokenPipe` when the connection is gone.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut pipe = lock(&self.pipe);
        if pipe.failed || pipe.outgoing.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if pipe.outgoing.is_full() {
            park(&mut pipe.outgoing.writer, cx);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends bytes, waiting while 64 KiB of earlier ones are still on their way.
    ///
    /// # Errors
    /// As [`poll_room`](Self::poll_room).
    pub async fn send(&mut self, data: Bytes) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_room(cx)).await?;
        self.enqueue(data);
        Ok(())
    }

    /// Ends our direction after what was sent; the peer may still send.
    pub fn close(&mut self) {
        let mut pipe = lock(&self.pipe);
        pipe.outgoing.ended = true;
        let reader = pipe.outgoing.reader.take();
        drop(pipe);
        wake(reader);
    }

    fn enqueue(&self, data: Bytes) {
        let mut pipe = lock(&self.pipe);
        pipe.outgoing.push(data);
        let reader = pipe.outgoing.reader.take();
        drop(pipe);
        wake(reader);
    }
}

impl Drop for Upgraded {
    fn drop(&mut self) {
        self.close();
        // Nobody reads any more: a peer that goes on sending must not fill the queue and wait for ever.
        let mut pipe = lock(&self.pipe);
        pipe.incoming.abandon();
        let writer = pipe.incoming.writer.take();
        drop(pipe);
        wake(writer);
    }
}

impl ByteStream for Upgraded {
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let spare = buf.capacity() - buf.len();
        if spare == 0 {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        match std::task::ready!(self.poll_chunk(cx))? {
            None => Poll::Ready(Ok(0)),
            Some(mut data) => {
                let taken = data.split_to(spare.min(data.len()));
                buf.extend_from_slice(&taken);
                if !data.is_empty() {
                    let mut pipe = lock(&self.pipe);
                    pipe.incoming.buffered += data.len();
                    pipe.incoming.chunks.push_front(data);
                }
                Poll::Ready(Ok(taken.len()))
            }
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.poll_room(cx))?;
        let mut length = 0;
        for slice in data {
            length += slice.len();
            self.enqueue(Bytes::copy_from_slice(slice));
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close_write(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}
