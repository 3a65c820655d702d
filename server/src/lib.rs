//! Hyperman: an HTTP server for any event loop and any tower service.
//!
//! * [`serve`](serve()) runs a service on a listener of whatever loop the program has: tokio, smol, GLib, or our own.
//! * [`Server`] is the same on our own loop with nothing to set up (feature `native`, on by default).
//!
//! The service is any `tower_service::Service<http::Request<Body>>` whose answers have any `http_body::Body`: a
//! [`service_fn`], an axum `Router` as it is, a tower stack. Its future is polled in place inside the connection's
//! future: a handler that is ready at once costs no task and no box, a pending one parks its connection while the loop
//! serves the others, and one whose peer has gone is dropped.
//!
//! Every limit and every timer is on by default; see [`Config`].

#![forbid(unsafe_code)]

mod body;
mod config;
mod connection;
mod desk;
mod ends;
mod exchange;
mod fleet;
mod gate;
mod h1;
mod h2;
mod interim;
mod refusal;
mod send_file;
mod serve;
#[cfg(feature = "native")]
mod server;
mod service;
mod settings;
mod start;
pub mod upgrade;
mod wire;

pub use body::{Body, BodyError, ConnectionInfo};
pub use config::Config;
pub use connection::Connection;
pub use hyperman_http1::{Limits, Timeouts};
pub use hyperman_http2::Config as Http2Settings;
#[cfg(feature = "tls")]
pub use hyperman_transport::tls;
pub use interim::Interim;
pub use refusal::{OnRefusal, Refusal};
pub use send_file::{SendFile, SendProgress};
pub use serve::{Endpoint, Serve, Shutdown, serve, serve_all};
#[cfg(feature = "native")]
pub use server::{Bound, Listen, Server};
pub use service::{ServiceFn, service_fn};
