//! What a seed asks for: the troubles of the network, and who requests what.

use std::time::Duration;

use bytes::Bytes;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::chaos::{Random, Troubles};

/// Everything that one seed decides.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub troubles: Troubles,
    /// The seed of the network's own troubles.
    pub network: u64,
    /// For each client, its requests.
    pub clients: Vec<Vec<Plan>>,
    /// For each plain connection, what is pipelined on it.
    pub pipelines: Vec<Vec<Plan>>,
    /// Whether the clients share their connections.
    pub shared: bool,
    /// What the clients speak. Plain connections speak HTTP/1 on a bare socket, so there are none where it is TLS.
    pub carrier: Carrier,
    pub connections: usize,
    pub requests_per_turn: u32,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Unlike any other request's.
    pub id: u64,
    pub kind: Kind,
    /// The length of the payload.
    pub length: usize,
    /// How large the pieces of a streamed payload are, and how long the pause between them.
    pub piece: usize,
    pub gap: Duration,
    /// What is waited for before it.
    pub pause: Duration,
    /// After how long the caller loses patience and drops it.
    pub drop_after: Option<Duration>,
    /// The total deadline.
    pub timeout: Option<Duration>,
}

/// What the handler does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A GET that is answered at once.
    Ready,
    /// A GET whose handler waits first.
    Waits,
    /// A GET whose answer is streamed in chunks.
    Streamed,
    /// A GET whose answer is streamed and of a known length.
    StreamedSized,
    /// A POST of a known length whose body comes back after it was read.
    Echo,
    /// A POST in chunks whose body comes back after it was read.
    EchoStreamed,
    /// A POST in chunks whose body comes back while it is read.
    Pipe,
    /// A POST whose body the handler does not look at.
    Ignored,
}

const KINDS: [Kind; 8] = [
    Kind::Ready,
    Kind::Waits,
    Kind::Streamed,
    Kind::StreamedSized,
    Kind::Echo,
    Kind::EchoStreamed,
    Kind::Pipe,
    Kind::Ignored,
];

impl Kind {
    pub fn has_body(self) -> bool {
        matches!(self, Kind::Echo | Kind::EchoStreamed | Kind::Pipe | Kind::Ignored)
    }

    pub fn is_chunked(self) -> bool {
        matches!(self, Kind::EchoStreamed | Kind::Pipe)
    }

    pub fn of(name: &str) -> Option<Kind> {
        KINDS.into_iter().find(|kind| format!("{kind:?}") == name)
    }
}

impl Scenario {
    pub fn of(seed: u64) -> Scenario {
        let mut random = Random::new(seed);
        let random = &mut random;
        let millis = Duration::from_millis;
        // What the network is like, and how much may be sent over it before the server's timers are right to ring.
        let (troubles, longest) = match random.below(4) {
            0 => (Troubles { short: 0, late: 0, reset: 0, exhausted: 0, lateness: millis(0) }, 200_000),
            1 => (Troubles::default(), 20_000),
            2 => (Troubles { short: 1000, late: 100, reset: 0, exhausted: 200, lateness: millis(5) }, 600),
            _ => {
                let reset = 5 + random.below(30) as u32;
                (Troubles { reset, ..Troubles::default() }, 5_000)
            }
        };
        let mut next = 0;
        let mut plans = |random: &mut Random, most: u64, patient: bool| -> Vec<Plan> {
            let count = 1 + random.below(most);
            (0..count)
                .map(|_| {
                    next += 1;
                    Plan::of(next, random, longest, patient)
                })
                .collect()
        };
        let clients = (0..1 + random.below(5)).map(|_| plans(random, 8, false)).collect();
        let carrier = match random.below(12) {
            0..6 => Carrier::Http1,
            6..8 => Carrier::Http1Tls,
            8..11 => Carrier::Http2,
            _ => Carrier::Http2Tls,
        };
        let pipelines = if carrier.is_secure() { 0 } else { random.below(3) };
        let pipelines = (0..pipelines).map(|_| plans(random, 20, true)).collect();
        let shared = random.below(2) == 0;
        // Idle connections of a shared pool would keep others out until they are too old, and a client of HTTP/2 is right
        // to give up on a server that does not answer its settings.
        let few = !shared && !carrier.is_http2() && random.below(4) == 0;
        Scenario {
            network: random.next_u64(),
            troubles,
            clients,
            pipelines,
            shared,
            carrier,
            connections: if few { 1 + random.below(3) as usize } else { 1_000 },
            requests_per_turn: 1 + random.below(32) as u32,
        }
    }

    /// Whether connections may be lost.
    pub fn loses(&self) -> bool {
        self.troubles.reset > 0
    }
}

impl Plan {
    fn of(id: u64, random: &mut Random, longest: usize, patient: bool) -> Plan {
        let up_to = |random: &mut Random, most: u64| Duration::from_millis(random.below(most));
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        let length = match random.below(4) {
            0 => random.below(3) as usize,
            1 => random.below(100) as usize,
            _ => random.below(longest as u64) as usize,
        };
        let rarely = |random: &mut Random| !patient && random.below(8) == 0;
        Plan {
            id,
            kind,
            length,
            // At most 50 pieces.
            piece: 1 + length / 50 + random.below(1 + length as u64 / 2) as usize,
            gap: if random.below(2) == 0 { Duration::ZERO } else { up_to(random, 50) },
            pause: up_to(random, 100),
            drop_after: rarely(random).then(|| up_to(random, 2_000)),
            timeout: rarely(random).then(|| up_to(random, 4_000)),
        }
    }

    /// A GET that is answered in ten pieces, 10 ms after each other.
    pub fn plain(id: u64, length: usize) -> Plan {
        let (piece, gap) = (1 + length / 10, Duration::from_millis(10));
        let (pause, drop_after, timeout) = (Duration::ZERO, None, None);
        Plan { id, kind: Kind::Streamed, length, piece, gap, pause, drop_after, timeout }
    }

    pub fn method(&self) -> http::Method {
        if self.kind.has_body() { http::Method::POST } else { http::Method::GET }
    }

    pub fn target(&self) -> String {
        let Plan { id, kind, length, piece, gap, .. } = self;
        format!("/{kind:?}/{id}/{length}/{piece}/{}", gap.as_millis())
    }

    /// The request that a target asks for.
    pub fn from_target(target: &str) -> Option<Plan> {
        let mut parts = target.strip_prefix('/')?.split('/');
        let kind = Kind::of(parts.next()?)?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (id, length, piece, gap) = (number()?, number()?, number()?, number()?);
        Some(Plan {
            id,
            kind,
            length: length as usize,
            piece: piece as usize,
            gap: Duration::from_millis(gap),
            pause: Duration::ZERO,
            drop_after: None,
            timeout: None,
        })
    }

    /// What is sent, for requests with a body, and what is answered.
    pub fn payload(&self) -> Bytes {
        let mut random = Random::new(self.id.wrapping_mul(1_000_003));
        (0..self.length).map(|_| random.next_u64() as u8).collect::<Vec<u8>>().into()
    }
}
