//! Byte ranges: which parts of a representation a `Range` field asks for, and which are sent (RFC 9110 §14).
//!
//! A request must never cost more than the file is long, however it is cut up: overlapping and close-by ranges become
//! one, too many are answered by the whole (RFC 9110 §17.15; CVE-2011-3192).

use http::HeaderMap;
use http::header::RANGE;

/// How many ranges one request may name, 64: more than any client's, and few enough to compare pairwise.
const MOST_RANGES: usize = 64;

/// Up to how many ranges are sent as parts just as they were asked for, 4: what these cost beyond their bytes does no
/// harm, however small the file.
const FEW_RANGES: usize = 4;

/// What a further part costs in a multipart answer, in bytes. Where there are more than a few, a gap that is smaller
/// is sent instead.
const PART_OVERHEAD: u64 = 160;

/// Some bytes of a representation, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The position of the first.
    pub start: u64,
    /// The position behind the last.
    pub end: u64,
}

impl ByteRange {
    /// How many bytes that are.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The whole: no range was asked for, or none that is understood.
    Whole,
    /// One part.
    Single(ByteRange),
    /// Several parts, apart from one another, in the order in which they were asked for.
    Several(Vec<ByteRange>),
    /// Nothing: every range lies beyond the end (416).
    Unsatisfiable,
}

/// Reads the `Range` field of a GET for a representation of `length` bytes.
pub fn select(fields: &HeaderMap, length: u64) -> Selection {
    let mut values = fields.get_all(RANGE).iter();
    // Two fields are no valid request, and what is not valid is ignored (RFC 9110 §14.2).
    let (Some(value), None) = (values.next(), values.next()) else { return Selection::Whole };
    let Some(asked) = parse(value.as_bytes()) else { return Selection::Whole };
    let overhead = if asked.len() <= FEW_RANGES { 0 } else { PART_OVERHEAD };
    let ranges = coalesce(asked.iter().filter_map(|spec| spec.resolve(length)), overhead);
    match ranges.as_slice() {
        // No part of nothing can be named in Content-Range. Who asks for the start or the end of an empty file has all
        // of it; players and downloaders that put `bytes=0-` into each request would take a 416 for a failure.
        [] if length == 0 && asked.iter().any(Spec::may_be_of_nothing) => Selection::Whole,
        [] => Selection::Unsatisfiable,
        [one] => Selection::Single(*one),
        several => {
            let parts: u64 = several.iter().map(|range| range.length().saturating_add(overhead)).sum();
            if parts >= length { Selection::Whole } else { Selection::Several(ranges) }
        }
    }
}

/// One element of a byte range set (RFC 9110 §14.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    /// `first-last`, both included.
    FromTo(u64, u64),
    /// `first-`.
    From(u64),
    /// `-count`.
    Last(u64),
}

impl Spec {
    /// Whether it asks for nothing that lies behind the start of an empty representation.
    fn may_be_of_nothing(&self) -> bool {
        matches!(self, Spec::FromTo(0, _) | Spec::From(0) | Spec::Last(1..))
    }

    fn resolve(self, length: u64) -> Option<ByteRange> {
        let range = match self {
            Spec::FromTo(first, last) => ByteRange { start: first, end: last.saturating_add(1).min(length) },
            Spec::From(first) => ByteRange { start: first, end: length },
            Spec::Last(count) => ByteRange { start: length.saturating_sub(count), end: length },
        };
        (range.start < range.end).then_some(range)
    }
}

/// `None` for another unit, for what breaks the grammar, and for more ranges than [`MOST_RANGES`].
fn parse(value: &[u8]) -> Option<Vec<Spec>> {
    let (unit, set) = value.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let mut specs = Vec::new();
    for element in set.split(|&byte| byte == b',') {
        let element = element.trim_ascii();
        // A list may have empty elements (RFC 9110 §5.6.1.2).
        if element.is_empty() {
            continue;
        }
        if specs.len() == MOST_RANGES {
            return None;
        }
        specs.push(parse_spec(element)?);
    }
    (!specs.is_empty()).then_some(specs)
}

fn parse_spec(element: &[u8]) -> Option<Spec> {
    let dash = element.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (element.get(..dash)?, element.get(dash + 1..)?);
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => Some(Spec::Last(number(last)?)),
        (false, true) => Some(Spec::From(number(first)?)),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::FromTo(first, last))
        }
    }
}

/// Digits only. A number that is too large for us is larger than every file.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some(value.saturating_mul(10).saturating_add(digit))
    })
}

/// Joins ranges that overlap, touch, or have no more than `gap` bytes between them. A joined range takes the earliest
/// place that one of its parts had (RFC 9110 §15.3.7.2).
fn coalesce(ranges: impl Iterator<Item = ByteRange>, gap: u64) -> Vec<ByteRange> {
    let mut apart: Vec<ByteRange> = Vec::new();
    for mut range in ranges {
        let mut place = apart.len();
        // Each join can bring the range close to another one.
        while let Some(near) = apart.iter().position(|other| is_near(other, &range, gap)) {
            let other = apart.remove(near);
            range = ByteRange { start: range.start.min(other.start), end: range.end.max(other.end) };
            place = place.min(near);
        }
        apart.insert(place.min(apart.len()), range);
    }
    apart
}

