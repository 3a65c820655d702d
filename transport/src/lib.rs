//! What an event loop must offer, and the sockets that are driven through it.
//!
//! * [`readiness`]: [`ArmReadiness`], [`Runtime`], [`Timer`] and [`Spawn`], the contract between a loop and a driver.
//! * [`stream`]: [`ByteStream`], what a connection reads from and writes to: a plain socket, or TLS over one.
//! * [`listen`]: listening sockets, TCP and Unix.
//! * [`connect`]: non-blocking connect, TCP and Unix.
//! * `conformance` (feature of that name): the suite that every loop must pass.
//! * `tls`: TLS over any [`ByteStream`], with the feature `tls`.
//! * [`alarm`]: [`LazyTimer`](alarm::LazyTimer), what the adapters to other people's loops make their timers of.
//! * [`loan`]: receive and send storage that belongs to the thread, so that an idle connection holds none.
//!
//! No protocol is spoken here, and no thread is started.

pub mod alarm;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod connect;
pub mod listen;
pub mod loan;
pub mod readiness;
pub mod stream;
mod system;
#[cfg(feature = "_tls")]
pub mod tls;

pub use connect::{Connect, connect_tcp, connect_unix};
pub use listen::{Accepted, ListenOptions, Listener};
pub use readiness::{ArmReadiness, Interest, Runtime, Spawn, Timer};
pub use stream::{ByteStream, FileRegion, HangUp, PeerAddr, Socket};
