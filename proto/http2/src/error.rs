//! What can go wrong: on the connection, on one stream, and on our own side.

use std::fmt;

use crate::frame::StreamId;
use crate::hpack::CompressionError;
use crate::reason::Reason;
use crate::timers::Timeout;

/// Why a connection cannot go on. It seals the machine: every later call of `next_event` repeats it. What
/// `poll_transmit` still gives, a GOAWAY as a rule, is worth sending.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The peer broke a rule that concerns the whole connection. It was told the reason.
    Violation(Violation),
    /// A header block could not be decoded. The peer was told COMPRESSION_ERROR.
    Compression(CompressionError),
    /// A budget is spent. The peer was told ENHANCE_YOUR_CALM.
    Spent(Spent),
    /// The peer took too long.
    Timeout(Timeout),
    /// The peer ended the connection with an error of its own.
    GoAway {
        /// The code that it gave.
        reason: Reason,
        /// The last stream that it may have processed.
        last: StreamId,
    },
    /// The transport ended while streams were open or within a frame.
    UnexpectedEof,
}

impl Error {
    /// The code that the peer was told, or that it told us.
    pub fn reason(&self) -> Reason {
        match self {
            Error::Violation(violation) => violation.reason(),
            Error::Compression(_) => Reason::CompressionError,
            Error::Spent(_) => Reason::EnhanceYourCalm,
            Error::Timeout(timeout) => timeout.reason(),
            Error::GoAway { reason, .. } => *reason,
            Error::UnexpectedEof => Reason::NoError,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Violation(violation) => write!(f, "{}: {violation}", violation.reason()),
            Error::Compression(error) => write!(f, "{}: {error}", self.reason()),
            Error::Spent(spent) => write!(f, "{}: too many {spent}", self.reason()),
            Error::Timeout(timeout) => write!(f, "timed out: {timeout}"),
            Error::GoAway { reason, last } => {
                write!(f, "the peer ended the connection after stream {last}: {reason}")
            }
            Error::UnexpectedEof => f.write_str("the connection ended unexpectedly"),
        }
    }
}

impl std::error::Error for Error {}

/// Rules of the standard whose breach ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// The first bytes are no connection preface (RFC 9113 §3.4).
    BadPreface,
    /// The first frame is not SETTINGS (RFC 9113 §3.4).
    NoSettingsFirst,
    /// A frame larger than we allow (RFC 9113 §4.2).
    FrameTooLarge,
    /// A frame of a length that its type cannot have.
    FrameLength,
    /// Padding as long as its frame (RFC 9113 §6.1).
    Padding,
    /// A frame for the connection that names a stream, or the reverse.
    WrongStream,
    /// A frame on a stream that was never opened (RFC 9113 §5.1).
    IdleStream,
    /// A frame on a stream that its sender had ended (RFC 9113 §5.1).
    ClosedStream,
    /// A stream id that the peer may not open, or not any more (RFC 9113 §5.1.1).
    BadStreamId,
    /// A CONTINUATION frame that continues nothing (RFC 9113 §6.10).
    UnexpectedContinuation,
    /// Another frame before the end of a header block (RFC 9113 §6.2).
    InterruptedHeaderBlock,
    /// A PUSH_PROMISE frame, though we never allow one (RFC 9113 §8.4).
    UnexpectedPush,
    /// A setting with a value outside of its range (RFC 9113 §6.5.2).
    BadSetting,
    /// An initial window size above 2^31-1 (RFC 9113 §6.5.2).
    BadInitialWindow,
    /// A WINDOW_UPDATE of zero (RFC 9113 §6.9).
    ZeroIncrement,
    /// A window above 2^31-1 (RFC 9113 §6.9.1).
    WindowOverflow,
    /// More DATA than the connection's window allows (RFC 9113 §6.9).
    WindowExceeded,
    /// A GOAWAY whose last stream is above that of an earlier one (RFC 9113 §6.8).
    GoAwayIncreased,
    /// A PRIORITY_UPDATE that names no request (RFC 9218 §7.1).
    BadPriorityUpdate,
    /// A bad PRIORITY frame on a stream that was never opened, so that there is none to reset: of a wrong length, or
    /// naming its own stream (RFC 9113 §6.3).
    PriorityLength,
    /// See [`Violation::PriorityLength`].
    SelfDependency,
}

