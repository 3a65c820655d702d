//! What must hold of the file service whatever it is asked.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};

use http::header::{CONTENT_LENGTH, LOCATION, RANGE};
use http::{HeaderMap, HeaderValue, Method, Response, Uri};
use http_body::Body;
use hyperman_cli::body::FileBody;
use hyperman_cli::path::FilePath;
use hyperman_cli::range::{self, Selection};
use hyperman_cli::root::{Root, Symlinks};
use hyperman_cli::service::{FileOptions, FileService};
use proptest::prelude::*;
use tempfile::TempDir;

/// A folder inside of one whose every file says SECRET, with ways out that must not be taken; once by the kernel's
/// confinement, once by the walk.
static SITE: LazyLock<(TempDir, [FileService; 2])> = LazyLock::new(|| {
    let outer = tempfile::tempdir().unwrap();
    for name in ["secret", "a", "b", "index.html"] {
        let _ = fs::write(outer.path().join(name), "SECRET");
    }
    let site = outer.path().join("site");
    fs::create_dir_all(site.join("a/b")).unwrap();
    for name in ["index.html", "a/b/secret", "b"] {
        fs::write(site.join(name), "inside").unwrap();
    }
    for (link, target) in
        [("up", ".."), ("a/up", "../.."), ("a/root", "/"), ("a/b/x", "../../../secret"), ("c", "a/b")]
    {
        std::os::unix::fs::symlink(target, site.join(link)).unwrap();
    }
    let options = || FileOptions { list: true, hidden: true, ..FileOptions::default() };
    let services = [
        FileService::new(Root::open(&site, Symlinks::Confined).unwrap(), options()),
        FileService::new(Root::open_walking(&site).unwrap(), options()),
    ];
    (outer, services)
});

/// Targets out of the pieces that path attacks are made of.
fn hostile_target() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "//",
        "..",
        ".",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "\\",
        "%00",
        "%",
        "a",
        "b",
        "c",
        "up",
        "root",
        "x",
        "secret",
        "site",
        "index.html",
        "%61",
        "%252e",
        "%c0%ae",
        "~",
        "?",
        "etc/passwd",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

fn text_of(answer: &mut Response<FileBody>) -> String {
    let mut all = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(frame)) = Pin::new(answer.body_mut()).poll_frame(&mut cx) {
        all.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    String::from_utf8_lossy(&all).into_owned()
}

proptest! {
    #[test]
    fn s94_nothing_outside_of_the_folder_is_ever_sent(target in hostile_target()) {
        let Ok(uri) = target.parse::<Uri>() else { return Ok(()) };
        let mut statuses = Vec::new();
        for service in &SITE.1 {
            let mut answer = service.answer(&Method::GET, &uri, &HeaderMap::new());
            let text = text_of(&mut answer);
            prop_assert!(!text.contains("SECRET") && !text.contains("root:"), "{target}: {text}");
            if let Some(location) = answer.headers().get(LOCATION) {
                prop_assert!(location.as_bytes().starts_with(b"./"), "{target}: {location:?}");
            }
            statuses.push(answer.status());
        }
        // The kernel and the walk agree on what can be reached.
        prop_assert_eq!(statuses.first(), statuses.last(), "{}", target);
    }

    #[test]
    fn head_and_get_say_the_same(target in hostile_target()) {
        let Ok(uri) = target.parse::<Uri>() else { return Ok(()) };
        let Some(service) = SITE.1.first() else { return Ok(()) };
        let get = service.answer(&Method::GET, &uri, &HeaderMap::new());
        let head = service.answer(&Method::HEAD, &uri, &HeaderMap::new());
        prop_assert_eq!(get.status(), head.status());
        let announced = head.headers().get(CONTENT_LENGTH).unwrap().to_str().unwrap().parse::<u64>().unwrap();
        prop_assert_eq!(get.body().remaining(), announced);
        prop_assert_eq!(head.body().remaining(), 0);
    }

    #[test]
    fn a_path_that_is_accepted_has_only_ordinary_names(target in "/[ -~]{0,40}") {
        if let Ok(path) = FilePath::parse(&target) {
            prop_assert!(!path.bytes().starts_with(b"/"));
            for name in path.segments() {
                prop_assert!(name != b"." && name != b".." && !name.contains(&0) && !name.contains(&b'/'));
            }
        }
    }

    #[test]
    fn ranges_stay_inside_apart_and_below_the_length(
        value in "bytes=[0-9]{0,4}-[0-9]{0,4}(,[0-9]{0,4}-[0-9]{0,4}){0,80}",
        length in 0_u64..10_000,
    ) {
        let mut fields = HeaderMap::new();
        fields.insert(RANGE, HeaderValue::from_str(&value).unwrap());
        let ranges = match range::select(&fields, length) {
            Selection::Whole | Selection::Unsatisfiable => Vec::new(),
            Selection::Single(range) => vec![range],
            Selection::Several(ranges) => {
                prop_assert!(ranges.len() > 1);
                ranges
            }
        };
        let mut sorted = ranges.clone();
        sorted.sort_by_key(|range| range.start);
        for range in &sorted {
            prop_assert!(range.start < range.end && range.end <= length, "{range:?} of {length}");
        }
        for pair in sorted.windows(2) {
            if let [one, next] = pair {
                prop_assert!(one.end < next.start, "{one:?} {next:?}");
            }
        }
        let sum: u64 = ranges.iter().map(|range| range.length()).sum();
        prop_assert!(sum <= length);
    }
}
