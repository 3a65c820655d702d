//! Fetch against a server that plays scripts, in frames that are not ours: `scripted/server.py`. For each script the answer
//! or the error is asserted, whether the request may have been processed, and what Fetch sends back. After each it asks
//! again and gets its answer: on the same connection where the fault was a stream's, on another one otherwise.

#![cfg(feature = "native")]
#![allow(clippy::expect_used)] // a test fails where it panics

use std::time::Duration;

use http::Method;
use hyperman_fetch::Client;
use hyperman_transport::{Runtime as _, Timer as _};

mod scripted;
mod told;

use scripted::Scripts;
use told::ask;

/// What a client has to take, and what comes of it.
const GOOD: &[(&str, &str)] = &[
    ("plain", "200 ok"),
    ("a_reset_after_the_answer", "200 ok"),
    ("an_answer_before_the_upload_and_a_reset", "200 early"),
    ("interim_answers", "200 ok"),
    ("trailers", "200 ok"),
    ("an_answer_without_a_body", "200 "),
    ("empty_data", "200 ok"),
    ("no_content", "204 "),
    ("no_content_ended_by_data", "204 "),
    ("a_head_with_a_length", "200 "),
    ("the_right_length", "200 ok"),
    ("the_same_length_twice", "200 ok"),
    ("bytes_beyond_ascii_in_a_value", "200 ok"),
    ("unknown_frames_flags_and_settings", "200 ok"),
    ("the_reserved_bit", "200 ok"),
    ("padding", "200 ok"),
    ("continuations", "200 ok"),
    ("a_head_that_ends_the_stream_and_goes_on", "200 "),
    ("a_ping", "200 ok"),
    ("settings_again", "200 ok"),
    ("frames_for_streams_that_are_over", "200 ok"),
];