impl Violation {
    pub(crate) fn reason(self) -> Reason {
        match self {
            Violation::FrameTooLarge | Violation::FrameLength | Violation::PriorityLength => {
                Reason::FrameSizeError
            }
            Violation::ClosedStream => Reason::StreamClosed,
            Violation::BadInitialWindow | Violation::WindowOverflow | Violation::WindowExceeded => {
                Reason::FlowControlError
            }
            _ => Reason::ProtocolError,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::BadPreface => "no HTTP/2 connection preface",
            Violation::NoSettingsFirst => "the first frame is not SETTINGS",
            Violation::FrameTooLarge => "a frame is larger than allowed",
            Violation::FrameLength => "a frame has a length that its type cannot have",
            Violation::Padding => "the padding is as long as its frame",
            Violation::WrongStream => "a frame names a stream and must not, or does not and must",
            Violation::IdleStream => "a frame on a stream that was never opened",
            Violation::ClosedStream => "a frame on a stream that is closed",
            Violation::BadStreamId => "an unexpected stream id",
            Violation::UnexpectedContinuation => "a CONTINUATION frame that continues nothing",
            Violation::InterruptedHeaderBlock => "a header block is interrupted by another frame",
            Violation::UnexpectedPush => "an unexpected PUSH_PROMISE frame",
            Violation::BadSetting => "a setting is out of its range",
            Violation::BadInitialWindow => "the initial window size is out of its range",
            Violation::ZeroIncrement => "a window update of zero",
            Violation::WindowOverflow => "a window grew above its largest size",
            Violation::WindowExceeded => "more data than the connection's window allows",
            Violation::GoAwayIncreased => "a GOAWAY frame took back an earlier one",
            Violation::BadPriorityUpdate => "a PRIORITY_UPDATE frame that names no request",
            Violation::PriorityLength => "a PRIORITY frame of a wrong length",
            Violation::SelfDependency => "a stream that depends on itself",
        })
    }
}

/// Budgets that can be spent; see [`crate::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spent {
    /// `control_frames`
    ControlFrames,
    /// `resets`
    Resets,
    /// `small_data`
    SmallData,
    /// `continuations`
    Continuations,
    /// `settings_entries`
    SettingsEntries,
    /// `header_list`, [`crate::ABUSE`] times over
    HeaderList,
    /// `fields`, [`crate::ABUSE`] times over
    Fields,
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spent::ControlFrames => "control frames",
            Spent::Resets => "streams that end by a reset",
            Spent::SmallData => "small DATA frames",
            Spent::Continuations => "CONTINUATION frames",
            Spent::SettingsEntries => "settings in a frame",
            Spent::HeaderList => "octets in a header block",
            Spent::Fields => "fields in a header block",
        })
    }
}

/// Why a single stream ended early. The connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer reset the stream.
    Reset(Reason),
    /// The peer never processed the stream, says its GOAWAY or its REFUSED_STREAM: any request may be sent again.
    Refused,
    /// The message broke a rule; the peer was told PROTOCOL_ERROR.
    Malformed(Malformed),
    /// A frame came where the stream was no longer open for it; the peer was told STREAM_CLOSED.
    Closed,
    /// The peer sent more than the stream's window allows, or let our window overflow; it was told FLOW_CONTROL_ERROR.
    FlowControl,
    /// A field section above our limits; the peer was told ENHANCE_YOUR_CALM.
    FieldsTooLarge,
    /// More 1xx responses than allowed; the peer was told ENHANCE_YOUR_CALM.
    TooManyInterim,
    /// The request body is larger than allowed; it was answered with 413, or where an answer had begun, with CANCEL.
    BodyTooLarge,
    /// A timer of the stream ran out; the peer was told CANCEL.
    Timeout(Timeout),
}

impl StreamError {
    /// Whether the peer may have acted on the request. When not, any request can be sent again.
    pub fn request_may_have_been_processed(&self) -> bool {
        !matches!(self, StreamError::Refused)
    }

    /// The code that the peer gave, or that it was told.
    pub fn reason(&self) -> Reason {
        match self {
            StreamError::Reset(reason) => *reason,
            StreamError::Refused => Reason::RefusedStream,
            StreamError::Malformed(_) => Reason::ProtocolError,
            StreamError::Closed => Reason::StreamClosed,
            StreamError::FlowControl => Reason::FlowControlError,
            StreamError::FieldsTooLarge | StreamError::TooManyInterim => Reason::EnhanceYourCalm,
            StreamError::BodyTooLarge | StreamError::Timeout(_) => Reason::Cancel,
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Reset(reason) => write!(f, "the peer reset the stream: {reason}"),
            StreamError::Refused => f.write_str("the peer did not process the request"),
            StreamError::Malformed(malformed) => write!(f, "malformed message: {malformed}"),
            StreamError::Closed => f.write_str("a frame on a stream that its sender had ended"),
            StreamError::FlowControl => f.write_str("the stream's window was exceeded or grew too large"),
            StreamError::FieldsTooLarge => f.write_str("too many fields or too large ones"),
            StreamError::TooManyInterim => f.write_str("too many interim responses"),
            StreamError::BodyTooLarge => f.write_str("the body is larger than allowed"),
            StreamError::Timeout(timeout) => write!(f, "timed out: {timeout}"),
        }
    }
}

impl std::error::Error for StreamError {}

