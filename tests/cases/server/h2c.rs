//! The way from HTTP/1.1 to HTTP/2 by `Upgrade: h2c` (RFC 7540 §3.2).

use std::convert::Infallible;

use http::{Request, Response};
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::frames::kind::*;
use hyperman_tests::frames::*;
use hyperman_tests::peer::Peer;

use super::{Text, text};

hyperman_tests::cases! {
    ONE:
        an_upgrade_to_http2_answers_the_request_on_stream_one
        an_upgrade_to_http2_that_is_none_is_passed_over;
}

/// SETTINGS_INITIAL_WINDOW_SIZE of 5 in base64url.
const WINDOW_OF_FIVE: &str = "AAQAAAAF";

/// Says what it was asked, and how.
async fn say(request: Request<Body>) -> Result<Response<Text>, Infallible> {
    let left =
        ["connection", "upgrade", "http2-settings"].iter().any(|name| request.headers().contains_key(*name));
    text(format!("{} {} {:?} {left}", request.method(), request.uri().path(), request.version()))
}

fn asking(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n")
}

fn good(settings: &str) -> String {
    format!("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: {settings}\r\n")
}

/// The rest of the connection is HTTP/2; the request has become stream 1, which the client has ended.
fn an_upgrade_to_http2_answers_the_request_on_stream_one(on: Carrier) {
    with_server!(on, |_| service_fn(say), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(asking("GET /path", &good(WINDOW_OF_FIVE)));
        if on.is_secure() {
            // RFC 7540 §3.2: over TLS there is ALPN.
            let answer = peer.answer();
            assert_eq!((answer.status, answer.text().as_str()), (200, "GET /path HTTP/1.1 true"));
            return;
        }
        let head = String::from_utf8(peer.until(b"\r\n\r\n")).expect("text").to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(
            head.contains("\r\nupgrade: h2c\r\n") && head.contains("\r\nconnection: upgrade\r\n"),
            "{head}"
        );
        // Our settings come first, and the answer needs none of the client's words.
        assert_eq!(peer.frame().kind, SETTINGS);
        let frames = peer.frames_until(|frame| frame.kind == DATA);
        assert_eq!(frames.iter().find(|frame| frame.kind == HEADERS).map(Frame::status), Some(200));
        assert_eq!(frames.last().map(|frame| &frame.payload[..]), Some(&b"GET /"[..]), "five octets");
        peer.send([opening(&[]), window_update(1, 100)].concat());
        let rest = peer.frames_until(Frame::ends);
        assert_eq!(rest.last().map(|frame| &frame.payload[..]), Some(&b"path HTTP/2.0 false"[..]));
        peer.send(headers(3, true, request("GET", "/next", &[])));
        let next = peer.frames_until(|frame| frame.kind == DATA).pop().expect("one");
        assert_eq!((next.stream, &next.payload[..]), (3, &b"GET /"[..]), "the window of the first settings");
        // Stream 1 was never open for the client (RFC 7540 §3.2).
        peer.send(data(1, true, "x"));
        let goaway = peer.frames_until(|frame| frame.kind == GOAWAY).pop().expect("one");
        assert_eq!((goaway.number(0), goaway.number(4)), (3, 5), "STREAM_CLOSED");
        peer.expect_end();

        let mut peer = Peer::connect(on, address);
        peer.send(asking("HEAD /", &good("")));
        peer.until(b"\r\n\r\n");
        let answer = peer.frames_until(Frame::ends).pop().expect("one");
        assert_eq!((answer.kind, answer.status()), (HEADERS, 200));

        let mut peer = Peer::connect(on, address);
        peer.send(asking("GET /", &good("")));
        peer.until(b"\r\n\r\n");
        peer.send("GET / HTTP/1.1\r\n\r\n");
        let goaway = peer.frames_until(|frame| frame.kind == GOAWAY).pop().expect("one");
        assert_eq!(goaway.number(4), 1, "PROTOCOL_ERROR: the preface is owed");
        peer.expect_end();
    });
}

/// RFC 9110 §7.8: an upgrade may be ignored, and the answer is HTTP/1.1's then.
fn an_upgrade_to_http2_that_is_none_is_passed_over(on: Carrier) {
    let both = |connection: &str, upgrade: &str, settings: &str| {
        format!("Connection: {connection}\r\nUpgrade: {upgrade}\r\n{settings}")
    };
    let settings = "HTTP2-Settings: AAQAAAAF\r\n";
    let cases = [
        ("no settings", "GET /", both("Upgrade, HTTP2-Settings", "h2c", "")),
        ("settings twice", "GET /", both("Upgrade, HTTP2-Settings", "h2c", &settings.repeat(2))),
        ("settings in another alphabet", "GET /", good("AAQAAAA+")),
        ("settings with padding", "GET /", good("AAQAAAAFAA==")),
        ("settings cut short", "GET /", good("AAQA")),
        ("a setting that may not be", "GET /", good("AAIAAAAF")),
        ("settings that Connection does not name", "GET /", both("Upgrade", "h2c", settings)),
        ("an upgrade that Connection does not name", "GET /", both("HTTP2-Settings", "h2c", settings)),
        ("the token for TLS", "GET /", both("Upgrade, HTTP2-Settings", "h2", settings)),
        ("the end of the connection", "GET /", both("close, Upgrade, HTTP2-Settings", "h2c", settings)),
    ];
    with_server!(on, |_| service_fn(say), Config::default(), |address, _: &Shutdown| {
        for (name, line, fields) in &cases {
            let mut peer = Peer::connect(on, address);
            peer.send(asking(line, fields));
            assert_eq!(peer.answer().status, 200, "{name}");
        }
        let mut peer = Peer::connect(on, address);
        peer.send(asking("POST /", &format!("{}Content-Length: 3\r\n", good(WINDOW_OF_FIVE))));
        peer.send("abc");
        assert_eq!(peer.answer().text(), "POST / HTTP/1.1 true", "a request with a body stays where it is");
        let mut peer = Peer::connect(on, address);
        peer.send(asking("CONNECT localhost:80", &good(WINDOW_OF_FIVE)));
        assert_eq!(peer.answer_to_head().status, 200, "a tunnel is no HTTP/2");
    });
}
