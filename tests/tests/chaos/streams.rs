//! Two HTTP/2 machines with a made-up network between them, and thousands of streams that do not end well: cancelled by
//! the client, reset by the server, refused. Whatever happens to a stream, the connection's windows get back what it held.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use hyperman_http2::{
    BodyLength, BodySize, Client, ClientEvent, Config, Connection, ConnectionWindows, Reason, Server,
    ServerEvent, StreamError, StreamId,
};
use hyperman_loop::{Backend, Handle, Loop};
use hyperman_tests::chaos::{Chaos, ChaosSource, ChaosTimer, Random, Troubles};
use hyperman_transport::{ByteStream, ListenOptions, Listener, Runtime, Socket, Timer, connect_tcp};

/// The most octets of a body.
const LONGEST: u64 = 12_000;

/// How many streams the server allows at once: fewer than the client has in mind, so that handlers that outlive their
/// streams are in the way of new ones.
const ALLOWED: u32 = 20;

/// How many turns of the loop a seed may take: ten times what the longest takes.
const MOST_TURNS: u64 = 5_000_000;

/// How often each end came, by its name.
pub type Ends = HashMap<String, u32>;

/// Runs a seed until `broken` streams have not ended well; `Err` says what is wrong.
pub fn run(seed: u64, broken: u32, backend: Backend) -> Result<Ends, String> {
    let mut random = Random::new(seed);
    let short = random.below(500) as u32;
    let troubles = Troubles { short, late: 100, reset: 0, exhausted: 0, lateness: Duration::from_millis(50) };
    let event_loop = Loop::with_backend(backend).map_err(|error| error.to_string())?;
    let handle = event_loop.handle();
    let chaos = Chaos::new(handle.clone(), random.next_u64(), troubles);
    event_loop.block_on(async {
        let mut all = pin!(both(&chaos, &handle, &mut random, broken));
        let mut ticking = pin!(chaos.ticking(3));
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = all.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            let _ = ticking.as_mut().poll(cx);
            if chaos.turns() > MOST_TURNS {
                return Poll::Ready(Err("hangs".to_owned()));
            }
            Poll::Pending
        })
        .await
    })
}

type Source = ChaosSource<<Handle as Runtime>::Source>;

async fn both(
    chaos: &Chaos<Handle>,
    handle: &Handle,
    random: &mut Random,
    broken: u32,
) -> Result<Ends, String> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let say = |error: std::io::Error| error.to_string();
    let mut listener = Listener::bind_tcp(chaos.clone(), any, &ListenOptions::default()).map_err(say)?;
    let address = listener.local_addr().map_err(say)?.ok_or("no address")?;
    let connecting = connect_tcp(chaos, address, None).map_err(say)?;
    let accepting = poll_fn(|cx| listener.poll_accept(cx));
    let (near, far) = smol::future::zip(connecting, accepting).await;

    let (mut of_client, mut of_server) = (Config::client(), Config::server());
    // Without growth the first size is also the last.
    of_client.windows.connection_max = of_client.windows.connection;
    of_server.windows.connection_max = of_server.windows.connection;
    of_server.limits.concurrent_streams = ALLOWED;
    // What is done here is what an attacker does.
    of_server.limits.resets = u32::MAX;
    let now = chaos.now();
    let server = Rc::new(RefCell::new(Serving {
        machine: Server::new(Arc::new(of_server), now),
        line: Line::new(chaos, far.map_err(say)?.socket),
        random: Random::new(random.next_u64()),
        parked: BTreeMap::new(),
        asked_for_quiet: None,
        whole: None,
    }));
    let client = Calling {
        machine: Client::new(Arc::new(of_client), now),
        line: Line::new(chaos, near.map_err(say)?),
        random: Random::new(random.next_u64()),
        open: HashMap::new(),
        rest_until: now,
        ends: Ends::new(),
        wanted: broken,
    };
    let start = (client.machine.connection_windows(), server.borrow().machine.connection_windows());

    let serving = server.clone();
    let serving = handle.spawn_with_handle(poll_fn(move |cx| serving.borrow_mut().poll(cx)));
    // Both are tasks, so that each is polled only when it is woken.
    let calling = handle.spawn_with_handle(client.all(server.clone()));
    let calling = async { calling.await.map_err(|error| format!("{error:?}"))? };
    let serving = async { Err(format!("the server has ended: {:?}", serving.await)) };
    let client = smol::future::or(calling, serving).await?;

    // Settings of the peer may have changed no connection's window (RFC 9113 §6.9.2), only updates do.
    let end = (client.machine.connection_windows(), server.borrow().machine.connection_windows());
    for (side, start, end, peer) in [("client", start.0, end.0, end.1), ("server", start.1, end.1, end.0)] {
        let full = i64::from(start.target);
        if (end.granted, end.due, peer.send) != (full, 0, full) {
            return Err(format!(
                "the {side}'s window was {start:?} and is {end:?}; its peer's view is {peer:?}"
            ));
        }
    }
    let open = (client.machine.open_streams(), server.borrow().machine.open_streams());
    if open != (0, 0) { Err(format!("streams that are left: {open:?}")) } else { Ok(client.ends) }
}

