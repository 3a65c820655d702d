//! The request log: a service around a service that writes one line per request, once its answer has left or was
//! given up, and lines for the requests that no service hears of.

use std::fmt::Write;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Buf;
use http::header::{HeaderName, REFERER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyperman::{OnRefusal, Refusal, SendFile, SendProgress};
use hyperman_transport::PeerAddr;
use tower_service::Service;

use crate::calendar::Moment;
use crate::lines::Lines;
use crate::refusal::Trouble;

/// How a request is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// The Common Log Format, and the milliseconds that the answer took.
    #[default]
    Common,
    /// The Combined Log Format with nothing added, as log analysers read it.
    Combined,
    /// One JSON object per line.
    Json,
}

/// Logs each request to the service inside.
#[derive(Clone, Debug)]
pub struct AccessLog<S> {
    inner: S,
    lines: Lines,
    format: LogFormat,
}

impl<S> AccessLog<S> {
    /// Logs the requests to `inner`.
    pub fn new(inner: S, lines: Lines, format: LogFormat) -> Self {
        AccessLog { inner, lines, format }
    }

    /// Logs the requests that are refused before they reach a service.
    pub fn refusals(&self) -> OnRefusal {
        let (lines, format) = (self.lines.clone(), self.format);
        OnRefusal::new(move |refusal| {
            let mut line = String::with_capacity(256);
            // Writing to a string does not fail.
            let _ = match format {
                LogFormat::Json => refused_json(&mut line, refusal),
                _ => refused_common(&mut line, refusal, format),
            };
            lines.push(line.as_bytes());
        })
    }
}

impl<S, B> Service<Request<hyperman::Body>> for AccessLog<S>
where
    S: Service<Request<hyperman::Body>, Response = Response<B>>,
    S::Future: Unpin,
{
    type Response = Response<LoggedBody<B>>;
    type Error = S::Error;
    type Future = Logged<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<hyperman::Body>) -> Self::Future {
        let entry = Entry::begin(&request, request.body().peer_addr(), self.format, &self.lines);
        Logged { inner: self.inner.call(request), entry: Some(entry) }
    }
}

/// The future of [`AccessLog`].
#[derive(Debug)]
pub struct Logged<F> {
    inner: F,
    entry: Option<Entry>,
}

impl<F, B, E> Future for Logged<F>
where
    F: Future<Output = Result<Response<B>, E>> + Unpin,
{
    type Output = Result<Response<LoggedBody<B>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut answer = ready!(Pin::new(&mut self.inner).poll(cx))?;
        let entry = self.entry.take().map(|mut entry| {
            entry.status = answer.status();
            entry.trouble = answer.extensions().get::<Trouble>().cloned();
            Arc::new(entry)
        });
        // What the kernel sends does not pass through the body.
        if let Some(entry) = &entry
            && answer.extensions().get::<SendFile>().is_some()
        {
            let entry = Arc::clone(entry);
            answer.extensions_mut().insert(SendProgress::new(move |bytes| entry.count(bytes)));
        }
        Poll::Ready(Ok(answer.map(|inner| LoggedBody { inner, entry })))
    }
}

/// A body whose bytes are counted for the log.
#[derive(Debug)]
pub struct LoggedBody<B> {
    inner: B,
    entry: Option<Arc<Entry>>,
}

