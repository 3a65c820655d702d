//! The stream: plaintext to its user, ciphertext to the stream below.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use rustls::client::UnbufferedClientConnection;

use super::engine::{Engine, Goal, Reached, Sink};
use super::error::{Error, Truncated};
use super::handshake::{Handshake, Stage};
use super::hello::Hello;
use super::info::TlsInfo;
use super::server::Hosts;
use super::storage::{self, BATCH, Outgoing, RECORD};
use crate::loan;
use crate::stream::{ByteStream, HangUp};

/// The longest record on the wire: head, 2^14 plaintext bytes, and what encryption may add (RFC 5246 §6.2.3).
pub(super) const LONGEST_RECORD: usize = 5 + RECORD + 2048;

/// The most that is kept of what a peer sent and cannot be processed yet: a handshake message as long as the library
/// allows, 64 KiB, split over records, and one record more.
const INCOMING_LIMIT: usize = 64 * 1024 + LONGEST_RECORD + 1024;

/// How many bytes may come without any application data in them after the handshake: a session ticket or a key update
/// is a few hundred bytes, a ticket that holds a client's certificate chain a few thousand (S82).
const QUIET_LIMIT: usize = 64 * 1024;

/// How many reads without any application data one call makes before others get their turn.
pub(super) const ROUNDS: u32 = 16;

/// How many bytes of ciphertext may wait while more plaintext is taken.
const HIGH_WATER: usize = RECORD;

/// A TLS connection over another stream, as server or client.
///
/// What [`poll_send`](ByteStream::poll_send) took may have to be flushed. When the connection below ends without the
/// peer's `close_notify`, reading fails with the kind `UnexpectedEof` (see [`is_truncated`](super::is_truncated)); all
/// bytes before were delivered, so a message that is complete by its own framing is good.
#[derive(Debug)]
pub struct TlsStream<T> {
    pub(super) inner: T,
    pub(super) stage: Stage,
    /// The handshake is over, and the peer has or gets all that it needs to know that.
    pub(super) shaken: bool,
    /// Ciphertext that is not processed yet: at most the beginning of a message, unless `unprocessed` is set. Holds no
    /// storage while it is empty.
    pub(super) incoming: BytesMut,
    /// Whether `incoming` may hold whole records.
    unprocessed: bool,
    /// Decrypted bytes that did not fit into the reader's buffer.
    pub(super) plain: BytesMut,
    pub(super) outgoing: Outgoing,
    pub(super) info: Option<TlsInfo>,
    pub(super) failure: Option<Error>,
    /// The connection below ended without `close_notify`.
    truncated: bool,
    write_closed: bool,
    /// Bytes received since the last application data, or during the handshake.
    pub(super) quiet: usize,
}

impl<T: ByteStream> TlsStream<T> {
    pub(super) fn server(inner: T, received: BytesMut, hosts: Arc<Hosts>) -> Self {
        Self::new(inner, received, Stage::Hello { hello: Box::new(Hello::new()), hosts })
    }

    pub(super) fn client(inner: T, connection: UnbufferedClientConnection, name: Option<String>) -> Self {
        let engine = Box::new(Engine::client(connection));
        Self::new(inner, BytesMut::new(), Stage::Handshake { engine, server_name: name, hosts: None })
    }

    fn new(inner: T, incoming: BytesMut, stage: Stage) -> Self {
        TlsStream {
            inner,
            stage,
            shaken: false,
            incoming,
            unprocessed: false,
            plain: BytesMut::new(),
            outgoing: Outgoing::default(),
            info: None,
            failure: None,
            truncated: false,
            write_closed: false,
            quiet: 0,
        }
    }

    /// What the handshake agreed on; `None` before its end.
    pub fn info(&self) -> Option<&TlsInfo> {
        self.info.as_ref()
    }

    /// The stream below.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What is below. Bytes sent or received there directly are none of TLS's.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Gives up TLS and hands back the stream below, e.g. to answer a client that speaks plain HTTP. What was received
    /// is dropped.
    pub fn into_inner(self) -> T {
        self.inner
    }

    /// Waits for the handshake: a future that is ready with the stream.
    pub fn handshake(self) -> Handshake<T> {
        Handshake::new(self)
    }

