//! The request that the command line asks for, the same for every URL.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Version};
use http_body::{Frame, SizeHint};
use hyperman_fetch::{Body, Client, IntoUrl as _, RequestBuilder, Url};
use hyperman_loop::Handle;

use crate::failure::Failure;
use crate::options::Options;
use crate::piped::Piped;

/// What is asked, whatever the URL.
pub(crate) struct Question {
    method: Method,
    headers: HeaderMap,
    omitted: Vec<HeaderName>,
    /// `-d` and its like.
    data: Option<Bytes>,
    into_query: bool,
    upload: Option<PathBuf>,
    version: Version,
}

impl Question {
    pub(crate) fn new(options: &Options) -> Result<Self, Failure> {
        let mut question = Question {
            method: Method::GET,
            headers: HeaderMap::new(),
            omitted: Vec::new(),
            data: data(options)?,
            into_query: options.get,
            upload: options.upload_file.clone(),
            version: if options.http1_0 { Version::HTTP_10 } else { Version::HTTP_11 },
        };
        question.method = question.method(options)?;
        question.fields(options)?;
        Ok(question)
    }

    fn method(&self, options: &Options) -> Result<Method, Failure> {
        match &options.method {
            Some(name) => Method::from_bytes(name.as_bytes())
                .map_err(|_| Failure::usage(format!("not a method: {}", name.escape_debug()))),
            None if options.head => Ok(Method::HEAD),
            None if self.upload.is_some() => Ok(Method::PUT),
            None if self.data.is_some() && !self.into_query => Ok(Method::POST),
            None => Ok(Method::GET),
        }
    }

    /// Fields out of options with a letter of their own first; `-H` has the last word.
    fn fields(&mut self, options: &Options) -> Result<(), Failure> {
        if let Some(name) = &options.user_agent {
            self.set(USER_AGENT, name)?;
        }
        if let Some(range) = &options.range {
            self.set(RANGE, &format!("bytes={range}"))?;
        }
        if !options.json.is_empty() {
            self.set(CONTENT_TYPE, "application/json")?;
            self.set(ACCEPT, "application/json")?;
        } else if self.data.is_some() && !self.into_query {
            self.set(CONTENT_TYPE, "application/x-www-form-urlencoded")?;
        }
        let mut own = HeaderMap::new();
        for line in &options.headers {
            self.field_line(line, &mut own)?;
        }
        self.headers.extend(own);
        Ok(())
    }

    fn set(&mut self, name: HeaderName, value: &str) -> Result<(), Failure> {
        if value.is_empty() {
            self.omitted.push(name);
            return Ok(());
        }
        let value = field_value(name.as_str(), value)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// One `-H`.
    fn field_line(&mut self, line: &str, own: &mut HeaderMap) -> Result<(), Failure> {
        let bad = || Failure::usage(format!("not a field: {}", line.escape_debug()));
        let (name, value) = match line.split_once(':') {
            Some((name, value)) => (name, value.trim()),
            None => (line.strip_suffix(';').ok_or_else(bad)?, ""),
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        if value.is_empty() && line.contains(':') {
            self.headers.remove(&name);
            if name != HOST {
                self.omitted.push(name);
            }
            return Ok(());
        }
        let mut value = field_value(name.as_str(), value)?;
        value.set_sensitive(name == AUTHORIZATION);
        own.append(name, value);
        Ok(())
    }

    /// The URL, complete.
    pub(crate) fn url(&self, text: &str) -> Result<Url, Failure> {
        let text = if has_scheme(text) { text.to_owned() } else { format!("http://{text}") };
        let mut url = Arc::unwrap_or_clone(text.into_url()?);
        if let Some(data) = self.data.as_ref().filter(|_| self.into_query) {
            let data = String::from_utf8_lossy(data);
            let query = match url.query() {
                Some(query) if !query.is_empty() => format!("{query}&{data}"),
                _ => data.into_owned(),
            };
            url.set_query(Some(&query));
        }
        if let Some(name) =
            self.upload.as_deref().filter(|_| url.path().ends_with('/')).and_then(Path::file_name)
            && name != "-"
        {
            let path = format!("{}{}", url.path(), name.to_string_lossy());
            url.set_path(&path);
        }
        Ok(url)
    }

    /// The request for one URL.
    pub(crate) fn request(
        &self,
        client: &Client<Handle>,
        options: &Options,
        url: Url,
    ) -> Result<RequestBuilder<Handle>, Failure> {
        let mut request = client.request(self.method.clone(), url).version(self.version);
        if let Some(user) = &options.user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            request = request.basic_auth(name, password);
        }
        request = request.headers(self.headers.clone());
        for name in &self.omitted {
            request = request.omit_header(name.clone());
        }
        if let Some(file) = &self.upload {
            request = request.body(upload(file)?);
        } else if let Some(data) = self.data.as_ref().filter(|_| !self.into_query) {
            request = request.body(data.clone());
        }
        Ok(request)
    }
}

/// Whether a scheme stands at the beginning (RFC 3986 §3.1), and not only in a query, say.
fn has_scheme(text: &str) -> bool {
    let is_scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.split_once("://").is_some_and(|(scheme, _)| scheme.bytes().all(is_scheme_byte))
}

fn field_value(name: &str, value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| Failure::usage(format!("not a value for {name}: {}", value.escape_debug())))
}

