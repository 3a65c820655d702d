//! A server that does exactly what a test says: one script per connection, in blocking code on threads of its own.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// What one connection's peer does.
pub type Script = Box<dyn FnOnce(&mut Conn) + Send>;

/// A scripted server. Dropping it waits until its scripts have run, and fails the test if one failed or was not used.
pub struct Peer {
    address: SocketAddr,
    marks: Arc<AtomicUsize>,
    /// Connections that the scripts are through with and the kernel has been told to close.
    closed: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
    /// In a lock so that a case may hold a peer across threads.
    done: Mutex<mpsc::Receiver<Result<(), String>>>,
}

impl Peer {
    /// Serves one connection after the other, each by its script.
    pub fn new(scripts: Vec<Script>) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (tell, done) = mpsc::channel();
        let (marks, closed, opened) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (marked, shut, begun) = (marks.clone(), closed.clone(), opened.clone());
        thread::spawn(move || {
            let run = move || {
                let mut running = Vec::new();
                for script in scripts {
                    let (stream, _) = listener.accept().expect("a connection");
                    // Far beyond what any script waits for: a test that hangs fails here first.
                    stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a timeout");
                    begun.fetch_add(1, Ordering::SeqCst);
                    let mut conn = Conn { stream, ahead: Vec::new(), marks: marked.clone() };
                    let shut = shut.clone();
                    running.push(thread::spawn(move || {
                        script(&mut conn);
                        drop(conn);
                        shut.fetch_add(1, Ordering::SeqCst);
                    }));
                }
                running.into_iter().map(thread::JoinHandle::join).collect::<Result<Vec<()>, _>>()
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            let failed = |_| "a script failed".to_owned();
            let _ = tell.send(outcome.map_err(failed).and_then(|joined| joined.map(drop).map_err(failed)));
        });
        Peer { address, marks, closed, opened, done: Mutex::new(done) }
    }

    /// One connection.
    pub fn one(script: impl FnOnce(&mut Conn) + Send + 'static) -> Peer {
        Peer::new(vec![Box::new(script)])
    }

    /// A URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often scripts have called [`Conn::mark`].
    pub fn marks(&self) -> usize {
        self.marks.load(Ordering::SeqCst)
    }

    /// Whether every connection so far has been closed by its script.
    pub fn finished(&self) -> bool {
        self.closed.load(Ordering::SeqCst) == self.opened.load(Ordering::SeqCst)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        match self.done.get_mut().expect("lock").recv_timeout(Duration::from_secs(20)) {
            Ok(outcome) => outcome.expect("the peer's script"),
            Err(error) => panic!("a script waits for a connection that never came: {error}"),
        }
    }
}

/// The server's end of a connection.
pub struct Conn {
    stream: TcpStream,
    ahead: Vec<u8>,
    marks: Arc<AtomicUsize>,
}

impl Conn {
    /// Reads a request's head, with its empty line.
    pub fn head(&mut self) -> String {
        self.try_head().expect("a head")
    }

    /// Reads a request's head; `None` when the connection ends before one begins.
    pub fn try_head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return Some(String::from_utf8(head).expect("text"));
            }
            if !self.fill() {
                assert!(self.ahead.is_empty(), "half a head: {:?}", self.ahead.escape_ascii().to_string());
                return None;
            }
        }
    }

    /// Reads so many bytes of a body.
    pub fn body(&mut self, length: usize) -> Vec<u8> {
        while self.ahead.len() < length {
            assert!(self.fill(), "the body ends early: {} of {length}", self.ahead.len());
        }
        self.ahead.drain(..length).collect()
    }

    fn fill(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(count) => {
                self.ahead.extend_from_slice(&piece[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(error) => panic!("the peer's read: {error}"),
        }
    }

    /// Sends; the client may have gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Waits until the client closes, and gives what it sent until then.
    pub fn until_closed(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.ahead)
    }

    /// Tells the test that the script has come this far.
    pub fn mark(&self) {
        self.marks.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends our direction.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Makes the close of this connection a reset.
    pub fn reset_on_close(&mut self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).expect("linger");
    }

    /// Where the client is.
    pub fn client(&self) -> SocketAddr {
        self.stream.peer_addr().expect("an address")
    }
}
