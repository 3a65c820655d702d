//! The heads that are sent, and a connection that sends one and reads the answer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// What `wrk` sends: 41 bytes with a port of five digits, one field.
pub fn wrk_head(address: SocketAddr) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes()
}

/// What a browser sends: 460 bytes with a port of five digits, six fields.
pub fn browser_head(address: SocketAddr) -> Vec<u8> {
    format!(
        "GET / HTTP/1.1\r\n\
         Host: {address}\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/140.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
         Accept-Language: en-GB,en;q=0.8,de-DE;q=0.6,de;q=0.4\r\n\
         Accept-Encoding: gzip, deflate, br, zstd\r\n\
         Cookie: session=5f2b7c0d9e8a41c6b3d4; theme=dark; consent=analytics.0-marketing.0-functional.1; lang=en-GB; a=1\r\n\r\n"
    )
    .into_bytes()
}

/// A connection with room for one answer.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects; a small request leaves at once.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: vec![0; 2048] })
    }

    /// Sends one request.
    pub fn send(&mut self, head: &[u8]) -> io::Result<()> {
        self.stream.write_all(head)
    }

    /// Reads one whole answer that has a Content-Length.
    pub fn receive(&mut self) -> io::Result<()> {
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if answer_length(&self.buffer[..filled]) == Some(filled) {
                return Ok(());
            }
        }
    }
}

/// The length of head and body once the head is complete.
fn answer_length(answer: &[u8]) -> Option<usize> {
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&answer[..head]).ok()?.to_ascii_lowercase();
    assert!(text.starts_with("http/1.1 200"), "not the answer that was wanted: {text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    Some(head + length.trim().parse::<usize>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_have_the_length_that_the_budgets_name() {
        let address = SocketAddr::from(([127, 0, 0, 1], 40_000));
        assert_eq!(wrk_head(address).len(), 41);
        assert_eq!(browser_head(address).len(), 460);
        assert_eq!(browser_head(address).split(|byte| *byte == b'\n').count() - 3, 6);
    }

    #[test]
    fn an_answer_is_over_when_its_body_is_there() {
        assert_eq!(answer_length(b"HTTP/1.1 200 OK\r\nContent-Le"), None);
        assert_eq!(answer_length(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), Some(41));
    }
}
