//! One seed from its beginning to its end: server and clients on one loop, and what must be true afterwards.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use hyperman::{Config, serve_all, service_fn};
use hyperman_fetch::Client;
use hyperman_loop::{Backend, Handle, Loop};
use hyperman_tests::chaos::Chaos;
use hyperman_transport::{ListenOptions, Listener, Runtime};

use crate::client::{self, Outcome};
use crate::pipeline;
use crate::plan::{Plan, Scenario};
use crate::service::{self, Seen};

/// How many turns of the loop a seed may take: ten times what the longest takes.
const MOST_TURNS: u64 = 1_000_000;

/// How much made-up time a seed may take: the timers of a server that has lost its peers are minutes.
const MOST_TIME: Duration = Duration::from_secs(24 * 3600);

/// After how many turns without anything happening the clock moves.
const QUIET_TURNS: u32 = 3;

/// What came of the requests.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub answered: u64,
    /// How many of the answered.
    pub over_http2: u64,
    pub failed: u64,
    pub dropped: u64,
    pub pipelined: u64,
    pub turns: u64,
}

impl Report {
    pub fn add(&mut self, other: &Report) {
        self.answered += other.answered;
        self.over_http2 += other.over_http2;
        self.failed += other.failed;
        self.dropped += other.dropped;
        self.pipelined += other.pipelined;
        self.turns = self.turns.max(other.turns);
    }
}

/// What the tasks of a seed share.
struct World {
    scenario: Scenario,
    chaos: Chaos<Handle>,
    address: Cell<Option<SocketAddr>>,
    seen: Arc<Mutex<Seen>>,
    /// What is under way, for the case that it hangs.
    waiting: RefCell<BTreeSet<String>>,
    report: RefCell<Report>,
}

/// Runs a seed; `Err` says what is wrong.
pub fn run(seed: u64, backend: Backend) -> Result<Report, String> {
    let scenario = Scenario::of(seed);
    let event_loop = Loop::with_backend(backend).map_err(|error| error.to_string())?;
    let handle = event_loop.handle();
    let chaos = Chaos::new(handle.clone(), scenario.network, scenario.troubles.clone());
    let world = Rc::new(World {
        scenario,
        chaos: chaos.clone(),
        address: Cell::new(None),
        seen: Arc::default(),
        waiting: RefCell::default(),
        report: RefCell::default(),
    });
    let outcome = event_loop.block_on(async {
        let begun = chaos.now();
        let (mut all, mut ticking) = (pin!(world.clone().all(&handle)), pin!(chaos.ticking(QUIET_TURNS)));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(outcome) = all.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            let _ = ticking.as_mut().poll(cx);
            let (turns, time) = (chaos.turns(), chaos.now() - begun);
            if turns > MOST_TURNS || time > MOST_TIME {
                return Poll::Ready(Err(format!(
                    "hangs after {turns} turns, {time:?}: {:?}",
                    world.waiting.borrow()
                )));
            }
            Poll::Pending
        })
        .await
    });
    world.report.borrow_mut().turns = chaos.turns();
    let report = world.report.borrow().clone();
    outcome.map(|()| report).map_err(|failure| format!("{failure}\n{:?}", world.scenario))
}

impl World {
    async fn all(self: Rc<Self>, handle: &Handle) -> Result<(), String> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind_tcp(self.chaos.clone(), any, &ListenOptions::default());
        let listener = listener.map_err(|error| error.to_string())?;
        self.address.set(listener.local_addr().map_err(|error| error.to_string())?);
        let (chaos, seen) = (self.chaos.clone(), Arc::clone(&self.seen));
        let service = service_fn(move |request| service::answer(chaos.clone(), Arc::clone(&seen), request));
        let config = Config {
            connections: self.scenario.connections,
            requests_per_turn: self.scenario.requests_per_turn,
            ..Config::default()
        };
        let endpoint = self.scenario.carrier.endpoint(listener);
        let serving = serve_all(self.chaos.clone(), vec![endpoint], service, config);
        let shutdown = serving.shutdown_handle();
        let server = handle.spawn_with_handle(serving);

