//! The program as its users meet it: started on a real folder, asked by curl and by bytes over a socket.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

mod started;
use started::{Program, folder, pattern, serve};

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
fn a_folder_that_is_made_anew_is_served_as_it_is_now() {
    let outer = tempfile::tempdir().unwrap();
    let served = outer.path().join("current");
    let release = |name: &str| {
        let release = outer.path().join(name);
        fs::create_dir(&release).unwrap();
        fs::write(release.join("name.txt"), name).unwrap();
        release
    };
    fs::rename(release("first"), &served).unwrap();
    let program = Program::start(&served, &["--listen", "127.0.0.1:0", "--no-log"]);
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    assert_eq!(program.curl("/name.txt", &[]), "first");
    fs::remove_dir_all(&served).unwrap();
    assert_eq!(program.curl("/name.txt", &status), "404");
    fs::write(&served, "a file").unwrap();
    assert_eq!(program.curl("/name.txt", &status), "404");
    fs::remove_file(&served).unwrap();
    fs::rename(release("second"), &served).unwrap();
    assert_eq!(program.curl("/name.txt", &[]), "second");
    // As deployments do it: the name is a link, and is turned to another release.
    fs::rename(&served, outer.path().join("kept")).unwrap();
    std::os::unix::fs::symlink("kept", &served).unwrap();
    assert_eq!(program.curl("/name.txt", &[]), "second");
    std::os::unix::fs::symlink(release("third"), outer.path().join("next")).unwrap();
    fs::rename(outer.path().join("next"), &served).unwrap();
    assert_eq!(program.curl("/name.txt", &[]), "third");
}
