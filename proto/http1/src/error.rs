//! What can go wrong: the peer's faults ([`Error`]), our own misuse ([`Misuse`]), and why a connection is over
//! ([`CloseReason`]). Bytes of the peer are escaped and cut short wherever they are shown.

use std::fmt;

use http::StatusCode;

/// How many of the peer's bytes an error keeps for its message: enough to recognise, too few to flood a log.
const EXCERPT: usize = 64;

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timeout {
    /// From the first byte of a head to its end.
    Head,
    /// Between two exchanges.
    Idle,
    /// The request body arrives slower than the configured rate.
    BodyRate,
    /// Bytes wait to be written and none could be.
    WriteStall,
    /// The connection is over; what still arrives is thrown away for this long, so that the last answer is not lost to
    /// a reset (RFC 9112 §9.6).
    Linger,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Timeout::Head => "head",
            Timeout::Idle => "idle",
            Timeout::BodyRate => "body rate",
            Timeout::WriteStall => "write stall",
            Timeout::Linger => "linger",
        })
    }
}

/// The beginning of what the peer sent where it went wrong. Shown with escapes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Excerpt(Box<[u8]>);

impl Excerpt {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Excerpt(bytes.iter().copied().take(EXCERPT).collect())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A fault of the peer. It seals the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// Not `method SP target SP version` (RFC 9112 §3).
    InvalidRequestLine(Excerpt),
    /// Three words, and neither a target nor a version among them: whoever sent this speaks another protocol.
    NotHttp(Excerpt),
    /// The method is no token.
    InvalidMethod(Excerpt),
    /// The target has none of the four forms, or not the one that its method needs (RFC 9112 §3.2).
    InvalidTarget(Excerpt),
    /// Not `HTTP/digit.digit` (RFC 9112 §2.3).
    InvalidVersion(Excerpt),
    /// A well-formed version whose major number is not 1.
    UnsupportedVersion(Excerpt),
    /// Not `version SP three digits SP reason` (RFC 9112 §4).
    InvalidStatusLine(Excerpt),
    /// A line ends with LF alone, or holds a CR that ends nothing (RFC 9112 §2.2).
    InvalidLineEnd,
    /// A field line without a colon, or whose name is no token; white space before the colon is such a name (RFC 9112
    /// §5.1).
    InvalidFieldName(Excerpt),
    /// A control character in the value of the named field.
    InvalidFieldValue(Excerpt),
    /// A field line that is folded, or a first one that begins with white space (RFC 9112 §5.2).
    ObsoleteFold,
    /// An HTTP/1.1 request without Host (RFC 9112 §3.2).
    MissingHost,
    /// More than one Host.
    SeveralHosts,
    /// Host is not `host [":" port]`.
    InvalidHost,
    /// Content-Length is not a decimal number, or too large a one (RFC 9110 §8.6).
    InvalidContentLength(Excerpt),
    /// Content-Length lines that differ.
    ConflictingContentLength,
    /// Transfer-Encoding is not a list of codings of which exactly the last is `chunked` (RFC 9112 §6.1).
    InvalidTransferEncoding,
    /// A transfer coding that we do not know, before `chunked`.
    UnsupportedTransferCoding,
    /// Transfer-Encoding together with Content-Length (RFC 9112 §6.3).
    TransferEncodingWithContentLength,
    /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 §6.1).
    TransferEncodingOnHttp10,
    /// A CONNECT request announces a body (RFC 9110 §9.3.6).
    BodyOnConnect,
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    UnsupportedExpectation,
    /// [`Limits::request_line`](crate::Limits::request_line) was passed.
    FirstLineTooLong,
    /// [`Limits::field`](crate::Limits::field) was passed.
    FieldTooLong,
    /// [`Limits::head`](crate::Limits::head) was passed.
    HeadTooLong,
    /// [`Limits::fields`](crate::Limits::fields) was passed.
    TooManyFields,
    /// [`Limits::body`](crate::Limits::body) was or would be passed.
    BodyTooLarge,
    /// A chunk does not begin with 1 to 16 hexadecimal digits (RFC 9112 §7.1).
    InvalidChunkSize,
    /// What follows a chunk's size is no chunk extension (RFC 9112 §7.1.1).
    InvalidChunkExtension,
    /// [`Limits::chunk_extensions`](crate::Limits::chunk_extensions) was passed.
    ChunkExtensionsTooLong,
    /// The data of a chunk is not followed by CRLF.
    InvalidChunkEnd,
    /// More interim answers than [`Limits::interim`](crate::Limits::interim).
    TooManyInterimAnswers,
    /// 101 that nobody asked for.
    UnrequestedUpgrade,
    /// Bytes on a connection that owes no answer.
    Unsolicited,
    /// An answer began before the head of its request had been written.
    AnswerBeforeRequest,
    /// The connection ended before any byte of the answer.
    ClosedBeforeAnswer,
    /// The connection ended inside a head.
    UnexpectedEofInHead,
    /// The connection ended before the body did.
    UnexpectedEofInBody,
    /// A deadline has passed.
    Timeout(Timeout),
}

