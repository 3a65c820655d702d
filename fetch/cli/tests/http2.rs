//! The program over HTTP/2, against nghttpd and node.
#![allow(clippy::expect_used, missing_docs, reason = "a test fails by panicking")]

use std::process::{Command, Stdio};

#[path = "../../tests/servers/mod.rs"]
mod servers;

/// Both outputs of a run that went well.
fn run(arguments: &[&str]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fetch"));
    let output = command.stdin(Stdio::null()).args(arguments).output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_version_is_the_servers_choice_unless_it_is_said() {
    let server = servers::node(true);
    let (trust, url) = (server.certificate_file(), server.url("small"));
    let asked = |flags: &[&str]| {
        let mut arguments = vec!["-sv", "--cacert", &trust, "-w", "%{http_version}"];
        arguments.extend(flags);
        arguments.push(&url);
        run(&arguments)
    };
    for flags in [&[][..], &["--http2"], &["--http1.1", "--http2"], &["--http2-prior-knowledge"]] {
        let (out, told) = asked(flags);
        assert_eq!(out, "small\n2", "{flags:?}");
        assert!(told.contains("\n> GET /small HTTP/2\n") && told.contains("\n< HTTP/2 200 \n"), "{told}");
    }
    for (flags, version) in [(&["--http1.1"][..], "1.1"), (&["--http2", "--http1.1"], "1.1")] {
        let (out, told) = asked(flags);
        assert_eq!(out, format!("small\n{version}"), "{flags:?}");
        assert!(told.contains(&format!("\n< HTTP/{version} 200 OK\n")), "{told}");
    }
}

#[test]
fn one_connection_carries_all_urls() {
    let server = servers::nghttpd(false);
    let url = server.url("small");
    let (out, told) = run(&["-sv", "--http2-prior-knowledge", &url, &url, &server.url("empty")]);
    assert_eq!(out, "small\nsmall\n");
    assert_eq!(told.matches("* Connected to ").count(), 1, "{told}");
    assert_eq!(told.matches("* Reusing the connection to ").count(), 2, "{told}");
    let (head, _) = run(&["-sI", "--http2-prior-knowledge", &url]);
    assert!(head.starts_with("HTTP/2 200 \r\n"), "{head}");
}
