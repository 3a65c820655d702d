//! What we read in a certificate ourselves: its serial number, its names and its last day (RFC 5280 §4.1).
//!
//! Whether a certificate is to be trusted is not decided here. What cannot be read is `None`, never a guess.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tags of DER (X.690 §8).
mod tag {
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const OID: u8 = 0x06;
    pub(super) const UTF8_STRING: u8 = 0x0c;
    pub(super) const PRINTABLE_STRING: u8 = 0x13;
    pub(super) const IA5_STRING: u8 = 0x16;
    pub(super) const UTC_TIME: u8 = 0x17;
    pub(super) const GENERALIZED_TIME: u8 = 0x18;
    pub(super) const BMP_STRING: u8 = 0x1e;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const SET: u8 = 0x31;
    /// `[0]`, around the version.
    pub(super) const VERSION: u8 = 0xa0;
}

/// The parts of a certificate.
pub(super) struct Certificate<'a> {
    serial: &'a [u8],
    issuer: &'a [u8],
    subject: &'a [u8],
    not_after: Date,
}

/// A moment in UTC. Its order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Date {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
}

impl<'a> Certificate<'a> {
    pub(super) fn parse(der: &'a [u8]) -> Option<Self> {
        let mut certificate = Reader(Reader(der).expect(tag::SEQUENCE)?);
        let mut fields = Reader(certificate.expect(tag::SEQUENCE)?);
        if fields.0.first() == Some(&tag::VERSION) {
            fields.expect(tag::VERSION)?;
        }
        let serial = fields.expect(tag::INTEGER)?;
        let _signature_algorithm = fields.expect(tag::SEQUENCE)?;
        let issuer = fields.expect(tag::SEQUENCE)?;
        let mut validity = Reader(fields.expect(tag::SEQUENCE)?);
        let _not_before = validity.date()?;
        let not_after = validity.date()?;
        let subject = fields.expect(tag::SEQUENCE)?;
        Some(Certificate { serial, issuer, subject, not_after })
    }

    /// In lower-case hexadecimal digits, as it stands there.
    pub(super) fn serial(&self) -> String {
        hexadecimal(self.serial)
    }

    pub(super) fn issuer(&self) -> Option<String> {
        name(self.issuer)
    }

    pub(super) fn subject(&self) -> Option<String> {
        name(self.subject)
    }

    pub(super) fn not_after(&self) -> Date {
        self.not_after
    }
}

impl Date {
    /// The clock's time. A clock that stands before 1970 counts as 1970.
    pub(super) fn now() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self::from_unix(seconds)
    }

    /// The Gregorian calendar, counted in eras of 400 years that begin on the first of March.
    fn from_unix(seconds: u64) -> Self {
        const ERA: u64 = 146_097;
        const FROM_YEAR_0_TO_1970: u64 = 719_468;
        let days = seconds / 86_400 + FROM_YEAR_0_TO_1970;
        let in_era = days % ERA;
        let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
        let day_of_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = days / ERA * 400 + year_of_era + u64::from(month <= 2);
        let small = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
        Date {
            year: u16::try_from(year).unwrap_or(u16::MAX),
            month: small(month),
            day: small(day_of_year - (153 * from_march + 2) / 5 + 1),
            hour: small(seconds / 3600 % 24),
            minute: small(seconds / 60 % 60),
            second: small(seconds % 60),
        }
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Date { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Reads one value of DER after the other.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next value's tag and content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let mut length = usize::from(first);
        if first >= 0x80 {
            // The long form. More than four bytes of length are no certificate's.
            let count = usize::from(first & 0x7f);
            if count == 0 || count > 4 {
                return None;
            }
            let (digits, behind) = rest.split_at_checked(count)?;
            length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
            rest = behind;
        }
        let (content, behind) = rest.split_at_checked(length)?;
        self.0 = behind;
        Some((tag, content))
    }

    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == wanted).map(|(_, content)| content)
    }

    /// RFC 5280 §4.1.2.5: in UTC, with seconds; years from 50 on are in the last century.
    fn date(&mut self) -> Option<Date> {
        let (tag, content) = self.next()?;
        let digits = content.strip_suffix(b"Z")?;
        let century = match tag {
            tag::UTC_TIME if digits.len() == 12 => None,
            tag::GENERALIZED_TIME if digits.len() == 14 => Some(number(digits.get(..2)?)?),
            _ => return None,
        };
        let two = |at: usize| number(digits.get(digits.len() - 12 + at..digits.len() - 10 + at)?);
        let year = two(0)?;
        let century = century.unwrap_or(if year >= 50 { 19 } else { 20 });
        Some(Date {
            year: u16::from(century) * 100 + u16::from(year),
            month: two(2)?,
            day: two(4)?,
            hour: two(6)?,
            minute: two(8)?,
            second: two(10)?,
        })
    }
}

fn number(digits: &[u8]) -> Option<u8> {
    std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?.parse().ok()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// A name in the form of RFC 4514: the last part first.
fn name(content: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    let mut sets = Reader(content);
    while !sets.0.is_empty() {
        let mut attributes = Reader(sets.expect(tag::SET)?);
        let mut part = String::new();
        while !attributes.0.is_empty() {
            if !part.is_empty() {
                part.push('+');
            }
            attribute(&mut Reader(attributes.expect(tag::SEQUENCE)?), &mut part)?;
        }
        parts.push(part);
    }
    parts.reverse();
    Some(parts.join(","))
}

fn attribute(reader: &mut Reader<'_>, out: &mut String) -> Option<()> {
    let kind = reader.expect(tag::OID)?;
    let raw = reader.0;
    let (tag, content) = reader.next()?;
    let short = SHORT_NAMES.iter().find(|(oid, _)| *oid == kind).map(|(_, name)| *name);
    match short {
        Some(short) => out.push_str(short),
        None => dotted(kind, out)?,
    }
    out.push('=');
    let text = match tag {
        tag::UTF8_STRING | tag::PRINTABLE_STRING | tag::IA5_STRING => {
            std::str::from_utf8(content).ok()?.into()
        }
        tag::BMP_STRING => {
            let units = content.chunks(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0xfffd,
            });
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect::<String>()
        }
        // RFC 4514 §2.4: what is no string is shown as its encoding.
        _ => {
            out.push('#');
            out.push_str(&hexadecimal(raw));
            return Some(());
        }
    };
    escape(&text, out);
    Some(())
}

