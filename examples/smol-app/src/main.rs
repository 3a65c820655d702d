//! Fetches a list of URLs, several at once, and says what came of each. How far it is can be watched in a browser or
//! with curl meanwhile: a small server runs on the same executor, on the same thread.
//!
//! ```sh
//! cargo run -p smol-app -- -n 4 http://127.0.0.1:8080/README.md http://127.0.0.1:8080/Cargo.lock
//! cargo run -p smol-app < urls.txt      # says where to watch it
//! ```
//!
//! Exits with 0 when all came, with 1 when some did not, with 2 when it could not begin.

#![forbid(unsafe_code)]

mod board;
mod status;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use board::{Board, State};
use clap::Parser;
use hyperman::{Config, serve};
use hyperman_fetch::{Client, Error};
use hyperman_smol::SmolLocal;
use hyperman_transport::{ListenOptions, Listener};
use smol::LocalExecutor;

/// Fetches URLs and sums up what came of it.
#[derive(Parser)]
struct Options {
    /// What to fetch; without any, standard input names one a line.
    urls: Vec<String>,
    /// How many are under way at once.
    #[arg(long, short = 'n', default_value_t = 8)]
    at_once: usize,
    /// How many seconds one may take.
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Where the state is served; port 0 picks one.
    #[arg(long, default_value = "127.0.0.1:0")]
    status: SocketAddr,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let executor = Rc::new(LocalExecutor::new());
    let ended = smol::block_on(executor.run(run(&executor, options)))
        .and_then(|board| writeln!(io::stdout(), "{board}").map(|()| board.failures()));
    match ended {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        // `| head` has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "smol-app: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(executor: &Rc<LocalExecutor<'static>>, options: Options) -> io::Result<Rc<Board>> {
    let runtime = SmolLocal::new(executor);
    let board = Rc::new(Board::new(urls(options.urls)?));
    let listener = Listener::bind_tcp(runtime.clone(), options.status, &ListenOptions::default())
        .map_err(|error| io::Error::new(error.kind(), format!("--status {}: {error}", options.status)))?;
    if let Some(address) = listener.local_addr()? {
        // Where nobody reads that, the work is done all the same.
        let _ = writeln!(io::stderr(), "watch at http://{address}/");
    }
    let server = serve(runtime.clone(), listener, status::service(&board), Config::default());
    let shutdown = server.shutdown_handle();
    let server = executor.spawn(server);

    let client = Client::builder(runtime).timeout(Duration::from_secs(options.patience)).build();
    let workers: Vec<_> = (0..options.at_once.max(1))
        .map(|_| executor.spawn(work(client.clone(), Rc::clone(&board))))
        .collect();
    for worker in workers {
        worker.await?; // the first that fails ends the others, by dropping them
    }
    shutdown.drain();
    server.await?;
    Ok(board)
}

/// Takes one job after the other, until there is none left. Fails when what came of one cannot be said.
async fn work(client: Client<SmolLocal>, board: Rc<Board>) -> io::Result<()> {
    while let Some((job, url)) = board.take() {
        let end = match fetch(&client, &board, job, &url).await {
            Ok(status) => State::Done { status },
            Err(error) => State::Failed { reason: error.kind().to_string() },
        };
        writeln!(io::stdout(), "{}", board.finish(job, end))?;
    }
    Ok(())
}

async fn fetch(client: &Client<SmolLocal>, board: &Board, job: usize, url: &str) -> Result<u16, Error> {
    let mut answer = client.get(url).send().await?.error_for_status()?;
    while let Some(piece) = answer.chunk().await? {
        board.add(job, piece.len());
    }
    Ok(answer.status().as_u16())
}

fn urls(given: Vec<String>) -> io::Result<Vec<String>> {
    if !given.is_empty() {
        return Ok(given);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
