//! What a server writes, and how an exchange ends: S08, S12, S13, S14.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

mod support;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyperman_http1::{BodySize, CloseReason, HeadCache, Limits, Loan, Misuse, Server, ServerEvent};
use support::*;

fn asked(request: &str) -> Server {
    let mut machine = server(Limits::default());
    server_input(&mut machine, request.as_bytes());
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))), "{request}");
    machine
}

fn get() -> Server {
    asked("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
}

const UPLOAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n";
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

#[test]
fn framing_fields_by_method_status_and_size() {
    use BodySize::{Known, Unknown};
    let none: &[(&str, &str)] = &[];
    for (method, status, fields, size, expected) in [
        ("GET", 200, none, Known(0), "content-length: 0\r\n"),
        ("GET", 200, none, Known(5), "content-length: 5\r\n"),
        ("GET", 200, none, Unknown, "transfer-encoding: chunked\r\n"),
        ("GET", 200, &[("content-length", "5")], Unknown, "content-length: 5\r\n"),
        ("GET", 200, &[("content-length", "5")], Known(5), "content-length: 5\r\n"),
        ("GET", 200, &[("transfer-encoding", "chunked")], Known(5), "transfer-encoding: chunked\r\n"),
        ("GET", 204, none, Known(5), ""),
        ("GET", 204, &[("content-length", "5")], Unknown, ""),
        ("GET", 205, none, Known(5), "content-length: 0\r\n"),
        ("GET", 304, none, Known(0), ""),
        ("GET", 304, &[("content-length", "5")], Known(0), "content-length: 5\r\n"),
        ("HEAD", 200, none, Known(5), "content-length: 5\r\n"),
        ("HEAD", 200, none, Known(0), ""),
        ("HEAD", 200, none, Unknown, ""),
        ("HEAD", 200, &[("content-length", "7")], Known(0), "content-length: 7\r\n"),
        ("HEAD", 204, none, Known(5), ""),
    ] {
        let mut machine = asked(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let status = StatusCode::from_u16(status).unwrap();
        machine.send_head(status, &headers(fields), size).unwrap();
        let reason = status.canonical_reason().unwrap();
        assert_eq!(
            server_output(&mut machine),
            format!("HTTP/1.1 {} {reason}\r\n{expected}\r\n", status.as_u16()),
            "{method} {status} {fields:?} {size:?}"
        );
    }
}

#[test]
fn bodies_are_written_as_framed_and_dropped_where_there_is_none() {
    let large = Bytes::from(vec![b'x'; 5000]);
    let mut machine = get();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    machine.send_data(Bytes::from_static(b"abc")).unwrap();
    machine.send_data(Bytes::new()).unwrap();
    machine.send_data(large.clone()).unwrap();
    machine.send_external(17).unwrap();
    machine.send_trailers(&headers(&[("x-sum", "1")])).unwrap();
    let body = server_output(&mut machine);
    let x = "x".repeat(5000);
    let dots = ".".repeat(17);
    assert!(
        body.ends_with(&format!("\r\n\r\n3\r\nabc\r\n1388\r\n{x}\r\n11\r\n{dots}\r\n0\r\nx-sum: 1\r\n\r\n"))
    );
    assert!(machine.is_idle());

    for (method, status) in [("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 205)] {
        let mut machine = asked(&format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let status = StatusCode::from_u16(status).unwrap();
        machine.send_head(status, &HeaderMap::new(), BodySize::Known(3)).unwrap();
        machine.send_data(Bytes::from_static(b"abc")).unwrap();
        machine.send_external(9).unwrap();
        machine.end().unwrap();
        assert!(server_output(&mut machine).ends_with("\r\n\r\n"), "{method} {status}");
        assert!(machine.is_idle());
    }
}

#[test]
fn an_http_1_0_client_gets_a_body_that_ends_with_the_connection() {
    let mut machine = asked("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    machine.send_interim(StatusCode::EARLY_HINTS, &HeaderMap::new()).unwrap();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    machine.send_data(Bytes::from_static(b"abc")).unwrap();
    machine.end().unwrap();
    assert_eq!(server_output(&mut machine), "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc");
    assert_eq!(machine.is_closed(), Some(CloseReason::KeepAliveOff));
}

#[test]
fn misuse_leaves_the_machine_as_it_was() {
    let mut machine = get();
    let head = |machine: &mut Server, status: u16, fields: &[(&'static str, &str)], size| {
        machine.send_head(StatusCode::from_u16(status).unwrap(), &headers(fields), size)
    };
    let five = BodySize::Known(5);
    assert_eq!(machine.send_data(Bytes::from_static(b"a")), Err(Misuse::NoMessage));
    assert_eq!(machine.end(), Err(Misuse::NoMessage));
    assert_eq!(head(&mut machine, 100, &[], five), Err(Misuse::WrongStatus));
    assert_eq!(head(&mut machine, 103, &[], five), Err(Misuse::WrongStatus));
    assert_eq!(head(&mut machine, 101, &[("upgrade", "x")], five), Err(Misuse::UpgradeNotPossible));
    assert_eq!(head(&mut machine, 200, &[("content-length", "4")], five), Err(Misuse::ConflictingFraming));
    assert_eq!(head(&mut machine, 200, &[("content-length", "x")], five), Err(Misuse::ConflictingFraming));
    assert_eq!(
        head(&mut machine, 200, &[("transfer-encoding", "gzip")], five),
        Err(Misuse::ConflictingFraming)
    );
    let both = [("transfer-encoding", "chunked"), ("content-length", "5")];
    assert_eq!(head(&mut machine, 200, &both, five), Err(Misuse::ConflictingFraming));
    let two = [("content-length", "5"), ("content-length", "6")];
    assert_eq!(head(&mut machine, 200, &two, five), Err(Misuse::ConflictingFraming));
    assert!(!machine.has_transmit(), "nothing of it was queued");
    head(&mut machine, 500, &[], five).unwrap();
    assert_eq!(head(&mut machine, 200, &[], five), Err(Misuse::HeadAlreadySent));
    assert_eq!(machine.send_data(Bytes::from_static(b"123456")), Err(Misuse::BodyTooLong));
    assert_eq!(machine.send_external(6), Err(Misuse::BodyTooLong));
    machine.send_data(Bytes::from_static(b"12345")).unwrap();
    machine.end().unwrap();
    assert_eq!(
        server_output(&mut machine),
        "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\n12345"
    );
    assert_eq!(machine.end(), Err(Misuse::NoMessage));
    assert_eq!(head(&mut machine, 200, &[], five), Err(Misuse::NoMessage));
}

#[test]
fn s13_forbidden_trailers_are_refused_and_the_body_stays_open() {
    let mut machine = get();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    server_output(&mut machine);
    for name in ["content-length", "host", "transfer-encoding", "set-cookie", "trailer", "connection"] {
        assert_eq!(
            machine.send_trailers(&headers(&[("x", "1"), (name, "1")])),
            Err(Misuse::ForbiddenTrailer)
        );
    }
    assert!(!machine.has_transmit());
    machine.end().unwrap();
    assert_eq!(server_output(&mut machine), "0\r\n\r\n");
}

#[test]
fn an_answer_that_falls_short_closes_without_looking_complete() {
    let mut machine = get();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Known(5)).unwrap();
    machine.send_data(Bytes::from_static(b"123")).unwrap();
    assert_eq!(machine.end(), Err(Misuse::BodyTooShort));
    assert_eq!(machine.is_closed(), Some(CloseReason::Aborted));

    let mut machine = get();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    machine.send_data(Bytes::from_static(b"123")).unwrap();
    machine.abort();
    assert!(server_output(&mut machine).ends_with("3\r\n123\r\n"), "no last chunk");
    assert_eq!(machine.is_closed(), Some(CloseReason::Aborted));
    assert_eq!(machine.send_data(Bytes::from_static(b"4")), Err(Misuse::Closed));
}

#[test]
fn interim_answers() {
    let mut machine = asked(&format!("{UPLOAD}Expect: 100-continue\r\n\r\n"));
    for status in [100, 101, 200] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(machine.send_interim(status, &HeaderMap::new()), Err(Misuse::WrongStatus));
    }
    let framed = headers(&[("content-length", "3")]);
    assert_eq!(machine.send_interim(StatusCode::EARLY_HINTS, &framed), Err(Misuse::ConflictingFraming));
    machine.send_interim(StatusCode::EARLY_HINTS, &headers(&[("link", "</a>")])).unwrap();
    machine.send_continue();
    machine.send_continue();
    assert_eq!(
        server_output(&mut machine),
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    );
    server_input(&mut machine, b"12345");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Data(_)))));
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::End))));
    machine.send_continue();
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert_eq!(server_output(&mut machine), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert!(machine.is_idle(), "the body was asked for and read: the connection persists");
}

