//! Limits, timeouts and settings, each with its default, unit and reason.

use std::time::Duration;

/// What a peer may make this side hold or do. A test of the crate attacks each (S20 to S31).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Streams that the peer may have open at once. One counts until it is closed *and* the driver has said that its
    /// handler is gone, so a reset alone makes no room. RFC 9113 §6.5.2 advises at least 100.
    pub concurrent_streams: u32,
    /// Octets of the method and the path of a request together: server only. Above it the answer is 414. 8 KiB, as for
    /// HTTP/1.1.
    pub target: usize,
    /// Octets of one field, name and value. A request above it is answered with 431. 16 KiB, as for HTTP/1.1.
    pub field: usize,
    /// Octets of a decoded field section, 32 per field included (RFC 9113 §6.5.2), announced as
    /// SETTINGS_MAX_HEADER_LIST_SIZE. A request above it is answered with 431; at [`ABUSE`] times as much the connection
    /// ends. 64 KiB, as for HTTP/1.1.
    pub header_list: usize,
    /// Fields of a section, cookie crumbs counted one by one. Above it as above `header_list`. Browsers send about 20
    /// and as many crumbs as they have cookies.
    pub fields: usize,
    /// CONTINUATION frames that one header block may take. 16 of the default size carry the largest block.
    pub continuations: u32,
    /// Entries of one SETTINGS frame. Eight settings are known.
    pub settings_entries: usize,
    /// Control frames without use (PING, SETTINGS, PRIORITY, empty DATA, small WINDOW_UPDATE) that may arrive in a row.
    /// They are forgiven as time passes and as useful work is done.
    pub control_frames: u32,
    /// Streams that may end by a reset in a row, by the peer or through its fault, forgiven as streams end well and as
    /// time passes. A browser that leaves a page cancels as many as it has open.
    pub resets: u32,
    /// DATA frames of fewer than [`SMALL_DATA`] octets that may wait for the application at once: each costs memory beside
    /// its payload, which the windows do not see.
    pub small_data: u32,
    /// Octets of a request body that are read and thrown away behind an answer that did not want them, per stream.
    /// More is answered with RST_STREAM(NO_ERROR) (RFC 9113 §8.1).
    pub drain: u64,
    /// Octets of a request body: server only. Above it the answer is 413. `u64::MAX` is no limit.
    pub body: u64,
    /// 1xx responses per request: client only.
    pub interim: u32,
    /// Octets that a stream takes from the application before they can be sent: what [`crate::Connection::capacity`]
    /// starts from.
    pub send_buffer: usize,
}

/// How far above `header_list`, `fields` a header block may go and still be decoded, so that its message can be answered
/// and the tables stay in step.
pub const ABUSE: usize = 4;

/// A DATA frame below this many octets is small: its bookkeeping weighs as much as its payload.
pub const SMALL_DATA: usize = 64;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            concurrent_streams: 128,
            target: 8 * 1024,
            field: 16 * 1024,
            header_list: 64 * 1024,
            fields: 200,
            continuations: 32,
            settings_entries: 32,
            control_frames: 1_000,
            resets: 200,
            small_data: 16_384,
            drain: 64 * 1024,
            body: 16 * 1024 * 1024,
            interim: 32,
            send_buffer: 64 * 1024,
        }
    }
}

/// How much a peer may send before the application has taken it (RFC 9113 §5.2). A window grows by itself from its
/// first to its largest size while it is what slows a transfer down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    /// First size of a stream's receive window, in octets.
    pub stream: u32,
    /// Largest size of a stream's receive window, in octets.
    pub stream_max: u32,
    /// First size of the connection's receive window, in octets; at least 65,535.
    pub connection: u32,
    /// Largest size of the connection's receive window, in octets. The windows of streams do not grow above it together.
    /// From `stream` times the streams that may be open on, bodies that nobody reads never keep others from being sent.
    pub connection_max: u32,
}

/// How long a peer may take. `None` turns a timer off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a preface, a frame or a header block to its last (S31).
    pub head: Option<Duration>,
    /// Without any stream.
    pub idle: Option<Duration>,
    /// From our SETTINGS to their acknowledgement (RFC 9113 §6.5.3); for a client at the earliest from the server's first
    /// octet, as a connection that waits to be accepted is not slow to acknowledge.
    pub settings: Option<Duration>,
    /// In which a stream that has something to send must get rid of [`Timeouts::PROGRESS`] octets, or of all it has
    /// (S24), and in which the transport must take anything of what waits to be written.
    pub write_stall: Option<Duration>,
    /// In which a request body that the application waits for must bring `body_rate` octets for each second.
    pub body_grace: Option<Duration>,
    /// Octets per second; see `body_grace`.
    pub body_rate: u64,
    /// Silence with streams open after which a PING asks whether the peer lives.
    pub ping: Option<Duration>,
    /// From that PING to any byte from the peer.
    pub pong: Duration,
    /// From the first GOAWAY of a graceful end to the second, where the peer does not answer the PING between them
    /// (RFC 9113 §6.8).
    pub drain: Duration,
}

impl Timeouts {
    /// What counts as progress of a stream that sends; see `write_stall`. A reader that opens its window by a few octets
    /// at a time would else hold a stream for ever.
    pub const PROGRESS: u64 = 1024;
}

/// Everything about a connection that is chosen beforehand. Shared by all connections of a listener or a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// See [`Limits`].
    pub limits: Limits,
    /// See [`Windows`].
    pub windows: Windows,
    /// See [`Timeouts`].
    pub timeouts: Timeouts,
    /// Largest frame payload that the peer may send, 16,384 to 16,777,215 octets.
    pub max_frame_size: u32,
    /// Size of the dynamic table that the peer may fill, in octets (RFC 7541 §4.2).
    pub header_table_size: u32,
    /// Whether a client may send an extended CONNECT (RFC 8441): server only.
    pub connect_protocol: bool,
}

impl Config {
    /// The defaults of a server: small windows, because many connections share its memory, and every timer on but the
    /// PING, since a server notices a dead peer by the others.
    pub fn server() -> Self {
        Config {
            limits: Limits::default(),
            windows: Windows {
                stream: 65_535,
                stream_max: 1024 * 1024,
                connection: 256 * 1024,
                connection_max: 16 * 1024 * 1024,
            },
            timeouts: Timeouts {
                head: Some(Duration::from_secs(30)),
                idle: Some(Duration::from_secs(60)),
                settings: Some(Duration::from_secs(10)),
                write_stall: Some(Duration::from_secs(60)),
                body_grace: Some(Duration::from_secs(10)),
                body_rate: 500,
                ping: None,
                pong: Duration::from_secs(20),
                drain: Duration::from_secs(1),
            },
            max_frame_size: crate::frame::DEFAULT_MAX_FRAME_SIZE,
            header_table_size: 4096,
            connect_protocol: false,
        }
    }

    /// The defaults of a client: windows for downloads, and a PING that finds dead connections. How long an answer may
    /// take is the caller's to say, and so is how long an idle connection is kept.
    pub fn client() -> Self {
        let server = Config::server();
        Config {
            limits: Limits { body: u64::MAX, ..server.limits },
            windows: Windows {
                stream: 1024 * 1024,
                stream_max: 8 * 1024 * 1024,
                connection: 4 * 1024 * 1024,
                connection_max: 32 * 1024 * 1024,
            },
            timeouts: Timeouts {
                idle: None,
                write_stall: None,
                body_grace: None,
                ping: Some(Duration::from_secs(15)),
                ..server.timeouts
            },
            ..server
        }
    }
}
