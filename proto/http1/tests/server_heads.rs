//! What a server makes of request heads, pipelining and limits: S10, S11, S15, S16.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods, clippy::unwrap_used)] // a test panics where it is wrong, and may read a clock

mod support;

use http::{HeaderMap, StatusCode};
use hyperman_http1::{BodySize, CloseReason, Error, HeadCache, Limits, Loan, Server, ServerEvent};
use support::*;

#[test]
fn the_four_forms_of_a_target_and_any_method() {
    for (line, expected) in [
        ("GET /a?b=c HTTP/1.1", "GET /a?b=c HTTP/1.1 Empty host=a"),
        ("OPTIONS * HTTP/1.1", "OPTIONS * HTTP/1.1 Empty host=a"),
        ("M-SEARCH / HTTP/1.1", "M-SEARCH / HTTP/1.1 Empty host=a"),
        ("get / HTTP/1.1", "get / HTTP/1.1 Empty host=a"),
        ("GET //a HTTP/1.1", "GET //a HTTP/1.1 Empty host=a"),
        ("GET / HTTP/1.7", "GET / HTTP/1.1 Empty host=a"),
    ] {
        server_vector(&format!("{line}\r\nHost: a\r\n\r\n"), &[expected]);
    }
    server_vector(
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        &["GET / HTTP/1.0 Empty connection=keep-alive"],
    );
}

#[test]
fn request_lines_that_are_none() {
    for line in [
        "GET",
        "GET /",
        "GET / ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/ HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1",
        "GET / HTTP/1.",
        "GET / HTTP/1.11",
        "GET / HTTP/0.9",
        "GET / HTP/1.1",
        "G@T / HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET /#a HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET /\x01 HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "CONNECT a HTTP/1.1",
        "CONNECT a: HTTP/1.1",
        "GET http:// HTTP/1.1",
        "GET http://u@a/ HTTP/1.1",
        "GET http://a:x/ HTTP/1.1",
        "GET a:80 HTTP/1.1",
    ] {
        refused(&format!("{line}\r\nHost: a\r\n\r\n"), 400);
    }
    for version in ["HTTP/2.0", "HTTP/3.0", "HTTP/9.1"] {
        refused(&format!("GET / {version}\r\nHost: a\r\n\r\n"), 505);
    }
    refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505);
}

#[test]
fn s10_names_are_not_folded_into_each_other() {
    server_vector(
        "GET / HTTP/1.1\r\nHost: a\r\nX_A: 1\r\nX-A: 2\r\nX.A: 3\r\n\r\n",
        &["GET / HTTP/1.1 Empty host=a x_a=1 x-a=2 x.a=3"],
    );
}

