//! Why a request gets no file: each reason has its status and its sentence, in one table.

use std::fmt;
use std::io;
use std::sync::Arc;

use http::StatusCode;

use crate::path::PathError;
use crate::root::OpenError;

/// Why a request gets no file.
#[derive(Debug)]
pub enum Refusal {
    /// The target is no path.
    Path(PathError),
    /// The path leads to nothing that can be sent.
    Open(OpenError),
    /// A directory without an index file, while directories are not listed.
    NoIndex,
    /// A method of the standards, but files can only be read here.
    Method,
    /// A method that nobody has heard of.
    UnknownMethod,
    /// A precondition of the request does not hold.
    Precondition,
    /// No form of the file is acceptable (RFC 9110 §12.5.3).
    NotAcceptable,
    /// No byte of the file is in the ranges asked for; its length.
    Range(u64),
}

impl Refusal {
    /// The status to answer with, and a sentence for whoever reads the answer. It tells nothing about what is outside
    /// of the folder.
    pub fn describe(&self) -> (StatusCode, &'static str) {
        use StatusCode as Code;
        match self {
            Refusal::Path(PathError::NotAbsolute) => (Code::BAD_REQUEST, "The path must begin with a slash."),
            Refusal::Path(PathError::BadEscape) => {
                (Code::BAD_REQUEST, "A percent sign in the path is not followed by two hexadecimal digits.")
            }
            Refusal::Path(PathError::Nul) => (Code::BAD_REQUEST, "The path holds a NUL byte."),
            Refusal::Path(PathError::DotSegment) => {
                (Code::BAD_REQUEST, "The path holds a dot segment, which the client has to resolve.")
            }
            Refusal::Path(PathError::EncodedSlash) | Refusal::Open(OpenError::NotFound) => {
                (Code::NOT_FOUND, "There is nothing at this address.")
            }
            Refusal::Open(OpenError::Outside) => {
                (Code::FORBIDDEN, "This is a link to something outside of the served folder.")
            }
            Refusal::Open(OpenError::Denied) => (Code::FORBIDDEN, "The server may not read this file."),
            Refusal::Open(OpenError::Special) => (Code::FORBIDDEN, "This is not a regular file."),
            Refusal::Open(OpenError::Busy(_)) => {
                (Code::SERVICE_UNAVAILABLE, "The server is short of resources for the moment.")
            }
            Refusal::Open(OpenError::Failed(_)) => {
                (Code::INTERNAL_SERVER_ERROR, "The server could not read this file.")
            }
            Refusal::NoIndex => (Code::NOT_FOUND, "This folder has no index page."),
            Refusal::Method => (Code::METHOD_NOT_ALLOWED, "Files can only be read here, by GET and HEAD."),
            Refusal::UnknownMethod => (Code::NOT_IMPLEMENTED, "This server does not know the method."),
            Refusal::Precondition => {
                (Code::PRECONDITION_FAILED, "The file is not in the state that the request demands.")
            }
            Refusal::NotAcceptable => {
                (Code::NOT_ACCEPTABLE, "There is no form of this file with a content coding that you accept.")
            }
            Refusal::Range(_) => {
                (Code::RANGE_NOT_SATISFIABLE, "The file ends before the range that you ask for.")
            }
        }
    }

    /// What the owner of the server should hear about; nothing for what only concerns the client.
    pub fn trouble(self) -> Option<Trouble> {
        match self {
            Refusal::Open(OpenError::Busy(error) | OpenError::Failed(error)) => {
                Some(Trouble(Arc::new(error)))
            }
            _ => None,
        }
    }
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Refusal::Path(error)
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        Refusal::Open(error)
    }
}

/// An extension of an answer: what failed inside of the server, for its log.
#[derive(Clone, Debug)]
pub struct Trouble(pub Arc<io::Error>);

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