/// What `-d` and its like say, in the order of their kinds, joined as a form's fields are; JSON is joined by nothing.
fn data(options: &Options) -> Result<Option<Bytes>, Failure> {
    let mut joined = Vec::new();
    let mut add = |piece: Vec<u8>, separator: &[u8]| {
        if !joined.is_empty() {
            joined.extend_from_slice(separator);
        }
        joined.extend(piece);
    };
    for text in &options.data {
        let mut piece = text_or_file(text)?;
        if text.starts_with('@') {
            piece.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        }
        add(piece, b"&");
    }
    for text in &options.data_raw {
        add(text.clone().into_bytes(), b"&");
    }
    for text in &options.data_binary {
        add(text_or_file(text)?, b"&");
    }
    for text in &options.json {
        add(text_or_file(text)?, b"");
    }
    let kinds = [&options.data, &options.data_raw, &options.data_binary, &options.json];
    Ok(kinds.iter().any(|kind| !kind.is_empty()).then(|| joined.into()))
}

/// The text, or what the file after its `@` holds.
fn text_or_file(text: &str) -> Result<Vec<u8>, Failure> {
    let Some(name) = text.strip_prefix('@') else { return Ok(text.as_bytes().to_vec()) };
    let read = if name == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(name)
    };
    read.map_err(|error| Failure::reading(name, &error))
}

/// A file as a body that is read while it is sent.
fn upload(file: &Path) -> Result<Body, Failure> {
    if file.as_os_str() == OsStr::new("-") {
        let piped = Piped::new(io::stdin()).map_err(|error| Failure::reading("the standard input", &error));
        return piped.map(Body::stream);
    }
    let failed = |error: io::Error| Failure::reading(&file.to_string_lossy(), &error);
    let opened = File::open(file).map_err(failed)?;
    let metadata = opened.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        // Its length says nothing, and what was read of it does not come again.
        return Piped::new(opened).map_err(failed).map(Body::stream);
    }
    let (file, mut first) = (file.to_owned(), Some(opened));
    Ok(Body::repeatable(move || FileBody::of(first.take().map_or_else(|| File::open(&file), Ok))))
}

/// A regular file, whose reads wait for nobody.
struct FileBody {
    reader: io::Result<File>,
    /// The bytes that were announced and not given yet.
    left: u64,
}

impl FileBody {
    /// A regular file, as long as it is now; or why there is none any more.
    fn of(opened: io::Result<File>) -> FileBody {
        let known = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        match known {
            Ok((length, file)) => FileBody { reader: Ok(file), left: length },
            Err(error) => FileBody { reader: Err(error), left: 0 },
        }
    }
}

/// How much of a file is read at once.
const PIECE: usize = 64 << 10;

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        // A file that grows meanwhile is sent as long as it was announced.
        let most = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
        let mut piece = vec![0; most];
        let reader = match &mut self.reader {
            Ok(reader) => reader,
            Err(error) => return Poll::Ready(Some(Err(io::Error::new(error.kind(), error.to_string())))),
        };
        let count = loop {
            match reader.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
                Ok(count) => break count,
            }
        };
        if count == 0 {
            let short = self.left > 0;
            return Poll::Ready(short.then(|| Err(io::Error::other("the file became shorter"))));
        }
        piece.truncate(count);
        self.left = self.left.saturating_sub(count as u64);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