// ----------------------------------------------------------------------------------------------------- the connection

/// One end's socket and clock.
struct Line {
    socket: Socket<Source>,
    chaos: Chaos<Handle>,
    timer: ChaosTimer,
}

impl Line {
    fn new(chaos: &Chaos<Handle>, socket: Socket<Source>) -> Self {
        Line { socket, chaos: chaos.clone(), timer: chaos.timer() }
    }

    /// Moves what can be moved; true when anything came or went.
    fn carry(&mut self, machine: &mut Connection, cx: &mut Context<'_>) -> Result<bool, String> {
        let mut moved = false;
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = machine.poll_transmit(&mut slices);
        if filled > 0
            && let Poll::Ready(sent) = self.socket.poll_send(cx, &slices[..filled])
        {
            machine.transmitted(sent.map_err(|error| error.to_string())?);
            moved = true;
        }
        if machine.wants_read()
            && let Poll::Ready(received) = self.socket.poll_recv(cx, machine.read_buf())
        {
            match received.map_err(|error| error.to_string())? {
                0 => return Err("the connection ended".to_owned()),
                octets => machine.received(octets),
            }
            moved = true;
        }
        Ok(moved)
    }

    /// Wakes the task at the machine's deadline or at this one.
    fn arm(&mut self, machine: &Connection, other: Option<Instant>, cx: &mut Context<'_>) {
        let deadline = machine.poll_timeout().map(|(at, _)| at).into_iter().chain(other).min();
        if let Some(deadline) = deadline
            && self.timer.poll_deadline(deadline, cx).is_ready()
        {
            cx.waker().wake_by_ref();
        }
    }
}

// ----------------------------------------------------------------------------------------------------- the client

struct Calling {
    machine: Client,
    line: Line,
    random: Random,
    /// What is to become of each open stream.
    open: HashMap<StreamId, Fate>,
    /// Nothing is opened before.
    rest_until: Instant,
    ends: Ends,
    wanted: u32,
}

/// When the client gives a stream up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Never,
    WithTheHead,
    WithData,
    /// It takes in data and does not read it.
    Unread,
}

impl Calling {
    /// The whole life of the connection.
    async fn all(mut self, server: Rc<RefCell<Serving>>) -> Result<Self, String> {
        poll_fn(|cx| self.poll_broken(cx)).await?;
        // All the server's handlers are gone once this is answered.
        self.exchange("/quiet", 0).await?;
        let missing = |windows: ConnectionWindows| windows.target.div_ceil(2) - windows.due;
        // As much in each direction as makes the next update of its window due.
        let down = missing(self.machine.connection_windows());
        let up = missing(server.borrow().machine.connection_windows());
        self.exchange(&format!("/down/{down}"), up as usize).await?;
        // The updates stand before this one, there and back.
        self.exchange("/quiet", 0).await?;
        Ok(self)
    }

