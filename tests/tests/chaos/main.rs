//! Server and client under a made-up network and clock, once for each seed: two seeds of three over HTTP/1, one over
//! HTTP/2, and a quarter of them over TLS.
//!
//! Each request is answered exactly once with the right bytes, or ends in a typed error; where the network loses
//! nothing, it is answered. Nothing hangs and nothing leaks. `HYPERMAN_CHAOS_SEEDS` says how many seeds are tried (1,000
//! by default), `HYPERMAN_CHAOS_SEED` replays one.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

mod cancelled;
mod client;
mod pipeline;
mod plan;
mod service;
mod streams;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyperman_loop::{Backend, Loop};
use hyperman_tests::chaos::{Chaos, Random, Troubles};
use hyperman_transport::{Runtime, Timer};

/// How many seeds are tried unless said otherwise.
const SEEDS: u64 = 1_000;

/// How many threads try them: twice as many as the smallest machine has cores, because a seed waits half of its time to
/// see whether anything else happens.
const THREADS: u64 = 4;

/// How many connections of broken streams there are, each in a thread of its own, and how many streams each breaks.
const STREAM_SEEDS: u64 = 2;
const BROKEN_STREAMS: u32 = 10_000;

/// How many calls go over one connection.
const CALLS: u64 = 6_000;

/// The cases count the descriptors of the process, so they run one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().expect("a number"))
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("the list of descriptors").count()
}

/// One after the other, also after one has failed.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is told of a seed that failed: why, and the command that replays it.
fn replay(seed: u64, case: &str, failure: &str) -> String {
    let command = format!("cargo test -p hyperman-tests --test chaos {case} -- --nocapture");
    format!("{failure}\n\nreplay with: HYPERMAN_CHAOS_SEED={seed} {command}")
}

#[test]
fn seeds() {
    let _alone = alone();
    let before = descriptors();
    if let Some(seed) = number("HYPERMAN_CHAOS_SEED") {
        println!(
            "{:#?}",
            world::run(seed, Backend::Epoll)
                .unwrap_or_else(|failure| panic!("{}", replay(seed, "seeds", &failure)))
        );
        assert_eq!(descriptors(), before, "descriptors leak");
        return;
    }
    let seeds = number("HYPERMAN_CHAOS_SEEDS").unwrap_or(SEEDS);
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let totals = Mutex::new(world::Report::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    let report = world::run(seed, Backend::Epoll);
                    let report = report.unwrap_or_else(|failure| {
                        // Nobody else begins another one.
                        next.store(seeds, Ordering::SeqCst);
                        panic!("{}", replay(seed, "seeds", &failure))
                    });
                    totals.lock().expect("lock").add(&report);
                }
            });
        }
    });
    assert_eq!(descriptors(), before, "descriptors leak");
    let totals = totals.into_inner().expect("lock");
    println!("chaos: {seeds} seeds in {:?}: {totals:?}", begun.elapsed());
    if seeds >= SEEDS {
        // What is to be shown did happen.
        assert!(
            totals.answered > seeds && totals.over_http2 > seeds && totals.failed > seeds / 10,
            "{totals:?}"
        );
        assert!(totals.dropped > seeds / 10 && totals.pipelined > seeds, "{totals:?}");
    }
}

/// Each seed is one connection, whose streams end badly thousands of times.
#[test]
fn ten_thousand_broken_streams_leave_both_windows_as_they_were() {
    let _alone = alone();
    let replayed = number("HYPERMAN_CHAOS_SEED");
    let seeds: Vec<u64> = replayed.map_or_else(|| (0..STREAM_SEEDS).collect(), |seed| vec![seed]);
    let begun = Instant::now();
    let all = std::thread::scope(|scope| {
        let run = |seed| (seed, scope.spawn(move || streams::run(seed, BROKEN_STREAMS, Backend::Epoll)));
        let running: Vec<_> = seeds.iter().map(|seed| run(*seed)).collect();
        let ended = |(seed, run): (u64, std::thread::ScopedJoinHandle<'_, Result<streams::Ends, String>>)| {
            let ends = run.join().expect("a thread");
            ends.unwrap_or_else(|failure| panic!("{}", replay(seed, "ten_thousand", &failure)))
        };
        running.into_iter().map(ended).collect::<Vec<_>>()
    });
    for ends in &all {
        println!("chaos: streams of one connection by their ends: {ends:?}");
        let count =
            |how: &str| ends.iter().filter(|(end, _)| end.contains(how)).map(|(_, count)| count).sum::<u32>();
        // What is to be shown did happen.
        for how in ["cancelled", "reset", "refused", "well"] {
            assert!(count(how) > BROKEN_STREAMS / 20, "{how}: {ends:?}");
        }
    }
    println!("chaos: {} connections in {:?}", all.len(), begun.elapsed());
}

#[test]
fn thousands_of_calls_that_are_given_up_leave_their_connection_as_it_was() {
    let _alone = alone();
    let before = descriptors();
    let begun = Instant::now();
    let seed = number("HYPERMAN_CHAOS_SEED").unwrap_or(1);
    let report = cancelled::run(seed, CALLS);
    let report = report.unwrap_or_else(|failure| panic!("{}", replay(seed, "given_up", &failure)));
    println!("chaos: {CALLS} calls on one connection in {:?}: {report:?}", begun.elapsed());
    assert!(report.given_up > CALLS / 3 && report.whole > CALLS / 3, "{report:?}");
    assert!(report.growth <= cancelled::LARGER, "the process grew: {report:?}");
    assert_eq!(descriptors(), before, "descriptors leak");
}

#[test]
fn every_backend_gets_some() {
    let _alone = alone();
    let before = descriptors();
    for backend in Backend::available() {
        for seed in 0..25 {
            if let Err(failure) = world::run(seed, backend) {
                panic!("seed {seed} on {backend}: {failure}");
            }
        }
    }
    assert_eq!(descriptors(), before, "descriptors leak");
}

#[test]
fn the_clock_turns_by_itself_and_in_order() {
    let _alone = alone();
    let begun = Instant::now();
    let event_loop = Loop::new().expect("a loop");
    let chaos = Chaos::new(event_loop.handle(), 1, Troubles::default());
    let order = event_loop.block_on(async {
        let start = chaos.now();
        let sleeping = [50, 3_600, 7].map(|seconds| {
            let (chaos, mut timer) = (chaos.clone(), chaos.timer());
            async move {
                let until = start + Duration::from_secs(seconds);
                std::future::poll_fn(|cx| timer.poll_deadline(until, cx)).await;
                assert_eq!(chaos.now(), until);
                seconds
            }
        });
        let (tell, told) = smol::channel::unbounded();
        for sleeping in sleeping {
            let tell = tell.clone();
            drop(event_loop.handle().spawn_with_handle(async move { tell.send(sleeping.await).await }));
        }
        let mut order = Vec::new();
        let all = async {
            for _ in 0..3 {
                order.push(told.recv().await.expect("a time"));
            }
        };
        smol::future::or(all, chaos.ticking(3)).await;
        order
    });
    assert_eq!(order, [7, 50, 3_600]);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_seed_brings_about_the_same_again() {
    let mut again = Random::new(7);
    let first: Vec<u64> = (0..3).map(|_| again.next_u64()).collect();
    let mut random = Random::new(7);
    assert_eq!(first, (0..3).map(|_| random.next_u64()).collect::<Vec<_>>());
    assert_ne!(Random::new(8).next_u64(), first[0]);
    let plans = |seed| format!("{:?}", plan::Scenario::of(seed));
    assert_eq!(plans(3), plans(3));
    assert_ne!(plans(3), plans(4));
}