/// What ends a stream (RFC 9113 §5.4.2): the script, the error, and the code of the RST_STREAM that Fetch sends.
const STREAM: &[(&str, &str, &str)] = &[
    ("upper_case_name", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("empty_name", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("name_with_a_space", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("name_with_a_colon", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("name_with_a_control", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("name_beyond_ascii", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("value_with_nul", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("value_with_cr", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("value_with_lf", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("value_with_a_space_in_front", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("value_with_a_tab_behind", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("connection_field", "Malformed(ConnectionField)", "PROTOCOL_ERROR"),
    ("keep_alive_field", "Malformed(ConnectionField)", "PROTOCOL_ERROR"),
    ("proxy_connection_field", "Malformed(ConnectionField)", "PROTOCOL_ERROR"),
    ("transfer_encoding_field", "Malformed(ConnectionField)", "PROTOCOL_ERROR"),
    ("upgrade_field", "Malformed(ConnectionField)", "PROTOCOL_ERROR"),
    ("no_status", "Malformed(MissingPseudoField)", "PROTOCOL_ERROR"),
    ("two_statuses", "Malformed(PseudoField)", "PROTOCOL_ERROR"),
    ("unknown_pseudo_field", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("pseudo_field_of_a_request", "Malformed(PseudoField)", "PROTOCOL_ERROR"),
    ("pseudo_field_last", "Malformed(PseudoField)", "PROTOCOL_ERROR"),
    ("status_of_two_digits", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_of_four_digits", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_with_letters", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_with_a_sign", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_empty", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_099", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_000", "Malformed(BadPseudoField)", "PROTOCOL_ERROR"),
    ("status_with_a_phrase", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("status_101", "Malformed(BadInterim)", "PROTOCOL_ERROR"),
    ("interim_that_ends_the_stream", "Malformed(BadInterim)", "PROTOCOL_ERROR"),
    ("length_with_a_sign", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("length_in_words", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("length_empty", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("length_negative", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("length_too_large", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("two_lengths", "Malformed(BadContentLength)", "PROTOCOL_ERROR"),
    ("short_of_its_length", "Malformed(ContentLengthMismatch)", "PROTOCOL_ERROR"),
    ("longer_than_its_length", "Malformed(ContentLengthMismatch)", "PROTOCOL_ERROR"),
    ("nothing_of_its_length", "Malformed(ContentLengthMismatch)", "PROTOCOL_ERROR"),
    ("no_content_with_data", "Malformed(UnexpectedData)", "PROTOCOL_ERROR"),
    ("not_modified_with_data", "Malformed(UnexpectedData)", "PROTOCOL_ERROR"),
    ("head_with_data", "Malformed(UnexpectedData)", "PROTOCOL_ERROR"),
    ("data_first", "Malformed(UnexpectedData)", "PROTOCOL_ERROR"),
    ("data_after_an_interim_answer", "Malformed(UnexpectedData)", "PROTOCOL_ERROR"),
    ("trailers_that_do_not_end", "Malformed(TrailersNotLast)", "PROTOCOL_ERROR"),
    ("a_second_head", "Malformed(TrailersNotLast)", "PROTOCOL_ERROR"),
    ("pseudo_field_in_trailers", "Malformed(PseudoField)", "PROTOCOL_ERROR"),
    ("upper_case_in_trailers", "Malformed(Field)", "PROTOCOL_ERROR"),
    ("trailers_before_all_content", "Malformed(ContentLengthMismatch)", "PROTOCOL_ERROR"),
    ("interim_answers_without_end", "TooManyInterim", "ENHANCE_YOUR_CALM"),
    ("empty_block", "Malformed(MissingPseudoField)", "PROTOCOL_ERROR"),
    ("block_that_explodes", "FieldsTooLarge", "ENHANCE_YOUR_CALM"),
    ("priority_too_short", "Malformed(PriorityLength)", "FRAME_SIZE_ERROR"),
    ("window_update_of_zero_on_a_stream", "Malformed(ZeroIncrement)", "PROTOCOL_ERROR"),
    ("window_of_a_stream_above_its_largest", "FlowControl", "FLOW_CONTROL_ERROR"),
    ("head_that_depends_on_itself", "Malformed(SelfDependency)", "PROTOCOL_ERROR"),
];

/// What ends a connection (RFC 9113 §5.4.1): the script, the error, and the code of the GOAWAY that Fetch sends.
const CONNECTION: &[(&str, &str, &str)] = &[
    ("block_of_index_zero", "Compression(BadIndex)", "COMPRESSION_ERROR"),
    ("block_beyond_the_table", "Compression(BadIndex)", "COMPRESSION_ERROR"),
    ("block_cut_off", "Compression(Truncated)", "COMPRESSION_ERROR"),
    ("block_with_a_large_integer", "Compression(IntegerTooLarge)", "COMPRESSION_ERROR"),
    ("block_with_a_late_table_size", "Compression(BadSizeUpdate)", "COMPRESSION_ERROR"),
    ("block_with_a_large_table_size", "Compression(BadSizeUpdate)", "COMPRESSION_ERROR"),
    ("block_with_bad_huffman_padding", "Compression(Huffman)", "COMPRESSION_ERROR"),
    ("block_with_huffman_end", "Compression(Huffman)", "COMPRESSION_ERROR"),
    ("data_too_large", "Violation(FrameTooLarge)", "FRAME_SIZE_ERROR"),
    ("head_too_large", "Violation(FrameTooLarge)", "FRAME_SIZE_ERROR"),
    ("unknown_frame_too_large", "Violation(FrameTooLarge)", "FRAME_SIZE_ERROR"),
    ("data_on_the_connection", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("data_on_an_idle_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("data_on_a_servers_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("head_on_the_connection", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("head_on_an_idle_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("head_on_a_servers_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("reset_on_the_connection", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("reset_on_an_idle_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("reset_too_short", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("reset_too_long", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("priority_on_the_connection", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("push_promise", "Violation(UnexpectedPush)", "PROTOCOL_ERROR"),
    ("push_promise_cut_off", "Violation(UnexpectedPush)", "PROTOCOL_ERROR"),
    ("ping_too_short", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("ping_too_long", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("ping_on_a_stream", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("goaway_too_short", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("goaway_on_a_stream", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("window_update_of_zero", "Violation(ZeroIncrement)", "PROTOCOL_ERROR"),
    ("window_update_too_short", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("window_update_on_an_idle_stream", "Violation(IdleStream)", "PROTOCOL_ERROR"),
    ("window_above_its_largest", "Violation(WindowOverflow)", "FLOW_CONTROL_ERROR"),
    ("continuation_of_nothing", "Violation(UnexpectedContinuation)", "PROTOCOL_ERROR"),
    ("continuation_on_the_connection", "Violation(UnexpectedContinuation)", "PROTOCOL_ERROR"),
    ("padding_as_long_as_its_frame", "Violation(Padding)", "PROTOCOL_ERROR"),
    ("padding_without_a_length", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("padding_of_a_head_too_long", "Violation(Padding)", "PROTOCOL_ERROR"),
    ("priority_of_a_head_cut_off", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("another_frame_in_a_header_block", "Violation(InterruptedHeaderBlock)", "PROTOCOL_ERROR"),
    ("an_unknown_frame_in_a_header_block", "Violation(InterruptedHeaderBlock)", "PROTOCOL_ERROR"),
    ("continuation_of_another_stream", "Violation(InterruptedHeaderBlock)", "PROTOCOL_ERROR"),
    ("continuations_without_end", "Spent(Continuations)", "ENHANCE_YOUR_CALM"),
    ("pings_without_end", "Spent(ControlFrames)", "ENHANCE_YOUR_CALM"),
    ("empty_data_without_end", "Spent(ControlFrames)", "ENHANCE_YOUR_CALM"),
    ("goaway_that_takes_back", "Violation(GoAwayIncreased)", "PROTOCOL_ERROR"),
    ("settings_with_push", "Violation(BadSetting)", "PROTOCOL_ERROR"),
    ("settings_with_half_a_push", "Violation(BadSetting)", "PROTOCOL_ERROR"),
    ("settings_with_a_large_window", "Violation(BadInitialWindow)", "FLOW_CONTROL_ERROR"),
    ("settings_with_small_frames", "Violation(BadSetting)", "PROTOCOL_ERROR"),
    ("settings_with_large_frames", "Violation(BadSetting)", "PROTOCOL_ERROR"),
    ("settings_with_half_a_connect", "Violation(BadSetting)", "PROTOCOL_ERROR"),
    ("settings_too_short", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("settings_on_a_stream", "Violation(WrongStream)", "PROTOCOL_ERROR"),
    ("settings_acknowledged_with_more", "Violation(FrameLength)", "FRAME_SIZE_ERROR"),
    ("settings_that_overflow_a_window", "Violation(WindowOverflow)", "FLOW_CONTROL_ERROR"),
    ("settings_without_end", "Spent(ControlFrames)", "ENHANCE_YOUR_CALM"),
    ("no_settings", "Violation(NoSettingsFirst)", "PROTOCOL_ERROR"),
    ("acknowledgement_first", "Violation(NoSettingsFirst)", "PROTOCOL_ERROR"),
    ("http_1_in_answer", "Violation(NoSettingsFirst)", "PROTOCOL_ERROR"),
    ("tls_in_answer", "Violation(NoSettingsFirst)", "PROTOCOL_ERROR"),
];

fn method(script: &str) -> Method {
    if script.starts_with("head_with") || script.starts_with("a_head_with") {
        Method::HEAD
    } else {
        Method::GET
    }
}

/// One connection for both requests, with this between them.
fn on_one(method: &Method, between: &[&str]) -> Vec<Vec<String>> {
    let first = format!("HEADERS 1 {method} /");
    let frames = [&[&*first], between, &["HEADERS 3 GET /", "GOAWAY NO_ERROR"]].concat();
    vec![frames.into_iter().map(str::to_owned).collect()]
}

/// A connection for each request; the first is left so.
fn on_two(method: &Method, end: &[&str]) -> Vec<Vec<String>> {
    let first = format!("HEADERS 1 {method} /");
    let connections = [[&[&*first], end].concat(), vec!["HEADERS 1 GET /", "GOAWAY NO_ERROR"]];
    connections.map(|frames| frames.into_iter().map(str::to_owned).collect()).into()
}

#[test]
fn what_is_right_is_taken() {
    let mut scripts = Scripts::start();
    for (script, answer) in GOOD {
        let method = method(script);
        assert_eq!(scripts.play(script, &method, ""), ((*answer).into(), on_one(&method, &[])), "{script}");
    }
}

#[test]
fn a_fault_of_a_stream_resets_it_and_leaves_the_connection() {
    let mut scripts = Scripts::start();
    for (script, error, code) in STREAM {
        let method = method(script);
        let told = format!("Http2Stream({error}), perhaps processed");
        let reset = format!("RST_STREAM 1 {code}");
        assert_eq!(scripts.play(script, &method, ""), (told, on_one(&method, &[&*reset])), "{script}");
    }
}

#[test]
fn a_fault_of_the_connection_ends_it() {
    let mut scripts = Scripts::start();
    for (script, error, code) in CONNECTION {
        let told = format!("Http2({error}), perhaps processed");
        let goaway = format!("GOAWAY {code}");
        assert_eq!(
            scripts.play(script, &Method::GET, ""),
            (told, on_two(&Method::GET, &[&*goaway])),
            "{script}"
        );
    }
}

/// Requests that the server never processed, whatever their method (RFC 9113 §8.7).
#[test]
fn what_was_not_processed_is_asked_again() {
    let mut scripts = Scripts::start();
    for method in [Method::GET, Method::POST, Method::PATCH] {
        for script in ["goaway_before_the_answer", "goaway_with_an_error_before_the_answer", "goaway_at_once"]
        {
            let (told, sent) = scripts.play(script, &method, "0123456789");
            assert_eq!(told, "200 ok", "{script}");
            let again = on_one(&method, &[]).concat();
            let first = sent.first().expect("a connection");
            assert_eq!(first.last().map(String::as_str), Some("GOAWAY NO_ERROR"), "{script}: {first:?}");
            assert_eq!(sent.get(1..), Some(&[again][..]), "{script}: {sent:?}");
        }
        let (told, sent) = scripts.play("refused", &method, "0123456789");
        assert_eq!(told, "200 ok");
        let again = vec![format!("HEADERS 1 {method} /"), "GOAWAY NO_ERROR".into()];
        assert_eq!(sent, [on_one(&method, &[]).concat(), again]);
        let (told, sent) = scripts.play("refused_three_times", &method, "0123456789");
        assert_eq!((&*told, sent.len()), ("200 ok", 4));
    }
}

/// The answer counts, and the next request goes elsewhere.
#[test]
fn an_answer_behind_a_goaway_is_taken() {
    let mut scripts = Scripts::start();
    for script in ["goaway_then_the_answer", "goaway_in_two_steps"] {
        let (told, sent) = scripts.play(script, &Method::POST, "once");
        assert_eq!((&*told, sent), ("200 ok", on_two(&Method::POST, &["GOAWAY NO_ERROR"])), "{script}");
    }
}

#[test]
fn a_reset_is_no_reason_to_send_anything() {
    let mut scripts = Scripts::start();
    for (script, error) in [
        ("a_reset_instead_of_an_answer", "Reset(InternalError)"),
        ("a_reset_within_the_answer", "Reset(Cancel)"),
        ("a_reset_without_an_error_instead_of_an_answer", "Reset(NoError)"),
        // Whoever has begun to answer has processed the request, whatever it says then.
        ("a_refusal_within_the_answer", "Refused"),
        // Without TLS there is nothing that could choose another version.
        ("http_1_required", "Reset(Http11Required)"),
    ] {
        let told = format!("Http2Stream({error}), perhaps processed");
        assert_eq!(scripts.play(script, &Method::GET, ""), (told, on_one(&Method::GET, &[])), "{script}");
    }
}

#[test]
fn an_end_of_the_connection_is_told_apart() {
    let mut scripts = Scripts::start();
    for (script, error) in [
        ("the_end_instead_of_an_answer", "EmptyReply"),
        ("the_end_behind_an_interim_answer", "EmptyReply"),
        ("the_end_behind_the_head", "PartialBody(Closed)"),
        ("the_end_within_the_body", "PartialBody(Closed)"),
        ("the_end_within_a_frame", "PartialBody(Closed)"),
        (
            "goaway_with_an_error_and_no_answer",
            "Http2(GoAway { reason: EnhanceYourCalm, last: StreamId(1) })",
        ),
    ] {
        let told = format!("{error}, perhaps processed");
        assert_eq!(scripts.play(script, &Method::GET, ""), (told, on_two(&Method::GET, &[])), "{script}");
    }
}

/// What is not one request behind the other.
fn with_script(
    script: &str,
    case: impl AsyncFnOnce(Client<hyperman_loop::Handle>, String),
) -> Vec<Vec<String>> {
    let mut scripts = Scripts::start();
    let url = format!("http://127.0.0.1:{}/", scripts.start_script(script, ""));
    hyperman_loop::block_on(async |handle| {
        let client = Client::builder(handle).http2_prior_knowledge().timeout(Duration::from_secs(15)).build();
        case(client, url).await;
    })
    .expect("a loop");
    scripts.end_script()
}

#[test]
fn what_was_on_its_way_to_a_cancelled_stream_goes_nowhere() {
    let sent = with_script("data_for_a_stream_that_was_cancelled", async |client, url| {
        let mut answer = client.get(&url).send().await.expect("a head");
        assert_eq!(answer.chunk().await.expect("a piece").expect("not the end"), "begun");
        drop(answer);
        assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 ok");
    });
    assert_eq!(sent, on_one(&Method::GET, &["RST_STREAM 1 CANCEL"]));
}

#[test]
fn whoever_has_no_patience_left_cancels_the_stream_and_the_connection_stays() {
    let cancelled = [
        "HEADERS 1 GET /",
        "RST_STREAM 1 CANCEL",
        "HEADERS 3 GET /",
        "RST_STREAM 3 CANCEL",
        "GOAWAY NO_ERROR",
    ];
    let moment = Duration::from_millis(30);
    let sent = with_script("silence", async |client, url| {
        for _ in 0..2 {
            let error = client.get(&url).timeout(moment).send().await.expect_err("no answer");
            assert!(error.is_timeout() && error.request_may_have_been_processed(), "{error:?}");
        }
    });
    assert_eq!(sent, [cancelled]);
    let sent = with_script("silence", async |client, url| {
        for _ in 0..2 {
            let mut asked = std::pin::pin!(client.get(&url).send());
            let (mut timer, later) = (client.runtime().timer(), client.runtime().now() + moment);
            // Long enough for the request to go out; then nobody wants the answer any more.
            std::future::poll_fn(|cx| {
                assert!(asked.as_mut().poll(cx).is_pending());
                timer.poll_deadline(later, cx)
            })
            .await;
        }
    });
    assert_eq!(sent, [cancelled], "a future that is dropped");
}

#[test]
fn a_request_that_is_not_let_out_waits() {
    let sent = with_script("no_streams", async |client, url| {
        assert_eq!(ask(&client, &Method::POST, &url, "").await, "200 ok");
        assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 ok");
    });
    assert_eq!(sent, [["HEADERS 1 POST /", "HEADERS 3 POST /", "HEADERS 5 GET /", "GOAWAY NO_ERROR"]]);
}

/// A frame behind the end of a stream is a fault of that stream, as long as the client knows it (RFC 9113 §5.1); its answer
/// stands.
#[test]
fn what_comes_behind_an_answer_does_not_change_it() {
    for script in ["data_after_the_end", "head_after_the_end"] {
        let sent = with_script(script, async |client, url| {
            let held = client.get(&url).send().await.expect("a head");
            // By the time of the second answer all that belongs to the first has come.
            assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 ok", "{script}");
            assert_eq!(held.text().await.expect("a body"), "ok", "{script}");
        });
        assert!(sent.concat().contains(&"RST_STREAM 1 STREAM_CLOSED".into()), "{script}: {sent:?}");
    }
}

#[test]
fn no_more_is_sent_than_a_window_allows() {
    for script in ["a_small_window", "a_window_below_zero"] {
        with_script(script, async |client, url| {
            assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 ok");
            assert_eq!(ask(&client, &Method::POST, &url, "0123456789").await, "200 ok");
        });
    }
}

#[cfg(feature = "tls")]
mod over_tls {
    use hyperman_fetch::tls::{Authorities, ClientTls};
    use hyperman_transport::tls::development_certificate;

    use super::*;

    /// Asks twice over TLS: what came the first time, and what was sent. The second time all is well.
    fn ask_twice(script: &str) -> (String, Vec<Vec<String>>) {
        let folder = tempfile::tempdir().expect("a folder");
        let made = development_certificate(["localhost"]).expect("a certificate");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("text").to_owned()
        };
        let files = [file("certificate", &made.certificate_pem), file("key", &made.key_pem)].join(" ");
        let mut scripts = Scripts::start();
        let url = format!("https://localhost:{}/", scripts.start_script(script, &files));
        let told = hyperman_loop::block_on(async |handle| {
            let trust = Authorities::from_pem(&made.certificate_pem);
            let client = Client::builder(handle)
                .tls(&ClientTls::builder().only_authorities(trust).build().expect("a configuration"))
                .resolve("localhost", [([127, 0, 0, 1], 0).into()])
                .timeout(Duration::from_secs(15))
                .build();
            let first = ask(&client, &Method::POST, &url, "").await;
            assert_eq!(ask(&client, &Method::GET, &url, "").await, "200 ok", "{script}: {first}");
            first
        });
        (told.expect("a loop"), scripts.end_script())
    }

    #[test]
    fn an_idle_connection_ends_with_a_goaway_and_a_close_notify() {
        let mut sent = on_one(&Method::POST, &[]);
        sent.iter_mut().for_each(|connection| connection.push("CLOSE_NOTIFY".into()));
        assert_eq!(ask_twice("plain"), ("200 ok".into(), sent));
    }

    /// Behind one name there are several servers, and not all of them speak the same.
    #[test]
    fn a_kept_connection_of_http_1_may_be_followed_by_one_of_http_2() {
        let (told, sent) = ask_twice("http_1_first");
        assert_eq!(told, "200 ok");
        let first = ["POST / HTTP/1.1", "GET / HTTP/1.1"];
        let second = ["HEADERS 1 GET /", "GOAWAY NO_ERROR", "CLOSE_NOTIFY"];
        assert_eq!(sent, [&first[..], &second]);
    }

    /// Where only the end of the connection ends an answer, TLS has to say that it is one (RFC 8446 §6.1).
    #[test]
    fn a_cut_is_no_end() {
        assert_eq!(ask_twice("until_the_end").0, "200 ok");
        assert_eq!(ask_twice("whole_before_a_cut").0, "200 ok");
        for script in ["until_a_cut", "chunks_before_a_cut"] {
            let (told, _) = ask_twice(script);
            assert!(
                told.starts_with("PartialBody(Transport(") && told.contains("UnexpectedEof"),
                "{script}: {told}"
            );
        }
    }

    /// RFC 9113 §7.
    #[test]
    fn a_server_that_wants_http_1_gets_it() {
        for script in ["http_1_required", "http_1_required_of_all"] {
            let (told, sent) = ask_twice(script);
            assert_eq!(told, "200 ok");
            assert_eq!(
                sent.get(1).and_then(|second| second.first()),
                Some(&"POST / HTTP/1.1".into()),
                "{sent:?}"
            );
        }
    }
}
