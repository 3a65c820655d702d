//! What is told when something fails, and the exit code: curl's, so that scripts can tell one thing from another.

use std::fmt;
use std::io;

use hyperman_fetch::error::{Error, ErrorKind, RedirectFault};
use hyperman_http1::Error as Fault;

/// A failure of one transfer.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    text: String,
    quiet: bool,
}

impl Failure {
    /// The command line asks for what cannot be done.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Failure { code: 2, text: text.into(), quiet: false }
    }

    /// A file to be sent cannot be read.
    pub(crate) fn reading(name: &str, error: &io::Error) -> Self {
        Failure { code: 26, text: format!("cannot read {name}: {error}"), quiet: false }
    }

    /// The body cannot be written. Nobody needs to hear that the reader of a pipe has gone.
    pub(crate) fn writing(name: &str, error: &io::Error) -> Self {
        let quiet = error.kind() == io::ErrorKind::BrokenPipe;
        Failure { code: 23, text: format!("cannot write to {name}: {error}"), quiet }
    }

    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Failure { code, text: text.into(), quiet: false }
    }

    /// The same with more to say.
    pub(crate) fn with(mut self, more: &str) -> Self {
        self.text.push_str(more);
        self
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { code: code(error.kind()), text: error.kind().to_string(), quiet: false }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}) {}", self.code, self.text)
    }
}

/// curl's exit code for the same thing (curl(1), EXIT CODES).
fn code(kind: &ErrorKind) -> u8 {
    match kind {
        ErrorKind::SchemeNotSupported(_) | ErrorKind::Redirect(RedirectFault::Downgrade) => 1,
        ErrorKind::Url(_) | ErrorKind::Redirect(RedirectFault::BadLocation) => 3,
        ErrorKind::Resolve { .. } | ErrorKind::ResolverBusy => 6,
        ErrorKind::Connect { .. } => 7,
        ErrorKind::Tls(error) if error.is_certificate() => 60,
        ErrorKind::Tls(_) => 35,
        ErrorKind::TlsConfig(_) => 58,
        ErrorKind::Protocol(fault) => match fault {
            Fault::UnsupportedVersion(_) => 1,
            Fault::FieldTooLong
            | Fault::HeadTooLong
            | Fault::TooManyFields
            | Fault::TooManyInterimAnswers
            | Fault::InvalidChunkSize
            | Fault::InvalidChunkEnd
            | Fault::InvalidChunkExtension
            | Fault::ChunkExtensionsTooLong
            | Fault::UnexpectedEofInHead => 56,
            _ => 8,
        },
        ErrorKind::PartialBody(_) => 18,
        ErrorKind::Status(_) => 22,
        ErrorKind::RequestBody(_) => 26,
        ErrorKind::ConnectTimeout | ErrorKind::Timeout => 28,
        ErrorKind::Request(_) | ErrorKind::Field(_) | ErrorKind::Encode(_) => 43,
        ErrorKind::TooManyRedirects(_) => 47,
        ErrorKind::EmptyReply | ErrorKind::StaleConnection => 52,
        ErrorKind::Send(_) => 55,
        ErrorKind::BodyTooLarge(_) => 63,
        ErrorKind::Http2(_) => 16,
        ErrorKind::Http2Stream(_) => 92,
        ErrorKind::Http2Request(_) => 43,
        ErrorKind::Redirect(RedirectFault::BodyNotReplayable) => 65,
        _ => 56,
    }
}
