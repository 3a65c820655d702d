//! The file service alone, without a socket: hostile paths, validators, ranges, codings and pages, against real files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::header::*;
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body::Body;
use hyperman::SendFile;
use hyperman_cli::root::{Root, Symlinks};
use hyperman_cli::service::{FileOptions, FileService};

mod site;
use site::{Site, ask};

#[test]
fn a_file_comes_with_its_type_its_validators_and_its_bytes() {
    let site = Site::new();
    site.write("a/page.html", "<p>hello");
    let answer = site.get("/a/page.html?query=ignored/../x");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body, b"<p>hello");
    assert_eq!(answer.field(CONTENT_TYPE), "text/html; charset=utf-8");
    assert_eq!(answer.field(ACCEPT_RANGES), "bytes");
    assert_eq!(answer.field(VARY), "Accept-Encoding");
    assert!(answer.field(ETAG).starts_with("\"8-"));
    assert!(answer.field(LAST_MODIFIED).ends_with(" GMT"));
    assert_eq!(answer.field(CACHE_CONTROL), "");
    // Absolute form, as a proxy would send it.
    assert_eq!(site.get("http://example.org/a/page.html").body, b"<p>hello");
    assert_eq!(site.get("/%61//page%2ehtml").body, b"<p>hello");
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let site = Site::new();
    site.write("f.txt", [b'x'; 100_000]);
    for (target, fields) in
        [("/f.txt", vec![]), ("/missing", vec![]), ("/f.txt", vec![("if-match", "\"x\"")])]
    {
        let get = site.ask(Method::GET, target, &fields);
        let head = site.ask(Method::HEAD, target, &fields);
        assert_eq!(head.status(), get.status());
        assert!(head.body.is_empty());
        assert_eq!(head.field(CONTENT_LENGTH), get.body.len().to_string());
        for (name, value) in get.head.headers() {
            assert_eq!(head.head.headers().get(name), Some(value), "{name}");
        }
        assert!(head.head.extensions().get::<SendFile>().is_none());
    }
    // RFC 9110 §14.2: a range is for GET alone.
    let ranged = site.ask(Method::HEAD, "/f.txt", &[("range", "bytes=0-0")]);
    assert_eq!((ranged.status(), ranged.field(CONTENT_LENGTH)), (200, "100000"));
}

#[test]
fn large_files_are_handed_to_the_kernel_and_small_ones_are_not() {
    let site = Site::new();
    site.write("large", vec![1; 70_000]);
    site.write("small", vec![1; 60_000]);
    let large = site.get("/large");
    let region = large.head.extensions().get::<SendFile>().unwrap();
    assert_eq!((region.offset, region.length), (0, 70_000));
    let part = site.ask(Method::GET, "/large", &[("range", "bytes=1-65536")]);
    let region = part.head.extensions().get::<SendFile>().unwrap();
    assert_eq!((part.status(), region.offset, region.length), (206, 1, 65_536));
    let mut first = [0; 2];
    region.file.read_exact_at(&mut first, 0).unwrap();
    assert_eq!(first, [1, 1]);
    assert!(site.get("/small").head.extensions().get::<SendFile>().is_none());
}

#[test]
fn other_methods_are_told_which_ones_there_are() {
    let site = Site::new();
    site.write("f", "x");
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let answer = site.ask(Method::from_bytes(method.as_bytes()).unwrap(), "/f", &[]);
        assert_eq!((answer.status(), answer.field(ALLOW)), (405, "GET, HEAD, OPTIONS"), "{method}");
    }
    for method in ["BREW", "get", "PROPFIND"] {
        let answer = site.ask(Method::from_bytes(method.as_bytes()).unwrap(), "/f", &[]);
        assert_eq!(answer.status(), 501, "{method}");
    }
    for target in ["/f", "*", "/missing"] {
        let answer = site.ask(Method::OPTIONS, target, &[]);
        assert_eq!((answer.status(), answer.field(ALLOW)), (204, "GET, HEAD, OPTIONS"), "{target}");
        assert!(answer.body.is_empty());
    }
    assert_eq!(site.get("*").status(), 400);
}

