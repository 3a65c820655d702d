//! axum 0.8 with its own `serve`, on tokio's single-threaded runtime.

use axum::Router;
use axum::routing::get;

fn main() {
    bench_peers::runtime().block_on(async {
        let listener = tokio::net::TcpListener::bind(bench_peers::address()).await.expect("a free port");
        let app = Router::new().route("/", get(|| async { bench_peers::BODY }));
        axum::serve(listener, app).await.expect("serves until it is stopped");
    });
}
