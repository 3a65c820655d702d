//! Two of our machines with a network between them, under virtual time.
#![allow(clippy::unwrap_used)] // What fails here fails the test.

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use hyperman_http2::{
    BodyLength, BodySize, ClientEvent, CloseReason, Config, Error, Misuse, Protocol, Reason, Server,
    ServerEvent, StreamError,
};
use support::exchange::{Received, TRIP, get, respond, uri};
use support::letters;
use support::pair::Pair;

#[test]
fn a_get_and_a_post() {
    let mut pair = Pair::new(TRIP);
    let mut received = Received::default();
    get(&mut pair.client, "/hello?x=y");
    let post = pair.client.open(&Method::POST, &uri("/echo"), &HeaderMap::new(), BodySize::Known(6)).unwrap();
    pair.client.send_data(post, Bytes::from_static(b"abc")).unwrap();
    pair.client.send_data(post, Bytes::from_static(b"def")).unwrap();
    pair.client.end(post).unwrap();
    let mut requests = Vec::new();
    let mut body = Vec::new();
    pair.run(
        |client, event| received.take(client, event),
        |server, event| match event {
            ServerEvent::Request { stream, request, body, .. } => {
                requests.push(format!("{} {} {body:?}", request.method(), request.uri()));
                if body == BodyLength::Empty {
                    respond(server, stream, "hello");
                }
            }
            ServerEvent::Data { stream, data } => {
                body.extend_from_slice(&data);
                server.release(stream, data.len());
            }
            ServerEvent::End { stream } => respond(server, stream, body.clone()),
            other => panic!("{other:?}"),
        },
    );
    assert_eq!(
        requests,
        ["GET https://example.com/hello?x=y Empty", "POST https://example.com/echo Known(6)"]
    );
    assert_eq!(received.log, ["1 200 Known(5)", "3 200 Known(6)", "1 end", "3 end"]);
    assert_eq!(body, b"abcdef");
    assert!(pair.client.is_idle() && pair.server.is_idle());
    assert_eq!(pair.client.round_trip(), Some(2 * TRIP));
}

