//! What a machine tells its driver.

use bytes::Bytes;
use http::HeaderMap;

use crate::error::StreamError;
use crate::frame::StreamId;
use crate::reason::Reason;

/// How long the body is that follows a head which was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// The head was the whole message; no `End` follows.
    Empty,
    /// As many octets as Content-Length said; the machine holds the peer to it.
    Known(u64),
    /// Until END_STREAM.
    Unknown,
}

/// How long the body is that follows a head which is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySize {
    /// This many octets; `Known(0)` makes the head the whole message.
    Known(u64),
    /// Until `end` or `send_trailers`.
    Unknown,
}

/// The value of `:protocol` (RFC 8441 §4), an extension of the request that carried it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol(pub(crate) Bytes);

impl Protocol {
    /// As it stands on the wire, for instance `websocket`.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// What happened on a server's connection.
#[derive(Debug)]
pub enum ServerEvent {
    /// A request. The driver owes a `finished` for its stream.
    Request {
        /// Its stream.
        stream: StreamId,
        /// The head. An extended CONNECT carries [`Protocol`] as extension.
        request: http::Request<()>,
        /// What follows.
        body: BodyLength,
        /// The client waits for a 100 before it sends the body (RFC 9110 §10.1.1).
        expect_continue: bool,
    },
    /// Part of a request body. The driver owes a `release` of its length once the application has taken it.
    Data {
        /// Its stream.
        stream: StreamId,
        /// At least one octet.
        data: Bytes,
    },
    /// The trailer fields; `End` follows.
    Trailers {
        /// Their stream.
        stream: StreamId,
        /// Names that would change the meaning of the message are left out.
        trailers: HeaderMap,
    },
    /// The request is complete.
    End {
        /// Its stream.
        stream: StreamId,
    },
    /// The stream is over before its time: the handler is to be dropped, and `finished` to be called.
    Reset {
        /// Its number.
        stream: StreamId,
        /// Why.
        error: StreamError,
    },
    /// `capacity` of this stream was zero and is not any more.
    Capacity {
        /// Its number.
        stream: StreamId,
    },
    /// The client announces the end of the connection. Streams that are open go on.
    GoAway {
        /// What it gave as reason.
        reason: Reason,
    },
}

/// What happened on a client's connection.
#[derive(Debug)]
pub enum ClientEvent {
    /// A 1xx response; the final one is still to come.
    Interim {
        /// Its stream.
        stream: StreamId,
        /// Its head.
        response: http::Response<()>,
    },
    /// The final response.
    Response {
        /// Its stream.
        stream: StreamId,
        /// Its head.
        response: http::Response<()>,
        /// What follows.
        body: BodyLength,
    },
    /// Part of a response body. The driver owes a `release` of its length once the application has taken it.
    Data {
        /// Its stream.
        stream: StreamId,
        /// At least one octet.
        data: Bytes,
    },
    /// The trailer fields; `End` follows.
    Trailers {
        /// Their stream.
        stream: StreamId,
        /// Names that would change the meaning of the message are left out.
        trailers: HeaderMap,
    },
    /// The response is complete.
    End {
        /// Its stream.
        stream: StreamId,
    },
    /// The stream is over. Behind a complete response it only means that the rest of the request is not wanted: the
    /// response stands (RFC 9113 §8.1).
    Reset {
        /// Its number.
        stream: StreamId,
        /// Why, and whether the request may have been processed.
        error: StreamError,
    },
    /// `capacity` of this stream was zero and is not any more.
    Capacity {
        /// Its number.
        stream: StreamId,
    },
    /// `can_open` may have changed: the peer's settings arrived or were replaced.
    Settings,
    /// The server takes no further requests on this connection. Requests above `last` each end with
    /// [`StreamError::Refused`] beside this; those up to it go on.
    GoAway {
        /// What it gave as reason.
        reason: Reason,
        /// The last stream that it may have processed.
        last: StreamId,
    },
}

/// The events of both roles, as the connection core gives them.
#[derive(Debug)]
pub(crate) enum Event {
    Request { stream: StreamId, request: http::Request<()>, body: BodyLength, expect_continue: bool },
    Interim { stream: StreamId, response: http::Response<()> },
    Response { stream: StreamId, response: http::Response<()>, body: BodyLength },
    Data { stream: StreamId, data: Bytes },
    Trailers { stream: StreamId, trailers: HeaderMap },
    End { stream: StreamId },
    Reset { stream: StreamId, error: StreamError },
    Capacity { stream: StreamId },
    Settings,
    GoAway { reason: Reason, last: StreamId },
}
