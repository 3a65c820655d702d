//! The program as the one who runs it meets it: its addresses, its certificate, its log, its limits, and signals.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

mod started;
use started::{Program, command, curl, folder, pattern, serve};

#[test]
fn each_request_is_a_line_of_the_log() {
    let folder = folder();
    fs::write(folder.path().join("large.bin"), pattern(300_000)).unwrap();
    let program = serve(&folder);
    program.curl("/alphabet.txt", &[]);
    program.curl("/nothing?x=1", &[]);
    program.curl("/large.bin", &["-o", "/dev/null"]);
    // One that is given up: more than both sides' buffers hold.
    fs::write(folder.path().join("huge.bin"), pattern(64 << 20)).unwrap();
    let mut stream = program.connect();
    stream.write_all(b"GET /huge.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 1000]).unwrap();
    drop(stream);
    let (status, log) = program.stop();
    assert_eq!(status.code(), Some(0));
    let mut lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 4, "{log}");
    let given_up = lines.pop().unwrap();
    let sent: u64 = given_up.split("\" 200 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(sent > 0 && sent < 64 << 20, "{given_up}");
    for (line, part) in lines.iter().zip([
        "] \"GET /alphabet.txt HTTP/1.1\" 200 26 ",
        "] \"GET /nothing?x=1 HTTP/1.1\" 404 49 ",
        "] \"GET /large.bin HTTP/1.1\" 200 300000 ",
    ]) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.contains(part) && line.ends_with("ms"), "{line}");
    }
    let quiet = Program::start(folder.path(), &["--listen", "127.0.0.1:0", "--no-log"]);
    quiet.curl("/alphabet.txt", &[]);
    assert_eq!(quiet.stop().1, "");
}

#[test]
fn what_is_refused_is_a_line_of_the_log_too() {
    let folder = folder();
    let program = Program::start(folder.path(), &["--listen", "127.0.0.1:0", "--head-timeout", "1s"]);
    for (bytes, line) in [
        ("GET /a HTTP/1.1\r\n\r\n", "\"GET /a HTTP/1.1\" 400 13 "),
        ("HEAD /a HTTP/1.1\r\n\r\n", "\"HEAD /a HTTP/1.1\" 400 0 "),
        ("GET /\"\\\u{1b}[2J\u{7}\n127.0.0.1 - - [", "\"GET /\\\"\\\\\\x1B[2J\\x07\" 400 "),
        ("\u{16}\u{3}\u{1}", "\"\\x16\\x03\\x01\" 400 "),
        ("\r\n\r\n\r\n\r\n\r\n", "\"-\" 400 "),
        ("EHLO mail there\r\n", "\"EHLO mail there\" 444 0 "),
        ("GET /a HTTP/1.1\r\nHo", "\"GET /a HTTP/1.1\" 408 13 "),
        ("GET /a HTTP/9.0\r\n", "\"GET /a HTTP/9.0\" 505 "),
        (
            "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
            "\"POST /a HTTP/1.1\" 400 19 ",
        ),
        ("GET / HTTP/1.0\r\n\r\n", "\"GET / HTTP/1.0\" 200 15 "),
    ] {
        let answer = program.raw(bytes);
        let status = line.split("\" ").nth(1).unwrap().get(..3).unwrap();
        if status != "444" {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes:?}: {answer}");
        }
    }
    let long = program.raw(&format!("GET /{}", "a".repeat(9000)));
    assert!(long.starts_with("HTTP/1.1 414 "), "{long}");
    let (_, log) = program.stop();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 11, "{log}");
    for (line, part) in lines.iter().zip([
        "] \"GET /a HTTP/1.1\" 400 13 ",
        "] \"HEAD /a HTTP/1.1\" 400 0 ",
        "] \"GET /\\\"\\\\\\x1B[2J\\x07\" 400 23 ",
        "] \"\\x16\\x03\\x01\" 400 22 ",
        "] \"-\" 400 28 ",
        "] \"EHLO mail there\" 444 0 ",
        "] \"GET /a HTTP/1.1\" 408 13 ",
        "] \"GET /a HTTP/9.0\" 505 40 ",
        "] \"POST /a HTTP/1.1\" 400 19 ",
        "] \"GET / HTTP/1.0\" 200 15 ",
        &format!("] \"GET /{}\" 414 20 ", "a".repeat(1019)),
    ]) {
        assert!(line.starts_with("127.0.0.1 - - [") && line.contains(part) && line.ends_with("ms"), "{line}");
    }
    assert!(log.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{log:?}");

    let json = Program::start(folder.path(), &["--listen", "127.0.0.1:0", "--log", "json"]);
    json.raw("GET /\"\u{1b}\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n");
    let (_, log) = json.stop();
    let expected = "\"line\":\"GET /\\\"\\u001bé HTTP/1.1\",\
        \"reason\":\"invalid request target \\\"/\\\\\\\"\\\\x1b\\\\xc3\\\\xa9\\\"\",\"status\":400,\"sent\":";
    assert!(log.contains(expected) && log.lines().count() == 1, "{log}");
}

