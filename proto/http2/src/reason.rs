//! Error codes (RFC 9113 §7).

use std::fmt;

/// The code that a RST_STREAM or GOAWAY frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// NO_ERROR
    NoError,
    /// PROTOCOL_ERROR
    ProtocolError,
    /// INTERNAL_ERROR
    InternalError,
    /// FLOW_CONTROL_ERROR
    FlowControlError,
    /// SETTINGS_TIMEOUT
    SettingsTimeout,
    /// STREAM_CLOSED
    StreamClosed,
    /// FRAME_SIZE_ERROR
    FrameSizeError,
    /// REFUSED_STREAM
    RefusedStream,
    /// CANCEL
    Cancel,
    /// COMPRESSION_ERROR
    CompressionError,
    /// CONNECT_ERROR
    ConnectError,
    /// ENHANCE_YOUR_CALM
    EnhanceYourCalm,
    /// INADEQUATE_SECURITY
    InadequateSecurity,
    /// HTTP_1_1_REQUIRED
    Http11Required,
    /// A code that the standard does not name; it triggers no special behaviour.
    Other(u32),
}

/// Every named code, at the place of its number.
const NAMED: [(Reason, &str); 14] = [
    (Reason::NoError, "NO_ERROR"),
    (Reason::ProtocolError, "PROTOCOL_ERROR"),
    (Reason::InternalError, "INTERNAL_ERROR"),
    (Reason::FlowControlError, "FLOW_CONTROL_ERROR"),
    (Reason::SettingsTimeout, "SETTINGS_TIMEOUT"),
    (Reason::StreamClosed, "STREAM_CLOSED"),
    (Reason::FrameSizeError, "FRAME_SIZE_ERROR"),
    (Reason::RefusedStream, "REFUSED_STREAM"),
    (Reason::Cancel, "CANCEL"),
    (Reason::CompressionError, "COMPRESSION_ERROR"),
    (Reason::ConnectError, "CONNECT_ERROR"),
    (Reason::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
    (Reason::InadequateSecurity, "INADEQUATE_SECURITY"),
    (Reason::Http11Required, "HTTP_1_1_REQUIRED"),
];

impl From<u32> for Reason {
    fn from(code: u32) -> Self {
        let named = usize::try_from(code).ok().and_then(|place| NAMED.get(place));
        named.map_or(Reason::Other(code), |(reason, _)| *reason)
    }
}

impl From<Reason> for u32 {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Other(code) => code,
            named => {
                NAMED.iter().zip(0..).find(|((reason, _), _)| *reason == named).map_or(0, |(_, code)| code)
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Other(code) => write!(f, "code {code:#x}"),
            named => {
                f.write_str(NAMED.iter().find(|(reason, _)| reason == named).map_or("", |(_, name)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_of_the_standard() {
        for (code, reason) in [(0, Reason::NoError), (5, Reason::StreamClosed), (9, Reason::CompressionError)]
        {
            assert_eq!(Reason::from(code), reason);
            assert_eq!(u32::from(reason), code);
        }
        assert_eq!(u32::from(Reason::Http11Required), 0xd);
        assert_eq!(Reason::from(0xe), Reason::Other(0xe));
        assert_eq!(Reason::Cancel.to_string(), "CANCEL");
    }
}