impl Error {
    /// What a server answers with; `None` where there is nobody or nothing to answer.
    pub fn status(&self) -> Option<StatusCode> {
        Some(match self {
            Error::FirstLineTooLong => StatusCode::URI_TOO_LONG,
            Error::FieldTooLong | Error::HeadTooLong | Error::TooManyFields => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Error::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Error::UnsupportedVersion(_) => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Error::UnsupportedTransferCoding => StatusCode::NOT_IMPLEMENTED,
            Error::UnsupportedExpectation => StatusCode::EXPECTATION_FAILED,
            Error::Timeout(Timeout::Head | Timeout::BodyRate) => StatusCode::REQUEST_TIMEOUT,
            Error::Timeout(Timeout::Idle | Timeout::WriteStall | Timeout::Linger)
            | Error::TooManyInterimAnswers
            | Error::UnrequestedUpgrade
            | Error::Unsolicited
            | Error::AnswerBeforeRequest
            | Error::ClosedBeforeAnswer
            | Error::InvalidStatusLine(_) => return None,
            _ => StatusCode::BAD_REQUEST,
        })
    }

    /// For a client: whether the server may have acted on the request. `false` only where it cannot have seen a whole
    /// one; then the request may be sent again whatever its method (RFC 9110 §9.2.2).
    pub fn request_may_have_been_processed(&self) -> bool {
        !matches!(self, Error::Unsolicited | Error::AnswerBeforeRequest)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Error::InvalidRequestLine(line) => return write!(f, "invalid request line {line}"),
            Error::NotHttp(line) => return write!(f, "no request line at all: {line}"),
            Error::InvalidMethod(method) => return write!(f, "invalid method {method}"),
            Error::InvalidTarget(target) => return write!(f, "invalid request target {target}"),
            Error::InvalidVersion(version) => return write!(f, "invalid protocol version {version}"),
            Error::UnsupportedVersion(version) => {
                return write!(f, "unsupported protocol version {version}");
            }
            Error::InvalidStatusLine(line) => return write!(f, "invalid status line {line}"),
            Error::InvalidFieldName(line) => return write!(f, "invalid field line {line}"),
            Error::InvalidFieldValue(name) => return write!(f, "invalid value of field {name}"),
            Error::InvalidContentLength(value) => return write!(f, "invalid Content-Length {value}"),
            Error::Timeout(timeout) => return write!(f, "{timeout} timeout"),
            Error::InvalidLineEnd => "line not ended by CRLF",
            Error::ObsoleteFold => "folded field line",
            Error::MissingHost => "missing Host",
            Error::SeveralHosts => "more than one Host",
            Error::InvalidHost => "invalid Host",
            Error::ConflictingContentLength => "conflicting Content-Length",
            Error::InvalidTransferEncoding => "invalid Transfer-Encoding",
            Error::UnsupportedTransferCoding => "unsupported transfer coding",
            Error::TransferEncodingWithContentLength => "Transfer-Encoding together with Content-Length",
            Error::TransferEncodingOnHttp10 => "Transfer-Encoding in an HTTP/1.0 message",
            Error::BodyOnConnect => "CONNECT with a body",
            Error::UnsupportedExpectation => "unsupported expectation",
            Error::FirstLineTooLong => "first line too long",
            Error::FieldTooLong => "field line too long",
            Error::HeadTooLong => "head too long",
            Error::TooManyFields => "too many fields",
            Error::BodyTooLarge => "body too large",
            Error::InvalidChunkSize => "invalid chunk size",
            Error::InvalidChunkExtension => "invalid chunk extension",
            Error::ChunkExtensionsTooLong => "chunk extensions too long",
            Error::InvalidChunkEnd => "chunk data not followed by CRLF",
            Error::TooManyInterimAnswers => "too many interim answers",
            Error::UnrequestedUpgrade => "upgrade that was not asked for",
            Error::Unsolicited => "bytes on a connection that owes no answer",
            Error::AnswerBeforeRequest => "answer before its request was written",
            Error::ClosedBeforeAnswer => "connection closed before an answer",
            Error::UnexpectedEofInHead => "connection closed inside a head",
            Error::UnexpectedEofInBody => "connection closed inside a body",
        };
        f.write_str(text)
    }
}

