//! Connections that are kept, die while idle, or are not kept; requests that move on: on every loop.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

mod loops;
mod peer;

use std::sync::mpsc;
use std::task::Poll;
use std::time::{Duration, Instant};

use hyperman_fetch::error::RedirectFault;
use hyperman_fetch::{Body, Client, ErrorKind, Notice, PoolLimits, Redirects};
use hyperman_transport::{Runtime, Timer as _};

use peer::{Peer, Script};

on_every_loop! {
    a_connection_that_closed_while_idle_is_replaced
    kept_connections_that_are_looked_after_end_with_their_server
    s49_a_connection_that_spoke_while_idle_is_replaced
    a_stale_connection_is_replaced_once_for_what_may_be_repeated
    a_stale_connection_fails_what_may_not_be_repeated
    a_new_connection_that_dies_is_not_retried
    parallel_requests_get_a_connection_each
    hosts_do_not_share_connections
    what_may_not_be_kept_is_closed
    redirects_are_followed_and_counted
    s40_a_redirect_elsewhere_takes_no_credentials_along
    a_redirect_repeats_bytes_and_refuses_streams
    redirects_lead_only_where_they_may
    a_blocking_call_works_inside_any_loop
}

const EMPTY: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// Counts the connections of a request, and its retries.
fn watched() -> (impl FnMut(Notice<'_>) + Send + 'static, mpsc::Receiver<&'static str>) {
    let (tell, told) = mpsc::channel();
    let watch = move |notice: Notice<'_>| {
        let name = match notice {
            Notice::Connected { reused: true, .. } => "reused",
            Notice::Connected { reused: false, .. } => "new",
            Notice::Retry => "retry",
            Notice::Redirect { .. } => "redirect",
            _ => return,
        };
        let _ = tell.send(name);
    };
    (watch, told)
}

/// Lets other tasks and the loop have their turn until `done` says so.
async fn until(mut done: impl FnMut() -> bool) {
    std::future::poll_fn(|cx| {
        if done() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn a_connection_that_closed_while_idle_is_replaced<R: Runtime>(runtime: R) {
    let scripts: Vec<Script> = (0..3)
        .map(|_| -> Script {
            Box::new(|conn| {
                conn.head();
                conn.send(EMPTY);
            })
        })
        .collect();
    let peer = Peer::new(scripts);
    let client = Client::new(runtime);
    for _ in 0..3 {
        // A POST: it may not be repeated, so each must get a connection that is alive, or be known to be unsent.
        let answer = client.post(peer.url("/")).send().await.expect("an answer");
        assert_eq!(answer.status(), 204);
        settle(&peer).await;
    }
}

/// Waits until the peer has closed, and then as long as a connection counts as one that was used a moment ago.
async fn settle(peer: &Peer) {
    until(|| peer.finished()).await;
    pause().await;
}

async fn pause() {
    let started = Instant::now();
    until(|| started.elapsed() > Duration::from_millis(2)).await;
}

/// Without another request: the server sees the client's end, and so does the client see that nobody uses it any more.
async fn kept_connections_that_are_looked_after_end_with_their_server<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        conn.end();
        assert_eq!(conn.until_closed(), b"");
    });
    let mut limits = PoolLimits::default();
    let client = Client::builder(runtime.clone()).pool(limits.clone()).build();
    assert_eq!(
        client.get(peer.url("/")).send().await.expect("an answer").text().await.expect("a body"),
        "ok"
    );
    ended(&client, &peer).await;
    // A server that stays is left after the idle time.
    let peer = Peer::one(|conn| {
        conn.head();
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(conn.until_closed(), b"");
    });
    limits.idle = Duration::from_millis(60);
    let client = Client::builder(runtime).pool(limits).build();
    assert_eq!(
        client.get(peer.url("/")).send().await.expect("an answer").text().await.expect("a body"),
        "ok"
    );
    ended(&client, &peer).await;
}

/// Looks after the client's connections until the peer's have ended.
async fn ended<R: Runtime>(client: &Client<R>, peer: &Peer) {
    let mut attended = Box::pin(client.attend());
    let mut timer = client.runtime().timer();
    while !peer.finished() {
        let soon = client.runtime().now() + Duration::from_millis(5);
        std::future::poll_fn(|cx| {
            assert!(attended.as_mut().poll(cx).is_pending());
            timer.poll_deadline(soon, cx)
        })
        .await;
    }
}

