//! Links to remember, as a JSON service: an ordinary axum application on an ordinary `#[tokio::main]` runtime.
//!
//! Two things came to it later, and neither brought a second runtime: [`links`] calls out through Fetch, and here
//! Hyperman serves the same `Router` beside axum's own server. One signal drains both.
//!
//! ```sh
//! cargo run -p tokio-app
//! curl --json '{"url": "http://127.0.0.1:8080/"}' http://127.0.0.1:3001/links      # Hyperman
//! curl http://127.0.0.1:3000/links                                                 # axum: the same list
//! curl -X POST http://127.0.0.1:3001/check
//! ```

#![forbid(unsafe_code)]

mod links;

use std::future::IntoFuture;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use clap::Parser;
use hyperman::Config;
use hyperman_fetch::Client;
use hyperman_tokio::TokioRuntime;
use hyperman_transport::{ListenOptions, Listener};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Remembers links, and whether they still lead anywhere.
#[derive(Parser)]
struct Options {
    /// Where axum's server listens; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:3000")]
    axum: SocketAddr,
    /// Where Hyperman listens; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:3001")]
    hyperman: SocketAddr,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "tokio-app: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> io::Result<()> {
    let runtime = TokioRuntime::current()?;
    let app = links::router(Client::new(runtime.clone()));
    let before = TcpListener::bind(options.axum).await.map_err(at("--axum", options.axum))?;
    let beside = Listener::bind_tcp(runtime.clone(), options.hyperman, &ListenOptions::default())
        .map_err(at("--hyperman", options.hyperman))?;
    let mut said = format!("axum      http://{}/links\n", before.local_addr()?);
    if let Some(address) = beside.local_addr()? {
        said += &format!("hyperman  http://{address}/links\n");
    }
    // Where nobody reads that, it serves all the same.
    let _ = io::stdout().write_all(said.as_bytes());
    serve_both(runtime, before, beside, app).await
}

/// Adds to an error which address it is about.
fn at(option: &'static str, address: SocketAddr) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{option} {address}: {error}"))
}

/// Serves until SIGINT or SIGTERM; whoever is being answered then still is.
async fn serve_both(
    runtime: TokioRuntime,
    before: TcpListener,
    beside: Listener<TokioRuntime>,
    app: Router,
) -> io::Result<()> {
    let (end, ended) = oneshot::channel::<()>();
    let axum = axum::serve(before, app.clone()).with_graceful_shutdown(async {
        // The sender is never used but to be dropped.
        let _ = ended.await;
    });
    let hyperman = hyperman::serve(runtime, beside, app, Config::default());
    let shutdown = hyperman.shutdown_handle();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let ending = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        drop(end);
        shutdown.drain();
        Ok(())
    };
    tokio::try_join!(axum.into_future(), hyperman, ending)?;
    Ok(())
}