#[test]
fn interim_responses_continue_and_trailers() {
    let mut pair = Pair::new(TRIP);
    let mut received = Received::default();
    let mut headers = HeaderMap::new();
    headers.insert("expect", HeaderValue::from_static("100-continue"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    let stream = pair.client.open(&Method::POST, &uri("/"), &headers, BodySize::Unknown).unwrap();
    let mut server_trailers = None;
    pair.run(
        |client, event| {
            if let ClientEvent::Interim { stream, response } = &event
                && response.status() == StatusCode::CONTINUE
            {
                client.send_data(*stream, Bytes::from_static(b"body")).unwrap();
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", HeaderValue::from_static("42"));
                client.send_trailers(*stream, &trailers).unwrap();
            }
            received.take(client, event);
        },
        |server, event| match event {
            ServerEvent::Request { stream, expect_continue, .. } => {
                assert!(expect_continue);
                server.send_interim(stream, StatusCode::EARLY_HINTS, &HeaderMap::new()).unwrap();
                server.send_continue(stream);
                server.send_continue(stream);
            }
            ServerEvent::Data { stream, data } => server.release(stream, data.len()),
            ServerEvent::Trailers { trailers, .. } => server_trailers = Some(trailers),
            ServerEvent::End { stream } => {
                server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
                server.send_data(stream, letters(3)).unwrap();
                server.send_trailers(stream, server_trailers.as_ref().unwrap()).unwrap();
                server.finished(stream);
            }
            other => panic!("{other:?}"),
        },
    );
    assert_eq!(received.log, ["1 103", "1 100", "1 200 Unknown", r#"1 {"x-sum": "42"}"#, "1 end"]);
    assert_eq!(received.bodies[&stream], 3);
}

#[test]
fn heads_without_content() {
    let table: [(Method, StatusCode, BodySize, Option<&str>); 8] = [
        (Method::HEAD, StatusCode::OK, BodySize::Known(500), Some("500")),
        (Method::HEAD, StatusCode::OK, BodySize::Known(0), None),
        (Method::GET, StatusCode::NO_CONTENT, BodySize::Known(3), None),
        (Method::GET, StatusCode::NOT_MODIFIED, BodySize::Unknown, None),
        // A body that a handler gave where none is says nothing of the one that 200 would have had.
        (Method::GET, StatusCode::NOT_MODIFIED, BodySize::Known(3), None),
        (Method::GET, StatusCode::RESET_CONTENT, BodySize::Known(3), Some("0")),
        (Method::GET, StatusCode::OK, BodySize::Known(0), Some("0")),
        (Method::GET, StatusCode::NOT_FOUND, BodySize::Known(0), Some("0")),
    ];
    for (method, status, size, length) in table {
        let mut pair = Pair::new(TRIP);
        let mut received = Received::default();
        let stream = pair.client.open(&method, &uri("/"), &HeaderMap::new(), BodySize::Known(0)).unwrap();
        pair.run(
            |client, event| received.take(client, event),
            |server, event| {
                if let ServerEvent::Request { stream, .. } = event {
                    server.send_head(stream, status, &HeaderMap::new(), size).unwrap();
                    if size != BodySize::Known(0) {
                        server.send_data(stream, letters(3)).unwrap();
                    }
                    server.end(stream).unwrap();
                    server.finished(stream);
                }
            },
        );
        assert_eq!(received.log, [format!("1 {} Empty", status.as_u16())], "{method} {status} {size:?}");
        let field = received.heads[&stream].headers().get("content-length");
        assert_eq!(field.map(|value| value.to_str().unwrap()), length, "{method} {status} {size:?}");
    }
}

#[test]
fn fields_of_a_connection_are_left_out_and_the_date_is_put_in() {
    let mut pair = Pair::new(TRIP);
    let mut received = Received::default();
    let mut headers = HeaderMap::new();
    for (name, value) in [("connection", "close"), ("keep-alive", "1"), ("te", "deflate"), ("x", " y ")] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("host", HeaderValue::from_static("other.example"));
    let stream = pair.client.open(&Method::GET, &uri("/"), &headers, BodySize::Known(0)).unwrap();
    let mut loan = hyperman_http2::Loan { date: *b"Mon, 21 Oct 2013 20:13:21 GMT", ..Default::default() };
    pair.server.lend(&mut loan);
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, request, .. } = event {
                assert_eq!(request.uri(), "https://other.example/");
                assert_eq!(format!("{:?}", request.headers()), r#"{"x": "y"}"#);
                let mut headers = HeaderMap::new();
                headers.insert("transfer-encoding", HeaderValue::from_static("chunked"));
                server.send_head(stream, StatusCode::OK, &headers, BodySize::Known(0)).unwrap();
                server.finished(stream);
            }
        },
    );
    let fields = format!("{:?}", received.heads[&stream].headers());
    assert_eq!(fields, r#"{"content-length": "0", "date": "Mon, 21 Oct 2013 20:13:21 GMT"}"#);
}

#[test]
fn tunnels() {
    let config = Config { connect_protocol: true, ..Config::server() };
    let mut pair = Pair::with(TRIP, Config::client(), config);
    let target: Uri = "example.com:443".parse().unwrap();
    let refused = pair.client.open_protocol("websocket", &uri("/chat"), &HeaderMap::new());
    assert_eq!(refused, Err(Misuse::NoConnectProtocol), "before the settings have come");
    let connect = pair.client.open(&Method::CONNECT, &target, &HeaderMap::new(), BodySize::Unknown).unwrap();
    pair.client.send_data(connect, Bytes::from_static(b"ping")).unwrap();
    let mut log = Vec::new();
    let serve = |server: &mut Server, event: ServerEvent, log: &mut Vec<String>| match event {
        ServerEvent::Request { stream, request, .. } => {
            let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str).unwrap_or("none");
            log.push(format!("{} {protocol}", request.uri()));
            server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Unknown).unwrap();
        }
        ServerEvent::Data { stream, data } => {
            server.release(stream, data.len());
            server.send_data(stream, data).unwrap();
        }
        ServerEvent::End { stream } => {
            server.end(stream).unwrap();
            server.finished(stream);
        }
        _ => {}
    };
    let mut received = Received::default();
    pair.run(|client, event| received.take(client, event), |server, event| serve(server, event, &mut log));
    let chat = pair.client.open_protocol("websocket", &uri("/chat"), &HeaderMap::new()).unwrap();
    pair.client.send_data(chat, letters(100)).unwrap();
    pair.client.end(connect).unwrap();
    pair.run(|client, event| received.take(client, event), |server, event| serve(server, event, &mut log));
    assert_eq!(log, ["example.com:443 none", "https://example.com/chat websocket"]);
    assert_eq!(received.log, ["1 200 Unknown", "3 200 Unknown", "1 end"]);
    assert_eq!((received.bodies[&connect], received.bodies[&chat]), (4, 100));
}

/// 100 MiB over a path of 20 ms each way. With the first window of 1 MiB it would take a hundred round trips, four
/// seconds; grown windows take it down to a fraction.
/// The same upwards: a server's windows grow as well, and only as far as they may.
/// An application that does not read holds the peer up at the first size of the window, whatever the path.
/// RFC 9218: the urgent goes first; incremental streams share, others go one after the other.
/// All that is ready in a turn leaves in one write.
/// RFC 9113 §6.8: the first GOAWAY asks for no further requests, the second says which ones will be answered.
#[test]
fn a_server_goes_away_in_two_steps() {
    let mut pair = Pair::new(TRIP);
    get(&mut pair.client, "/");
    let mut waiting = None;
    let mut received = Received::default();
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, .. } = event {
                waiting = Some(stream);
                server.drain();
            }
        },
    );
    assert_eq!(received.log, ["goaway 2147483647 NO_ERROR", "goaway 1 NO_ERROR"]);
    assert_eq!(pair.client.can_open(), Err(Misuse::GoingAway));
    assert_eq!(pair.server.is_closed(), None, "the answer is still owed");
    respond(&mut pair.server, waiting.unwrap(), "first");
    pair.run(|client, event| received.take(client, event), |_, _| {});
    assert_eq!(received.log[2..], ["1 200 Known(5)", "1 end"]);
    assert_eq!(pair.server.is_closed(), Some(CloseReason::Drained));
    assert_eq!(pair.client.is_closed(), Some(CloseReason::Drained));
}