async fn s49_a_connection_that_spoke_while_idle_is_replaced<R: Runtime>(runtime: R) {
    let (tell, told) = mpsc::channel();
    let peer = Peer::new(vec![
        Box::new(move |conn| {
            conn.head();
            conn.send(EMPTY);
            // Only once the connection is idle at the other end.
            told.recv().expect("the test says when");
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
            conn.mark();
            assert_eq!(conn.try_head(), None, "another request came after the poison");
        }),
        Box::new(|conn| {
            conn.head();
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclean");
        }),
    ]);
    let client = Client::new(runtime);
    client.get(peer.url("/")).send().await.expect("an answer");
    tell.send(()).expect("the peer waits");
    until(|| peer.marks() == 1).await;
    pause().await;
    let answer = client.get(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.text().await.expect("a body"), "clean");
}

/// A peer whose first connection answers once, takes a second request and closes without a word.
fn dies_on_the_second(next: Option<Script>) -> Peer {
    let first: Script = Box::new(|conn| {
        conn.head();
        conn.send(EMPTY);
        conn.head();
    });
    Peer::new(std::iter::once(first).chain(next).collect())
}

async fn a_stale_connection_is_replaced_once_for_what_may_be_repeated<R: Runtime>(runtime: R) {
    for method in [http::Method::GET, http::Method::PUT] {
        let expected = method.clone();
        let peer = dies_on_the_second(Some(Box::new(move |conn| {
            assert!(conn.head().starts_with(&format!("{expected} /two ")));
            if expected == http::Method::PUT {
                assert_eq!(conn.body(4), b"body");
            }
            conn.send(EMPTY);
        })));
        let client = Client::new(runtime.clone());
        client.get(peer.url("/one")).send().await.expect("an answer");
        let (watch, told) = watched();
        let mut request = client.request(method.clone(), peer.url("/two")).watch(watch);
        if method == http::Method::PUT {
            request = request.body("body");
        }
        assert_eq!(request.send().await.expect("an answer").status(), 204);
        assert_eq!(told.iter().collect::<Vec<_>>(), ["reused", "retry", "new"]);
    }
}

async fn a_stale_connection_fails_what_may_not_be_repeated<R: Runtime>(runtime: R) {
    type Make = fn() -> Body;
    let bodies: [(http::Method, Make); 2] = [
        (http::Method::POST, || "body".into()),
        (http::Method::PUT, || Body::stream(http_body_util::Full::new(bytes::Bytes::from("body")))),
    ];
    for (method, body) in bodies {
        let peer = dies_on_the_second(None);
        let client = Client::new(runtime.clone());
        client.get(peer.url("/one")).send().await.expect("an answer");
        let outcome = client.request(method, peer.url("/two")).body(body()).send().await;
        let error = outcome.expect_err("not repeated");
        assert!(matches!(error.kind(), ErrorKind::StaleConnection), "{error:?}");
        assert!(error.request_may_have_been_processed());
    }
}

async fn a_new_connection_that_dies_is_not_retried<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        conn.head();
    });
    let client = Client::new(runtime);
    let (watch, told) = watched();
    let error = client.get(peer.url("/")).watch(watch).send().await.expect_err("nothing");
    assert!(matches!(error.kind(), ErrorKind::EmptyReply), "{error:?}");
    assert_eq!(told.iter().collect::<Vec<_>>(), ["new"]);
}