#[test]
fn s11_exactly_one_valid_host() {
    for good in ["", "a", "a:80", "a.example:", "[::1]", "[::1]:8080", "127.0.0.1:80"] {
        server_vector(
            &format!("GET / HTTP/1.1\r\nHost: {good}\r\n\r\n"),
            &[&format!("GET / HTTP/1.1 Empty host={good}")],
        );
    }
    for bad in [
        "a b", "a/b", "u@a", "a:b", "a:1:2", "::1", "[::1", "[x]", "a,b", "a#b", "a?b", "\u{e9}", "http://a",
        "a:99999",
    ] {
        refused(&format!("GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n"), 400);
        refused(&format!("GET / HTTP/1.0\r\nHost: {bad}\r\n\r\n"), 400);
    }
    refused("GET / HTTP/1.1\r\nX: y\r\n\r\n", 400);
    refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    refused("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: b\r\n\r\n", 400);
    refused("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    refused("GET http://a/ HTTP/1.1\r\n\r\n", 400);
    refused("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400);
    server_vector(
        "GET / HTTP/1.0\r\nX: y\r\nConnection: keep-alive\r\n\r\n",
        &["GET / HTTP/1.0 Empty x=y connection=keep-alive"],
    );
    // The target's authority counts, whatever Host said.
    server_vector(
        "GET http://good.example:81/x HTTP/1.1\r\nHost: evil\r\n\r\n",
        &["GET http://good.example:81/x HTTP/1.1 Empty host=good.example:81"],
    );
    server_vector(
        "CONNECT a:443 HTTP/1.1\r\nHost: b\r\n\r\n",
        &["CONNECT a:443 HTTP/1.1 Empty upgrade host=b", "closed Upgraded"],
    );
}

#[test]
fn expectations() {
    server_vector(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\na",
        &["POST / HTTP/1.1 Known(1) expect host=a content-length=1 expect=100-Continue", "data a", "end"],
    );
    server_vector(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        &["POST / HTTP/1.1 Empty host=a expect=100-continue"],
    );
    server_vector(
        "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: x\r\nConnection: keep-alive\r\n\r\na",
        &["POST / HTTP/1.0 Known(1) content-length=1 expect=x connection=keep-alive", "data a", "end"],
    );
    for bad in ["100", "100-continue, x", "x", "100-continue\r\nExpect: y", "y\r\nExpect: 100-continue"] {
        refused(&format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: {bad}\r\n\r\na"), 417);
    }
}

#[test]
fn upgrade_needs_both_fields_and_http_1_1() {
    let request = |fields: &str, version: &str| format!("GET / {version}\r\nHost: a\r\n{fields}\r\n");
    for (fields, version, mark) in [
        ("Upgrade: x\r\nConnection: upgrade\r\n", "HTTP/1.1", " upgrade"),
        ("Connection: keep-alive, Upgrade\r\nUpgrade: x\r\n", "HTTP/1.1", " upgrade"),
        ("Upgrade: x\r\n", "HTTP/1.1", ""),
        ("Connection: upgrade\r\n", "HTTP/1.1", ""),
        ("Connection: notupgrade\r\nUpgrade: x\r\n", "HTTP/1.1", ""),
        ("Connection: upgrade x\r\nUpgrade: x\r\n", "HTTP/1.1", ""),
        ("Connection: upgrade, keep-alive\r\nUpgrade: x\r\n", "HTTP/1.0", ""),
    ] {
        let input = request(fields, version);
        let log = server_log(&Limits::default(), &[input.as_bytes()], false, &mut None);
        assert_eq!(log[0].contains(" Empty upgrade "), mark == " upgrade", "{input:?} {log:?}");
    }
}

#[test]
fn keep_alive_by_version_and_exact_tokens() {
    for (version, connection, persists) in [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: close\r\n", false),
        ("HTTP/1.1", "Connection: Close\r\n", false),
        ("HTTP/1.1", "Connection: x, close\r\n", false),
        ("HTTP/1.1", "Connection: x\r\nConnection: CLOSE\r\n", false),
        ("HTTP/1.1", "Connection: closed\r\n", true),
        ("HTTP/1.1", "Connection: keep-alive, close\r\n", false),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: keep-alive\r\n", true),
        ("HTTP/1.0", "Connection: x-keep-alive\r\n", false),
        ("HTTP/1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
    ] {
        let mut machine = server(Limits::default());
        server_input(&mut machine, format!("GET / {version}\r\nHost: a\r\n{connection}\r\n").as_bytes());
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        machine.send_full(StatusCode::OK, &headers(&[]), bytes::Bytes::new()).unwrap();
        let answer = server_output(&mut machine);
        let said = match (persists, version) {
            (false, _) => "connection: close\r\n",
            (true, "HTTP/1.0") => "connection: keep-alive\r\n",
            (true, _) => "",
        };
        assert_eq!(
            answer,
            format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{said}\r\n"),
            "{version} {connection}"
        );
        assert_eq!(machine.is_closed(), (!persists).then_some(CloseReason::KeepAliveOff));
        assert_eq!(machine.is_idle(), persists);
    }
}

#[test]
fn s15_one_request_at_a_time_and_a_bounded_queue() {
    let mut machine = server(Limits::default());
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    server_input(&mut machine, request.repeat(3).as_bytes());
    for _ in 0..3 {
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        assert!(matches!(machine.next_event(), Ok(None)), "not before the answer");
        machine.send_full(StatusCode::OK, &headers(&[]), bytes::Bytes::new()).unwrap();
    }
    assert!(machine.is_idle() || machine.has_transmit());
    server_output(&mut machine);
    server_input(&mut machine, request.as_bytes());
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    let mut fed = 0;
    while machine.wants_read() {
        server_input(&mut machine, request.as_bytes());
        fed += request.len();
        assert!(matches!(machine.next_event(), Ok(None)));
        assert!(fed < 80 << 10, "the queue is bounded");
    }
    assert!(fed >= 60 << 10);
}

#[test]
fn s16_limits_count_across_reads_of_any_size() {
    let limits = Limits { request_line: 30, field: 20, head: 120, fields: 3, ..Limits::default() };
    let request = |target: usize, fields: &str| {
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n{fields}\r\n", "x".repeat(target)).into_bytes()
    };
    let fits = request(16, "");
    let log = server_log(&limits, &[&fits], false, &mut None);
    assert_eq!(log, ["GET /xxxxxxxxxxxxxxxx HTTP/1.1 Empty host=a"]);
    refused_with(&limits, &request(17, ""), 414);
    refused_with(&limits, &request(1000, ""), 414);
    let value = "y".repeat(17);
    server_vector_with(
        &limits,
        &request(0, &format!("A: {value}\r\n")),
        &[&format!("GET / HTTP/1.1 Empty host=a a={value}")],
    );
    refused_with(&limits, &request(0, &format!("A: {value}y\r\n")), 431);
    server_vector_with(&limits, &request(0, "A: 1\r\nB: 2\r\n"), &["GET / HTTP/1.1 Empty host=a a=1 b=2"]);
    refused_with(&limits, &request(0, "A: 1\r\nB: 2\r\nC: 3\r\n"), 431);
    let limits = Limits { fields: 100, ..limits };
    refused_with(&limits, &request(0, &"A: 1234567890\r\n".repeat(7)), 431);
    // Without an end in sight.
    refused_with(&limits, "x".repeat(33).as_bytes(), 414);
    refused_with(&limits, format!("GET / HTTP/1.1\r\n{}", "x".repeat(30)).as_bytes(), 431);
}

#[test]
fn s16_default_limits() {
    let long = |count: usize| "x".repeat(count);
    refused_whole(&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(8192)), 414);
    refused_whole(&format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", long(16384)), 431);
    refused_whole(&format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(100)), 431);
    refused_whole(
        &format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", format!("A: {}\r\n", long(8000)).repeat(9)),
        431,
    );
    refused_whole("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16777217\r\n\r\n", 413);
}

fn refused_whole(input: &str, status: u16) {
    for pieces in [
        vec![input.as_bytes()],
        input.as_bytes().chunks(1).collect(),
        input.as_bytes().chunks(1460).collect(),
    ] {
        let log = server_log(&Limits::default(), &pieces, false, &mut None);
        assert!(log[0].starts_with(&format!("{status} ")), "{log:?}");
    }
}

#[test]
fn a_block_cached_under_wide_limits_is_held_to_narrow_ones() {
    let mut loan = Some(Loan { heads: Some(Box::new(HeadCache::new(3))), ..Default::default() });
    let request = "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\n\r\n".repeat(4);
    let wide = server_log(&Limits::default(), &[request.as_bytes()], false, &mut loan);
    assert_eq!(wide, ["GET / HTTP/1.1 Empty host=a a=1 b=2"; 4]);
    let narrow = Limits { fields: 2, ..Limits::default() };
    let log = server_log(&narrow, &[request.as_bytes()], false, &mut loan);
    assert_eq!(log, ["431 too many fields", "closed Fault"]);
}

/// What is kept of the first line of the request that `pieces` end with, after they were refused.
fn refused_line(machine: &mut Server, pieces: &[&[u8]]) -> Option<String> {
    for piece in pieces {
        server_input(machine, piece);
        match machine.next_event() {
            Ok(None) => {}
            Ok(Some(ServerEvent::Request { .. })) => {
                machine.send_head(StatusCode::NO_CONTENT, &HeaderMap::new(), BodySize::Known(0)).unwrap();
                machine.end().unwrap();
                server_output(machine);
            }
            Ok(Some(event)) => panic!("{event:?}"),
            Err(error) => {
                machine.answer_fault(&error);
                let line = machine.refused().map(|refused| refused.first_line.escape_ascii().to_string());
                return line;
            }
        }
    }
    panic!("nothing was refused");
}

#[test]
fn the_first_line_of_what_is_refused_is_kept() {
    let long = format!("GET /{}", "a".repeat(9000));
    for (request, line) in [
        ("GET /a HTTP/1.1\r\n\r\n", "GET /a HTTP/1.1"),
        ("GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /a HTTP/1.1"),
        ("GET /a HTTP/1.1\r\nHost : a\r\n\r\n", "GET /a HTTP/1.1"),
        ("GET /a HTTP/9.1\r\n", "GET /a HTTP/9.1"),
        ("\x16\x03\x01", "\\x16"),
        ("GET /a\x1b[2J\rb", "GET /a\\x1b[2J\\rb"),
        ("GET /a HTTP/1.1\n", "GET /a HTTP/1.1"),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "POST / HTTP/1.1"),
        (&long, &long[..1024]),
    ] {
        // The same on a connection that has seen the line, and the field block, in a request that was fine.
        let known = [
            &b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        ];
        for before in [&[][..], &known] {
            let mut machine = server(Limits::default());
            let mut loan = Loan { heads: Some(Box::new(HeadCache::new(1))), ..Loan::default() };
            machine.lend(&mut loan);
            let whole = [before, &[request.as_bytes()]].concat();
            let kept = refused_line(&mut machine, &whole).unwrap();
            assert!(kept.starts_with(line), "{request:?}: {kept}");
            if request.len() > 3 {
                assert_eq!(kept, line, "{request:?}");
                let bytes: Vec<&[u8]> = request.as_bytes().chunks(1).collect();
                let split = [before, &bytes].concat();
                let kept = refused_line(&mut server(Limits::default()), &split).unwrap();
                assert!(line.starts_with(&kept) || kept == line, "{request:?} byte by byte: {kept}");
            }
        }
    }
}

#[test]
fn a_known_head_that_is_refused_in_this_place_keeps_its_line() {
    let mut machine = server(Limits::default());
    let mut loan = Loan { heads: Some(Box::new(HeadCache::new(1))), ..Loan::default() };
    machine.lend(&mut loan);
    // Without Host it is a request of 1.0 alone; line and block are both known when they come together.
    let pieces: [&[u8]; 3] = [
        b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"GET /a HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
    ];
    assert_eq!(refused_line(&mut machine, &pieces).as_deref(), Some("GET /a HTTP/1.1"));
}

#[test]
fn a_refused_body_is_no_refused_request() {
    let mut machine = server(Limits::default());
    server_input(&mut machine, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    let error = machine.next_event().unwrap_err();
    assert_eq!(machine.answer_fault(&error), "invalid chunk size\n".len());
    assert_eq!(machine.refused(), None);
}

#[test]
fn an_answer_to_a_refused_head_request_has_no_content() {
    for (request, content) in
        [("HEAD / HTTP/1.1\r\n\r\n", ""), ("HEADS / HTTP/1.1\r\n\r\n", "missing Host\n")]
    {
        let mut machine = server(Limits::default());
        server_input(&mut machine, request.as_bytes());
        let error = machine.next_event().unwrap_err();
        assert_eq!(machine.answer_fault(&error), content.len());
        let answer = server_output(&mut machine);
        assert!(answer.contains("content-length: 13\r\n"), "{answer}");
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, content, "{request:?}");
    }
}

#[test]
fn s16_more_fields_than_a_map_takes_are_refused_whatever_the_limit() {
    let limits = Limits { fields: usize::MAX, head: usize::MAX, ..Limits::default() };
    for count in [24_000, 25_000, 40_000] {
        let fields: String = (0..count).map(|number| format!("{number}:\r\n")).collect();
        let mut machine = server(limits.clone());
        server_input(&mut machine, format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
        match machine.next_event() {
            Ok(Some(ServerEvent::Request { request, .. })) => {
                assert_eq!((count, request.headers().len()), (24_000, 24_001));
            }
            outcome => assert_eq!(outcome.unwrap_err(), Error::TooManyFields, "{count}"),
        }
    }
}