#[test]
fn s14_a_final_answer_before_the_100_closes() {
    for ignore_first in [true, false] {
        let mut machine = asked(&format!("{UPLOAD}Expect: 100-continue\r\n\r\n"));
        if ignore_first {
            machine.ignore_body();
        }
        machine.send_full(StatusCode::FORBIDDEN, &HeaderMap::new(), Bytes::new()).unwrap();
        assert!(server_output(&mut machine).contains("connection: close\r\n"));
        assert!(machine.is_closed().is_some());
        assert!(machine.needs_linger());
        server_input(&mut machine, b"12345GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(matches!(machine.next_event(), Ok(None)));
        machine.handle_eof();
        assert!(!machine.needs_linger());
    }
}

#[test]
fn s08_an_unread_body_is_drained_up_to_a_bound() {
    let limits = Limits { drain: 8, ..Limits::default() };
    let begin = |head: &str| {
        let mut machine = server(limits.clone());
        server_input(&mut machine, head.as_bytes());
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        machine
    };
    // Short enough: thrown away, and the next request is found behind it.
    let mut machine = begin(&format!("{UPLOAD}\r\n12"));
    machine.ignore_body();
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert!(!server_output(&mut machine).contains("close"));
    assert!(matches!(machine.next_event(), Ok(None)));
    server_input(&mut machine, b"345GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    let Ok(Some(ServerEvent::Request { request, .. })) = machine.next_event() else { panic!() };
    assert_eq!(request.uri(), "/next");
    // Known to be too long before the head: the answer says so.
    let mut machine = begin("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
    machine.ignore_body();
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert!(server_output(&mut machine).contains("connection: close\r\n"));
    assert_eq!(machine.is_closed(), Some(CloseReason::UnreadBody));
    assert!(machine.needs_linger());
    // Found out later, in chunks.
    let mut machine = begin("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n");
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    machine.ignore_body();
    server_output(&mut machine);
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.is_closed(), None);
    server_input(&mut machine, b"5\r\n12345\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.is_closed(), Some(CloseReason::UnreadBody));
    // While the answer is still being made, no more is read than the bound.
    let mut machine =
        begin("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n");
    machine.ignore_body();
    assert!(matches!(machine.next_event(), Ok(None)));
    assert!(!machine.wants_read());
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert!(server_output(&mut machine).contains("connection: close\r\n"));
}

#[test]
fn an_answer_may_end_before_its_request_does() {
    let mut machine = asked(&format!("{UPLOAD}\r\n12"));
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    server_output(&mut machine);
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Data(data))) if data == "12"));
    server_input(&mut machine, b"345");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Data(data))) if data == "345"));
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::End))));
    assert!(machine.is_idle());
}

