//! Hundreds of requests at once on one client, to servers that answer some of them well and spoil others in every way:
//! each ends once, as its own answer says, whatever became of its neighbours, and no descriptor is left behind.
//!
//! One test, so that nobody else in this process opens descriptors meanwhile.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http::Method;
use hyperman_fetch::{Client, ErrorKind};
use hyperman_transport::Runtime;

mod frames;
mod loops;

use frames::{DATA, GOAWAY, HEADERS, PING, RST_STREAM, Raw, SETTINGS, together};

/// What is asked for, and what comes of it. `GET` may be repeated on a new connection where a kept one died, `POST` not, so
/// a server that hangs up without an answer is told by either.
const PATHS: &[(&str, &str, &[&str])] = &[
    ("GET", "/ok", &["200 ok"]),
    ("POST", "/ok", &["200 ok"]),
    ("GET", "/close", &["200 ok"]),
    ("GET", "/chunks", &["200 ok"]),
    ("GET", "/slow", &["200 ok"]),
    ("GET", "/more", &["200 ok"]),
    ("GET", "/none", &["204 "]),
    ("GET", "/cut", &["partial"]),
    ("GET", "/reset", &["partial"]),
    ("GET", "/chunk", &["partial"]),
    ("GET", "/length", &["protocol"]),
    ("GET", "/words", &["protocol"]),
    ("GET", "/empty", &["empty", "receive"]),
    ("POST", "/empty", &["empty", "receive", "stale"]),
    ("GET", "/never", &["timeout"]),
    ("POST", "/early", &["413 no"]),
];

/// How many of each are under way at once.
const EACH: usize = 25;

/// A body that no kernel holds.
const LARGE: usize = 32 << 20;

/// A server with a thread for each connection. Dropping it waits until all connections have ended.
struct Server {
    url: String,
    ended: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // All of them knock at once: none is to be turned away, and come back after a second.
        rustix::net::listen(&listener, 4096).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (ended, serve) = (Arc::<AtomicBool>::default(), Arc::new(serve));
        let end = ended.clone();
        let accepting = thread::spawn(move || {
            let mut running = Vec::new();
            loop {
                let (stream, _) = listener.accept().unwrap();
                if end.load(Ordering::SeqCst) {
                    break;
                }
                let serve = serve.clone();
                running.push(thread::spawn(move || serve(stream)));
            }
            running.into_iter().for_each(|thread| thread.join().unwrap());
        });
        Server { url, ended, accepting: Some(accepting) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        self.ended.store(true, Ordering::SeqCst);
        TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        self.accepting.take().unwrap().join().unwrap();
    }
}

fn h1_connection(stream: TcpStream) {
    let mut conn = Conn { stream, ahead: Vec::new() };
    while conn.answer() {}
}

struct Conn {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Conn {
    /// One request; false at the end of the connection.
    fn answer(&mut self) -> bool {
        let Some(head) = self.head() else { return false };
        let mut words = head.split(' ');
        let (_, path) = (words.next(), words.next().unwrap());
        match path {
            "/ok" => self.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            "/close" => {
                return self.last("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
            }
            "/chunks" => self
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"),
            "/slow" => {
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".split_inclusive(' ').for_each(|word| {
                    self.send(word);
                    thread::yield_now();
                })
            }
            "/more" => {
                self.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
            }
            "/none" => self.send("HTTP/1.1 204 No Content\r\n\r\n"),
            "/cut" => return self.last("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
            "/reset" => {
                rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
                return self.last("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
            }
            "/chunk" => return self.last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokX"),
            "/length" => self.send("HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok"),
            "/words" => self.send("220 ready when you are\r\n"),
            "/empty" => return false,
            "/never" => {}
            "/early" => {
                self.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
                // The rest of the upload, or what is on its way of it.
                let left = (LARGE - self.ahead.len()) as u64;
                self.ahead.clear();
                let _ = std::io::copy(&mut (&self.stream).take(left), &mut std::io::sink());
            }
            other => panic!("{other}"),
        }
        true
    }

    fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return Some(String::from_utf8(head).unwrap());
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece) {
                Ok(count @ 1..) => self.ahead.extend_from_slice(&piece[..count]),
                _ => return None,
            }
        }
    }

    fn send(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes());
    }

    fn last(&mut self, text: &str) -> bool {
        self.send(text);
        false
    }
}

/// What came of a request, in a word.
fn told(error: &hyperman_fetch::Error) -> &'static str {
    match error.kind() {
        _ if error.is_partial() => "partial",
        ErrorKind::Protocol(_) => "protocol",
        ErrorKind::EmptyReply => "empty",
        ErrorKind::Receive(_) | ErrorKind::Send(_) => "receive",
        ErrorKind::StaleConnection => "stale",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Http2Stream(_) => "stream",
        ErrorKind::Http2(_) => "connection",
        _ => "another error",
    }
}

async fn mixed_http1<R: Runtime>(runtime: R) {
    let server = Server::start(h1_connection);
    let url = &server.url;
    let client = Client::builder(runtime).timeout(Duration::from_secs(30)).build();
    let large = bytes::Bytes::from(vec![b'x'; LARGE]);
    // In turns, so that each kind has every other as its neighbour.
    let asked = (0..EACH).flat_map(|_| PATHS).map(|(method, path, expected)| {
        let request = client.request(method.parse::<Method>().unwrap(), format!("{url}{path}"));
        let request = match *path {
            "/early" => request.body(large.clone()),
            "/never" => request.timeout(Duration::from_millis(300)),
            _ => request,
        };
        async move {
            let outcome = async {
                let answer = request.send().await?;
                let status = answer.status().as_u16();
                Ok::<_, hyperman_fetch::Error>(format!("{status} {}", answer.text().await?))
            };
            let came = outcome.await.unwrap_or_else(|error| {
                assert!(error.request_may_have_been_processed(), "{method} {path}: {error:?}");
                told(&error).to_owned()
            });
            assert!(expected.contains(&&*came), "{method} {path}: {came}");
        }
    });
    assert_eq!(together(asked.collect()).await.len(), PATHS.len() * EACH);
    drop(client);
    drop(server);
}

