//! Which media type a file has, judged by the end of its name; and whether it gains by compression.

/// The type of a file whose name says nothing (RFC 9110 §8.3: better none or this than a guess).
const UNKNOWN: Media = Media { name: "application/octet-stream", compressible: true };

/// The media type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media {
    /// What the `Content-Type` field says.
    pub name: &'static str,
    /// Whether a compressed sibling may be smaller: false for formats that are compressed themselves.
    pub compressible: bool,
}

/// The media type of a file with this name (the last segment of a path). The case of letters does not matter.
pub fn of_name(name: &[u8]) -> Media {
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else { return of_bare_name(name) };
    let mut extension = [0; LONGEST];
    let Some(written) = name.get(dot + 1..).filter(|end| end.len() <= LONGEST) else { return UNKNOWN };
    let Some(lower) = extension.get_mut(..written.len()) else { return UNKNOWN };
    lower.copy_from_slice(written);
    lower.make_ascii_lowercase();
    let found = TYPES.binary_search_by(|(known, _, _)| known.as_bytes().cmp(lower));
    match found.ok().and_then(|place| TYPES.get(place)) {
        Some(&(_, name, compressible)) => Media { name, compressible },
        None => UNKNOWN,
    }
}

/// Files that by custom have no extension and are text.
fn of_bare_name(name: &[u8]) -> Media {
    let text = BARE_TEXT.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
    if text { Media { name: "text/plain; charset=utf-8", compressible: true } } else { UNKNOWN }
}

const BARE_TEXT: [&str; 9] =
    ["authors", "changelog", "changes", "copying", "dockerfile", "license", "makefile", "news", "readme"];

/// The longest extension in the table, in bytes.
const LONGEST: usize = 11;