#[test]
fn s12_the_connection_switches_only_with_our_101() {
    let mut machine = asked(UPGRADE);
    server_input(&mut machine, b"tunnel bytes");
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.take_upgraded(), None);
    let no_field = machine.send_head(StatusCode::SWITCHING_PROTOCOLS, &HeaderMap::new(), BodySize::Known(0));
    assert_eq!(no_field, Err(Misuse::UpgradeNotPossible));
    let fields = headers(&[("upgrade", "x")]);
    machine.send_head(StatusCode::SWITCHING_PROTOCOLS, &fields, BodySize::Known(0)).unwrap();
    assert_eq!(machine.is_closed(), Some(CloseReason::Upgraded));
    assert_eq!(machine.take_upgraded(), None, "not before our 101 is written");
    assert_eq!(
        server_output(&mut machine),
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
    );
    assert!(matches!(machine.next_event(), Ok(None)));
    assert_eq!(machine.take_upgraded(), Some(Bytes::from_static(b"tunnel bytes")));

    // Declined: what follows is HTTP again.
    let mut machine = asked(UPGRADE);
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    server_output(&mut machine);
    server_input(&mut machine, b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));

    // Not before the request's body was read.
    let upload = UPLOAD.replace("\r\nContent", "\r\nConnection: upgrade\r\nUpgrade: x\r\nContent");
    let mut machine = asked(&format!("{upload}\r\n"));
    let early = machine.send_head(StatusCode::SWITCHING_PROTOCOLS, &fields, BodySize::Known(0));
    assert_eq!(early, Err(Misuse::UpgradeNotPossible));

    let mut machine = asked("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\nearly");
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Known(0)).unwrap();
    assert_eq!(server_output(&mut machine), "HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(machine.take_upgraded(), Some(Bytes::from_static(b"early")));

    let mut machine = asked("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n");
    machine.send_full(StatusCode::FORBIDDEN, &HeaderMap::new(), Bytes::from_static(b"no")).unwrap();
    assert!(server_output(&mut machine).ends_with("content-length: 2\r\n\r\nno"));
    assert!(machine.is_idle());
}

