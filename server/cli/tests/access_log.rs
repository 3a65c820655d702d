//! The request log around the file service, without a socket.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::Request;
use http_body::Body;
use hyperman_cli::access_log::{AccessLog, LogFormat, LoggedBody};
use hyperman_cli::body::{CHUNK, FileBody};
use hyperman_cli::lines::LineWriter;
use hyperman_cli::root::{Root, Symlinks};
use hyperman_cli::service::{FileOptions, FileService};
use tower_service::Service;

/// A sink that can be looked at.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of requests for `targets`, of each of which at most `frames` frames of the answer are read.
fn logged(format: LogFormat, frames: usize, requests: Vec<Request<hyperman::Body>>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.txt"), "hello").unwrap();
    std::fs::write(folder.path().join("large.bin"), vec![1; CHUNK * 3]).unwrap();
    let shown = Shown::default();
    let writer = LineWriter::start(shown.clone(), |error| panic!("{error}")).unwrap();
    let files =
        FileService::new(Root::open(folder.path(), Symlinks::Confined).unwrap(), FileOptions::default());
    let mut service = AccessLog::new(files, writer.lines(), format);
    let mut cx = Context::from_waker(Waker::noop());
    for request in requests {
        let mut future = service.call(request);
        let Poll::Ready(Ok(answer)) = Pin::new(&mut future).poll(&mut cx) else { panic!("not ready") };
        let mut body: LoggedBody<FileBody> = answer.into_body();
        for _ in 0..frames {
            let _ = Pin::new(&mut body).poll_frame(&mut cx);
        }
    }
    drop(writer);
    let all = shown.0.lock().unwrap().clone();
    String::from_utf8(all).unwrap().lines().map(str::to_owned).collect()
}

fn get(target: &str) -> Request<hyperman::Body> {
    Request::get(target)
        .header("user-agent", b"tool \"1\"\xff".as_slice())
        .header("referer", "http://example.org/")
        .body(hyperman::Body::empty())
        .unwrap()
}

/// The line without what differs from run to run: the date, and the time it took.
fn timeless(line: &str) -> String {
    let (before, rest) = line.split_once('[').unwrap();
    let (date, after) = rest.split_once(']').unwrap();
    assert_eq!(date.len(), "06/Nov/1994:08:49:37 +0000".len(), "{date}");
    let (words, time) = after.rsplit_once(' ').unwrap();
    assert!(time.strip_suffix("ms").unwrap().parse::<f64>().unwrap() >= 0.0);
    format!("{before}[]{words}")
}

#[test]
fn the_common_format_tells_what_was_sent() {
    let head = Request::head("/small.txt").body(hyperman::Body::empty()).unwrap();
    let lines =
        logged(LogFormat::Common, 10, vec![get("/small.txt?x"), get("/missing"), head, get("/large.bin")]);
    let lines: Vec<String> = lines.iter().map(|line| timeless(line)).collect();
    assert_eq!(
        lines,
        [
            "- - - [] \"GET /small.txt?x HTTP/1.1\" 200 5",
            "- - - [] \"GET /missing HTTP/1.1\" 404 49",
            "- - - [] \"HEAD /small.txt HTTP/1.1\" 200 0",
            "- - - [] \"GET /large.bin HTTP/1.1\" 200 196608",
        ]
    );
}

#[test]
fn an_answer_that_was_given_up_counts_what_was_taken() {
    let lines = logged(LogFormat::Common, 1, vec![get("/large.bin")]);
    assert_eq!(timeless(lines.first().unwrap()), "- - - [] \"GET /large.bin HTTP/1.1\" 200 16384");
}

#[test]
fn what_a_peer_sends_cannot_break_a_line() {
    let lines = logged(LogFormat::Common, 10, vec![get("/ä\"\\")]);
    assert_eq!(timeless(lines.first().unwrap()), "- - - [] \"GET /\\xC3\\xA4\\\"\\\\ HTTP/1.1\" 404 49");
    assert_eq!(lines.len(), 1);
}

#[test]
fn the_combined_format_is_the_one_that_log_analysers_know() {
    let lines = logged(LogFormat::Combined, 10, vec![get("/small.txt")]);
    let (before, after) = lines.first().unwrap().split_once(" +0000]").unwrap();
    assert_eq!(before.len(), "- - - [06/Nov/1994:08:49:37".len(), "{before}");
    let words =
        " \"GET /small.txt HTTP/1.1\" 200 5 \"http://example.org/\" \"tool \\\"1\\\"\\xEF\\xBF\\xBD\"";
    assert_eq!(after, words);
}

#[test]
fn json_lines_are_json() {
    let lines = logged(LogFormat::Json, 10, vec![get("/\"ä\\")]);
    let line = lines.first().unwrap();
    let (time, rest) = line.split_at("{\"time\":\"1994-11-06T08:49:37.123Z\",".len());
    assert!(time.starts_with("{\"time\":\"") && time.ends_with("Z\","), "{line}");
    let expected = "\"method\":\"GET\",\"target\":\"/\\\"ä\\\\\",\"version\":\"HTTP/1.1\",\
        \"referer\":\"http://example.org/\",\"agent\":\"tool \\\"1\\\"\u{fffd}\",\"status\":404,\"sent\":49,\"ms\":";
    assert!(rest.starts_with(expected), "{line}");
}