        self.waiting.borrow_mut().insert("clients".to_owned());
        self.clone().peers(handle).await?;
        shutdown.drain();
        self.waiting.borrow_mut().insert("server".to_owned());
        let served = server.await.map_err(|error| format!("the server: {error:?}"))?;
        served.map_err(|error| format!("the server: {error}"))?;
        self.nothing_is_left(handle)
    }

    /// Runs all clients and pipelines as tasks and waits for them.
    async fn peers(self: Rc<Self>, handle: &Handle) -> Result<(), String> {
        let client = || self.scenario.carrier.client(self.chaos.clone()).build();
        let shared = client();
        let mut tasks = Vec::new();
        for at in 0..self.scenario.clients.len() {
            let client = if self.scenario.shared { shared.clone() } else { client() };
            tasks.push(handle.spawn_with_handle(self.clone().client(at, client)));
        }
        for at in 0..self.scenario.pipelines.len() {
            tasks.push(handle.spawn_with_handle(self.clone().pipeline(at)));
        }
        for task in tasks {
            task.await.map_err(|error| format!("a task: {error:?}"))??;
        }
        Ok(())
    }

    fn address(&self) -> Result<SocketAddr, String> {
        self.address.get().ok_or_else(|| "no address".to_owned())
    }

    async fn client(self: Rc<Self>, at: usize, client: Client<Chaos<Handle>>) -> Result<(), String> {
        let loses = self.scenario.loses();
        let base = self.scenario.carrier.base(self.address()?.port());
        for plan in &self.scenario.clients[at] {
            let label = format!("{plan:?}");
            self.waiting.borrow_mut().insert(label.clone());
            let outcome = client::request(&self.chaos, &client, &base, plan).await;
            self.waiting.borrow_mut().remove(&label);
            let calls = self.calls(plan);
            if !client::calls_fit(&outcome, plan, &self.scenario, calls) {
                return Err(format!(
                    "{plan:?} ended so: {outcome:?}, and its handler was called {calls} times"
                ));
            }
            let mut report = self.report.borrow_mut();
            match outcome {
                Outcome::Answered => {
                    report.answered += 1;
                    report.over_http2 += u64::from(self.scenario.carrier.is_http2());
                }
                Outcome::Dropped => report.dropped += 1,
                Outcome::Failed(error) if client::is_excused(&error, plan, loses) => report.failed += 1,
                Outcome::Failed(error) => return Err(format!("{plan:?} failed: {error:?}")),
                Outcome::Wrong(what) => return Err(format!("{plan:?} was answered wrong: {what}")),
            }
        }
        Ok(())
    }

    async fn pipeline(self: Rc<Self>, at: usize) -> Result<(), String> {
        let plans = &self.scenario.pipelines[at];
        let label = format!("pipeline {at} of {} requests", plans.len());
        self.waiting.borrow_mut().insert(label.clone());
        let answered = pipeline::run(&self.chaos, self.address()?, plans).await?;
        self.waiting.borrow_mut().remove(&label);
        if !answered.orderly && !self.scenario.loses() {
            return Err(format!("{label}: {answered:?}"));
        }
        if let Some(plan) = plans.iter().find(|plan| self.calls(plan) > 1) {
            return Err(format!("{plan:?} came to its handler twice"));
        }
        self.report.borrow_mut().pipelined += answered.count as u64;
        Ok(())
    }

    fn calls(&self, plan: &Plan) -> u32 {
        self.seen.lock().expect("lock").calls.get(&plan.id).copied().unwrap_or_default()
    }

    fn nothing_is_left(&self, handle: &Handle) -> Result<(), String> {
        if let Some(wrong) = self.seen.lock().expect("lock").wrong.first() {
            return Err(wrong.clone());
        }
        // The one task is the future that asks.
        let left = (self.chaos.sources(), self.chaos.timers(), handle.tasks());
        if left != (0, 0, 1) {
            return Err(format!("sockets, timers and tasks that are left: {left:?}"));
        }
        Ok(())
    }
}
