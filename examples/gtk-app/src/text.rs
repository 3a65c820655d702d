//! What people read: sizes, speeds, times, file names.

use std::time::Duration;

use gtk4::glib;
use hyperman_fetch::Url;

const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];

/// `3.1 of 8.0 MB`, or `3.1 MB` when nobody knows how much it will be.
pub(crate) fn amount(received: u64, total: Option<u64>) -> String {
    let unit = unit_of(total.unwrap_or(received));
    match total {
        Some(total) => format!("{} of {}", in_unit(received, unit), size_in(total, unit)),
        None => size_in(received, unit),
    }
}

/// `8.0 MB`.
pub(crate) fn size(bytes: u64) -> String {
    size_in(bytes, unit_of(bytes))
}

/// `2.4 MB/s`.
pub(crate) fn speed(bytes_per_second: f64) -> String {
    format!("{}/s", size(bytes_per_second as u64))
}

/// `40 s left`, `3 min left`.
pub(crate) fn time_left(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..60 => format!("{} s left", seconds.max(1)),
        seconds @ 60..3600 => format!("{} min left", seconds.div_ceil(60)),
        seconds => format!("{} h left", seconds.div_ceil(3600)),
    }
}

/// The file that a URL's body is kept in: its last segment, made harmless.
pub(crate) fn file_name(url: &Url) -> String {
    let segment = url.path().rsplit('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    let name = glib::Uri::unescape_string(segment, None);
    let name: String = name
        .as_deref()
        .unwrap_or(segment)
        .chars()
        .map(|char| if char == '/' || char.is_control() { '_' } else { char })
        .collect();
    // Neither hidden nor one of the two names that every folder has.
    match name.trim_start_matches('.').trim() {
        "" => url.host_str().unwrap_or("download").to_owned(),
        name => name.to_owned(),
    }
}

/// The same with a number before the extension, for the second file of a name: `map (2).png`.
pub(crate) fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.') {
        _ if number < 2 => name.to_owned(),
        Some((stem, extension)) if !stem.is_empty() => format!("{stem} ({number}).{extension}"),
        _ => format!("{name} ({number})"),
    }
}

/// The index of the largest unit that leaves at least one.
fn unit_of(bytes: u64) -> usize {
    (1..UNITS.len()).rev().find(|unit| bytes >= 1000_u64.pow(*unit as u32)).unwrap_or(0)
}

fn in_unit(bytes: u64, unit: usize) -> String {
    match unit {
        0 => bytes.to_string(),
        unit => format!("{:.1}", bytes as f64 / 1000_f64.powi(unit as i32)),
    }
}

fn size_in(bytes: u64, unit: usize) -> String {
    format!("{} {}", in_unit(bytes, unit), UNITS.get(unit).unwrap_or(&"bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_share_the_unit_of_the_whole() {
        assert_eq!(amount(3_140_000, Some(8_000_000)), "3.1 of 8.0 MB");
        assert_eq!(amount(12_000, Some(8_000_000_000)), "0.0 of 8.0 GB");
        assert_eq!(amount(12_300, None), "12.3 kB");
        assert_eq!(size(999), "999 bytes");
        assert_eq!(size(u64::MAX), "18446744.1 TB");
        assert_eq!(speed(2_440_000.0), "2.4 MB/s");
    }

    #[test]
    fn what_is_left_is_never_nothing() {
        assert_eq!(time_left(Duration::from_millis(200)), "1 s left");
        assert_eq!(time_left(Duration::from_secs(61)), "2 min left");
        assert_eq!(time_left(Duration::from_secs(7200)), "2 h left");
    }

    #[test]
    fn a_file_stays_in_its_folder() {
        let name = |url: &str| file_name(&Url::parse(url).expect("a URL"));
        assert_eq!(name("http://h/a/winter%20storm.jpg?size=2"), "winter storm.jpg");
        assert_eq!(name("http://h/a/folder/"), "folder");
        assert_eq!(name("http://h/..%2f..%2fetc%2fpasswd"), "_.._etc_passwd");
        assert_eq!(name("http://h/.bashrc"), "bashrc");
        assert_eq!(name("http://h/%0a"), "_");
        assert_eq!(name("http://h/"), "h");
        assert_eq!(numbered("map.png", 1), "map.png");
        assert_eq!(numbered("map.png", 2), "map (2).png");
        assert_eq!(numbered("README", 3), "README (3)");
    }
}
