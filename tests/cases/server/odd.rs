//! Odd and hostile requests, section by section: each is answered as its section says, whole and byte by byte, and nothing
//! behind one that is refused is heard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;

use super::{echo, get};

hyperman_tests::cases! {
    ONE:
        request_lines_and_their_ends
        targets_and_hosts
        fields_and_their_limits
        framing_of_bodies
        chunks_and_trailers
        expectations_and_upgrades
        what_only_tls_can_serve_is_misdirected_in_cleartext;
}

/// What makes a request of a request line.
const HOST: &str = "\r\nHost: a\r\n\r\n";

/// Sends each request with a good one behind it. The answers are 200 twice, or the status and the end of the connection.
fn judge(on: Carrier, requests: &[(String, u16)]) {
    let smuggled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&smuggled);
    let service = move |_| {
        let smuggled = Arc::clone(&counter);
        service_fn(move |request: Request<Body>| {
            if request.uri().path() == "/behind" {
                smuggled.fetch_add(1, Ordering::SeqCst);
            }
            echo(request)
        })
    };
    let mut good = 0;
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        for (request, status) in requests {
            for stride in [usize::MAX, 1] {
                if stride == 1 && request.len() > 2_000 {
                    continue;
                }
                let mut peer = Peer::connect(on, address);
                peer.set_stride(stride);
                peer.try_send(format!("{request}{}", get("/behind")));
                let mut answer = peer.answer();
                if answer.status == 100 {
                    answer = peer.answer();
                }
                assert_eq!(answer.status, *status, "{request:?}");
                assert!(answer.field("date").is_some(), "{request:?}");
                if *status == 200 {
                    good += 1;
                    assert_eq!(peer.answer().status, 200, "behind {request:?}");
                } else {
                    assert_eq!(answer.field("connection"), Some("close"), "{request:?}");
                    peer.expect_end();
                }
            }
        }
    });
    assert_eq!(smuggled.load(Ordering::SeqCst), good);
}

fn cases(prefix: &str, suffix: &str, middles: &[(&str, u16)]) -> Vec<(String, u16)> {
    middles.iter().map(|(middle, status)| (format!("{prefix}{middle}{suffix}"), *status)).collect()
}