#[test]
fn connection_close_by_the_handler_and_by_drain() {
    let mut machine = get();
    machine.send_full(StatusCode::OK, &headers(&[("connection", "close")]), Bytes::new()).unwrap();
    assert_eq!(
        server_output(&mut machine),
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(machine.is_closed(), Some(CloseReason::KeepAliveOff));

    let mut machine = get();
    machine.drain();
    assert_eq!(machine.is_closed(), None);
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert!(server_output(&mut machine).contains("connection: close\r\n"));
    assert_eq!(machine.is_closed(), Some(CloseReason::Drained));

    let mut machine = server(Limits::default());
    machine.drain();
    assert_eq!(machine.is_closed(), Some(CloseReason::Drained));
    assert!(!machine.needs_linger());
}

#[test]
fn the_date_is_the_loans_unless_the_handler_has_its_own() {
    let mut loan = Loan { date: *b"Sun, 06 Nov 1994 08:49:37 GMT", ..Loan::default() };
    let mut machine = get();
    machine.lend(&mut loan);
    machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::new()).unwrap();
    assert_eq!(
        server_output(&mut machine),
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
    );
    let mut machine = get();
    machine.lend(&mut loan);
    machine.send_full(StatusCode::OK, &headers(&[("date", "today")]), Bytes::new()).unwrap();
    assert_eq!(server_output(&mut machine), "HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 0\r\n\r\n");
}

#[test]
fn the_short_way_writes_what_the_long_way_writes() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for (fields, status, short) in [
        (headers(&[]), 200, true),
        (headers(&[("content-type", "text/plain"), ("x", "1"), ("x", "2")]), 200, true),
        (headers(&[]), 404, false),
        (headers(&[("date", "today")]), 200, false),
        (headers(&[("connection", "close")]), 200, false),
        (headers(&[("content-length", "5")]), 200, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let date = *b"Sun, 06 Nov 1994 08:49:37 GMT";
        let mut loan = Loan { heads: Some(Box::new(HeadCache::new(1))), date, ..Loan::default() };
        let mut machine = server(Limits::default());
        let mut long = String::new();
        // What comes the second time is kept.
        for _ in 0..2 {
            machine.lend(&mut loan);
            server_input(&mut machine, head);
            assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
            machine.send_full(status, &fields, Bytes::from_static(b"hello")).unwrap();
            long = server_output(&mut machine);
            machine.reclaim(&mut loan);
            if fields.contains_key("connection") {
                machine = server(Limits::default());
            }
        }
        let mut answered = 0;
        if machine.can_run_ahead() {
            Server::read_ahead(&mut loan).extend_from_slice(&head.repeat(2));
            while let Some(found) = machine.find_plain(loan.heads.as_deref(), &loan.read) {
                let request = machine.take_plain(found, &mut loan.read, ());
                assert_eq!((request.uri().path(), &request.headers()["host"]), ("/", &"a".parse().unwrap()));
                if !machine.answer_plain(&mut loan, status, &fields, b"hello") {
                    break;
                }
                answered += 1;
            }
        }
        assert_eq!(answered, if short { 2 } else { 0 }, "{fields:?}");
        assert_eq!(String::from_utf8_lossy(&loan.write), long.repeat(answered));
        if short {
            assert!(machine.is_idle() && loan.read.is_empty());
        }
    }
}

