//! A client whose server is a script: for each fault, the error that the caller gets and the frame that is sent.
#![allow(clippy::disallowed_methods)] // The test is the driver: it has the clock.

mod support;

use std::time::Duration;

use hyperman_http2::{
    BodyLength, BodySize, ClientEvent, CloseReason, Config, Error, Malformed, Misuse, Reason, StreamError,
    Timeout, Violation,
};
use support::raw::RawClient;
use support::*;

const OK: [(&str, &str); 1] = [(":status", "200")];

/// What a fault on one stream looks like to the caller and on the wire.
#[test]
fn faults_of_a_response() {
    let malformed = StreamError::Malformed;
    let with = |field| headers(1, true, &[OK[0], field]);
    let interim = || headers(1, false, &[(":status", "103")]);
    let cases: Vec<(&str, Vec<u8>, StreamError, Reason)> = vec![
        ("an upper-case name", with(("X-A", "b")), malformed(Malformed::Field), Reason::ProtocolError),
        ("a line feed in a value", with(("x", "a\nb")), malformed(Malformed::Field), Reason::ProtocolError),
        (
            "no status",
            headers(1, true, &[("x", "y")]),
            malformed(Malformed::MissingPseudoField),
            Reason::ProtocolError,
        ),
        (
            "a bad status",
            headers(1, true, &[(":status", "2x")]),
            malformed(Malformed::BadPseudoField),
            Reason::ProtocolError,
        ),
        ("two statuses", with((":status", "200")), malformed(Malformed::PseudoField), Reason::ProtocolError),
        (
            "a pseudo-field of a request",
            with((":path", "/")),
            malformed(Malformed::PseudoField),
            Reason::ProtocolError,
        ),
        (
            "connection",
            with(("connection", "close")),
            malformed(Malformed::ConnectionField),
            Reason::ProtocolError,
        ),
        (
            "101",
            headers(1, false, &[(":status", "101")]),
            malformed(Malformed::BadInterim),
            Reason::ProtocolError,
        ),
        (
            "an interim that ends",
            headers(1, true, &[(":status", "103")]),
            malformed(Malformed::BadInterim),
            Reason::ProtocolError,
        ),
        ("DATA first", data(1, true, b"a"), malformed(Malformed::UnexpectedData), Reason::ProtocolError),
        (
            "DATA behind an interim",
            [interim(), data(1, true, b"a")].concat(),
            malformed(Malformed::UnexpectedData),
            Reason::ProtocolError,
        ),
        (
            "a short body",
            [headers(1, false, &[OK[0], ("content-length", "5")]), data(1, true, b"four")].concat(),
            malformed(Malformed::ContentLengthMismatch),
            Reason::ProtocolError,
        ),
        (
            "a long body",
            [headers(1, false, &[OK[0], ("content-length", "5")]), data(1, false, b"longer")].concat(),
            malformed(Malformed::ContentLengthMismatch),
            Reason::ProtocolError,
        ),
        (
            "content behind 204",
            [headers(1, false, &[(":status", "204")]), data(1, true, b"a")].concat(),
            malformed(Malformed::UnexpectedData),
            Reason::ProtocolError,
        ),
        (
            "trailers that do not end",
            [headers(1, false, &OK), headers(1, false, &[("x", "y")])].concat(),
            malformed(Malformed::TrailersNotLast),
            Reason::ProtocolError,
        ),
        (
            "a window update of zero",
            window_update(1, 0),
            malformed(Malformed::ZeroIncrement),
            Reason::ProtocolError,
        ),
        (
            "a window that overflows",
            window_update(1, 0x7fff_ffff),
            StreamError::FlowControl,
            Reason::FlowControlError,
        ),
        ("33 interim responses", interim().repeat(33), StreamError::TooManyInterim, Reason::EnhanceYourCalm),
        (
            "too many fields",
            headers(1, true, &[OK.as_slice(), &[("a", "b"); 200]].concat()),
            StreamError::FieldsTooLarge,
            Reason::EnhanceYourCalm,
        ),
    ];
    for (name, script, error, reason) in cases {
        let mut raw = RawClient::new();
        let stream = raw.post(BodySize::Unknown);
        raw.frames.clear();
        raw.send(&script);
        let Some(ClientEvent::Reset { stream: reset, error: told }) = raw.events.last() else {
            panic!("{name}: {:?}", raw.events);
        };
        assert_eq!((*reset, *told), (stream, error), "{name}");
        let resets = raw.of_kind(RST_STREAM);
        assert_eq!(resets.len(), 1, "{name}");
        assert_eq!((resets[0].stream, Reason::from(resets[0].code())), (1, reason), "{name}");
        // The connection goes on.
        raw.client.finished(stream);
        let next = raw.get();
        raw.send(&headers(next.get(), true, &OK));
        assert!(matches!(raw.events.last(), Some(ClientEvent::Response { .. })), "{name}");
    }
}

