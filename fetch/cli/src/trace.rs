//! What `-v` tells on the standard error, and the heads that `-i` shows.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderValue, Response, Version};
use hyperman_fetch::Notice;
use hyperman_http1::Reason;

/// What happened before the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    verbose: bool,
    seen: Arc<Mutex<Seen>>,
}

/// What the watch of a request leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The heads of interim answers and redirects, as `-i` shows them.
    pub(crate) heads: Vec<u8>,
    pub(crate) redirects: u32,
}

impl Trace {
    pub(crate) fn new(verbose: bool) -> Self {
        Trace { verbose, seen: Arc::default() }
    }

    /// Says so where somebody expects a proxy to be used.
    pub(crate) fn proxies(&self) {
        const NAMES: [&str; 6] =
            ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
        let set =
            NAMES.into_iter().find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if let Some(name) = set {
            self.line(&format!("* {name} is set, but no proxy is used"));
        }
    }

    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn notice(&self, notice: &Notice<'_>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            Notice::Interim(head) => {
                head_bytes(head, &mut seen.heads);
                self.answer(head);
            }
            Notice::Redirect { response, to } => {
                head_bytes(response, &mut seen.heads);
                seen.redirects += 1;
                self.answer(response);
                self.line(&format!("* Redirected to {to}"));
            }
            Notice::Resolving(host) => self.line(&format!("* Looking up {host}")),
            Notice::Connected { peer, reused: false } => self.line(&format!("* Connected to {peer}")),
            Notice::Connected { peer, .. } => self.line(&format!("* Reusing the connection to {peer}")),
            Notice::ExpectationFailed(response) => {
                head_bytes(response, &mut seen.heads);
                self.answer(response);
                self.line("* Asking again without Expect");
            }
            Notice::Retry => self.line("* The connection was dead; asking again on a new one"),
            Notice::Request { method, target, version, headers } => {
                let mut text = format!("> {method} {target} {}", version_name(*version));
                fields(headers, '>', &mut text);
                self.line(&text);
            }
            _ => {}
        }
    }

    /// The head of an answer.
    pub(crate) fn answer(&self, head: &Response<()>) {
        let mut text = format!("< {} {} ", version_name(head.version()), head.status().as_u16());
        let _ = write!(text, "{}", reason(head).escape_ascii());
        fields(head.headers(), '<', &mut text);
        self.line(&text);
    }

    fn line(&self, text: &str) {
        if self.verbose {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }
}

/// One line per field and an empty one, each behind its arrow. What a peer sent is escaped: this goes to a terminal.
fn fields(headers: &HeaderMap, arrow: char, text: &mut String) {
    for (name, value) in headers {
        let _ = write!(text, "\n{arrow} {name}: {}", shown(value));
    }
    let _ = write!(text, "\n{arrow}");
}

fn shown(value: &HeaderValue) -> String {
    if value.is_sensitive() {
        return "(not shown)".to_owned();
    }
    match value.to_str() {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().escape_ascii().to_string(),
    }
}

/// An answer's head as it came, as far as that is still known.
pub(crate) fn head_bytes(head: &Response<()>, out: &mut Vec<u8>) {
    let _ = write!(out, "{} {} ", version_name(head.version()), head.status().as_u16());
    out.extend_from_slice(&reason(head));
    out.extend_from_slice(b"\r\n");
    for (name, value) in head.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// As heads begin with it. HTTP/2 has no minor version (RFC 9113 §8).
pub(crate) fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

/// The reason phrase; HTTP/2 has none (RFC 9113 §8.3.2).
fn reason(head: &Response<()>) -> Vec<u8> {
    match head.extensions().get::<Reason>() {
        Some(reason) => reason.0.to_vec(),
        None if head.version() == Version::HTTP_2 => Vec::new(),
        None => head.status().canonical_reason().unwrap_or("").as_bytes().to_vec(),
    }
}
