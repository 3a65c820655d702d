//! The same request again and again, as a keep-alive client sends it: a server may know it by now, but must not know
//! the answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::caller::Caller;
use hyperman_tests::carrier::Carrier;

hyperman_tests::cases! {
    EVERY:
        one_request_with_answers_of_every_kind;
}

/// How many kinds of answers there are.
const KINDS: usize = 10;

fn full(body: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(body.into()).boxed_unsync()
}

/// A body of several frames and of unknown length, with or without a pause before each.
struct Frames {
    left: VecDeque<Bytes>,
    gap: bool,
    waited: bool,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.waited = self.gap && !self.waited;
        if self.waited {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.left.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

/// Waits until it is woken, which it does itself.
async fn once_more() {
    let mut waited = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The status and the body that the handler gives for the answer with this number.
fn expected(number: usize) -> (u16, Vec<u8>) {
    match number % KINDS {
        0 | 1 => (200, format!("number {number}").into_bytes()),
        2 | 3 => (200, b"ab".repeat(number)),
        4 => (200, vec![b'x'; 10_000 + number]),
        5 => (200, Vec::new()),
        6 => (200, b"with fields".to_vec()),
        7 => (404, b"none".to_vec()),
        8 => (200, vec![b'y'; 4096]),
        _ => (500, Vec::new()),
    }
}

async fn answer(number: usize) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, &'static str> {
    let (status, content) = expected(number);
    let frames = |gap| {
        let left = content.chunks(2).map(Bytes::copy_from_slice).collect();
        Frames { left, gap, waited: false }.boxed_unsync()
    };
    let body = match number % KINDS {
        1 => {
            once_more().await;
            full(content.clone())
        }
        2 => frames(false),
        3 => frames(true),
        5 => Empty::new().boxed_unsync(),
        9 => return Err("a handler may fail"),
        _ => full(content.clone()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    if number % KINDS == 6 {
        response.headers_mut().insert("x-number", HeaderValue::from(number));
    }
    Ok(response)
}

fn one_request_with_answers_of_every_kind(on: Carrier) {
    for at_once in [1, 2, 7] {
        let service = |_| {
            let asked = Arc::new(AtomicUsize::new(0));
            service_fn(move |_: Request<Body>| answer(asked.fetch_add(1, Ordering::SeqCst)))
        };
        with_server!(on, service, Config::default(), |address, _: &Shutdown| {
            let mut caller = Caller::connect(on, address);
            let mut number = 0;
            while number < 4 * KINDS {
                for _ in 0..at_once {
                    caller.get("/");
                }
                for _ in 0..at_once {
                    let answer = caller.answer();
                    let (status, body) = expected(number);
                    assert_eq!((answer.status, &answer.body), (status, &body), "answer {number}");
                    let field = (number % KINDS == 6).then(|| number.to_string());
                    assert_eq!(answer.field("x-number"), field.as_deref());
                    assert!(answer.field("date").is_some());
                    number += 1;
                }
            }
        });
    }
}
