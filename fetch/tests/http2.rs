//! HTTP/2: many exchanges on one connection, and what becomes of them when the server ends some or all.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::{BodyExt as _, StreamBody};
use hyperman::{Listen, Server, Shutdown, service_fn};
use hyperman_fetch::error::ErrorKind;
use hyperman_fetch::{Body, Client, Notice};
use hyperman_transport::Runtime;

mod loops;

/// A server of ours in a thread.
struct Ours {
    url: String,
    shutdown: Shutdown,
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.shutdown.cut();
    }
}

/// Says which method, version and body it was asked with; `/long` is 8 MiB, `/trailers` has some.
async fn answer(request: Request<hyperman::Body>) -> Result<Response<Wide>, Infallible> {
    let path = request.uri().path().to_owned();
    let said = format!("{} {:?} ", request.method(), request.version());
    let body = request.into_body().collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_else(|_| Bytes::from_static(b"cut off"));
    let frames: Vec<Result<http_body::Frame<Bytes>, Infallible>> = match &*path {
        "/long" => (0..512).map(|_| Ok(http_body::Frame::data(Bytes::from(vec![b'x'; 16 << 10])))).collect(),
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("sum", "42".parse().unwrap());
            vec![Ok(http_body::Frame::data("text".into())), Ok(http_body::Frame::trailers(trailers))]
        }
        _ => vec![Ok(http_body::Frame::data([said.as_bytes(), &body].concat().into()))],
    };
    Ok(Response::new(StreamBody::new(Frames(frames.into_iter()))))
}

type Wide = StreamBody<Frames>;

struct Frames(std::vec::IntoIter<Result<http_body::Frame<Bytes>, Infallible>>);

impl futures_core::Stream for Frames {
    type Item = Result<http_body::Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

fn ours() -> Ours {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let bound = Server::new(service_fn(answer)).listen("127.0.0.1:0").bind().unwrap();
        let Listen::Tcp(address) = bound.addresses().first().unwrap().clone() else { panic!("TCP") };
        let told = |shutdown| {
            tell.send((address.port(), shutdown)).unwrap();
            Ok(())
        };
        bound.run_with(told).unwrap();
    });
    let (port, shutdown) = told.recv().unwrap();
    Ours { url: format!("http://127.0.0.1:{port}"), shutdown }
}

fn client<R: Runtime>(runtime: R) -> Client<R> {
    Client::builder(runtime).http2_prior_knowledge().timeout(Duration::from_secs(30)).build()
}

/// Counts new connections and repeated attempts.
#[derive(Clone, Default)]
struct Seen {
    connected: Arc<AtomicUsize>,
    again: Arc<AtomicUsize>,
}

impl Seen {
    fn watch(&self) -> impl FnMut(Notice<'_>) + Send + 'static {
        let Seen { connected, again } = self.clone();
        move |notice: Notice<'_>| match notice {
            Notice::Connected { reused: false, .. } => drop(connected.fetch_add(1, Ordering::SeqCst)),
            Notice::Retry => drop(again.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
    }

    fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    fn again(&self) -> usize {
        self.again.load(Ordering::SeqCst)
    }
}

/// All of them at once, each woken by itself and polled only then, as in tasks of their own.
async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    struct Flag(std::sync::atomic::AtomicBool, std::sync::Mutex<std::task::Waker>);
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
            self.1.lock().unwrap().wake_by_ref();
        }
    }
    let waker = std::future::poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    let mut all: Vec<_> = futures
        .into_iter()
        .map(|future| {
            (Box::pin(future), None, Arc::new(Flag(true.into(), std::sync::Mutex::new(waker.clone()))))
        })
        .collect();
    std::future::poll_fn(|cx| {
        for (future, output, flag) in &mut all {
            *flag.1.lock().unwrap() = cx.waker().clone();
            if output.is_none() && flag.0.swap(false, Ordering::SeqCst) {
                let waker = std::task::Waker::from(flag.clone());
                if let Poll::Ready(ready) = future.as_mut().poll(&mut std::task::Context::from_waker(&waker))
                {
                    *output = Some(ready);
                }
            }
        }
        if all.iter().all(|(_, output, _)| output.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, output, _)| output).collect()
}

