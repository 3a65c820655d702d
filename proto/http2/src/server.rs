//! The server's end of a connection.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, StatusCode};

use crate::config::Config;
use crate::connection::{Connection, Role};
use crate::error::{Error, Misuse};
use crate::event::{BodySize, Event, ServerEvent};
use crate::frame::StreamId;
use crate::upgrade;

/// A server's connection. What both roles have is in [`Connection`].
#[derive(Debug)]
pub struct Server {
    connection: Connection,
}

impl Server {
    /// A connection that begins with the client's preface: by ALPN, or with prior knowledge (RFC 9113 §3.3). Our own
    /// preface is ready to be written.
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Server { connection: Connection::new(Role::Server, config, now) }
    }

    /// A connection that began as HTTP/1.1 with `Upgrade: h2c`: the request becomes stream 1, its HTTP2-Settings field
    /// the client's first settings (RFC 7540 §3.2). To be called once the request was read whole; the driver writes the
    /// 101 first and then what this machine gives.
    ///
    /// # Errors
    /// [`Misuse::BadField`] when HTTP2-Settings is missing or not what it should be: the upgrade is to be ignored then,
    /// and the request answered by HTTP/1.1.
    pub fn upgraded(config: Arc<Config>, now: Instant, request: http::Request<()>) -> Result<Self, Misuse> {
        let mut connection = Connection::new(Role::Server, config, now);
        upgrade::adopt(&mut connection, request)?;
        Ok(Server { connection })
    }

    /// The next thing that happened; see [`Connection`] for the order of calls.
    ///
    /// # Errors
    /// The connection is over. All handlers are to be dropped, what `poll_transmit` gives is to be written, and the
    /// transport to be closed.
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, Error> {
        while let Some(event) = self.connection.next()? {
            return Ok(Some(match event {
                Event::Request { stream, request, body, expect_continue } => {
                    ServerEvent::Request { stream, request, body, expect_continue }
                }
                Event::Data { stream, data } => ServerEvent::Data { stream, data },
                Event::Trailers { stream, trailers } => ServerEvent::Trailers { stream, trailers },
                Event::End { stream } => ServerEvent::End { stream },
                Event::Reset { stream, error } => ServerEvent::Reset { stream, error },
                Event::Capacity { stream } => ServerEvent::Capacity { stream },
                Event::GoAway { reason, .. } => ServerEvent::GoAway { reason },
                // Of a client only.
                Event::Interim { .. } | Event::Response { .. } | Event::Settings => continue,
            }));
        }
        Ok(None)
    }

    /// Sends a 1xx response, 101 excepted, before the final head.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn send_interim(
        &mut self,
        stream: StreamId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), Misuse> {
        self.connection.put_interim(stream, status, headers)
    }

    /// Sends the 100 that the client waits for; nothing when it does not, or when its body or our answer has begun.
    pub fn send_continue(&mut self, stream: StreamId) {
        self.connection.put_continue(stream);
    }

    /// Sends the final head. Content-Length and Date are written here; fields that concern an HTTP/1.1 connection are
    /// left out. After HEAD, 204 and 304 the head is the whole answer, whatever `size` says.
    ///
    /// # Errors
    /// [`Misuse`]. The machine is as it was, so that another answer can be sent.
    pub fn send_head(
        &mut self,
        stream: StreamId,
        status: StatusCode,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<(), Misuse> {
        self.connection.put_response(stream, status, headers, size)
    }
}

impl Deref for Server {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
