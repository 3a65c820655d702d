//! The small pages that say why there is no file, as HTML for browsers and as one line of text for everything else.

use std::fmt::Write;

use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

/// The type of a page drawn here.
pub const HTML: &str = "text/html; charset=utf-8";
/// The type of one line of text.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// What a page needs to be readable by day and by night, without a second request.
pub const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1d2129;--dim:#68707d;--line:#e4e7ec;--hover:#f4f6f9;--link:#0b57c9;--page:#fff}\
@media(prefers-color-scheme:dark){:root{--text:#e3e6eb;--dim:#949ca9;--line:#2b3038;--hover:#1e2229;--link:#85b4ff;\
--page:#15181d}}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:64rem;padding:2rem 1.25rem 3rem;background:var(--page);color:var(--text);\
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}\
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\
h1{font-size:1.35rem;font-weight:600;margin:0 0 1.25rem;overflow-wrap:anywhere}\
footer{color:var(--dim);font-size:.85rem;margin-top:1.25rem}";

/// Whether the client would rather see HTML: a browser names it.
pub fn wants_html(fields: &HeaderMap) -> bool {
    fields
        .get_all(ACCEPT)
        .iter()
        .any(|line| line.as_bytes().windows(9).any(|window| window.eq_ignore_ascii_case(b"text/html")))
}

/// A page, and its type, that gives a status and a sentence about it.
pub fn of_status(status: StatusCode, sentence: &str, html: bool) -> (&'static str, String) {
    let reason = status.canonical_reason().unwrap_or("Error");
    if !html {
        return (TEXT, format!("{} {reason}: {sentence}\n", status.as_u16()));
    }
    let mut page = String::with_capacity(STYLE.len() + 512);
    begin(&mut page, reason);
    // Writing to a string does not fail.
    let _ = write!(page, "<h1>{} {reason}</h1>\n<p>", status.as_u16());
    escape(sentence, &mut page);
    page.push_str("</p>\n</html>\n");
    (HTML, page)
}

/// Writes the head of a page. `title` is escaped here.
pub fn begin(page: &mut String, title: &str) {
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    escape(title, page);
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style>\n");
}

/// Writes text so that none of it is markup, between tags and inside of quoted attributes. Control characters, which
/// only confuse, become the replacement character.
pub fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            control if control.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn no_text_becomes_markup() {
        let mut out = String::new();
        escape("<script>alert('x')</script>&\"\n\u{7f}ä", &mut out);
        assert_eq!(out, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}\u{fffd}ä");
    }

    #[test]
    fn browsers_get_html_and_tools_get_a_line() {
        let mut fields = HeaderMap::new();
        assert!(!wants_html(&fields));
        fields.insert(ACCEPT, HeaderValue::from_static("*/*"));
        assert!(!wants_html(&fields));
        fields.insert(ACCEPT, HeaderValue::from_static("application/xhtml+xml, Text/HTML;q=0.9"));
        assert!(wants_html(&fields));
        let (kind, text) = of_status(StatusCode::NOT_FOUND, "There is no such file.", false);
        assert_eq!((kind, text.as_str()), (TEXT, "404 Not Found: There is no such file.\n"));
        let (kind, page) = of_status(StatusCode::NOT_FOUND, "No <b>.", true);
        assert_eq!(kind, HTML);
        assert!(page.contains("<title>Not Found</title>") && page.contains("No &lt;b&gt;."), "{page}");
    }
}