async fn methods_bodies_and_trailers<R: Runtime>(runtime: R) {
    let (server, seen, client) = (ours(), Seen::default(), client(runtime));
    let url = |path: &str| format!("{}{path}", server.url);
    let answer = client.get(url("/")).watch(seen.watch()).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(answer.text().await.unwrap(), "GET HTTP/2.0 ");
    let answer = client.head(url("/")).watch(seen.watch()).send().await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "");
    let answer = client.post(url("/")).body("whole").watch(seen.watch()).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "POST HTTP/2.0 whole");
    // With more patience than the client has time: the body goes out because 100 (Continue) came.
    let held = client.post(url("/")).body("held").expect_continue(Duration::from_secs(60));
    let answer = held.watch(seen.watch()).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "POST HTTP/2.0 held");
    // Far more than the windows hold, from a stream.
    let pieces: Vec<_> =
        (0..128).map(|_| Ok(http_body::Frame::data(Bytes::from(vec![b'y'; 10_000])))).collect();
    let body = Body::stream(StreamBody::new(Frames(pieces.into_iter())));
    let answer = client.post(url("/")).body(body).watch(seen.watch()).send().await.unwrap();
    assert_eq!(answer.bytes().await.unwrap().len(), "POST HTTP/2.0 ".len() + 1_280_000);
    let answer = client.get(url("/long")).watch(seen.watch()).send().await.unwrap();
    assert_eq!(answer.bytes().await.unwrap().len(), 8 << 20);
    let answer = client.get(url("/trailers")).watch(seen.watch()).send().await.unwrap();
    let (text, trailers) = answer.bytes_and_trailers().await.unwrap();
    assert_eq!((&*text, trailers.unwrap()["sum"].as_bytes()), (&b"text"[..], &b"42"[..]));
    assert_eq!(seen.connected(), 1);
}

async fn a_hundred_at_once_share_one_connection<R: Runtime>(runtime: R) {
    let (server, seen, client) = (ours(), Seen::default(), client(runtime));
    let asked = (0..100).map(|number| {
        let (client, seen) = (&client, &seen);
        let request = client.post(format!("{}/", server.url)).body(format!("{number}")).watch(seen.watch());
        async move { request.send().await.unwrap().text().await.unwrap() }
    });
    for (number, text) in together(asked.collect()).await.into_iter().enumerate() {
        assert_eq!(text, format!("POST HTTP/2.0 {number}"));
    }
    assert_eq!(seen.connected(), 1);
}

/// As tasks on several threads, where each may drive the connection while another one waits for its lock.
#[test]
fn a_hundred_tasks_on_threads_share_one_connection() {
    loops::watched(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let (server, seen) = (ours(), Seen::default());
        let client = client(hyperman_tokio::TokioRuntime::new(runtime.handle().clone()));
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let request =
                    client.post(format!("{}/", server.url)).body(format!("{number}")).watch(seen.watch());
                runtime.spawn(async move { request.send().await?.text().await })
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            let text = runtime.block_on(task).unwrap().unwrap();
            assert_eq!(text, format!("POST HTTP/2.0 {number}"));
        }
        assert_eq!(seen.connected(), 1);
    });
}

/// Whoever was about to drive the connection goes away, or does not care: the others go on.
async fn answers_that_are_left_lying_hold_nobody_up<R: Runtime>(runtime: R) {
    let (server, seen, client) = (ours(), Seen::default(), client(runtime));
    let long = format!("{}/long", server.url);
    let mut lying = client.get(&long).watch(seen.watch()).send().await.unwrap();
    assert!(lying.chunk().await.unwrap().is_some());
    let asked = (0..6).map(|_| async { client.get(&long).watch(seen.watch()).send().await.unwrap() });
    let mut answers = together(asked.collect()).await;
    // Half of them are polled once more and then dropped.
    for mut answer in answers.split_off(3) {
        let mut chunk = pin!(answer.chunk());
        let _ = std::future::poll_fn(|cx| Poll::Ready(chunk.as_mut().poll(cx).is_ready())).await;
    }
    let rest = answers.into_iter().map(|answer| async { answer.bytes().await.unwrap().len() });
    assert_eq!(together(rest.collect()).await, [8 << 20; 3]);
    assert!(lying.chunk().await.unwrap().is_some());
    drop(lying);
    let text = client.get(format!("{}/", server.url)).watch(seen.watch()).send().await.unwrap().text().await;
    assert_eq!((text.unwrap().as_str(), seen.connected()), ("GET HTTP/2.0 ", 1));
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A scripted server's end of a connection, in frames.
struct Raw {
    stream: TcpStream,
}

impl Raw {
    fn accept(listener: &TcpListener) -> Raw {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface).unwrap();
        assert_eq!(preface, PREFACE);
        let mut raw = Raw { stream };
        raw.send(4, 0, 0, &[]);
        raw
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.stream.write_all(&frame).unwrap();
    }

    /// Kind, stream and payload of the next frame of this kind.
    fn next(&mut self, kind: u8) -> (u32, Vec<u8>) {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).unwrap();
            if head[3] == kind {
                return (u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload);
            }
        }
    }

    /// `:status: 200`, and END_STREAM if that is all.
    fn head(&mut self, stream: u32, end: bool) {
        self.send(1, 4 | u8::from(end), stream, &[0x88]);
    }

    fn until_closed(mut self) {
        let _ = self.stream.read_to_end(&mut Vec::new());
    }
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;