#[test]
fn a_request_that_crosses_the_first_goaway_is_answered() {
    let mut pair = Pair::new(TRIP);
    get(&mut pair.client, "/1");
    let mut received = Received::default();
    let mut log = Vec::new();
    let mut first = None;
    // One round trip: both sides know each other.
    pair.run(
        |client, event| received.take(client, event),
        |_, event| {
            if let ServerEvent::Request { stream, .. } = event {
                first = Some(stream);
            }
        },
    );
    get(&mut pair.client, "/2");
    pair.server.drain();
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, request, .. } = event {
                log.push(request.uri().path().to_owned());
                respond(server, stream, "late");
            }
        },
    );
    assert_eq!(log, ["/2"]);
    assert_eq!(received.log, ["goaway 2147483647 NO_ERROR", "3 200 Known(4)", "3 end", "goaway 3 NO_ERROR"]);
}

#[test]
fn a_drain_does_not_wait_for_ever_for_the_pong() {
    let mut pair = Pair::new(TRIP);
    get(&mut pair.client, "/");
    let mut stream = None;
    pair.run(
        |_, _| {},
        |_, event| {
            if let ServerEvent::Request { stream: id, .. } = event {
                stream = Some(id);
            }
        },
    );
    pair.server.drain();
    pair.server.handle_timeout(pair.now + Duration::from_secs(1));
    respond(&mut pair.server, stream.unwrap(), "");
    while pair.server.next_event().unwrap().is_some() {}
    assert_eq!(pair.server.is_closed(), Some(CloseReason::Drained));
}