#[test]
fn s94_no_target_gets_out_of_the_folder() {
    let site = Site::new();
    site.write("f.txt", "inside");
    site.write("d/e.txt", "inside");
    let absolute = site.whole.path().join("secret.txt");
    for (target, status) in [
        ("/../secret.txt", 400),
        ("/d/../../secret.txt", 400),
        ("/d/../f.txt", 400),
        ("/./f.txt", 400),
        ("/%2e%2e/secret.txt", 400),
        ("/%2E%2e%2fsecret.txt", 404),
        ("/..%2fsecret.txt", 404),
        ("/d%2f..%2f..%2fsecret.txt", 404),
        ("/%252e%252e/secret.txt", 404),
        ("/..%5csecret.txt", 404),
        ("/..\\secret.txt", 404),
        ("/f.txt%00.html", 400),
        ("/f.txt%", 400),
        ("/%c0%ae%c0%ae/secret.txt", 404),
        ("/f.txt/", 404),
        ("/f.txt/x", 404),
        ("/d/e.txt/../../../secret.txt", 400),
        (&format!("/{}", absolute.display()), 404),
        (&format!("//{}", absolute.display()), 404),
        (&format!("/%2f{}", &absolute.to_str().unwrap()[1..]), 404),
        ("/proc/self/root/etc/passwd", 404),
        (&format!("/{}", "a".repeat(300)), 404),
        (&format!("/{}", "d/".repeat(3000)), 404),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status(), status, "{target}");
        assert!(!answer.text().contains("SECRET"), "{target}");
    }
}

#[test]
fn s94_links_are_followed_inside_and_refused_outside() {
    let site = Site::new();
    site.write("f.txt", "inside");
    site.write("d/e.txt", "deep");
    let link = |target: &str, name: &str| symlink(target, site.root().join(name)).unwrap();
    link("f.txt", "to-file");
    link("d", "to-dir");
    link("../f.txt", "d/up");
    link("../secret.txt", "out");
    link("..", "out-dir");
    link("d/../../secret.txt", "around");
    link("../site/f.txt", "out-and-in");
    link("loop", "loop");
    link("nowhere", "dangling");
    link("to-dir/../f.txt", "through");
    symlink(site.whole.path().join("secret.txt"), site.root().join("absolute")).unwrap();
    symlink(site.root().join("f.txt"), site.root().join("absolute-inside")).unwrap();
    symlink("/proc/self/cwd", site.root().join("magic")).unwrap();
    let table = [
        ("/to-file", 200, "inside"),
        ("/to-dir/e.txt", 200, "deep"),
        ("/to-dir/up", 200, "inside"),
        ("/through", 200, "inside"),
        ("/to-dir", 301, ""),
        ("/out", 403, ""),
        ("/out-dir", 403, ""),
        ("/out-dir/", 403, ""),
        ("/out-dir/secret.txt", 403, ""),
        ("/around", 403, ""),
        ("/out-and-in", 403, ""),
        ("/absolute", 403, ""),
        ("/absolute-inside", 403, ""),
        ("/magic/Cargo.toml", 403, ""),
        ("/loop", 404, ""),
        ("/dangling", 404, ""),
    ];
    let kernel = Root::open(&site.root(), Symlinks::Confined).unwrap();
    let walking = Root::open_walking(&site.root()).unwrap();
    for root in [kernel, walking] {
        let name = format!("{root:?}");
        let mut service = FileService::new(root, FileOptions::default());
        for (target, status, content) in table {
            let answer = ask(&mut service, Method::GET, target, &[]);
            assert_eq!(answer.status(), status, "{target} {name}");
            assert!(!answer.text().contains("SECRET"));
            if status == 200 {
                assert_eq!(answer.text(), content, "{target} {name}");
            }
        }
    }
    let followed = Root::open(&site.root(), Symlinks::Followed).unwrap();
    let mut service = FileService::new(followed, FileOptions::default());
    for (target, content) in [("/out", "SECRET"), ("/absolute-inside", "inside"), ("/to-file", "inside")] {
        assert_eq!(ask(&mut service, Method::GET, target, &[]).text(), content);
    }
    // Only links may leave; a target still may not.
    assert_eq!(ask(&mut service, Method::GET, "/../secret.txt", &[]).status(), 400);
}

