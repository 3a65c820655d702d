//! The program as it is run: against Python's file server, nginx and scripted servers, and beside curl.

#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tempfile::TempDir;

fn fetch() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fetch"));
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    fetch().args(arguments).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Python's own file server over a folder.
struct Files {
    server: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hello.txt"), "hello\n").expect("written");
        std::fs::write(folder.path().join("data.json"), r#"{"b":[1,2],"a":"x"}"#).expect("written");
        let bytes: Vec<u8> =
            (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(folder.path().join("bytes.bin"), bytes).expect("written");
        let mut server = Command::new("python3")
            .args([
                "-u",
                "-m",
                "http.server",
                "0",
                "--bind",
                "127.0.0.1",
                "--protocol",
                "HTTP/1.1",
                "--directory",
            ])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        BufReader::new(server.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let port = line.split_whitespace().nth(5).and_then(|word| word.parse().ok()).expect("a port");
        Files { server, address: SocketAddr::from(([127, 0, 0, 1], port)), folder }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A server that takes one request per answer, on a connection each, and gives the requests it got.
fn answers(answers: Vec<&'static str>) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            requests.push(request(&mut stream));
            let _ = stream.write_all(answer.as_bytes());
        }
        requests
    });
    (address, server)
}

/// One request with its body, as far as that has a length or is in chunks.
fn request(stream: &mut TcpStream) -> String {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let so_far = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = so_far.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().expect("a length"));
            let whole =
                if head.contains("chunked") { body.ends_with("0\r\n\r\n") } else { body.len() >= length };
            if whole {
                return so_far;
            }
        }
        let count = stream.read(&mut piece).expect("a request");
        assert_ne!(count, 0, "half a request: {so_far}");
        bytes.extend_from_slice(&piece[..count]);
    }
}

const EMPTY: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

