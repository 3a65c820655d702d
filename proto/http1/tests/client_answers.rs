//! What a client makes of answers: S01 to S07, S12, S14, S16, S49, S52, S53.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

mod support;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use hyperman_http1::{
    BodySize, ClientConfig, ClientEvent, CloseReason, Error, Limits, Misuse, PreparedFields, Reason,
};
use support::*;

const GET: Method = Method::GET;

#[test]
fn answers_by_framing() {
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        &["200 HTTP/1.1 content-length=3 Known(3)", "data abc", "end", "reusable"],
    );
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        &["200 HTTP/1.1 content-length=0 Empty", "reusable"],
    );
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nX-Sum: 1\r\nHost: h\r\n\r\n",
        &[
            "200 HTTP/1.1 transfer-encoding=chunked Chunked",
            "data abc",
            "trailers x-sum=1",
            "end",
            "reusable",
        ],
    );
    client_vector_eof(
        GET,
        "HTTP/1.1 200 OK\r\n\r\nabc",
        &["200 HTTP/1.1 UntilClose", "data abc", "end", "not reusable, closed KeepAliveOff"],
    );
    client_vector_eof(
        GET,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc",
        &[
            "200 HTTP/1.1 transfer-encoding=identity UntilClose",
            "data abc",
            "end",
            "not reusable, closed KeepAliveOff",
        ],
    );
    for status in [204, 304] {
        client_vector(
            GET,
            &format!("HTTP/1.1 {status} x\r\nContent-Length: 3\r\n\r\n"),
            &[&format!("{status} HTTP/1.1 content-length=3 Empty"), "reusable"],
        );
    }
    client_vector(
        Method::HEAD,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        &["200 HTTP/1.1 transfer-encoding=chunked Empty", "reusable"],
    );
}

#[test]
fn keep_alive_by_version_and_exact_tokens() {
    for (head, last) in [
        ("HTTP/1.1 204 x\r\nConnection: close\r\n", "not reusable, closed KeepAliveOff"),
        ("HTTP/1.1 204 x\r\nConnection: x, CLOSE\r\n", "not reusable, closed KeepAliveOff"),
        ("HTTP/1.1 204 x\r\nConnection: closed\r\n", "reusable"),
        ("HTTP/1.0 204 x\r\n", "not reusable, closed KeepAliveOff"),
        ("HTTP/1.0 204 x\r\nConnection: keep-alive\r\n", "reusable"),
        ("HTTP/1.9 204 x\r\n", "reusable"),
    ] {
        let log = client_log(&ClientConfig::default(), &GET, &[format!("{head}\r\n").as_bytes()], false);
        assert_eq!(log[1], last, "{head}");
    }
}

#[test]
fn s01_transfer_encoding_wins_and_the_connection_is_not_reused() {
    for fields in [
        "Transfer-Encoding: chunked\r\nContent-Length: 9\r\n",
        "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n",
    ] {
        client_vector(
            GET,
            &format!("HTTP/1.1 200 OK\r\n{fields}\r\n1\r\na\r\n0\r\n\r\n"),
            &[
                "200 HTTP/1.1 transfer-encoding=chunked Chunked",
                "data a",
                "end",
                "not reusable, closed KeepAliveOff",
            ],
        );
    }
}

#[test]
fn s02_s03_transfer_encoding_of_answers() {
    for value in ["chunked, chunked", "chunked, gzip", "chunked;a", ",chunked", "\"chunked\""] {
        client_vector(
            GET,
            &format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n"),
            &["error invalid Transfer-Encoding"],
        );
    }
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        &["error unsupported transfer coding"],
    );
    client_vector(
        GET,
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[
            "200 HTTP/1.0 connection=keep-alive transfer-encoding=chunked Chunked",
            "end",
            "not reusable, closed KeepAliveOff",
        ],
    );
}

#[test]
fn s04_s05_s06_numbers_and_chunks_of_answers() {
    for value in ["+3", "", "3, ", "3, x", "0x3", "18446744073709551616"] {
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nabc");
        client_vector(GET, &input, &[&format!("error invalid Content-Length \"{}\"", value.trim_end())]);
    }
    // One number said again and again is that number (RFC 9112 §6.3 item 5).
    for value in ["3, 3", "3 ,3,\t3", "3, 03", "3\r\nContent-Length: 3, 3"] {
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\nabc");
        client_vector(
            GET,
            &input,
            &["200 HTTP/1.1 content-length=3 Known(3)", "data abc", "end", "reusable"],
        );
    }
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc",
        &["error conflicting Content-Length"],
    );
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        &["error conflicting Content-Length"],
    );
    let head = "200 HTTP/1.1 transfer-encoding=chunked Chunked";
    for (body, error) in [
        ("\r\n", "error invalid chunk size"),
        ("x\r\n", "error invalid chunk size"),
        ("11111111111111111\r\n", "error invalid chunk size"),
        ("1;\r\n", "error invalid chunk extension"),
        ("1;a=\"\n\"\r\n", "error invalid chunk extension"),
        ("1\n", "error invalid chunk size"),
    ] {
        let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        client_vector(GET, &input, &[head, error]);
    }
    client_vector(
        GET,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab",
        &[head, "data a", "error chunk data not followed by CRLF"],
    );
}