async fn parallel_requests_get_a_connection_each<R: Runtime>(runtime: R) {
    let (tell, told) = mpsc::channel::<()>();
    let told = std::sync::Arc::new(std::sync::Mutex::new(told));
    let scripts: Vec<Script> = (0..2)
        .map(|_| -> Script {
            let told = told.clone();
            Box::new(move |conn| {
                conn.head();
                conn.mark();
                told.lock().expect("lock").recv().expect("the test says when");
                conn.send(EMPTY);
                conn.until_closed();
            })
        })
        .collect();
    let peer = Peer::new(scripts);
    let client = Client::new(runtime);
    let mut one = Box::pin(client.get(peer.url("/")).send());
    let mut two = Box::pin(client.get(peer.url("/")).send());
    let (mut first, mut second) = (None, None);
    let mut released = false;
    std::future::poll_fn(|cx| {
        if first.is_none()
            && let Poll::Ready(outcome) = one.as_mut().poll(cx)
        {
            first = Some(outcome);
        }
        if second.is_none()
            && let Poll::Ready(outcome) = two.as_mut().poll(cx)
        {
            second = Some(outcome);
        }
        if peer.marks() == 2 && !std::mem::replace(&mut released, true) {
            tell.send(()).expect("a peer waits");
            tell.send(()).expect("a peer waits");
        }
        if first.is_some() && second.is_some() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    assert!(first.expect("ready").is_ok() && second.expect("ready").is_ok());
}

async fn hosts_do_not_share_connections<R: Runtime>(runtime: R) {
    let script = |name: &'static str| -> Script {
        Box::new(move |conn| {
            for _ in 0..2 {
                assert!(conn.head().contains(&format!("\r\nhost: {name}")));
                conn.send(EMPTY);
            }
        })
    };
    let peer = Peer::new(vec![script("a.test:"), script("b.test:")]);
    let client = Client::builder(runtime)
        .resolve("a.test", [peer.address()])
        .resolve("b.test", [peer.address()])
        .build();
    for _ in 0..2 {
        for host in ["A.test", "b.test"] {
            let url = format!("http://{host}:{}/", peer.address().port());
            client.get(url).send().await.expect("an answer");
        }
    }
}

async fn what_may_not_be_kept_is_closed<R: Runtime>(runtime: R) {
    let closes = [
        "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    ];
    for answer in closes {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(answer);
            assert_eq!(conn.until_closed(), b"");
        });
        let client = Client::new(runtime.clone());
        client.get(peer.url("/")).send().await.expect("an answer").bytes().await.expect("a body");
        drop(peer);
        drop(client);
    }
    // And what may be kept goes when the client is asked to let it go, or keeps none at all.
    for limits in [true, false] {
        let peer = Peer::one(move |conn| {
            conn.head();
            conn.send(EMPTY);
            assert_eq!(conn.until_closed(), b"");
        });
        let mut pool = PoolLimits::default();
        if limits {
            pool.total = 0;
        }
        let client = Client::builder(runtime.clone()).pool(pool).build();
        client.get(peer.url("/")).send().await.expect("an answer");
        client.close_idle();
        drop(peer);
        drop(client);
    }
}

async fn redirects_are_followed_and_counted<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        assert!(conn.head().starts_with("POST /a "));
        assert_eq!(conn.body(4), b"form");
        conn.send("HTTP/1.1 302 Found\r\nLocation: /b?x#y\r\nContent-Length: 2\r\n\r\nhi");
        let head = conn.head();
        assert!(head.starts_with("GET /b?x ") && !head.contains("content-"), "{head}");
        conn.send("HTTP/1.1 301 Moved\r\nLocation: c\r\nContent-Length: 0\r\n\r\n");
        assert!(conn.head().starts_with("GET /c "));
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend");
        for _ in 0..3 {
            conn.head();
            conn.send("HTTP/1.1 303 See Other\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
        }
        conn.head();
        conn.send("HTTP/1.1 303 See Other\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    });
    let client = Client::new(runtime);
    let (watch, told) = watched();
    let request = client.post(peer.url("/a#mine")).header("content-type", "text/x").body("form").watch(watch);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.url().as_str(), peer.url("/c#y"));
    assert_eq!(answer.text().await.expect("a body"), "end");
    assert_eq!(told.iter().collect::<Vec<_>>(), ["new", "redirect", "reused", "redirect", "reused"]);
    let request = client.get(peer.url("/loop")).redirects(Redirects::Follow(2));
    let error = request.send().await.expect_err("a loop");
    assert!(matches!(error.kind(), ErrorKind::TooManyRedirects(2)), "{error:?}");
    let answer = client.get(peer.url("/")).redirects(Redirects::Stay).send().await.expect("an answer");
    assert_eq!(answer.status(), 303);
}

