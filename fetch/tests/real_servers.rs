//! Fetch over HTTP/2 against servers that others wrote: nghttpd, nginx and node, by ALPN over TLS and in clear.
#![cfg(feature = "tls")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http_body::Frame;
use http_body_util::StreamBody;
use hyperman_fetch::tls::{Authorities, ClientTls};
use hyperman_fetch::{Body, Client};
use hyperman_loop::Handle;

mod frames;
mod servers;

use frames::{Seen, together};
use servers::{LARGE, Server};

/// What a case asks with: a client, what it saw, and the server.
struct Asker<'a> {
    client: Client<Handle>,
    seen: Seen,
    server: &'a Server,
}

impl Asker<'_> {
    fn get(&self, path: &str) -> hyperman_fetch::RequestBuilder<Handle> {
        self.client.get(self.server.url(path)).watch(self.seen.watch())
    }

    fn post(&self, path: &str) -> hyperman_fetch::RequestBuilder<Handle> {
        self.client.post(self.server.url(path)).watch(self.seen.watch())
    }
}

fn asking(server: &Server, case: impl AsyncFnOnce(Asker<'_>)) {
    hyperman_loop::block_on(async |handle| {
        let mut builder = Client::builder(handle)
            .http2_prior_knowledge()
            .resolve("localhost", [([127, 0, 0, 1], 0).into()])
            .timeout(Duration::from_secs(60));
        if let Some(made) = &server.certificate {
            let trust = Authorities::from_pem(&made.certificate_pem);
            builder = builder.tls(&ClientTls::builder().only_authorities(trust).build().unwrap());
        }
        case(Asker { client: builder.build(), seen: Seen::default(), server }).await;
    })
    .unwrap();
}

/// What every server can do: files small, large, missing and empty, their heads alone, and many at once on a connection.
async fn files(ask: &Asker<'_>) {
    let answer = ask.get("small").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(answer.text().await.unwrap(), "small\n");
    let answer = ask.get("large").send().await.unwrap();
    let body = answer.bytes().await.unwrap();
    assert!(body.len() == LARGE && body.iter().all(|&byte| byte == b'n'));
    let answer = ask.get("nothing-of-this-name").send().await.unwrap();
    assert_eq!(answer.status(), 404);
    answer.bytes().await.unwrap();
    assert_eq!(ask.get("empty").send().await.unwrap().bytes().await.unwrap(), "");
    let head = ask.client.head(ask.server.url("large")).watch(ask.seen.watch()).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.bytes().await.unwrap().len()), (200, 0));
    let asked = (0..150).map(|_| async { ask.get("small").send().await?.text().await });
    for text in together(asked.collect()).await {
        assert_eq!(text.unwrap(), "small\n");
    }
    let asked =
        (0..10).map(|_| async { ask.get("large").send().await?.bytes().await.map(|body| body.len()) });
    for length in together(asked.collect()).await {
        assert_eq!(length.unwrap(), LARGE);
    }
    // Dropped in the middle: the connection carries the next one all the same.
    for _ in 0..20 {
        let mut answer = ask.get("large").send().await.unwrap();
        assert!(answer.chunk().await.unwrap().is_some());
    }
    assert_eq!(ask.get("small").send().await.unwrap().text().await.unwrap(), "small\n");
    assert_eq!(ask.seen.connected(), 1);
}

/// 5,000,000 bytes that come piece by piece, of a length that nobody was told.
fn streamed() -> Body {
    struct Pieces(usize);
    impl futures_core::Stream for Pieces {
        type Item = Result<Frame<Bytes>, std::convert::Infallible>;
        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            _cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            self.0 += 1;
            let piece = || Ok(Frame::data(Bytes::from_static(&[b'u'; 10_000])));
            std::task::Poll::Ready((self.0 <= 500).then(piece))
        }
    }
    Body::stream(StreamBody::new(Pieces(0)))
}

const STREAMED: usize = 5_000_000;