#[test]
fn s07_line_ends_and_folds_of_answers() {
    for (input, error) in [
        ("HTTP/1.1 200 OK\n\n", "error line not ended by CRLF"),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", "error line not ended by CRLF"),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", "error line not ended by CRLF"),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "error folded field line"),
        ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "error folded field line"),
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "error invalid field line \"A \""),
        ("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", "error invalid value of field \"A\""),
        ("HTTP/1.1 20 OK\r\n\r\n", "error invalid status line \"HTTP/1.1 20 OK\""),
        ("HTTP/2.0 200 OK\r\n\r\n", "error unsupported protocol version \"HTTP/2.0\""),
        ("ICY 200 OK\r\n\r\n", "error invalid protocol version \"ICY 200 \""),
    ] {
        if input.starts_with("\r\n") {
            // An empty line is no status line, whatever follows.
            let log = client_log(&ClientConfig::default(), &GET, &[input.as_bytes()], false);
            assert!(log[0].starts_with("error"), "{log:?}");
        } else {
            client_vector(GET, input, &[error]);
        }
    }
    let config = ClientConfig { unfold: true, ..ClientConfig::default() };
    client_vector_with(
        &config,
        GET,
        b"HTTP/1.1 204 x\r\nA: b\r\n \tc\r\n  d\r\nE: f\r\n\r\n",
        false,
        &["204 HTTP/1.1 a=b   \\tc    d e=f Empty", "reusable"],
    );
    client_vector_with(&config, GET, b"HTTP/1.1 204 x\r\n A: b\r\n\r\n", false, &["error folded field line"]);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n";
    let head = "200 HTTP/1.1 transfer-encoding=chunked Chunked";
    client_vector_with(&config, GET, chunked, false, &[head, "trailers a=b   c", "end", "reusable"]);
    client_vector(GET, std::str::from_utf8(chunked).unwrap(), &[head, "error folded field line"]);
}

