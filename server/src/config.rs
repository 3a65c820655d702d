//! What a server's owner can set. Every limit and every timer is on by default.

use std::sync::Arc;
use std::time::Duration;

use hyperman_http1::{Limits, ServerConfig, Timeouts};

use crate::refusal::OnRefusal;

/// The settings of a server. `Config::default()` is safe to expose to the Internet.
#[derive(Clone, Debug)]
pub struct Config {
    /// The sizes that HTTP/1.1 messages may have.
    pub limits: Limits,
    /// How long a peer may take.
    pub timeouts: Timeouts,
    /// Whether HTTP/2 is spoken: by ALPN over TLS, with prior knowledge and by `Upgrade: h2c` on cleartext. Default yes.
    pub http2: bool,
    /// What concerns HTTP/2 alone: windows, the number of streams, budgets against floods. The sizes and times that both
    /// protocols have (target, field, body, linger; head, idle, write stall, body rate) are taken from [`limits`](Self::limits) and
    /// [`timeouts`](Self::timeouts).
    pub http2_settings: hyperman_http2::Config,
    /// How many connections are open at once; further ones wait in the kernel's queue. Default 65,536.
    pub connections: usize,
    /// How many pipelined requests one connection is answered before others get their turn. Default 32.
    pub requests_per_turn: u32,
    /// Whether a peer that ended its direction after its request still waits for the answer. Default no: the end of
    /// its direction counts as a disconnect, and a handler that is still running is dropped.
    pub half_close: bool,
    /// How long a drain waits for busy connections before it cuts them. Default 30 s.
    pub drain_deadline: Duration,
    /// Whether each request carries a [`ConnectionInfo`](crate::ConnectionInfo) as an extension. Default no: it is
    /// also at [`Body::connection`](crate::Body::connection), which costs nothing.
    pub connection_extension: bool,
    /// Whether each request carries an [`Interim`](crate::Interim) as an extension, to send 103 (Early Hints) and
    /// other 1xx answers by. Default no.
    pub interim_extension: bool,
    /// Is told of the requests that the service never hears of, as an access log wants to be. Default nobody.
    pub on_refusal: Option<OnRefusal>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            http2: true,
            http2_settings: hyperman_http2::Config::server(),
            connections: 65_536,
            requests_per_turn: 32,
            half_close: false,
            drain_deadline: Duration::from_secs(30),
            connection_extension: false,
            interim_extension: false,
            on_refusal: None,
        }
    }
}

/// The longest time that means anything, 100 years. Whoever sets more, `Duration::MAX` perhaps, wants no end; a clock
/// could not be added to it.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl Config {
    /// Makes every time one that can be waited for.
    pub(crate) fn bound_times(&mut self) {
        let Timeouts { head, idle, body_rate: _, body_grace, write_stall, linger, linger_most } =
            &mut self.timeouts;
        for time in [head, idle, body_grace, write_stall, linger, linger_most, &mut self.drain_deadline] {
            *time = (*time).min(LONGEST);
        }
    }

    pub(crate) fn http1(&self) -> Arc<ServerConfig> {
        Arc::new(ServerConfig { limits: self.limits.clone(), timeouts: self.timeouts.clone() })
    }

    pub(crate) fn http2(&self) -> Arc<hyperman_http2::Config> {
        let mut config = self.http2_settings.clone();
        config.limits.target = self.limits.request_line;
        config.limits.field = self.limits.field;
        config.limits.body = self.limits.body;
        // The connection is at stake on HTTP/1.1 alone; here it is the answer, which some clients read only when they
        // have sent all.
        config.limits.drain = self.limits.linger;
        config.timeouts.head = Some(self.timeouts.head);
        config.timeouts.idle = Some(self.timeouts.idle);
        config.timeouts.write_stall = Some(self.timeouts.write_stall);
        config.timeouts.body_grace = Some(self.timeouts.body_grace);
        config.timeouts.body_rate = self.timeouts.body_rate;
        Arc::new(config)
    }
}
