//! What Fetch makes of answers of HTTP/1, byte by byte as a server sends them: good ones, odd ones and bad ones, and whether
//! it asks on the same connection again.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use http::Method;
use hyperman_fetch::Client;

mod answers;
mod told;

use answers::{CHUNKS, CODINGS, FIELD_LINES, INTERIM, LENGTHS, Row, STATUS_LINES, WHOLE};
use told::ask;

/// Reads a head; false at the end of the connection.
fn read_head(stream: &mut TcpStream) -> bool {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// A server that says this to the first request, and `again` to all others; the connections that a request came on.
fn serve(answer: Vec<u8>, close: bool) -> (u16, mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for connection in 0.. {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
            let mut answer = (connection == 0).then(|| answer.clone());
            while read_head(&mut stream) {
                if tell.send(connection).is_err() {
                    return;
                }
                let first = answer.take();
                let end = first.is_some() && close;
                let bytes =
                    first.unwrap_or_else(|| b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain".to_vec());
                if stream.write_all(&bytes).is_err() || end {
                    break;
                }
            }
        }
    });
    (port, told)
}

/// What comes of an answer, and whether the next request went over the same connection.
fn outcome(method: &Method, answer: &[u8], close: bool) -> (String, bool) {
    let (port, told) = serve(answer.to_vec(), close);
    let url = format!("http://127.0.0.1:{port}/");
    let first = hyperman_loop::block_on(async |handle| {
        let client = Client::builder(handle).timeout(Duration::from_secs(10)).build();
        let first = ask(&client, method, &url, "").await;
        assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 again", "behind {first}");
        first
    });
    assert_eq!(told.recv().unwrap(), 0);
    // The last one that asked; a retry on a connection that had ended comes before it.
    let last = told.try_iter().last().expect("another request");
    (first.unwrap(), last == 0)
}

fn check(table: &[Row], before: &str, behind: &str) {
    for (how, part, expected) in table {
        let answer = [before.as_bytes(), part, behind.as_bytes()].concat();
        let method = if *how == 'H' { Method::HEAD } else { Method::GET };
        let (told, same) = outcome(&method, &answer, *how == 'C');
        assert_eq!(shown(&told, same), *expected, "{}", answer.escape_ascii());
    }
}

/// As the tables say it. Whoever has sent a head has processed the request, and so perhaps has whoever closed without one.
fn shown(told: &str, same: bool) -> String {
    match told.strip_suffix(", perhaps processed") {
        None => format!("{told}{}", if same { ", kept" } else { "" }),
        Some(error) => {
            assert!(!same, "a connection was used again behind {told}");
            let protocol = error.strip_prefix("Protocol(").and_then(|error| error.strip_suffix(')'));
            protocol.unwrap_or(error).to_owned()
        }
    }
}

const HELLO: &str = "\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn status_lines() {
    check(STATUS_LINES, "", HELLO);
}

#[test]
fn field_lines() {
    check(FIELD_LINES, "HTTP/1.1 200 OK\r\n", HELLO);
}

#[test]
fn lengths() {
    check(LENGTHS, "HTTP/1.1 200 OK\r\nContent-Length: ", "\r\n\r\nhello");
}

#[test]
fn transfer_codings() {
    check(CODINGS, "HTTP/1.1 200 OK\r\nTransfer-Encoding: ", "\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
}

#[test]
fn chunks() {
    check(CHUNKS, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "");
}

#[test]
fn interim_answers() {
    check(INTERIM, "", &format!("HTTP/1.1 200 OK{HELLO}"));
    let flood = |count: usize| "HTTP/1.1 103 x\r\n\r\n".repeat(count) + "HTTP/1.1 200 OK" + HELLO;
    for (count, expected) in [(32, "200 hello, kept"), (33, "TooManyInterimAnswers")] {
        let (told, same) = outcome(&Method::GET, flood(count).as_bytes(), false);
        assert_eq!(shown(&told, same), expected, "{count} of them");
    }
}

#[test]
fn whole_answers() {
    check(WHOLE, "", "");
}

#[test]
fn a_folded_value_is_unfolded() {
    let (port, _told) = serve(b"HTTP/1.1 200 OK\r\nX: a\r\n\t b\r\nContent-Length: 0\r\n\r\n".into(), false);
    let value = hyperman_loop::block_on(async |handle| {
        let answer = Client::new(handle).get(format!("http://127.0.0.1:{port}/")).send().await.unwrap();
        answer.headers()["x"].to_str().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(value.unwrap(), ["a", "b"]);
}

/// Wherever it is cut, an answer is never taken for a whole one that it is not.
#[test]
fn an_answer_that_is_cut_off_at_any_byte_is_an_error() {
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\nhe\r\n3\r\nllo\r\n0\r\nX: y\r\n\r\n";
    let interim =
        b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for whole in [&length[..], chunked, interim] {
        // Behind the empty line of the last head: in the one in chunks there is another behind the trailers.
        let is_empty_line = |four: &[u8]| four == b"\r\n\r\n";
        let mut lines = whole.windows(4);
        let head =
            if whole == chunked { lines.position(is_empty_line) } else { lines.rposition(is_empty_line) };
        let head = head.unwrap() + 4;
        for end in 0..whole.len() {
            let (told, same) = outcome(&Method::GET, &whole[..end], true);
            let expected = match end {
                0 => "EmptyReply",
                end if end < head => "UnexpectedEofInHead",
                _ => "PartialBody(Closed)",
            };
            assert_eq!(shown(&told, same), expected, "{}", whole[..end].escape_ascii());
        }
        assert_eq!(outcome(&Method::GET, whole, true).0, "200 hello");
    }
    // Where only the end of the connection ends a body, nobody can tell.
    let (told, _) = outcome(&Method::GET, b"HTTP/1.1 200 OK\r\n\r\nhel", true);
    assert_eq!(told, "200 hel");
}
