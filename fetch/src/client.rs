//! The client: what all its requests share, and how it is set up.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use hyperman_http1::{ClientConfig, Limits};
use hyperman_transport::Runtime;

use crate::attend::Attend;
use crate::connection::Connection;
use crate::h2::Directory;
use crate::pool::{Pool, PoolLimits};
use crate::request::RequestBuilder;
use crate::resolve::Resolver;
use crate::target::IntoUrl;

/// How long names and handshakes may take unless said otherwise, 30 s: a first packet that is lost is sent again after
/// 1, 3, 7 and 15 s, so whoever has not answered by then is not going to.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many redirects are followed unless said otherwise; sites that mean well need one or two.
const REDIRECTS: u32 = 10;

const AGENT: &str = concat!("hyperman-fetch/", env!("CARGO_PKG_VERSION"));

/// An HTTP client on some loop. Cheap to clone; clones share their connections.
pub struct Client<R: Runtime> {
    pub(crate) inner: Arc<Inner<R>>,
}

pub(crate) struct Inner<R: Runtime> {
    pub(crate) runtime: R,
    pub(crate) pool: Arc<Pool<Box<Connection<R>>>>,
    /// The connections that exchanges share.
    pub(crate) multiplexed: Arc<Directory<R>>,
    pub(crate) config: Arc<Config>,
}

/// What does not depend on the loop.
pub(crate) struct Config {
    pub(crate) machine: Arc<ClientConfig>,
    pub(crate) http2_machine: Arc<hyperman_http2::Config>,
    /// Whether HTTP/2 is offered to servers that are asked over TLS.
    pub(crate) http2: bool,
    /// Whether other servers are known to speak HTTP/2.
    pub(crate) http2_prior_knowledge: bool,
    /// Fields of every request that does not write them itself.
    pub(crate) defaults: HeaderMap,
    pub(crate) timeout: Option<Duration>,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) redirects: Redirects,
    pub(crate) referer: bool,
    pub(crate) max_body: Option<u64>,
    pub(crate) addresses: HashMap<String, Arc<[SocketAddr]>>,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) resolver: Resolver,
    #[cfg(feature = "tls")]
    pub(crate) tls: crate::tls::Settings,
}

/// Whether redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// They are answers like any other.
    Stay,
    /// Up to so many in a row are followed; one more is an error.
    Follow(u32),
}

impl<R: Runtime> Client<R> {
    /// A client with the usual settings.
    pub fn new(runtime: R) -> Self {
        Self::builder(runtime).build()
    }

    /// A client with other settings.
    pub fn builder(runtime: R) -> ClientBuilder<R> {
        ClientBuilder::new(runtime)
    }

    /// A request; [`RequestBuilder::send`] makes it. What is wrong with the URL is told then.
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder<R> {
        RequestBuilder::new(self.inner.clone(), method, url.into_url())
    }

    /// A GET request.
    pub fn get(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::GET, url)
    }

    /// A HEAD request.
    pub fn head(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::HEAD, url)
    }

    /// A POST request.
    pub fn post(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::POST, url)
    }

    /// A PUT request.
    pub fn put(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::PUT, url)
    }

    /// A PATCH request.
    pub fn patch(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::PATCH, url)
    }

    /// A DELETE request.
    pub fn delete(&self, url: impl IntoUrl) -> RequestBuilder<R> {
        self.request(Method::DELETE, url)
    }

    /// The loop that this client is on.
    pub fn runtime(&self) -> &R {
        &self.inner.runtime
    }

    /// Looks after the connections that are kept for later requests: those that their server ended, by a GOAWAY or by
    /// hanging up, are closed when that happens and not when they would be used next, those that are idle for too long are
    /// closed then, and an HTTP/2 server's PING is answered. To be started beside the requests, on the client's loop; it
    /// ends when the client and all its clones are gone.
    ///
    /// Without it nothing is lost but time: a client starts no tasks, so a connection that nobody uses is looked at when the
    /// next request wants it, and a server that is about to end waits for its patience with such a client.
    pub fn attend(&self) -> impl Future<Output = ()> + use<R> {
        let mut attend = Attend::new(&self.inner);
        std::future::poll_fn(move |cx| attend.poll(cx))
    }

    /// Closes the connections that are kept for later requests. Those in use are not touched.
    pub fn close_idle(&self) {
        self.inner.pool.clear();
        self.inner.multiplexed.clear();
    }
}

impl<R: Runtime> Inner<R> {
    pub(crate) fn shared(
        runtime: R,
        pool: Arc<Pool<Box<Connection<R>>>>,
        multiplexed: Arc<Directory<R>>,
        config: Arc<Config>,
    ) -> Arc<Self> {
        Arc::new(Inner { runtime, pool, multiplexed, config })
    }
}

impl<R: Runtime> Clone for Client<R> {
    fn clone(&self) -> Self {
        Client { inner: self.inner.clone() }
    }
}

