//! TLS without a socket: ciphertext in and plaintext out, plaintext in and ciphertext out. All buffers are the caller's.
//!
//! This is the only file that drives the TLS library. Records are decrypted where they lie in the caller's buffer, by
//! the library's unbuffered interface; a connection between two records so needs no buffer at all.

use bytes::{Buf, BytesMut};
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, ReadTraffic, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error};

use super::storage::{Outgoing, ciphertext_room};

/// One side of a TLS connection.
pub(super) struct Engine {
    session: Session,
    peer_closed: bool,
}

enum Session {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// Where decrypted bytes go: into the spare capacity of a buffer, and what does not fit into an overflow.
pub(super) struct Sink<'a> {
    /// `None` lets everything go to the overflow, which is then as large as what was received at most.
    pub(super) buffer: Option<&'a mut BytesMut>,
    pub(super) overflow: &'a mut BytesMut,
    /// How many bytes went into `buffer`.
    pub(super) delivered: usize,
    /// How many bytes were decrypted.
    pub(super) decrypted: usize,
}

/// What the caller wants done once all that was received is processed.
#[derive(Clone, Copy)]
pub(super) enum Goal<'a> {
    /// Nothing more.
    Receive,
    /// Encrypt these bytes.
    Send(&'a [u8]),
    /// Write `close_notify`.
    Close,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The goal. All received records are processed; what is left is the beginning of one.
    Goal,
    /// The handshake needs more bytes from the peer.
    Blocked,
    /// The sink is full; there may be more to decrypt.
    Full,
}

impl Engine {
    pub(super) fn server(connection: UnbufferedServerConnection) -> Self {
        Engine { session: Session::Server(connection), peer_closed: false }
    }

    pub(super) fn client(connection: UnbufferedClientConnection) -> Self {
        Engine { session: Session::Client(connection), peer_closed: false }
    }

    /// What was negotiated.
    pub(super) fn state(&self) -> &CommonState {
        match &self.session {
            Session::Server(connection) => connection,
            Session::Client(connection) => connection,
        }
    }

    pub(super) fn is_server(&self) -> bool {
        matches!(self.session, Session::Server(_))
    }

    /// Whether the peer's `close_notify` has come: nothing after it is read.
    pub(super) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Processes the records in `incoming` and removes them, then works on the goal.
    ///
    /// # Errors
    /// The connection's fault, its alert already in `outgoing`. The engine must not be used again.
    pub(super) fn drive(
        &mut self,
        incoming: &mut BytesMut,
        outgoing: &mut Outgoing,
        sink: &mut Sink<'_>,
        goal: Goal<'_>,
    ) -> Result<Reached, Error> {
        loop {
            let (discard, step) = match &mut self.session {
                Session::Server(c) => step(c.process_tls_records(incoming), outgoing, sink, goal),
                Session::Client(c) => step(c.process_tls_records(incoming), outgoing, sink, goal),
            };
            incoming.advance(discard.min(incoming.len()));
            match step {
                Ok(Step::Again) => {}
                Ok(Step::PeerClosed) => self.peer_closed = true,
                Ok(Step::Stop(reached)) => {
                    if self.peer_closed {
                        // RFC 8446 §6.1: what follows close_notify is ignored.
                        incoming.clear();
                    }
                    return Ok(reached);
                }
                Err(error) => {
                    self.collect_alert(incoming, outgoing);
                    return Err(error);
                }
            }
        }
    }

    /// Moves what a failed connection still has to say into `outgoing`. The library must not look at the input again:
    /// it would meet the same fault, and complain twice.
    fn collect_alert(&mut self, incoming: &mut BytesMut, outgoing: &mut Outgoing) {
        while self.state().wants_write() {
            let encoded = match &mut self.session {
                Session::Server(c) => alert(c.process_tls_records(incoming), outgoing),
                Session::Client(c) => alert(c.process_tls_records(incoming), outgoing),
            };
            if !encoded {
                return;
            }
        }
    }
}

enum Step {
    Again,
    PeerClosed,
    Stop(Reached),
}