/// What makes a message malformed (RFC 9113 §8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// A name or value with forbidden bytes, or an unknown pseudo-field (RFC 9113 §8.2.1, §8.3).
    Field,
    /// A pseudo-field behind an ordinary one, twice, in trailers, or of the other kind of message (RFC 9113 §8.3).
    PseudoField,
    /// A required pseudo-field is missing (RFC 9113 §8.3.1, §8.3.2).
    MissingPseudoField,
    /// A pseudo-field with a value that it cannot have, or beside a method that forbids it (RFC 9113 §8.3.1, §8.5).
    BadPseudoField,
    /// A field that concerns a connection (RFC 9113 §8.2.2).
    ConnectionField,
    /// A Host field that differs from `:authority` (RFC 9113 §8.3.1).
    HostMismatch,
    /// A Content-Length that is no number, or two that differ (RFC 9110 §8.6).
    BadContentLength,
    /// DATA frames that sum up to something else than Content-Length (RFC 9113 §8.1.1).
    ContentLengthMismatch,
    /// Trailers without END_STREAM (RFC 9113 §8.1).
    TrailersNotLast,
    /// HEADERS behind the head of a CONNECT (RFC 9113 §8.5).
    HeadersInTunnel,
    /// DATA before the head of the response, or in a response that has no content.
    UnexpectedData,
    /// An interim response that ends the stream, or a 101 (RFC 9113 §8.1, §8.6).
    BadInterim,
    /// A stream that depends on itself (RFC 7540 §5.3.1).
    SelfDependency,
    /// A PRIORITY frame that is not five octets long: told as FRAME_SIZE_ERROR (RFC 9113 §6.3).
    PriorityLength,
    /// A WINDOW_UPDATE of zero (RFC 9113 §6.9).
    ZeroIncrement,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Field => "a field with forbidden bytes",
            Malformed::PseudoField => "a misplaced pseudo-field",
            Malformed::MissingPseudoField => "a pseudo-field is missing",
            Malformed::BadPseudoField => "a pseudo-field with a bad value",
            Malformed::ConnectionField => "a field that concerns a connection",
            Malformed::HostMismatch => "Host differs from :authority",
            Malformed::BadContentLength => "a bad Content-Length",
            Malformed::ContentLengthMismatch => "the content is not as long as Content-Length says",
            Malformed::TrailersNotLast => "trailers that do not end the message",
            Malformed::HeadersInTunnel => "header fields inside of a tunnel",
            Malformed::UnexpectedData => "data where none belongs",
            Malformed::BadInterim => "a bad interim response",
            Malformed::SelfDependency => "a stream that depends on itself",
            Malformed::PriorityLength => "a PRIORITY frame of a wrong length",
            Malformed::ZeroIncrement => "a window update of zero",
        })
    }
}

/// What our own side did wrong. The machine is as it was before the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misuse {
    /// No such stream: it was never opened, is closed, or `finished` was called.
    UnknownStream,
    /// The connection is over.
    Closed,
    /// A second final head on a stream.
    HeadAlreadySent,
    /// Body bytes or trailers before the head.
    HeadNotSent,
    /// Something behind the end of the message.
    AfterEnd,
    /// A status that cannot be sent this way.
    BadStatus,
    /// A target, method or authority that cannot be sent.
    BadTarget,
    /// A field that contradicts the message: Content-Length, or TE with something else than `trailers`.
    BadField,
    /// More body bytes than the head announced.
    BodyTooLong,
    /// Fewer body bytes than the head announced.
    BodyTooShort,
    /// The peer allows no further stream now; try again after a stream has ended.
    TooManyStreams,
    /// The connection is going away or has used up its stream ids: open another one.
    GoingAway,
    /// The peer does not take an extended CONNECT (RFC 8441 §3).
    NoConnectProtocol,
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Misuse::UnknownStream => "no such stream",
            Misuse::Closed => "the connection is over",
            Misuse::HeadAlreadySent => "the head was already sent",
            Misuse::HeadNotSent => "the head was not yet sent",
            Misuse::AfterEnd => "the message was already ended",
            Misuse::BadStatus => "a status that cannot be sent this way",
            Misuse::BadTarget => "a target or method that cannot be sent",
            Misuse::BadField => "a field that contradicts the message",
            Misuse::BodyTooLong => "more body than announced",
            Misuse::BodyTooShort => "less body than announced",
            Misuse::TooManyStreams => "the peer allows no further stream",
            Misuse::GoingAway => "the connection takes no further streams",
            Misuse::NoConnectProtocol => "the peer takes no extended CONNECT",
        })
    }
}

impl std::error::Error for Misuse {}

/// Why a machine is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer closed the transport and nothing was open.
    PeerClosed,
    /// An [`Error`].
    Fault,
    /// Nothing happened for the idle time.
    Idle,
    /// A graceful end, ours or the peer's, has run its course.
    Drained,
    /// The driver called `close`.
    Closed,
}
