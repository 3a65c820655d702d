//! Hyperman inside a GLib program, on the default main context.

use hyperman::{Config, serve, service_fn};
use hyperman_glib::GlibRuntime;
use hyperman_transport::{ListenOptions, Listener};

fn main() {
    let context = glib::MainContext::default();
    let runtime = GlibRuntime::new(context.clone()).expect("descriptors are free");
    context.block_on(async {
        let listener = Listener::bind_tcp(runtime.clone(), bench_ours::address(), &ListenOptions::default())
            .expect("a free port");
        serve(runtime, listener, service_fn(bench_ours::answer), Config::default()).await.expect("serves");
    });
}
