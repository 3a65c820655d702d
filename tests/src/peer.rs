//! A peer that is a plain blocking socket and speaks HTTP/1 in bytes.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::carrier::Carrier;
use crate::wire::{Wire, is_gone, is_late};

/// A connection to the server or client under test.
#[derive(Debug)]
pub struct Peer {
    wire: Wire,
    unread: Vec<u8>,
    /// How many bytes leave in one write.
    stride: usize,
}

/// An answer as it stood on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The whole head with its last empty line.
    pub head: String,
    /// The body without its framing.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Peer {
    /// Connects.
    ///
    /// # Panics
    /// When it cannot: a peer is part of a test.
    pub fn connect(carrier: Carrier, address: SocketAddr) -> Self {
        Peer { wire: Wire::connect(carrier, address), unread: Vec::new(), stride: usize::MAX }
    }

    /// The server's end of a connection that was accepted.
    ///
    /// # Panics
    /// When the socket cannot be set up.
    pub fn accepted(carrier: Carrier, stream: TcpStream) -> Self {
        Peer { wire: Wire::accepted(carrier, stream), unread: Vec::new(), stride: usize::MAX }
    }

    /// Over TLS, ends the handshake, which otherwise comes with the first bytes.
    ///
    /// # Panics
    /// When it fails.
    pub fn handshake(&mut self) -> &mut Self {
        self.wire.handshake();
        self
    }

    /// Sends all of `bytes`.
    ///
    /// # Panics
    /// When the other side does not take them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        assert!(self.try_send(bytes), "the other side does not read");
        self
    }

    /// Sends as much of `bytes` as the other side takes in time; whether that was all.
    ///
    /// # Panics
    /// When the connection fails in another way than by being closed.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let bytes = bytes.as_ref();
        self.send_some(bytes) == bytes.len()
    }

    /// As [`try_send`](Self::try_send), but says how much was taken.
    ///
    /// # Panics
    /// As [`try_send`](Self::try_send).
    pub fn send_some(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            let next = &bytes[sent..];
            match self.wire.write(&next[..next.len().min(self.stride)]) {
                Ok(taken) => sent += taken,
                Err(error) if is_gone(&error) || is_late(&error) => break,
                Err(error) => panic!("cannot send: {error}"),
            }
        }
        sent
    }

    /// Makes every write one of this many bytes.
    pub fn set_stride(&mut self, stride: usize) {
        self.stride = stride;
    }

    /// How long the other side may let this one wait.
    ///
    /// # Panics
    /// When the socket refuses.
    pub fn set_patience(&mut self, patience: Duration) {
        self.wire.set_patience(patience);
    }

    /// Ends our direction.
    pub fn finish(&mut self) -> &mut Self {
        self.wire.finish();
        self
    }

    /// Closes with a reset instead of an orderly end.
    pub fn reset(mut self) {
        self.reset_on_close();
    }

    /// Makes the close of this connection a reset.
    ///
    /// # Panics
    /// When the socket refuses.
    pub fn reset_on_close(&mut self) {
        self.wire.reset_on_close();
    }

    /// Reads one answer to a request that was no HEAD; interim answers come like others, without a body.
    ///
    /// # Panics
    /// When what comes is none.
    pub fn answer(&mut self) -> Answer {
        self.read_answer(false)
    }

    /// Reads one answer to a HEAD request.
    ///
    /// # Panics
    /// As [`answer`](Self::answer).
    pub fn answer_to_head(&mut self) -> Answer {
        self.read_answer(true)
    }

    fn read_answer(&mut self, to_head: bool) -> Answer {
        let mut answer = self.answer_head();
        if !to_head && answer.status >= 200 {
            self.answer_body(&mut answer);
        }
        answer
    }

    /// Reads the head of an answer, and leaves its body alone.
    ///
    /// # Panics
    /// As [`answer`](Self::answer).
    pub fn answer_head(&mut self) -> Answer {
        let head = self.until(b"\r\n\r\n");
        let head = String::from_utf8_lossy(&head).into_owned();
        let status: u16 =
            head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
        Answer { status, head, body: Vec::new() }
    }

    /// Reads the body behind the head of an answer to a request that was no HEAD.
    ///
    /// # Panics
    /// As [`answer`](Self::answer).
    pub fn answer_body(&mut self, answer: &mut Answer) {
        if answer.status == 204 || answer.status == 304 {
            return;
        }
        if answer.field("transfer-encoding") == Some("chunked") {
            answer.body = self.chunked();
        } else if let Some(length) = answer.field("content-length") {
            let length = length.parse().expect("a length");
            answer.body = self.exactly(length);
        } else {
            answer.body = self.rest();
        }
    }

    /// Reads a body in chunks, without its trailers.
    ///
    /// # Panics
    /// When what comes is none.
    pub fn chunked(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let line = self.until(b"\r\n");
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.trim_end(), 16).expect("a chunk size");
            if size == 0 {
                while self.until(b"\r\n") != b"\r\n" {}
                return body;
            }
            body.extend(self.exactly(size));
            assert_eq!(self.exactly(2), b"\r\n");
        }
    }

    /// Reads up to and with `end`.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return self.unread.drain(..at + end.len()).collect();
            }
            assert!(self.more(), "the connection ended after {:?}", String::from_utf8_lossy(&self.unread));
        }
    }

    /// Reads `length` bytes.
    ///
    /// # Panics
    /// When the connection ends first.
    pub fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.unread.len() < length {
            assert!(self.more(), "the connection ended after {} of {length} bytes", self.unread.len());
        }
        self.unread.drain(..length).collect()
    }

    /// Reads up to the end of the connection.
    ///
    /// # Panics
    /// When it does not end.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.unread)
    }

    /// Asserts that the other side ends the connection without another byte, and over TLS says so.
    ///
    /// # Panics
    /// When it does something else.
    pub fn expect_end(&mut self) {
        self.expect_cut();
        assert!(!self.wire.is_cut(), "no close_notify");
    }

    /// Asserts that the other side drops the connection without another byte.
    ///
    /// # Panics
    /// When it sends one.
    pub fn expect_cut(&mut self) {
        let rest = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// Asserts that these bytes are the last ones, and that the end after them is a reset.
    ///
    /// # Panics
    /// When it is another end, or comes after something else.
    pub fn expect_reset(&mut self, after: &str) {
        let rest = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), after);
        assert!(self.wire.was_reset(), "an orderly end");
    }

    /// Whether the connection has ended with a reset.
    pub fn was_reset(&self) -> bool {
        self.wire.was_reset()
    }

    /// Whether more bytes came before the end; a reset counts as an end.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.wire.read_some(&mut buffer) {
            Some(0) => false,
            Some(received) => {
                self.unread.extend_from_slice(&buffer[..received]);
                true
            }
            None => panic!("nothing came"),
        }
    }
}
