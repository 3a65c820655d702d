//! The program as it is started, with both of its servers asked for the same things.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyperman::{Body, Config, serve, service_fn};
use hyperman_fetch::Client;
use hyperman_tokio::TokioRuntime;
use hyperman_transport::{ListenOptions, Listener};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine; a test that hangs ends.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_one_server_stores_the_other_shows() {
    let site = Site::start();
    let program = Program::start().await;
    let client = client();
    let (axum, hyperman) = (&program.axum, &program.hyperman);

    let fine =
        client.post(axum).json(&json!({ "url": site.url("/fine") })).send().await.expect("axum answers");
    assert_eq!(fine.status(), StatusCode::CREATED);
    assert_eq!(fine.headers()["location"], "/links/1");
    let gone = client
        .post(hyperman)
        .json(&json!({ "url": site.url("/gone") }))
        .send()
        .await
        .expect("hyperman answers");
    assert_eq!(gone.status(), StatusCode::CREATED);

    let expected = json!([
        { "id": 1, "url": site.url("/fine"), "state": "alive", "status": 200, "title": "Fine & dandy" },
        { "id": 2, "url": site.url("/gone"), "state": "broken", "reason": "the server answered 404 Not Found" },
    ]);
    for url in [axum, hyperman] {
        let list: Value = client.get(url).send().await.expect("a list").json().await.expect("JSON");
        assert_eq!(list, expected);
        let checked = client.post(url.replace("/links", "/check")).send().await.expect("a check");
        assert_eq!(checked.json::<Value>().await.expect("JSON"), expected);
    }
    // One request for the title and two checks.
    assert_eq!(site.visits("/fine"), 3);

    let removed = client.delete(format!("{hyperman}/1")).send().await.expect("an answer");
    assert_eq!(removed.status(), StatusCode::NO_CONTENT);
    let shown = client.get(format!("{axum}/1")).send().await.expect("an answer");
    assert_eq!(shown.status(), StatusCode::NOT_FOUND);
    let refused = client.post(axum).json(&json!({ "url": "ftp://h/" })).send().await.expect("an answer");
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.text().await.expect("a reason"), "ftp: links are not followed\n");
    assert!(program.end().await.success());
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let taken = taken.local_addr().expect("an address");
    for (option, other) in [("--axum", "--hyperman"), ("--hyperman", "--axum")] {
        let ended = Command::new(env!("CARGO_BIN_EXE_tokio-app"))
            .args([option, &taken.to_string(), other, "127.0.0.1:0"])
            .output()
            .await
            .expect("the program starts");
        assert_eq!(ended.status.code(), Some(1));
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.starts_with(&format!("tokio-app: {option} {taken}: Address already in use")), "{said}");
    }
}

#[tokio::test]
async fn a_signal_drains_both() {
    let site = Site::start();
    let program = Program::start().await;
    let client = client();
    let slow = |url: &str| {
        let post = client.post(url).json(&json!({ "url": site.url("/slow") })).send();
        tokio::spawn(async move { post.await.map(|answer| answer.status()) })
    };
    let (at_axum, at_hyperman) = (slow(&program.axum), slow(&program.hyperman));
    let both = timeout(PATIENCE, site.pages.arrived.acquire_many(2)).await;
    both.expect("each asks for the slow page").expect("still open").forget();

    program.signal();
    for url in [&program.axum, &program.hyperman] {
        let address = address_of(url);
        let refuses = async { while TcpStream::connect(address).await.is_ok() {} };
        timeout(PATIENCE, refuses).await.expect("nobody listens any more");
    }
    assert!(!at_axum.is_finished() && !at_hyperman.is_finished());

    site.pages.release.notify_waiters();
    assert_eq!(at_axum.await.expect("a task").expect("an answer"), StatusCode::CREATED);
    assert_eq!(at_hyperman.await.expect("a task").expect("an answer"), StatusCode::CREATED);
    assert!(program.end().await.success());
}

fn client() -> Client<TokioRuntime> {
    Client::builder(TokioRuntime::current().expect("a runtime")).timeout(PATIENCE).build()
}

fn address_of(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").trim_end_matches("/links").parse().expect("an address")
}

/// The program under test; killed when the test fails before its end.
struct Program {
    child: Child,
    axum: String,
    hyperman: String,
    /// Kept open: the program must be able to write.
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    async fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tokio-app"))
            .args(["--axum", "127.0.0.1:0", "--hyperman", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut url = async |name: &str| {
            let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("text");
            let line = line.expect("a line for each server");
            line.strip_prefix(name).expect("its name first").trim().to_owned()
        };
        let (axum, hyperman) = (url("axum").await, url("hyperman").await);
        Program { child, axum, hyperman, _lines: lines }
    }

    fn signal(&self) {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("a running child");
        kill_process(id, Signal::TERM).expect("a signal");
    }

    async fn end(mut self) -> ExitStatus {
        if self.child.try_wait().expect("a child").is_none() {
            self.signal();
        }
        timeout(PATIENCE, self.child.wait()).await.expect("the program ends").expect("a status")
    }
}

/// The pages that the links lead to.
struct Site {
    address: SocketAddr,
    pages: Arc<Pages>,
}

struct Pages {
    visits: Mutex<Vec<String>>,
    /// A permit for each request for the slow page.
    arrived: Semaphore,
    release: Notify,
}

impl Site {
    fn start() -> Self {
        let runtime = TokioRuntime::current().expect("a runtime");
        let listener =
            Listener::bind_tcp(runtime.clone(), (Ipv4Addr::LOCALHOST, 0).into(), &ListenOptions::default())
                .expect("a port");
        let address = listener.local_addr().expect("an address").expect("of TCP");
        let pages =
            Arc::new(Pages { visits: Mutex::default(), arrived: Semaphore::new(0), release: Notify::new() });
        let service = {
            let pages = Arc::clone(&pages);
            service_fn(move |request| page(Arc::clone(&pages), request))
        };
        tokio::spawn(serve(runtime, listener, service, Config::default()));
        Site { address, pages }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn visits(&self, path: &str) -> usize {
        self.pages.visits.lock().expect("no panic").iter().filter(|visit| *visit == path).count()
    }
}

async fn page(pages: Arc<Pages>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path().to_owned();
    pages.visits.lock().expect("no panic").push(path.clone());
    let (status, html) = match path.as_str() {
        "/fine" => (StatusCode::OK, "<!doctype html><Title lang=en>\n Fine &\n dandy </TITLE><p>Text"),
        "/slow" => {
            let released = pages.release.notified();
            pages.arrived.add_permits(1);
            released.await;
            (StatusCode::OK, "<title>At last</title>")
        }
        _ => (StatusCode::NOT_FOUND, "<title>Gone</title>"),
    };
    let mut answer = Response::new(Body::from(html));
    *answer.status_mut() = status;
    Ok(answer)
}
