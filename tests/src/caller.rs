//! A client of the server under test, of either version: plain blocking calls, one request after the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use hyperman_http2::{BodySize, Reason, StreamId};

use crate::carrier::Carrier;
use crate::http2::{Head, Http2Peer};
use crate::peer::{Answer, Peer};

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This many bytes. Zero is no body.
    Known(usize),
    /// Until it ends.
    Unknown,
}

/// A connection to the server under test.
#[derive(Debug)]
pub struct Caller {
    over: Over,
}

#[derive(Debug)]
enum Over {
    One {
        peer: Peer,
        /// The methods of the requests that were not answered yet.
        asked: VecDeque<Method>,
        /// Whether the body under way is in chunks.
        chunked: bool,
    },
    Two {
        peer: Http2Peer,
        /// The requests that were not answered yet.
        asked: VecDeque<StreamId>,
        /// The one whose body is under way, and how much of that is to come.
        sending: Option<(StreamId, Length)>,
    },
}

impl Caller {
    /// Connects.
    ///
    /// # Panics
    /// When it cannot.
    pub fn connect(carrier: Carrier, address: SocketAddr) -> Self {
        let over = if carrier.is_http2() {
            Over::Two { peer: Http2Peer::connect(carrier, address), asked: VecDeque::new(), sending: None }
        } else {
            let peer = Peer::connect(carrier, address);
            Over::One { peer, asked: VecDeque::new(), chunked: false }
        };
        Caller { over }
    }

