//! Which form of a file is sent: the file itself, or a compressed sibling.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use http::Method;
use http::header::*;

mod site;
use site::Site;

#[test]
fn compressed_siblings_are_sent_to_who_accepts_them() {
    let site = Site::new();
    site.write("app.js", "plain");
    site.write("app.js.br", "BR");
    site.write("app.js.gz", "GZIP");
    site.write("only.css", "plain");
    site.write("only.css.gz", "GZIP");
    site.write("photo.png", "plain");
    site.write("photo.png.gz", "GZIP");
    fs::create_dir(site.root().join("only.css.br")).unwrap();
    for (target, accept, coding, body) in [
        ("/app.js", "gzip, br", "br", "BR"),
        ("/app.js", "gzip, br;q=0.9", "gzip", "GZIP"),
        ("/app.js", "gzip", "gzip", "GZIP"),
        ("/app.js", "br;q=0, gzip;q=0", "", "plain"),
        ("/app.js", "identity, br;q=0.5", "", "plain"),
        ("/app.js", "", "", "plain"),
        ("/app.js", "identity;q=0, gzip", "gzip", "GZIP"),
        ("/only.css", "br, gzip;q=0.1", "gzip", "GZIP"),
        ("/only.css", "br", "", "plain"),
        ("/photo.png", "br, gzip", "", "plain"),
        ("/app.js.gz", "br, gzip", "", "GZIP"),
    ] {
        let answer = site.ask(Method::GET, target, &[("accept-encoding", accept)]);
        assert_eq!(
            (answer.status(), answer.field(CONTENT_ENCODING), answer.text()),
            (200, coding, body),
            "{target} {accept}"
        );
        if target.starts_with("/app.js") && !target.ends_with("gz") {
            assert_eq!(answer.field(CONTENT_TYPE), "text/javascript; charset=utf-8");
            assert_eq!(answer.field(VARY), "Accept-Encoding");
        }
    }
    let plain = site.get("/app.js");
    let packed = site.ask(Method::GET, "/app.js", &[("accept-encoding", "br")]);
    assert_ne!(plain.field(ETAG), packed.field(ETAG));
    let part = site.ask(Method::GET, "/app.js", &[("accept-encoding", "gzip"), ("range", "bytes=1-2")]);
    assert_eq!((part.text(), part.field(CONTENT_RANGE)), ("ZI", "bytes 1-2/4"));
    let refused = site.ask(Method::GET, "/only.css", &[("accept-encoding", "identity;q=0, br")]);
    assert_eq!(refused.status(), 406);
    let varies: Vec<_> = refused.head.headers().get_all(VARY).iter().collect();
    assert_eq!(varies, ["Accept", "Accept-Encoding"]);
}

#[test]
fn a_sibling_from_before_the_last_change_is_not_sent() {
    let site = Site::new();
    site.write("app.js", "new");
    site.write("app.js.br", "BR");
    site.write("app.js.gz", "GZIP");
    let changed = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 900_000_000);
    let date = |name: &str, time| {
        File::options().write(true).open(site.root().join(name)).unwrap().set_modified(time).unwrap();
    };
    date("app.js", changed);
    let form = || {
        let answer = site.ask(Method::GET, "/app.js", &[("accept-encoding", "br, gzip")]);
        (answer.text().to_owned(), answer.field(VARY).to_owned())
    };
    for (brotli, gzip, body) in [(0, 0, "BR"), (1, 1, "BR"), (-1, 0, "GZIP"), (-1, -1, "new"), (0, -1, "BR")]
    {
        // The date of a compressed file may have lost what is below a second.
        let at = |seconds: i64| {
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000_u64.saturating_add_signed(seconds))
        };
        date("app.js.br", at(brotli));
        date("app.js.gz", at(gzip));
        assert_eq!(form(), (body.to_owned(), "Accept-Encoding".to_owned()), "{brotli} {gzip}");
    }
    fs::remove_file(site.root().join("app.js")).unwrap();
    assert_eq!(site.ask(Method::GET, "/app.js", &[("accept-encoding", "br")]).status(), 404);
}

#[test]
fn an_empty_file_is_whole_whatever_part_of_it_is_asked_for() {
    let site = Site::new();
    site.write("empty.txt", "");
    for (range, status) in [("bytes=0-", 200), ("bytes=0-0", 200), ("bytes=-5", 200), ("bytes=1-", 416)] {
        let answer = site.ask(Method::GET, "/empty.txt", &[("range", range)]);
        assert_eq!(
            (answer.status(), answer.field(CONTENT_RANGE)),
            (status, if status == 416 { "bytes */0" } else { "" })
        );
    }
}
