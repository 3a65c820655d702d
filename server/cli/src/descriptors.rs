//! How many descriptors the program may have open: each connection takes one, and another for the file it is sent.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many are kept for everything else, 64: the listeners, the loop, the log, compressed siblings that are looked at.
const RESERVED: u64 = 64;

/// What a system may allow that refuses its own maximum, 10,240 (macOS, whose maximum says "no limit").
const MODEST: u64 = 10_240;

/// Raises this process's limit as far as it goes, and says what it is now; `None` stands for no limit.
///
/// The limit that a shell gives its programs (1,024 on most Linux systems) is for programs that use `select`.
pub fn raise_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = [limit.maximum, Some(MODEST)];
    for current in wanted.into_iter().filter(|wanted| is_more(*wanted, limit.current)) {
        if setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }).is_ok() {
            break;
        }
    }
    getrlimit(Resource::Nofile).current
}

fn is_more(one: Option<u64>, other: Option<u64>) -> bool {
    match (one, other) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(one), Some(other)) => one > other,
    }
}

/// For how many connections that many descriptors are enough, each of which is sent a file. At least one.
pub fn connections(descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else { return usize::MAX };
    usize::try_from(descriptors.saturating_sub(RESERVED) / 2).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_takes_two() {
        assert_eq!(connections(Some(1_024)), 480);
        assert_eq!(connections(Some(10)), 1);
        assert_eq!(connections(None), usize::MAX);
    }

    #[test]
    fn no_limit_is_more_than_any() {
        assert!(is_more(None, Some(u64::MAX)) && is_more(Some(2), Some(1)));
        assert!(!is_more(Some(1), Some(1)) && !is_more(None, None) && !is_more(Some(u64::MAX), None));
    }
}
