//! Where the body goes: a file, or the standard output, where a terminal is told apart.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyperman_fetch::Url;
use percent_encoding::percent_decode_str;

use crate::failure::Failure;
use crate::harmless::{harmless, one_line};
use crate::json::Indenter;
use crate::options::Options;

/// How much of a body is looked at before a terminal gets it.
const LOOKED_AT: usize = 2000;

/// Where one answer is written to.
pub(crate) struct Output {
    target: Target,
    name: String,
    indenter: Option<Indenter>,
    terminal: bool,
    /// How many bytes of the body are still to be looked at: what is not text would upset the terminal, and is refused.
    looks_at: usize,
    scratch: Vec<u8>,
}

enum Target {
    Stdout,
    /// Made when the first byte comes, so that a failure before leaves an older file alone.
    Unmade(PathBuf),
    File(File),
}

impl Output {
    /// The place for the body of the URL with this index.
    pub(crate) fn new(options: &Options, index: usize, url: &Url) -> Result<Self, Failure> {
        let path = match options.output.get(index) {
            Some(path) => Some(path.clone()),
            None if options.remote_name => Some(remote_name(url)?),
            None => None,
        };
        let explicit = path.is_some();
        let path = path.filter(|path| path.as_os_str() != "-");
        let name =
            path.as_deref().map_or("the standard output".into(), |path| one_line(&path.to_string_lossy()));
        let terminal = path.is_none() && io::stdout().is_terminal();
        Ok(Output {
            target: path.map_or(Target::Stdout, Target::Unmade),
            name,
            indenter: None,
            terminal,
            looks_at: if terminal && !explicit { LOOKED_AT } else { 0 },
            scratch: Vec::new(),
        })
    }

    /// Whether the body goes to a file.
    pub(crate) fn is_file(&self) -> bool {
        !matches!(self.target, Target::Stdout)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Shows JSON indented if it goes to a terminal.
    pub(crate) fn suit(&mut self, headers: &HeaderMap) {
        if self.terminal && is_json(headers) {
            self.indenter = Some(Indenter::new(std::env::var_os("NO_COLOR").is_none()));
        }
    }

    /// The heads of answers. A terminal is shown no controls of theirs.
    pub(crate) fn heads(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.terminal { self.raw(harmless(bytes).as_bytes()) } else { self.raw(bytes) }
    }

    /// A piece of the body.
    pub(crate) fn body(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let looked_at = bytes.get(..self.looks_at).unwrap_or(bytes);
        self.looks_at -= looked_at.len();
        if looked_at.contains(&0) {
            return Err(Failure::new(
                23,
                "the body is not text and might upset the terminal; use -o FILE, or -o - to see it all the same",
            ));
        }
        let Some(indenter) = &mut self.indenter else { return self.raw(bytes) };
        let mut shown = std::mem::take(&mut self.scratch);
        shown.clear();
        indenter.push(bytes, &mut shown);
        let outcome = self.raw(&shown);
        self.scratch = shown;
        outcome
    }

    /// The end of the body.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        if let Some(mut indenter) = self.indenter.take() {
            let mut end = Vec::new();
            indenter.finish(&mut end);
            self.raw(&end)?;
        }
        // An empty body makes an empty file.
        self.raw(b"")
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = match &mut self.target {
            Target::Stdout => write_stdout(bytes),
            Target::File(file) => file.write_all(bytes),
            Target::Unmade(path) => create(path).and_then(|mut file| {
                file.write_all(bytes)?;
                self.target = Target::File(file);
                Ok(())
            }),
        };
        written.map_err(|error| Failure::writing(&self.name, &error))
    }
}

/// Writes to the standard output, all the way.
pub(crate) fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// The last segment of the URL's path, decoded, as the name of a file here and nowhere else.
fn remote_name(url: &Url) -> Result<PathBuf, Failure> {
    let segment = url.path().rsplit('/').next().unwrap_or_default();
    // What cannot be typed or read stays encoded.
    let decoded = percent_decode_str(segment).decode_utf8().ok();
    let name = decoded.filter(|name| !name.chars().any(char::is_control)).unwrap_or(segment.into());
    // Once decoded, a name could lead to another directory.
    let plain = !name.is_empty() && name != "." && name != ".." && !name.contains('/');
    if plain { Ok(PathBuf::from(&*name)) } else { Err(Failure::new(23, "the URL names no file to write to")) }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(url: &str) -> Option<String> {
        let url = Url::parse(url).expect("a URL");
        remote_name(&url).ok().map(|path| path.to_string_lossy().into_owned())
    }

    #[test]
    fn remote_names_stay_in_this_directory() {
        assert_eq!(name("http://a/x/y%20z.html?q=/w"), Some("y z.html".to_owned()));
        for (url, expected) in
            [("http://a/x%00", "x%00"), ("http://a/%1b%5b31m", "%1b%5b31m"), ("http://a/%ff", "%ff")]
        {
            assert_eq!(name(url), Some(expected.to_owned()), "{url}");
        }
        for url in ["http://a/", "http://a/x/", "http://a/..%2f..%2fetc%2fpasswd", "http://a/%2e%2e"] {
            assert_eq!(name(url), None, "{url}");
        }
    }

    #[test]
    fn json_is_known_by_its_media_type() {
        for (media_type, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/problem+json", true),
            ("text/html", false),
            ("application/jsonp", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, media_type.parse().expect("a value"));
            assert_eq!(is_json(&headers), json, "{media_type}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