async fn s40_a_redirect_elsewhere_takes_no_credentials_along<R: Runtime>(runtime: R) {
    let (other_done, other) = mpsc::channel::<String>();
    let elsewhere = Peer::one(move |conn| {
        let head = conn.head();
        let back = other.recv().expect("an address");
        conn.send(format!("HTTP/1.1 307 Go Back\r\nLocation: {back}\r\nContent-Length: 0\r\n\r\n"));
        for secret in ["authorization", "cookie", "x-token", "referer"] {
            assert!(!head.contains(secret), "{head}");
        }
        assert!(head.contains("\r\nx-plain: yes\r\n"), "{head}");
    });
    let target = elsewhere.url("/");
    let home = Peer::one(move |conn| {
        let head = conn.head();
        for secret in ["authorization: Basic", "cookie: a=b", "x-token: t", "x-plain: yes"] {
            assert!(head.contains(secret), "{head}");
        }
        conn.send("HTTP/1.1 307 Here\r\nLocation: /same\r\nContent-Length: 0\r\n\r\n");
        let head = conn.head();
        assert!(head.contains("authorization: Basic") && head.contains("x-token"), "{head}");
        conn.send(format!("HTTP/1.1 307 There\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"));
        let head = conn.head();
        for secret in ["authorization", "cookie", "x-token"] {
            assert!(!head.contains(secret), "came back: {head}");
        }
        conn.send(EMPTY);
    });
    other_done.send(home.url("/back")).expect("the peer waits");
    let mut token = http::HeaderValue::from_static("t");
    token.set_sensitive(true);
    let client = Client::new(runtime);
    let request = client
        .get(home.url("/").replace("http://", "http://user:pass@"))
        .header("cookie", "a=b")
        .header("x-token", token)
        .header("x-plain", "yes");
    assert_eq!(request.send().await.expect("an answer").status(), 204);
}

async fn a_redirect_repeats_bytes_and_refuses_streams<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for path in ["/one", "/two"] {
            assert!(conn.head().starts_with(&format!("PUT {path} ")));
            assert_eq!(conn.body(4), b"body");
            conn.send("HTTP/1.1 308 Permanent Redirect\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n");
            if path == "/two" {
                assert!(conn.head().starts_with("PUT /two "));
                assert_eq!(conn.body(4), b"body");
                conn.send(EMPTY);
            }
        }
        conn.head();
        assert_eq!(conn.body(4), b"body");
        conn.send("HTTP/1.1 307 Temporary Redirect\r\nLocation: /two\r\nContent-Length: 0\r\n\r\n");
    });
    let client = Client::new(runtime);
    assert_eq!(client.put(peer.url("/one")).body("body").send().await.expect("an answer").status(), 204);
    let stream = Body::stream(http_body_util::Full::new(bytes::Bytes::from("body")));
    let error = client.put(peer.url("/one")).body(stream).send().await.expect_err("used up");
    assert!(matches!(error.kind(), ErrorKind::Redirect(RedirectFault::BodyNotReplayable)), "{error:?}");
    assert!(error.request_may_have_been_processed());
}

async fn redirects_lead_only_where_they_may<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for location in ["file:///etc/passwd", "http://[bad/", "Location: none"] {
            conn.head();
            let field = if location == "Location: none" {
                String::new()
            } else {
                format!("Location: {location}\r\n")
            };
            conn.send(format!("HTTP/1.1 302 Found\r\n{field}Content-Length: 0\r\n\r\n"));
        }
    });
    let client = Client::new(runtime);
    let error = client.get(peer.url("/")).send().await.expect_err("a file");
    assert!(matches!(error.kind(), ErrorKind::SchemeNotSupported(scheme) if scheme == "file"), "{error:?}");
    let error = client.get(peer.url("/")).send().await.expect_err("no URL");
    assert!(matches!(error.kind(), ErrorKind::Redirect(RedirectFault::BadLocation)), "{error:?}");
    let answer = client.get(peer.url("/")).send().await.expect("an answer");
    assert_eq!(answer.status(), 302, "without Location it is an answer like any other");
}

async fn a_blocking_call_works_inside_any_loop<R: Runtime>(runtime: R) {
    let peer = Peer::one(|conn| {
        for n in 0..4 {
            conn.head();
            conn.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{n}"));
        }
    });
    // The same connection every time: the thread keeps its loop.
    let url = peer.url("/");
    assert_eq!(hyperman_fetch::get(&url).expect("an answer").text().expect("text"), "0");
    assert_eq!(hyperman_fetch::get(&url).expect("an answer").json::<u32>().expect("JSON"), 1);
    let client = Client::builder(runtime).timeout(Duration::from_secs(30)).build();
    let mut answer = client.get(&url).wait().expect("an answer");
    assert_eq!(answer.chunk().expect("a piece").expect("not the end"), "2");
    assert_eq!(answer.chunk().expect("the end"), None);
    drop(answer);
    assert_eq!(client.get(&url).wait().expect("an answer").bytes().expect("a body"), "3");
    drop(client);
    // Its loop would keep the connection, and the peer waits for the end of it.
    hyperman_fetch::blocking::close_idle();
}
