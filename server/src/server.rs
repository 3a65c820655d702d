//! A server on our own loop, with nothing to set up.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use http::{Request, Response};
use hyperman_loop::signal::{Signal, signals};
use hyperman_loop::{Handle, Loop};
use hyperman_transport::{ListenOptions, Listener, Spawn};
use tower_service::Service;

use crate::body::Body;
use crate::config::Config;
use crate::serve::{Endpoint, Security, Serve, Shutdown, serve_all};

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address; port 0 lets the kernel pick one.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listen::Tcp(address) => address.fmt(f),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A server on our own loop, in this process and thread.
///
/// ```no_run
/// use http::{Request, Response};
/// use hyperman::{service_fn, Body, Server};
///
/// Server::new(service_fn(|_request: Request<Body>| async {
///     Ok::<_, std::convert::Infallible>(Response::new(Body::from("hello\n")))
/// }))
/// .listen("127.0.0.1:8080")
/// .run()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Server<S> {
    service: S,
    config: Config,
    options: ListenOptions,
    listen: Vec<(io::Result<Listen>, Security)>,
}

impl<S> Server<S> {
    /// A server of `service`, a clone of which serves each connection.
    pub fn new(service: S) -> Self {
        Server { service, config: Config::default(), options: ListenOptions::default(), listen: Vec::new() }
    }

    /// Listens on a TCP address too: `"0.0.0.0:8080"`, `"[::]:80"`, `"localhost:8080"`, a `SocketAddr`. A name stands
    /// for all its addresses. An address that does not parse is reported by [`bind`](Self::bind).
    pub fn listen(mut self, address: impl ToSocketAddrs) -> Self {
        self.listen_with(address, &Security::Cleartext);
        self
    }

    /// Listens on a TCP address for TLS too. Offer `h2` and `http/1.1` by ALPN in `tls` for both protocols.
    #[cfg(feature = "tls")]
    pub fn listen_tls(mut self, address: impl ToSocketAddrs, tls: &crate::tls::ServerTls) -> Self {
        self.listen_with(address, &Security::Tls(tls.clone()));
        self
    }

    fn listen_with(&mut self, address: impl ToSocketAddrs, security: &Security) {
        match address.to_socket_addrs() {
            Ok(addresses) => {
                let listen = addresses.map(|address| (Ok(Listen::Tcp(address)), security.clone()));
                self.listen.extend(listen);
            }
            Err(error) => self.listen.push((Err(error), security.clone())),
        }
    }

    /// Listens on a Unix socket too.
    pub fn listen_unix(mut self, path: impl AsRef<Path>) -> Self {
        self.listen.push((Ok(Listen::Unix(path.as_ref().to_owned())), Security::Cleartext));
        self
    }

    /// Sets limits, timers and habits.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets how the listening sockets are made.
    pub fn listen_options(mut self, options: ListenOptions) -> Self {
        self.options = options;
        self
    }

    /// Makes the loop and the listening sockets.
    ///
    /// # Errors
    /// An address that does not parse, that is in use or not allowed, none at all (`InvalidInput`), or a loop that
    /// the system refuses. The message names the address.
    pub fn bind(self) -> io::Result<Bound<S>> {
        if self.listen.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no address to listen on"));
        }
        let event_loop = Loop::new()?;
        let mut endpoints = Vec::new();
        let mut addresses = Vec::new();
        for (listen, security) in self.listen {
            let listen = listen?;
            let listener = open(event_loop.handle(), &listen, &self.options).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"))
            })?;
            addresses.push(match listener.local_addr()? {
                Some(address) => Listen::Tcp(address),
                None => listen,
            });
            endpoints.push(Endpoint::with(listener, security));
        }
        Ok(Bound { event_loop, endpoints, addresses, service: self.service, config: self.config })
    }

    /// Serves until SIGINT or SIGTERM, which drain; a second one cuts.
    ///
    /// # Errors
    /// As [`bind`](Self::bind), and what ends a listener.
    pub fn run<B>(self) -> io::Result<()>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
        S::Error: std::fmt::Display,
        B: http_body::Body + 'static,
        B::Error: std::fmt::Display,
    {
        self.bind()?.run()
    }
}

fn open(runtime: Handle, listen: &Listen, options: &ListenOptions) -> io::Result<Listener<Handle>> {
    match listen {
        Listen::Tcp(address) => Listener::bind_tcp(runtime, *address, options),
        Listen::Unix(path) => Listener::bind_unix(runtime, path, options),
    }
}

/// A server whose sockets listen already.
#[must_use]
pub struct Bound<S> {
    event_loop: Loop,
    endpoints: Vec<Endpoint<Handle>>,
    addresses: Vec<Listen>,
    service: S,
    config: Config,
}

impl<S> Bound<S> {
    /// What is listened on, with the ports that the kernel picked.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The loop that the server runs on, to start other tasks there.
    pub fn handle(&self) -> Handle {
        self.event_loop.handle()
    }

    /// Serves until SIGINT or SIGTERM, which drain; a second one cuts.
    ///
    /// # Errors
    /// What ends a listener.
    pub fn run<B>(self) -> io::Result<()>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
        S::Error: std::fmt::Display,
        B: http_body::Body + 'static,
        B::Error: std::fmt::Display,
    {
        let handle = self.event_loop.handle();
        self.run_with(|shutdown| {
            let mut ending = signals(&handle, &[Signal::Interrupt, Signal::Terminate])?;
            handle.spawn(async move {
                // A loop that can no longer watch for signals leaves the server to its default: it ends at once.
                if ending.recv().await.is_ok() {
                    shutdown.drain();
                    if ending.recv().await.is_ok() {
                        shutdown.cut();
                    }
                }
            });
            Ok(())
        })
    }

    /// Serves until the server is ended by the handle that `arrange` is given, which is called before the first
    /// connection is accepted. No signal is handled.
    ///
    /// # Errors
    /// What `arrange` fails with, and what ends a listener.
    pub fn run_with<B>(self, arrange: impl FnOnce(Shutdown) -> io::Result<()>) -> io::Result<()>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
        S::Error: std::fmt::Display,
        B: http_body::Body + 'static,
        B::Error: std::fmt::Display,
    {
        let serve: Serve<Handle, S> =
            serve_all(self.event_loop.handle(), self.endpoints, self.service, self.config);
        arrange(serve.shutdown_handle())?;
        self.event_loop.block_on(serve)
    }
}
