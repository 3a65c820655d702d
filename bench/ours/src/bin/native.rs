//! Hyperman on its own loop.

use hyperman::{Server, service_fn};

fn main() {
    Server::new(service_fn(bench_ours::answer))
        .listen(bench_ours::address())
        .run()
        .expect("serves until a signal");
}
