//! The page that lists a directory.

use std::cmp::Ordering;
use std::ffi::{CStr, CString};
use std::fmt::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::calendar::Moment;
use crate::page;
use crate::path::{FilePath, encode_segment};
use crate::root::{self, Root};

/// How many entries a page shows, 10,000: each costs a system call and about 250 bytes, and the loop waits.
pub const PAGE: usize = 10_000;

/// How many names of a directory are looked at, 200,000: to be put in order they have to be in memory all at once.
const MOST_NAMES: usize = 200_000;

/// One line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, any bytes.
    pub name: Vec<u8>,
    /// Whether it is a directory.
    pub directory: bool,
    /// Its length in bytes, of a file.
    pub length: u64,
    /// When it changed, in seconds since 1970.
    pub modified: i64,
}

/// A page of what a directory holds, as far as it is served, in the order it is shown.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Directories first, then by name, numbers in a name by their value.
    pub entries: Vec<Entry>,
    /// Which page this is, from 1.
    pub page: usize,
    /// How many there are.
    pub pages: usize,
    /// Whether the directory holds more than can be put in order.
    pub cut: bool,
}

impl Listing {
    /// Reads a page, of [`PAGE`] entries, of a directory that was opened at `path`. What a request for it would not be
    /// answered with is left out: FIFOs and the like, links that lead nowhere or outside, hidden names unless `hidden`.
    ///
    /// # Errors
    /// When the directory cannot be read, and `NOENT` when it has no such page.
    pub fn read(
        root: &Root,
        path: &FilePath,
        directory: OwnedFd,
        hidden: bool,
        page: usize,
    ) -> Result<Self, Errno> {
        let mut directory = Dir::new(directory)?;
        let (mut names, cut) = read_names(&mut directory, hidden)?;
        let pages = names.len().div_ceil(PAGE).max(1);
        if page == 0 || page > pages {
            return Err(Errno::NOENT);
        }
        if pages > 1 {
            names.sort_by(|a, b| order((a.1, a.0.to_bytes()), (b.1, b.0.to_bytes())));
        }
        let mut entries = Vec::with_capacity(names.len().min(PAGE));
        for (name, _) in names.into_iter().skip((page - 1) * PAGE).take(PAGE) {
            entries.extend(entry(root, path, &directory, &name));
        }
        entries.sort_by(|a, b| order((a.directory, &a.name), (b.directory, &b.name)));
        Ok(Listing { entries, page, pages, cut })
    }

    /// Draws the page.
    pub fn to_html(&self, path: &FilePath) -> String {
        let mut page = String::with_capacity(4096 + self.entries.len() * 256);
        page::begin(&mut page, &format!("Index of {}", shown_path(path)));
        page.push_str(DECORATION);
        write_heading(path, &mut page);
        page.push_str("<table>\n<thead><tr><th>Name<th>Size<th>Modified (UTC)</thead>\n<tbody>\n");
        if path.segments().next().is_some() {
            page.push_str("<tr><td>");
            page.push_str(ICON_UP);
            page.push_str("<a href=\"../\">Parent folder</a><td><td>\n");
        }
        for entry in &self.entries {
            write_entry(entry, &mut page);
        }
        page.push_str("</tbody>\n</table>\n");
        self.write_footer(&mut page);
        page.push_str("</html>\n");
        page
    }

    fn write_footer(&self, page: &mut String) {
        let folders = self.entries.iter().filter(|entry| entry.directory).count();
        let files = self.entries.len() - folders;
        let bytes = self.entries.iter().filter(|entry| !entry.directory).map(|entry| entry.length).sum();
        page.push_str("<footer>");
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let counts = match (folders, files) {
            (0, 0) => "This folder is empty".to_owned(),
            (folders, 0) => format!("{folders} folder{}", plural(folders)),
            (0, files) => format!("{files} file{}, {}", plural(files), shown_length(bytes)),
            (folders, files) => format!(
                "{folders} folder{}, {files} file{}, {}",
                plural(folders),
                plural(files),
                shown_length(bytes)
            ),
        };
        page.push_str(&counts);
        if self.pages > 1 {
            let _ = write!(page, " on page {} of {}", self.page, self.pages);
            self.write_turns(page);
        }
        if self.cut {
            let _ =
                write!(page, "<br>The folder holds more than {MOST_NAMES} entries, of which these are some.");
        }
        page.push_str("</footer>\n");
    }

    /// Links to the pages before and behind.
    fn write_turns(&self, page: &mut String) {
        page.push_str("<nav>");
        if self.page > 1 {
            let _ = write!(page, "<a rel=\"prev\" href=\"?page={}\">Previous page</a>", self.page - 1);
        }
        if self.page < self.pages {
            let _ = write!(page, "<a rel=\"next\" href=\"?page={}\">Next page</a>", self.page + 1);
        }
        page.push_str("</nav>");
    }
}