/// Handles one state of the library's; says how many bytes of the input it is done with.
fn step<D>(
    status: UnbufferedStatus<'_, '_, D>,
    outgoing: &mut Outgoing,
    sink: &mut Sink<'_>,
    goal: Goal<'_>,
) -> (usize, Result<Step, Error>) {
    let UnbufferedStatus { mut discard, state, .. } = status;
    let step = match state {
        Err(error) => Err(error),
        Ok(ConnectionState::ReadTraffic(traffic)) => read(traffic, &mut discard, sink),
        Ok(ConnectionState::EncodeTlsData(data)) => encode(data, outgoing).map(|()| Step::Again),
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // The bytes are in `outgoing`, from where they leave in order.
            data.done();
            Ok(Step::Again)
        }
        Ok(ConnectionState::WriteTraffic(traffic)) => {
            write(traffic, outgoing, goal).map(|()| Step::Stop(Reached::Goal))
        }
        Ok(ConnectionState::PeerClosed) => Ok(Step::PeerClosed),
        Ok(ConnectionState::Closed) => Ok(Step::Stop(Reached::Goal)),
        Ok(ConnectionState::BlockedHandshake) => Ok(Step::Stop(Reached::Blocked)),
        // Early data is off in every configuration of ours (S84).
        Ok(_) => Err(Error::General("a state that was not asked for".into())),
    };
    (discard, step)
}

fn read<D>(
    mut traffic: ReadTraffic<'_, '_, D>,
    discard: &mut usize,
    sink: &mut Sink<'_>,
) -> Result<Step, Error> {
    while let Some(record) = traffic.next_record() {
        let record = record?;
        *discard += record.discard;
        sink.put(record.payload);
    }
    Ok(if sink.is_full() { Step::Stop(Reached::Full) } else { Step::Again })
}

fn encode<D>(mut data: EncodeTlsData<'_, D>, outgoing: &mut Outgoing) -> Result<(), Error> {
    let required = match data.encode(outgoing.room(0)) {
        Ok(written) => {
            outgoing.wrote(written);
            return Ok(());
        }
        Err(EncodeError::InsufficientSize(error)) => error.required_size,
        Err(EncodeError::AlreadyEncoded) => return Ok(()),
    };
    match data.encode(outgoing.room(required)) {
        Ok(written) => outgoing.wrote(written),
        Err(error) => return Err(Error::General(error.to_string())),
    }
    Ok(())
}

fn write<D>(mut traffic: WriteTraffic<'_, D>, outgoing: &mut Outgoing, goal: Goal<'_>) -> Result<(), Error> {
    let mut attempt = |room: &mut [u8]| match goal {
        Goal::Receive => Ok(0),
        Goal::Send(data) => traffic.encrypt(data, room),
        Goal::Close => traffic.queue_close_notify(room),
    };
    let likely = match goal {
        Goal::Receive => return Ok(()),
        Goal::Send(data) => ciphertext_room(data.len()),
        Goal::Close => ciphertext_room(0),
    };
    let required = match attempt(outgoing.room(likely)) {
        Ok(written) => {
            outgoing.wrote(written);
            return Ok(());
        }
        // The library has messages of its own to put in front.
        Err(EncryptError::InsufficientSize(error)) => error.required_size,
        Err(EncryptError::EncryptExhausted) => return Err(Error::EncryptError),
    };
    match attempt(outgoing.room(required)) {
        Ok(written) => outgoing.wrote(written),
        Err(_) => return Err(Error::EncryptError),
    }
    Ok(())
}

fn alert<D>(status: UnbufferedStatus<'_, '_, D>, outgoing: &mut Outgoing) -> bool {
    match status.state {
        Ok(ConnectionState::EncodeTlsData(data)) => encode(data, outgoing).is_ok(),
        _ => false,
    }
}

impl<'a> Sink<'a> {
    /// Fills `buffer` first.
    pub(super) fn new(buffer: &'a mut BytesMut, overflow: &'a mut BytesMut) -> Self {
        Sink { buffer: Some(buffer), overflow, delivered: 0, decrypted: 0 }
    }

    /// Keeps everything for later.
    pub(super) fn keep(overflow: &'a mut BytesMut) -> Self {
        Sink { buffer: None, overflow, delivered: 0, decrypted: 0 }
    }

    fn put(&mut self, payload: &[u8]) {
        self.decrypted += payload.len();
        let spare = match &self.buffer {
            Some(buffer) if self.overflow.is_empty() => buffer.capacity() - buffer.len(),
            _ => 0,
        };
        let (now, later) = payload.split_at(spare.min(payload.len()));
        if let Some(buffer) = &mut self.buffer {
            buffer.extend_from_slice(now);
            self.delivered += now.len();
        }
        if !later.is_empty() {
            if self.overflow.capacity() == 0 {
                *self.overflow = crate::loan::take();
            }
            self.overflow.extend_from_slice(later);
        }
    }

    fn is_full(&self) -> bool {
        match &self.buffer {
            Some(buffer) => !self.overflow.is_empty() || buffer.capacity() == buffer.len(),
            None => false,
        }
    }
}
