//! Conditional requests: which of them hold, in the order of RFC 9110 §13.2.2.

use std::time::SystemTime;

use http::HeaderMap;
use http::header::{
    GetAll, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};

use crate::http_date;
use crate::validators::Validators;

/// What the preconditions of a GET or HEAD ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Answer as if there were none.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: the client wanted another state.
    Failed,
}

/// Evaluates the preconditions of a GET or HEAD against the selected representation.
pub fn evaluate(fields: &HeaderMap, current: &Validators) -> Verdict {
    if fields.contains_key(IF_MATCH) {
        if !any_matches(fields.get_all(IF_MATCH), current, Comparison::Strong) {
            return Verdict::Failed;
        }
    } else if let (Some(since), Some(modified)) = (date(fields, &IF_UNMODIFIED_SINCE), current.modified)
        && modified > since
    {
        return Verdict::Failed;
    }
    if fields.contains_key(IF_NONE_MATCH) {
        if any_matches(fields.get_all(IF_NONE_MATCH), current, Comparison::Weak) {
            return Verdict::NotModified;
        }
    } else if let (Some(since), Some(modified)) = (date(fields, &IF_MODIFIED_SINCE), current.modified)
        && modified <= since
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Whether `If-Range` allows a part to be sent (RFC 9110 §13.1.5); true when there is none.
pub fn range_applies(fields: &HeaderMap, current: &Validators) -> bool {
    let mut values = fields.get_all(IF_RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return !fields.contains_key(IF_RANGE);
    };
    if value.as_bytes().starts_with(b"\"") || value.as_bytes().starts_with(b"W/") {
        return value.as_bytes() == current.etag.as_bytes();
    }
    // A date has to be the very one: a part of an older or newer state must not be mixed in.
    http_date::parse(value.as_bytes(), SystemTime::now()).is_some_and(|date| Some(date) == current.modified)
}

/// The date of a field, which is to be ignored when it is no date or more than one (RFC 9110 §13.1.3, §13.1.4).
fn date(fields: &HeaderMap, name: &HeaderName) -> Option<i64> {
    let mut values = fields.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => http_date::parse(value.as_bytes(), SystemTime::now()),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    Weak,
}

/// Whether a tag of the list is the current one, or the list is `*`.
fn any_matches(lines: GetAll<'_, HeaderValue>, current: &Validators, comparison: Comparison) -> bool {
    lines.iter().any(|line| {
        let line = line.as_bytes();
        line.trim_ascii() == b"*" || line_matches(line, current.etag.as_bytes(), comparison)
    })
}

/// Goes over `W/"a", "b,c"`: commas may stand inside of a tag. What is behind a fault is not looked at.
fn line_matches(line: &[u8], current: &[u8], comparison: Comparison) -> bool {
    let mut rest = line;
    loop {
        while let [b' ' | b'\t' | b',', behind @ ..] = rest {
            rest = behind;
        }
        let weak = rest.starts_with(b"W/");
        let tag = if weak { rest.get(2..).unwrap_or_default() } else { rest };
        let [b'"', opaque @ ..] = tag else { return false };
        let Some(length) = opaque.iter().position(|&byte| byte == b'"') else { return false };
        let (Some(quoted), Some(behind)) = (tag.get(..length + 2), tag.get(length + 2..)) else {
            return false;
        };
        // Ours is strong, so in the strong comparison only the other can fail to be (RFC 9110 §8.8.3.2).
        if quoted == current && !(weak && comparison == Comparison::Strong) {
            return true;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn current() -> Validators {
        Validators { etag: "\"now\"".to_owned(), modified: Some(784_111_777) }
    }

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for &(name, value) in lines {
            fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        fields
    }

    #[test]
    fn the_order_of_rfc_9110_13_2_2_decides() {
        use Verdict::{Failed, NotModified, Proceed};
        let table: &[(&[(&'static str, &'static str)], Verdict)] = &[
            (&[], Proceed),
            (&[("if-none-match", "\"now\"")], NotModified),
            (&[("if-none-match", "W/\"now\"")], NotModified),
            (&[("if-none-match", "\"old\"")], Proceed),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", "\"old\", W/\"older\" ,\"now\"")], NotModified),
            (&[("if-none-match", "\"old\""), ("if-none-match", "\"now\"")], NotModified),
            (&[("if-none-match", ", ,\"now\"")], NotModified),
            (&[("if-none-match", "\"a,\",\"now\"")], NotModified),
            (&[("if-none-match", "\"a,\\\"now\\\"\"")], Proceed),
            (&[("if-none-match", "now")], Proceed),
            (&[("if-none-match", "\"now")], Proceed),
            (&[("if-none-match", "")], Proceed),
            (&[("if-none-match", "w/\"now\"")], Proceed),
            (&[("if-modified-since", LAST)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", BEFORE)], Proceed),
            (&[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
            (&[("if-modified-since", "whenever")], Proceed),
            (&[("if-modified-since", AFTER), ("if-modified-since", AFTER)], Proceed),
            // The tag wins over the date, both ways.
            (&[("if-none-match", "\"old\""), ("if-modified-since", AFTER)], Proceed),
            (&[("if-none-match", "\"now\""), ("if-modified-since", BEFORE)], NotModified),
            (&[("if-match", "\"now\"")], Proceed),
            (&[("if-match", "*")], Proceed),
            (&[("if-match", "\"old\"")], Failed),
            (&[("if-match", "W/\"now\"")], Failed),
            (&[("if-match", "\"old\", \"now\"")], Proceed),
            (&[("if-match", "")], Failed),
            (&[("if-unmodified-since", LAST)], Proceed),
            (&[("if-unmodified-since", AFTER)], Proceed),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", "whenever")], Proceed),
            (&[("if-match", "\"now\""), ("if-unmodified-since", BEFORE)], Proceed),
            (&[("if-match", "\"old\""), ("if-unmodified-since", AFTER)], Failed),
            // A failed first step ends it; a passed one does not.
            (&[("if-match", "\"old\""), ("if-none-match", "\"now\"")], Failed),
            (&[("if-match", "\"now\""), ("if-none-match", "\"now\"")], NotModified),
            (&[("if-unmodified-since", AFTER), ("if-modified-since", AFTER)], NotModified),
            (&[("if-unmodified-since", BEFORE), ("if-modified-since", AFTER)], Failed),
        ];
        for (lines, verdict) in table {
            assert_eq!(evaluate(&fields(lines), &current()), *verdict, "{lines:?}");
        }
    }

    #[test]
    fn without_a_date_of_change_dates_are_ignored() {
        let dateless = Validators { modified: None, ..current() };
        for name in ["if-modified-since", "if-unmodified-since"] {
            assert_eq!(evaluate(&fields(&[(name, LAST)]), &dateless), Verdict::Proceed);
        }
        assert!(!range_applies(&fields(&[("if-range", LAST)]), &dateless));
    }

    #[test]
    fn if_range_compares_strongly_and_exactly() {
        let table: &[(&[(&'static str, &'static str)], bool)] = &[
            (&[], true),
            (&[("if-range", "\"now\"")], true),
            (&[("if-range", "W/\"now\"")], false),
            (&[("if-range", "\"old\"")], false),
            (&[("if-range", "\"now\", \"old\"")], false),
            (&[("if-range", LAST)], true),
            (&[("if-range", BEFORE)], false),
            (&[("if-range", AFTER)], false),
            (&[("if-range", "")], false),
            (&[("if-range", "*")], false),
            (&[("if-range", "\"now\""), ("if-range", "\"now\"")], false),
        ];
        for (lines, applies) in table {
            assert_eq!(range_applies(&fields(lines), &current()), *applies, "{lines:?}");
        }
    }
}
