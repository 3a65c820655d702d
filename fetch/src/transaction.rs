//! One request and its answer, whatever version of HTTP they go over.

use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyperman_http1::ClientEvent;
use hyperman_transport::Runtime;

use crate::body::Body;
use crate::connection::Connection;
use crate::error::ErrorKind;
use crate::exchange::{Answer, Early, Exchange};
use crate::h2;

/// An exchange that has a connection for itself, or one that shares it.
pub(crate) enum Transaction<R: Runtime> {
    Http1(Exchange<R>),
    Http2(Box<h2::Exchange<R>>),
}

impl<R: Runtime> Transaction<R> {
    /// The server's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        match self {
            Transaction::Http1(exchange) => exchange.connection.peer,
            Transaction::Http2(exchange) => exchange.peer(),
        }
    }

    /// The final answer, once it has arrived.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match self {
            Transaction::Http1(exchange) => exchange.answer(),
            Transaction::Http2(exchange) => exchange.answer(),
        }
    }

    /// Takes the final answer.
    pub(crate) fn take_answer(&mut self) -> Option<Answer> {
        match self {
            Transaction::Http1(exchange) => exchange.take_answer(),
            Transaction::Http2(exchange) => exchange.take_answer(),
        }
    }

    /// Takes the request's body, where the final answer came before any of it was sent.
    pub(crate) fn take_unwanted(&mut self) -> Option<Body> {
        match self {
            Transaction::Http1(exchange) => exchange.take_unwanted(),
            Transaction::Http2(exchange) => exchange.take_unwanted(),
        }
    }

    /// The next piece of the answer after its head.
    #[inline]
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<ClientEvent, ErrorKind>> {
        match self {
            Transaction::Http1(exchange) => exchange.poll_event(cx),
            Transaction::Http2(exchange) => exchange.poll_event(cx),
        }
    }

    /// Whether the answer was an early success, and the server is still to get the rest of the request.
    pub(crate) fn is_uploading(&self) -> bool {
        match self {
            Transaction::Http1(exchange) => exchange.is_uploading(),
            Transaction::Http2(exchange) => exchange.is_uploading(),
        }
    }

    /// Behind the end of the answer: ready once the request is sent whole, or the server takes no more of it.
    pub(crate) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorKind>> {
        match self {
            Transaction::Http1(exchange) => exchange.poll_upload(cx),
            Transaction::Http2(exchange) => exchange.poll_upload(cx),
        }
    }

    /// Ends the exchange without looking at its answer.
    pub(crate) fn pass_over(self) {
        match self {
            Transaction::Http1(exchange) => exchange.pass_over(),
            // Its stream ends with it; the connection stays.
            Transaction::Http2(_) => {}
        }
    }

    /// This exchange, if more is to come from it after what came early; otherwise it has ended.
    pub(crate) fn unless_over(self, early: &Early) -> Option<Self> {
        match self {
            Transaction::Http1(exchange) => exchange.unless_over(early).map(Transaction::Http1),
            Transaction::Http2(_) => Some(self).filter(|exchange| !early.over || exchange.is_uploading()),
        }
    }

    /// Ends the exchange.
    pub(crate) fn finish(self) {
        if let Transaction::Http1(exchange) = self {
            exchange.finish();
        }
    }

    /// Takes the connection over after the server switched protocols, with what it said since.
    pub(crate) fn into_upgraded(self) -> Option<(Box<Connection<R>>, Bytes)> {
        match self {
            Transaction::Http1(exchange) => exchange.into_upgraded(),
            Transaction::Http2(_) => None,
        }
    }
}
