//! The program as its users meet it: started on a real folder, asked by curl and by bytes over a socket, stopped by
//! signals.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program, running. Ends with it.
struct Program {
    child: Child,
    url: String,
    /// What it said up to the first empty line after its addresses.
    started: String,
    messages: BufReader<std::process::ChildStderr>,
}

impl Program {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = command(folder, arguments).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut started = String::new();
        while !started.contains("Ctrl-C") {
            if messages.read_line(&mut started).unwrap() == 0 {
                panic!("the program ended at once: {started}");
            }
        }
        let url = started.lines().find_map(|line| line.trim().strip_prefix("http://")).map(|line| {
            let address = line.split('/').next().unwrap();
            format!("http://{address}")
        });
        Program { child, url: url.unwrap_or_default(), started, messages }
    }

    fn address(&self) -> SocketAddr {
        self.url.strip_prefix("http://").unwrap().parse().unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, ends its direction, and reads until the server ends its own.
    fn raw(&self, bytes: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end, and gives what it wrote to its standard output.
    fn stop(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        (status, output)
    }

    fn curl(&self, path: &str, arguments: &[&str]) -> String {
        curl(&format!("{}{path}", self.url), arguments)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut rest = String::new();
        let _ = self.messages.read_to_string(&mut rest);
        if std::thread::panicking() {
            eprintln!("the program's messages: {rest}");
        }
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperman"));
    command.arg("serve").arg(folder).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn serve(folder: &TempDir) -> Program {
    Program::start(folder.path(), &["--listen", "127.0.0.1:0"])
}

fn curl(url: &str, arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-m", "30"]).args(arguments).arg(url).output().unwrap();
    assert!(output.status.success(), "curl {arguments:?} {url}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), "<h1>Hello</h1>\n").unwrap();
    fs::write(folder.path().join("alphabet.txt"), "abcdefghijklmnopqrstuvwxyz").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/page.html"), "sub page").unwrap();
    folder
}

/// Bytes in which no two places look alike, so that a wrong place shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length.div_ceil(8) as u64)
        .flat_map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(length)
        .collect()
}

#[test]
fn it_says_where_it_is_and_serves_the_folder() {
    let folder = folder();
    let program = serve(&folder);
    let real = folder.path().canonicalize().unwrap();
    assert!(program.started.contains(&format!("serves {}", real.display())), "{}", program.started);
    assert!(!program.url.ends_with(":0"), "{}", program.started);
    assert_eq!(program.curl("/", &[]), "<h1>Hello</h1>\n");
    let head = program.curl("/", &["-I"]);
    for line in [
        "HTTP/1.1 200 OK\r\n",
        "content-type: text/html; charset=utf-8\r\n",
        "content-length: 15\r\n",
        "\r\ndate: ",
    ] {
        assert!(head.to_lowercase().contains(&line.to_lowercase()), "{line}: {head}");
    }
    let moved = program.curl("/sub", &["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"]);
    assert_eq!(moved, format!("301 {}/sub/", program.url));
    assert_eq!(program.curl("/nothing", &["-o", "/dev/null", "-w", "%{http_code}"]), "404");
    assert_eq!(program.curl("/", &["-X", "DELETE", "-o", "/dev/null", "-w", "%{http_code}"]), "405");
    let options = program.curl("", &["-i", "-X", "OPTIONS", "--request-target", "*"]).to_lowercase();
    assert!(
        options.starts_with("http/1.1 204 ") && options.contains("allow: get, head, options\r\n"),
        "{options}"
    );
}

#[test]
fn parts_and_resumed_downloads() {
    let folder = folder();
    let program = serve(&folder);
    assert_eq!(program.curl("/alphabet.txt", &["-r", "2-4"]), "cde");
    assert_eq!(program.curl("/alphabet.txt", &["-r", "-2"]), "yz");
    assert_eq!(program.curl("/alphabet.txt", &["-r", "24-"]), "yz");
    let several = program.curl("/alphabet.txt", &["-r", "0-1,4-5", "-i"]);
    assert!(several.contains(" 206 Partial Content\r\n"), "{several}");
    assert!(several.contains("Content-Range: bytes 4-5/26\r\n\r\nef\r\n--"), "{several}");
    assert_eq!(program.curl("/alphabet.txt", &["-r", "26-", "-o", "/dev/null", "-w", "%{http_code}"]), "416");
    let begun = folder.path().join("begun");
    fs::write(&begun, "abcdef").unwrap();
    program.curl("/alphabet.txt", &["-C", "-", "-o", begun.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&begun).unwrap(), "abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn what_curl_has_already_is_not_sent_again() {
    let folder = folder();
    let program = serve(&folder);
    let tag = folder.path().join("tag");
    let tag = tag.to_str().unwrap();
    assert_eq!(program.curl("/alphabet.txt", &["--etag-save", tag]).len(), 26);
    let code = ["-w", "%{http_code}"];
    assert_eq!(program.curl("/alphabet.txt", &[&["--etag-compare", tag], &code[..]].concat()), "304");
    let file = folder.path().join("alphabet.txt");
    assert_eq!(program.curl("/alphabet.txt", &[&["-z", file.to_str().unwrap()], &code[..]].concat()), "304");
    fs::write(&file, "new").unwrap();
    assert_eq!(program.curl("/alphabet.txt", &[&["--etag-compare", tag], &code[..]].concat()), "new200");
}

#[test]
fn s94_curl_does_not_get_out() {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("secret"), "SECRET").unwrap();
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    std::os::unix::fs::symlink("../secret", inner.join("link")).unwrap();
    let program = Program::start(&inner, &["--listen", "127.0.0.1:0"]);
    for (path, status) in [
        ("/../secret", "400"),
        ("/%2e%2e/secret", "400"),
        ("/..%2fsecret", "404"),
        ("/x/../../secret", "400"),
        ("/link", "403"),
        ("//etc/passwd", "404"),
        ("/%00", "400"),
    ] {
        let answer = program.curl(path, &["--path-as-is", "-w", "%{http_code}"]);
        assert!(answer.ends_with(status) && !answer.contains("SECRET"), "{path}: {answer}");
    }
    let program = Program::start(&inner, &["--listen", "127.0.0.1:0", "--follow-symlinks"]);
    assert_eq!(program.curl("/link", &[]), "SECRET");
}

#[test]
fn large_files_arrive_whole_side_by_side() {
    let folder = folder();
    let content = pattern(9_000_001);
    fs::write(folder.path().join("large.bin"), &content).unwrap();
    let program = serve(&folder);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (program, content, folder) = (&program, &content, &folder);
            scope.spawn(move || {
                let copy = folder.path().join(format!("copy{worker}"));
                let copy = copy.to_str().unwrap();
                program.curl("/large.bin", &["-o", copy]);
                assert!(fs::read(copy).unwrap() == *content, "worker {worker}");
                let start = 1_000_003 * (worker + 1);
                program.curl("/large.bin", &["-o", copy, "-r", &format!("{start}-{}", start + 3_000_000)]);
                assert!(fs::read(copy).unwrap() == content[start..=start + 3_000_000], "worker {worker}");
            });
        }
    });
}

