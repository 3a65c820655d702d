//! The service: a request in, an answer with a file, a part of one, or a page out.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use hyperman::SendFile;
use tower_service::Service;

use crate::body::FileBody;
use crate::coding::{self, Coding};
use crate::conditional::{self, Verdict};
use crate::listing::Listing;
use crate::media;
use crate::page;
use crate::path::{FilePath, encode_segment};
use crate::range::{self, ByteRange, Selection};
use crate::refusal::Refusal;
use crate::root::{Found, FoundFile, OpenError, Root};
use crate::validators::Validators;

/// From which length on a file is sent by the kernel, 64 KiB. A smaller one is read, so that it leaves in one write
/// with its head.
pub const SENDFILE_FROM: u64 = 64 * 1024;

const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// What the service does beyond sending files.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The names that are looked for in a directory, the first found is sent. Default `index.html`.
    pub indexes: Vec<String>,
    /// Whether a directory without an index file is listed. Default no.
    pub list: bool,
    /// Whether names with a leading dot are served. Default no; `/.well-known` always is.
    pub hidden: bool,
    /// The `Cache-Control` field of every file.
    pub cache_control: Option<HeaderValue>,
    /// Fields of every answer. They take the place of the service's own.
    pub fields: Vec<(HeaderName, HeaderValue)>,
}

impl Default for FileOptions {
    fn default() -> Self {
        FileOptions {
            indexes: vec!["index.html".to_owned()],
            list: false,
            hidden: false,
            cache_control: None,
            fields: Vec::new(),
        }
    }
}

/// Answers requests with the files of a folder. Clones share the folder.
#[derive(Clone, Debug)]
pub struct FileService {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: Root,
    options: FileOptions,
}

impl<B> Service<Request<B>> for FileService {
    type Response = Response<FileBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<FileBody>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(request.method(), request.uri(), request.headers())))
    }
}

impl FileService {
    /// Serves `root`.
    pub fn new(root: Root, options: FileOptions) -> Self {
        FileService { shared: Arc::new(Shared { root, options }) }
    }

    /// The answer to a request's head. Its file is opened in this call, and read while the body is polled.
    pub fn answer(&self, method: &Method, target: &Uri, fields: &HeaderMap) -> Response<FileBody> {
        let mut answer = match *method {
            Method::GET => self.find(target, fields, true),
            Method::HEAD => self.find(target, fields, false).map(without_body),
            Method::OPTIONS => Ok(options()),
            // RFC 9110 §9.1 has two statuses for what is known and not allowed, and for what is not known.
            Method::POST | Method::PUT | Method::DELETE | Method::PATCH | Method::TRACE | Method::CONNECT => {
                Err(Refusal::Method)
            }
            _ => Err(Refusal::UnknownMethod),
        }
        .unwrap_or_else(|refusal| {
            let page = refused(refusal, fields);
            if *method == Method::HEAD { without_body(page) } else { page }
        });
        set_all(answer.headers_mut(), &self.shared.options.fields);
        answer
    }

    fn find(&self, target: &Uri, fields: &HeaderMap, get: bool) -> Result<Response<FileBody>, Refusal> {
        let path = FilePath::parse(target.path())?;
        if path.is_hidden() && !self.shared.options.hidden {
            return Err(OpenError::NotFound.into());
        }
        if path.is_directory() {
            return self.directory(&path, target.query(), fields, get);
        }
        match self.shared.root.find(&path) {
            Ok(Found::File(found)) => self.file(&path, found, fields, get),
            Ok(Found::Directory(_)) => Ok(add_slash(&path, target)),
            // A directory that may be entered but not read can still have an index.
            Err(OpenError::Denied) if self.shared.root.is_directory(&path) => Ok(add_slash(&path, target)),
            Err(error) => Err(error.into()),
        }
    }

