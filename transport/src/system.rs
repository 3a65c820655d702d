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