/// The names that are not hidden, with what the directory itself tells of being a directory; and whether there are more.
fn read_names(directory: &mut Dir, hidden: bool) -> Result<(Vec<(CString, bool)>, bool), Errno> {
    let mut names = Vec::new();
    while let Some(found) = directory.read() {
        let found = found?;
        let name = found.file_name();
        let bytes = name.to_bytes();
        if bytes == b"." || bytes == b".." || (!hidden && bytes.starts_with(b".")) {
            continue;
        }
        if names.len() == MOST_NAMES {
            return Ok((names, true));
        }
        names.push((name.to_owned(), found.file_type() == FileType::Directory));
    }
    Ok((names, false))
}

/// The line of a name, if a request for it would be answered.
fn entry(root: &Root, path: &FilePath, directory: &Dir, name: &CStr) -> Option<Entry> {
    let mut stat = root::stat_entry(directory.fd().ok()?, name).ok()?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        stat = root.stat(&path.join(name.to_bytes())).ok()?;
    }
    let kind = FileType::from_raw_mode(stat.st_mode);
    (kind == FileType::Directory || kind == FileType::RegularFile).then(|| Entry {
        name: name.to_bytes().to_vec(),
        directory: kind == FileType::Directory,
        length: u64::try_from(stat.st_size).unwrap_or(0),
        #[allow(clippy::useless_conversion, reason = "the type differs between systems")]
        modified: i64::from(stat.st_mtime),
    })
}

/// Directories first, then by name.
fn order(a: (bool, &[u8]), b: (bool, &[u8])) -> Ordering {
    b.0.cmp(&a.0).then_with(|| natural_order(a.1, b.1))
}

/// The style of the table, and the icons that its rows refer to.
const DECORATION: &str = "<style>\
table{border-collapse:collapse;width:100%}\
th{color:var(--dim);font-size:.8rem;font-weight:500;text-align:left;padding:.35rem .75rem}\
td{border-top:1px solid var(--line);padding:.4rem .75rem;overflow-wrap:anywhere}\
td:first-child{padding-left:2.38rem;text-indent:-1.65rem}\
h1,footer{padding:0 .75rem}\
tbody tr:hover{background:var(--hover)}\
th:nth-child(n+2),td:nth-child(n+2){text-align:right;white-space:nowrap;color:var(--dim);\
font-variant-numeric:tabular-nums;width:1%}\
svg{width:1.05em;height:1.05em;margin-right:.6em;vertical-align:-.16em;fill:none;stroke:var(--dim);\
stroke-width:1.4;stroke-linejoin:round;stroke-linecap:round}\
svg.folder{fill:var(--link);fill-opacity:.18;stroke:var(--link)}\
nav{margin-top:.5rem}nav a{margin-right:1.25rem}\
h1 .slash{color:var(--dim);margin:0 .3em}\
@media(max-width:36rem){th:nth-child(3),td:nth-child(3){display:none}}\
</style>
<svg style=\"display:none\"><symbol id=\"d\" viewBox=\"0 0 16 16\">\
<path d=\"M1.5 12.5v-9h4.2l1.6 2h7.2v7z\"/></symbol>\
<symbol id=\"f\" viewBox=\"0 0 16 16\"><path d=\"M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3\"/></symbol>\
<symbol id=\"u\" viewBox=\"0 0 16 16\"><path d=\"M8 13V3.5M4 7l4-4 4 4\"/></symbol></svg>
";
const ICON_FOLDER: &str = "<svg class=\"folder\" aria-hidden=\"true\"><use href=\"#d\"/></svg>";
const ICON_FILE: &str = "<svg aria-hidden=\"true\"><use href=\"#f\"/></svg>";
const ICON_UP: &str = "<svg aria-hidden=\"true\"><use href=\"#u\"/></svg>";

/// The heading: each folder on the way is a link, relative, so that it holds behind a proxy as well.
fn write_heading(path: &FilePath, page: &mut String) {
    let depth = path.segments().count();
    page.push_str("<h1>Index of ");
    if depth == 0 {
        page.push_str("/</h1>\n");
        return;
    }
    for _ in 0..depth {
        page.push_str(if page.ends_with("Index of ") { "<a href=\"../" } else { "../" });
    }
    page.push_str("\">/</a>");
    for (place, name) in path.segments().enumerate() {
        let above = depth - place - 1;
        if above > 0 {
            page.push_str("<a href=\"");
            page.extend(std::iter::repeat_n("../", above));
            page.push_str("\">");
        }
        write_name(name, page);
        if above > 0 {
            page.push_str("</a><span class=\"slash\">/</span>");
        }
    }
    page.push_str("</h1>\n");
}