#[test]
fn s94_what_is_no_file_neither_blocks_nor_is_sent() {
    let site = Site::new();
    let fifo = site.root().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(site.root().join("socket")).unwrap();
    assert_eq!(site.get("/fifo").status(), 403);
    assert_eq!(site.get("/socket").status(), 403);
    symlink("/dev/zero", site.root().join("zero")).unwrap();
    let followed = Root::open(&site.root(), Symlinks::Followed).unwrap();
    assert_eq!(
        ask(&mut FileService::new(followed, FileOptions::default()), Method::GET, "/zero", &[]).status(),
        403
    );
}

#[test]
fn hidden_names_are_not_there_unless_asked_for() {
    let site = Site::new();
    site.write(".env", "KEY=1");
    site.write(".git/config", "x");
    site.write(".well-known/security.txt", "mail");
    for target in ["/.env", "/%2eenv", "/.git", "/.git/", "/.git/config"] {
        assert_eq!(site.get(target).status(), 404, "{target}");
    }
    assert_eq!(site.get("/.well-known/security.txt").text(), "mail");
    let mut open = site.service(FileOptions { hidden: true, list: true, ..FileOptions::default() });
    assert_eq!(ask(&mut open, Method::GET, "/.git/config", &[]).text(), "x");
    assert!(ask(&mut open, Method::GET, "/", &[]).text().contains(">.env<"));
}

#[test]
fn a_directory_without_its_slash_is_sent_to_the_address_with_it() {
    let site = Site::new();
    site.write("d/index.html", "d");
    site.write("evil.example/index.html", "d");
    site.write("javascript:alert(1)/index.html", "d");
    site.write("a b\r\nSet-Cookie: x/index.html", "d");
    for (target, location) in [
        ("/d", "./d/"),
        ("/d?a=b&c", "./d/?a=b&c"),
        ("/d?ä", "./d/?%C3%A4"),
        ("//evil.example", "./evil.example/"),
        ("/%2e%2e%2e/../", ""),
        ("///evil.example", "./evil.example/"),
        ("/javascript:alert(1)", "./javascript%3Aalert%281%29/"),
        ("/a%20b%0d%0aSet-Cookie:%20x", "./a%20b%0D%0ASet-Cookie%3A%20x/"),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.field(LOCATION), location, "{target}");
        assert_eq!(answer.status(), if location.is_empty() { 400 } else { 301 });
    }
    assert_eq!(site.get("/d/").text(), "d");
}

#[test]
fn the_first_index_that_is_there_is_sent() {
    let site = Site::new();
    site.write("one/home.htm", "home");
    site.write("two/home.htm", "home");
    site.write("two/index.html", "index");
    site.write("three/x", "x");
    fs::create_dir_all(site.root().join("four/index.html")).unwrap();
    let indexes = vec!["index.html".to_owned(), "home.htm".to_owned()];
    let mut service = site.service(FileOptions { indexes, ..FileOptions::default() });
    assert_eq!(ask(&mut service, Method::GET, "/one/", &[]).text(), "home");
    assert_eq!(ask(&mut service, Method::GET, "/two/", &[]).text(), "index");
    assert_eq!(ask(&mut service, Method::GET, "/three/", &[]).status(), 404);
    assert_eq!(ask(&mut service, Method::GET, "/four/", &[]).status(), 404);
    let one = ask(&mut service, Method::GET, "/one/", &[]);
    assert_eq!(one.field(CONTENT_TYPE), "text/html; charset=utf-8");
}