#[test]
fn compressed_siblings_are_decoded_by_curl() {
    let folder = folder();
    let page = "compressible ".repeat(1000);
    fs::write(folder.path().join("page.txt"), &page).unwrap();
    let zipped = Command::new("gzip").args(["-k", "page.txt"]).current_dir(folder.path()).status().unwrap();
    assert!(zipped.success());
    let program = serve(&folder);
    let accept = ["-H", "Accept-Encoding: gzip"];
    assert_eq!(program.curl("/page.txt", &["--compressed", "-H", accept[1]]), page);
    let sizes = ["-o", "/dev/null", "-w", "%{size_download} %header{content-encoding}"];
    let zipped_size = fs::metadata(folder.path().join("page.txt.gz")).unwrap().len();
    assert_eq!(program.curl("/page.txt", &[&accept[..], &sizes].concat()), format!("{zipped_size} gzip"));
    assert_eq!(program.curl("/page.txt", &sizes), "13000 ");
}

#[test]
fn one_connection_carries_many_requests() {
    let folder = folder();
    let program = serve(&folder);
    let answer = program.raw(
        "GET /alphabet.txt HTTP/1.1\r\nHost: x\r\nRange: bytes=0-2\r\n\r\n\
         HEAD /alphabet.txt HTTP/1.1\r\nHost: x\r\n\r\n\
         GET /sub/page.html HTTP/1.1\r\nHost: x\r\n\r\n\
         GET /missing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    let heads: Vec<&str> =
        answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
    assert_eq!(heads, ["206", "200", "200", "404"], "{answer}");
    assert!(answer.contains("\r\n\r\nabcHTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("sub pageHTTP/1.1 404 "), "{answer}");
    let old = program.raw("GET /alphabet.txt HTTP/1.0\r\n\r\n");
    assert!(
        old.starts_with("HTTP/1.1 200 OK\r\n") && old.ends_with("\r\n\r\nabcdefghijklmnopqrstuvwxyz"),
        "{old}"
    );
}

#[test]
fn pipelined_large_files_keep_their_bytes_and_their_order() {
    let folder = folder();
    let content = pattern(4_000_000);
    fs::write(folder.path().join("one.bin"), &content[..3_000_000]).unwrap();
    fs::write(folder.path().join("two.bin"), &content[1_000_000..]).unwrap();
    let program = serve(&folder);
    let mut stream = program.connect();
    let get = |name: &str, more: &str| format!("GET /{name} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let requests = [
        get("one.bin", ""),
        get("two.bin", ""),
        get("alphabet.txt", ""),
        get("one.bin", "Range: bytes=7-1000006\r\n"),
        get("two.bin", "Connection: close\r\n"),
    ];
    stream.write_all(requests.concat().as_bytes()).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    let mut rest = &received[..];
    for expected in [
        &content[..3_000_000],
        &content[1_000_000..],
        b"abcdefghijklmnopqrstuvwxyz",
        &content[7..1_000_007],
        &content[1_000_000..],
    ] {
        let head = rest.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        let (body, behind) = rest[head..].split_at(expected.len());
        assert!(body == expected, "{}", String::from_utf8_lossy(&rest[..head]));
        rest = behind;
    }
    assert!(rest.is_empty());
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection() {
    let folder = folder();
    // More than the socket buffers of both sides hold, so that the server cannot be done before the file shrinks.
    let content = pattern(64 << 20);
    let path = folder.path().join("shrinking.bin");
    fs::write(&path, &content).unwrap();
    let program = serve(&folder);
    let mut stream = program.connect();
    stream.write_all(b"GET /shrinking.bin HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut first = [0; 65_536];
    stream.read_exact(&mut first).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(65_536).unwrap();
    let mut received = first.to_vec();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut received);
    let head = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let body = &received[head..];
    // Fewer than were announced, so the client knows. What is gone from the file but was on its way already may read
    // as zeros: the kernel sends the file's own pages.
    assert!(body.len() < content.len());
    assert!(body[..60_000] == content[..60_000]);
    assert_eq!(program.curl("/alphabet.txt", &["-r", "0-0"]), "a");
}

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
fn options_shape_the_answers() {
    let folder = folder();
    fs::write(folder.path().join(".env"), "x").unwrap();
    fs::write(folder.path().join("sub/home.htm"), "home").unwrap();
    let program = Program::start(
        folder.path(),
        &[
            "--listen",
            "127.0.0.1:0",
            "--list",
            "--hidden",
            "--index",
            "home.htm",
            "--cache-control",
            "max-age=5",
            "-H",
            "X-Robots-Tag: none",
        ],
    );
    let list = program.curl("/", &["-i"]);
    assert!(
        list.contains("Index of /") && list.contains(">.env<") && list.contains("alphabet.txt"),
        "{list}"
    );
    assert!(list.to_lowercase().contains("\r\nx-robots-tag: none\r\n"), "{list}");
    assert_eq!(program.curl("/sub/", &["-w", "|%header{cache-control}"]), "home|max-age=5");
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
    let program = Program::start(folder.path(), &listen);
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
    // The one that runs keeps what it has.
    program.signal(Signal::HUP);
    let status = curl(&named, &["--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}"]);
    assert_eq!(status, "200");
}
