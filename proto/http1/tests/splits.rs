//! However the bytes of made-up messages are cut, the same comes out.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

mod support;

use http::Method;
use hyperman_http1::{ClientConfig, HeadCache, Limits, Loan};
use proptest::prelude::*;
use support::*;

/// Parts of good and bad messages, put together at random.
const PARTS: [&str; 30] = [
    "GET / HTTP/1.1\r\n",
    "POST /a HTTP/1.1\r\n",
    "HEAD / HTTP/1.0\r\n",
    "GET http://b/ HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 204 x\r\n",
    "HTTP/1.1 100 x\r\n\r\n",
    "Host: a\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: x\r\nConnection: upgrade\r\n",
    "X: y\r\n",
    " fold\r\n",
    "\r\n",
    "\r\n",
    "\r\n",
    "hello",
    "5\r\nhello\r\n",
    "1;a=\"b\"\r\nx\r\n",
    "0\r\n\r\n",
    "0\r\nT: r\r\n\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    "\u{fc}",
];

fn message() -> impl Strategy<Value = String> {
    // Most begin like a message, or nearly all would fail at the first line.
    let begin = prop::sample::select(vec![
        "",
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
    ]);
    (begin, prop::collection::vec(prop::sample::select(PARTS.to_vec()), 0..12))
        .prop_map(|(begin, parts)| format!("{begin}{}", parts.concat()))
}

fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces.push(&bytes[from..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_does_not_care_how_its_input_was_cut(
        message in message(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        eof: bool,
    ) {
        let limits = Limits { head: 200, field: 40, fields: 6, body: 12, ..Limits::default() };
        let whole = server_log(&limits, &[message.as_bytes()], eof, &mut None);
        prop_assert_eq!(&whole, &server_log(&limits, &cut(message.as_bytes(), &places), eof, &mut None));
        // Three times, so that the third finds what the second put into the cache.
        let mut loan = Some(Loan { heads: Some(Box::new(HeadCache::new(9))), ..Loan::default() });
        for _ in 0..3 {
            prop_assert_eq!(&whole, &server_log(&limits, &cut(message.as_bytes(), &places), eof, &mut loan));
        }
    }

    #[test]
    fn heads_that_come_again_are_what_they_were(
        // The first two are plain.
        heads in prop::collection::vec(prop::sample::select(vec![
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /other HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n \r\n",
        ]), 0..14),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        eof: bool,
    ) {
        let stream = heads.concat();
        let limits = Limits::default();
        let whole = server_log(&limits, &[stream.as_bytes()], eof, &mut None);
        let mut loan = Some(Loan { heads: Some(Box::new(HeadCache::new(9))), ..Loan::default() });
        for _ in 0..3 {
            prop_assert_eq!(&whole, &server_log(&limits, &cut(stream.as_bytes(), &places), eof, &mut loan));
        }
    }

    #[test]
    fn a_client_does_not_care_how_its_input_was_cut(
        message in message(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        eof: bool,
        unfold: bool,
    ) {
        let config = ClientConfig { unfold, ..ClientConfig::default() };
        let whole = client_log(&config, &Method::GET, &[message.as_bytes()], eof);
        prop_assert_eq!(whole, client_log(&config, &Method::GET, &cut(message.as_bytes(), &places), eof));
    }
}

/// A first line that is none is judged in the same way where what follows it is known.
#[test]
fn an_odd_line_before_a_known_block() {
    let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for line in [
        "",
        "\r",
        "\n",
        " ",
        "\x01 / HTTP/2.0",
        "\x01h\x01 OPTIONS * HTTP/1.1",
        "@ / HTTP/1.1",
        "{ / HTTP/9.9",
        "GET",
        "GET / HTTP/2.0",
        "PRI * HTTP/2.0",
        "G\0T / HTTP/1.1",
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "\tGET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\r",
        "GET /\x7f HTTP/1.1",
        "GET / HTTP/1.1\nX: y",
        "a b c",
        "GET b HTTP/1.1",
        "CONNECT / HTTP/1.1",
        "GET http:// HTTP/1.1",
        ": / HTTP/1.1",
    ] {
        let stream = format!("{good}{good}{good}{line}\r\nHost: a\r\n\r\n{good}");
        let expected = server_log(&Limits::default(), &[stream.as_bytes()], false, &mut None);
        let mut loan = Some(Loan { heads: Some(Box::new(HeadCache::new(9))), ..Loan::default() });
        for pieces in cuts(stream.as_bytes()) {
            let log = server_log(&Limits::default(), &pieces, false, &mut loan);
            assert_eq!(log, expected, "{line:?} in {} pieces", pieces.len());
        }
    }
}
