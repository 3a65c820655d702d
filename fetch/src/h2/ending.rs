//! How exchanges and connections end, and what that says about making a request again.

use std::io;

use hyperman_http2::{Error as Fault, Reason, StreamError};

use crate::error::{ErrorKind, PartialBody};

/// Why an exchange failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// Whether the server may have acted on the request.
    pub(crate) processed: bool,
    /// Whether the server refused the stream.
    pub(crate) refused: Refused,
    /// Whether the connection was lost, without a word from the server about this request.
    pub(crate) lost: bool,
    /// Whether the server took its leave after it had served others: there is nothing wrong with this request, and each such
    /// connection has brought all who wait nearer to their end.
    pub(crate) in_turn: bool,
}

impl Failure {
    /// A failure of our own, before the request went out.
    pub(super) fn before(kind: ErrorKind) -> Self {
        Failure { kind, processed: false, refused: Refused::No, lost: false, in_turn: false }
    }

    /// A failure of our own, after it did.
    pub(super) fn after(kind: ErrorKind) -> Self {
        Failure { processed: true, ..Failure::before(kind) }
    }

    /// Whether the server takes the request over HTTP/1.1 only.
    pub(super) fn wants_http1(&self) -> bool {
        const REQUIRED: Reason = Reason::Http11Required;
        match &self.kind {
            ErrorKind::Http2Stream(error) => *error == StreamError::Reset(REQUIRED),
            ErrorKind::Http2(Fault::GoAway { reason, .. }) => *reason == REQUIRED,
            _ => false,
        }
    }
}

/// Whether a server refused a stream, and what that says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    No,
    /// There were more streams than its SETTINGS allow, which came after them: there will be room.
    Crowded,
    /// For a reason of its own.
    Yes,
}

/// Why a connection is over.
pub(super) enum Ended {
    /// Its machine says so.
    Fault(Fault),
    /// The transport failed.
    Transport(io::Error),
    /// Well.
    Closed,
}

impl Ended {
    pub(super) fn kind(&self, answered: bool) -> ErrorKind {
        match self {
            Ended::Fault(Fault::UnexpectedEof) | Ended::Closed if answered => {
                ErrorKind::PartialBody(PartialBody::Closed)
            }
            Ended::Fault(Fault::UnexpectedEof) | Ended::Closed => ErrorKind::EmptyReply,
            Ended::Fault(fault) => ErrorKind::Http2(fault.clone()),
            Ended::Transport(error) if answered => {
                ErrorKind::PartialBody(PartialBody::Transport(same(error)))
            }
            Ended::Transport(error) => ErrorKind::Receive(same(error)),
        }
    }

    /// Whether this is how a connection looks that the server had left before a request came.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            Ended::Fault(fault) => {
                matches!(fault, Fault::UnexpectedEof | Fault::Timeout(_) | Fault::GoAway { .. })
            }
            Ended::Transport(_) | Ended::Closed => true,
        }
    }
}

/// The same error for one more exchange.
pub(super) fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