/// What a command line sends.
fn sent(arguments: &[&str]) -> String {
    let (address, server) = answers(vec![EMPTY]);
    let output = fetch().args(arguments).arg(format!("{address}/path")).output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    let mut requests = server.join().expect("the server");
    requests.remove(0).replace(&address.to_string(), "HOST").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn files_come_as_they_are_and_as_curl_gets_them() {
    let files = Files::new();
    for path in ["hello.txt", "data.json", "bytes.bin", "", "missing"] {
        let ours = run(&[&files.url(path)]);
        let curl = Command::new("curl").args(["-s", &files.url(path)]).output().expect("curl runs");
        assert!(ours.stdout == curl.stdout, "{path}: {} bytes, not {}", ours.stdout.len(), curl.stdout.len());
        assert_eq!(ours.status.code(), curl.status.code(), "{path}");
        assert_eq!(text(&ours.stderr), "", "{path}");
    }
    // Without a scheme it is http.
    assert_eq!(text(&run(&[&format!("{}/hello.txt", files.address)]).stdout), "hello\n");
}

#[test]
fn downloads_are_exact() {
    let files = Files::new();
    let expected = std::fs::read(files.folder.path().join("bytes.bin")).expect("read");
    let folder = tempfile::tempdir().expect("a folder");
    let here = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
    let mut command = fetch();
    command.current_dir(folder.path()).args(["-o", "one", "-o", "two", "-O"]);
    command.args([files.url("bytes.bin"), files.url("hello.txt"), files.url("bytes.bin?x=/y")]);
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(here("one") == expected && here("bytes.bin") == expected);
    assert_eq!(here("two"), b"hello\n");
}

#[test]
fn heads_are_shown_when_asked_for() {
    let files = Files::new();
    let output = run(&["-i", &files.url("hello.txt")]);
    let shown = text(&output.stdout);
    assert!(shown.starts_with("HTTP/1.1 200 OK\r\n"), "{shown}");
    assert!(shown.contains("\r\ncontent-length: 6\r\n") && shown.ends_with("\r\n\r\nhello\n"), "{shown}");
    let output = run(&["-I", &files.url("hello.txt")]);
    let shown = text(&output.stdout);
    assert!(shown.contains("\r\ncontent-length: 6\r\n") && shown.ends_with("\r\n\r\n"), "{shown}");
    let output = run(&["-v", "-u", "me:secret", &files.url("hello.txt")]);
    let told = text(&output.stderr);
    assert_eq!(text(&output.stdout), "hello\n");
    assert!(
        told.contains("\n> GET /hello.txt HTTP/1.1\n> host: ") && told.contains("\n< HTTP/1.1 200 OK\n"),
        "{told}"
    );
    assert!(told.contains("\n> authorization: (not shown)\n") && !told.contains("bWU6"), "{told}");
}

#[test]
fn options_make_the_request_that_curl_would_make() {
    let plain =
        "GET /path HTTP/1.1\r\nhost: HOST\r\nuser-agent: hyperman-fetch/VERSION\r\naccept: */*\r\n\r\n";
    assert_eq!(sent(&[]), plain);
    let form = sent(&["-d", "a=1", "--data-raw", "@b", "-d", "c"]);
    assert!(form.starts_with("POST /path ") && form.ends_with("\r\n\r\na=1&c&@b"), "{form}");
    assert!(form.contains("\r\ncontent-type: application/x-www-form-urlencoded\r\n"), "{form}");
    let json = sent(&["--json", r#"{"a":1}"#]);
    assert!(json.starts_with("POST ") && json.ends_with("\r\n\r\n{\"a\":1}"), "{json}");
    assert!(
        json.contains("\r\naccept: application/json\r\n") && json.contains("content-type: application/json")
    );
    let query = sent(&["-G", "-d", "a=1", "-d", "b=2"]);
    assert!(query.starts_with("GET /path?a=1&b=2 HTTP/1.1\r\n") && !query.contains("content-"), "{query}");
    let fields =
        sent(&["-X", "PURGE", "-H", "X-A: b", "-H", "Accept:", "-H", "X-Empty;", "-A", "me", "-r", "0-9"]);
    assert!(fields.starts_with("PURGE /path "), "{fields}");
    assert!(fields.contains("\r\nx-a: b\r\n") && fields.contains("\r\nx-empty: \r\n"), "{fields}");
    assert!(
        fields.contains("\r\nuser-agent: me\r\n") && fields.contains("\r\nrange: bytes=0-9\r\n"),
        "{fields}"
    );
    assert!(!fields.contains("accept"), "{fields}");
    let user = sent(&["-u", "Aladdin:open sesame"]);
    assert!(user.contains("\r\nauthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"), "{user}");
    // As in curl, no time is no limit.
    assert_eq!(sent(&["-m", "0", "--connect-timeout", "0"]), plain);
    assert!(sent(&["--http1.0"]).starts_with("GET /path HTTP/1.0\r\n"));
    let (address, server) = answers(vec![EMPTY]);
    assert!(run(&[&format!("{address}/a?u=http://b")]).status.success(), "a scheme is what stands in front");
    assert!(server.join().expect("the server")[0].starts_with("GET /a?u=http://b HTTP/1.1\r\n"));
    assert!(sent(&["-H", "Host: other.example"]).contains("\r\nhost: other.example\r\n"));
}

#[test]
fn files_and_the_standard_input_are_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("up.txt");
    std::fs::write(&file, "line one\r\nline two\n").expect("written");
    let name = file.to_str().expect("text");
    let form = sent(&["-d", &format!("@{name}")]);
    assert!(form.ends_with("\r\n\r\nline oneline two"), "{form}");
    let binary = sent(&["--data-binary", &format!("@{name}")]);
    assert!(binary.ends_with("\r\n\r\nline one\r\nline two\n"), "{binary}");
    let put = sent(&["-T", name]);
    assert!(put.starts_with("PUT /path ") && put.contains("\r\ncontent-length: 19\r\n"), "{put}");

    let again = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let (address, server) = answers(vec![again, EMPTY]);
    assert!(run(&["-L", "-T", name, &format!("{address}/")]).status.success());
    let twice = server.join().expect("the server");
    assert!(twice[0].starts_with("PUT /up.txt ") && twice[1].starts_with("PUT /again "), "{twice:?}");
    assert!(twice.iter().all(|put| put.ends_with("\r\n\r\nline one\r\nline two\n")), "{twice:?}");

    let (address, server) = answers(vec![EMPTY]);
    let mut child =
        fetch().args(["-T", "-", &address.to_string()]).stdin(Stdio::piped()).spawn().expect("runs");
    child.stdin.take().expect("piped").write_all(b"from a pipe").expect("written");
    assert!(child.wait().expect("ends").success());
    let put = server.join().expect("the server").remove(0);
    assert!(put.contains("\r\ntransfer-encoding: chunked\r\n"), "{put}");
    assert!(put.ends_with("\r\n\r\nb\r\nfrom a pipe\r\n0\r\n\r\n"), "{put}");

    // A pipe that says nothing holds up neither a deadline nor an answer.
    let silent = |arguments: &[&str]| {
        let mut child = fetch();
        let child = child.args(["-T", "-"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.stderr(Stdio::piped()).spawn().expect("runs");
        let input = child.stdin.take();
        let output = child.wait_with_output().expect("ends");
        drop(input);
        output
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let output = silent(&["-m", "0.2", &address]);
    assert_eq!(output.status.code(), Some(28), "{output:?}");
    let server = thread::spawn(move || {
        // The first was the one that lost its patience.
        let _ = listener.accept();
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    });
    let output = silent(&[&address]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "no".to_owned()), "{output:?}");
    server.join().expect("the server");

    assert_eq!(run(&["-T", "/no/such/file", "127.0.0.1:1"]).status.code(), Some(26));
    assert_eq!(run(&["-d", "@/no/such/file", "127.0.0.1:1"]).status.code(), Some(26));
}

/// What both programs end with for the same thing; and what ours says.
fn same_code(arguments: &[&str], answer: Option<&'static str>, code: i32) -> String {
    let target = |server: &Option<(SocketAddr, JoinHandle<Vec<String>>)>| match server {
        Some((address, _)) => vec![format!("http://{address}/x")],
        None => vec![],
    };
    let mut told = String::new();
    for program in [env!("CARGO_BIN_EXE_fetch"), "curl"] {
        let server = answer.map(|answer| answers(vec![answer]));
        let mut command = Command::new(program);
        command.args(["-sS"]).args(arguments).args(target(&server)).stdin(Stdio::null());
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(code), "{program} {arguments:?}: {output:?}");
        if told.is_empty() {
            told = text(&output.stderr);
        }
        drop(server.map(|(_, server)| server.join()));
    }
    assert!(told.starts_with(&format!("fetch: ({code}) ")), "{told}");
    told
}

#[test]
fn exit_codes_are_curls() {
    same_code(&["gopherish://127.0.0.1/"], None, 1);
    same_code(&["http://[bad/"], None, 3);
    same_code(&["http://no-such-host.invalid/"], None, 6);
    same_code(&["http://127.0.0.1:1/"], None, 7);
    let partial = same_code(&[], Some("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), 18);
    assert!(partial.contains("before the body was whole"), "{partial}");
    let failed = same_code(&["-f"], Some("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nbody"), 22);
    assert!(failed.contains("404"), "{failed}");
    same_code(&["-o", "/no/such/folder/file"], Some("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), 23);
    same_code(
        &["-L", "--max-redirs", "0"],
        Some("HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n"),
        47,
    );
    same_code(&[], Some(""), 52);
    same_code(&["--max-filesize", "3"], Some("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"), 63);
    // No answer at all: the kernel takes the connection, nobody accepts it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    same_code(&["-m", "0.2", &url], None, 28);
    // Without -f a status is no failure.
    let (address, server) = answers(vec!["HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"]);
    let output = run(&[&address.to_string()]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "no".to_owned()));
    server.join().expect("the server");
}

#[test]
fn a_partial_download_says_what_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (address, server) = answers(vec!["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"]);
    let mut command = fetch();
    let output =
        command.current_dir(folder.path()).args(["-o", "file", &address.to_string()]).output().expect("runs");
    server.join().expect("the server");
    assert_eq!(output.status.code(), Some(18));
    assert!(text(&output.stderr).contains("4 bytes of it are in file"), "{output:?}");
    assert_eq!(std::fs::read(folder.path().join("file")).expect("a file"), b"half");
    // A failure before the first byte leaves an older file alone.
    let mut command = fetch();
    let output =
        command.current_dir(folder.path()).args(["-o", "file", "127.0.0.1:1"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(std::fs::read(folder.path().join("file")).expect("a file"), b"half");
}

#[test]
fn redirects_are_followed_when_asked() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let end = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nend";
    let (address, server) = answers(vec![moved]);
    let output = run(&["-w", "%{http_code}\\n", &address.to_string()]);
    assert_eq!(text(&output.stdout), "302\n");
    server.join().expect("the server");
    let (address, server) = answers(vec![moved, end]);
    let output = run(&["-L", "-i", "-w", "\\n%{num_redirects} %{size_download}", &address.to_string()]);
    let shown = text(&output.stdout);
    assert!(shown.starts_with("HTTP/1.1 302 Found\r\n"), "{shown}");
    assert!(shown.ends_with("\r\n\r\nend\n1 3"), "{shown}");
    assert!(server.join().expect("the server")[1].starts_with("GET /next "));
}

#[test]
fn a_reader_that_goes_away_is_no_news() {
    let files = Files::new();
    let mut child = fetch()
        .arg(files.url("bytes.bin"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // Closed before anything is read.
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(23));
}

/// What a terminal shows. script(1) gives the program one and passes on what it gets.
fn on_terminal(arguments: &str) -> String {
    let line = format!("NO_COLOR=1 {} {arguments}", env!("CARGO_BIN_EXE_fetch"));
    let output = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    text(&output.expect("script runs").stdout).replace('\r', "")
}

#[test]
fn a_terminal_gets_no_controls_of_a_peer() {
    const EVIL: &str = "HTTP/1.1 200 \u{9b}31mFine\r\nX: caf\u{e9} \u{9b}31m\r\nContent-Length: 0\r\n\r\n";
    for option in ["-i", "-I", "-v"] {
        let (address, server) = answers(vec![EVIL]);
        let shown = on_terminal(&format!("{option} http://{address}/"));
        server.join().expect("the server");
        assert!(shown.contains("31mFine") && !shown.contains('\u{9b}'), "{option}: {shown:?}");
    }
    // Elsewhere it is what came.
    let (address, server) = answers(vec![EVIL]);
    let output = run(&["-i", &address.to_string()]);
    server.join().expect("the server");
    assert!(text(&output.stdout).contains("\u{9b}31mFine"), "{output:?}");
    let (address, server) = answers(vec!["HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"]);
    let shown = on_terminal(&format!("-s -S -o '/no/such\u{1b}[31m/file' http://{address}/"));
    server.join().expect("the server");
    assert!(shown.contains("fetch: (23) ") && !shown.contains('\u{1b}'), "{shown:?}");
    // What is no text is found also behind the first piece.
    let (address, server) = late_nul();
    let shown = on_terminal(&format!("http://{address}/"));
    server.join().expect("the server");
    assert!(shown.contains("fetch: (23) ") && !shown.contains('\0'), "{shown:?}");
}

/// A server of text with a NUL in its second piece, which it sends once the first has been read.
fn late_nul() -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        request(&mut stream);
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n4\r\n\0\0\0\0\r\n0\r\n\r\n",
        );
    });
    (address, server)
}

#[test]
fn a_failure_to_tell_is_no_failure_to_end() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let mut command = fetch();
    let code = command.arg("127.0.0.1:1").stderr(full()).status().expect("runs").code();
    assert_eq!(code, Some(7));
    let (address, server) = answers(vec![EMPTY]);
    let mut command = fetch();
    let output = command.args(["-w", "x", &address.to_string()]).stdout(full()).output().expect("runs");
    server.join().expect("the server");
    assert_eq!(output.status.code(), Some(23), "{output:?}");
}

#[test]
fn a_terminal_gets_json_indented_and_no_bytes() {
    let files = Files::new();
    let shown = on_terminal(&files.url("data.json"));
    assert!(shown.contains("{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"x\"\n}\n"), "{shown:?}");
    let shown = on_terminal(&files.url("bytes.bin"));
    assert!(shown.contains("fetch: (23) ") && shown.len() < 300, "{shown:?}");
    // Not on a terminal JSON stays as it is.
    assert_eq!(text(&run(&[&files.url("data.json")]).stdout), r#"{"b":[1,2],"a":"x"}"#);
}

#[test]
fn nginx_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page.html"), "<p>page</p>").expect("written");
    let port = free_port();
    let root = folder.path().display();
    let config = format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log; events {{}}
         http {{ access_log off; client_body_temp_path {root}; proxy_temp_path {root}; fastcgi_temp_path {root};
           uwsgi_temp_path {root}; scgi_temp_path {root};
           server {{ listen 127.0.0.1:{port}; root {root};
             location /moved {{ return 301 /page.html; }} location /big {{ client_max_body_size 1k; }} }} }}"
    );
    let file = folder.path().join("nginx.conf");
    std::fs::write(&file, config).expect("written");
    let mut server = start_nginx(&file, port);
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let page = run(&["-L", &url("moved"), &url("page.html")]);
    let range = run(&["-r", "3-6", "-w", " %{http_code}", &url("page.html")]);
    std::fs::write(folder.path().join("large"), vec![b'x'; 8 << 20]).expect("written");
    let large = folder.path().join("large");
    let refused = run(&[
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-T",
        large.to_str().expect("text"),
        &url("big"),
    ]);
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(text(&page.stdout), "<p>page</p><p>page</p>", "{page:?}");
    assert_eq!(text(&range.stdout), "page 206", "{range:?}");
    assert_eq!(text(&refused.stdout), "413", "{refused:?}");
}

/// A port that nobody has. It is picked without listening: a child that another test starts meanwhile holds our sockets
/// until it has become its program, and would seem to be a server that takes connections.
fn free_port() -> u16 {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).expect("an option");
    rustix::net::bind(&socket, &any).expect("a port");
    SocketAddr::try_from(rustix::net::getsockname(&socket).expect("an address"))
        .expect("of the Internet")
        .port()
}

/// Starts nginx and waits until it takes connections.
fn start_nginx(config: &Path, port: u16) -> Child {
    let mut command = Command::new("nginx");
    let mut server = command.arg("-c").arg(config).stderr(Stdio::null()).spawn().expect("nginx runs");
    for _ in 0..400 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return server;
        }
        assert!(server.try_wait().expect("a child").is_none(), "nginx ended");
        thread::sleep(Duration::from_millis(25));
    }
    panic!("nginx takes no connections");
}

#[test]
fn bad_command_lines_are_usage_errors() {
    for arguments in [&[][..], &["--nothing", "x"], &["-H", "no colon", "x"], &["-X", "BAD METHOD", "x"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty());
    }
    let help = run(&["--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("--connect-timeout <SECONDS>"));
}
