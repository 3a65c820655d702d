//! A server that does exactly what a case says: one script per connection, in blocking code on threads of its own.

use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use crate::peer::Peer;

/// What the server does on one connection.
pub type Script = Box<dyn FnOnce(&mut Peer) + Send>;

/// A server that follows scripts.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Scripted {
    /// Serves as many connections as there are scripts, in the order in which they come.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn new(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let accepting = thread::spawn(move || {
            let mut running = Vec::new();
            for script in scripts {
                let (stream, _) = listener.accept().expect("a connection");
                let mut peer = Peer::over(stream);
                running.push(thread::spawn(move || script(&mut peer)));
            }
            // Nobody else gets in from here on.
            drop(listener);
            for thread in running {
                thread.join().expect("a script");
            }
        });
        Scripted { address, accepting }
    }

    /// Serves one connection.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn one(script: impl FnOnce(&mut Peer) + Send + 'static) -> Self {
        Self::new(vec![Box::new(script)])
    }

    /// A URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits until every script has run.
    ///
    /// # Panics
    /// When one of them failed.
    pub fn end(self) {
        self.accepting.join().expect("the scripts");
    }
}
