//! Fetch and the server on one connection of HTTP/2, and thousands of calls that are given up: before the answer, in the
//! middle of it, in the middle of the upload. The connection stays as good as new.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyperman::{Config, serve_all, service_fn};
use hyperman_fetch::{Body, Client, Notice};
use hyperman_loop::{Handle, Loop};
use hyperman_tests::body::Paced;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::chaos::{Chaos, Random, Troubles};
use hyperman_transport::{ListenOptions, Listener, Runtime};

use crate::client::pause;
use crate::plan::{Kind, Plan};
use crate::service;

/// How many calls are under way at once.
const AT_ONCE: u64 = 16;

/// How many calls go before the process is measured for the first time: buffers and caches have their size then.
const WARM_UP: u64 = 2_000;

/// How much larger the process may be at the end, 512 KiB: 128 bytes for each of 4,000 calls, and anything that is
/// forgotten of a stream is larger.
pub const LARGER: u64 = 512 << 10;

/// What came of the calls.
#[derive(Debug, Default)]
pub struct Report {
    pub whole: u64,
    pub given_up: u64,
    /// By how many bytes the process grew after the first calls.
    pub growth: u64,
}

/// Makes `calls` calls, most of which are given up; `Err` says what is wrong.
pub fn run(seed: u64, calls: u64) -> Result<Report, String> {
    let event_loop = Loop::new().map_err(|error| error.to_string())?;
    let handle = event_loop.handle();
    let troubles =
        Troubles { short: 50, late: 50, reset: 0, exhausted: 0, lateness: Duration::from_millis(20) };
    let chaos = Chaos::new(handle.clone(), seed, troubles);
    event_loop.block_on(async {
        let (mut all, mut ticking) = (pin!(all(&chaos, &handle, seed, calls)), pin!(chaos.ticking(3)));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(outcome) = all.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            let _ = ticking.as_mut().poll(cx);
            let hangs = chaos.turns() > 2_000 * calls;
            if hangs { Poll::Ready(Err("hangs".to_owned())) } else { Poll::Pending }
        })
        .await
    })
}

async fn all(chaos: &Chaos<Handle>, handle: &Handle, seed: u64, calls: u64) -> Result<Report, String> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = Listener::bind_tcp(chaos.clone(), any, &ListenOptions::default());
    let listener = listener.map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.ok_or("no address")?.port();
    let seen = Arc::<std::sync::Mutex<service::Seen>>::default();
    let (network, counted) = (chaos.clone(), seen.clone());
    let service = service_fn(move |request| service::answer(network.clone(), counted.clone(), request));
    let mut config = Config::default();
    // What is done here is what an attacker does.
    config.http2_settings.limits.resets = u32::MAX;
    let serving = serve_all(chaos.clone(), vec![Carrier::Http2.endpoint(listener)], service, config);
    let shutdown = serving.shutdown_handle();
    let server = handle.spawn_with_handle(serving);

    let callers = Rc::new(Callers {
        client: Carrier::Http2.client(chaos.clone()).build(),
        base: Carrier::Http2.base(port),
        chaos: chaos.clone(),
        next: Cell::new(0),
        connected: Arc::default(),
        whole: Cell::new(0),
        given_up: Cell::new(0),
    });
    callers.clone().make(handle, seed, WARM_UP.min(calls)).await?;
    // Whoever was given up last is gone when another has been served.
    callers.call(&Plan::plain(0, 100_000), None).await?;
    // What the handler counts takes room too.
    *seen.lock().expect("lock") = service::Seen::default();
    let before = (resident(), chaos.sources(), chaos.timers());
    callers.clone().make(handle, seed, calls).await?;
    *seen.lock().expect("lock") = service::Seen::default();
    // The connection is the first one, and does what it did.
    callers.call(&Plan::plain(0, 100_000), None).await?;
    let connected = callers.connected.load(Ordering::SeqCst);
    if connected != 1 {
        return Err(format!("{connected} connections were made"));
    }
    let after = (resident(), chaos.sources(), chaos.timers());
    if (before.1, before.2) != (after.1, after.2) {
        return Err(format!("size, sockets and timers were {before:?} and are {after:?}"));
    }
    let growth = after.0.saturating_sub(before.0);
    let (whole, given_up) = (callers.whole.get(), callers.given_up.get());
    drop(callers);
    shutdown.drain();
    let served = server.await.map_err(|error| format!("the server: {error:?}"))?;
    served.map_err(|error| format!("the server: {error}"))?;
    let left = (chaos.sources(), chaos.timers(), handle.tasks());
    if left != (0, 0, 1) {
        return Err(format!("sockets, timers and tasks that are left: {left:?}"));
    }
    Ok(Report { whole, given_up, growth })
}

/// The size of the process in memory, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the state of the process");
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB")?.trim().parse::<u64>().ok());
    size.expect("a size") * 1024
}

/// What those share who call.
struct Callers {
    client: Client<Chaos<Handle>>,
    base: String,
    chaos: Chaos<Handle>,
    next: Cell<u64>,
    connected: Arc<AtomicU64>,
    whole: Cell<u64>,
    given_up: Cell<u64>,
}

impl Callers {
    /// Makes calls until their number is `last`, several at once.
    async fn make(self: Rc<Self>, handle: &Handle, seed: u64, last: u64) -> Result<(), String> {
        let mut tasks = Vec::new();
        for at in 0..AT_ONCE {
            let (this, mut random) = (self.clone(), Random::new(seed.wrapping_mul(AT_ONCE) + at));
            tasks.push(handle.spawn_with_handle(async move {
                while this.next.get() < last {
                    this.next.set(this.next.get() + 1);
                    let plan = Plan::plain(this.next.get(), random.below(4_000) as usize);
                    let kinds =
                        [Kind::Ready, Kind::Waits, Kind::Streamed, Kind::Echo, Kind::Pipe, Kind::Ignored];
                    let kind = kinds[random.below(kinds.len() as u64) as usize];
                    let patience = (random.below(10) > 0).then(|| Duration::from_millis(random.below(60)));
                    this.call(&Plan { kind, ..plan }, patience).await?;
                }
                Ok::<_, String>(())
            }));
        }
        for task in tasks {
            task.await.map_err(|error| format!("a task: {error:?}"))??;
        }
        Ok(())
    }

    async fn call(&self, plan: &Plan, patience: Option<Duration>) -> Result<(), String> {
        let exchange = async {
            let answered =
                self.exchange(plan).await.map_err(|error| format!("{plan:?} failed: {error:?}"))?;
            if answered != plan.payload() {
                return Err(format!("{plan:?} was answered wrong"));
            }
            self.whole.set(self.whole.get() + 1);
            Ok(())
        };
        let Some(patience) = patience else { return exchange.await };
        let lose_patience = async {
            pause(&self.chaos, patience).await;
            self.given_up.set(self.given_up.get() + 1);
            Ok(())
        };
        smol::future::or(exchange, lose_patience).await
    }

    async fn exchange(&self, plan: &Plan) -> Result<bytes::Bytes, hyperman_fetch::Error> {
        let connected = self.connected.clone();
        let mut request = self.client.request(plan.method(), format!("{}{}", self.base, plan.target()));
        if plan.kind.has_body() {
            let paced = Paced::new(self.chaos.timer(), plan.payload(), plan.piece, plan.gap, false);
            request = request.body(Body::stream(paced));
        }
        let request = request.watch(move |notice: Notice<'_>| {
            if let Notice::Connected { reused: false, .. } = notice {
                connected.fetch_add(1, Ordering::SeqCst);
            }
        });
        request.send().await?.bytes().await
    }
}
