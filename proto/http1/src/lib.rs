//! HTTP/1.1 as a pure state machine, both roles: [`Server`] and [`Client`] turn received bytes into events and commands
//! into bytes to be written. They open no socket, read no clock and start no thread; whoever drives them does, which
//! makes them the same on every event loop and testable on none.
//!
//! # The order of calls
//!
//! ```text
//!            handle_timeout(now), lend(loan)                    the beginning of a turn
//!                        │
//!        ┌───────────────▼──────────────────┐
//!        │ read_buf() … received(n)         │  or handle_eof(), or a command:
//!        │                                  │  send_head, send_data, end, ignore_body, drain, …
//!        └───────────────┬──────────────────┘
//!                        │ after every one of these
//!              next_event() until None ──────► Err: answer_fault(&error)   (server)
//!                        │
//!          poll_transmit() … transmitted(n), external() … transmitted(n)
//!                        │
//!            poll_timeout(), is_closed(), reclaim(loan)         the end of a turn
//! ```
//!
//! # The states of a server
//!
//! Reading and answering advance on their own; the exchange is over when both have ended.
//!
//! ```text
//!   reading    ┌──────► Head ──Request──► Body ──End──► Done ───┐
//!              │          └──────── no body ─────────────▲      │
//!   answering  │ None ──Request──► Owed ──send_head──► Body ──end──► Done
//!              │                                                 │
//!              └───────────── both done, persistent ◄────────────┤
//!                                                                └─ else: closed (CloseReason), perhaps lingering
//! ```
//!
//! A client's states are the same with the roles of reading and writing exchanged: it writes a request, reads interim
//! answers and a final one, and [`can_reuse`](Client::can_reuse) when both are over.
//!
//! # Strictness
//!
//! What is not RFC 9112 to the letter is refused: lines end with CRLF, there is one Host, Content-Length is digits,
//! `chunked` comes once and last, and never together with Content-Length. Whatever two implementations could read
//! differently is an error here, and nothing behind an error is looked at. Where bytes of the peer appear in a message
//! of ours they are escaped. Every size and count has a limit ([`Limits`]) that holds however the bytes are cut.
//!
//! Leniency is left in three places, because the standard asks for it or nothing can go wrong: up to four empty lines before
//! a request line, equal Content-Length lines, and characters in a target that RFC 3986 wants encoded but browsers do
//! not encode. A client can be told to read folded field lines ([`ClientConfig::unfold`]).
//!
//! # Speed
//!
//! A keep-alive client sends nearly the same head each time. Heads that were seen before are kept in a
//! [`HeadCache`] that comes with the [`Loan`]; a connection compares its next head with its last one and clones the
//! parsed form where they are equal. `examples/count_server.rs` counts what a request costs.
//!
//! # A whole exchange
//!
//! ```
//! use std::io::IoSlice;
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use bytes::Bytes;
//! use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
//! use hyperman_http1::{BodyLength, BodySize, Client, ClientConfig, ClientEvent, Server, ServerConfig, ServerEvent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Instant::now();
//! let mut client = Client::new(Arc::new(ClientConfig::default()), now);
//! let mut server = Server::new(Arc::new(ServerConfig::default()), now);
//!
//! // The client asks.
//! let mut fields = HeaderMap::new();
//! fields.insert(header::HOST, HeaderValue::from_static("example.com"));
//! client.send_head(&Method::POST, "/echo", Version::HTTP_11, &fields, BodySize::Known(5))?;
//! client.send_data(Bytes::from_static(b"hello"))?;
//! client.end()?;
//!
//! // Its bytes travel: here from one buffer to the other.
//! let mut slices = [IoSlice::new(&[]); 4];
//! let filled = client.poll_transmit(&mut slices);
//! let wire: Vec<u8> = slices.iter().take(filled).flat_map(|slice| slice.to_vec()).collect();
//! client.transmitted(wire.len());
//! server.read_buf().extend_from_slice(&wire);
//! server.received(wire.len());
//!
//! // The server reads the request, and answers.
//! let Some(ServerEvent::Request { request, body, .. }) = server.next_event()? else { panic!("a request") };
//! assert_eq!((request.uri().path(), body), ("/echo", BodyLength::Known(5)));
//! let Some(ServerEvent::Data(data)) = server.next_event()? else { panic!("its body") };
//! assert!(matches!(server.next_event()?, Some(ServerEvent::End)));
//! server.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown)?;
//! server.send_data(data)?;
//! server.end()?;
//! assert!(server.next_event()?.is_none());
//!
//! let mut slices = [IoSlice::new(&[]); 4];
//! let filled = server.poll_transmit(&mut slices);
//! let wire: Vec<u8> = slices.iter().take(filled).flat_map(|slice| slice.to_vec()).collect();
//! server.transmitted(wire.len());
//! assert_eq!(wire, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
//! assert!(server.is_idle());
//!
//! // The client reads the answer, and the connection is free again.
//! client.read_buf().extend_from_slice(&wire);
//! client.received(wire.len());
//! assert!(matches!(client.next_event()?, Some(ClientEvent::Response { body: BodyLength::Chunked, .. })));
//! assert!(matches!(client.next_event()?, Some(ClientEvent::Data(data)) if data == "hello"));
//! assert!(matches!(client.next_event()?, Some(ClientEvent::End)));
//! assert!(client.can_reuse());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod body;
mod cache;
mod chunked;
mod client;
mod config;
mod error;
mod fields;
mod framing;
mod grammar;
mod loan;
mod queue;
mod request_line;
mod scan;
mod server;
mod status_line;
mod write;

pub use cache::HeadCache;
pub use client::{Client, ClientEvent, PreparedFields};
pub use config::{ClientConfig, Limits, ServerConfig, Timeouts};
pub use error::{CloseReason, Error, Excerpt, Misuse, Timeout};
pub use framing::{BodyLength, BodySize};
pub use loan::Loan;
pub use server::{KnownHead, Refused, Server, ServerEvent};
pub use status_line::Reason;