#[test]
fn faults_are_answered_once_and_only_where_an_answer_can_be() {
    let mut machine = get();
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Known(0)).unwrap();
    machine.end().unwrap();
    server_input(&mut machine, b"BAD\r\n\r\n");
    let error = machine.next_event().unwrap_err();
    machine.answer_fault(&error);
    machine.answer_fault(&error);
    let output = server_output(&mut machine);
    let text = "invalid request line \"BAD\"\n";
    let expected = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 Bad Request\r\n\
         content-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    assert_eq!(output, expected);
    // In the middle of an answer there is nothing left to say.
    let mut machine = asked("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx");
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    server_output(&mut machine);
    let error = machine.next_event().unwrap_err();
    machine.answer_fault(&error);
    assert_eq!(server_output(&mut machine), "");
    assert_eq!(machine.is_closed(), Some(CloseReason::Fault));
}

#[test]
fn only_a_body_that_ends_with_the_connection_can_be_cut_short() {
    let request = "GET / HTTP/1.0\r\n\r\n";
    for (request, size, cut) in [
        (request, BodySize::Unknown, true),
        (request, BodySize::Known(3), false),
        ("HEAD / HTTP/1.0\r\n\r\n", BodySize::Unknown, false),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", BodySize::Unknown, false),
    ] {
        let mut machine = server(Limits::default());
        server_input(&mut machine, request.as_bytes());
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        assert!(!machine.is_cut_short());
        machine.send_head(StatusCode::OK, &HeaderMap::new(), size).unwrap();
        machine.send_data(Bytes::from_static(b"abc")).unwrap();
        server_output(&mut machine);
        assert_eq!(machine.is_cut_short(), cut, "{request:?} {size:?}");
        machine.end().unwrap();
        assert!(!machine.is_cut_short());
    }
    // What was not written yet is not there either.
    let mut machine = server(Limits::default());
    server_input(&mut machine, request.as_bytes());
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    machine.send_head(StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
    machine.end().unwrap();
    assert!(machine.is_cut_short());
    server_output(&mut machine);
    assert!(!machine.is_cut_short());
}

#[test]
fn a_205_to_head_announces_no_content() {
    let mut machine = server(Limits::default());
    server_input(&mut machine, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
    machine.send_full(StatusCode::RESET_CONTENT, &HeaderMap::new(), Bytes::from_static(b"abc")).unwrap();
    assert_eq!(server_output(&mut machine), "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n");
}

#[test]
fn an_idle_machine_owns_no_storage() {
    let mut loan = Loan {
        heads: Some(Box::new(HeadCache::new(1))),
        read: bytes::BytesMut::with_capacity(16 << 10),
        ..Loan::default()
    };
    let mut machine = server(Limits::default());
    for round in 0..5 {
        machine.lend(&mut loan);
        assert!(loan.heads.is_none());
        server_input(&mut machine, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(matches!(machine.next_event(), Ok(Some(ServerEvent::Request { .. }))));
        machine.send_full(StatusCode::OK, &HeaderMap::new(), Bytes::from(vec![b'x'; 9000])).unwrap();
        server_output(&mut machine);
        machine.reclaim(&mut loan);
        assert!(loan.heads.is_some());
        assert!(loan.read.capacity() > 8 << 10, "round {round}: the storage came back");
        assert!(loan.write.capacity() > 0);
        assert!(format!("{machine:?}").contains("read: b\"\""));
    }
}

#[test]
fn half_a_head_holds_no_more_than_was_sent() {
    let mut loan = Loan { read: bytes::BytesMut::with_capacity(16 << 10), ..Loan::default() };
    let mut machine = server(Limits::default());
    let request = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";
    let (last, first) = request.as_bytes().split_last().unwrap();
    for byte in first {
        machine.lend(&mut loan);
        server_input(&mut machine, &[*byte]);
        assert!(matches!(machine.next_event(), Ok(None)));
        machine.reclaim(&mut loan);
        assert!(loan.read.is_empty() && loan.read.capacity() > 15 << 10, "the large storage came back");
    }
    machine.lend(&mut loan);
    server_input(&mut machine, &[*last]);
    let Ok(Some(ServerEvent::Request { request, .. })) = machine.next_event() else { panic!() };
    assert_eq!(request.uri(), "/slow");
}
