//! `httpwg`, a suite of RFC 9113 that checks exact error codes, against the server: with a handler that answers at once
//! and with one that reads the body first. `./test` installs the program.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::process::Command;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyperman::{Body, Server, service_fn};
use hyperman_tests::native;

/// What the suite says at its end when all of its cases have passed.
const ALL: &str = "Passed 107/107 tests";

fn judge(read_body: bool) {
    let service = service_fn(move |request: Request<Body>| async move {
        if read_body {
            // A body that the suite breaks off is part of a case.
            let _ = request.into_body().collect().await;
        }
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&[b'h'; 256]))))
    });
    let (ports, _end) = native::start(move || Server::new(service).listen("127.0.0.1:0").bind());
    let address = format!("127.0.0.1:{}", ports[0]);
    let program = std::env::var("HYPERMAN_HTTPWG").unwrap_or_else(|_| "httpwg".to_owned());
    let output = Command::new(&program)
        .env("SEQUENTIAL", "1")
        .args(["--address", &address, "--frame-timeout", "500"])
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}; cargo install httpwg-cli@0.2.5, as ./test does"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).replace('\u{1b}', "");
    let plain: String =
        ["[1;32m", "[1;33m", "[1;36m", "[0m"].iter().fold(said, |said, code| said.replace(code, ""));
    let failed: Vec<&str> = plain.lines().filter(|line| line.contains("failed")).collect();
    assert!(plain.contains(ALL), "{failed:#?}\n{}", plain.lines().last().unwrap_or_default());
}

#[test]
fn all_cases_pass_with_a_handler_that_answers_at_once() {
    judge(false);
}

#[test]
fn all_cases_pass_with_a_handler_that_reads_the_body() {
    judge(true);
}