#[test]
fn a_client_drains_as_well() {
    let mut pair = Pair::new(TRIP);
    get(&mut pair.client, "/");
    pair.client.drain();
    assert_eq!(pair.client.can_open(), Err(Misuse::GoingAway));
    let mut received = Received::default();
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, .. } = event {
                respond(server, stream, "last");
            }
        },
    );
    assert_eq!(received.log, ["1 200 Known(4)", "1 end"]);
    assert_eq!(pair.client.is_closed(), Some(CloseReason::Drained));
}

#[test]
fn the_end_of_the_transport() {
    let mut pair = Pair::new(TRIP);
    pair.run(|_, _| {}, |_, _| {});
    pair.client.handle_eof();
    assert!(pair.client.next_event().unwrap().is_none());
    assert_eq!(pair.client.is_closed(), Some(CloseReason::PeerClosed));

    let mut pair = Pair::new(TRIP);
    get(&mut pair.client, "/");
    pair.run(|_, _| {}, |_, _| {});
    for _ in 0..2 {
        pair.server.handle_eof();
        assert_eq!(pair.server.next_event().unwrap_err(), Error::UnexpectedEof);
    }
    assert_eq!(pair.server.is_closed(), Some(CloseReason::Fault));
    assert!(!pair.server.needs_linger());
}

#[test]
fn what_the_local_side_must_not_do() {
    let mut pair = Pair::new(TRIP);
    let none = HeaderMap::new();
    let stream = pair.client.open(&Method::POST, &uri("/"), &none, BodySize::Known(3)).unwrap();
    assert_eq!(pair.client.send_data(stream, letters(4)), Err(Misuse::BodyTooLong));
    pair.client.send_data(stream, letters(3)).unwrap();
    pair.client.end(stream).unwrap();
    assert_eq!(pair.client.send_data(stream, letters(1)), Err(Misuse::AfterEnd));
    assert_eq!(pair.client.end(stream), Ok(()));
    let relative: Uri = "/".parse().unwrap();
    assert_eq!(pair.client.open(&Method::GET, &relative, &none, BodySize::Known(0)), Err(Misuse::BadTarget));
    let mut lengths = HeaderMap::new();
    lengths.insert("content-length", HeaderValue::from_static("5"));
    assert_eq!(
        pair.client.open(&Method::PUT, &uri("/"), &lengths, BodySize::Known(3)),
        Err(Misuse::BadField)
    );
    let short = pair.client.open(&Method::PUT, &uri("/"), &lengths, BodySize::Unknown).unwrap();

    let mut requests = Vec::new();
    pair.run(
        |_, _| {},
        |_, event| {
            if let ServerEvent::Request { stream, .. } = event {
                requests.push(stream);
            }
        },
    );
    assert_eq!(pair.client.end(short), Err(Misuse::BodyTooShort));
    let [first, second] = requests[..] else { panic!() };
    let server = &mut pair.server;
    let interim = |server: &mut Server, status| server.send_interim(first, status, &none);
    assert_eq!(interim(server, StatusCode::SWITCHING_PROTOCOLS), Err(Misuse::BadStatus));
    assert_eq!(interim(server, StatusCode::OK), Err(Misuse::BadStatus));
    assert_eq!(
        server.send_head(first, StatusCode::CONTINUE, &none, BodySize::Unknown),
        Err(Misuse::BadStatus)
    );
    assert_eq!(server.send_data(first, letters(1)), Err(Misuse::HeadNotSent));
    assert_eq!(server.end(first), Err(Misuse::HeadNotSent));
    for size in [0, 6] {
        let sent = server.send_head(first, StatusCode::OK, &lengths, BodySize::Known(size));
        assert_eq!(sent, Err(Misuse::BadField), "{size}");
    }
    server.send_head(first, StatusCode::OK, &none, BodySize::Unknown).unwrap();
    assert_eq!(
        server.send_head(first, StatusCode::OK, &none, BodySize::Unknown),
        Err(Misuse::HeadAlreadySent)
    );
    assert_eq!(interim(server, StatusCode::EARLY_HINTS), Err(Misuse::HeadAlreadySent));
    assert_eq!(server.send_trailers(first, &lengths), Err(Misuse::BadField));
    // An answer that its handler gives up is reset, so that nobody takes it for complete.
    server.finished(first);
    server.finished(second);
    let mut resets = Vec::new();
    pair.run(
        |_, event| {
            if let ClientEvent::Reset { stream, error } = event {
                resets.push((stream, error));
            }
        },
        |_, _| {},
    );
    assert_eq!(resets, [(stream, StreamError::Reset(Reason::InternalError))]);
    assert_eq!(pair.server.send_data(first, letters(1)), Err(Misuse::UnknownStream));
}