fn is_near(one: &ByteRange, other: &ByteRange, gap: u64) -> bool {
    one.start <= other.end.saturating_add(gap) && other.start <= one.end.saturating_add(gap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn selected(range: &str, length: u64) -> Selection {
        let mut fields = HeaderMap::new();
        fields.insert(RANGE, HeaderValue::from_str(range).unwrap());
        select(&fields, length)
    }

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange { start, end }
    }

    #[test]
    fn single_ranges() {
        use Selection::{Single, Unsatisfiable, Whole};
        let huge = "99999999999999999999999999";
        for (asked, expected) in [
            ("bytes=0-0", Single(range(0, 1))),
            ("bytes=0-499", Single(range(0, 500))),
            ("bytes=500-999", Single(range(500, 1000))),
            ("bytes=500-", Single(range(500, 1000))),
            ("bytes=999-", Single(range(999, 1000))),
            ("bytes=0-", Single(range(0, 1000))),
            ("bytes=-1", Single(range(999, 1000))),
            ("bytes=-500", Single(range(500, 1000))),
            ("bytes=-2000", Single(range(0, 1000))),
            ("bytes=900-5000", Single(range(900, 1000))),
            ("BYTES=0-0", Single(range(0, 1))),
            ("bytes= 0-0 ", Single(range(0, 1))),
            ("bytes=,0-0,", Single(range(0, 1))),
            ("bytes=1000-", Unsatisfiable),
            ("bytes=1000-1000", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=5-4", Whole),
            ("bytes=", Whole),
            ("bytes=-", Whole),
            ("bytes=,", Whole),
            ("bytes=a-b", Whole),
            ("bytes=0x1-2", Whole),
            ("bytes=1-2-3", Whole),
            ("bytes=--1", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=0 -1", Whole),
            ("bytes=0-1;x", Whole),
            ("bytes 0-1", Whole),
            ("bytes", Whole),
            ("", Whole),
            ("items=0-1", Whole),
            ("bytes=0-1,x", Whole),
        ] {
            assert_eq!(selected(asked, 1000), expected, "{asked}");
        }
        assert_eq!(selected(&format!("bytes=0-{huge}"), 1000), Single(range(0, 1000)));
        assert_eq!(selected(&format!("bytes={huge}-"), 1000), Unsatisfiable);
        assert_eq!(selected(&format!("bytes=-{huge}"), 1000), Single(range(0, 1000)));
        assert_eq!(selected("bytes=0-18446744073709551615", u64::MAX), Single(range(0, u64::MAX)));
    }

    #[test]
    fn an_empty_representation_has_no_parts() {
        for whole in ["bytes=0-0", "bytes=0-", "bytes=-5", "bytes=7-,0-", "bytes=0-1,3-4"] {
            assert_eq!(selected(whole, 0), Selection::Whole, "{whole}");
        }
        for beyond in ["bytes=-0", "bytes=1-", "bytes=5-9", "bytes=1-,2-"] {
            assert_eq!(selected(beyond, 0), Selection::Unsatisfiable, "{beyond}");
        }
    }

    #[test]
    fn several_ranges_keep_their_order() {
        assert_eq!(
            selected("bytes=5000-5009, 0-9,-10", 10_000),
            Selection::Several(vec![range(5000, 5010), range(0, 10), range(9990, 10_000)])
        );
        assert_eq!(
            selected("bytes=0-9,20000-,5000-5009", 10_000),
            Selection::Several(vec![range(0, 10), range(5000, 5010)])
        );
        assert_eq!(selected("bytes=0-9,20000-", 10_000), Selection::Single(range(0, 10)));
        assert_eq!(selected("bytes=10000-,20000-", 10_000), Selection::Unsatisfiable);
    }

    #[test]
    fn overlapping_ranges_become_one() {
        assert_eq!(selected("bytes=0-99,50-149", 10_000), Selection::Single(range(0, 150)));
        assert_eq!(selected("bytes=0-9,10-19", 10_000), Selection::Single(range(0, 20)));
        // The third joins the first two.
        assert_eq!(
            selected("bytes=1000-1009,5000-5009,1400-1409,1005-1450", 10_000),
            Selection::Several(vec![range(1000, 1451), range(5000, 5010)])
        );
        assert_eq!(selected("bytes=500-,0-,0-,0-,0-", 10_000), Selection::Single(range(0, 10_000)));
        assert_eq!(selected("bytes=0-1,4-5", 10), Selection::Several(vec![range(0, 2), range(4, 6)]));
    }

    #[test]
    fn of_many_ranges_those_close_by_become_one() {
        assert_eq!(
            selected("bytes=5000-5009,0-9,100-109,200-209,9000-", 10_000),
            Selection::Several(vec![range(5000, 5010), range(0, 210), range(9000, 10_000)])
        );
    }

    #[test]
    fn cutting_a_file_up_never_costs_more_than_the_whole() {
        let many = |count: u64, step: u64| {
            let specs: Vec<String> = (0..count).map(|i| format!("{}-{}", i * step, i * step)).collect();
            format!("bytes={}", specs.join(","))
        };
        assert_eq!(selected(&many(65, 1000), 1_000_000), Selection::Whole);
        assert!(
            matches!(selected(&many(64, 1000), 1_000_000), Selection::Several(parts) if parts.len() == 64)
        );
        assert_eq!(selected(&many(1300, 1), 1_000_000), Selection::Whole);
        assert_eq!(selected(&many(64, 2), 1_000_000), Selection::Single(range(0, 127)));
        assert_eq!(selected(&many(64, 162), 63 * 162 + 1), Selection::Whole);
        assert_eq!(selected("bytes=0-4800,5000-9999,0-1,0-2,0-3", 10_000), Selection::Whole);
    }

    #[test]
    fn two_range_fields_are_ignored() {
        let mut fields = HeaderMap::new();
        fields.append(RANGE, HeaderValue::from_static("bytes=0-1"));
        fields.append(RANGE, HeaderValue::from_static("bytes=5-6"));
        assert_eq!(select(&fields, 1000), Selection::Whole);
        assert_eq!(select(&HeaderMap::new(), 1000), Selection::Whole);
    }
}