#[test]
fn several_addresses_and_a_unix_socket() {
    let folder = folder();
    let socket = folder.path().join("sock");
    let unix = format!("unix:{}", socket.display());
    let program =
        Program::start(folder.path(), &["--listen", "127.0.0.1:0", "--listen", &unix, "--listen", "0"]);
    let urls: Vec<&str> =
        program.started.lines().filter_map(|line| line.trim().strip_prefix("http://")).collect();
    assert_eq!(urls.len(), 2, "{}", program.started);
    for url in urls {
        assert_eq!(curl(&format!("http://{url}alphabet.txt"), &["-r", "0-0"]), "a");
    }
    let by_socket =
        curl("http://localhost/alphabet.txt", &["--unix-socket", socket.to_str().unwrap(), "-r", "1-1"]);
    assert_eq!(by_socket, "b");
    let (status, log) = program.stop();
    assert_eq!(status.code(), Some(0));
    assert!(log.lines().any(|line| line.starts_with("unix - - [")), "{log}");
    assert!(!socket.exists());
}

#[test]
fn a_download_goes_on_to_its_end_after_the_first_signal() {
    let folder = folder();
    let content = pattern(64 << 20);
    fs::write(folder.path().join("large.bin"), &content).unwrap();
    // A path, unlike a port, is not taken over by another test meanwhile.
    let socket = folder.path().join("sock");
    let unix = format!("unix:{}", socket.display());
    let mut program = Program::start(folder.path(), &["--listen", "127.0.0.1:0", "--listen", &unix]);
    let mut idle = program.connect();
    idle.write_all(b"GET /alphabet.txt HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 100]).unwrap();
    let mut busy = program.connect();
    busy.write_all(b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut received = vec![0; 65_536];
    busy.read_exact(&mut received).unwrap();
    program.signal(Signal::INT);
    // The idle connection is closed at once, so the signal has been heard.
    idle.read_to_end(&mut Vec::new()).unwrap();
    // A connection that was still taken ends without an answer; then no further one is.
    while let Ok(mut late) = UnixStream::connect(&socket) {
        let _ = late.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut answer = Vec::new();
        let _ = late.read_to_end(&mut answer);
        assert!(answer.is_empty(), "it still serves");
    }
    busy.read_to_end(&mut received).unwrap();
    let head = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(received[head..] == content);
    assert_eq!(program.wait().0.code(), Some(0));
}

#[test]
fn the_second_signal_ends_it_at_once() {
    let folder = folder();
    fs::write(folder.path().join("large.bin"), pattern(64 << 20)).unwrap();
    let mut program = serve(&folder);
    let mut idle = program.connect();
    let mut busy = program.connect();
    busy.write_all(b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut received = vec![0; 65_536];
    busy.read_exact(&mut received).unwrap();
    program.signal(Signal::INT);
    idle.read_to_end(&mut Vec::new()).unwrap();
    assert!(program.child.try_wait().unwrap().is_none(), "one signal is enough");
    program.signal(Signal::INT);
    // Without the second one it would wait for the download, which nobody reads, for half a minute.
    let begun = std::time::Instant::now();
    program.wait();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_goes_wrong_at_the_start_is_said_with_a_way_out() {
    let folder = folder();
    let fail = |directory: &Path, arguments: &[&str]| {
        let output = command(directory, arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = fail(&folder.path().join("nowhere"), &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no folder"), "{said}");
    let (code, said) = fail(&folder.path().join("index.html"), &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("is a file; to serve the folder it is in: hyperman serve /"), "{said}");
    let (code, said) = fail(folder.path(), &["--listen", "nonsense"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("nonsense:8080"), "{said}");
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let (code, said) = fail(folder.path(), &["--listen", &address.to_string()]);
    assert_eq!(code, Some(1));
    assert!(said.contains(&format!("cannot listen on {address}")), "{said}");
    assert!(said.contains("try --listen 127.0.0.1:"), "{said}");
    if cfg!(target_os = "linux") {
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
    }
}

#[test]
fn tls_serves_both_versions_and_cleartext_is_redirected_there() {
    let folder = folder();
    let program = Program::start(
        folder.path(),
        &["--listen", "127.0.0.1:0", "--tls", "--redirect-from", "127.0.0.1:0", "--no-log"],
    );
    let secure = program.started.lines().find(|line| line.contains("https://")).unwrap().trim();
    assert!(program.started.contains("made just now"), "{}", program.started);
    let ask = |arguments: &[&str]| curl(secure, arguments);
    assert_eq!(ask(&["-k", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]), "2 200");
    assert_eq!(ask(&["-k", "--http1.1", "-o", "/dev/null", "-w", "%{http_version} %{http_code}"]), "1.1 200");
    let place = program.curl("/x?y", &["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"]);
    assert_eq!(place, format!("308 {secure}x?y"));
}

#[test]
fn a_given_certificate_is_served_and_a_bad_one_is_refused_with_a_reason() {
    let folder = folder();
    let made = hyperman::tls::development_certificate(["localhost"]).unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    fs::write(&certificate, &made.certificate_pem).unwrap();
    fs::write(&key, &made.key_pem).unwrap();
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let listen = ["--listen", "127.0.0.1:0", "--tls", "--cert", certificate, "--key", key, "--no-log"];
    let mut program = Program::start(folder.path(), &listen);
    let secure = program.started.lines().find(|line| line.contains("https://")).unwrap().trim();
    let port = secure.trim_end_matches('/').rsplit(':').next().unwrap();
    let named = format!("https://localhost:{port}/");
    let status = curl(&named, &["--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!(status, "200");
    let other = hyperman::tls::development_certificate(["localhost"]).unwrap();
    fs::write(key, &other.key_pem).unwrap();
    let refused = command(folder.path(), &listen).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("key"), "{said}");
    // The one that runs keeps what it has, and says why.
    program.signal(Signal::HUP);
    program.hear("error: the old certificate stays: ");
    let status = curl(&named, &["--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!(status, "200");
    // A new pair is served to whoever connects from then on.
    fs::write(certificate, &other.certificate_pem).unwrap();
    program.signal(Signal::HUP);
    program.hear("note: the certificate was read again");
    let status = curl(&named, &["--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!(status, "200");
}

#[test]
fn a_hangup_without_a_terminal_ends_nothing() {
    let folder = folder();
    for (options, said) in [
        (&["--listen", "127.0.0.1:0"][..], "note: SIGHUP: there is nothing to read again"),
        (&["--listen", "127.0.0.1:0", "--tls"], "note: SIGHUP: the certificate is of this program's making"),
    ] {
        let mut program = Program::start(folder.path(), options);
        program.signal(Signal::HUP);
        program.hear(said);
        let url = program.started.lines().find(|line| line.contains("://")).unwrap().trim();
        assert_eq!(curl(&format!("{url}alphabet.txt"), &["-k", "-r", "0-0"]), "a");
        let (status, log) = program.stop();
        assert_eq!(status.code(), Some(0));
        assert!(log.contains("\"GET /alphabet.txt HTTP/"), "{log}");
    }
}

#[test]
fn it_ends_with_its_terminal_and_writes_the_last_lines() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let folder = folder();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let inside = fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let socket = folder.path().join("sock");
    let unix = format!("unix:{}", socket.display());
    let mut child = command(folder.path(), &["--listen", &unix]).stderr(inside).spawn().unwrap();
    let mut started = String::new();
    let mut screen = BufReader::new(fs::File::from(terminal));
    while !started.contains("Ctrl-C") {
        assert!(screen.read_line(&mut started).unwrap() > 0, "{started}");
    }
    let url = "http://localhost/alphabet.txt";
    assert_eq!(curl(url, &["--unix-socket", socket.to_str().unwrap(), "-r", "0-0"]), "a");
    drop(screen);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    child.stdout.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.starts_with("unix - - [") && log.contains("\"GET /alphabet.txt HTTP/1.1\" 206 1 "), "{log}");
    assert!(!socket.exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_is_complained_of_once_and_serving_goes_on() {
    let folder = folder();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = command(folder.path(), &["--listen", "127.0.0.1:0"]);
    command.stdout(full);
    let mut program = Program::of(command);
    assert_eq!(program.curl("/alphabet.txt", &["-r", "0-0"]), "a");
    let line = program.hear("requests are not written down");
    assert!(line.starts_with("error: ") && line.contains("No space left on device"), "{line}");
    assert_eq!(program.curl("/alphabet.txt", &["-r", "1-1"]), "b");
    program.signal(Signal::TERM);
    assert_eq!(program.child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    program.messages.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// The program with the limits of open files that `ulimit` sets.
fn limited(folder: &Path, ulimit: &str, arguments: &[&str]) -> Program {
    let plain = command(folder, arguments);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("{ulimit} && exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .args(plain.get_args());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Program::of(limited)
}

#[test]
fn it_takes_as_many_descriptors_as_it_may_have() {
    let folder = folder();
    fs::write(folder.path().join("large.bin"), pattern(8 << 20)).unwrap();
    let program = limited(folder.path(), "ulimit -Sn 64", &["--listen", "127.0.0.1:0", "--no-log"]);
    // Each holds a socket and a file: more than 64.
    let mut downloads: Vec<_> = (0..60)
        .map(|_| {
            let mut stream = program.connect();
            stream.write_all(b"GET /large.bin HTTP/1.0\r\n\r\n").unwrap();
            stream
        })
        .collect();
    for stream in &mut downloads {
        let mut start = [0; 16];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK\r");
    }
}

#[test]
fn where_descriptors_are_few_connections_wait_and_none_is_turned_away() {
    let folder = folder();
    fs::write(folder.path().join("large.bin"), pattern(8 << 20)).unwrap();
    // 32 for connections, two each.
    let program = limited(folder.path(), "ulimit -n 128", &["--listen", "127.0.0.1:0", "--no-log"]);
    let downloads: Vec<_> = (0..80)
        .map(|_| {
            let mut stream = program.connect();
            stream.write_all(b"GET /large.bin HTTP/1.0\r\n\r\n").unwrap();
            stream
        })
        .collect();
    for mut stream in downloads {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.len() > 8 << 20, "{}", answer.len());
    }
}

#[test]
fn a_socket_that_another_server_took_over_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("sock");
    let unix = format!("unix:{}", path.display());
    let first = Program::start(folder.path(), &["--listen", &unix]);
    let taken = command(folder.path(), &["--listen", &unix]).output().unwrap();
    assert_eq!(taken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&taken.stderr).contains("another server listens there"));
    fs::remove_file(&path).unwrap();
    let second = Program::start(folder.path(), &["--listen", &unix]);
    first.stop();
    let url = "http://localhost/alphabet.txt";
    assert_eq!(curl(url, &["--unix-socket", path.to_str().unwrap(), "-r", "0-0"]), "a");
    second.stop();
    assert!(!path.exists());
    fs::write(&path, "precious").unwrap();
    let refused = command(folder.path(), &["--listen", &unix]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is a file, which is no socket"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}