/// Ten thousand streams that are cancelled, reset and refused, with bodies in both directions: nothing leaks.
#[test]
fn an_idle_connection_owns_next_to_nothing() {
    let mut pair = Pair::new(TRIP);
    let mut loan = hyperman_http2::Loan::default();
    get(&mut pair.client, "/");
    pair.run(
        |client, event| Received::default().take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, .. } = event {
                respond(server, stream, "hello");
            }
        },
    );
    assert!(pair.server.is_idle());
    pair.server.reclaim(&mut loan);
    assert!(loan.read.capacity() > 0 && loan.write.capacity() > 0);
    assert!(size_of::<Server>() <= 1536, "{}", size_of::<Server>());
}

#[test]
#[allow(clippy::disallowed_methods)] // The test is the driver: it has the clock.
fn a_connection_by_upgrade() {
    let now = std::time::Instant::now();
    let config = std::sync::Arc::new(Config::server());
    let request = |settings: Option<&'static str>| {
        let mut request = http::Request::get("http://example.com/up");
        for (name, value) in [("connection", "upgrade, http2-settings"), ("upgrade", "h2c"), ("x", "y")] {
            request = request.header(name, value);
        }
        if let Some(settings) = settings {
            request = request.header("http2-settings", settings);
        }
        request.body(()).unwrap()
    };
    for bad in [None, Some("AAM"), Some("?"), Some("AAIAAAAF")] {
        assert!(Server::upgraded(config.clone(), now, request(bad)).is_err(), "{bad:?}");
    }
    // SETTINGS_INITIAL_WINDOW_SIZE 3.
    let mut server = Server::upgraded(config, now, request(Some("AAQAAAAD"))).unwrap();
    let Some(ServerEvent::Request { stream, request, body, .. }) = server.next_event().unwrap() else {
        panic!()
    };
    assert_eq!((stream.get(), body, request.version()), (1, BodyLength::Empty, http::Version::HTTP_2));
    assert_eq!(format!("{:?}", request.headers()), r#"{"x": "y"}"#);
    respond(&mut server, stream, "hello");
    let frames = support::parse(&support::written(&mut server));
    assert_eq!(frames.iter().map(|frame| frame.kind).collect::<Vec<_>>(), [4, 8, 1, 0]);
    assert_eq!(frames[3].payload, b"hel");
    // The client's own preface follows, and more requests.
    support::feed(&mut server, hyperman_http2::PREFACE);
    support::feed(&mut server, &support::settings(&[(4, 10)]));
    support::feed(&mut server, &support::headers(3, true, &support::get()));
    assert!(
        matches!(server.next_event().unwrap(), Some(ServerEvent::Request { stream, .. }) if stream.get() == 3)
    );
    let frames = support::parse(&support::written(&mut server));
    assert_eq!(frames.last().unwrap().payload, b"lo");
}
