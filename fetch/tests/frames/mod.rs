//! A scripted HTTP/2 server's end of a connection, in frames, and what the tests of HTTP/2 share.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // each test uses a part of it

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use hyperman_fetch::{Client, Notice};
use hyperman_transport::Runtime;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const WINDOW_UPDATE: u8 = 8;
pub const RST_STREAM: u8 = 3;
pub const GOAWAY: u8 = 7;

pub fn client<R: Runtime>(runtime: R) -> Client<R> {
    Client::builder(runtime).http2_prior_knowledge().timeout(Duration::from_secs(30)).build()
}

/// Counts new connections and repeated attempts.
#[derive(Clone, Default)]
pub struct Seen {
    connected: Arc<AtomicUsize>,
    again: Arc<AtomicUsize>,
}

impl Seen {
    pub fn watch(&self) -> impl FnMut(Notice<'_>) + Send + 'static {
        let Seen { connected, again } = self.clone();
        move |notice: Notice<'_>| match notice {
            Notice::Connected { reused: false, .. } => drop(connected.fetch_add(1, Ordering::SeqCst)),
            Notice::Retry => drop(again.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        }
    }

    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    pub fn again(&self) -> usize {
        self.again.load(Ordering::SeqCst)
    }
}

/// All of them at once, each woken by itself and polled only then, as in tasks of their own.
pub async fn together<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
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

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A scripted server's end of a connection, in frames.
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub fn accept(listener: &TcpListener) -> Raw {
        let mut raw = Raw::accept_silently(listener);
        raw.send(SETTINGS, 0, 0, &[]);
        raw
    }

    /// Without the SETTINGS that should come first.
    pub fn accept_silently(listener: &TcpListener) -> Raw {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface).unwrap();
        assert_eq!(preface, PREFACE);
        Raw { stream }
    }

    /// The next of these frames before the answer to a PING, if there is one.
    pub fn next_before_pong(&mut self, kind: u8) -> Option<u32> {
        self.send(PING, 0, 0, &[1; 8]);
        loop {
            let (came, stream, _) = self.frame()?;
            if came == kind || came == PING {
                return Some(stream).filter(|_| came == kind);
            }
        }
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let frame = [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        self.stream.write_all(&frame).unwrap();
    }

    /// Kind, stream and payload of the next frame of this kind.
    pub fn next(&mut self, kind: u8) -> (u32, Vec<u8>) {
        loop {
            let (came, stream, payload) = self.frame().expect("the connection goes on");
            if came == kind {
                return (stream, payload);
            }
        }
    }

    /// The payload of the next frame of this kind on this stream.
    pub fn next_of(&mut self, kind: u8, on: u32) -> Vec<u8> {
        loop {
            let (stream, payload) = self.next(kind);
            if stream == on {
                return payload;
            }
        }
    }

    /// Kind, stream and payload of the next frame; `None` at the end of the connection.
    pub fn frame(&mut self) -> Option<(u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        match self.stream.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return None,
            read => read.expect("a frame"),
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).expect("a frame");
        Some((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload))
    }

    /// `:status: 200`, and END_STREAM if that is all.
    pub fn head(&mut self, stream: u32, end: bool) {
        self.send(1, 4 | u8::from(end), stream, &[0x88]);
    }

    pub fn until_closed(mut self) {
        let _ = self.stream.read_to_end(&mut Vec::new());
    }
}

/// Runs a script beside a case on our own loop.
pub fn scripted<F: Future>(
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