/// Runs a script beside a case on our own loop.
fn scripted<F: Future>(
    script: impl FnOnce(TcpListener) + Send + 'static,
    case: impl FnOnce(Client<hyperman_loop::Handle>, String) -> F,
) -> F::Output {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let script = thread::spawn(move || script(listener));
    let outcome = hyperman_loop::block_on(|handle| case(client(handle), url)).unwrap();
    script.join().unwrap();
    outcome
}

#[test]
fn a_request_that_a_goaway_excludes_is_made_again_whatever_its_method() {
    let seen = Seen::default();
    let script = |listener: TcpListener| {
        let mut first = Raw::accept(&listener);
        first.next(HEADERS);
        first.send(GOAWAY, 0, 0, &[0; 8]);
        let mut second = Raw::accept(&listener);
        let (stream, _) = second.next(HEADERS);
        second.head(stream, true);
        second.until_closed();
    };
    let watch = seen.watch();
    let status = scripted(script, |client, url| async move {
        client.post(&url).body("once").watch(watch).send().await.unwrap().status()
    });
    assert_eq!((status.as_u16(), seen.connected(), seen.again()), (200, 2, 1));
}

#[test]
fn a_refused_request_is_made_again_on_another_connection() {
    let seen = Seen::default();
    let script = |listener: TcpListener| {
        let mut first = Raw::accept(&listener);
        let (stream, _) = first.next(HEADERS);
        first.send(RST_STREAM, 0, stream, &7_u32.to_be_bytes());
        let mut second = Raw::accept(&listener);
        let (stream, _) = second.next(HEADERS);
        second.head(stream, true);
        second.until_closed();
    };
    let watch = seen.watch();
    let status = scripted(script, |client, url| async move {
        client.post(&url).body("once").watch(watch).send().await.unwrap().status()
    });
    assert_eq!((status.as_u16(), seen.connected(), seen.again()), (200, 2, 1));
}

#[test]
fn a_reset_is_a_typed_error_that_says_that_the_request_may_have_been_processed() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes());
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        raw.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes());
        raw.until_closed();
    };
    let (before, after) = scripted(script, |client, url| async move {
        let before = client.get(&url).send().await.unwrap_err();
        (before, client.get(&url).send().await.unwrap().bytes().await.unwrap_err())
    });
    for error in [before, after] {
        let ErrorKind::Http2Stream(reset) = error.kind() else { panic!("{error:?}") };
        assert_eq!(u32::from(reset.reason()), 2);
        assert!(error.request_may_have_been_processed());
    }
}

#[test]
fn a_reset_behind_a_complete_answer_is_ignored() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        raw.send(0, 1, stream, b"early");
        raw.send(RST_STREAM, 0, stream, &0_u32.to_be_bytes());
        raw.until_closed();
    };
    let text = scripted(script, |client, url| async move {
        // An upload that never ends.
        let body = Body::stream(StreamBody::new(Endless));
        client.post(&url).body(body).send().await.unwrap().text().await.unwrap()
    });
    assert_eq!(text, "early");
}

struct Endless;

impl futures_core::Stream for Endless {
    type Item = Result<http_body::Frame<Bytes>, Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&[b'z'; 4096])))))
    }
}

#[test]
fn a_dropped_answer_cancels_its_stream_and_the_connection_stays() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, false);
        let (reset, reason) = raw.next(RST_STREAM);
        assert_eq!((reset, reason), (stream, vec![0, 0, 0, 8]));
        let (stream, _) = raw.next(HEADERS);
        raw.head(stream, true);
        raw.until_closed();
    };
    let status = scripted(script, |client, url| async move {
        drop(client.get(&url).send().await.unwrap());
        client.get(&url).send().await.unwrap().status()
    });
    assert_eq!(status.as_u16(), 200);
}

#[test]
fn the_servers_limit_of_streams_is_kept_to() {
    let script = |listener: TcpListener| {
        let mut raw = Raw::accept(&listener);
        // SETTINGS_MAX_CONCURRENT_STREAMS 1
        raw.send(4, 0, 0, &[0, 3, 0, 0, 0, 1]);
        let (first, _) = raw.next(HEADERS);
        raw.head(first, true);
        for _ in 0..3 {
            let (stream, _) = raw.next(HEADERS);
            // Another one would have come by now, before this answer to a PING.
            raw.send(6, 0, 0, &[1; 8]);
            let mut head = [0; 9];
            loop {
                raw.stream.read_exact(&mut head).unwrap();
                let length = usize::from(head[2]);
                raw.stream.read_exact(&mut vec![0; length]).unwrap();
                assert_ne!(head[3], HEADERS, "a stream too many");
                if head[3] == 6 {
                    break;
                }
            }
            raw.head(stream, true);
        }
        raw.until_closed();
    };
    scripted(script, |client, url| async move {
        client.get(&url).send().await.unwrap();
        let asked = (0..3).map(|_| async { client.get(&url).send().await.unwrap().bytes().await.unwrap() });
        together(asked.collect()).await;
    });
}

