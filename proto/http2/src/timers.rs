//! The timers of a connection. The machine reads no clock: deadlines are computed from instants that the driver gave.

use std::fmt;

use crate::reason::Reason;

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// A preface, frame or header block that does not end (S31).
    Head,
    /// No stream for the idle time.
    Idle,
    /// Our SETTINGS were not acknowledged (RFC 9113 §6.5.3).
    Settings,
    /// A stream could not get rid of what it has to send (S24).
    WriteStall,
    /// The transport took nothing of what was to be written.
    Blocked,
    /// A request body came too slowly.
    BodyRate,
    /// Silence: time to ask by PING whether the peer lives.
    Ping,
    /// A PING was not answered.
    Pong,
    /// The second GOAWAY of a graceful end is due (RFC 9113 §6.8).
    Drain,
}

impl Timeout {
    /// What the peer is told when it ends the connection.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Timeout::Settings => Reason::SettingsTimeout,
            Timeout::Head => Reason::EnhanceYourCalm,
            _ => Reason::NoError,
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Timeout::Head => "a frame or header block did not end",
            Timeout::Idle => "the connection was idle",
            Timeout::Settings => "the settings were not acknowledged",
            Timeout::WriteStall => "the peer did not take what was to be sent",
            Timeout::Blocked => "the peer did not read",
            Timeout::BodyRate => "the body came too slowly",
            Timeout::Ping => "nothing was heard from the peer",
            Timeout::Pong => "the peer did not answer a ping",
            Timeout::Drain => "the graceful end was due",
        })
    }
}