    /// Opens streams and breaks them, until there were as many as wanted and all of them are gone.
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        loop {
            let now = self.line.chaos.now();
            self.machine.handle_timeout(now);
            while let Some(event) = self.machine.next_event().map_err(|error| format!("client: {error:?}"))? {
                self.take(event);
            }
            if self.is_enough() {
                for (stream, _) in std::mem::take(&mut self.open) {
                    self.give_up(stream, "cancelled at the end");
                }
            } else if now >= self.rest_until {
                self.open_some(now);
            }
            if self.line.carry(&mut self.machine, cx)? {
                continue;
            }
            if self.is_enough() && self.open.is_empty() && !self.machine.has_transmit() {
                return Poll::Ready(Ok(()));
            }
            let rest = Some(self.rest_until).filter(|until| *until > now);
            self.line.arm(&self.machine, rest, cx);
            return Poll::Pending;
        }
    }

    fn is_enough(&self) -> bool {
        let well = self.ends.get("well").copied().unwrap_or_default();
        self.ends.values().sum::<u32>() - well >= self.wanted
    }

    fn open_some(&mut self, now: Instant) {
        while self.open.len() < ALLOWED as usize && self.machine.can_open().is_ok() {
            let with_body = self.random.below(3) > 0;
            let method = if with_body { Method::POST } else { Method::GET };
            let size = if with_body { BodySize::Unknown } else { BodySize::Known(0) };
            let Ok(stream) = self.machine.open(&method, &uri("/"), &HeaderMap::new(), size) else { return };
            let fates = [Fate::Never, Fate::Never, Fate::WithTheHead, Fate::WithData, Fate::Unread];
            self.open.insert(stream, fates[self.random.below(fates.len() as u64) as usize]);
            if with_body {
                let _ = self.machine.send_data(stream, octets(self.random.below(LONGEST) as usize));
                if self.random.below(4) > 0 {
                    let _ = self.machine.end(stream);
                }
            }
            match self.random.below(8) {
                0 => self.give_up(stream, "cancelled at once"),
                1 => {
                    self.rest_until = now + Duration::from_millis(self.random.below(50));
                    return;
                }
                _ => {}
            }
        }
    }

    fn take(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Response { stream, body, .. } => match self.open.get(&stream) {
                Some(Fate::WithTheHead) => self.give_up(stream, "cancelled with the head"),
                _ if body == BodyLength::Empty => self.ended(stream),
                _ => {}
            },
            ClientEvent::Data { stream, data } => match self.open.get(&stream) {
                Some(Fate::WithData) => self.give_up(stream, "cancelled with data"),
                // For as long as the server goes on with it.
                Some(Fate::Unread) if self.random.below(3) > 0 => {}
                Some(Fate::Unread) => self.give_up(stream, "cancelled unread"),
                _ => self.machine.release(stream, data.len()),
            },
            ClientEvent::End { stream } => self.ended(stream),
            ClientEvent::Reset { stream, error } => {
                if self.open.remove(&stream).is_some() {
                    let what =
                        if error == StreamError::Refused { "refused".to_owned() } else { error.to_string() };
                    *self.ends.entry(what).or_default() += 1;
                }
                self.machine.finished(stream);
                if error == StreamError::Refused {
                    self.rest_until = self.line.chaos.now() + Duration::from_millis(20);
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, stream: StreamId) {
        if self.open.remove(&stream).is_some() {
            *self.ends.entry("well".to_owned()).or_default() += 1;
        }
        self.machine.finished(stream);
    }

    fn give_up(&mut self, stream: StreamId, how: &str) {
        self.open.remove(&stream);
        *self.ends.entry(how.to_owned()).or_default() += 1;
        if self.random.below(2) == 0 {
            self.machine.reset(stream, Reason::Cancel);
        }
        self.machine.finished(stream);
    }

    /// One exchange that ends well.
    async fn exchange(&mut self, path: &str, upload: usize) -> Result<(), String> {
        let size = BodySize::Known(upload as u64);
        let mut asked = None;
        poll_fn(|cx| {
            loop {
                self.machine.handle_timeout(self.line.chaos.now());
                while let Some(event) =
                    self.machine.next_event().map_err(|error| format!("client: {error:?}"))?
                {
                    let over = match &event {
                        ClientEvent::Response { stream, body, .. } if *body == BodyLength::Empty => {
                            Some(*stream)
                        }
                        ClientEvent::End { stream } => Some(*stream),
                        ClientEvent::Reset { stream, error } if asked == Some(*stream) => {
                            return Poll::Ready(Err(format!("{path}: {error:?}")));
                        }
                        _ => None,
                    };
                    self.take(event);
                    if over.is_some() && over == asked {
                        return Poll::Ready(Ok(()));
                    }
                }
                if asked.is_none() && self.machine.can_open().is_ok() {
                    let opened = self.machine.open(&Method::POST, &uri(path), &HeaderMap::new(), size);
                    let stream = opened.map_err(|misuse| misuse.to_string())?;
                    if upload > 0 {
                        self.machine
                            .send_data(stream, octets(upload))
                            .map_err(|misuse| misuse.to_string())?;
                        self.machine.end(stream).map_err(|misuse| misuse.to_string())?;
                    }
                    asked = Some(stream);
                }
                if !self.line.carry(&mut self.machine, cx)? {
                    self.line.arm(&self.machine, None, cx);
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

// ----------------------------------------------------------------------------------------------------- the server

struct Serving {
    machine: Server,
    line: Line,
    random: Random,
    /// Handlers that are still to do something, by when.
    parked: BTreeMap<(Instant, u32), (StreamId, Then)>,
    /// A request that is answered when all others are gone.
    asked_for_quiet: Option<StreamId>,
    /// One whose body is read to its end.
    whole: Option<StreamId>,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Answer,
    /// The stream is over, its handler only now.
    LetGo,
}

impl Serving {
    /// Serves until the connection fails.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        loop {
            let now = self.line.chaos.now();
            self.machine.handle_timeout(now);
            while let Some(event) = self.machine.next_event().map_err(|error| format!("server: {error:?}"))? {
                self.take(event, now);
            }
            let later = self.parked.split_off(&(now, u32::MAX));
            for (stream, then) in std::mem::replace(&mut self.parked, later).into_values() {
                match then {
                    Then::Answer => self.answer(stream),
                    Then::LetGo => self.machine.finished(stream),
                }
            }
            if let Some(stream) = self.asked_for_quiet.take_if(|_| self.machine.open_streams() == 1) {
                self.respond(stream, 0);
            }
            if !self.line.carry(&mut self.machine, cx)? {
                let next = self.parked.first_key_value().map(|((at, _), _)| *at);
                self.line.arm(&self.machine, next, cx);
                return Poll::Pending;
            }
        }
    }

    fn take(&mut self, event: ServerEvent, now: Instant) {
        match event {
            ServerEvent::Request { stream, request, .. } => match request.uri().path() {
                "/quiet" => self.asked_for_quiet = Some(stream),
                "/" => self.begin(stream, now),
                path => {
                    let length = path.strip_prefix("/down/").and_then(|length| length.parse().ok());
                    self.put_answer(stream, length.unwrap_or(0));
                    self.whole = Some(stream);
                }
            },
            ServerEvent::Data { stream, data } if self.whole == Some(stream) => {
                self.machine.release(stream, data.len());
            }
            ServerEvent::End { stream } if self.whole == Some(stream) => self.machine.finished(stream),
            ServerEvent::Data { stream, data } => match self.random.below(40) {
                0 => self.machine.reset(stream, Reason::InternalError),
                // Not read; the handler ends some time.
                1..4 => {}
                _ => self.machine.release(stream, data.len()),
            },
            ServerEvent::Reset { stream, .. } => self.park(stream, now, Then::LetGo),
            _ => {}
        }
    }

    /// What a handler does first.
    fn begin(&mut self, stream: StreamId, now: Instant) {
        match self.random.below(10) {
            0 => self.machine.finished(stream),
            1 => {
                self.machine.reset(stream, Reason::RefusedStream);
                self.machine.finished(stream);
            }
            2 => {
                self.machine.reset(stream, Reason::Cancel);
                self.park(stream, now, Then::LetGo);
            }
            3 => {
                self.machine.ignore_body(stream);
                self.park(stream, now, Then::Answer);
            }
            4..7 => self.answer(stream),
            _ => self.park(stream, now, Then::Answer),
        }
    }

    fn park(&mut self, stream: StreamId, now: Instant, then: Then) {
        let until = now + Duration::from_millis(self.random.below(100));
        self.parked.insert((until, stream.get()), (stream, then));
    }

    /// The handler's end: an answer, whole or not.
    fn answer(&mut self, stream: StreamId) {
        let length = self.random.below(LONGEST) as usize;
        if self.random.below(8) > 0 {
            return self.respond(stream, length);
        }
        // Cut off in the middle.
        if self.machine.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).is_ok() {
            let _ = self.machine.send_data(stream, octets(length));
        }
        self.machine.finished(stream);
    }

    fn respond(&mut self, stream: StreamId, length: usize) {
        self.put_answer(stream, length);
        self.machine.finished(stream);
    }

    fn put_answer(&mut self, stream: StreamId, length: usize) {
        let size = BodySize::Known(length as u64);
        if self.machine.send_head(stream, StatusCode::OK, &HeaderMap::new(), size).is_ok() {
            let _ = self.machine.send_data(stream, octets(length));
            let _ = self.machine.end(stream);
        }
    }
}

fn octets(length: usize) -> Bytes {
    vec![b'o'; length].into()
}

fn uri(path: &str) -> Uri {
    format!("https://example.com{path}").parse().expect("a URI")
}