    /// Seals the stream, and lets the alert that the engine may have written leave if it can.
    pub(super) fn fail(&mut self, cx: &mut Context<'_>, error: Error) -> Error {
        loan::give_back(std::mem::take(&mut self.incoming));
        self.failure = Some(error.clone());
        let _ = self.poll_drain(cx);
        error
    }

    /// Ready once all ciphertext is with the stream below.
    pub(super) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let sent = ready!(self.inner.poll_send(cx, &[IoSlice::new(self.outgoing.pending())]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.sent(sent);
        }
        Poll::Ready(Ok(()))
    }

    /// Receives ciphertext behind what there is. 0 is the end of the connection below.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        if self.incoming.is_empty() {
            // Also when it is empty after a drain, so that the storage starts at its front.
            loan::give_back(std::mem::take(&mut self.incoming));
            self.incoming = loan::take();
        }
        let wanted = LONGEST_RECORD.max(self.incoming.len() + RECORD / 4);
        if wanted > INCOMING_LIMIT {
            return Poll::Ready(Err(Error::Flood));
        }
        if self.incoming.capacity() < wanted {
            self.incoming.reserve(wanted - self.incoming.len());
        }
        let received = self.inner.poll_recv(cx, &mut self.incoming);
        if self.incoming.is_empty() {
            loan::give_back(std::mem::take(&mut self.incoming));
        }
        match ready!(received) {
            Ok(received) => {
                self.quiet += received;
                Poll::Ready(Ok(received))
            }
            Err(error) => Poll::Ready(Err(Error::Io(Arc::new(error)))),
        }
    }

    fn give_back_if_empty(&mut self) {
        if self.incoming.is_empty() {
            loan::give_back(std::mem::take(&mut self.incoming));
        }
    }

    /// Decrypts what was received into `buf`; says how many bytes of application data there were.
    fn decrypt(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Result<usize, Error> {
        let Stage::Traffic(engine) = &mut self.stage else { return Ok(0) };
        let mut sink = Sink::new(buf, &mut self.plain);
        let reached = engine.drive(&mut self.incoming, &mut self.outgoing, &mut sink, Goal::Receive);
        let (delivered, decrypted) = (sink.delivered, sink.decrypted);
        self.give_back_if_empty();
        match reached {
            Ok(reached) => self.unprocessed = reached == Reached::Full && !self.incoming.is_empty(),
            // What came before the fault is delivered first; the fault shows at the next call.
            Err(error) => {
                let error = self.fail(cx, error.into());
                return if delivered > 0 { Ok(delivered) } else { Err(error) };
            }
        }
        if decrypted > 0 {
            self.quiet = 0;
        }
        Ok(delivered)
    }

    /// Encrypts up to a batch from the front of the slices; says how many bytes. Small slices are gathered into full
    /// records.
    fn encrypt(&mut self, data: &[IoSlice<'_>]) -> Result<usize, Error> {
        let mut slices = data.iter().map(|slice| &**slice).filter(|slice| !slice.is_empty()).peekable();
        let mut taken = 0;
        let mut current: &[u8] = &[];
        while taken < BATCH {
            if current.is_empty() {
                let Some(next) = slices.next() else { break };
                current = next;
            }
            let is_last = slices.peek().is_none();
            if is_last || current.len() >= RECORD {
                let whole = if is_last { current.len() } else { current.len() / RECORD * RECORD };
                let (now, rest) = current.split_at(whole.min(BATCH - taken));
                self.put(Goal::Send(now))?;
                taken += now.len();
                current = rest;
                continue;
            }
            let mut gathered = storage::take(RECORD);
            let mut room = gathered.get_mut(..RECORD.min(BATCH - taken)).unwrap_or_default();
            let mut length = 0;
            while !room.is_empty() && !current.is_empty() {
                let (now, rest) = current.split_at(room.len().min(current.len()));
                let (place, behind) = room.split_at_mut(now.len());
                place.copy_from_slice(now);
                room = behind;
                length += now.len();
                current = if rest.is_empty() { slices.next().unwrap_or_default() } else { rest };
            }
            let put = self.put(Goal::Send(gathered.get(..length).unwrap_or_default()));
            storage::give_back(gathered);
            put?;
            taken += length;
        }
        Ok(taken)
    }

    /// Lets the engine write something. What was received and not yet processed is decrypted on the way: the engine
    /// cannot write before.
    fn put(&mut self, goal: Goal<'_>) -> Result<(), Error> {
        let Stage::Traffic(engine) = &mut self.stage else { return Ok(()) };
        let mut sink = Sink::keep(&mut self.plain);
        engine.drive(&mut self.incoming, &mut self.outgoing, &mut sink, goal)?;
        if sink.decrypted > 0 {
            self.quiet = 0;
        }
        self.unprocessed = false;
        self.give_back_if_empty();
        Ok(())
    }

    /// The failure to repeat, if there is one.
    fn check(&self) -> io::Result<()> {
        match &self.failure {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Hands out decrypted bytes from an earlier call.
    fn take_plain(&mut self, buf: &mut BytesMut) -> usize {
        let length = self.plain.len().min(buf.capacity() - buf.len());
        buf.extend_from_slice(self.plain.get(..length).unwrap_or_default());
        self.plain.advance(length);
        if self.plain.is_empty() {
            loan::give_back(std::mem::take(&mut self.plain));
        }
        length
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<Result<usize, Error>> {
        for _ in 0..ROUNDS {
            if self.unprocessed || !self.incoming.is_empty() {
                let delivered = self.decrypt(cx, buf)?;
                if delivered > 0 {
                    return Poll::Ready(Ok(delivered));
                }
            }
            if matches!(&self.stage, Stage::Traffic(engine) if engine.peer_closed()) {
                return Poll::Ready(Ok(0));
            }
            if self.quiet > QUIET_LIMIT {
                return Poll::Ready(Err(self.fail(cx, Error::Flood)));
            }
            match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    self.truncated = true;
                    return Poll::Ready(Ok(0));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.fail(cx, error))),
                Poll::Pending => {
                    // The peer may wait for what the handshake left to send.
                    return match self.poll_drain(cx) {
                        Poll::Ready(Err(error)) => {
                            Poll::Ready(Err(self.fail(cx, Error::Io(Arc::new(error)))))
                        }
                        _ => Poll::Pending,
                    };
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: AsFd> AsFd for TlsStream<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: ByteStream> ByteStream for TlsStream<T> {
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        if buf.capacity() == buf.len() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        if !self.plain.is_empty() {
            return Poll::Ready(Ok(self.take_plain(buf)));
        }
        self.check()?;
        if !self.truncated {
            ready!(self.poll_handshake(cx))?;
            // The handshake may have come with the first application data.
            if !self.plain.is_empty() {
                return Poll::Ready(Ok(self.take_plain(buf)));
            }
            let received = ready!(self.poll_read(cx, buf))?;
            if !self.truncated {
                return Poll::Ready(Ok(received));
            }
        }
        Poll::Ready(Err(Truncated.into()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.check()?;
        if self.write_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(self.poll_handshake(cx))?;
        if self.outgoing.len() >= HIGH_WATER {
            match self.poll_drain(cx) {
                Poll::Ready(drained) => drained?,
                Poll::Pending if self.outgoing.len() >= HIGH_WATER => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        let taken = match self.encrypt(data) {
            Ok(taken) => taken,
            Err(error) => return Poll::Ready(Err(self.fail(cx, error).into())),
        };
        // One attempt; what the stream below does not take now waits for a flush.
        if let Poll::Ready(Err(error)) = self.poll_drain(cx) {
            return Poll::Ready(Err(self.fail(cx, Error::Io(Arc::new(error))).into()));
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        self.inner.poll_flush(cx)
    }

    fn poll_close_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_closed {
            self.write_closed = true;
            if self.failure.is_none()
                && let Err(error) = self.put(Goal::Close)
            {
                return Poll::Ready(Err(self.fail(cx, error).into()));
            }
        }
        ready!(self.poll_flush(cx))?;
        self.inner.poll_close_write(cx)
    }

    fn reset_on_close(&mut self) {
        self.inner.reset_on_close();
    }

    fn hang_up(&self) -> HangUp {
        self.inner.hang_up()
    }

    fn unacknowledged(&self) -> Option<u64> {
        self.inner.unacknowledged()
    }
}
