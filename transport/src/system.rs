//! Sockets that do not block, that no child process inherits, and that raise no `SIGPIPE`: where the system has flags for
//! that, and on Apple's, which has not.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrAny, SocketType};
#[cfg(not(target_vendor = "apple"))]
use rustix::net::{SocketFlags, acceptfrom_with, socket_with};

/// The flags of every send.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
/// The flags of every send; the socket itself knows that it is to raise no signal.
#[cfg(target_vendor = "apple")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::empty();

#[cfg(not(target_vendor = "apple"))]
const NEW: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A new stream socket.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn stream_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, NEW, None)
}

/// One connection of the queue, and who connected.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn accept(listener: impl AsFd) -> Result<(OwnedFd, Option<SocketAddrAny>), Errno> {
    acceptfrom_with(listener, NEW)
}

/// A new stream socket.
#[cfg(target_vendor = "apple")]
pub(crate) fn stream_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    prepared(rustix::net::socket(family, SocketType::STREAM, None)?)
}

/// One connection of the queue, and who connected.
#[cfg(target_vendor = "apple")]
pub(crate) fn accept(listener: impl AsFd) -> Result<(OwnedFd, Option<SocketAddrAny>), Errno> {
    let (socket, address) = rustix::net::acceptfrom(listener)?;
    // A peer that is gone already makes this fail; so does accept(2) itself elsewhere.
    Ok((prepared(socket).map_err(|_| Errno::CONNABORTED)?, address))
}

#[cfg(target_vendor = "apple")]
fn prepared(socket: OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    rustix::net::sockopt::set_socket_nosigpipe(&socket, true)?;
    Ok(socket)
}

/// Bytes in the send queue of a socket, sent or not, that were not acknowledged.
#[cfg(target_os = "linux")]
pub(crate) fn unacknowledged(socket: impl AsFd) -> Option<u64> {
    use rustix::ioctl::{Getter, Opcode, ioctl};

    /// SIOCOUTQ of tcp(7) and unix(7) is another name of it.
    const OUTPUT_QUEUE: Opcode = libc::TIOCOUTQ as Opcode;
    // SAFETY: this request writes one `int`, which is what the getter has room for.
    let queued = unsafe { ioctl(socket, Getter::<OUTPUT_QUEUE, std::ffi::c_int>::new()) };
    queued.ok().and_then(|bytes| u64::try_from(bytes).ok())
}

/// There is no way to ask that the other systems share.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unacknowledged(_: impl AsFd) -> Option<u64> {
    None
}
