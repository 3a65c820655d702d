//! A blocking socket of a plain peer, bare or under rustls.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::carrier::Carrier;
use crate::tls::tls;

/// How long a peer waits for anything before its test fails, 20 s: nothing here takes a tenth of it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The bytes under a peer's messages.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: Stream,
    /// TLS ended without saying so.
    cut: bool,
    /// The close will be a reset.
    resets: bool,
    /// The other side has reset the connection.
    was_reset: bool,
}

#[derive(Debug)]
enum Stream {
    Bare(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Wire {
    /// A client's end.
    pub(crate) fn connect(carrier: Carrier, address: SocketAddr) -> Self {
        let stream = set_up(TcpStream::connect(address).expect("connect"));
        if !carrier.is_secure() {
            return Stream::Bare(stream).into();
        }
        let [http1, http2] = &tls().plain_client;
        let config = if carrier.is_http2() { http2 } else { http1 };
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(config.clone(), name).expect("a session");
        Stream::Client(Box::new(StreamOwned::new(session, stream))).into()
    }

    /// A server's end.
    pub(crate) fn accepted(carrier: Carrier, stream: TcpStream) -> Self {
        let stream = set_up(stream);
        if !carrier.is_secure() {
            return Stream::Bare(stream).into();
        }
        let [http1, http2] = &tls().plain_server;
        let config = if carrier.is_http2() { http2 } else { http1 };
        let session = ServerConnection::new(config.clone()).expect("a session");
        Stream::Server(Box::new(StreamOwned::new(session, stream))).into()
    }

    fn socket(&self) -> &TcpStream {
        match &self.stream {
            Stream::Bare(stream) => stream,
            Stream::Client(stream) => &stream.sock,
            Stream::Server(stream) => &stream.sock,
        }
    }

    /// Ends the handshake of TLS before anything is sent.
    pub(crate) fn handshake(&mut self) {
        let done = match &mut self.stream {
            Stream::Bare(_) => return,
            Stream::Client(stream) => stream.conn.complete_io(&mut stream.sock),
            Stream::Server(stream) => stream.conn.complete_io(&mut stream.sock),
        };
        done.expect("a handshake");
    }

    /// How long a read or a write may take.
    pub(crate) fn set_patience(&self, patience: Duration) {
        let socket = self.socket();
        socket.set_read_timeout(Some(patience)).expect("read timeout");
        socket.set_write_timeout(Some(patience)).expect("write timeout");
    }

    /// Ends our direction.
    pub(crate) fn finish(&mut self) {
        match &mut self.stream {
            Stream::Bare(_) => {}
            Stream::Client(stream) => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
            Stream::Server(stream) => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
        let _ = self.socket().shutdown(Shutdown::Write);
    }

    /// Makes the close of this connection a reset.
    pub(crate) fn reset_on_close(&mut self) {
        self.resets = true;
        let socket = rustix::net::sockopt::set_socket_linger(self.socket(), Some(Duration::ZERO));
        socket.expect("linger");
    }

    /// Whether TLS ended without a `close_notify`, so that what came may not be all that was sent.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Whether the connection ended with a reset.
    pub(crate) fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Reads what there is. `Some(0)` is the end of the connection, which a reset counts as too; `None` that nothing came in
    /// time.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match self.read(buffer) {
                Ok(received) => return Some(received),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => {
                    self.was_reset = true;
                    return Some(0);
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.cut = true;
                    return Some(0);
                }
                Err(error) if is_late(&error) => return None,
                Err(error) => panic!("the connection failed: {error}"),
            }
        }
    }
}

/// A server says goodbye when it closes; a client just goes, as clients do.
impl Drop for Wire {
    fn drop(&mut self) {
        if let Stream::Server(stream) = &mut self.stream
            && !self.resets
        {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    }
}

impl From<Stream> for Wire {
    fn from(stream: Stream) -> Self {
        Wire { stream, cut: false, resets: false, was_reset: false }
    }
}

/// Whether nothing was moved in time.
pub(crate) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Whether the other side has gone.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}

fn set_up(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("read timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("write timeout");
    stream.set_nodelay(true).expect("nodelay");
    stream
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Bare(stream) => stream.read(buffer),
            Stream::Client(stream) => stream.read(buffer),
            Stream::Server(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Bare(stream) => stream.write(data),
            Stream::Client(stream) => stream.write(data),
            Stream::Server(stream) => stream.write(data),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Bare(stream) => stream.flush(),
            Stream::Client(stream) => stream.flush(),
            Stream::Server(stream) => stream.flush(),
        }
    }
}
