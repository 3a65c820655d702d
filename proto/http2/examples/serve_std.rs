//! A small blocking server over the machine, one thread per connection: `serve_std [ADDR] [--read-body]`.
//!
//! It exists so that the machine can be judged by real peers without the rest of the project. With `--read-body` an
//! answer waits for the end of its request, otherwise it is given at once. `/large/N` answers with N octets.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // It is a driver: it has the clock and the sockets.

use std::collections::HashMap;
use std::error::Error;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyperman_http2::{BodyLength, BodySize, Config, Loan, Misuse, Server, ServerEvent, StreamId};

fn main() -> Result<(), Box<dyn Error>> {
    let mut address = "127.0.0.1:0".to_owned();
    let mut read_body = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--read-body" => read_body = true,
            other => address = other.to_owned(),
        }
    }
    let listener = TcpListener::bind(address)?;
    println!("http://{}", listener.local_addr()?);
    let config = Arc::new(Config::server());
    for socket in listener.incoming() {
        let (socket, config) = (socket?, Arc::clone(&config));
        std::thread::spawn(move || {
            if let Err(error) = (Connection { socket, read_body, waiting: HashMap::new() }).run(config) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

struct Connection {
    socket: TcpStream,
    read_body: bool,
    /// Requests whose body is still coming, and how large their answer will be.
    waiting: HashMap<StreamId, usize>,
}

impl Connection {
    fn run(mut self, config: Arc<Config>) -> Result<(), Box<dyn Error>> {
        self.socket.set_nodelay(true)?;
        let mut machine = Server::new(config, Instant::now());
        let mut loan = Loan { date: *b"Mon, 21 Oct 2013 20:13:21 GMT", ..Loan::default() };
        let mut chunk = vec![0; 64 * 1024];
        loop {
            machine.handle_timeout(Instant::now());
            machine.lend(&mut loan);
            let over = self.turn(&mut machine)?;
            if over || machine.is_closed().is_some() {
                return self.linger(&machine);
            }
            machine.reclaim(&mut loan);
            let wait = machine.poll_timeout().map(|(at, _)| at.saturating_duration_since(Instant::now()));
            self.socket.set_read_timeout(wait.map(|wait| wait.max(Duration::from_millis(1))))?;
            match self.socket.read(&mut chunk) {
                Ok(0) => machine.handle_eof(),
                Ok(length) => {
                    machine.handle_timeout(Instant::now());
                    machine.read_buf().extend_from_slice(chunk.get(..length).unwrap_or_default());
                    machine.received(length);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Events, then bytes, until there is neither. True when the connection is over.
    fn turn(&mut self, machine: &mut Server) -> Result<bool, Box<dyn Error>> {
        loop {
            let mut over = false;
            loop {
                match machine.next_event() {
                    Ok(Some(event)) => self.event(machine, event)?,
                    Ok(None) => break,
                    Err(error) => {
                        eprintln!("{error}");
                        over = true;
                        break;
                    }
                }
            }
            if !machine.has_transmit() {
                return Ok(over);
            }
            let mut slices = [IoSlice::new(&[]); 64];
            let filled = machine.poll_transmit(&mut slices);
            let written = self.socket.write_vectored(slices.get(..filled).unwrap_or_default())?;
            machine.transmitted(written);
        }
    }

    fn event(&mut self, machine: &mut Server, event: ServerEvent) -> Result<(), Misuse> {
        match event {
            ServerEvent::Request { stream, request, body, .. } => {
                let large =
                    request.uri().path().strip_prefix("/large/").and_then(|length| length.parse().ok());
                let length = large.unwrap_or(256);
                if body == BodyLength::Empty || !self.read_body {
                    return answer(machine, stream, length);
                }
                machine.send_continue(stream);
                machine.want_body(stream, true);
                self.waiting.insert(stream, length);
            }
            ServerEvent::Data { stream, data } => machine.release(stream, data.len()),
            ServerEvent::End { stream } => {
                if let Some(length) = self.waiting.remove(&stream) {
                    return answer(machine, stream, length);
                }
            }
            ServerEvent::Reset { stream, .. } => {
                self.waiting.remove(&stream);
                machine.finished(stream);
            }
            ServerEvent::Trailers { .. } | ServerEvent::Capacity { .. } | ServerEvent::GoAway { .. } => {}
        }
        Ok(())
    }

    /// Lets the peer read our last words before the socket goes.
    fn linger(mut self, machine: &Server) -> Result<(), Box<dyn Error>> {
        if machine.needs_linger() {
            self.socket.shutdown(std::net::Shutdown::Write)?;
            self.socket.set_read_timeout(Some(Duration::from_secs(2)))?;
            let mut chunk = [0; 4096];
            while matches!(self.socket.read(&mut chunk), Ok(1..)) {}
        }
        Ok(())
    }
}

fn answer(machine: &mut Server, stream: StreamId, length: usize) -> Result<(), Misuse> {
    static LETTERS: [u8; 256] = [b'h'; 256];
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::SERVER, HeaderValue::from_static("serve_std"));
    machine.send_head(stream, StatusCode::OK, &headers, BodySize::Known(length as u64))?;
    let body = LETTERS.get(..length).map_or_else(|| Bytes::from(vec![b'h'; length]), Bytes::from_static);
    machine.send_data(stream, body)?;
    machine.end(stream)?;
    machine.finished(stream);
    Ok(())
}
