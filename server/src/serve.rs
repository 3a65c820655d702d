//! Accepts connections and starts a future for each, until it is told to stop.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyperman_transport::{ArmReadiness, Listener, Runtime, Socket, Spawn, Timer};
use tower_service::Service;

use crate::body::Body;
use crate::config::Config;
use crate::connection::Connection;
use crate::gate::Word;
use crate::settings::Settings;
use crate::wire::Wire;

/// How many connections are accepted before those that are open get their turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long accepting rests when no descriptor or memory is free, 100 ms: the queue stays in the kernel meanwhile.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Serves what comes to `listener` with clones of `service`, one per connection, on `runtime`.
///
/// The future accepts until [`Shutdown::drain`] is called and is ready once every connection has ended. Dropping it
/// stops accepting; the connections that are open go on.
///
/// ```no_run
/// # #[cfg(feature = "native")]
/// # fn main() -> std::io::Result<()> {
/// use http::{Request, Response};
/// use hyperman::{serve, service_fn, Body, Config};
/// use hyperman_transport::{ListenOptions, Listener};
///
/// let event_loop = hyperman_loop::Loop::new()?;
/// let runtime = event_loop.handle();
/// let listener = Listener::bind_tcp(runtime.clone(), ([127, 0, 0, 1], 8080).into(), &ListenOptions::default())?;
/// let service = service_fn(|_request: Request<Body>| async {
///     Ok::<_, std::convert::Infallible>(Response::new(Body::from("hello\n")))
/// });
/// event_loop.block_on(serve(runtime, listener, service, Config::default()))
/// # }
/// # #[cfg(not(feature = "native"))]
/// # fn main() {}
/// ```
pub fn serve<R, S, B>(runtime: R, listener: Listener<R>, service: S, config: Config) -> Serve<R, S>
where
    R: Runtime + Spawn<Connection<R, S, B>>,
    S: Service<Request<Body>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    serve_all(runtime, vec![Endpoint::new(listener)], service, config)
}

/// A listener, and whether it speaks TLS.
pub struct Endpoint<R: Runtime> {
    listener: Listener<R>,
    security: Security,
}

impl<R: Runtime> Endpoint<R> {
    /// Cleartext.
    pub fn new(listener: Listener<R>) -> Self {
        Endpoint { listener, security: Security::Cleartext }
    }

    #[cfg(feature = "native")]
    pub(crate) fn with(listener: Listener<R>, security: Security) -> Self {
        Endpoint { listener, security }
    }

    /// TLS. Which protocols are offered by ALPN is part of `tls`: `h2` and `http/1.1` for both.
    #[cfg(feature = "tls")]
    pub fn tls(listener: Listener<R>, tls: hyperman_transport::tls::ServerTls) -> Self {
        Endpoint { listener, security: Security::Tls(tls) }
    }
}

impl<R: Runtime> From<Listener<R>> for Endpoint<R> {
    fn from(listener: Listener<R>) -> Self {
        Endpoint::new(listener)
    }
}

/// How the connections of a listener are secured.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    Cleartext,
    #[cfg(feature = "tls")]
    Tls(hyperman_transport::tls::ServerTls),
}

impl Security {
    pub(crate) fn secure<A: ArmReadiness>(&self, socket: Socket<A>) -> Wire<A> {
        match self {
            Security::Cleartext => Wire::Plain(socket),
            #[cfg(feature = "tls")]
            Security::Tls(tls) => Wire::Tls(Box::new(tls.stream(socket))),
        }
    }
}

/// The same for several listeners, which share the limit of connections and the drain.
pub fn serve_all<R, S, B>(runtime: R, endpoints: Vec<Endpoint<R>>, service: S, config: Config) -> Serve<R, S>
where
    R: Runtime + Spawn<Connection<R, S, B>>,
    S: Service<Request<Body>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    let timer = runtime.timer();
    Serve {
        timer,
        runtime,
        endpoints,
        service,
        settings: Settings::new(config),
        rest_until: None,
        cut_at: None,
    }
}

