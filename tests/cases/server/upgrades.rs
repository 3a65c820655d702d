//! Connections and streams that are taken over.

use std::convert::Infallible;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyperman::upgrade::OnUpgrade;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_http2::BodySize;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::http2::Http2Peer;
use hyperman_tests::peer::Peer;

use super::{SOON, Text};

hyperman_tests::cases! {
    ONE:
        an_upgraded_connection_is_handed_over_with_the_bytes_already_read;
    TWO:
        a_connected_stream_is_handed_over_with_the_bytes_already_read;
}

/// Agrees to whatever is asked, and hands over what is to be taken over.
async fn agree(
    tell: mpsc::Sender<OnUpgrade>,
    mut request: Request<Body>,
) -> Result<Response<Text>, Infallible> {
    let upgrade = hyperman::upgrade::on(&mut request);
    let mut answer = Response::new(Text::default());
    if request.method() != Method::CONNECT {
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        answer.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
        answer.headers_mut().insert("upgrade", HeaderValue::from_static("shout"));
    }
    let _ = tell.send(upgrade);
    Ok(answer)
}

/// Says all in capitals. Whoever took the connection over may be on another loop.
fn shout(upgrade: OnUpgrade) -> JoinHandle<()> {
    thread::spawn(move || {
        hyperman_loop::block_on(|_| async move {
            let mut upgraded = upgrade.await.expect("an upgrade");
            while let Some(data) = upgraded.chunk().await.expect("bytes") {
                upgraded.send(Bytes::from(data.to_ascii_uppercase())).await.expect("room");
            }
            upgraded.close();
        })
        .expect("a loop");
    })
}

fn an_upgraded_connection_is_handed_over_with_the_bytes_already_read(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| service_fn(move |request| agree(tell.clone(), request));
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        for (head, status) in [
            ("GET /chat HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n", 101),
            ("CONNECT test:80 HTTP/1.1\r\nHost: test:80\r\n\r\n", 200),
        ] {
            let mut peer = Peer::connect(on, address);
            peer.send(format!("{head}early "));
            let shouting = shout(told.recv_timeout(SOON).expect("the handler was called"));
            assert_eq!(peer.answer_head().status, status);
            assert_eq!(peer.send("and late").exactly(14), b"EARLY AND LATE");
            peer.finish();
            peer.expect_end();
            shouting.join().expect("the shouting thread");
        }
    });
}

fn a_connected_stream_is_handed_over_with_the_bytes_already_read(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| service_fn(move |request| agree(tell.clone(), request));
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        let mut peer = Http2Peer::connect(on, address);
        for _ in 0..2 {
            let stream = peer.open(&Method::CONNECT, "test:80", &HeaderMap::new(), BodySize::Unknown);
            assert_eq!(peer.send(stream, Bytes::from_static(b"early ")), 6);
            let shouting = shout(told.recv_timeout(SOON).expect("the handler was called"));
            assert_eq!(peer.head(stream).expect("an answer").status, 200);
            assert_eq!(peer.send(stream, Bytes::from_static(b"and late")), 8);
            peer.end(stream).expect("an end");
            let mut said = Vec::new();
            while let Some(piece) = peer.piece(stream).expect("a whole stream") {
                said.extend_from_slice(&piece);
            }
            assert_eq!(said, b"EARLY AND LATE");
            peer.finished(stream);
            shouting.join().expect("the shouting thread");
        }
    });
}