#[test]
fn s12_101_only_where_it_was_offered_and_is_agreed() {
    let switch = "HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n";
    let mut machine = client();
    let fields = headers(&[("host", "a"), ("upgrade", "x"), ("connection", "upgrade")]);
    machine.send_head(&GET, "/", Version::HTTP_11, &fields, BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    client_input(&mut machine, format!("{switch}tunnel").as_bytes());
    assert!(matches!(machine.next_event(), Ok(Some(ClientEvent::Upgraded(_)))));
    assert_eq!(machine.is_closed(), Some(CloseReason::Upgraded));
    assert_eq!(machine.take_upgraded(), Some(Bytes::from_static(b"tunnel")));

    for input in [
        "HTTP/1.1 101 x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 101 x\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 101 x\r\n\r\n",
    ] {
        client_vector(GET, input, &["error upgrade that was not asked for"]);
    }
    let mut machine = client();
    machine.send_head(&GET, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    client_input(&mut machine, switch.as_bytes());
    assert_eq!(machine.next_event().unwrap_err(), Error::UnrequestedUpgrade);

    client_vector(
        Method::CONNECT,
        "HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\nabc",
        &["upgraded 200 HTTP/1.1 content-length=3", "not reusable, closed Upgraded"],
    );
    client_vector(
        Method::CONNECT,
        "HTTP/1.1 407 x\r\nContent-Length: 3\r\n\r\nabc",
        &["407 HTTP/1.1 content-length=3 Known(3)", "data abc", "end", "reusable"],
    );
}

#[test]
fn s13_requests_that_must_not_be_written() {
    let host = headers(&[("host", "a")]);
    let none = BodySize::Known(0);
    let send = |method: &Method, target: &str, fields: &HeaderMap, size| {
        let mut machine = client();
        let sent = machine.send_head(method, target, Version::HTTP_11, fields, size);
        assert_eq!(sent.is_err(), !machine.has_transmit(), "nothing of it was queued");
        // Prepared fields are held to the same rules.
        let prepared = PreparedFields::new(fields).and_then(|fields| {
            let mut machine = client();
            let sent = machine.send_prepared_head(method, target, Version::HTTP_11, &fields, size);
            assert_eq!(sent.is_err(), !machine.has_transmit(), "nothing of it was queued");
            sent
        });
        assert_eq!(prepared.is_err(), sent.is_err(), "{fields:?}");
        sent
    };
    for target in [
        "",
        "a",
        "/ b",
        "/\r\n",
        "/\n",
        "/\0",
        "/\u{7f}",
        "/\u{e9}",
        "/#a",
        "*",
        "http://u@a/",
        "a:1",
        "//\t",
    ] {
        assert_eq!(send(&GET, target, &host, none), Err(Misuse::InvalidTarget), "{target:?}");
    }
    for target in ["/", "a", "a:", "http://a:1/", "a:1 ", "u@a:1"] {
        assert_eq!(send(&Method::CONNECT, target, &host, none), Err(Misuse::InvalidTarget), "{target:?}");
    }
    for fields in [&[][..], &[("host", "a"), ("host", "a")], &[("host", "a b")], &[("host", "a/b")]] {
        assert_eq!(send(&GET, "/", &headers(fields), none), Err(Misuse::InvalidTarget), "{fields:?}");
    }
    for (fields, size) in [
        (&[("host", "a"), ("content-length", "3")][..], BodySize::Known(2)),
        (&[("host", "a"), ("content-length", "x")], BodySize::Known(0)),
        (&[("host", "a"), ("transfer-encoding", "chunked"), ("content-length", "3")], BodySize::Known(3)),
        (&[("host", "a"), ("transfer-encoding", "gzip")], BodySize::Unknown),
        (
            &[("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            BodySize::Unknown,
        ),
    ] {
        assert_eq!(
            send(&Method::POST, "/", &headers(fields), size),
            Err(Misuse::ConflictingFraming),
            "{fields:?}"
        );
    }
    assert_eq!(send(&Method::CONNECT, "a:1", &host, BodySize::Known(1)), Err(Misuse::ConflictingFraming));
    let mut machine = client();
    let sent = machine.send_head(&GET, "/", Version::HTTP_2, &host, none);
    assert_eq!(sent, Err(Misuse::UnsupportedVersion));
    let sent = machine.send_head(&Method::POST, "/", Version::HTTP_10, &host, BodySize::Unknown);
    assert_eq!(sent, Err(Misuse::ConflictingFraming));
    assert!(machine.can_reuse());
}

#[test]
fn requests_as_they_are_written() {
    for (method, fields, size, expected) in [
        (Method::GET, &[("host", "a")][..], BodySize::Known(0), "GET /x HTTP/1.1\r\nhost: a\r\n\r\n"),
        (
            Method::POST,
            &[("host", "a")],
            BodySize::Known(0),
            "POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n",
        ),
        (
            Method::GET,
            &[("host", "a")],
            BodySize::Known(3),
            "GET /x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n",
        ),
        (
            Method::PUT,
            &[("host", "a")],
            BodySize::Unknown,
            "PUT /x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (
            Method::GET,
            &[("host", "a"), ("connection", "close"), ("upgrade", "x"), ("connection", "Upgrade")],
            BodySize::Known(0),
            "GET /x HTTP/1.1\r\nhost: a\r\nupgrade: x\r\nconnection: close, upgrade\r\n\r\n",
        ),
    ] {
        let mut machine = client();
        machine.send_head(&method, "/x", Version::HTTP_11, &headers(fields), size).unwrap();
        assert_eq!(client_output(&mut machine), expected);
    }
}

#[test]
fn s14_an_answer_before_the_upload_ended_is_the_last() {
    for answer in [
        "HTTP/1.1 403 x\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.0 200 x\r\nContent-Length: 1\r\n\r\na",
    ] {
        let mut machine = client();
        let fields = headers(&[("host", "a"), ("expect", "100-continue")]);
        machine.send_head(&Method::POST, "/", Version::HTTP_11, &fields, BodySize::Known(5)).unwrap();
        client_output(&mut machine);
        client_input(&mut machine, answer.as_bytes());
        while let Some(event) = machine.next_event().unwrap() {
            drop(event);
        }
        assert_eq!(machine.is_closed(), Some(CloseReason::KeepAliveOff));
        assert!(!machine.can_reuse() && !machine.is_uploading());
        assert_eq!(machine.send_data(Bytes::from_static(b"12345")), Err(Misuse::Closed));
    }
    // After a 100 and the whole body, it persists.
    let mut machine = client();
    machine
        .send_head(&Method::POST, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(5))
        .unwrap();
    client_output(&mut machine);
    client_input(&mut machine, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ClientEvent::Interim(_)))));
    machine.send_data(Bytes::from_static(b"12345")).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    client_input(&mut machine, b"HTTP/1.1 204 x\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ClientEvent::Response { .. }))));
    assert!(machine.can_reuse());
}

#[test]
fn s16_limits_of_answers() {
    let limits = Limits { request_line: 20, field: 10, head: 60, fields: 3, body: 4, ..Limits::default() };
    let config = ClientConfig { limits, ..ClientConfig::default() };
    for (input, error) in [
        ("HTTP/1.1 200 xxxxxxxxxxxxx\r\n", "error first line too long"),
        ("HTTP/1.1 200 x\r\nA: 12345678\r\n", "error field line too long"),
        ("HTTP/1.1 200 x\r\nA: 1\r\nA: 1\r\nA: 1\r\nA: 1\r\n", "error too many fields"),
        ("HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n", "error field line too long"),
    ] {
        client_vector_with(&config, GET, input.as_bytes(), false, &[error]);
    }
    let config = ClientConfig { limits: Limits { body: 4, ..Limits::default() }, ..ClientConfig::default() };
    for (input, last) in [
        ("HTTP/1.1 200 x\r\nContent-Length: 5\r\n\r\n", "error body too large"),
        ("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n", "error body too large"),
    ] {
        let log = client_log(&config, &GET, &[input.as_bytes()], false);
        assert_eq!(log.last().map(String::as_str), Some(last));
    }
}

#[test]
fn s16_a_body_without_a_length_is_held_to_the_limit_too() {
    let config = ClientConfig { limits: Limits { body: 4, ..Limits::default() }, ..ClientConfig::default() };
    let input = b"HTTP/1.1 200 x\r\n\r\nabcde";
    client_vector_with(
        &config,
        GET,
        input,
        true,
        &["200 HTTP/1.1 UntilClose", "data abcd", "error body too large"],
    );
}

/// RFC 9110 §7.5: who answers early and does not ask to stop gets the rest.
#[test]
fn an_upload_goes_on_behind_an_early_success() {
    for (written, sent_before) in [(0, &b""[..]), (2, &b"12"[..])] {
        let mut machine = client();
        let size = BodySize::Known(5);
        machine.send_head(&Method::POST, "/", Version::HTTP_11, &headers(&[("host", "a")]), size).unwrap();
        machine.send_data(Bytes::from_static(sent_before)).unwrap();
        client_output(&mut machine);
        client_input(&mut machine, b"HTTP/1.1 200 x\r\nContent-Length: 1\r\n\r\na");
        let events = std::iter::from_fn(|| machine.next_event().unwrap());
        assert_eq!(events.count(), 3);
        assert!(machine.is_uploading() && machine.is_closed().is_none() && !machine.can_reuse());
        machine.send_data(Bytes::from_static(&b"12345"[written..])).unwrap();
        machine.end().unwrap();
        assert!(machine.is_uploading(), "until it is written");
        assert_eq!(client_output(&mut machine), "12345"[written..]);
        assert!(!machine.is_uploading() && !machine.can_reuse());
        assert_eq!(machine.is_closed(), Some(CloseReason::KeepAliveOff));
    }
}

/// A head that is too long for a server is answered before all of it is written.
#[test]
fn an_answer_within_the_head_of_its_request_is_taken_and_is_the_last() {
    let mut machine = client();
    let fields = headers(&[("host", "a"), ("x", "long")]);
    machine.send_head(&GET, "/", Version::HTTP_11, &fields, BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    machine.transmitted(5);
    client_input(&mut machine, b"HTTP/1.1 431 x\r\nContent-Length: 0\r\n\r\n");
    let Some(ClientEvent::Response { response, .. }) = machine.next_event().unwrap() else {
        panic!("no answer")
    };
    assert_eq!(response.status(), 431);
    assert_eq!(machine.is_closed(), Some(CloseReason::KeepAliveOff));
}

/// Who speaks another protocol may wait for us to go on in it, and never end what looks like a head.
#[test]
fn another_protocol_is_told_by_its_first_words() {
    for (words, error) in [
        ("220 mail ESMTP\r\n", "invalid protocol version \"220 mail\""),
        ("SSH-2.0-", "invalid protocol version \"SSH-2.0-\""),
        ("+OK\r\n", "invalid status line \"+OK\""),
        ("\0\0\x12\x04\0\0\0\0", "invalid protocol version \"\\x00\\x00\\x12\\x04\\x00\\x00\\x00\\x00\""),
        ("HTTP/1.1 2x0 OK\r\n", "invalid status line \"HTTP/1.1 2x0 OK\""),
    ] {
        let mut machine = client();
        let fields = headers(&[("host", "a")]);
        machine.send_head(&GET, "/", Version::HTTP_11, &fields, BodySize::Known(0)).unwrap();
        machine.end().unwrap();
        client_output(&mut machine);
        client_input(&mut machine, words.as_bytes());
        assert_eq!(machine.next_event().unwrap_err().to_string(), error);
    }
}

#[test]
fn s49_nothing_that_was_not_asked_for_becomes_an_answer() {
    let mut machine = client();
    client_input(&mut machine, b"HTTP/1.1 200 OK\r\n\r\n");
    assert!(!machine.can_reuse());
    assert_eq!(machine.next_event().unwrap_err(), Error::Unsolicited);
    assert!(!Error::Unsolicited.request_may_have_been_processed());

    client_vector(
        GET,
        "HTTP/1.1 204 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        &["204 HTTP/1.1 Empty", "error bytes on a connection that owes no answer"],
    );

    let mut machine = client();
    machine.send_head(&GET, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_input(&mut machine, b"HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(machine.next_event().unwrap_err(), Error::AnswerBeforeRequest);

    let mut machine = client();
    machine.handle_eof();
    assert!(!machine.can_reuse());
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.is_closed(), Some(CloseReason::PeerClosed));
    let sent = machine.send_head(&GET, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(0));
    assert_eq!(sent, Err(Misuse::Closed));
}

#[test]
fn s52_interim_answers_are_counted() {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let log = client_log(
        &ClientConfig::default(),
        &GET,
        &[format!("{}HTTP/1.1 204 x\r\n\r\n", hint.repeat(32)).as_bytes()],
        false,
    );
    assert_eq!(log.len(), 34);
    assert_eq!(log[31], "interim 103 HTTP/1.1 link=x");
    let log = client_log(&ClientConfig::default(), &GET, &[hint.repeat(33).as_bytes()], false);
    assert_eq!(log.last().map(String::as_str), Some("error too many interim answers"));
}

#[test]
fn s53_errors_show_the_peers_bytes_escaped_and_cut() {
    client_vector(
        GET,
        "HTTP/1.1 200 \x1b[31mred\x07\r\n\r\n",
        &["error invalid status line \"HTTP/1.1 200 \\x1b[31mred\\x07\""],
    );
    let log = client_log(
        &ClientConfig::default(),
        &GET,
        &[format!("{}\r\n\r\n", "x".repeat(5000)).as_bytes()],
        false,
    );
    assert_eq!(log, ["error invalid protocol version \"xxxxxxxx\""]);
    let log = client_log(
        &ClientConfig::default(),
        &GET,
        &[format!("HTTP/1.1 204 x\r\n{}\r\n\r\n", "\u{202e}".repeat(100)).as_bytes()],
        false,
    );
    assert!(log[0].is_ascii() && log[0].len() < 300, "{log:?}");
}

#[test]
fn the_end_of_the_stream() {
    for (input, error) in [
        ("H", "error connection closed inside a head"),
        ("HTTP/1.1 200 OK\r\n", "error connection closed inside a head"),
        ("HTTP/1.1 100 x\r\n\r\n", "error connection closed inside a head"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "error connection closed inside a body"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
            "error connection closed inside a body",
        ),
    ] {
        for pieces in cuts(input.as_bytes()) {
            let log = client_log(&ClientConfig::default(), &GET, &pieces, true);
            assert_eq!(log.last().map(String::as_str), Some(error), "{input:?}");
        }
    }
    let mut machine = client();
    machine.send_head(&GET, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    assert!(!machine.bytes_received());
    machine.handle_eof();
    assert_eq!(machine.next_event().unwrap_err(), Error::ClosedBeforeAnswer);
}

#[test]
fn an_unusual_reason_is_in_the_extensions() {
    let mut machine = client();
    machine.send_head(&GET, "/", Version::HTTP_11, &headers(&[("host", "a")]), BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    client_output(&mut machine);
    client_input(&mut machine, b"HTTP/1.1 204 All Quiet\r\n\r\n");
    let Ok(Some(ClientEvent::Response { response, .. })) = machine.next_event() else { panic!() };
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(response.extensions().get::<Reason>(), Some(&Reason(Bytes::from_static(b"All Quiet"))));
}
