//! A plain connection that sends all its requests before it reads an answer.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::Poll;

use bytes::{Buf, BytesMut};
use hyperman_tests::chaos::Chaos;
use hyperman_transport::{ByteStream, Runtime, connect_tcp};

use crate::plan::{Kind, Plan};

/// The bytes of all requests; the last one ends the connection.
fn requests(plans: &[Plan]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, plan) in plans.iter().enumerate() {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: chaos\r\n", plan.method(), plan.target());
        if at + 1 == plans.len() {
            head.push_str("Connection: close\r\n");
        }
        let payload = plan.payload();
        if plan.kind.is_chunked() {
            bytes.extend_from_slice((head + "Transfer-Encoding: chunked\r\n\r\n").as_bytes());
            for piece in payload.chunks(plan.piece) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else if plan.kind.has_body() {
            bytes.extend_from_slice(format!("{head}Content-Length: {}\r\n\r\n", payload.len()).as_bytes());
            bytes.extend_from_slice(&payload);
        } else {
            bytes.extend_from_slice((head + "\r\n").as_bytes());
        }
    }
    bytes
}

/// What came of a pipeline whose answers were all right and in order.
#[derive(Debug)]
pub struct Answers {
    pub count: usize,
    /// Whether the connection was not lost: it ended after the last answer, or where the server had said so.
    pub orderly: bool,
}

/// Sends everything, and reads up to the end.
pub async fn run<R: Runtime>(
    chaos: &Chaos<R>,
    address: SocketAddr,
    plans: &[Plan],
) -> Result<Answers, String> {
    let mut received = BytesMut::new();
    let ended = transfer(chaos, address, requests(plans), &mut received).await;
    let mut rest: &[u8] = &received;
    for (at, plan) in plans.iter().enumerate() {
        let Some(answer) = take_answer(&mut rest).map_err(|what| format!("answer {at}: {what}"))? else {
            let lost = format!("{at} of {} answers, then {} bytes: {ended:?}", plans.len(), rest.len());
            return if ended.is_ok() { Err(lost) } else { Ok(Answers { count: at, orderly: false }) };
        };
        if answer.body != plan.payload() {
            return Err(format!("answer {at} of {plan:?} is wrong: {}", answer.body.escape_ascii()));
        }
        let last = at + 1 == plans.len();
        // A server need not read a body that its handler has no use for (RFC 9112 §9.3).
        if answer.closes && (last || plan.kind == Kind::Ignored) {
            return match rest {
                [] => Ok(Answers { count: at + 1, orderly: true }),
                more => Err(format!("bytes behind the last answer: {}", more.escape_ascii())),
            };
        }
        if answer.closes || last {
            return Err(format!("answer {at} of {}, {plan:?}, closes: {}", plans.len(), answer.closes));
        }
    }
    Err("no answer said that it is the last".to_owned())
}

/// Both directions at once: a server may hold back requests until its answers are read.
async fn transfer<R: Runtime>(
    chaos: &Chaos<R>,
    address: SocketAddr,
    bytes: Vec<u8>,
    received: &mut BytesMut,
) -> io::Result<()> {
    let mut socket = connect_tcp(chaos, address, None)?.await?;
    let mut sent = 0;
    let mut write_error = None;
    poll_fn(|cx| {
        loop {
            let mut moved = false;
            if sent < bytes.len() && write_error.is_none() {
                match socket.poll_send(cx, &[IoSlice::new(&bytes[sent..])]) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(count)) => {
                        sent += count;
                        moved = true;
                    }
                    Poll::Ready(Err(error)) => write_error = Some(error),
                }
            }
            received.reserve(4_096);
            match socket.poll_recv(cx, received) {
                Poll::Pending => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(write_error.take().map_or(Ok(()), Err)),
                Poll::Ready(Ok(_)) => moved = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
    .await
}

struct Answer {
    body: Vec<u8>,
    closes: bool,
}

/// Takes one whole answer off the front; `None` when there is none.
fn take_answer(bytes: &mut &[u8]) -> Result<Option<Answer>, String> {
    let mut rest = *bytes;
    let Some(head) = until(&mut rest, b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200 ") {
        return Err(head);
    }
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let mut body = Vec::new();
    if let Some(length) = field("content-length") {
        let length: usize = length.parse().map_err(|_| head.clone())?;
        let Some(whole) = rest.get(..length) else { return Ok(None) };
        body.extend_from_slice(whole);
        rest.advance(length);
    } else if field("transfer-encoding") == Some("chunked") {
        loop {
            let Some(line) = until(&mut rest, b"\r\n") else { return Ok(None) };
            let line = String::from_utf8_lossy(line);
            let size =
                usize::from_str_radix(line.trim_end(), 16).map_err(|_| format!("a chunk size {line:?}"))?;
            let Some(chunk) = rest.get(..size + 2) else { return Ok(None) };
            if !chunk.ends_with(b"\r\n") {
                return Err(format!("a chunk of {size} bytes ends wrong"));
            }
            body.extend_from_slice(&chunk[..size]);
            rest.advance(size + 2);
            if size == 0 {
                break;
            }
        }
    } else {
        return Err(head);
    }
    *bytes = rest;
    Ok(Some(Answer { body, closes: field("connection") == Some("close") }))
}

/// Takes everything up to and with `end` off the front.
fn until<'a>(bytes: &mut &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let at = bytes.windows(end.len()).position(|window| window == end)?;
    let (taken, rest) = bytes.split_at(at + end.len());
    *bytes = rest;
    Some(taken)
}