#[test]
fn nghttpd_is_asked() {
    for tls in [true, false] {
        asking(&servers::nghttpd(tls), async |ask| {
            files(&ask).await;
            let answer = ask.get("small").send().await.unwrap();
            let (_, trailers) = answer.bytes_and_trailers().await.unwrap();
            assert_eq!(trailers.unwrap()["sum"], "42");
            for body in [Body::from(vec![b'u'; STREAMED]), streamed()] {
                let echo = ask.post("echo").body(body).send().await.unwrap().bytes().await.unwrap();
                assert!(echo.len() == STREAMED && echo.iter().all(|&byte| byte == b'u'));
            }
            assert_eq!(ask.seen.connected(), 1);
        });
    }
}

#[test]
fn nginx_is_asked() {
    for tls in [true, false] {
        asking(&servers::nginx(tls), async |ask| {
            files(&ask).await;
            let answer = ask.get("small").send().await.unwrap();
            let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
            assert_eq!(cookies, ["a=1", "b=2"]);
            let answer = ask.get("moved").send().await.unwrap();
            assert_eq!(answer.text().await.unwrap(), "small\n");
            for body in [Body::from(vec![b'u'; STREAMED]), streamed()] {
                let answer = ask.post("upload").body(body).send().await.unwrap();
                assert_eq!(answer.text().await.unwrap(), "taken\n");
            }
            let part = ask.get("large").header("range", "bytes=5-9").send().await.unwrap();
            assert_eq!((part.status().as_u16(), part.bytes().await.unwrap().len()), (206, 5));
            assert_eq!((ask.seen.connected(), ask.seen.again()), (1, 0));
        });
    }
}

#[test]
fn node_is_asked() {
    for tls in [true, false] {
        asking(&servers::node(tls), async |ask| {
            files(&ask).await;
            for body in [Body::from(vec![b'u'; STREAMED]), streamed()] {
                let echo = ask.post("echo").body(body).send().await.unwrap().bytes().await.unwrap();
                assert!(echo.len() == STREAMED && echo.iter().all(|&byte| byte == b'u'));
            }
            let counts =
                (0..5).map(|_| async { ask.post("count").body(streamed()).send().await?.text().await });
            for count in together(counts.collect()).await {
                assert_eq!(count.unwrap(), STREAMED.to_string());
            }
            let (text, trailers) =
                ask.get("trailers").send().await.unwrap().bytes_and_trailers().await.unwrap();
            assert_eq!((&*text, &trailers.unwrap()["sum"]), (&b"text"[..], &"42".parse().unwrap()));
            let crumbs = ask.get("cookies").header("cookie", "c=3").header("cookie", "d=4");
            let answer = crumbs.send().await.unwrap();
            let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().cloned().collect();
            assert_eq!(cookies, ["a=1", "b=2"]);
            assert_eq!(answer.text().await.unwrap(), "c=3; d=4");
            let hinted = ask.get("hints").send().await.unwrap();
            assert_eq!(hinted.text().await.unwrap(), "hinted");
            let early = ask.post("early").body(streamed()).send().await.unwrap();
            assert_eq!((early.status().as_u16(), early.text().await.unwrap()), (413, "too large".into()));
            assert_eq!(ask.seen.connected(), 1);
        });
    }
}

/// The same server, asked by a client that does not speak HTTP/2.
#[test]
fn a_client_that_is_told_to_speaks_http_1() {
    let server = servers::node(true);
    hyperman_loop::block_on(async |handle| {
        let trust = Authorities::from_pem(&server.certificate.as_ref().unwrap().certificate_pem);
        let tls = ClientTls::builder().only_authorities(trust).alpn(["h2"]).build().unwrap();
        let client = Client::builder(handle)
            .http2(false)
            .tls(&tls)
            .resolve("localhost", [([127, 0, 0, 1], 0).into()])
            .build();
        let answer = client.get(server.url("small")).send().await.unwrap();
        assert_eq!((answer.version(), answer.text().await.unwrap()), (Version::HTTP_11, "small\n".into()));
    })
    .unwrap();
}
