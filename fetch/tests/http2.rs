//! HTTP/2: many exchanges on one connection.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::{BodyExt as _, StreamBody};
use hyperman::{Listen, Server, Shutdown, service_fn};
use hyperman_fetch::Body;
use hyperman_transport::Runtime;
use hyperman_transport::tls::ServerTls;

mod frames;
mod loops;

use frames::{Seen, client, together};

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
    let (port, shutdown) = started(None);
    Ours { url: format!("http://127.0.0.1:{port}"), shutdown }
}

/// Starts a server, over TLS if it is said how: its port, and what ends it.
fn started(tls: Option<ServerTls>) -> (u16, Shutdown) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let server = Server::new(service_fn(answer));
        let server = match &tls {
            Some(tls) => server.listen_tls("127.0.0.1:0", tls),
            None => server.listen("127.0.0.1:0"),
        };
        let bound = server.bind().unwrap();
        let Listen::Tcp(address) = bound.addresses().first().unwrap().clone() else { panic!("TCP") };
        let told = |shutdown| {
            tell.send((address.port(), shutdown)).unwrap();
            Ok(())
        };
        bound.run_with(told).unwrap();
    });
    told.recv().unwrap()
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

#[cfg(feature = "tls")]
#[test]
fn alpn_decides_and_many_share_the_first_handshake() {
    use hyperman_fetch::Client;
    use hyperman_fetch::tls::{Authorities, ClientTls, OFFERED};
    use hyperman_transport::tls::development_certificate;
    for (offered, version) in
        [(&["h2", "http/1.1"][..], Version::HTTP_2), (&["http/1.1"][..], Version::HTTP_11)]
    {
        let made = development_certificate(["localhost"]).unwrap();
        let tls = ServerTls::builder().identity(made.identity()).alpn(offered).build().unwrap();
        let (port, shutdown) = started(Some(tls));
        let server = Ours { url: format!("https://localhost:{port}/"), shutdown };
        let trust = Authorities::from_pem(&made.certificate_pem);
        let trust = ClientTls::builder().only_authorities(trust).alpn(OFFERED).build().unwrap();
        let seen = Seen::default();
        hyperman_loop::block_on(|handle| async {
            let client = Client::builder(handle).tls(&trust).build();
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
            // An older version is spoken where that is asked for, also with a configuration that offers another one.
            let own = trust.with_alpn(["h2"]);
            for request in [client.get(&server.url), client.get(&server.url).tls(&own)] {
                let old = request.version(Version::HTTP_10).send().await.unwrap();
                assert_eq!(old.text().await.unwrap(), "GET HTTP/1.0 ");
            }
            // The client says what is spoken, not the configuration, and requests that bring the same one share.
            let seen = Seen::default();
            for _ in 0..2 {
                let answer = client.get(&server.url).tls(&own).watch(seen.watch()).send().await.unwrap();
                assert_eq!(answer.text().await.unwrap(), format!("GET {version:?} "));
            }
            assert_eq!(seen.connected(), 1);
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
