//! Frames that no client of ours would send, against the whole server on our own loop: what the driver between machine
//! and application makes of them.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use http::{Request, Response};
use hyperman::{Body, Server, service_fn, upgrade};
use hyperman_tests::{EndOnDrop, watched};
use hyperman_transport::Spawn;

const HEADERS: u8 = 1;
const DATA: u8 = 0;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame as it came: kind, flags, stream, payload.
type Frame = (u8, u8, u32, Vec<u8>);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).expect("a short payload").to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header block of literals, none of them indexed.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).expect("a short text"));
            block.extend(text.as_bytes());
        }
    }
    block
}

struct Peer(TcpStream);

impl Peer {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("timeout");
        let mut peer = Peer(stream);
        peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        peer.send(&frame(4, 0, 0, &[]));
        peer
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("send");
    }

    fn next(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).expect("a frame");
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).expect("a payload");
        (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
    }

    /// The next frame of a stream.
    fn next_on(&mut self, stream: u32) -> Frame {
        loop {
            let next = self.next();
            if next.2 == stream {
                return next;
            }
        }
    }
}

/// Runs `case` against a server whose answer to CONNECT is a tunnel that sends everything back.
fn against_an_echo(case: impl FnOnce(SocketAddr) + Send + 'static) {
    watched(move || {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            thread_local!(static HANDLE: std::cell::OnceCell<hyperman_loop::Handle> = const { std::cell::OnceCell::new() });
            let service = service_fn(|mut request: Request<Body>| async move {
                let switched = upgrade::on(&mut request);
                let echo = async move {
                    let Ok(mut tunnel) = switched.await else { return };
                    while let Ok(Some(data)) = tunnel.chunk().await {
                        if tunnel.send(data).await.is_err() {
                            return;
                        }
                    }
                };
                HANDLE.with(|handle| handle.get().expect("the loop's handle").spawn(echo));
                Ok::<_, Infallible>(Response::new(Body::empty()))
            });
            let bound = Server::new(service).listen("127.0.0.1:0").bind().expect("bind");
            HANDLE.with(|handle| assert!(handle.set(bound.handle()).is_ok(), "set once"));
            let address = bound.addresses().first().expect("one address").to_string();
            let arrange = |shutdown| {
                let _ = tell.send((address, shutdown));
                Ok(())
            };
            bound.run_with(arrange).expect("serve");
        });
        let (address, shutdown) = told.recv().expect("the server starts");
        let _end = EndOnDrop(shutdown);
        case(address.parse().expect("an address"));
    });
}

#[test]
fn a_tunnel_that_ends_with_its_head_is_ended_back() {
    against_an_echo(|address| {
        let mut peer = Peer::connect(address);
        let connect = block(&[(":method", "CONNECT"), (":authority", "example.com:443")]);
        peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &connect));
        let (kind, flags, ..) = peer.next_on(1);
        assert_eq!((kind, flags), (HEADERS, END_HEADERS));
        assert_eq!(peer.next_on(1), (DATA, END_STREAM, 1, Vec::new()));
    });
}

#[test]
fn a_tunnel_sends_back_what_came_and_then_its_end() {
    against_an_echo(|address| {
        let mut peer = Peer::connect(address);
        let connect = block(&[(":method", "CONNECT"), (":authority", "example.com:443")]);
        peer.send(&frame(HEADERS, END_HEADERS, 1, &connect));
        peer.send(&frame(DATA, END_STREAM, 1, b"through"));
        assert_eq!(peer.next_on(1).0, HEADERS);
        let mut echoed = Vec::new();
        loop {
            let (kind, flags, _, payload) = peer.next_on(1);
            assert_eq!(kind, DATA);
            echoed.extend(payload);
            if flags & END_STREAM != 0 {
                break;
            }
        }
        assert_eq!(echoed, b"through");
    });
}