    /// Makes every write one of a single byte.
    pub fn dribble(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.set_stride(1),
            Over::Two { peer, .. } => peer.set_stride(1),
        }
    }

    /// How long the server may let this caller wait.
    pub fn set_patience(&mut self, patience: Duration) {
        match &mut self.over {
            Over::One { peer, .. } => peer.set_patience(patience),
            Over::Two { peer, .. } => peer.set_patience(patience),
        }
    }

    // ------------------------------------------------------------------------------------------------- requests

    /// Sends a GET request.
    pub fn get(&mut self, target: &str) -> &mut Self {
        self.begin("GET", target, &[], Length::Known(0))
    }

    /// Sends a POST request with this body.
    pub fn post(&mut self, target: &str, body: &[u8]) -> &mut Self {
        self.begin("POST", target, &[], Length::Known(body.len())).send(body)
    }

    /// Sends the head of a request.
    ///
    /// # Panics
    /// When it cannot be sent.
    pub fn begin(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        length: Length,
    ) -> &mut Self {
        let method: Method = method.parse().expect("a method");
        match &mut self.over {
            Over::One { peer, asked, chunked } => {
                let mut head = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n");
                for (name, value) in fields {
                    head += &format!("{name}: {value}\r\n");
                }
                head += &match length {
                    Length::Known(0) if method == Method::GET || method == Method::HEAD => String::new(),
                    Length::Known(length) => format!("Content-Length: {length}\r\n"),
                    Length::Unknown => "Transfer-Encoding: chunked\r\n".to_owned(),
                };
                peer.send(head + "\r\n");
                *chunked = length == Length::Unknown;
                asked.push_back(method);
            }
            Over::Two { peer, asked, sending } => {
                let size = match length {
                    Length::Known(length) => BodySize::Known(length as u64),
                    Length::Unknown => BodySize::Unknown,
                };
                let stream = peer.open(&method, target, &map(fields), size);
                asked.push_back(stream);
                *sending = (length != Length::Known(0)).then_some((stream, length));
            }
        }
        self
    }

    /// Sends part of the body of the last request. One of a known length ends with its last byte.
    ///
    /// # Panics
    /// When the server does not take it.
    pub fn send(&mut self, data: &[u8]) -> &mut Self {
        assert!(self.try_send(data), "the server does not read");
        self
    }

    /// As [`send`](Self::send), as far as the server takes it in time; whether that was all.
    ///
    /// # Panics
    /// When no request's body is under way.
    pub fn try_send(&mut self, data: &[u8]) -> bool {
        match &mut self.over {
            Over::One { peer, chunked: false, .. } => peer.try_send(data),
            Over::One { peer, chunked: true, .. } => {
                let whole = [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat();
                data.is_empty() || peer.try_send(whole)
            }
            Over::Two { sending: None, .. } if data.is_empty() => true,
            Over::Two { peer, sending, .. } => {
                let (stream, length) = sending.as_mut().expect("a body under way");
                let sent = peer.send(*stream, Bytes::copy_from_slice(data));
                if let Length::Known(left) = length {
                    *left -= sent;
                    if *left == 0 {
                        peer.end(*stream).expect("all of it was sent");
                        *sending = None;
                    }
                }
                sent == data.len()
            }
        }
    }

    /// Ends a body of unknown length, with these trailers.
    ///
    /// # Panics
    /// When no request's body is under way.
    pub fn end(&mut self, trailers: &[(&str, &str)]) -> &mut Self {
        match &mut self.over {
            Over::One { peer, chunked, .. } => {
                let fields: String =
                    trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                peer.send(format!("0\r\n{fields}\r\n"));
                *chunked = false;
            }
            Over::Two { peer, sending, .. } => {
                let (stream, _) = sending.take().expect("a body under way");
                peer.end_with(stream, &map(trailers));
            }
        }
        self
    }

    /// Begins another request and leaves it in the middle of its head.
    pub fn half_a_head(&mut self) -> &mut Self {
        match &mut self.over {
            Over::One { peer, .. } => drop(peer.send("GET / HTTP/1.1\r\nHo")),
            Over::Two { peer, .. } => peer.send_half_a_frame(),
        }
        self
    }

    // ------------------------------------------------------------------------------------------------- answers

    /// The whole answer to the oldest request that has none yet. Interim answers come like others, without a body.
    ///
    /// # Panics
    /// When there is none.
    pub fn answer(&mut self) -> Answer {
        let answer = self.answer_head();
        if answer.status < 200 { answer } else { self.answer_rest(answer) }
    }

    /// The head of the next answer, whose body waits for [`answer_rest`](Self::answer_rest).
    ///
    /// # Panics
    /// When there is none.
    pub fn answer_head(&mut self) -> Answer {
        match &mut self.over {
            Over::One { peer, .. } => peer.answer_head(),
            Over::Two { peer, asked, .. } => {
                let stream = *asked.front().expect("a request");
                let head = peer.head(stream).expect("an answer");
                Answer { status: head.status.as_u16(), head: lines(&head), body: Vec::new() }
            }
        }
    }

    /// Reads the body behind a final head.
    ///
    /// # Panics
    /// When it does not come whole.
    pub fn answer_rest(&mut self, mut answer: Answer) -> Answer {
        match &mut self.over {
            Over::One { peer, asked, .. } => {
                if asked.pop_front() != Some(Method::HEAD) {
                    peer.answer_body(&mut answer);
                }
            }
            Over::Two { peer, asked, .. } => {
                let stream = asked.pop_front().expect("a request");
                while let Some(piece) = peer.piece(stream).expect("a whole body") {
                    answer.body.extend_from_slice(&piece);
                }
                peer.finished(stream);
            }
        }
        answer
    }

    // ------------------------------------------------------------------------------------------------- ends

    /// Gives the last request up: with HTTP/1 that takes the connection, with HTTP/2 a reset of its stream.
    ///
    /// # Panics
    /// When there is no request.
    pub fn cancel(self) -> Option<Caller> {
        match self.over {
            Over::One { .. } => None,
            Over::Two { mut peer, mut asked, .. } => {
                let stream = asked.pop_back().expect("a request");
                peer.reset(stream, Reason::Cancel);
                Some(Caller { over: Over::Two { peer, asked, sending: None } })
            }
        }
    }

    /// Closes the connection with a reset instead of an orderly end.
    pub fn reset(mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.reset_on_close(),
            Over::Two { peer, .. } => peer.reset_on_close(),
        }
    }

    /// Asserts that this answer is the last of the connection, and was known to be: it says so in its head, or GOAWAY does.
    ///
    /// # Panics
    /// When it does not.
    pub fn expect_last(&mut self, answer: &Answer) {
        match &mut self.over {
            Over::One { .. } => assert_eq!(answer.field("connection"), Some("close"), "{}", answer.head),
            Over::Two { peer, .. } => assert_eq!(peer.goaway(), Reason::NoError),
        }
        self.expect_end();
    }

    /// Asserts that the server ends the connection without another message, and without blame where it gives a reason.
    ///
    /// # Panics
    /// When it does something else.
    pub fn expect_end(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.expect_end(),
            Over::Two { peer, .. } => {
                let reason = peer.rest();
                assert!(peer.is_taken(), "another message came");
                assert_eq!(reason, Some(Reason::NoError));
                assert!(peer.ended_orderly(), "no close_notify");
            }
        }
    }

    /// Asserts that the server ends the connection because the head under way took too long: with 408 over HTTP/1
    /// (RFC 9110 §15.5.9), with GOAWAY over HTTP/2, where no stream is there yet to be answered on.
    ///
    /// # Panics
    /// When it does something else.
    pub fn expect_late(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => {
                assert_eq!(peer.answer().status, 408);
                peer.expect_end();
            }
            Over::Two { peer, .. } => assert_eq!(peer.rest(), Some(Reason::EnhanceYourCalm)),
        }
    }

    /// Asserts that the server ends the connection although a request has no answer.
    ///
    /// # Panics
    /// When it does something else.
    pub fn expect_cut(&mut self) {
        match &mut self.over {
            Over::One { peer, .. } => peer.expect_cut(),
            Over::Two { peer, .. } => {
                peer.rest();
                assert!(peer.is_taken(), "another message came");
            }
        }
    }

    /// Waits until the server has given up on the last request: an answer with this status over HTTP/1 or a reset of its
    /// stream over HTTP/2, where the answer may come as well.
    ///
    /// # Panics
    /// When the server does something else.
    pub fn expect_given_up(&mut self, status: u16) {
        match &mut self.over {
            Over::One { peer, .. } => {
                assert_eq!(peer.answer().status, status);
                peer.expect_end();
            }
            Over::Two { peer, asked, .. } => {
                let stream = asked.pop_front().expect("a request");
                let head = peer.head(stream);
                assert!(head.is_none_or(|head| head.status.as_u16() == status));
                while let Ok(Some(_)) = peer.piece(stream) {}
            }
        }
    }
}

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let pair = |&(name, value): &(&str, &str)| {
        let name: HeaderName = name.parse().expect("a name");
        (name, HeaderValue::from_str(value).expect("a value"))
    };
    fields.iter().map(pair).collect()
}

/// A head as HTTP/1 would write it.
fn lines(head: &Head) -> String {
    let mut lines = format!("HTTP/2.0 {}\r\n", head.status.as_u16());
    for (name, value) in &head.fields {
        lines += &format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    lines + "\r\n"
}