fn write_entry(entry: &Entry, page: &mut String) {
    page.push_str("<tr><td>");
    page.push_str(if entry.directory { ICON_FOLDER } else { ICON_FILE });
    page.push_str("<a href=\"");
    encode_segment(&entry.name, page);
    let slash = if entry.directory { "/" } else { "" };
    page.push_str(slash);
    page.push_str("\">");
    write_name(&entry.name, page);
    page.push_str(slash);
    page.push_str("</a><td>");
    if !entry.directory {
        page.push_str(&shown_length(entry.length));
    }
    let Moment { year, month, day, hour, minute, .. } = Moment::from_unix(entry.modified);
    let _ = writeln!(page, "<td>{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}");
}

/// A name as text. Isolated, so that one written from right to left does not turn its row around.
fn write_name(name: &[u8], page: &mut String) {
    page.push_str("<bdi>");
    page::escape(&String::from_utf8_lossy(name), page);
    page.push_str("</bdi>");
}

fn shown_path(path: &FilePath) -> String {
    let mut shown = String::from("/");
    for name in path.segments() {
        shown.push_str(&String::from_utf8_lossy(name));
        shown.push('/');
    }
    shown
}

/// A length for people, with two or three digits.
fn shown_length(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mut amount = bytes as f64 / 1024.0;
    let mut unit = "KiB";
    for larger in UNITS {
        unit = larger;
        if amount < 999.5 {
            break;
        }
        amount /= 1024.0;
    }
    if amount < 9.95 { format!("{amount:.1} {unit}") } else { format!("{amount:.0} {unit}") }
}

/// Compares names without regard to case, runs of digits by their value: `page2` comes before `page10`.
fn natural_order(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let order = match (left, right) {
            ([], []) => return a.cmp(b),
            ([x, ..], [y, ..]) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let (x, behind_x) = split_number(left);
                let (y, behind_y) = split_number(right);
                (left, right) = (behind_x, behind_y);
                x.len().cmp(&y.len()).then_with(|| x.cmp(y))
            }
            ([x, behind_x @ ..], [y, behind_y @ ..]) => {
                (left, right) = (behind_x, behind_y);
                x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase())
            }
            (shorter, longer) => return shorter.len().cmp(&longer.len()),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The digits at the front, without leading zeros, and what is behind them.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (mut digits, behind) = text.split_at_checked(end).unwrap_or((text, &[]));
    while let [b'0', rest @ ..] = digits {
        digits = rest;
    }
    (digits, behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_order_them() {
        let mut names: Vec<&[u8]> =
            vec![b"b", b"page10", b"Page2", b"a", b"page02", b"B", b"page", b"10", b"9", b"", b"\xff"];
        names.sort_by(|a, b| natural_order(a, b));
        let expected: Vec<&[u8]> =
            vec![b"", b"9", b"10", b"a", b"B", b"b", b"page", b"Page2", b"page02", b"page10", b"\xff"];
        assert_eq!(names, expected);
    }

    #[test]
    fn lengths_are_short() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"),
            (1023 * 1024, "1.0 MiB"),
            (1024 * 1024, "1.0 MiB"),
            (5_000_000_000, "4.7 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(shown_length(bytes), shown);
        }
    }

    #[test]
    fn hostile_names_stay_text_and_links_lead_to_them() {
        let listing = Listing {
            entries: vec![Entry {
                name: b"\"><script>x</script>.txt".to_vec(),
                directory: false,
                length: 1,
                modified: 0,
            }],
            page: 2,
            pages: 3,
            cut: true,
        };
        let path = FilePath::parse("/%3Cb%3E/javascript:x/").unwrap();
        let html = listing.to_html(&path);
        assert!(!html.contains("<script>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("href=\"%22%3E%3Cscript%3Ex%3C%2Fscript%3E.txt\""), "{html}");
        assert!(html.contains("<a href=\"../../\">/</a><a href=\"../\"><bdi>&lt;b&gt;</bdi></a>"), "{html}");
        assert!(html.contains("1970-01-01 00:00"), "{html}");
        assert!(html.contains("1 file, 1 B on page 2 of 3<nav><a rel=\"prev\" href=\"?page=1\">"), "{html}");
        assert!(html.contains("<a rel=\"next\" href=\"?page=3\">Next page</a></nav>"), "{html}");
        assert!(html.contains("The folder holds more than 200000 entries"), "{html}");
    }
}
