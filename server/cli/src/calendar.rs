//! The Gregorian calendar, in UTC: what dates of a listing, of a log line and of HTTP are made of. How HTTP writes them
//! is in [`http_date`](crate::http_date).

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

    /// The seconds from the start of 1970 to this moment; `None` when the calendar has no such day or time.
    pub fn to_unix(&self) -> Option<i64> {
        let (month, day) = (i64::from(self.month), i64::from(self.day));
        let march_year = self.year - i64::from(month <= 2);
        let march_month = (month + 9) % 12;
        let year_of_era = march_year.rem_euclid(400);
        let day_of_year = (153 * march_month + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = march_year.div_euclid(400) * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
        let within = i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        let seconds = days * SECONDS_PER_DAY + within;
        (Moment::from_unix(seconds) == *self).then_some(seconds)
    }

    /// The English name of the month, in three letters.
    pub fn month_name(&self) -> &'static str {
        MONTHS.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or("???")
    }
}

/// The names of the months, January first.
pub const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

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
            assert_eq!(m.to_unix(), Some(seconds));
        }
        assert_eq!(Moment::from_unix(784_111_777).month_name(), "Nov");
    }

    #[test]
    fn what_the_calendar_does_not_have_is_no_moment() {
        let good = Moment::from_unix(951_782_400);
        for bad in [
            Moment { day: 30, ..good },
            Moment { day: 0, ..good },
            Moment { month: 13, ..good },
            Moment { month: 0, ..good },
            Moment { year: 1900, ..good },
            Moment { hour: 24, ..good },
            Moment { minute: 60, ..good },
            Moment { second: 60, ..good },
        ] {
            assert_eq!(bad.to_unix(), None, "{bad:?}");
        }
        assert!(Moment { year: 1904, ..good }.to_unix().is_some());
    }
}