#[test]
fn names_of_any_bytes_are_served() {
    let site = Site::new();
    site.write(std::ffi::OsStr::from_bytes(b"\xff\xfe\x01.txt"), "bytes");
    site.write("ü ?#%.txt", "umlaut");
    assert_eq!(site.get("/%FF%fe%01.txt").text(), "bytes");
    assert_eq!(site.get("/%C3%BC%20%3F%23%25.txt").text(), "umlaut");
    assert_eq!(site.get("/ü%20%3f%23%25.txt").text(), "umlaut");
    let mut service = site.service(FileOptions { list: true, ..FileOptions::default() });
    let page = ask(&mut service, Method::GET, "/", &[]);
    assert!(page.text().contains("href=\"%FF%FE%01.txt\""), "{}", page.text());
    assert!(page.text().contains("href=\"%C3%BC%20%3F%23%25.txt\"><bdi>ü ?#%.txt<"), "{}", page.text());
}

#[test]
fn conditional_requests_are_answered_by_304_and_412() {
    let site = Site::new();
    site.write("f.txt", "content");
    let first = site.get("/f.txt");
    let (etag, modified) = (first.field(ETAG).to_owned(), first.field(LAST_MODIFIED).to_owned());
    let ask = |fields: &[(&str, &str)]| site.ask(Method::GET, "/f.txt", fields);
    for fields in [[("if-none-match", etag.as_str())], [("if-modified-since", modified.as_str())]] {
        let answer = ask(&fields);
        assert_eq!(answer.status(), 304);
        assert!(answer.body.is_empty());
        assert_eq!(answer.field(ETAG), etag);
        assert_eq!(answer.field(VARY), "Accept-Encoding");
        assert_eq!(answer.field(CONTENT_LENGTH), "");
        assert_eq!(site.ask(Method::HEAD, "/f.txt", &fields).status(), 304);
    }
    assert_eq!(ask(&[("if-match", "\"other\"")]).status(), 412);
    assert_eq!(ask(&[("if-match", &etag)]).status(), 200);
    assert_eq!(ask(&[("if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]).status(), 412);
    assert_eq!(ask(&[("if-none-match", &etag), ("range", "bytes=0-0")]).status(), 304);
    // A precondition is about a file, so one that is missing stays missing (RFC 9110 §13.2.1).
    assert_eq!(site.ask(Method::GET, "/missing", &[("if-match", "\"x\"")]).status(), 404);
    // Another file of the same length and date is another state.
    let stamp = fs::metadata(site.root().join("f.txt")).unwrap().modified().unwrap();
    site.write("new", "CONTENT");
    fs::File::options().write(true).open(site.root().join("new")).unwrap().set_modified(stamp).unwrap();
    fs::rename(site.root().join("new"), site.root().join("f.txt")).unwrap();
    assert_eq!(ask(&[("if-none-match", &etag)]).text(), "CONTENT");
}

#[test]
fn one_range_is_a_part_with_its_place() {
    let site = Site::new();
    let content: Vec<u8> = (0..=255).cycle().take(1000).collect();
    site.write("f.bin", &content);
    let ask = |fields: &[(&str, &str)]| site.ask(Method::GET, "/f.bin", fields);
    let etag = ask(&[]).field(ETAG).to_owned();
    for (range, place, bytes) in [
        ("bytes=0-0", "bytes 0-0/1000", &content[..1]),
        ("bytes=10-19", "bytes 10-19/1000", &content[10..20]),
        ("bytes=-3", "bytes 997-999/1000", &content[997..]),
        ("bytes=990-", "bytes 990-999/1000", &content[990..]),
        ("bytes=0-10,5-20", "bytes 0-20/1000", &content[..21]),
    ] {
        let answer = ask(&[("range", range), ("if-range", &etag)]);
        assert_eq!((answer.status(), answer.field(CONTENT_RANGE)), (206, place));
        assert_eq!(answer.body, bytes);
        assert_eq!(answer.field(ETAG), etag);
        assert_eq!(answer.field(CONTENT_TYPE), "application/octet-stream");
    }
    let beyond = ask(&[("range", "bytes=1000-")]);
    assert_eq!((beyond.status(), beyond.field(CONTENT_RANGE)), (416, "bytes */1000"));
    for fields in [
        [("range", "bytes=1000-"), ("if-range", "\"old\"")],
        [("range", "bytes=0-0"), ("if-range", "Sun, 06 Nov 1994 08:49:37 GMT")],
        [("range", "lines=0-0"), ("accept", "*/*")],
        [("range", "bytes=1-0"), ("accept", "*/*")],
    ] {
        assert_eq!(ask(&fields).body, content, "{fields:?}");
    }
}

#[test]
fn several_ranges_are_parts_of_one_body() {
    let site = Site::new();
    let content: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    site.write("f.html", &content);
    let answer = site.ask(Method::GET, "/f.html", &[("range", "bytes=5000-5009, 0-1, -2")]);
    assert_eq!(answer.status(), 206);
    assert_eq!(answer.field(CONTENT_RANGE), "");
    let boundary = answer.field(CONTENT_TYPE).strip_prefix("multipart/byteranges; boundary=").unwrap();
    assert_eq!(boundary.len(), 32);
    let mut expected = Vec::new();
    for (place, bytes) in
        [("5000-5009", &content[5000..5010]), ("0-1", &content[..2]), ("9998-9999", &content[9998..])]
    {
        expected.extend_from_slice(
            format!(
                "\r\n--{boundary}\r\nContent-Type: text/html; charset=utf-8\r\n\
                 Content-Range: bytes {place}/10000\r\n\r\n"
            )
            .as_bytes(),
        );
        expected.extend_from_slice(bytes);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert_eq!(answer.body, expected);
    let again = site.ask(Method::GET, "/f.html", &[("range", "bytes=5000-5009, 0-1, -2")]);
    assert_ne!(again.field(CONTENT_TYPE), answer.field(CONTENT_TYPE), "a boundary must not be foreseeable");
    assert!(answer.head.extensions().get::<SendFile>().is_none());
}

#[test]
fn a_listing_shows_what_can_be_had_and_links_to_it() {
    let site = Site::new();
    site.write("file10.txt", "0123456789");
    site.write("file9.txt", "x");
    site.write("<b>&.html", "x");
    site.write(".hidden", "x");
    site.write("sub/x", "x");
    symlink("../secret.txt", site.root().join("out")).unwrap();
    symlink("sub", site.root().join("zlink")).unwrap();
    symlink("nowhere", site.root().join("dangling")).unwrap();
    let mut service = site.service(FileOptions { list: true, ..FileOptions::default() });
    let page = ask(&mut service, Method::GET, "/", &[]);
    assert_eq!((page.status(), page.field(CONTENT_TYPE)), (200, "text/html; charset=utf-8"));
    assert!(page.field(CONTENT_SECURITY_POLICY).starts_with("default-src 'none'"));
    let links: Vec<&str> = page
        .text()
        .split("<tr><td>")
        .skip(1)
        .filter_map(|row| row.split("href=\"").nth(2)?.split('"').next())
        .collect();
    assert_eq!(links, ["sub/", "zlink/", "%3Cb%3E%26.html", "file9.txt", "file10.txt"]);
    assert!(page.text().contains("<bdi>&lt;b&gt;&amp;.html</bdi>"));
    assert!(!page.text().contains("hidden\""));
    assert!(page.text().contains("2 folders, 3 files, 12 B"), "{}", page.text());
    let sub = ask(&mut service, Method::GET, "/sub/", &[]);
    assert!(sub.text().contains("<a href=\"../\">Parent folder</a>"));
    let head = ask(&mut service, Method::HEAD, "/", &[]);
    assert_eq!(head.field(CONTENT_LENGTH), page.body.len().to_string());
    // An index file goes before the list.
    site.write("sub/index.html", "index");
    assert_eq!(ask(&mut service, Method::GET, "/sub/", &[]).text(), "index");
}

#[test]
fn a_large_directory_is_listed_page_by_page() {
    let site = Site::new();
    for number in 0..25_000 {
        site.write(format!("f{number}"), "");
    }
    fs::create_dir(site.root().join("zz")).unwrap();
    let mut service = site.service(FileOptions { list: true, ..FileOptions::default() });
    let mut page = |target: &str| ask(&mut service, Method::GET, target, &[]);
    let names = |page: &site::Answer| {
        let names = page.text().split("<bdi>").filter_map(|row| row.split("</bdi>").next()).skip(1);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let first = page("/");
    assert_eq!(names(&first)[..3], ["zz", "f0", "f1"]);
    assert_eq!(names(&first).len(), 10_000);
    assert!(
        first
            .text()
            .contains("1 folder, 9999 files, 0 B on page 1 of 3<nav><a rel=\"next\" href=\"?page=2\">")
    );
    assert_eq!(names(&page("/?page=2"))[..2], ["f9999", "f10000"]);
    let last = page("/?x=y&page=3");
    assert_eq!(names(&last).last().unwrap(), "f24999");
    assert_eq!(names(&last).len(), 5_001);
    assert!(last.text().contains("href=\"?page=2\">Previous page</a></nav>"));
    for (target, status) in [("/?page=4", 404), ("/?page=0", 404), ("/?page=-1", 200), ("/?page=", 200)] {
        assert_eq!(page(target).status(), status, "{target}");
    }
}

#[test]
fn the_owners_fields_are_on_every_answer() {
    let site = Site::new();
    site.write("f.txt", "x");
    let field = |name: &'static str, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let mut service = site.service(FileOptions {
        cache_control: Some(HeaderValue::from_static("max-age=60")),
        fields: vec![
            field("x-frame-options", "DENY"),
            field("link", "</a>"),
            field("link", "</b>"),
            field("vary", "Cookie"),
        ],
        ..FileOptions::default()
    });
    for (target, fields, status, cached) in [
        ("/f.txt", vec![], 200, "max-age=60"),
        ("/f.txt", vec![("if-none-match", "*")], 304, "max-age=60"),
        ("/missing", vec![], 404, ""),
    ] {
        let answer = ask(&mut service, Method::GET, target, &fields);
        assert_eq!((answer.status(), answer.field(CACHE_CONTROL)), (status, cached));
        assert_eq!(answer.field("x-frame-options"), "DENY");
        assert_eq!(answer.field(VARY), "Cookie");
        assert_eq!(answer.head.headers().get_all(LINK).iter().count(), 2);
    }
}

#[test]
fn what_may_not_be_read_is_forbidden() {
    let site = Site::new();
    site.write("f.txt", "x");
    site.write("d/index.html", "x");
    fs::set_permissions(site.root().join("f.txt"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(site.root().join("d"), fs::Permissions::from_mode(0o111)).unwrap();
    let mut service = site.service(FileOptions::default());
    // Root may read everything, so a thread that is not root asks.
    std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        for (target, status) in [("/f.txt", 403), ("/d", 301), ("/d/", 200), ("/d/missing", 404)] {
            assert_eq!(ask(&mut service, Method::GET, target, &[]).status(), status, "{target}");
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_body_with_an_error() {
    let site = Site::new();
    site.write("f.bin", vec![1; 200_000]);
    let target: Uri = "/f.bin".parse().unwrap();
    let mut answer = site.service(FileOptions::default()).answer(&Method::GET, &target, &HeaderMap::new());
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = || Pin::new(answer.body_mut()).poll_frame(&mut cx);
    assert!(matches!(next(), Poll::Ready(Some(Ok(_)))));
    fs::File::options().write(true).open(site.root().join("f.bin")).unwrap().set_len(40_000).unwrap();
    assert!(
        matches!(next(), Poll::Ready(Some(Ok(frame))) if frame.data_ref().unwrap().len() == 40_000 - 16_384)
    );
    assert!(
        matches!(next(), Poll::Ready(Some(Err(error))) if error.kind() == std::io::ErrorKind::UnexpectedEof)
    );
    assert!(matches!(next(), Poll::Ready(None)));
}
