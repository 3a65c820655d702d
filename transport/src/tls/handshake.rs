//! From the first byte to the end of the handshake.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ProtocolVersion;
use rustls::server::UnbufferedServerConnection;

use super::engine::{Engine, Goal, Sink};
use super::error::{Alert, Error};
use super::hello::{Hello, plain_alert};
use super::info::TlsInfo;
use super::server::Hosts;
use super::stream::{ROUNDS, TlsStream};
use crate::stream::ByteStream;

/// How many bytes a peer may send before the handshake is over: two flights, of which one may hold a long certificate
/// chain.
const HANDSHAKE_LIMIT: usize = 256 * 1024;

/// How far a stream has come.
pub(super) enum Stage {
    /// A server that does not know yet which host it is to be.
    Hello { hello: Box<Hello>, hosts: Arc<Hosts> },
    /// The two sides agree on keys.
    Handshake { engine: Box<Engine>, server_name: Option<String>, hosts: Option<Arc<Hosts>> },
    /// Application data flows.
    Traffic(Box<Engine>),
    /// Between two of the others.
    Moving,
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Hello { .. } => "Hello",
            Stage::Handshake { .. } => "Handshake",
            Stage::Traffic(_) => "Traffic",
            Stage::Moving => "Moving",
        })
    }
}

impl<T: ByteStream> TlsStream<T> {
    /// Drives the handshake; ready once application data can flow. Reading and writing do this by themselves.
    ///
    /// # Errors
    /// Why there is no connection. An alert has been sent to the peer where the protocol has one.
    pub fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(error) = &self.failure {
            return Poll::Ready(Err(error.clone()));
        }
        if self.shaken {
            return Poll::Ready(Ok(()));
        }
        let outcome = ready!(self.poll_stages(cx));
        Poll::Ready(outcome.map_err(|error| self.fail(cx, error)))
    }

    fn poll_stages(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        for _ in 0..ROUNDS {
            if self.advance()? {
                // The peer may wait for our last message, whether or not something else follows at once. All that a
                // server of TLS 1.3 has left are tickets: they go out with its first answer.
                if !self.leaves_tickets_only()
                    && let Err(error) = ready!(self.poll_drain(cx))
                {
                    return Poll::Ready(Err(Error::Io(Arc::new(error))));
                }
                self.shaken = true;
                return Poll::Ready(Ok(()));
            }
            // Whether or not all could leave, the peer is read from: it may have to be before it reads from us.
            if let Poll::Ready(Err(error)) = self.poll_drain(cx) {
                return Poll::Ready(Err(Error::Io(Arc::new(error))));
            }
            if self.quiet > HANDSHAKE_LIMIT {
                return Poll::Ready(Err(Error::Flood));
            }
            if ready!(self.poll_fill(cx))? == 0 {
                return Poll::Ready(Err(Error::HandshakeEof));
            }
        }
        // Many reads in a row: others get their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn leaves_tickets_only(&self) -> bool {
        let Stage::Traffic(engine) = &self.stage else { return false };
        engine.is_server() && engine.state().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Works on what was received; whether the handshake is over.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Moving) {
                Stage::Hello { mut hello, hosts } => {
                    let asked = hello.look(&self.incoming).map_err(|(error, alert)| {
                        self.outgoing.push(&alert);
                        error
                    })?;
                    let Some(asked) = asked else {
                        self.stage = Stage::Hello { hello, hosts };
                        return Ok(false);
                    };
                    self.choose(asked.server_name, hosts)?;
                }
                Stage::Handshake { mut engine, server_name, hosts } => {
                    let mut sink = Sink::keep(&mut self.plain);
                    engine.drive(&mut self.incoming, &mut self.outgoing, &mut sink, Goal::Receive)?;
                    if engine.state().is_handshaking() {
                        self.stage = Stage::Handshake { engine, server_name, hosts };
                        return Ok(false);
                    }
                    self.info = Some(TlsInfo::new(engine.state(), server_name, hosts));
                    self.quiet = 0;
                    self.stage = Stage::Traffic(engine);
                    return Ok(true);
                }
                traffic @ Stage::Traffic(_) => {
                    self.stage = traffic;
                    return Ok(true);
                }
                Stage::Moving => return Err(Error::Local("polled after a failure".into())),
            }
        }
    }

    /// Goes on as the host that the client asked for.
    fn choose(&mut self, server_name: Option<String>, hosts: Arc<Hosts>) -> Result<(), Error> {
        let Some(config) = hosts.config(server_name.as_deref()) else {
            self.outgoing.push(&plain_alert(Alert::UNRECOGNIZED_NAME.code));
            return Err(Error::UnknownHost);
        };
        let engine = Box::new(Engine::server(UnbufferedServerConnection::new(config)?));
        self.stage = Stage::Handshake { engine, server_name, hosts: Some(hosts) };
        Ok(())
    }
}

/// A handshake under way: ready with the stream once it is over. Dropping it drops the connection.
#[derive(Debug)]
pub struct Handshake<T> {
    stream: Option<TlsStream<T>>,
}

impl<T: ByteStream> Handshake<T> {
    pub(super) fn new(stream: TlsStream<T>) -> Self {
        Handshake { stream: Some(stream) }
    }
}

/// A handshake that failed, with the stream below it: a client that spoke plain HTTP can be told so.
#[derive(Debug)]
pub struct HandshakeFailure<T> {
    /// Why.
    pub error: Error,
    /// The stream below.
    pub stream: T,
}

impl<T> fmt::Display for HandshakeFailure<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for HandshakeFailure<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<T: ByteStream> Future for Handshake<T> {
    type Output = Result<TlsStream<T>, HandshakeFailure<T>>;

    /// # Panics
    /// When it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut stream) = self.stream.take() else { panic!("Handshake polled after it was ready") };
        match stream.poll_handshake(cx) {
            Poll::Pending => {
                self.stream = Some(stream);
                Poll::Pending
            }
            Poll::Ready(Ok(())) => Poll::Ready(Ok(stream)),
            Poll::Ready(Err(error)) => {
                Poll::Ready(Err(HandshakeFailure { error, stream: stream.into_inner() }))
            }
        }
    }
}
