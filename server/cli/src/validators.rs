//! The validators of a file: its entity tag and its date of change (RFC 9110 §8.8).

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

use crate::http_date;
use crate::root::Facts;

/// What identifies the state of one representation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// A strong entity tag, quotes included. All in ASCII.
    pub etag: String,
    /// When it last changed, in whole seconds since 1970; `None` where HTTP has no date for that.
    pub modified: Option<i64>,
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
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let modified = (facts.modified.0 >= 0).then(|| facts.modified.0.min(now).min(http_date::LAST_SECOND));
        Validators { etag, modified }
    }

    /// The `ETag` field.
    pub fn etag_field(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.etag).ok()
    }

    /// The `Last-Modified` field.
    pub fn modified_field(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&http_date::format(self.modified?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
    }
}