/// What a server of HTTP/2 does with the stream of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Deed {
    Answer,
    Reset,
    Malformed,
    Short,
    Slow,
    Refuse,
}

const DEEDS: [Deed; 7] =
    [Deed::Answer, Deed::Reset, Deed::Malformed, Deed::Answer, Deed::Short, Deed::Slow, Deed::Refuse];

type Done = Arc<Mutex<BTreeMap<Deed, usize>>>;

/// Faults of streams, and a GOAWAY now and then: what it leaves out is asked for again elsewhere.
fn h2_connection(mut stream: TcpStream, done: &Done) {
    const LAST: u32 = 61;
    let mut preface = [0; frames::PREFACE.len()];
    stream.read_exact(&mut preface).unwrap();
    let mut raw = Raw { stream };
    raw.send(SETTINGS, 0, 0, &[]);
    let mut going = false;
    while let Some((kind, stream, payload)) = raw.frame() {
        if kind == SETTINGS && !payload.is_empty() {
            raw.send(SETTINGS, 1, 0, &[]);
        }
        if kind != HEADERS || (going && stream > LAST) {
            continue;
        }
        let deed = DEEDS[(stream as usize / 2) % DEEDS.len()];
        *done.lock().unwrap().entry(deed).or_default() += 1;
        match deed {
            Deed::Answer => {
                raw.head(stream, false);
                raw.send(DATA, 1, stream, b"ok");
            }
            Deed::Reset => raw.send(RST_STREAM, 0, stream, &2_u32.to_be_bytes()),
            // No `:status`: a field of the static table.
            Deed::Malformed => raw.send(HEADERS, 5, stream, &[0x90]),
            // `content-length: 9`
            Deed::Short => {
                raw.send(HEADERS, 4, stream, &[0x88, 0x0f, 13, 1, b'9']);
                raw.send(DATA, 1, stream, b"half");
            }
            Deed::Slow => {
                raw.head(stream, false);
                raw.send(DATA, 0, stream, b"o");
                thread::yield_now();
                raw.send(PING, 0, 0, &[0; 8]);
                raw.send(DATA, 1, stream, b"k");
            }
            Deed::Refuse => raw.send(RST_STREAM, 0, stream, &7_u32.to_be_bytes()),
        }
        if stream >= LAST && !going {
            going = true;
            raw.send(GOAWAY, 0, 0, &[LAST.to_be_bytes(), [0; 4]].concat());
        }
    }
}

async fn mixed_http2<R: Runtime>(runtime: R) {
    const REQUESTS: usize = 300;
    let done = Done::default();
    let deeds = done.clone();
    let server = Server::start(move |stream| h2_connection(stream, &deeds));
    // A neighbour whose connection is a fault as a whole.
    let bad_server = Server::start(|mut stream| {
        stream.read_exact(&mut [0; frames::PREFACE.len()]).unwrap();
        let mut raw = Raw { stream };
        raw.send(SETTINGS, 0, 0, &[]);
        for _ in 0..10 {
            raw.next(HEADERS);
        }
        // It is too short.
        raw.send(PING, 0, 0, &[0; 7]);
        raw.until_closed();
    });
    let client = Client::builder(runtime).http2_prior_knowledge().timeout(Duration::from_secs(20)).build();
    let asked = (0..REQUESTS + 10).map(|number| {
        let server = if number % 31 == 30 { &bad_server } else { &server };
        let request = client.post(&server.url);
        async move {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            Ok::<_, hyperman_fetch::Error>(format!("{status} {}", answer.text().await?))
        }
    });
    let mut came: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in together(asked.collect()).await {
        let word = outcome.unwrap_or_else(|error| told(&error).to_owned());
        *came.entry(word).or_default() += 1;
    }
    drop(client);
    drop((server, bad_server));
    let done = done.lock().unwrap();
    let of = |deed| done.get(&deed).copied().unwrap_or(0);
    // Whoever is refused four times hears of that.
    let refused = came.get("stream").copied().unwrap_or(0) - of(Deed::Reset) - of(Deed::Malformed);
    assert_eq!(came.get("connection"), Some(&10), "{came:?}");
    assert_eq!(came.get("partial").copied().unwrap_or(0), of(Deed::Short), "{came:?} {done:?}");
    assert_eq!(
        came.get("200 ok").copied().unwrap_or(0),
        of(Deed::Answer) + of(Deed::Slow),
        "{came:?} {done:?}"
    );
    assert_eq!(came.values().sum::<usize>(), REQUESTS + 10);
    assert!(refused * 4 <= of(Deed::Refuse), "{came:?} {done:?}");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn every_request_ends_once_and_nothing_is_left_behind() {
    // With its signals, tokio's first runtime opens a pair of sockets that the process keeps.
    drop(threads());
    let before = descriptors();
    loops::watched(|| {
        hyperman_loop::block_on(async |handle| {
            mixed_http1(handle.clone()).await;
            mixed_http2(handle).await;
        })
        .unwrap();
    });
    loops::watched(|| {
        let runtime = threads();
        let handle = hyperman_tokio::TokioRuntime::new(runtime.handle().clone());
        let task = runtime.spawn(async {
            mixed_http1(handle.clone()).await;
            mixed_http2(handle).await;
        });
        runtime.block_on(task).unwrap();
    });
    assert_eq!(descriptors(), before);
}
