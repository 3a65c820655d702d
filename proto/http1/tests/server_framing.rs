//! What a server makes of request framing: S01 to S08.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

mod support;

use hyperman_http1::Limits;
use support::*;

const HOST: &str = "Host: a\r\n";

fn post(fields: &str, body: &str) -> String {
    format!("POST / HTTP/1.1\r\n{HOST}{fields}\r\n{body}")
}

#[test]
fn s01_transfer_encoding_with_content_length_in_any_order() {
    for fields in [
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\ntransfer-encoding: gzip\r\nTRANSFER-ENCODING: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 3\r\n",
    ] {
        refused(&post(fields, "0\r\n\r\n"), 400);
    }
}

#[test]
fn s02_transfer_encoding_must_be_one_final_chunked() {
    server_vector(
        &post("Transfer-Encoding: \t ChunkeD \t\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        &["POST / HTTP/1.1 Chunked host=a transfer-encoding=ChunkeD", "data abc", "end"],
    );
    for value in [
        "xchunked",
        "chunked, identity",
        "chunked,",
        ",chunked",
        "identity",
        "gzip",
        "",
        "chunked, chunked",
        "chunked;a=b",
        "chun ked",
        "\"chunked\"",
        "chunked gzip",
        "chunked\tx",
        "x chunked",
    ] {
        refused(&post(&format!("Transfer-Encoding: {value}\r\n"), "0\r\n\r\n"), 400);
    }
    for value in ["\x0bchunked", "chunked\x0b", "\x0cchunked", "chunked\0", "chunked\r"] {
        refused(&post(&format!("Transfer-Encoding: {value}\r\n"), "0\r\n\r\n"), 400);
    }
    refused(&post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400);
    refused(&post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"), 400);
    refused(&post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400);
    refused(&post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), 400);
    refused(&post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501);
    refused(&post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 501);
}

#[test]
fn s03_transfer_encoding_on_http_1_0() {
    for connection in ["", "Connection: keep-alive\r\n"] {
        refused(
            &format!("POST / HTTP/1.0\r\n{HOST}{connection}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400,
        );
    }
}

#[test]
fn s04_content_length_is_digits() {
    for value in [
        "+3",
        "-3",
        "",
        " ",
        "3 ,3",
        "3, 3",
        "3,4",
        "0x3",
        "3;a",
        "3 3",
        "three",
        "18446744073709551616",
        "1e3",
        "3.0",
        "\u{ff13}",
        "99999999999999999999999",
    ] {
        refused(&post(&format!("Content-Length: {value}\r\n"), "abc"), 400);
    }
    refused(&post("Content-Length: 3\r\nContent-Length: 4\r\n", "abc"), 400);
    refused(&post("Content-Length: 3\r\nX: y\r\ncontent-length: 03, 3\r\n", "abc"), 400);
    server_vector(
        &post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
        &["POST / HTTP/1.1 Known(3) host=a content-length=3 content-length=3", "data abc", "end"],
    );
    server_vector(
        &post("Content-Length: 003 \r\n", "abc"),
        &["POST / HTTP/1.1 Known(3) host=a content-length=003", "data abc", "end"],
    );
    server_vector(&post("Content-Length: 0\r\n", ""), &["POST / HTTP/1.1 Empty host=a content-length=0"]);
}

#[test]
fn s05_chunk_sizes() {
    let chunked = |body: &str| post("Transfer-Encoding: chunked\r\n", body);
    let head = "POST / HTTP/1.1 Chunked host=a transfer-encoding=chunked";
    server_vector(&chunked("3\r\nabc\r\n0\r\n\r\n"), &[head, "data abc", "end"]);
    server_vector(
        &chunked("003\r\nabc\r\nA\r\n0123456789\r\n000\r\n\r\n"),
        &[head, "data abc0123456789", "end"],
    );
    server_vector(&chunked("0000000000000001\r\na\r\n0\r\n\r\n"), &[head, "data a", "end"]);
    for size in [
        "",
        " ",
        "x",
        "-1",
        "+1",
        "0x1",
        " 1",
        "1 ",
        "1\t",
        "00000000000000001",
        "10000000000000000",
        "1g",
        "1\0",
        ";",
        "\u{661}",
        "1_0",
        "fffffffffffffffff",
    ] {
        refused(&chunked(&format!("{size}\r\na\r\n0\r\n\r\n")), 400);
    }
    // A size with no digits must not be taken for the last chunk.
    refused(&chunked("\r\n\r\n"), 400);
    refused(&chunked("1\na\r\n0\r\n\r\n"), 400);
    refused(&chunked("1\ra\r\n0\r\n\r\n"), 400);
    refused(&chunked("1\r\na\n0\r\n\r\n"), 400);
    refused(&chunked("1\r\nab\r\n0\r\n\r\n"), 400);
    refused(&chunked("1\r\na\r0\r\n\r\n"), 400);
    refused(&chunked("0\r\n\n"), 400);
    refused(&chunked("0\n\n"), 400);
    refused(&chunked("1\r\na0\r\n\r\n"), 400);
    // Far over the ceiling of a body.
    refused(&chunked("ffffffffffffffff\r\na"), 413);
    refused(&chunked("1\r\na\r\nffffffffffffffff\r\na"), 413);
}

#[test]
fn s06_chunk_extensions_have_a_grammar_and_a_budget() {
    let chunked = |body: &str| post("Transfer-Encoding: chunked\r\n", body);
    let head = "POST / HTTP/1.1 Chunked host=a transfer-encoding=chunked";
    for extension in [
        ";a",
        ";a=b",
        ";a=\"b\"",
        ";a=\"\"",
        ";a;b=c;d=\"e;f\"",
        " ;a",
        "\t; a = b",
        ";a=\"\\\"\"",
        ";a=\"\\\\\"",
        ";a=\"\t \"",
        " ; a=\"x\" ; b",
        ";a=\"\u{e9}\"",
        ";!#$%&'*+-.^_`|~=1",
    ] {
        server_vector(
            &chunked(&format!("3{extension}\r\nabc\r\n0{extension}\r\n\r\n")),
            &[head, "data abc", "end"],
        );
    }
    for extension in [
        ";",
        ";a=",
        ";=b",
        ";a b",
        ";a ",
        " ",
        ";a=b c",
        ";a=\"b",
        ";a=\"b\"c",
        ";a=\"\\\r\n\"",
        ";a=\"\n\"",
        ";a=\"\r\"",
        ";a=\"\r\n\"",
        ";a\n",
        ";a\0",
        ";a=\"\0\"",
        ";a=\"\x7f\"",
        ";\r",
        ";a;",
        ";(a)",
        "x",
        ",a",
        "; ;a",
        ";a==b",
        ";a=\"\\\0\"",
        ";\u{e9}",
    ] {
        refused(&chunked(&format!("3{extension}\r\nabc\r\n0\r\n\r\n")), 400);
    }
    let limits = Limits { chunk_extensions: 10, ..Limits::default() };
    let body = |count: usize| chunked(&format!("{}0\r\n\r\n", "1;a=1\r\na\r\n".repeat(count)));
    server_vector_with(&limits, body(2).as_bytes(), &[head, "data aa", "end"]);
    refused_with(&limits, body(3).as_bytes(), 400);
}

#[test]
fn s07_line_ends_folds_and_blanks() {
    for bad in [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\rX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\rHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\0: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\u{feff}X: b\r\n\r\n",
        "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    ] {
        refused(bad, 400);
    }
    server_vector(
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nTab: x\ty\r\nBytes: \u{e9}\r\nEmpty:\r\n\r\n",
        &["GET / HTTP/1.1 Empty host=a tab=x\\ty bytes=\\xc3\\xa9 empty="],
    );
}

#[test]
fn s08_a_body_is_framed_whatever_the_method() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "BREW"] {
        server_vector(
            &format!(
                "{method} / HTTP/1.1\r\n{HOST}Content-Length: 24\r\n\r\nGET /smuggled HTTP/1.1\r\nGET /next HTTP/1.1\r\n{HOST}\r\n"
            ),
            &[
                &format!("{method} / HTTP/1.1 Known(24) host=a content-length=24"),
                "data GET /smuggled HTTP/1.1\\r\\n",
                "end",
                "GET /next HTTP/1.1 Empty host=a",
            ],
        );
    }
    server_vector(
        &format!(
            "GET / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET /b HTTP/1.1\r\n{HOST}\r\n"
        ),
        &[
            "GET / HTTP/1.1 Chunked host=a transfer-encoding=chunked",
            "data a",
            "end",
            "GET /b HTTP/1.1 Empty host=a",
        ],
    );
    refused("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\n\r\nabc", 400);
    refused("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
}

#[test]
fn s09_trailers_are_kept_apart_and_forbidden_ones_dropped() {
    let head = "POST / HTTP/1.1 Chunked host=a transfer-encoding=chunked";
    let chunked =
        |trailers: &str| post("Transfer-Encoding: chunked\r\n", &format!("1\r\na\r\n0\r\n{trailers}\r\n"));
    server_vector(
        &chunked(
            "X-Sum: 1\r\nHost: evil\r\nContent-Length: 9\r\nTransfer-Encoding: x\r\nAuthorization: b\r\nCookie: c\r\n",
        ),
        &[head, "data a", "trailers x-sum=1", "end"],
    );
    server_vector(&chunked("Host: evil\r\n"), &[head, "data a", "end"]);
    for bad in ["X : 1\r\n", " X: 1\r\n", "X\r\n", "X: \0\r\n", "X: 1\n", "X: 1\r\n 2\r\n", "Host: \x01\r\n"]
    {
        refused(&chunked(bad), 400);
    }
    let limits = Limits { fields: 2, head: 200, field: 30, ..Limits::default() };
    refused_with(&limits, chunked("A: 1\r\nB: 2\r\nC: 3\r\n").as_bytes(), 431);
    refused_with(&limits, chunked(&format!("A: {}\r\n", "x".repeat(28))).as_bytes(), 431);
}

#[test]
fn bodies_over_the_ceiling() {
    let limits = Limits { body: 4, ..Limits::default() };
    refused_with(&limits, post("Content-Length: 5\r\n", "").as_bytes(), 413);
    refused_with(
        &limits,
        post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").as_bytes(),
        413,
    );
    server_vector_with(
        &limits,
        post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n").as_bytes(),
        &["POST / HTTP/1.1 Chunked host=a transfer-encoding=chunked", "data abcd", "end"],
    );
}

#[test]
fn the_end_of_the_stream_inside_a_message_is_an_error() {
    let head_only = format!("POST / HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nab");
    let chunked = format!("POST / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n");
    for (input, error) in [
        ("GET / HT", "400 connection closed inside a head"),
        ("GET / HTTP/1.1\r\nHost: a\r\n", "400 connection closed inside a head"),
        ("\r", "400 connection closed inside a head"),
        (&head_only, "400 connection closed inside a body"),
        (&chunked, "400 connection closed inside a body"),
    ] {
        for pieces in cuts(input.as_bytes()) {
            let log = server_log(&Limits::default(), &pieces, true, &mut None);
            assert!(log.iter().any(|line| line == error), "{input:?} {log:?}");
        }
    }
    for input in ["\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let log = server_log(&Limits::default(), &[input.as_bytes()], true, &mut None);
        let reason = log.last().map(String::as_str);
        assert!(matches!(reason, Some("closed PeerClosed" | "closed KeepAliveOff")), "{input:?} {log:?}");
    }
}
