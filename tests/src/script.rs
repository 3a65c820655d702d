//! A server that does exactly what a case says: one script per connection, in blocking code on threads of its own.

use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use crate::carrier::Carrier;

/// What plays the server's side of one connection: [`Peer`](crate::peer::Peer) in bytes of HTTP/1,
/// [`Replier`](crate::replier::Replier) in messages of either version.
pub trait Accepted {
    /// The server's end.
    fn accepted(carrier: Carrier, stream: TcpStream) -> Self;
}

impl Accepted for crate::peer::Peer {
    fn accepted(carrier: Carrier, stream: TcpStream) -> Self {
        Self::accepted(carrier, stream)
    }
}

/// What the server does on one connection.
pub type Script<P> = Box<dyn FnOnce(&mut P) + Send>;

/// A server that follows scripts.
#[derive(Debug)]
pub struct Scripted {
    base: String,
    accepting: JoinHandle<()>,
}

impl Scripted {
    /// Serves as many connections as there are scripts, in the order in which they come.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn new<P: Accepted + 'static>(carrier: Carrier, scripts: Vec<Script<P>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let accepting = thread::spawn(move || {
            let mut running = Vec::new();
            for script in scripts {
                let (stream, _) = listener.accept().expect("a connection");
                running.push(thread::spawn(move || script(&mut P::accepted(carrier, stream))));
            }
            // Nobody else gets in from here on.
            drop(listener);
            for thread in running {
                thread.join().expect("a script");
            }
        });
        Scripted { base: carrier.base(address.port()), accepting }
    }

    /// Serves one connection.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn one<P: Accepted + 'static>(
        carrier: Carrier,
        script: impl FnOnce(&mut P) + Send + 'static,
    ) -> Self {
        Self::new(carrier, vec![Box::new(script)])
    }

    /// A URL of this server.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Waits until every script has run.
    ///
    /// # Panics
    /// When one of them failed.
    pub fn end(self) {
        self.accepting.join().expect("the scripts");
    }
}