impl<B: Body + Unpin> Body for LoggedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let (Some(entry), Some(Ok(frame))) = (&self.entry, &frame)
            && let Some(data) = frame.data_ref()
        {
            entry.count(data.remaining() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// What will be a line, once the last one who holds it lets go.
#[derive(Debug)]
struct Entry {
    /// What was known when the request came.
    start: String,
    /// What stands at the end of the line.
    end: String,
    began: Instant,
    status: StatusCode,
    sent: AtomicU64,
    trouble: Option<Trouble>,
    format: LogFormat,
    lines: Lines,
}

impl Entry {
    fn begin<B>(request: &Request<B>, peer: Option<&PeerAddr>, format: LogFormat, lines: &Lines) -> Self {
        let now = now();
        let (mut start, mut end) = (String::with_capacity(256), String::new());
        // Writing to a string does not fail.
        let _ = match format {
            LogFormat::Common => begin_common(&mut start, request, peer, now),
            LogFormat::Combined => {
                begin_common(&mut start, request, peer, now).and_then(|()| end_combined(&mut end, request))
            }
            LogFormat::Json => begin_json(&mut start, request, peer, now),
        };
        Entry {
            start,
            end,
            began: Instant::now(),
            // Said of requests whose handler was dropped: the peer went away first (as nginx has it).
            status: StatusCode::from_u16(499).unwrap_or_default(),
            sent: AtomicU64::new(0),
            trouble: None,
            format,
            lines: lines.clone(),
        }
    }

    fn count(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut line = std::mem::take(&mut self.start);
        let (status, sent) = (self.status.as_u16(), *self.sent.get_mut());
        let milliseconds = self.began.elapsed().as_secs_f64() * 1000.0;
        let _ = match self.format {
            LogFormat::Common => writeln!(line, "{status} {sent} {milliseconds:.3}ms"),
            LogFormat::Combined => writeln!(line, "{status} {sent}{}", self.end),
            LogFormat::Json => {
                writeln!(line, "\"status\":{status},\"sent\":{sent},\"ms\":{milliseconds:.3}}}")
            }
        };
        self.lines.push(line.as_bytes());
        if let Some(trouble) = self.trouble.take() {
            tracing::error!("a file could not be read: {trouble} ({})", self.status);
        }
    }
}

/// `127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "GET /x HTTP/1.1" `
fn begin_common<B>(
    line: &mut String,
    request: &Request<B>,
    peer: Option<&PeerAddr>,
    now: Duration,
) -> std::fmt::Result {
    write_client(line, peer, now)?;
    write!(Escaped(line), "{} {} {:?}", request.method(), target(request), request.version())?;
    line.write_str("\" ")
}

/// `127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] "`
fn write_client(line: &mut String, peer: Option<&PeerAddr>, now: Duration) -> std::fmt::Result {
    write_host(line, peer)?;
    let Moment { year, day, hour, minute, second, .. } = moment(now);
    let month = moment(now).month_name();
    write!(line, " - - [{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0000] \"")
}

/// The status in the log of a request that got no answer at all, 444 (as nginx has it).
const NO_ANSWER: u16 = 444;

/// A whole line for a request that no service heard of; `-` stands for what is not known of it.
fn refused_common(line: &mut String, refusal: &Refusal<'_>, format: LogFormat) -> std::fmt::Result {
    write_client(line, Some(refusal.peer), now())?;
    match refusal.first_line {
        [] => line.write_str("-")?,
        bytes => Escaped(line).bytes(bytes)?,
    }
    let status = refusal.status.map_or(NO_ANSWER, |status| status.as_u16());
    write!(line, "\" {status} {}", refusal.sent)?;
    match format {
        LogFormat::Combined => writeln!(line, " \"-\" \"-\""),
        _ => writeln!(line, " {:.3}ms", refusal.after.as_secs_f64() * 1000.0),
    }
}

/// The same as an object, which has the first line as it came in place of its parts, and says what is wrong with it.
fn refused_json(line: &mut String, refusal: &Refusal<'_>) -> std::fmt::Result {
    start_json(line, Some(refusal.peer), now())?;
    line.write_str(",\"line\":\"")?;
    write!(Json(line), "{}", String::from_utf8_lossy(refusal.first_line))?;
    line.write_str("\",\"reason\":\"")?;
    write!(Json(line), "{}", refusal.reason)?;
    let status = refusal.status.map_or(NO_ANSWER, |status| status.as_u16());
    let (sent, milliseconds) = (refusal.sent, refusal.after.as_secs_f64() * 1000.0);
    writeln!(line, "\",\"status\":{status},\"sent\":{sent},\"ms\":{milliseconds:.3}}}")
}

/// ` "https://example.org/" "curl/8.0"`
fn end_combined<B>(line: &mut String, request: &Request<B>) -> std::fmt::Result {
    for name in [REFERER, USER_AGENT] {
        line.write_str(" \"")?;
        write!(Escaped(line), "{}", field(request, name).unwrap_or("-".into()))?;
        line.write_str("\"")?;
    }
    Ok(())
}

/// `{"time":"1994-11-06T08:49:37.123Z","peer":"127.0.0.1:50000","method":"GET",` and so on.
fn begin_json<B>(
    line: &mut String,
    request: &Request<B>,
    peer: Option<&PeerAddr>,
    now: Duration,
) -> std::fmt::Result {
    start_json(line, peer, now)?;
    line.write_str(",\"method\":\"")?;
    write!(Json(line), "{}", request.method())?;
    line.write_str("\",\"target\":\"")?;
    write!(Json(line), "{}", target(request))?;
    write!(line, "\",\"version\":\"{:?}\",", request.version())?;
    for (key, name) in [("referer", REFERER), ("agent", USER_AGENT)] {
        if let Some(value) = field(request, name) {
            write!(line, "\"{key}\":\"")?;
            write!(Json(line), "{value}")?;
            line.write_str("\",")?;
        }
    }
    Ok(())
}

/// `{"time":"1994-11-06T08:49:37.123Z","peer":"127.0.0.1:50000"`
fn start_json(line: &mut String, peer: Option<&PeerAddr>, now: Duration) -> std::fmt::Result {
    let Moment { year, month, day, hour, minute, second } = moment(now);
    let millisecond = now.subsec_millis();
    write!(
        line,
        "{{\"time\":\"{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z\""
    )?;
    if let Some(peer) = peer {
        write!(line, ",\"peer\":\"")?;
        write!(Json(line), "{peer}")?;
        line.write_str("\"")?;
    }
    Ok(())
}

fn write_host(line: &mut String, peer: Option<&PeerAddr>) -> std::fmt::Result {
    match peer {
        Some(PeerAddr::Inet(address)) => write!(line, "{}", address.ip()),
        Some(PeerAddr::Unix(_)) => line.write_str("unix"),
        None => line.write_str("-"),
    }
}

fn field<B>(request: &Request<B>, name: HeaderName) -> Option<std::borrow::Cow<'_, str>> {
    request.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()))
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn moment(now: Duration) -> Moment {
    Moment::from_unix(i64::try_from(now.as_secs()).unwrap_or(0))
}

/// Writes what a peer sent so that it can neither end its quotes nor its line, nor move a terminal's cursor: what is
/// not printable ASCII becomes `\xHH`, byte by byte.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes(text.as_bytes())
    }
}

impl Escaped<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> std::fmt::Result {
        for &byte in bytes {
            match byte {
                b'"' | b'\\' => {
                    self.0.push('\\');
                    self.0.push(char::from(byte));
                }
                b' '..=b'~' => self.0.push(char::from(byte)),
                _ => write!(self.0, "\\x{byte:02X}")?,
            }
        }
        Ok(())
    }
}

/// Writes what a peer sent as the inside of a JSON string.
struct Json<'a>(&'a mut String);

impl Write for Json<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for character in text.chars() {
            match character {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(character);
                }
                control if control.is_control() => write!(self.0, "\\u{:04x}", u32::from(control))?,
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}
/// The target in the form that both versions share: HTTP/2 tells scheme and authority with every request.
fn target<B>(request: &Request<B>) -> &dyn std::fmt::Display {
    match request.uri().path_and_query() {
        Some(target) if request.version() == http::Version::HTTP_2 => target,
        _ => request.uri(),
    }
}
