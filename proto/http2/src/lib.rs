//! HTTP/2 (RFC 9113) as a pure state machine, both roles: no socket, no clock, no thread.
//!
//! A driver owns the socket and the clock. In each turn it calls, in this order:
//!
//! 1. [`handle_timeout`](Connection::handle_timeout) with the time, always first;
//! 2. what was received: [`read_buf`](Connection::read_buf) and [`received`](Connection::received), or
//!    [`handle_eof`](Connection::handle_eof); or a command of the application: [`send_head`](Server::send_head),
//!    [`open`](Client::open), [`send_data`](Connection::send_data), [`end`](Connection::end), …;
//! 3. `next_event` until it gives `None`;
//! 4. [`poll_transmit`](Connection::poll_transmit) and [`transmitted`](Connection::transmitted) until there is nothing to
//!    write, then step 3 again, because written bytes make room for more;
//! 5. [`poll_timeout`](Connection::poll_timeout), to know when to come back at the latest.
//!
//! Everything that is ready in a turn leaves in one write: DATA frames are cut in step 4, when all that wants to be sent
//! is known.
//!
//! The driver owes two calls. [`release`](Connection::release) for the octets of each `Data` event, once the application
//! has taken them: the peer may send no more before. [`finished`](Connection::finished) for each stream, once its
//! handler or its caller is gone: until then it has a place among the streams that the peer may open.
//!
//! ```
//! use std::{io::IoSlice, sync::Arc, time::Instant};
//! use hyperman_http2::{BodySize, Client, ClientEvent, Config, Connection, Server, ServerEvent};
//!
//! /// What a network does.
//! fn carry(from: &mut Connection, to: &mut Connection) {
//!     let mut slices = [IoSlice::new(&[]); 16];
//!     let filled = from.poll_transmit(&mut slices);
//!     let mut sent = 0;
//!     for slice in &slices[..filled] {
//!         to.read_buf().extend_from_slice(slice);
//!         sent += slice.len();
//!     }
//!     to.received(sent);
//!     from.transmitted(sent);
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Instant::now();
//! let mut client = Client::new(Arc::new(Config::client()), now);
//! let mut server = Server::new(Arc::new(Config::server()), now);
//!
//! let uri = "http://example.com/".parse()?;
//! let sent = client.open(&http::Method::GET, &uri, &http::HeaderMap::new(), BodySize::Known(0))?;
//! carry(&mut client, &mut server);
//!
//! let Some(ServerEvent::Request { stream, request, .. }) = server.next_event()? else { panic!() };
//! assert_eq!(request.uri(), "http://example.com/");
//! server.send_head(stream, http::StatusCode::OK, &http::HeaderMap::new(), BodySize::Known(5))?;
//! server.send_data(stream, "hello".into())?;
//! server.end(stream)?;
//! server.finished(stream);
//! carry(&mut server, &mut client);
//!
//! assert!(matches!(client.next_event()?, Some(ClientEvent::Settings)));
//! let Some(ClientEvent::Response { stream, response, .. }) = client.next_event()? else { panic!() };
//! assert_eq!((stream, response.status().as_u16()), (sent, 200));
//! let Some(ClientEvent::Data { data, .. }) = client.next_event()? else { panic!() };
//! assert_eq!(data, "hello");
//! client.release(stream, data.len());
//! assert!(matches!(client.next_event()?, Some(ClientEvent::End { .. })));
//! client.finished(stream);
//! # Ok(())
//! # }
//! ```
//!
//! # Header compression
//!
//! It was planned to hand header blocks to the codec of the `h2` crate. That codec cannot give what the standard asks
//! for: at the first malformed field, an upper-case name for instance, it stops in the middle of the block and reports
//! the same error as for a block that cannot be decoded. The two need different answers, a stream error PROTOCOL_ERROR
//! (RFC 9113 §8.1.1) and a connection error COMPRESSION_ERROR (§4.3), and the first requires that decoding goes on, or
//! the dynamic tables fall out of step. It would also bring an asynchronous runtime's traits and 28 KiB per connection.
//! So the module `hpack` is our own; the interoperability vectors of the working group are among its tests.
#![forbid(unsafe_code)]

mod authority;
mod budget;
mod client;
mod config;
mod connection;
mod error;
mod event;
mod flow;
mod frame;
mod hpack;
mod message;
mod priority;
mod reason;
mod server;
mod stream;
mod streams;
mod timers;
mod transmit;
mod upgrade;

pub use client::Client;
pub use config::{ABUSE, Config, Limits, SMALL_DATA, Timeouts, Windows};
pub use connection::{Connection, ConnectionWindows, Date, Loan};
pub use error::{CloseReason, Error, Malformed, Misuse, Spent, StreamError, Violation};
pub use event::{BodyLength, BodySize, ClientEvent, Protocol, ServerEvent};
pub use frame::{PREFACE, StreamId};
pub use hpack::CompressionError;
pub use reason::Reason;
pub use server::Server;
pub use timers::Timeout;
