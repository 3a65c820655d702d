//! The program as it is started, watched through its own server while one of its fetches takes long.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyperman::{Body, Config, serve, service_fn};
use hyperman_fetch::Client;
use hyperman_smol::SmolLocal;
use hyperman_transport::{ListenOptions, Listener};
use serde_json::{Value, json};
use smol::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use smol::process::{Child, Command};
use smol::stream::StreamExt;
use smol::{LocalExecutor, Timer, future};

/// Longer than anything here takes on a busy machine; a test that hangs ends.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn work_is_shared_out_and_can_be_watched() {
    on_an_executor(async |runtime, site| {
        let urls: Vec<String> = ["/a", "/held", "/missing", "/b"].iter().map(|path| site.url(path)).collect();
        let mut program = start(&["--at-once", "2"], &urls);
        let mut errors = BufReader::new(program.stderr.take().expect("a pipe")).lines();
        let line = errors.next().await.expect("a line").expect("text");
        let watch = line.strip_prefix("watch at ").expect("where to watch").to_owned();
        let mut lines = BufReader::new(program.stdout.take().expect("a pipe")).lines();

        // The other worker does everything else, one after the other.
        for (count, path) in
            [(1, "/a: 200, 5 bytes, "), (2, "/missing: the server answered 404"), (3, "/b: 200, 5 bytes, ")]
        {
            let line = lines.next().await.expect("a line").expect("text");
            assert!(line.starts_with(&format!("[{count}/4] {}", site.url(path))), "{line}");
        }
        let client = Client::builder(runtime).timeout(PATIENCE).build();
        let jobs = client.get(format!("{watch}jobs")).send().await.expect("an answer");
        let mut jobs: Vec<Value> = jobs.json().await.expect("JSON");
        for job in &mut jobs {
            assert!(job["millis"].take().is_u64());
        }
        let job = |path: &str, bytes: u64| json!({ "url": site.url(path), "bytes": bytes, "millis": null });
        let with = |mut job: Value, more: Value| {
            job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            job
        };
        assert_eq!(
            jobs,
            [
                with(job("/a", 5), json!({ "state": "done", "status": 200 })),
                with(job("/held", 0), json!({ "state": "fetching" })),
                with(
                    job("/missing", 0),
                    json!({ "state": "failed", "reason": "the server answered 404 Not Found" })
                ),
                with(job("/b", 5), json!({ "state": "done", "status": 200 })),
            ]
        );
        let page = client.get(&*watch).send().await.expect("an answer").text().await.expect("text");
        assert!(page.starts_with("2 done, 1 failed, 1 under way, 0 waiting; 10 bytes in "), "{page}");
        let refused = client.post(&*watch).send().await.expect("an answer");
        assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);

        site.release.close();
        let line = lines.next().await.expect("a line").expect("text");
        assert!(line.starts_with(&format!("[4/4] {}", site.url("/held: 200, 5 bytes, "))), "{line}");
        let sum = lines.next().await.expect("a line").expect("text");
        assert!(sum.starts_with("3 done, 1 failed; 15 bytes in "), "{sum}");
        assert_eq!(program.status().await.expect("a status").code(), Some(1));
    });
}

#[test]
fn all_are_under_way_at_once_and_success_is_told() {
    on_an_executor(async |_, site| {
        let urls: Vec<String> = (0..20).map(|_| site.url("/held")).collect();
        let mut program = start(&["-n", "20"], &urls);
        for _ in 0..20 {
            site.arrived.recv().await.expect("a request");
        }
        site.release.close();
        assert_eq!(program.status().await.expect("a status").code(), Some(0));
        let mut printed = String::new();
        program.stdout.take().expect("a pipe").read_to_string(&mut printed).await.expect("text");
        assert!(printed.contains("\n20 done, 0 failed; 100 bytes in "), "{printed}");
    });
}

#[test]
fn a_reader_that_has_enough_ends_it_without_a_word() {
    on_an_executor(async |_, site| {
        let mut program = start(&["-n", "1"], &[site.url("/a"), site.url("/b")]);
        drop(program.stdout.take());
        assert_eq!(program.status().await.expect("a status").code(), Some(1));
        let mut said = String::new();
        program.stderr.take().expect("a pipe").read_to_string(&mut said).await.expect("text");
        assert!(said.starts_with("watch at ") && said.lines().count() == 1, "{said}");
    });
}

#[test]
fn an_address_in_use_is_named() {
    on_an_executor(async |_, site| {
        let taken = site.address.to_string();
        let mut program = start(&["--status", &taken], &[site.url("/a")]);
        assert_eq!(program.status().await.expect("a status").code(), Some(2));
        let mut said = String::new();
        program.stderr.take().expect("a pipe").read_to_string(&mut said).await.expect("text");
        assert!(said.starts_with(&format!("smol-app: --status {taken}: Address already in use")), "{said}");
    });
}

fn start(options: &[&str], urls: &[String]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_smol-app"))
        .args(options)
        .args(urls)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program starts")
}

/// Runs a test beside the site that it fetches from.
fn on_an_executor(test: impl AsyncFnOnce(SmolLocal, &Site)) {
    let executor = Rc::new(LocalExecutor::new());
    let late = async {
        Timer::after(PATIENCE).await;
        panic!("hangs");
    };
    let test = async {
        let runtime = SmolLocal::new(&executor);
        let site = Site::start(&executor, runtime.clone());
        test(runtime, &site).await;
    };
    smol::block_on(executor.run(future::or(test, late)));
}

struct Site {
    address: SocketAddr,
    /// Hears of each request for what is held.
    arrived: smol::channel::Receiver<()>,
    /// Closed to let go of what is held.
    release: smol::channel::Receiver<()>,
    /// While there is a sender, the channel is open.
    _hold: smol::channel::Sender<()>,
}

impl Site {
    fn start(executor: &LocalExecutor<'static>, runtime: SmolLocal) -> Self {
        let listener =
            Listener::bind_tcp(runtime.clone(), (Ipv4Addr::LOCALHOST, 0).into(), &ListenOptions::default())
                .expect("a port");
        let address = listener.local_addr().expect("an address").expect("of TCP");
        let (tell, arrived) = smol::channel::unbounded();
        let (hold, release) = smol::channel::bounded::<()>(1);
        let held = release.clone();
        let service = service_fn(move |request: Request<Body>| {
            let (tell, held) = (tell.clone(), held.clone());
            async move {
                match request.uri().path() {
                    "/missing" => {
                        let mut answer = Response::new(Body::empty());
                        *answer.status_mut() = StatusCode::NOT_FOUND;
                        return Ok::<_, Infallible>(answer);
                    }
                    "/held" => {
                        let _ = tell.try_send(());
                        let _ = held.recv().await; // until it is closed
                    }
                    _ => {}
                }
                Ok(Response::new(Body::from("12345")))
            }
        });
        executor.spawn(serve(runtime, listener, service, Config::default())).detach();
        Site { address, arrived, release, _hold: hold }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}