    fn directory(
        &self,
        path: &FilePath,
        query: Option<&str>,
        fields: &HeaderMap,
        get: bool,
    ) -> Result<Response<FileBody>, Refusal> {
        let Shared { root, options } = &*self.shared;
        for index in &options.indexes {
            let index = path.join(index.as_bytes());
            match root.find(&index) {
                Ok(Found::File(found)) => return self.file(&index, found, fields, get),
                Ok(Found::Directory(_)) | Err(OpenError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match root.find(path)? {
            Found::File(_) => Err(OpenError::NotFound.into()),
            Found::Directory(directory) if options.list => {
                let listing = Listing::read(root, path, directory, options.hidden, page_asked_for(query));
                Ok(listed(&listing.map_err(OpenError::from)?, path))
            }
            Found::Directory(_) => Err(Refusal::NoIndex),
        }
    }

    /// Chooses the form of a file, then what of it to send.
    fn file(
        &self,
        path: &FilePath,
        found: FoundFile,
        fields: &HeaderMap,
        get: bool,
    ) -> Result<Response<FileBody>, Refusal> {
        let media = media::of_name(path.name());
        let (found, coding) = self.choose_form(path, found, media.compressible, fields)?;
        let validators = Validators::of(&found.facts, SystemTime::now());
        match conditional::evaluate(fields, &validators) {
            Verdict::Proceed => {}
            Verdict::Failed => return Err(Refusal::Precondition),
            Verdict::NotModified => {
                let mut answer = Response::new(FileBody::empty());
                *answer.status_mut() = StatusCode::NOT_MODIFIED;
                self.describe_state(answer.headers_mut(), &validators, media.compressible);
                return Ok(answer);
            }
        }
        // RFC 9110 §14.2: Range has a meaning for GET alone.
        let selection = if get && conditional::range_applies(fields, &validators) {
            range::select(fields, found.facts.length)
        } else {
            Selection::Whole
        };
        let mut answer = send(found, selection, media.name)?;
        let headers = answer.headers_mut();
        self.describe_state(headers, &validators, media.compressible);
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(token) = coding.token() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(token));
        }
        Ok(answer)
    }

    fn choose_form(
        &self,
        path: &FilePath,
        found: FoundFile,
        compressible: bool,
        fields: &HeaderMap,
    ) -> Result<(FoundFile, Coding), Refusal> {
        for form in coding::accepted(fields) {
            if form == Coding::Identity {
                return Ok((found, form));
            }
            if compressible
                && let Ok(Found::File(sibling)) = self.shared.root.find(&path.with_suffix(form.suffix()))
                && !sibling.facts.is_older_than(&found.facts)
            {
                return Ok((sibling, form));
            }
        }
        Err(Refusal::NotAcceptable)
    }

    /// The fields that a 304 has in common with the answer it stands for (RFC 9110 §15.4.5).
    fn describe_state(&self, headers: &mut HeaderMap, validators: &Validators, negotiated: bool) {
        if let Some(etag) = validators.etag_field() {
            headers.insert(ETAG, etag);
        }
        if let Some(modified) = validators.modified_field() {
            headers.insert(LAST_MODIFIED, modified);
        }
        // Also where no sibling lies beside the file yet: a cache must ask again once there is one.
        if negotiated {
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        if let Some(cache_control) = &self.shared.options.cache_control {
            headers.insert(CACHE_CONTROL, cache_control.clone());
        }
    }
}

/// The selected part of a file.
fn send(found: FoundFile, selection: Selection, media: &'static str) -> Result<Response<FileBody>, Refusal> {
    let FoundFile { file, facts } = found;
    let file = Arc::new(file);
    let (status, ranges) = match selection {
        Selection::Unsatisfiable => return Err(Refusal::Range(facts.length)),
        Selection::Whole => (StatusCode::OK, vec![ByteRange { start: 0, end: facts.length }]),
        Selection::Single(range) => (StatusCode::PARTIAL_CONTENT, vec![range]),
        Selection::Several(ranges) => (StatusCode::PARTIAL_CONTENT, ranges),
    };
    let mut answer = Response::new(FileBody::empty());
    *answer.status_mut() = status;
    if let [range] = *ranges {
        if status == StatusCode::PARTIAL_CONTENT {
            set(answer.headers_mut(), CONTENT_RANGE, content_range(range, facts.length));
        }
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if range.length() >= SENDFILE_FROM {
            let file = Arc::clone(&file);
            answer.extensions_mut().insert(SendFile { file, offset: range.start, length: range.length() });
        }
        answer.body_mut().push_file(file, range);
        return Ok(answer);
    }
    let boundary = fresh_boundary();
    for range in ranges {
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: {media}\r\nContent-Range: {}\r\n\r\n",
            content_range(range, facts.length)
        );
        answer.body_mut().push_bytes(head);
        answer.body_mut().push_file(Arc::clone(&file), range);
    }
    answer.body_mut().push_bytes(format!("\r\n--{boundary}--\r\n"));
    set(answer.headers_mut(), CONTENT_TYPE, format!("multipart/byteranges; boundary={boundary}"));
    Ok(answer)
}

fn content_range(range: ByteRange, length: u64) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

/// A separator of 128 random bits, so that no file can be made to hold it.
fn fresh_boundary() -> String {
    use std::hash::{BuildHasher, RandomState};
    let draw = || RandomState::new().hash_one(SystemTime::now());
    format!("{:016x}{:016x}", draw(), draw())
}

/// The answer to OPTIONS, of a path or of the server as a whole (`*`).
fn options() -> Response<FileBody> {
    let mut answer = Response::new(FileBody::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer.headers_mut().insert(ALLOW, ALLOWED);
    answer
}

/// Sends the client to the same path with a slash behind it.
///
/// The address is relative to the request's and begins with `./`: no name of a directory can turn it into another
/// host's (`//host`) or another scheme's (`name:`). RFC 3986 §4.2.
fn add_slash(path: &FilePath, target: &Uri) -> Response<FileBody> {
    let mut location = String::from("./");
    encode_segment(path.name(), &mut location);
    location.push('/');
    if let Some(query) = target.query() {
        location.push('?');
        // All that the request's grammar lets through can stand here but for bytes beyond ASCII.
        for character in query.chars() {
            let mut bytes = [0; 4];
            match character.encode_utf8(&mut bytes) {
                ascii if ascii.is_ascii() => location.push(character),
                other => encode_segment(other.as_bytes(), &mut location),
            }
        }
    }
    let text = format!("This is a folder: {location}\n");
    let mut answer = Response::new(FileBody::from(text));
    *answer.status_mut() = StatusCode::MOVED_PERMANENTLY;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page::TEXT));
    set(answer.headers_mut(), LOCATION, location);
    answer
}

