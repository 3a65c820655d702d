//! One connection as one future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use hyperman_transport::{Accepted, ByteStream, Runtime, Timer};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::body::{Body, ConnectionInfo};
use crate::ends::Ends;
use crate::gate::{Ticket, Word};
use crate::h1::{Ending, Http1, Turn};
use crate::h2::Http2;
use crate::serve::Security;
use crate::settings::Settings;
use crate::start::{Start, Starting};
use crate::wire::Wire;

pin_project! {
    /// A connection that is being served: a future that a loop runs until the connection is over.
    ///
    /// Made by [`serve`](crate::serve()), which hands it to the loop's [`Spawn`](hyperman_transport::Spawn); it is
    /// public so that a bound on that trait can name it.
    pub struct Connection<R: Runtime, S: Service<Request<Body>>, B> {
        runtime: R,
        timer: R::Timer,
        armed: Option<Instant>,
        place: Place,
        registered: bool,
        ends: Ends<Wire<R::Source>, S>,
        #[pin]
        protocol: Protocol<S::Future, B>,
    }

    impl<R: Runtime, S: Service<Request<Body>>, B> PinnedDrop for Connection<R, S, B> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // However it has come to this: by an error of the answer's body, by a drain that has waited long enough, or
            // by the end of the loop.
            if this.protocol.is_cut_short() {
                this.ends.stream.reset_on_close();
            }
        }
    }
}

pin_project! {
    /// What the connection speaks.
    #[project = ProtocolProjection]
    enum Protocol<F, B> {
        Starting { starting: Starting },
        Http1 { #[pin] http1: Http1<F, B> },
        Http2 { http2: Box<Http2<F, B>> },
    }
}

/// The connection's place in the gate, given up when the connection ends in whatever way.
struct Place {
    settings: Arc<Settings>,
    ticket: Ticket,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.settings.gate.leave(&self.ticket);
    }
}

impl<R, S, B> Connection<R, S, B>
where
    R: Runtime,
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Display,
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    pub(crate) fn new(
        runtime: R,
        accepted: Accepted<R::Source>,
        security: &Security,
        service: S,
        settings: &Arc<Settings>,
    ) -> Self {
        let info = ConnectionInfo::cleartext(accepted.peer);
        let ticket = settings.gate.enter();
        let stream = security.secure(accepted.socket);
        Connection {
            timer: runtime.timer(),
            armed: None,
            place: Place { settings: Arc::clone(settings), ticket },
            registered: false,
            ends: Ends::new(stream, service, Arc::clone(settings), info),
            protocol: Protocol::Starting { starting: Starting::new(runtime.now()) },
            runtime,
        }
    }
}

impl<F, B> Protocol<F, B> {
    /// Whether closing in an orderly way would make half an answer look like a whole one.
    fn is_cut_short(&self) -> bool {
        matches!(self, Protocol::Http1 { http1 } if http1.is_cut_short())
    }

    fn drain(self: Pin<&mut Self>)
    where
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        match self.project() {
            // Who has said nothing yet is idle; one that is in the middle of saying it is served.
            ProtocolProjection::Starting { .. } => {}
            ProtocolProjection::Http1 { http1 } => http1.drain(),
            ProtocolProjection::Http2 { http2 } => http2.drain(),
        }
    }

    /// One turn; `None` when another protocol has begun, which wants a turn of its own.
    #[inline(always)]
    fn poll<A, S>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<Wire<A>, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Option<Turn>
    where
        A: hyperman_transport::ArmReadiness,
        S: Service<Request<Body>, Response = Response<B>, Future = F>,
        S::Error: std::fmt::Display,
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        if let ProtocolProjection::Http1 { http1 } = self.as_mut().project() {
            match http1.poll(ends, cx, now) {
                Turn::Over => {}
                turn => return Some(turn),
            }
        }
        self.poll_others(ends, cx, now)
    }

    /// A turn of whatever is not HTTP/1.1, or is so no longer.
    #[inline(never)]
    fn poll_others<A, S>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<Wire<A>, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Option<Turn>
    where
        A: hyperman_transport::ArmReadiness,
        S: Service<Request<Body>, Response = Response<B>, Future = F>,
        S::Error: std::fmt::Display,
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        let next = match self.as_mut().project() {
            ProtocolProjection::Http1 { http1 } => match http1.ending() {
                Ending::Over => return Some(Turn::Over),
                Ending::Http2 { machine, received } => {
                    Protocol::Http2 { http2: Box::new(Http2::new(*machine, &received)) }
                }
            },
            ProtocolProjection::Http2 { http2 } => {
                return Some(match http2.poll(ends, cx, now) {
                    Poll::Ready(()) => Turn::Over,
                    Poll::Pending => Turn::Waits(http2.poll_timeout()),
                });
            }
            ProtocolProjection::Starting { starting } => match starting.poll(ends, cx, now) {
                Poll::Pending if starting.is_silent() && ends.settings.gate.word() != Word::Serve => {
                    return Some(Turn::Over);
                }
                Poll::Pending => return Some(Turn::Waits(Some(starting.deadline(&ends.settings.config)))),
                Poll::Ready(Start::Over) => return Some(Turn::Over),
                Poll::Ready(Start::Http1(received)) => {
                    Protocol::Http1 { http1: Http1::new(&ends.settings, received, starting.since()) }
                }
                Poll::Ready(Start::Http2(received)) => {
                    let config = Arc::clone(&ends.settings.http2);
                    let machine = hyperman_http2::Server::new(config, starting.since());
                    Protocol::Http2 { http2: Box::new(Http2::new(machine, &received)) }
                }
            },
        };
        self.set(next);
        if ends.settings.gate.word() == Word::Drain {
            self.drain();
        }
        None
    }
}

impl<R, S, B> Future for Connection<R, S, B>
where
    R: Runtime,
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Display,
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if !*this.registered {
            *this.registered = true;
            this.place.settings.gate.register(&this.place.ticket, cx);
        }
        match this.place.settings.gate.word() {
            Word::Serve => {}
            Word::Drain => this.protocol.as_mut().drain(),
            Word::Cut => return Poll::Ready(()),
        }
        loop {
            let now = this.runtime.now();
            if this.armed.is_some_and(|armed| armed <= now) {
                *this.armed = None;
            }
            let deadline = match this.protocol.as_mut().poll(this.ends, cx, now) {
                None => continue,
                Some(Turn::Over) => return Poll::Ready(()),
                Some(Turn::Waits(None)) => return Poll::Pending,
                Some(Turn::Waits(Some(deadline))) => deadline,
            };
            // The timer is armed in place only for an earlier deadline: most move later with every request, and are
            // looked at again when the timer rings.
            if this.armed.is_some_and(|armed| armed <= deadline) {
                return Poll::Pending;
            }
            if this.timer.poll_deadline(deadline, cx).is_pending() {
                *this.armed = Some(deadline);
                return Poll::Pending;
            }
        }
    }
}
