//! Hyperman inside a smol program, on an executor of one thread.

use std::rc::Rc;

use hyperman::{Config, serve, service_fn};
use hyperman_smol::SmolLocal;
use hyperman_transport::{ListenOptions, Listener};

fn main() {
    let executor = Rc::new(smol::LocalExecutor::new());
    let runtime = SmolLocal::new(&executor);
    smol::block_on(executor.run(async {
        let listener = Listener::bind_tcp(runtime.clone(), bench_ours::address(), &ListenOptions::default())
            .expect("a free port");
        serve(runtime, listener, service_fn(bench_ours::answer), Config::default()).await.expect("serves");
    }));
}
