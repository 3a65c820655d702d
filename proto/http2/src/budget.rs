//! Budgets against floods (S20 to S25): tokens that useless frames spend, that useful work and time give back.

use std::time::Instant;

/// A bucket of tokens.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u32,
    max: u32,
    /// Tokens that a second gives back.
    per_second: u32,
    refilled: Instant,
}

impl Budget {
    pub(crate) fn new(max: u32, per_second: u32, now: Instant) -> Self {
        Budget { left: max, max, per_second, refilled: now }
    }

    /// Takes `tokens`; false when they are not there.
    pub(crate) fn spend(&mut self, tokens: u32, now: Instant) -> bool {
        if self.left < tokens {
            self.refill(now);
        }
        match self.left.checked_sub(tokens) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    pub(crate) fn earn(&mut self, tokens: u32) {
        self.left = self.left.saturating_add(tokens).min(self.max);
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.refilled).as_millis();
        let earned = elapsed.saturating_mul(u128::from(self.per_second)) / 1000;
        if earned > 0 {
            self.refilled = now;
            self.earn(u32::try_from(earned).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests are the driver.
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn time_and_work_give_tokens_back_up_to_the_maximum() {
        let start = Instant::now();
        let mut budget = Budget::new(3, 10, start);
        assert!(budget.spend(3, start));
        assert!(!budget.spend(1, start));
        budget.earn(1);
        assert!(budget.spend(1, start));
        assert!(!budget.spend(1, start + Duration::from_millis(99)));
        assert!(budget.spend(1, start + Duration::from_millis(100)));
        assert!(budget.spend(3, start + Duration::from_secs(9)));
        assert!(!budget.spend(1, start + Duration::from_secs(9)));
    }
}
