//! Dates for people, in UTC: those of a listing and of a log line. HTTP's own dates are in
//! [`validators`](crate::validators).

/// A moment of the Gregorian calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// The hour, 0 to 23.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The second.
    pub second: u8,
}

const SECONDS_PER_DAY: i64 = 86_400;

/// Days in 400 years: after that many the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;

/// Days between 0000-03-01 and 1970-01-01. Years that begin in March have their odd day at the end.
const DAYS_TO_1970: i64 = 719_468;

impl Moment {
    /// The moment so many seconds after the start of 1970; before it for negative ones.
    pub fn from_unix(seconds: i64) -> Self {
        let days = seconds.div_euclid(SECONDS_PER_DAY) + DAYS_TO_1970;
        let within = seconds.rem_euclid(SECONDS_PER_DAY);
        let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
        // Leap days that have passed in the era: one in 4 years, none in 100, one in 400.
        let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (DAYS_PER_ERA - 1);
        let year_of_era = (day_of_era - leap_days) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // From March on, months have 31 and 30 days in a pattern of five: 153 days.
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let small = |number: i64| u8::try_from(number).unwrap_or(0);
        Moment {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month: small(month),
            day: small(day),
            hour: small(within / 3_600),
            minute: small(within / 60 % 60),
            second: small(within % 60),
        }
    }

    /// The English name of the month, in three letters.
    pub fn month_name(&self) -> &'static str {
        const NAMES: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        NAMES.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or("???")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments() {
        for (seconds, expected) in [
            (0, (1970, 1, 1, 0, 0, 0)),
            (-1, (1969, 12, 31, 23, 59, 59)),
            (784_111_777, (1994, 11, 6, 8, 49, 37)),
            (951_782_399, (2000, 2, 28, 23, 59, 59)),
            (951_782_400, (2000, 2, 29, 0, 0, 0)),
            (951_868_800, (2000, 3, 1, 0, 0, 0)),
            (1_709_164_800, (2024, 2, 29, 0, 0, 0)),
            (4_107_542_400, (2100, 3, 1, 0, 0, 0)),
            (253_402_300_799, (9999, 12, 31, 23, 59, 59)),
        ] {
            let m = Moment::from_unix(seconds);
            assert_eq!((m.year, m.month, m.day, m.hour, m.minute, m.second), expected, "{seconds}");
        }
        assert_eq!(Moment::from_unix(784_111_777).month_name(), "Nov");
    }
}
