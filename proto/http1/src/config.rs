//! Limits and timers. Every one has a default; none can be left without one.

use std::time::Duration;

/// What a peer may make us hold or do. Counted across reads of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the first line: 8 KiB, what RFC 9112 §3 asks everyone to accept. Answered with 414.
    pub request_line: usize,
    /// Bytes of one field line: 16 KiB, room for a large token or cookie. Answered with 431.
    pub field: usize,
    /// Bytes of a whole head, or of a trailer section: 64 KiB. Answered with 431.
    pub head: usize,
    /// Number of fields in a head or a trailer section: 100; browsers send about 20. Answered with 431.
    pub fields: usize,
    /// Bytes of chunk extensions in one body: 16 KiB; nobody uses them. Answered with 400.
    pub chunk_extensions: usize,
    /// Interim (1xx) answers to one request: 32 (client).
    pub interim: u32,
    /// Bytes of a body: 16 MiB for a server's requests, answered with 413; without limit for a client's answers, whose
    /// caller reads them piece by piece. `u64::MAX` is no limit.
    pub body: u64,
    /// Bytes of an unread request body that are read and thrown away to keep the connection: 64 KiB, about what a new
    /// connection would cost.
    pub drain: u64,
    /// Bytes that are read and thrown away while a closed connection lingers: 16 MiB, the largest body by default, so
    /// that a client that reads only after it has sent gets its answer.
    pub linger: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line: 8 << 10,
            field: 16 << 10,
            head: 64 << 10,
            fields: 100,
            chunk_extensions: 16 << 10,
            interim: 32,
            body: 16 << 20,
            drain: 64 << 10,
            linger: 16 << 20,
        }
    }
}

/// How long a server's peer may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a head to its end: 30 s. Answered with 408.
    pub head: Duration,
    /// Between two exchanges, and before the first byte: 60 s. Closed without a word.
    pub idle: Duration,
    /// Bytes per second that a request body must reach while the application waits for it: 500. 0 is taken for 1.
    pub body_rate: u64,
    /// How far a body may fall behind `body_rate`, at any point: 10 s.
    pub body_grace: Duration,
    /// Without any progress of a write: 60 s.
    pub write_stall: Duration,
    /// Without a byte from the peer while what it sends after the last answer is read and thrown away: 2 s.
    pub linger: Duration,
    /// The same in all, however busily it sends: 30 s, in which the largest body by default comes at 5 Mbit/s.
    pub linger_most: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            body_rate: 500,
            body_grace: Duration::from_secs(10),
            write_stall: Duration::from_secs(60),
            linger: Duration::from_secs(2),
            linger_most: Duration::from_secs(30),
        }
    }
}

/// What a [`Server`](crate::Server) allows; shared by all connections of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// Sizes and counts.
    pub limits: Limits,
    /// Times.
    pub timeouts: Timeouts,
}

/// What a [`Client`](crate::Client) allows; shared by all connections of a pool. The client's only timer is the driver's
/// deadline for the whole exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Sizes and counts.
    pub limits: Limits,
    /// Whether folded field lines in an answer are read as one line with blanks in place of the line ends (RFC 9112 §5.2
    /// allows both). Off: they are refused.
    pub unfold: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig { limits: Limits { body: u64::MAX, ..Limits::default() }, unfold: false }
    }
}