#[test]
fn an_idle_connection_that_the_server_ended_is_not_used() {
    let (seen, (tell, told)) = (Seen::default(), mpsc::channel());
    let script = move |listener: TcpListener| {
        let mut first = Raw::accept(&listener);
        let (stream, _) = first.next(HEADERS);
        first.head(stream, true);
        first.send(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
        drop(first);
        tell.send(()).unwrap();
        let mut second = Raw::accept(&listener);
        let (stream, _) = second.next(HEADERS);
        second.head(stream, true);
        second.until_closed();
    };
    let watched = seen.clone();
    scripted(script, |client, url| async move {
        client.get(&url).watch(watched.watch()).send().await.unwrap().bytes().await.unwrap();
        told.recv().unwrap();
        // The client takes a pause of a millisecond seriously; this loop has not turned since.
        thread::sleep(Duration::from_millis(2));
        client.post(&url).body("x").watch(watched.watch()).send().await.unwrap();
    });
    assert_eq!((seen.connected(), seen.again()), (2, 0));
}

#[test]
fn nghttpd_is_asked_over_http2() {
    let folder = std::env::temp_dir().join(format!("hyperman-fetch-http2-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("file"), vec![b'n'; 3_000_000]).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let started = std::process::Command::new("nghttpd")
        .args(["--no-tls", "-a", "127.0.0.1", "-d"])
        .arg(&folder)
        .arg(port.to_string())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut server = started.expect("nghttpd, of Debian's nghttp2-server");
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(server.try_wait().unwrap().is_none(), "nghttpd has ended");
        thread::yield_now();
    }
    let url = format!("http://127.0.0.1:{port}/file");
    let outcome = hyperman_loop::block_on(|handle| async move {
        let (client, seen) = (client(handle), Seen::default());
        let asked = (0..20).map(|_| {
            let request = client.request(Method::GET, &url).watch(seen.watch());
            async move { request.send().await?.bytes().await.map(|bytes| bytes.len()) }
        });
        (together(asked.collect()).await, seen.connected())
    });
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (lengths, connected) = outcome.unwrap();
    assert_eq!(connected, 1);
    assert_eq!(lengths.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), [3_000_000; 20]);
}

#[cfg(feature = "tls")]
#[test]
fn alpn_decides_and_many_share_the_first_handshake() {
    use hyperman_fetch::tls::{Authorities, ClientTls, OFFERED};
    use hyperman_transport::tls::{ServerTls, development_certificate};
    for (offered, version) in
        [(&["h2", "http/1.1"][..], Version::HTTP_2), (&["http/1.1"][..], Version::HTTP_11)]
    {
        let made = development_certificate(["localhost"]).unwrap();
        let tls = ServerTls::builder().identity(made.identity()).alpn(offered).build().unwrap();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let bound = Server::new(service_fn(answer)).listen_tls("127.0.0.1:0", &tls).bind().unwrap();
            let Listen::Tcp(address) = bound.addresses().first().unwrap().clone() else { panic!("TCP") };
            let told = |shutdown| {
                tell.send((address.port(), shutdown)).unwrap();
                Ok(())
            };
            bound.run_with(told).unwrap();
        });
        let (port, shutdown) = told.recv().unwrap();
        let server = Ours { url: format!("https://localhost:{port}/"), shutdown };
        let trust = Authorities::from_pem(&made.certificate_pem);
        let trust = ClientTls::builder().only_authorities(trust).alpn(OFFERED).build().unwrap();
        let seen = Seen::default();
        hyperman_loop::block_on(|handle| async {
            let client = Client::builder(handle).tls(&trust).http2(true).build();
            let asked = (0..30).map(|_| {
                let request = client.get(&server.url).watch(seen.watch());
                async move {
                    let answer = request.send().await.unwrap();
                    (answer.version(), answer.text().await.unwrap())
                }
            });
            for answer in together(asked.collect()).await {
                assert_eq!(answer, (version, format!("GET {version:?} ")));
            }
            // An older version is spoken where that is asked for.
            let old = client.get(&server.url).version(Version::HTTP_10).send().await.unwrap();
            assert_eq!(old.text().await.unwrap(), "GET HTTP/1.0 ");
        })
        .unwrap();
        assert_eq!(seen.connected() == 1, version == Version::HTTP_2, "{} connections", seen.connected());
    }
}

on_every_loop! {
    methods_bodies_and_trailers
    a_hundred_at_once_share_one_connection
    answers_that_are_left_lying_hold_nobody_up
}