/// A server at work. See [`serve`].
pub struct Serve<R: Runtime, S> {
    runtime: R,
    endpoints: Vec<Endpoint<R>>,
    service: S,
    settings: Arc<Settings>,
    timer: R::Timer,
    rest_until: Option<Instant>,
    cut_at: Option<Instant>,
}

/// Nothing in it is pinned: each connection lives in a task of its own.
impl<R: Runtime, S> Unpin for Serve<R, S> {}

impl<R: Runtime, S> Serve<R, S> {
    /// The handle that ends this server, from any thread.
    pub fn shutdown_handle(&self) -> Shutdown {
        Shutdown { settings: Arc::clone(&self.settings) }
    }
}

/// Ends a server.
#[derive(Clone, Debug)]
pub struct Shutdown {
    settings: Arc<Settings>,
}

impl Shutdown {
    /// Stops accepting, closes idle connections at once, lets busy ones finish their answer (which then says
    /// `Connection: close`) and cuts what is left after [`Config::drain_deadline`].
    pub fn drain(&self) {
        self.settings.gate.say(Word::Drain);
    }

    /// Ends every connection at once, whatever it is doing.
    pub fn cut(&self) {
        self.settings.gate.say(Word::Cut);
    }
}

impl<R, S, B> Future for Serve<R, S>
where
    R: Runtime + Spawn<Connection<R, S, B>>,
    S: Service<Request<Body>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Display,
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.settings.gate.watch(cx);
        if this.settings.gate.word() != Word::Serve {
            return this.poll_drained(cx).map(Ok);
        }
        this.poll_accept(cx)
    }
}

impl<R: Runtime, S> Serve<R, S> {
    fn poll_accept<B>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        R: Spawn<Connection<R, S, B>>,
        S: Service<Request<Body>, Response = Response<B>> + Clone,
        S::Error: std::fmt::Display,
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        if let Some(until) = self.rest_until {
            if self.timer.poll_deadline(until, cx).is_pending() {
                return Poll::Pending;
            }
            self.rest_until = None;
        }
        for _ in 0..ACCEPTS_PER_TURN {
            if !self.settings.gate.poll_room(cx) {
                return Poll::Pending;
            }
            let mut accepted_any = false;
            for endpoint in &mut self.endpoints {
                match endpoint.listener.poll_accept(cx) {
                    Poll::Pending => {}
                    Poll::Ready(Ok(accepted)) => {
                        accepted_any = true;
                        let runtime = self.runtime.clone();
                        let connection = Connection::new(
                            runtime,
                            accepted,
                            &endpoint.security,
                            self.service.clone(),
                            &self.settings,
                        );
                        self.runtime.spawn(connection);
                    }
                    Poll::Ready(Err(error)) if is_shortage(&error) => {
                        tracing::warn!("accepting rests for {ACCEPT_REST:?}: {error}");
                        let until = self.runtime.now() + ACCEPT_REST;
                        self.rest_until = Some(until);
                        if self.timer.poll_deadline(until, cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                }
            }
            if !accepted_any {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The port is free for a successor from here on.
        self.endpoints.clear();
        if self.settings.gate.poll_empty(cx) {
            return Poll::Ready(());
        }
        if self.settings.gate.word() == Word::Cut {
            return Poll::Pending;
        }
        let deadline =
            *self.cut_at.get_or_insert_with(|| self.runtime.now() + self.settings.config.drain_deadline);
        if self.timer.poll_deadline(deadline, cx).is_ready() {
            self.settings.gate.say(Word::Cut);
            return if self.settings.gate.poll_empty(cx) { Poll::Ready(()) } else { Poll::Pending };
        }
        Poll::Pending
    }
}

/// Whether accepting failed for want of descriptors or memory, which time may heal.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC)
    )
}
