//! The client's end of a connection.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use http::header::{self, HeaderMap};
use http::{Method, Uri};

use crate::config::Config;
use crate::connection::{Connection, Role, Target};
use crate::error::{Error, Misuse};
use crate::event::{BodySize, ClientEvent, Event};
use crate::frame::StreamId;

/// A client's connection. What both roles have is in [`Connection`].
#[derive(Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// A connection whose preface is ready to be written. Requests may be opened at once (RFC 9113 §3.4).
    pub fn new(config: Arc<Config>, now: Instant) -> Self {
        Client { connection: Connection::new(Role::Client, config, now) }
    }

    /// The next thing that happened; see [`Connection`] for the order of calls.
    ///
    /// # Errors
    /// The connection is over, and with it every stream that has not ended. What `poll_transmit` gives is to be written.
    pub fn next_event(&mut self) -> Result<Option<ClientEvent>, Error> {
        while let Some(event) = self.connection.next()? {
            return Ok(Some(match event {
                Event::Interim { stream, response } => ClientEvent::Interim { stream, response },
                Event::Response { stream, response, body } => {
                    ClientEvent::Response { stream, response, body }
                }
                Event::Data { stream, data } => ClientEvent::Data { stream, data },
                Event::Trailers { stream, trailers } => ClientEvent::Trailers { stream, trailers },
                Event::End { stream } => ClientEvent::End { stream },
                Event::Reset { stream, error } => ClientEvent::Reset { stream, error },
                Event::Capacity { stream } => ClientEvent::Capacity { stream },
                Event::Settings => ClientEvent::Settings,
                Event::GoAway { reason, last } => ClientEvent::GoAway { reason, last },
                // Of a server only.
                Event::Request { .. } => continue,
            }));
        }
        Ok(None)
    }

    /// Whether a request can be opened now.
    ///
    /// # Errors
    /// [`Misuse::TooManyStreams`] when one can be opened after another has ended; [`Misuse::GoingAway`] or
    /// [`Misuse::Closed`] when it takes another connection.
    pub fn can_open(&self) -> Result<(), Misuse> {
        self.connection.may_open()
    }

    /// Whether the server has said that it takes an extended CONNECT (RFC 8441 §3).
    pub fn takes_connect_protocol(&self) -> bool {
        self.connection.takes_connect_protocol()
    }

    /// Opens a request. `uri` has a scheme and an authority; for CONNECT only an authority with a port. A Host field takes
    /// the place of the authority. Content-Length is written here; fields that concern an HTTP/1.1 connection are left
    /// out.
    ///
    /// # Errors
    /// As [`can_open`](Self::can_open), and [`Misuse`] for what cannot be sent.
    pub fn open(
        &mut self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        size: BodySize,
    ) -> Result<StreamId, Misuse> {
        let authority = authority(uri, headers)?;
        let target = if *method == Method::CONNECT {
            Target { method, scheme: None, authority, path: None, protocol: None }
        } else {
            Target {
                method,
                scheme: Some(scheme(uri)?),
                authority,
                path: Some(path(uri, method)),
                protocol: None,
            }
        };
        self.connection.put_request(&target, headers, size)
    }

    /// Opens an extended CONNECT (RFC 8441 §4), for instance with `websocket` as protocol. Both directions stay open
    /// after a successful answer.
    ///
    /// # Errors
    /// [`Misuse::NoConnectProtocol`] when the server has not said that it takes one; otherwise as [`open`](Self::open).
    pub fn open_protocol(
        &mut self,
        protocol: &str,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<StreamId, Misuse> {
        if !self.takes_connect_protocol() {
            return Err(Misuse::NoConnectProtocol);
        }
        if protocol.is_empty() || !protocol.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Misuse::BadField);
        }
        let authority = authority(uri, headers)?;
        let (method, path) = (&Method::CONNECT, Some(path(uri, &Method::CONNECT)));
        let target = Target { method, scheme: Some(scheme(uri)?), authority, path, protocol: Some(protocol) };
        self.connection.put_request(&target, headers, BodySize::Unknown)
    }
}

/// A Host field, else the authority of the URI without user information, which must not be sent (RFC 9113 §8.3.1).
fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Misuse> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let authority = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().map_err(|_| Misuse::BadTarget)?.trim(),
        (None, _) => {
            let authority = uri.authority().ok_or(Misuse::BadTarget)?.as_str();
            authority.rsplit_once('@').map_or(authority, |(_, host)| host)
        }
        (Some(_), Some(_)) => return Err(Misuse::BadTarget),
    };
    let valid =
        !authority.is_empty() && authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@');
    if valid { Ok(authority) } else { Err(Misuse::BadTarget) }
}

fn scheme(uri: &Uri) -> Result<&str, Misuse> {
    uri.scheme_str().ok_or(Misuse::BadTarget)
}

fn path<'a>(uri: &'a Uri, method: &Method) -> &'a str {
    match uri.path_and_query().map_or("", |path| path.as_str()) {
        "" if *method == Method::OPTIONS => "*",
        "" => "/",
        path => path,
    }
}

impl Deref for Client {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}
