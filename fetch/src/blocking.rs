//! Calls that block: for scripts, tests, and whoever has no loop.
//!
//! Each call brings its loop. A thread keeps the last one, with the connections on it, so the next call to the same
//! server finds one. A call may also be made where another loop runs already, which it holds up meanwhile.

use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use hyperman_loop::{Handle, Loop};
use serde::de::DeserializeOwned;
use url::Url;

use crate::call;
use crate::client::{Config, Inner};
use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::h2::Directory;
use crate::pool::{Pool, PoolLimits};
use crate::request::Parts;
use crate::response::Response as Answer;
use crate::target::IntoUrl;

/// Asks for a URL and blocks until the answer's head is there.
///
/// # Errors
/// As [`RequestBuilder::wait`](crate::RequestBuilder::wait).
pub fn get(url: impl IntoUrl) -> Result<Response, Error> {
    request(http::Method::GET, url)
}

/// As [`get`], with any method and no body. For more, see [`Client`](crate::Client) and
/// [`RequestBuilder::wait`](crate::RequestBuilder::wait).
///
/// # Errors
/// As [`get`].
pub fn request(method: http::Method, url: impl IntoUrl) -> Result<Response, Error> {
    static USUAL: LazyLock<Arc<Config>> = LazyLock::new(|| Arc::new(Config::usual()));
    let parts = Parts::new(&USUAL, method, url.into_url());
    run(USUAL.clone(), Box::new(parts))
}

/// Closes the connections that this thread's blocking calls have kept for later ones.
pub fn close_idle() {
    if let Ok(Some(engine)) = KEPT.try_with(Cell::take) {
        engine.pool.clear();
        engine.multiplexed.clear();
        let _ = KEPT.try_with(|kept| kept.set(Some(engine)));
    }
}

thread_local! {
    static KEPT: Cell<Option<Engine>> = const { Cell::new(None) };
}

/// A loop, and the connections on it. Declared in the order of dropping: connections first.
struct Engine {
    pool: Arc<Pool<Box<Connection<Handle>>>>,
    multiplexed: Arc<Directory<Handle>>,
    event_loop: Loop,
}

impl Engine {
    /// The thread's, unless a call on this thread uses it right now.
    fn get() -> Result<Engine, Error> {
        if let Ok(Some(engine)) = KEPT.try_with(Cell::take) {
            return Ok(engine);
        }
        let event_loop = Loop::new().map_err(|error| Error::new(ErrorKind::Loop(error)))?;
        let (pool, multiplexed) =
            (Pool::shared(PoolLimits::default()), Directory::shared(PoolLimits::default()));
        Ok(Engine { pool, multiplexed, event_loop })
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.event_loop.block_on(future)
    }
}

/// Makes the request on the thread's own loop.
pub(crate) fn run(config: Arc<Config>, parts: Box<Parts>) -> Result<Response, Error> {
    let engine = Engine::get()?;
    let runtime = engine.event_loop.handle();
    let client = Inner::shared(runtime, engine.pool.clone(), engine.multiplexed.clone(), config);
    let outcome = engine.block_on(async {
        // The loop stood still since the last call; let it hear what became of its connections.
        turn().await;
        call::run(client, parts).await
    });
    let engine = Lease { engine: Some(engine) };
    outcome.map(|answer| Response { answer, engine })
}

/// One turn of the loop.
async fn turn() {
    let mut turned = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut turned, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// An engine that goes back to its thread.
struct Lease {
    engine: Option<Engine>,
}

impl Lease {
    fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Error> {
        match &self.engine {
            Some(engine) => Ok(engine.block_on(future)),
            None => Err(Error::new(ErrorKind::Loop(std::io::ErrorKind::NotConnected.into()))),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            let _ = KEPT.try_with(|kept| kept.set(Some(engine)));
        }
    }
}

/// An answer whose head has arrived, with the loop that brings the rest. Stays on its thread.
pub struct Response {
    answer: Answer<Handle>,
    engine: Lease,
}

impl Response {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.answer.status()
    }

    /// The version that the server speaks.
    pub fn version(&self) -> Version {
        self.answer.version()
    }

    /// The fields of the head.
    pub fn headers(&self) -> &HeaderMap {
        self.answer.headers()
    }

    /// The URL that gave this answer, after redirects.
    pub fn url(&self) -> &Url {
        self.answer.url()
    }

    /// The server's address.
    pub fn remote_addr(&self) -> SocketAddr {
        self.answer.remote_addr()
    }

    /// The length of the body where it was announced, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// This answer, unless its status is one of the 4xx and 5xx.
    ///
    /// # Errors
    /// [`ErrorKind::Status`] then.
    pub fn error_for_status(self) -> Result<Self, Error> {
        let Response { answer, engine } = self;
        Ok(Response { answer: answer.error_for_status()?, engine })
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// As [`crate::Response::chunk`].
    pub fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.engine.block_on(self.answer.chunk())?
    }

    /// The trailers, once [`chunk`](Self::chunk) has come to the end.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.answer.trailers()
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`crate::Response::bytes`].
    pub fn bytes(self) -> Result<Bytes, Error> {
        self.engine.block_on(self.answer.bytes())?
    }

    /// The whole body as text, see [`crate::Response::text`].
    ///
    /// # Errors
    /// As [`crate::Response::text`].
    pub fn text(self) -> Result<String, Error> {
        self.engine.block_on(self.answer.text())?
    }

    /// The whole body, read as JSON.
    ///
    /// # Errors
    /// As [`crate::Response::json`].
    pub fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        self.engine.block_on(self.answer.json())?
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.answer.fmt(f)
    }
}
