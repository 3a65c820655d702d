//! What a connection reads from and writes to, and the plain socket that is one.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::task::{Context, Poll};

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, Shutdown};

use crate::readiness::ArmReadiness;
#[cfg(target_os = "linux")]
use crate::readiness::Interest;
use crate::system::{self, SEND_FLAGS};

/// A reliable ordered stream of bytes in both directions: a socket, or a layer over one.
pub trait ByteStream: Unpin {
    /// Receives into the spare capacity of `buf` and says how many bytes were appended; 0 is the end of the file.
    /// `buf` must have spare capacity.
    ///
    /// # Errors
    /// What the transport failed with. An error is final for both directions.
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>>;

    /// Whether another [`poll_recv`](Self::poll_recv) is known to be pending, and `cx` to be woken when it no longer is;
    /// see [`ArmReadiness::will_wake_to_read`].
    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        let _ = cx;
        false
    }

    /// Takes bytes from the front of the slices and says how many. Bytes that were taken may still have to be
    /// flushed by [`poll_flush`](Self::poll_flush) where a layer keeps some.
    ///
    /// # Errors
    /// As [`poll_recv`](Self::poll_recv).
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Ready once every byte that was taken has been handed to the kernel. A plain socket always is.
    ///
    /// # Errors
    /// As [`poll_recv`](Self::poll_recv).
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends our direction: the peer reads the end of the file after what was sent. Reading goes on.
    ///
    /// # Errors
    /// As [`poll_recv`](Self::poll_recv).
    fn poll_close_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Makes the close of this stream one that the peer cannot take for an orderly end: a reset. What the kernel has not
    /// sent by then is lost. Nothing may be sent any more. Where the transport has no resets, nothing changes.
    fn reset_on_close(&mut self) {}

    /// What is known of the end of the connection, whatever is still there to be read before it. Looks, and does not wait;
    /// a stream that cannot look knows nothing.
    fn hang_up(&self) -> HangUp {
        HangUp::None
    }

    /// How many of the bytes that were sent the peer's system has not taken yet; `None` where nobody can tell. A peer that
    /// reads slowly makes this fall long before there is room for another send.
    fn unacknowledged(&self) -> Option<u64> {
        None
    }

    /// Whether [`poll_send_file`](Self::poll_send_file) can work on this stream.
    fn can_send_file(&self) -> bool {
        false
    }

    /// Sends from a file without bringing its bytes to user land; says how many bytes went, and advances `region` by
    /// them. 0 means that the file has ended early.
    ///
    /// # Errors
    /// As [`poll_recv`](Self::poll_recv), and `Unsupported` where [`can_send_file`](Self::can_send_file) says no.
    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        region: &mut FileRegion<'_>,
    ) -> Poll<io::Result<usize>> {
        let _ = (cx, region);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

/// What `poll` reports once the peer has ended its direction; not every system can say that.
#[cfg(target_os = "linux")]
const PEER_FINISHED: PollFlags = PollFlags::RDHUP;
/// What `poll` reports once the peer has ended its direction; not every system can say that.
#[cfg(not(target_os = "linux"))]
const PEER_FINISHED: PollFlags = PollFlags::empty();

/// How far a connection is over; see [`ByteStream::hang_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// Not at all, as far as is known.
    None,
    /// The peer has ended its direction: what it has sent until then can be read, and perhaps it still reads.
    Peer,
    /// Both directions, as after a reset.
    Both,
}

/// A part of an open file that is to be sent.
#[derive(Debug)]
pub struct FileRegion<'a> {
    /// The file, open for reading.
    pub file: BorrowedFd<'a>,
    /// The position of the next byte.
    pub offset: u64,
    /// How many bytes are left to send.
    pub length: u64,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerAddr {
    /// A TCP peer.
    Inet(SocketAddr),
    /// A Unix socket; most clients have no path.
    Unix(Option<PathBuf>),
}

impl PeerAddr {
    /// The Internet address, if the peer has one.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            PeerAddr::Inet(address) => Some(*address),
            PeerAddr::Unix(_) => None,
        }
    }
}

impl std::fmt::Display for PeerAddr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PeerAddr::Inet(address) => address.fmt(f),
            PeerAddr::Unix(Some(path)) => write!(f, "unix:{}", path.display()),
            PeerAddr::Unix(None) => f.write_str("unix:"),
        }
    }
}