impl std::error::Error for Error {}

/// A call that the local side must not make. The machine is as it was before the call, except where the variant says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Misuse {
    /// There is no message of ours that this belongs to: no request to answer, or no head sent.
    NoMessage,
    /// The head of this message was sent already, or the previous exchange is not over.
    HeadAlreadySent,
    /// This status is no interim one, or an interim one where a final one is due.
    WrongStatus,
    /// A 101, or a 2xx to CONNECT, that the request did not ask for, or that comes before the request's end.
    UpgradeNotPossible,
    /// A control character, or a blank, where none may be (S13).
    InvalidByte,
    /// Host is missing, doubled or malformed, or the target is (client).
    InvalidTarget,
    /// The field with this meaning contradicts the size of the body, or is not the caller's to write.
    ConflictingFraming,
    /// A trailer that must not be sent as one (RFC 9110 §6.5.1).
    ForbiddenTrailer,
    /// More body than was announced. The surplus was not queued.
    BodyTooLong,
    /// Less body than was announced. The message cannot be finished: the connection is closed.
    BodyTooShort,
    /// The version has no place in HTTP/1.
    UnsupportedVersion,
    /// The connection is over.
    Closed,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::NoMessage => "no message to send this for",
            Misuse::HeadAlreadySent => "the head has been sent already",
            Misuse::WrongStatus => "status not allowed here",
            Misuse::UpgradeNotPossible => "the request does not allow to switch protocols now",
            Misuse::InvalidByte => "control character or blank in a head",
            Misuse::InvalidTarget => "invalid request target or Host",
            Misuse::ConflictingFraming => "field contradicts the framing of the body",
            Misuse::ForbiddenTrailer => "field not allowed as a trailer",
            Misuse::BodyTooLong => "more body than announced",
            Misuse::BodyTooShort => "less body than announced",
            Misuse::UnsupportedVersion => "version other than HTTP/1.0 and HTTP/1.1",
            Misuse::Closed => "the connection is over",
        })
    }
}

impl std::error::Error for Misuse {}

/// Why nothing more is read as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer ended its direction between two exchanges, or did so and has got its answer.
    PeerClosed,
    /// One side asked for it, or spoke HTTP/1.0, or the body ends with the connection.
    KeepAliveOff,
    /// The peer broke the protocol or passed a limit.
    Fault,
    /// A timer ran out.
    Timeout,
    /// [`drain`](crate::Server::drain) was called.
    Drained,
    /// A message of ours was given up half way.
    Aborted,
    /// More of the request's body is left than is worth reading.
    UnreadBody,
    /// The connection speaks another protocol from here.
    Upgraded,
}
