//! Requests that are refused before the service hears of them, told to whoever wants to know.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use hyperman_transport::PeerAddr;

/// A request of HTTP/1 that never reached the service: it is malformed, too large, too slow or misdirected.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// Who sent it.
    pub peer: &'a PeerAddr,
    /// What was answered; `None` where the connection was closed without an answer.
    pub status: Option<StatusCode>,
    /// What is wrong. The peer's own words are escaped in it.
    pub reason: &'a dyn fmt::Display,
    /// The first line as far as it came, up to 1 KiB, without its end. These are bytes of the peer that nobody has
    /// looked at: escape them.
    pub first_line: &'a [u8],
    /// Bytes of the answer's content.
    pub sent: u64,
    /// From the first byte of the request to its refusal.
    pub after: Duration,
}

impl fmt::Debug for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("peer", self.peer)
            .field("status", &self.status)
            .field("reason", &format_args!("{}", self.reason))
            .field("first_line", &format_args!("\"{}\"", self.first_line.escape_ascii()))
            .finish_non_exhaustive()
    }
}

/// Is told of each [`Refusal`]; see [`Config::on_refusal`](crate::Config::on_refusal).
#[derive(Clone)]
pub struct OnRefusal(Arc<dyn Fn(&Refusal<'_>) + Send + Sync>);

impl OnRefusal {
    /// Calls `told` with each refusal, on the connection's thread. It must not block.
    pub fn new(told: impl Fn(&Refusal<'_>) + Send + Sync + 'static) -> Self {
        OnRefusal(Arc::new(told))
    }

    pub(crate) fn tell(&self, refusal: &Refusal<'_>) {
        (self.0)(refusal);
    }
}

impl fmt::Debug for OnRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRefusal")
    }
}
