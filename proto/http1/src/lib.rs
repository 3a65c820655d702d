//! HTTP/1.1 as a pure state machine, both roles.

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
pub use client::{Client, ClientEvent};
pub use config::{ClientConfig, Limits, ServerConfig, Timeouts};
pub use error::{CloseReason, Error, Excerpt, Misuse, Timeout};
pub use framing::{BodyLength, BodySize};
pub use loan::Loan;
pub use server::{Server, ServerEvent};
pub use status_line::Reason;