/// What ends the connection.
#[test]
fn faults_of_a_server() {
    let cases: Vec<(&str, Vec<u8>, Error, Reason)> = vec![
        (
            "PUSH_PROMISE",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], &block(&get())[..]].concat()),
            Error::Violation(Violation::UnexpectedPush),
            Reason::ProtocolError,
        ),
        (
            "zero for the connection",
            window_update(0, 0),
            Error::Violation(Violation::ZeroIncrement),
            Reason::ProtocolError,
        ),
        (
            "a large frame",
            data(1, true, &[0; 16_385]),
            Error::Violation(Violation::FrameTooLarge),
            Reason::FrameSizeError,
        ),
        (
            "a bad header block",
            frame(HEADERS, END_HEADERS, 1, &[0x88, 0xff]),
            Error::Compression(hyperman_http2::CompressionError::Truncated),
            Reason::CompressionError,
        ),
        (
            "an even stream",
            headers(2, true, &OK),
            Error::Violation(Violation::IdleStream),
            Reason::ProtocolError,
        ),
        (
            "an idle stream",
            headers(3, true, &OK),
            Error::Violation(Violation::IdleStream),
            Reason::ProtocolError,
        ),
        ("ENABLE_PUSH", settings(&[(2, 1)]), Error::Violation(Violation::BadSetting), Reason::ProtocolError),
        (
            "a small MAX_FRAME_SIZE",
            settings(&[(5, 1)]),
            Error::Violation(Violation::BadSetting),
            Reason::ProtocolError,
        ),
        (
            "GOAWAY that takes one back",
            [goaway(1, 0), goaway(3, 0)].concat(),
            Error::Violation(Violation::GoAwayIncreased),
            Reason::ProtocolError,
        ),
    ];
    for (name, script, error, reason) in cases {
        let mut raw = RawClient::new();
        raw.get();
        raw.frames.clear();
        raw.send(&script);
        assert_eq!(raw.error, Some(error), "{name}");
        let goaway = raw.of_kind(GOAWAY);
        assert_eq!(goaway.len(), 1, "{name}");
        assert_eq!((goaway[0].number(0), Reason::from(goaway[0].code())), (0, reason), "{name}");
        assert_eq!(raw.client.is_closed(), Some(CloseReason::Fault), "{name}");
        assert_eq!(raw.client.can_open(), Err(Misuse::Closed), "{name}");
    }
}

#[test]
fn a_second_answer_to_a_request_ends_the_connection() {
    let mut raw = RawClient::new();
    let stream = raw.get();
    raw.send(&headers(1, true, &OK));
    raw.client.finished(stream);
    raw.send(&headers(1, true, &OK));
    assert_eq!(raw.error, Some(Error::Violation(Violation::ClosedStream)));
    assert_eq!(Reason::from(raw.of_kind(GOAWAY)[0].code()), Reason::StreamClosed);
}

#[test]
fn a_goaway_before_the_answer_means_that_the_request_was_not_processed() {
    let mut raw = RawClient::new();
    let stream = raw.get();
    raw.send(&goaway(0, 0));
    let [ClientEvent::GoAway { .. }, ClientEvent::Reset { error, .. }] = &raw.events[..] else {
        panic!("{:?}", raw.events)
    };
    assert_eq!(*error, StreamError::Refused);
    assert!(!error.request_may_have_been_processed());
    assert_eq!(raw.client.can_open(), Err(Misuse::GoingAway));
    raw.client.finished(stream);
    raw.turn();
    assert_eq!(raw.client.is_closed(), Some(CloseReason::Drained));
}