/// RFC 9112 §2.2, §2.3, §3.
fn request_lines_and_their_ends(on: Carrier) {
    let lines = [
        ("GET / HTTP/1.2", 200),
        ("GET / HTTP/1.10", 400),
        ("GET / HTTP/01.1", 400),
        ("GET / HTTP/0.9", 400),
        ("GET / HTTP/2.0", 505),
        ("GET / HTTP/2", 400),
        ("GET / http/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET  / HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        ("GET /", 400),
        ("get / HTTP/1.1", 200),
        ("G(T / HTTP/1.1", 400),
        ("G\0T / HTTP/1.1", 400),
        ("GET /\0 HTTP/1.1", 400),
        ("GET / HTTP/1.1\r", 400),
        ("\r\nGET / HTTP/1.1", 200),
        ("\nGET / HTTP/1.1", 400),
        ("\rGET / HTTP/1.1", 400),
        (" GET / HTTP/1.1", 400),
        ("GET / HTTP/1.1\n", 400),
        ("GET / HTTP/1.1\r\n X: a", 400),
        ("GET / HTTP/1.1\rX: a", 400),
        ("\u{feff}GET / HTTP/1.1", 400),
    ];
    let mut all = cases("", HOST, &lines);
    all.push((format!("GET /{} HTTP/1.1{HOST}", "a".repeat(9_000)), 414));
    all.push((format!("{} / HTTP/1.1{HOST}", "A".repeat(9_000)), 414));
    judge(on, &all);
}

/// RFC 9112 §3.2; RFC 9110 §4.2.4, §7.2.
fn targets_and_hosts(on: Carrier) {
    let targets = [
        ("GET /a?b?c/%20", 200),
        ("GET //a", 200),
        ("GET http://b/a", 200),
        ("GET http://b:80?q", 200),
        ("GET http://[::1]:80/", 200),
        ("GET http://user@b/", 400),
        ("GET http://b:99999/", 400),
        ("GET http:///a", 400),
        ("GET http://[fe80::1%25eth0]/", 400),
        ("GET /a#b", 400),
        ("GET /\u{e9}", 400),
        ("GET a/b", 400),
        ("GET *", 400),
        ("OPTIONS *", 200),
        ("CONNECT a", 400),
        ("CONNECT a:99999", 400),
        ("CONNECT /", 400),
    ];
    let mut all = cases("", &format!(" HTTP/1.1{HOST}"), &targets);
    let hosts = [
        ("", 400),
        ("Host: a\r\nHost: a\r\n", 400),
        ("Host: a\r\nhOST: b\r\n", 400),
        ("Host:\r\n", 200),
        ("Host: a:\r\n", 200),
        ("Host: a.:80\r\n", 200),
        ("Host: [::1]:80\r\n", 200),
        ("Host: a:65536\r\n", 400),
        ("Host: :80\r\n", 400),
        ("Host: a,b\r\n", 400),
        ("Host: user@a\r\n", 400),
        ("Host: a/b\r\n", 400),
        ("Host: [fe80::1%eth0]\r\n", 400),
        ("Host: a b\r\n", 400),
        ("Host: \u{e9}\r\n", 400),
    ];
    all.extend(cases("GET / HTTP/1.1\r\n", "\r\n", &hosts));
    // What the target says does not make up for it.
    all.extend(cases("GET http://a/ HTTP/1.1\r\n", "\r\n", &[("", 400), ("Host: a/\r\n", 400)]));
    judge(on, &all);
}

/// RFC 9112 §5; RFC 9110 §5.5.
fn fields_and_their_limits(on: Carrier) {
    let lines = [
        ("X:", 200),
        ("X: \t a\tb \t", 200),
        ("X: \u{e9}", 200),
        ("x_y!#$%&'*+-.^`|~: a", 200),
        ("X : a", 400),
        ("X\t: a", 400),
        (": a", 400),
        ("X", 400),
        ("X: a\r\n b", 400),
        ("X: a\r\n\tb", 400),
        ("X Y: a", 400),
        ("\u{e9}: a", 400),
        ("X\0: a", 400),
        ("X: a\0b", 400),
        ("X: a\u{7f}", 400),
        ("X: a\rb", 400),
        ("X: a\nY: b", 400),
    ];
    let mut all = cases("GET / HTTP/1.1\r\nHost: a\r\n", "\r\n\r\n", &lines);
    let fields = |count: usize| "X: a\r\n".repeat(count);
    all.push((format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", fields(99)), 200));
    all.push((format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", fields(100)), 431));
    all.push((format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(17_000)), 431));
    all.push((
        format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", format!("X: {}\r\n", "a".repeat(15_000)).repeat(5)),
        431,
    ));
    judge(on, &all);
}

/// RFC 9112 §6; RFC 9110 §8.6.
fn framing_of_bodies(on: Carrier) {
    let lengths = [
        ("Content-Length: 3", 200),
        ("Content-Length: \t003 ", 200),
        ("Content-Length: 3\r\nContent-Length: 3", 200),
        ("Content-Length: 3\r\nContent-Length: 4", 400),
        ("Content-Length: 3, 3", 400),
        ("Content-Length: +3", 400),
        ("Content-Length: -0", 400),
        ("Content-Length: 0x3", 400),
        ("Content-Length: 3 3", 400),
        ("Content-Length: \u{b3}", 400),
        ("Content-Length:", 400),
        ("Content-Length: 18446744073709551619", 400),
        ("Content-Length: 18446744073709551615", 413),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", 400),
        ("Content-Length : 3", 400),
    ];
    let mut all = cases("POST / HTTP/1.1\r\nHost: a\r\n", "\r\n\r\nabc", &lengths);
    let codings = [
        ("chunked", 200),
        ("\tCHUNKED ", 200),
        ("chunked, chunked", 400),
        ("chunked\r\nTransfer-Encoding: chunked", 400),
        ("gzip, chunked", 501),
        ("gzip\r\nTransfer-Encoding: chunked", 501),
        ("chunked, gzip", 400),
        ("identity", 400),
        ("xchunked", 400),
        ("chunked;q=1", 400),
        ("\"chunked\"", 400),
        ("", 400),
        (",chunked", 400),
        ("\u{b}chunked", 400),
        ("chunked\r\nContent-Length: 0", 400),
    ];
    let body = "\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    all.extend(cases("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ", body, &codings));
    all.extend(cases("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ", body, &[("chunked", 200)]));
    all.extend(cases("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: ", body, &[("chunked", 400)]));
    all.extend(cases("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n", body, &[("Content-Length: 3", 400)]));
    judge(on, &all);
}

/// RFC 9112 §7.1; RFC 9110 §6.5.1.
fn chunks_and_trailers(on: Carrier) {
    let bodies = [
        ("0\r\n\r\n", 200),
        ("a\r\n0123456789\r\nA\r\n0123456789\r\n0000\r\n\r\n", 200),
        ("3;a;b=c ; d = \"e;\\\"f\"\r\nabc\r\n0;z\r\n\r\n", 200),
        ("3\r\nabc\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\nHost: evil\r\n\r\n", 200),
        ("ffffffffffffffff\r\nabc", 413),
        ("10000000000000000\r\nabc", 400),
        ("+3\r\nabc\r\n0\r\n\r\n", 400),
        ("0x3\r\nabc\r\n0\r\n\r\n", 400),
        (" 3\r\nabc\r\n0\r\n\r\n", 400),
        ("3 \r\nabc\r\n0\r\n\r\n", 400),
        ("\r\nabc\r\n0\r\n\r\n", 400),
        ("3\nabc\r\n0\r\n\r\n", 400),
        ("3\r\nabc\n0\r\n\r\n", 400),
        ("3\r\nabcd\r\n0\r\n\r\n", 400),
        ("3\r\nab\r\n0\r\n\r\n", 400),
        ("3;a\rb\r\nabc\r\n0\r\n\r\n", 400),
        ("3;a\nabc\r\n0\r\n\r\n", 400),
        ("3;a=\"b\r\nc\"\r\nabc\r\n0\r\n\r\n", 400),
        ("3;\r\nabc\r\n0\r\n\r\n", 400),
        ("3;a=\r\nabc\r\n0\r\n\r\n", 400),
        ("3\r\r\nabc\r\n0\r\n\r\n", 400),
        ("0\r\n\n", 400),
        ("0\r\nX: 1\n\r\n", 400),
        ("0\r\nX: 1\r\n 2\r\n\r\n", 400),
        ("0\r\nX : 1\r\n\r\n", 400),
        ("0\r\nX: \0\r\n\r\n", 400),
    ];
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut all = cases(head, "", &bodies);
    all.push((format!("{head}3;a={}\r\nabc\r\n0\r\n\r\n", "b".repeat(17_000)), 400));
    all.push((format!("{head}0\r\nX: {}\r\n\r\n", "a".repeat(17_000)), 431));
    all.push((format!("{head}0\r\n{}\r\n", "X: a\r\n".repeat(101)), 431));
    judge(on, &all);
}

/// RFC 9110 §7.8, §10.1.1.
fn expectations_and_upgrades(on: Carrier) {
    let fields = [
        ("Expect: 100-continue", 200),
        ("Expect: 100-CONTINUE, 100-continue", 200),
        ("Expect: 100-continue, x", 417),
        ("Expect: x", 417),
        ("Connection: upgrade\r\nUpgrade: unknown/1", 200),
        ("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk", 200),
        ("Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", 200),
        ("Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: !!", 200),
        ("Connection: transfer-encoding", 200),
        ("Connection: closed, x-close", 200),
    ];
    let mut all = cases("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n", "\r\n\r\nabc", &fields);
    all.extend(cases(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n",
        "\r\n\r\n",
        &[("Expect: 100-continue", 413)],
    ));
    judge(on, &all);
}

/// RFC 9110 §7.4: a resource of `https` is refused where the connection is not secured.
fn what_only_tls_can_serve_is_misdirected_in_cleartext(on: Carrier) {
    with_server!(on, |_| service_fn(echo), Config::default(), |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        for (target, in_cleartext) in
            [("https://a/", 421), ("HTTPS://a", 421), ("http://a/", 200), ("/https://a/", 200)]
        {
            peer.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"));
            let status = if on.is_secure() { 200 } else { in_cleartext };
            assert_eq!(peer.answer().status, status, "{target}");
        }
    });
}
