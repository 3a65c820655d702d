//! The validators of a file: its entity tag and its date of change (RFC 9110 §8.8).

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::root::Facts;

/// The last second that a date of HTTP can say: 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

/// What identifies the state of one representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// A strong entity tag, quotes included. All in ASCII.
    pub etag: String,
    /// When it last changed, in whole seconds since 1970; `None` where HTTP has no date for that.
    pub modified: Option<u64>,
}

impl Validators {
    /// Derives them from a file. `now` bounds the date: one in the future is given as the present (RFC 9110
    /// §8.8.2.1).
    ///
    /// The tag changes with every write, and also when the file is replaced by another of the same length and date
    /// (what builds with fixed dates produce): inode and inode change time go into it.
    pub fn of(facts: &Facts, now: SystemTime) -> Self {
        let mut hasher = DefaultHasher::new();
        facts.hash(&mut hasher);
        let mut etag = String::with_capacity(36);
        // Writing to a string does not fail.
        let _ = write!(etag, "\"{:x}-{:016x}\"", facts.length, hasher.finish());
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let modified = u64::try_from(facts.modified.0).ok().map(|seconds| seconds.min(now).min(LAST_SECOND));
        Validators { etag, modified }
    }

    /// The `ETag` field.
    pub fn etag_field(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.etag).ok()
    }

    /// The `Last-Modified` field.
    pub fn modified_field(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&http_date(self.modified?)).ok()
    }
}

/// A date in the one format that is sent (RFC 9110 §5.6.7). Seconds beyond the year 9999 are brought down to it.
pub fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.min(LAST_SECOND)))
}

/// Reads a date in any of the three formats; `None` for anything else.
pub fn parse_http_date(value: &HeaderValue) -> Option<u64> {
    let time = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    // A date before 1970 is older than every file that has one.
    Some(time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts { length: 500, modified: (1_000_000_000, 5), changed: (1_000_000_001, 6), identity: (1, 2) }
    }

    #[test]
    fn the_tag_is_strong_and_changes_with_every_fact() {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let tag = Validators::of(&facts(), now).etag;
        assert!(tag.starts_with("\"1f4-") && tag.ends_with('"'), "{tag}");
        assert_eq!(Validators::of(&facts(), now).etag, tag);
        for other in [
            Facts { length: 501, ..facts() },
            Facts { modified: (1_000_000_000, 6), ..facts() },
            Facts { changed: (1_000_000_001, 7), ..facts() },
            Facts { identity: (1, 3), ..facts() },
        ] {
            assert_ne!(Validators::of(&other, now).etag, tag);
        }
    }

    #[test]
    fn dates_outside_of_what_http_can_say_do_no_harm() {
        let now = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
        let modified = |seconds| Validators::of(&Facts { modified: (seconds, 0), ..facts() }, now).modified;
        assert_eq!(modified(1_000_000_000), Some(1_000_000_000));
        assert_eq!(modified(3_000_000_000), Some(2_000_000_000));
        assert_eq!(modified(i64::MAX), Some(2_000_000_000));
        assert_eq!(modified(0), Some(0));
        assert_eq!(modified(-1), None);
        assert_eq!(modified(i64::MIN), None);
        assert_eq!(http_date(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(http_date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn the_three_date_formats_are_read() {
        for date in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse_http_date(&HeaderValue::from_static(date)), Some(784_111_777), "{date}");
        }
        for junk in ["", "0", "yesterday", "Sun, 06 Nov 1994 08:49:37 CET", "06 Nov 1994"] {
            assert_eq!(parse_http_date(&HeaderValue::from_static(junk)), None, "{junk}");
        }
    }
}