#[test]
fn a_goaway_and_then_the_answer() {
    let mut raw = RawClient::new();
    let (first, second) = (raw.get(), raw.get());
    raw.send(&goaway(1, 0));
    raw.send(&[headers(1, false, &OK), data(1, true, b"hello")].concat());
    let [
        ClientEvent::GoAway { last, .. },
        ClientEvent::Reset { stream: refused, error: StreamError::Refused },
        ClientEvent::Response { stream, .. },
        ClientEvent::Data { data, .. },
        ClientEvent::End { .. },
    ] = &raw.events[..]
    else {
        panic!("{:?}", raw.events)
    };
    assert_eq!((*refused, *stream, *last, &data[..]), (second, first, first, &b"hello"[..]));
}

#[test]
fn a_goaway_with_an_error_leaves_what_it_may_have_processed() {
    let mut raw = RawClient::new();
    let (first, second) = (raw.get(), raw.get());
    raw.send(&goaway(1, 11));
    raw.client.handle_eof();
    raw.turn();
    assert_eq!(raw.error, Some(Error::UnexpectedEof));
    assert!(raw.client.may_have_processed(first));
    assert!(!raw.client.may_have_processed(second));
}

#[test]
fn a_request_that_was_never_written_was_not_processed() {
    let mut raw = RawClient::new();
    let uri = "http://example.com/".parse().unwrap();
    let written = raw.get();
    let size = BodySize::Known(0);
    let waiting = raw.client.open(&http::Method::GET, &uri, &http::HeaderMap::new(), size).unwrap();
    raw.client.handle_eof();
    assert_eq!(raw.client.next_event().unwrap_err(), Error::UnexpectedEof);
    assert!(raw.client.may_have_processed(written));
    assert!(!raw.client.may_have_processed(waiting));
}

#[test]
fn a_refused_stream_was_not_processed_and_others_were_perhaps() {
    let table = [(7, StreamError::Refused), (8, StreamError::Reset(Reason::Cancel))];
    for (code, expected) in table {
        let mut raw = RawClient::new();
        raw.get();
        raw.send(&rst_stream(1, code));
        let [ClientEvent::Reset { error, .. }] = &raw.events[..] else { panic!("{:?}", raw.events) };
        assert_eq!(*error, expected);
        assert_eq!(error.request_may_have_been_processed(), code != 7);
        assert_eq!(raw.of_kind(RST_STREAM).len(), 0, "a reset is not answered by one");
    }
}

/// RFC 9113 §8.1: the server answers before it has read the request, and asks not to be sent the rest.
#[test]
fn an_early_answer_stands_though_the_upload_is_reset() {
    let mut raw = RawClient::new();
    let stream = raw.post(BodySize::Unknown);
    raw.client.send_data(stream, letters(10)).unwrap();
    raw.send(&[headers(1, false, &OK), data(1, true, b"no"), rst_stream(1, 0)].concat());
    let [
        ClientEvent::Response { .. },
        ClientEvent::Data { .. },
        ClientEvent::End { .. },
        ClientEvent::Reset { error: StreamError::Reset(Reason::NoError), .. },
    ] = &raw.events[..]
    else {
        panic!("{:?}", raw.events)
    };
    assert_eq!(raw.client.send_data(stream, letters(1)), Err(Misuse::UnknownStream));
}

#[test]
fn dropping_a_response_resets_its_stream_and_gives_the_window_back() {
    let mut raw = RawClient::new();
    let before = receivable(&raw.client);
    let stream = raw.get();
    raw.send(&[headers(1, false, &OK), data(1, false, &[0; 10_000])].concat());
    assert_ne!(receivable(&raw.client), before);
    raw.client.finished(stream);
    raw.turn();
    assert_eq!(receivable(&raw.client), before);
    assert_eq!(Reason::from(raw.of_kind(RST_STREAM)[0].code()), Reason::Cancel);
    // What was under way is thrown away, and its window given back as well.
    raw.send(&data(1, false, &[0; 10_000]));
    assert_eq!(receivable(&raw.client), before);
    assert_eq!((raw.error.clone(), raw.client.open_streams()), (None, 0));
}

