//! The dates of HTTP (RFC 9110 §5.6.7): one format is written, three are read.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::calendar::{MONTHS, Moment};

/// The last second that a date of HTTP can say: 9999-12-31 23:59:59.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// How many years ahead a year of two digits may be, 50 (RFC 9110 §5.6.7).
const MOST_YEARS_AHEAD: i64 = 50;

/// The names of the days, in the order in which 1970 had them.
const DAYS: [(&str, &str); 7] = [
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
];

/// Writes a moment, in seconds since 1970. What lies outside of 1970 to 9999 is brought to the nearest that does not.
pub fn format(seconds: i64) -> String {
    let seconds = seconds.clamp(0, LAST_SECOND);
    let moment = Moment::from_unix(seconds);
    let Moment { year, day, hour, minute, second, .. } = moment;
    let (month, day_name) = (moment.month_name(), day_name(seconds));
    format!("{day_name}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

fn day_name(seconds: i64) -> &'static str {
    let place = usize::try_from(seconds / 86_400 % 7).unwrap_or(0);
    DAYS.get(place).map_or("???", |(short, _)| short)
}

/// Reads a date in any of the three formats, in seconds since 1970; `None` for anything else. `now` says which century
/// a year of two digits is of.
///
/// The name of the day is not held against the date: what it says too much cannot make the rest wrong.
pub fn parse(text: &[u8], now: SystemTime) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let words: Vec<&str> = text.split(' ').collect();
    match *words.as_slice() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [name, day, month, year, time, "GMT"] if is_day(name.strip_suffix(',')?, short) => {
            moment(number(year, 4)?, month, number(day, 2)?, time)?.to_unix()
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        [name, date, time, "GMT"] if is_day(name.strip_suffix(',')?, long) => {
            let mut pieces = date.splitn(3, '-');
            let (day, month) = (number(pieces.next()?, 2)?, pieces.next()?);
            let year = number(pieces.next()?, 2)?;
            in_its_century(moment(year, month, day, time)?, now).to_unix()
        }
        // Sun Nov 16 08:49:37 1994
        [name, month, day, time, year] if is_day(name, short) => {
            moment(number(year, 4)?, month, number(day, 2)?, time)?.to_unix()
        }
        // Sun Nov  6 08:49:37 1994
        [name, month, "", day, time, year] if is_day(name, short) => {
            moment(number(year, 4)?, month, number(day, 1)?, time)?.to_unix()
        }
        _ => None,
    }
}

fn short(names: &(&'static str, &'static str)) -> &'static str {
    names.0
}

fn long(names: &(&'static str, &'static str)) -> &'static str {
    names.1
}

fn is_day(name: &str, form: fn(&(&'static str, &'static str)) -> &'static str) -> bool {
    DAYS.iter().any(|names| form(names) == name)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if right { text.parse().ok() } else { None }
}

fn moment(year: i64, month: &str, day: i64, time: &str) -> Option<Moment> {
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let mut pieces = time.splitn(3, ':');
    let mut small = || u8::try_from(number(pieces.next()?, 2)?).ok();
    let (hour, minute, second) = (small()?, small()?, small()?);
    // A leap second, which the seconds since 1970 do not count.
    let second = if second == 60 { 59 } else { second };
    Some(Moment {
        year,
        month: u8::try_from(month).ok()?,
        day: u8::try_from(day).ok()?,
        hour,
        minute,
        second,
    })
}

/// Gives a moment, whose year is of two digits, the latest century that does not put it more than 50 years ahead.
fn in_its_century(moment: Moment, now: SystemTime) -> Moment {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = Moment::from_unix(i64::try_from(now).unwrap_or(LAST_SECOND).min(LAST_SECOND));
    let within = |m: &Moment| (m.month, m.day, m.hour, m.minute, m.second);
    let latest = now.year + MOST_YEARS_AHEAD;
    let year = latest - (latest - moment.year).rem_euclid(100);
    let too_far = year == latest && within(&moment) > within(&now);
    Moment { year: if too_far { year - 100 } else { year }, ..moment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// 2026-12-02 15:58:10.
    const NOW: u64 = 1_796_227_090;

    fn read(text: &str) -> Option<i64> {
        parse(text.as_bytes(), UNIX_EPOCH + Duration::from_secs(NOW))
    }

    #[test]
    fn dates_are_written_in_one_format() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (-5, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_796_227_090, "Wed, 02 Dec 2026 15:58:10 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (i64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(format(seconds), text);
        }
    }

    #[test]
    fn three_formats_are_read() {
        for (text, seconds) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Wed Nov 16 08:49:37 1994", 784_975_777),
            ("Thu, 31 Dec 1998 23:59:60 GMT", 915_148_799),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Fri, 31 Dec 9999 23:59:59 GMT", LAST_SECOND),
        ] {
            assert_eq!(read(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_50_years_ahead() {
        for (text, year) in [
            ("Wednesday, 02-Dec-26 15:58:10 GMT", 2026),
            ("Thursday, 03-Dec-26 15:58:10 GMT", 2026),
            ("Monday, 01-Jan-70 00:00:00 GMT", 2070),
            ("Wednesday, 02-Dec-75 15:58:10 GMT", 2075),
            ("Wednesday, 02-Dec-76 15:58:10 GMT", 2076),
            ("Wednesday, 02-Dec-76 15:58:11 GMT", 1976),
            ("Saturday, 01-Jan-77 00:00:00 GMT", 1977),
            ("Friday, 31-Dec-99 00:00:00 GMT", 1999),
            ("Saturday, 01-Jan-00 00:00:00 GMT", 2000),
        ] {
            assert_eq!(read(text).map(|seconds| Moment::from_unix(seconds).year), Some(year), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_not_read() {
        for text in [
            "",
            "0",
            "yesterday",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37:00 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Wed, 30 Feb 2000 00:00:00 GMT",
            "Thu, 29 Feb 1900 00:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun,  06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  16 08:49:37 1994",
            "Sun Nov  6 08:49:37 94",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(parse(b"\xff\xfe", UNIX_EPOCH), None);
    }
}
