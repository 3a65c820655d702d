//! A peer that is a plain blocking socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a peer waits for anything before its test fails, 20 s: nothing here takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to the server or client under test.
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    unread: Vec<u8>,
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
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).expect("connect"))
    }

    /// The peer at this end of a connection.
    ///
    /// # Panics
    /// When the socket cannot be set up.
    pub fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("read timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("write timeout");
        stream.set_nodelay(true).expect("nodelay");
        Peer { stream, unread: Vec::new() }
    }

    /// Sends all of `bytes`.
    ///
    /// # Panics
    /// When the server does not take them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).expect("send");
        self
    }

    /// Sends as much of `bytes` as the server takes.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Ends our direction.
    pub fn finish(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Closes with a reset instead of an orderly end.
    pub fn reset(self) {
        self.reset_on_close();
    }

    /// Makes the close of this connection a reset.
    ///
    /// # Panics
    /// When the socket refuses.
    pub fn reset_on_close(&self) {
        let socket = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
        socket.expect("linger");
    }

    /// The socket, for what else a test needs.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
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
        let head = self.until(b"\r\n\r\n");
        let head = String::from_utf8_lossy(&head).into_owned();
        let status: u16 =
            head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{head:?}"));
        let mut answer = Answer { status, head, body: Vec::new() };
        let bodiless = to_head || status < 200 || status == 204 || status == 304;
        if bodiless {
            return answer;
        }
        if answer.field("transfer-encoding") == Some("chunked") {
            answer.body = self.chunked();
        } else if let Some(length) = answer.field("content-length") {
            let length = length.parse().expect("a length");
            answer.body = self.exactly(length);
        } else {
            answer.body = self.rest();
        }
        answer
    }

    fn chunked(&mut self) -> Vec<u8> {
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

    /// Asserts that the server ends the connection without another byte.
    ///
    /// # Panics
    /// When it sends one.
    pub fn expect_end(&mut self) {
        let rest = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// Whether more bytes came before the end; a reset counts as an end.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(received) => {
                    self.unread.extend_from_slice(&buffer[..received]);
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }
}