#[test]
fn head_and_304_have_a_length_but_no_content() {
    let mut raw = RawClient::new();
    let uri = "http://example.com/".parse().unwrap();
    raw.client.open(&http::Method::HEAD, &uri, &http::HeaderMap::new(), BodySize::Known(0)).unwrap();
    raw.send(&headers(1, true, &[OK[0], ("content-length", "500")]));
    raw.get();
    raw.send(&headers(3, true, &[(":status", "304"), ("content-length", "500")]));
    for event in &raw.events {
        assert!(matches!(event, ClientEvent::Response { body: BodyLength::Empty, .. }), "{event:?}");
    }
    assert_eq!(raw.events.len(), 2);
}

#[test]
fn the_server_says_how_many_streams_it_takes() {
    let mut raw = RawClient::new();
    raw.send(&settings(&[(3, 1)]));
    let stream = raw.get();
    assert_eq!(raw.client.can_open(), Err(Misuse::TooManyStreams));
    raw.send(&headers(1, true, &OK));
    assert_eq!(raw.client.can_open(), Ok(()), "the stream has ended, whether the caller has read it or not");
    raw.client.finished(stream);
    raw.send(&settings(&[(3, 0)]));
    assert_eq!(raw.client.can_open(), Err(Misuse::TooManyStreams));
}

#[test]
fn a_dead_connection_is_found_by_ping() {
    let mut raw = RawClient::new();
    raw.get();
    raw.advance(Duration::from_secs(14));
    assert_eq!(raw.of_kind(PING).len(), 0);
    raw.advance(Duration::from_secs(1));
    let ping = raw.of_kind(PING)[0].clone();
    raw.send(&frame(PING, ACK, 0, &ping.payload));
    raw.advance(Duration::from_secs(15));
    assert_eq!(raw.of_kind(PING).len(), 2);
    raw.advance(Duration::from_secs(20));
    assert_eq!(raw.error, Some(Error::Timeout(Timeout::Pong)));
}

#[test]
fn an_idle_connection_sends_no_pings() {
    let mut raw = RawClient::new();
    assert_eq!(raw.client.poll_timeout(), None);
    raw.advance(Duration::from_secs(3600));
    assert_eq!((raw.frames.len(), raw.error), (0, None));
}

#[test]
fn settings_that_are_not_acknowledged_end_the_connection() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to begin with")]
    let now = std::time::Instant::now();
    let mut client = hyperman_http2::Client::new(std::sync::Arc::new(Config::client()), now);
    // A server that is slow to accept has not been slow to acknowledge yet.
    let accepted = now + Duration::from_secs(3600);
    assert_eq!(client.poll_timeout(), None);
    client.handle_timeout(accepted);
    assert!(client.next_event().unwrap().is_none());
    let now = accepted;
    feed(&mut client, &settings(&[]));
    while client.next_event().unwrap().is_some() {}
    assert_eq!(client.poll_timeout(), Some((now + Duration::from_secs(10), Timeout::Settings)));
    client.handle_timeout(now + Duration::from_secs(10));
    assert_eq!(client.next_event().unwrap_err(), Error::Timeout(Timeout::Settings));
    let frames = parse(&written(&mut client));
    assert_eq!(Reason::from(frames.last().unwrap().code()), Reason::SettingsTimeout);
}

#[test]
fn a_server_that_does_not_finish_its_first_frame_ends_the_connection() {
    #[expect(clippy::disallowed_methods, reason = "a test needs some instant to begin with")]
    let now = std::time::Instant::now();
    let mut config = Config::client();
    config.timeouts.settings = None;
    let mut client = hyperman_http2::Client::new(std::sync::Arc::new(config), now);
    let accepted = now + Duration::from_secs(3600);
    client.handle_timeout(accepted);
    feed(&mut client, settings(&[]).split_at(4).0);
    assert!(client.next_event().unwrap().is_none());
    assert_eq!(client.poll_timeout(), Some((accepted + Duration::from_secs(30), Timeout::Head)));
    client.handle_timeout(accepted + Duration::from_secs(30));
    assert_eq!(client.next_event().unwrap_err(), Error::Timeout(Timeout::Head));
}