/// Extension, type, compressible; sorted by extension. Text is declared to be UTF-8, what nearly every file is now;
/// formats that say their encoding themselves (XML, SVG) or have only one (JSON) carry no charset.
const TYPES: &[(&str, &str, bool)] = &[
    ("3gp", "video/3gpp", false),
    ("7z", "application/x-7z-compressed", false),
    ("aac", "audio/aac", false),
    ("aif", "audio/aiff", true),
    ("aiff", "audio/aiff", true),
    ("apk", "application/vnd.android.package-archive", false),
    ("apng", "image/apng", false),
    ("appcache", "text/cache-manifest; charset=utf-8", true),
    ("asc", "text/plain; charset=utf-8", true),
    ("atom", "application/atom+xml", true),
    ("avi", "video/x-msvideo", false),
    ("avif", "image/avif", false),
    ("bash", "text/plain; charset=utf-8", true),
    ("bat", "text/plain; charset=utf-8", true),
    ("bin", "application/octet-stream", true),
    ("bmp", "image/bmp", true),
    ("br", "application/octet-stream", false),
    ("bz2", "application/x-bzip2", false),
    ("c", "text/plain; charset=utf-8", true),
    ("cc", "text/plain; charset=utf-8", true),
    ("cfg", "text/plain; charset=utf-8", true),
    ("cjs", "text/javascript; charset=utf-8", true),
    ("conf", "text/plain; charset=utf-8", true),
    ("cpp", "text/plain; charset=utf-8", true),
    ("cs", "text/plain; charset=utf-8", true),
    ("css", "text/css; charset=utf-8", true),
    ("csv", "text/csv; charset=utf-8", true),
    ("cur", "image/vnd.microsoft.icon", true),
    ("cxx", "text/plain; charset=utf-8", true),
    ("deb", "application/vnd.debian.binary-package", false),
    ("diff", "text/x-diff; charset=utf-8", true),
    ("dmg", "application/x-apple-diskimage", false),
    ("doc", "application/msword", true),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", false),
    ("eot", "application/vnd.ms-fontobject", true),
    ("epub", "application/epub+zip", false),
    ("flac", "audio/flac", false),
    ("flv", "video/x-flv", false),
    ("geojson", "application/geo+json", true),
    ("gif", "image/gif", false),
    ("glb", "model/gltf-binary", true),
    ("gltf", "model/gltf+json", true),
    ("go", "text/plain; charset=utf-8", true),
    ("gpx", "application/gpx+xml", true),
    ("gz", "application/gzip", false),
    ("h", "text/plain; charset=utf-8", true),
    ("heic", "image/heic", false),
    ("heif", "image/heif", false),
    ("hpp", "text/plain; charset=utf-8", true),
    ("htm", "text/html; charset=utf-8", true),
    ("html", "text/html; charset=utf-8", true),
    ("ico", "image/vnd.microsoft.icon", true),
    ("ics", "text/calendar; charset=utf-8", true),
    ("ini", "text/plain; charset=utf-8", true),
    ("iso", "application/x-iso9660-image", true),
    ("jar", "application/java-archive", false),
    ("java", "text/plain; charset=utf-8", true),
    ("jfif", "image/jpeg", false),
    ("jpeg", "image/jpeg", false),
    ("jpg", "image/jpeg", false),
    ("js", "text/javascript; charset=utf-8", true),
    ("json", "application/json", true),
    ("jsonl", "application/jsonl", true),
    ("jsonld", "application/ld+json", true),
    ("jsx", "text/plain; charset=utf-8", true),
    ("jxl", "image/jxl", false),
    ("kt", "text/plain; charset=utf-8", true),
    ("less", "text/plain; charset=utf-8", true),
    ("lock", "text/plain; charset=utf-8", true),
    ("log", "text/plain; charset=utf-8", true),
    ("lua", "text/plain; charset=utf-8", true),
    ("m2ts", "video/mp2t", false),
    ("m3u8", "application/vnd.apple.mpegurl", true),
    ("m4a", "audio/mp4", false),
    ("m4v", "video/mp4", false),
    ("map", "application/json", true),
    ("markdown", "text/markdown; charset=utf-8", true),
    ("md", "text/markdown; charset=utf-8", true),
    ("mid", "audio/midi", true),
    ("mjs", "text/javascript; charset=utf-8", true),
    ("mk", "text/plain; charset=utf-8", true),
    ("mka", "audio/matroska", false),
    ("mkv", "video/matroska", false),
    ("mov", "video/quicktime", false),
    ("mp3", "audio/mpeg", false),
    ("mp4", "video/mp4", false),
    ("mpd", "application/dash+xml", true),
    ("mpeg", "video/mpeg", false),
    ("mpg", "video/mpeg", false),
    ("ndjson", "application/x-ndjson", true),
    ("odp", "application/vnd.oasis.opendocument.presentation", false),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet", false),
    ("odt", "application/vnd.oasis.opendocument.text", false),
    ("oga", "audio/ogg", false),
    ("ogg", "audio/ogg", false),
    ("ogv", "video/ogg", false),
    ("opus", "audio/ogg", false),
    ("otf", "font/otf", true),
    ("patch", "text/x-diff; charset=utf-8", true),
    ("pdf", "application/pdf", false),
    ("pem", "text/plain; charset=utf-8", true),
    ("php", "text/plain; charset=utf-8", true),
    ("pl", "text/plain; charset=utf-8", true),
    ("png", "image/png", false),
    ("ppt", "application/vnd.ms-powerpoint", true),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", false),
    ("ps", "application/postscript", true),
    ("py", "text/plain; charset=utf-8", true),
    ("rar", "application/vnd.rar", false),
    ("rb", "text/plain; charset=utf-8", true),
    ("rpm", "application/x-rpm", false),
    ("rs", "text/plain; charset=utf-8", true),
    ("rss", "application/rss+xml", true),
    ("rst", "text/plain; charset=utf-8", true),
    ("rtf", "application/rtf", true),
    ("scss", "text/plain; charset=utf-8", true),
    ("sfv", "text/plain; charset=utf-8", true),
    ("sh", "text/plain; charset=utf-8", true),
    ("sha256", "text/plain; charset=utf-8", true),
    ("sql", "application/sql", true),
    ("srt", "text/plain; charset=utf-8", true),
    ("svg", "image/svg+xml", true),
    ("svgz", "application/gzip", false),
    ("swift", "text/plain; charset=utf-8", true),
    ("tar", "application/x-tar", true),
    ("tex", "text/plain; charset=utf-8", true),
    ("text", "text/plain; charset=utf-8", true),
    ("tgz", "application/gzip", false),
    ("tif", "image/tiff", true),
    ("tiff", "image/tiff", true),
    ("toml", "application/toml", true),
    ("ts", "text/plain; charset=utf-8", true),
    ("tsv", "text/tab-separated-values; charset=utf-8", true),
    ("tsx", "text/plain; charset=utf-8", true),
    ("ttc", "font/collection", true),
    ("ttf", "font/ttf", true),
    ("txt", "text/plain; charset=utf-8", true),
    ("vcf", "text/vcard; charset=utf-8", true),
    ("vtt", "text/vtt; charset=utf-8", true),
    ("wasm", "application/wasm", true),
    ("wav", "audio/wav", true),
    ("weba", "audio/webm", false),
    ("webm", "video/webm", false),
    ("webmanifest", "application/manifest+json", true),
    ("webp", "image/webp", false),
    ("whl", "application/zip", false),
    ("wmv", "video/x-ms-wmv", false),
    ("woff", "font/woff", false),
    ("woff2", "font/woff2", false),
    ("xhtml", "application/xhtml+xml", true),
    ("xls", "application/vnd.ms-excel", true),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", false),
    ("xml", "application/xml", true),
    ("xsd", "application/xml", true),
    ("xsl", "application/xslt+xml", true),
    ("xspf", "application/xspf+xml", true),
    ("xz", "application/x-xz", false),
    ("yaml", "application/yaml", true),
    ("yml", "application/yaml", true),
    ("zip", "application/zip", false),
    ("zst", "application/zstd", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_its_longest_entry_is_known() {
        for pair in TYPES.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} before {}", pair[0].0, pair[1].0);
        }
        assert_eq!(TYPES.iter().map(|(extension, _, _)| extension.len()).max(), Some(LONGEST));
    }

    #[test]
    fn names_have_the_types_that_browsers_need() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.b.CSS", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("data.json", "application/json"),
            ("x.wasm", "application/wasm"),
            ("logo.svg", "image/svg+xml"),
            ("site.webmanifest", "application/manifest+json"),
            ("archive.tar.gz", "application/gzip"),
            ("Cargo.lock", "text/plain; charset=utf-8"),
            ("photo.HEIC", "image/heic"),
            ("movie.mp4", "video/mp4"),
            ("README", "text/plain; charset=utf-8"),
            ("noextension", "application/octet-stream"),
            ("ends.", "application/octet-stream"),
            ("x.anextensionthatislongerthananyknown", "application/octet-stream"),
            ("", "application/octet-stream"),
        ] {
            assert_eq!(of_name(name.as_bytes()).name, expected, "{name}");
        }
        assert_eq!(of_name(b"\xff\xfe.txt").name, "text/plain; charset=utf-8");
        assert_eq!(of_name(b"x.\xff\xfe").name, "application/octet-stream");
    }

    #[test]
    fn what_is_compressed_already_has_no_compressed_sibling() {
        assert!(!of_name(b"a.png").compressible);
        assert!(!of_name(b"a.tar.gz").compressible);
        assert!(of_name(b"a.svg").compressible);
        assert!(of_name(b"a").compressible);
    }
}