/// The page of a listing that a query asks for; the first, unless it says `page=` and a number.
fn page_asked_for(query: Option<&str>) -> usize {
    query.into_iter().flat_map(|query| query.split('&')).find_map(page_number).unwrap_or(1)
}

fn page_number(parameter: &str) -> Option<usize> {
    parameter.strip_prefix("page=")?.parse().ok()
}

fn listed(listing: &Listing, path: &FilePath) -> Response<FileBody> {
    let mut answer = Response::new(FileBody::from(listing.to_html(path)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page::HTML));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    protect(headers);
    answer
}

fn refused(refusal: Refusal, fields: &HeaderMap) -> Response<FileBody> {
    let (status, sentence) = refusal.describe();
    let (kind, text) = page::of_status(status, sentence, page::wants_html(fields));
    let mut answer = Response::new(FileBody::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    protect(headers);
    match refusal {
        Refusal::Method => drop(headers.insert(ALLOW, ALLOWED)),
        Refusal::NotAcceptable => drop(headers.append(VARY, HeaderValue::from_static("Accept-Encoding"))),
        // RFC 9110 §15.5.17: how long the file is now.
        Refusal::Range(length) => set(headers, CONTENT_RANGE, format!("bytes */{length}")),
        _ => {}
    }
    if let Some(trouble) = refusal.trouble() {
        answer.extensions_mut().insert(trouble);
    }
    answer
}

/// A page that is drawn here runs nothing, whatever a file name manages to be.
fn protect(headers: &mut HeaderMap) {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
}

/// The same head for HEAD: it says how long the body would have been (RFC 9110 §9.3.2).
fn without_body(answer: Response<FileBody>) -> Response<FileBody> {
    let (mut head, body) = answer.into_parts();
    let may_have_body = head.status != StatusCode::NOT_MODIFIED && head.status != StatusCode::NO_CONTENT;
    if may_have_body && let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    head.extensions.remove::<SendFile>();
    Response::from_parts(head, FileBody::empty())
}

/// Sets a field whose value was put together here. It can hold no byte that a field may not.
fn set(headers: &mut HeaderMap, name: HeaderName, value: String) {
    match HeaderValue::try_from(value) {
        Ok(value) => drop(headers.insert(name, value)),
        Err(error) => debug_assert!(false, "{name}: {error}"),
    }
}

/// Sets the owner's fields. The first of a name replaces what is there, the next stand beside it.
fn set_all(headers: &mut HeaderMap, fields: &[(HeaderName, HeaderValue)]) {
    for (place, (name, value)) in fields.iter().enumerate() {
        let again = fields.iter().take(place).any(|(earlier, _)| earlier == name);
        if again {
            headers.append(name, value.clone());
        } else {
            headers.insert(name, value.clone());
        }
    }
}
