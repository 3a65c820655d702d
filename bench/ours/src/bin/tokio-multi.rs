//! Hyperman inside a tokio program, on the multi-threaded runtime: with as many workers as the second argument says,
//! else with tokio's default, one for each processor that it may use.

use hyperman::{Config, serve, service_fn};
use hyperman_tokio::TokioRuntime;
use hyperman_transport::{ListenOptions, Listener};

fn main() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(workers) = std::env::args().nth(2) {
        builder.worker_threads(workers.parse().expect("the second argument is a count"));
    }
    builder.enable_all().build().expect("a runtime").block_on(async {
        let runtime = TokioRuntime::current().expect("inside a runtime");
        let listener = Listener::bind_tcp(runtime.clone(), bench_ours::address(), &ListenOptions::default())
            .expect("a free port");
        serve(runtime, listener, service_fn(bench_ours::answer), Config::default()).await.expect("serves");
    });
}
