//! What is there to download: Hyperman on its own loop, in a thread of the test's.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use hyperman::{Config, serve, service_fn};
use hyperman_loop::{Handle, Loop};
use hyperman_transport::{ListenOptions, Listener, Runtime, Timer};

pub(crate) const SLOW: &str = "/music/evening-concert.flac";
pub(crate) const PICTURE: &str = "/pictures/mountain-lake.jpg";
pub(crate) const FAST: &str = "/archive/town-maps.zip";
pub(crate) const MISSING: &str = "/books/missing-chapter.pdf";
pub(crate) const ENDLESS: &str = "/backup/whole-disk.img";

/// In the order in which they are asked for.
pub(crate) const PATHS: [&str; 5] = [SLOW, PICTURE, ENDLESS, MISSING, FAST];

/// The bytes of a file repeat after so many. It is a prime, so that a lost piece shifts what follows.
const PERIOD: usize = 251;

/// The length of a piece, about 16 kB.
const PIECE: usize = 64 * PERIOD;

/// How much of the slow file is held back until the test has looked at it.
const HELD_BACK: u64 = 3_000_000;

pub(crate) struct Site {
    address: SocketAddr,
    held: Arc<AtomicBool>,
}

impl Site {
    pub(crate) fn start(picture: PathBuf) -> Self {
        let picture = Bytes::from(std::fs::read(picture).expect("a picture"));
        let held = Arc::new(AtomicBool::new(true));
        let (tell, told) = mpsc::channel();
        std::thread::spawn({
            let held = Arc::clone(&held);
            move || {
                let event_loop = Loop::new().expect("a loop");
                let runtime = event_loop.handle();
                let listener = Listener::bind_tcp(
                    runtime.clone(),
                    (Ipv4Addr::LOCALHOST, 0).into(),
                    &ListenOptions::default(),
                )
                .expect("a port");
                tell.send(listener.local_addr().expect("an address")).expect("somebody waits for it");
                let files = Files { runtime: runtime.clone(), picture, held };
                let service = service_fn(move |request: Request<hyperman::Body>| {
                    let answer = files.answer(request.uri().path());
                    async { Ok::<_, Infallible>(answer) }
                });
                event_loop.block_on(serve(runtime, listener, service, Config::default())).expect("it serves");
            }
        });
        Site { address: told.recv().expect("an address").expect("of TCP"), held }
    }

    /// As people write it, without the scheme.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Lets the rest of the slow file go.
    pub(crate) fn release(&self) {
        self.held.store(false, Ordering::Release);
    }
}

/// The length of a downloaded file, whose bytes are checked one by one.
pub(crate) fn check(file: &Path) -> u64 {
    let bytes = std::fs::read(file).expect("a file");
    for (at, byte) in bytes.iter().enumerate() {
        assert_eq!(usize::from(*byte), at % PERIOD, "byte {at}");
    }
    bytes.len() as u64
}

#[derive(Clone)]
struct Files {
    runtime: Handle,
    picture: Bytes,
    held: Arc<AtomicBool>,
}

impl Files {
    fn answer(&self, path: &str) -> Response<File> {
        let second = |bytes_per_second: u32| Duration::from_secs(PIECE as u64) / bytes_per_second;
        let (status, kind, length, every) = match path {
            SLOW => (StatusCode::OK, "audio/flac", 8_000_000, second(800_000)),
            FAST => (StatusCode::OK, "application/zip", 24_000_000, Duration::ZERO),
            ENDLESS => (StatusCode::OK, "application/octet-stream", 900_000_000, second(4_000_000)),
            PICTURE => (StatusCode::OK, "image/jpeg", self.picture.len() as u64, second(1_000_000)),
            _ => (StatusCode::NOT_FOUND, "text/plain", 0, Duration::ZERO),
        };
        let file = File {
            timer: self.runtime.timer(),
            due: self.runtime.now(),
            every,
            content: match path {
                PICTURE => self.picture.clone(),
                _ => (0..PIECE).map(|at| (at % PERIOD) as u8).collect(),
            },
            sent: 0,
            length,
            held: (path == SLOW).then(|| Arc::clone(&self.held)),
        };
        let mut answer = Response::new(file);
        *answer.status_mut() = status;
        answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        answer
    }
}

/// A body that takes its time.
struct File {
    timer: <Handle as Runtime>::Timer,
    due: Instant,
    every: Duration,
    /// Sent again and again until the length is reached.
    content: Bytes,
    sent: u64,
    length: u64,
    held: Option<Arc<AtomicBool>>,
}

impl http_body::Body for File {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let left = this.length - this.sent;
        if left == 0 {
            return Poll::Ready(None);
        }
        loop {
            ready!(this.timer.poll_deadline(this.due, cx));
            this.due += this.every;
            let held = this.held.as_ref().is_some_and(|held| held.load(Ordering::Acquire));
            if !held || left > HELD_BACK {
                break;
            }
        }
        let at = (this.sent % this.content.len() as u64) as usize;
        let end = this.content.len().min(at + PIECE).min(at + usize::try_from(left).unwrap_or(PIECE));
        this.sent += (end - at) as u64;
        Poll::Ready(Some(Ok(Frame::data(this.content.slice(at..end)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length - self.sent)
    }
}
