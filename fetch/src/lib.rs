//! Fetch: an HTTP client for any event loop.
//!
//! A [`Client`] is given a loop and makes requests on it. An answer is a future like any other, and dropping it ends
//! the exchange. Nothing runs behind the caller's back: one exchange is one future, which owns its connection while it
//! runs and gives it to the client's pool when it is over.
//!
//! On hyperman's own loop:
//!
//! ```no_run
//! let text = hyperman_loop::block_on(|handle| async move {
//!     let client = hyperman_fetch::Client::new(handle);
//!     client.get("http://example.com/").send().await?.text().await
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same client runs on any other loop that there is a [`Runtime`](hyperman_transport::Runtime) for, such as
//! tokio's. And where there is no loop at all, a call brings its own and blocks:
//!
//! ```no_run
//! let text = hyperman_fetch::get("http://example.com/")?.text()?;
//! # Ok::<(), hyperman_fetch::Error>(())
//! ```
//!
//! # What goes where
//!
//! * [`client`] and [`request`]: what a caller sets up and asks for; [`response`] and [`incoming`]: what comes back.
//! * `call`: one call of the user, over stale connections and redirects; `redirect` has the rules for those.
//! * `exchange`: one request and its answer on one `connection`, between the socket and the protocol machine; `h2`: the
//!   same where exchanges share a connection; `transaction`: either.
//! * `attend`: what idle connections hear when somebody looks after them.
//! * `target`: what a URL says; `resolve`: names to addresses; `connect`: addresses to a stream; `pool`: streams kept.

#![forbid(unsafe_code)]

mod attend;
mod body;
mod call;
mod charset;
pub mod client;
mod connect;
mod connection;
mod deadline;
pub mod error;
mod exchange;
mod h2;
pub mod incoming;
mod loans;
mod pool;
mod redirect;
pub mod request;
mod resolve;
pub mod response;
mod target;
#[cfg(feature = "tls")]
pub mod tls;
mod transaction;

#[cfg(feature = "native")]
pub mod blocking;

#[cfg(feature = "native")]
pub use blocking::get;
pub use body::Body;
pub use call::Notice;
pub use client::{Client, ClientBuilder, Redirects};
pub use connect::Stream;
pub use error::{BoxError, Error, ErrorKind};
pub use incoming::{Incoming, Upgraded};
pub use pool::PoolLimits;
pub use request::RequestBuilder;
pub use response::Response;
pub use target::IntoUrl;

/// Limits of an answer's head.
pub use hyperman_http1::Limits;
pub use url::Url;