/// The attribute types that RFC 4514 §3 names, and the three that certificates for people have besides.
const SHORT_NAMES: [(&[u8], &str); 11] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

/// An object identifier as numbers (X.690 §8.19). One whose numbers do not fit into 64 bits is none that we show.
fn dotted(oid: &[u8], out: &mut String) -> Option<()> {
    let mut arc: u64 = 0;
    let mut is_first = true;
    for &byte in oid {
        arc = arc.checked_mul(128)? | u64::from(byte & 0x7f);
        if byte >= 0x80 {
            continue;
        }
        if is_first {
            let top = (arc / 40).min(2);
            let _ = write!(out, "{top}.{}", arc - 40 * top);
        } else {
            let _ = write!(out, ".{arc}");
        }
        is_first = false;
        arc = 0;
    }
    let ended = oid.last().is_some_and(|last| *last < 0x80);
    ended.then_some(())
}

/// RFC 4514 §2.4. Control characters are written as digits, so that a name can go into a log line or a header field.
fn escape(text: &str, out: &mut String) {
    let last = text.chars().count().saturating_sub(1);
    for (place, character) in text.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => out.extend(['\\', character]),
            ' ' if place == 0 || place == last => out.push_str("\\ "),
            '#' if place == 0 => out.push_str("\\#"),
            _ if character.is_control() => {
                let mut utf8 = [0; 4];
                for byte in character.encode_utf8(&mut utf8).bytes() {
                    let _ = write!(out, "\\{byte:02X}");
                }
            }
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SerialNumber};

    use super::*;

    fn made(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.serial_number = Some(SerialNumber::from(vec![0x0a, 0xff, 0x01]));
        change(&mut parameters);
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn subject(change: impl FnOnce(&mut rcgen::DistinguishedName)) -> String {
        let der = made(|parameters| change(&mut parameters.distinguished_name));
        let parsed = Certificate::parse(&der).unwrap();
        assert_eq!(parsed.issuer(), parsed.subject(), "it signs itself");
        parsed.subject().unwrap()
    }

    #[test]
    fn names_are_shown_with_the_last_part_first() {
        let shown = subject(|name| {
            name.push(DnType::CountryName, "DE");
            name.push(DnType::OrganizationName, "Example");
            name.push(DnType::CommonName, "alice");
        });
        assert_eq!(shown, "CN=alice,O=Example,C=DE");
        assert_eq!(subject(|_| {}), "");
    }

    #[test]
    fn what_has_a_meaning_in_a_name_is_escaped() {
        for (text, shown) in [
            ("a, \"b\" + <c>;\\", "CN=a\\, \\\"b\\\" \\+ \\<c\\>\\;\\\\"),
            ("#1 ", "CN=\\#1\\ "),
            (" x", "CN=\\ x"),
            ("a\r\nX: y\u{85}é", "CN=a\\0D\\0AX: y\\C2\\85é"),
        ] {
            assert_eq!(subject(|name| name.push(DnType::CommonName, text)), shown);
        }
    }

    #[test]
    fn other_kinds_and_encodings_are_shown_too() {
        let bmp = DnValue::BmpString(rcgen::string::BmpString::try_from("Ünï").unwrap());
        assert_eq!(subject(|name| name.push(DnType::CommonName, bmp)), "CN=Ünï");
        let teletex = DnValue::TeletexString(rcgen::string::TeletexString::try_from("ab").unwrap());
        assert_eq!(subject(|name| name.push(DnType::CommonName, teletex)), "CN=#14026162");
        let custom = DnType::from_oid(&[2, 999, 3]);
        assert_eq!(subject(|name| name.push(custom, "x")), "2.999.3=x");
    }

    #[test]
    fn serial_number_and_last_day_are_read_in_both_forms_of_dates() {
        for (year, shown) in [(2049, "2049-12-31T00:00:00Z"), (2050, "2050-12-31T00:00:00Z")] {
            let der = made(|parameters| parameters.not_after = rcgen::date_time_ymd(year, 12, 31));
            let parsed = Certificate::parse(&der).unwrap();
            assert_eq!(
                (parsed.serial().as_str(), parsed.not_after().to_string().as_str()),
                ("0aff01", shown)
            );
        }
    }

    #[test]
    fn the_clock_becomes_a_date() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_174_385, "2026-12-02T01:19:45Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Date::from_unix(seconds).to_string(), shown);
        }
    }

    #[test]
    fn bytes_that_are_cut_or_changed_never_panic() {
        let der = made(|parameters| parameters.distinguished_name.push(DnType::CommonName, "alice"));
        for length in 0..der.len() {
            let parsed = Certificate::parse(&der[..length]);
            assert!(parsed.is_none(), "{length}");
        }
        for place in 0..der.len() {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = der.clone();
                changed[place] = byte;
                if let Some(parsed) = Certificate::parse(&changed) {
                    let _ = (parsed.subject(), parsed.issuer(), parsed.serial(), parsed.not_after());
                }
            }
        }
    }
}