/// A connected plain socket on some loop.
#[derive(Debug)]
pub struct Socket<S> {
    source: S,
}

impl<S: ArmReadiness> Socket<S> {
    /// Wraps a connected socket.
    pub fn new(source: S) -> Self {
        Socket { source }
    }

    /// The registered socket.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The registered socket, to be driven directly.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }
}

impl<S: ArmReadiness> AsFd for Socket<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl<S: ArmReadiness> ByteStream for Socket<S> {
    #[inline(always)]
    fn poll_recv(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        self.source.poll_recv(cx, buf)
    }

    #[inline]
    fn will_wake_to_read(&self, cx: &Context<'_>) -> bool {
        self.source.will_wake_to_read(cx)
    }

    #[inline(always)]
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.source.poll_send(cx, data)
    }

    #[inline]
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close_write(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match rustix::net::shutdown(&self.source, Shutdown::Write) {
            // The peer is gone already: nothing is left to end.
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    fn reset_on_close(&mut self) {
        // Closing with no time to linger resets (socket(7)). On a Unix socket it means nothing, and does no harm.
        let _ = rustix::net::sockopt::set_socket_linger(&self.source, Some(std::time::Duration::ZERO));
    }

    fn hang_up(&self) -> HangUp {
        let [socket] = &mut [PollFd::new(&self.source, PEER_FINISHED)];
        let looked = rustix::event::poll(std::slice::from_mut(socket), Some(&Timespec::default()));
        match looked {
            Ok(0) | Err(_) => HangUp::None,
            // What is not asked for but reported is an error or a hang-up of both directions.
            Ok(_) if socket.revents().difference(PEER_FINISHED).is_empty() => HangUp::Peer,
            Ok(_) => HangUp::Both,
        }
    }

    fn unacknowledged(&self) -> Option<u64> {
        system::unacknowledged(&self.source)
    }

    fn can_send_file(&self) -> bool {
        cfg!(target_os = "linux")
    }

    #[cfg(target_os = "linux")]
    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        region: &mut FileRegion<'_>,
    ) -> Poll<io::Result<usize>> {
        self.source.arm_readiness(Interest::Write, cx, |socket| {
            let wanted = usize::try_from(region.length).unwrap_or(usize::MAX).min(SENDFILE_CHUNK);
            let sent = rustix::fs::sendfile(socket, region.file, Some(&mut region.offset), wanted)?;
            region.length -= sent as u64;
            Ok(sent)
        })
    }
}

/// The most one `sendfile` moves, 1 MiB: a fast peer must not hold the loop for a whole large file.
#[cfg(target_os = "linux")]
const SENDFILE_CHUNK: usize = 1 << 20;

/// One `recv` into the spare capacity of `buf`.
///
/// # Errors
/// The system call's, and `InvalidInput` for a buffer without spare capacity.
pub fn recv(socket: BorrowedFd<'_>, buf: &mut BytesMut) -> io::Result<usize> {
    let length = buf.len();
    let spare = buf.spare_capacity_mut();
    if spare.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let ((init, _rest), _) = rustix::net::recv(socket, spare, RecvFlags::empty())?;
    let received = init.len();
    // SAFETY: the kernel has initialised the first `received` bytes of the spare capacity.
    unsafe { buf.set_len(length + received) };
    Ok(received)
}

/// The most slices that one [`send`] looks at, 1,024: `IOV_MAX` of the systems that we run on. More are an `EMSGSIZE`.
pub const MOST_SLICES: usize = 1024;

/// One `send` or `sendmsg` of the first [`MOST_SLICES`] slices, without `SIGPIPE`.
///
/// # Errors
/// The system call's.
pub fn send(socket: BorrowedFd<'_>, data: &[IoSlice<'_>]) -> io::Result<usize> {
    let data = data.get(..MOST_SLICES).unwrap_or(data);
    let sent = match data {
        [one] => rustix::net::send(socket, one, SEND_FLAGS)?,
        _ => rustix::net::sendmsg(socket, data, &mut Default::default(), SEND_FLAGS)?,
    };
    Ok(sent)
}
