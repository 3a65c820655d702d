//! A server for the client under test, of either version: plain blocking calls, one request after the other.

use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyperman_http2::{BodySize, Reason, StreamId};

use crate::caller::Length;
use crate::carrier::Carrier;
use crate::http2::Http2Peer;
use crate::peer::Peer;
use crate::script::Accepted;

/// The server's end of a connection of the client under test.
#[derive(Debug)]
pub struct Replier {
    over: Over,
}

#[derive(Debug)]
enum Over {
    One {
        peer: Peer,
        /// How long the body of the last request is.
        body: Length,
    },
    Two {
        peer: Http2Peer,
        /// Of the last request.
        stream: Option<StreamId>,
        /// How much of the answer's body is to come.
        left: usize,
        /// What was read of its body and not asked for yet.
        unread: Vec<u8>,
    },
}

/// A request's head.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method and the target, with a space between.
    pub line: String,
    /// What Content-Length says.
    pub length: Option<usize>,
}

impl Accepted for Replier {
    fn accepted(carrier: Carrier, stream: TcpStream) -> Self {
        let over = if carrier.is_http2() {
            let peer = Http2Peer::accepted(carrier, stream);
            Over::Two { peer, stream: None, left: 0, unread: Vec::new() }
        } else {
            Over::One { peer: Peer::accepted(carrier, stream), body: Length::Known(0) }
        };
        Replier { over }
    }
}

impl Replier {
    /// Waits for the next request.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn request(&mut self) -> Request {
        match &mut self.over {
            Over::One { peer, body } => {
                let head = String::from_utf8(peer.until(b"\r\n\r\n")).expect("text");
                let line = head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1"));
                let field = |name: &str| {
                    head.lines()
                        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                let length = field("content-length").map(|length| length.parse().expect("a length"));
                *body = match field("transfer-encoding") {
                    Some(_) => Length::Unknown,
                    None => Length::Known(length.unwrap_or(0)),
                };
                Request { line: line.expect("a request").to_owned(), length }
            }
            Over::Two { peer, stream, .. } => {
                let (opened, head) = peer.accept();
                *stream = Some(opened);
                let length = head.fields.get("content-length");
                Request {
                    line: format!("{} {}", head.method, head.target),
                    length: length.map(|length| length.to_str().expect("text").parse().expect("a length")),
                }
            }
        }
    }

    /// How long the client may let this one wait.
    pub fn set_patience(&mut self, patience: Duration) {
        match &mut self.over {
            Over::One { peer, .. } => peer.set_patience(patience),
            Over::Two { peer, .. } => peer.set_patience(patience),
        }
    }

    /// Reads at least this much of the body of the last request.
    ///
    /// # Panics
    /// When it ends first.
    pub fn read_body(&mut self, least: usize) {
        match &mut self.over {
            Over::One { peer, .. } => drop(peer.exactly(least)),
            Over::Two { peer, stream, unread, .. } => {
                let stream = stream.expect("a request");
                while unread.len() < least {
                    unread.extend_from_slice(&peer.piece(stream).expect("a body").expect("more of it"));
                }
            }
        }
    }

    /// The whole body of the last request.
    ///
    /// # Panics
    /// When it does not come whole.
    pub fn body(&mut self) -> Vec<u8> {
        match &mut self.over {
            Over::One { peer, body: Length::Known(length) } => peer.exactly(*length),
            Over::One { peer, body: Length::Unknown } => peer.chunked(),
            Over::Two { peer, stream, unread, .. } => {
                let stream = stream.expect("a request");
                while let Some(piece) = peer.piece(stream).expect("a whole body") {
                    unread.extend_from_slice(&piece);
                }
                std::mem::take(unread)
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- answers

    /// Answers the last request with 200 and this body.
    pub fn reply(&mut self, body: &str) {
        self.begin(200, body.len());
        self.send(body.as_bytes());
    }

    /// Sends the head of the answer to the last request. Its body follows.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn begin(&mut self, status: u16, length: usize) {
        match &mut self.over {
            Over::One { peer, .. } => {
                let status = StatusCode::from_u16(status).expect("a status");
                peer.send(format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n"));
            }
            Over::Two { peer, stream, left, .. } => {
                *left = length;
                let status = StatusCode::from_u16(status).expect("a status");
                let stream = stream.expect("a request");
                peer.respond(stream, status, &HeaderMap::new(), BodySize::Known(length as u64));
            }
        }
    }

    /// Sends part of the body; the answer ends with as much as its head promised. Says how much the client took, which is
    /// less than all when it takes nothing for as long as this one waits.
    pub fn send(&mut self, data: &[u8]) -> usize {
        match &mut self.over {
            Over::One { peer, .. } => peer.send_some(data),
            Over::Two { peer, stream, left, .. } => {
                let stream = stream.expect("a request");
                let sent = peer.send(stream, Bytes::copy_from_slice(data));
                *left -= sent;
                if *left == 0 {
                    peer.end(stream).expect("all of it was sent");
                }
                sent
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- ends

    /// Waits until the client gives the last request up: it ends the connection or resets the stream.
    ///
    /// # Panics
    /// When it does something else.
    pub fn expect_given_up(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.expect_end(),
            Over::Two { peer, stream, .. } => {
                let reason = peer.reset_by_peer(stream.expect("a request"));
                assert_eq!(reason, Ok(Reason::Cancel));
            }
        }
    }

    /// Waits until the client drops the connection, which it is to say goodbye to (RFC 9113 §5.4.1, RFC 8446 §6.1).
    ///
    /// # Panics
    /// When something else comes.
    pub fn expect_end(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.expect_end(),
            Over::Two { peer, .. } => {
                assert_eq!(peer.rest(), Some(Reason::NoError));
                assert!(peer.ended_orderly(), "no close_notify");
            }
        }
    }

    /// Waits until the client drops the connection, also without a word: a goodbye may find no room behind an upload.
    ///
    /// # Panics
    /// When it does not.
    pub fn expect_cut(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.expect_cut(),
            Over::Two { peer, .. } => drop(peer.rest()),
        }
    }

    /// Makes the close of the connection a reset.
    pub fn reset_on_close(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.reset_on_close(),
            Over::Two { peer, .. } => peer.reset_on_close(),
        }
    }

    /// Says of the last request that it was not processed, and never will be: HTTP/2 only.
    ///
    /// # Panics
    /// With HTTP/1.
    pub fn refuse(&mut self) {
        let Over::Two { peer, stream, .. } = &mut self.over else { panic!("HTTP/1 cannot") };
        peer.reset(stream.expect("a request"), Reason::RefusedStream);
    }

    /// Resets the stream of the last request: HTTP/2 only.
    ///
    /// # Panics
    /// With HTTP/1.
    pub fn reset_stream(&mut self, reason: Reason) {
        let Over::Two { peer, stream, .. } = &mut self.over else { panic!("HTTP/1 cannot") };
        peer.reset(stream.expect("a request"), reason);
    }
}