impl<R: Runtime> fmt::Debug for Client<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Config {
    /// The usual settings.
    pub(crate) fn usual() -> Self {
        let mut defaults = HeaderMap::with_capacity(4);
        defaults.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        defaults.insert(ACCEPT, HeaderValue::from_static("*/*"));
        Config {
            machine: machine(Limits { body: u64::MAX, ..Limits::default() }),
            http2_machine: Arc::new(hyperman_http2::Config::client()),
            http2: true,
            http2_prior_knowledge: false,
            defaults,
            timeout: None,
            connect_timeout: Some(CONNECT_TIMEOUT),
            redirects: Redirects::Follow(REDIRECTS),
            referer: false,
            max_body: None,
            addresses: HashMap::new(),
            local_address: None,
            resolver: Resolver::new(),
            #[cfg(feature = "tls")]
            tls: crate::tls::Settings::default(),
        }
    }
}

/// How answers of HTTP/1 are read. Whoever is no proxy has to take folded field lines (RFC 9112 §5.2).
fn machine(limits: Limits) -> Arc<ClientConfig> {
    Arc::new(ClientConfig { limits, unfold: true })
}

/// Sets a [`Client`] up.
pub struct ClientBuilder<R> {
    runtime: R,
    pub(crate) config: Config,
    limits: Limits,
    pool: PoolLimits,
}

impl<R: Runtime> ClientBuilder<R> {
    fn new(runtime: R) -> Self {
        let limits = ClientConfig::default().limits;
        ClientBuilder { runtime, config: Config::usual(), limits, pool: PoolLimits::default() }
    }

    /// A field for every request that does not write it itself. `User-Agent` and `Accept` are there already.
    #[must_use]
    pub fn default_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.config.defaults.insert(name, value);
        self
    }

    /// Leaves a default field out.
    #[must_use]
    pub fn no_default_header(mut self, name: &HeaderName) -> Self {
        self.config.defaults.remove(name);
        self
    }

    /// How long an exchange may take, from the call to the last byte of the answer; none by default.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.timeout = timeout.into();
        self
    }

    /// How long a new connection may take, its name's lookup included; 30 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.connect_timeout = timeout.into();
        self
    }

    /// Whether redirects are followed; up to 10 by default.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.config.redirects = redirects;
        self
    }

    /// Whether a request that follows a redirect says in `Referer` where it comes from; not by default.
    #[must_use]
    pub fn referer(mut self, referer: bool) -> Self {
        self.config.referer = referer;
        self
    }

    /// The longest body of an answer that is taken, in bytes; no limit by default.
    #[must_use]
    pub fn max_body(mut self, limit: impl Into<Option<u64>>) -> Self {
        self.config.max_body = limit.into();
        self
    }

    /// What an answer's head may be like.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whom to trust, and how to prove who we are, for `https`. By default the system's roots are trusted, or the bundled
    /// ones where it has none, and no certificate is shown. Which protocols are offered by ALPN is [`http2`](Self::http2)'s
    /// to say, whatever the configuration offers.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: &crate::tls::ClientTls) -> Self {
        self.config.tls = crate::tls::Settings::of(tls);
        self
    }

    /// Whether HTTP/2 is offered to servers by ALPN, over `https`; it is by default. Requests to a server that takes it
    /// share one connection. A request that asks for HTTP/1.0, or for an upgrade, goes over HTTP/1 all the same.
    #[must_use]
    pub fn http2(mut self, offer: bool) -> Self {
        self.config.http2 = offer;
        self
    }

    /// Speaks HTTP/2 to every `http` server without asking (RFC 9113 §3.3): one that does not know it will not answer.
    #[must_use]
    pub fn http2_prior_knowledge(mut self) -> Self {
        self.config.http2_prior_knowledge = true;
        self
    }

    /// When an HTTP/2 connection that has requests on it was silent for `interval`, a PING asks whether the server is still
    /// there (RFC 9113 §6.7); where nothing at all comes for another `patience`, its requests fail with
    /// [`Timeout::Pong`](hyperman_http2::Timeout::Pong), and the connection is not used again. After 15 s of silence and
    /// 20 s of patience by default; `None` never asks. A server that thinks for longer than both answers the PING meanwhile.
    #[must_use]
    pub fn http2_ping(mut self, interval: impl Into<Option<Duration>>, patience: Duration) -> Self {
        let timeouts = &mut Arc::make_mut(&mut self.config.http2_machine).timeouts;
        (timeouts.ping, timeouts.pong) = (interval.into(), patience);
        self
    }

    /// How many connections are kept, and for how long.
    #[must_use]
    pub fn pool(mut self, limits: PoolLimits) -> Self {
        self.pool = limits;
        self
    }

    /// The addresses of a host, in place of a lookup; their ports do not matter, the URL's is used.
    #[must_use]
    pub fn resolve(mut self, host: &str, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.config.addresses.insert(host.to_ascii_lowercase(), addresses.into_iter().collect());
        self
    }

    /// The address that connections come from.
    #[must_use]
    pub fn local_address(mut self, address: impl Into<Option<IpAddr>>) -> Self {
        self.config.local_address = address.into();
        self
    }

    /// The client.
    pub fn build(self) -> Client<R> {
        let config = Config { machine: machine(self.limits), ..self.config };
        let (pool, multiplexed) = (Pool::shared(self.pool.clone()), Directory::shared(self.pool));
        Client { inner: Inner::shared(self.runtime, pool, multiplexed, Arc::new(config)) }
    }
}

impl<R> fmt::Debug for ClientBuilder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").finish_non_exhaustive()
    }
}
