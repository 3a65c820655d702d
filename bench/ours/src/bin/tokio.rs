//! Hyperman inside a tokio program, on the single-threaded runtime.

use hyperman::{Config, serve, service_fn};
use hyperman_tokio::TokioRuntime;
use hyperman_transport::{ListenOptions, Listener};

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let runtime = TokioRuntime::current().expect("inside a runtime");
        let listener = Listener::bind_tcp(runtime.clone(), bench_ours::address(), &ListenOptions::default())
            .expect("a free port");
        serve(runtime, listener, service_fn(bench_ours::answer), Config::default()).await.expect("serves");
    });
}
