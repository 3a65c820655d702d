//! One connection as one future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Request, Response};
use hyperman_transport::{Accepted, Runtime, Socket, Timer};
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::body::{Body, ConnectionInfo};
use crate::gate::{Ticket, Word};
use crate::h1::Http1;
use crate::settings::Settings;

pin_project! {
    /// A connection that is being served: a future that a loop runs until the connection is over.
    ///
    /// Made by [`serve`](crate::serve()), which hands it to the loop's [`Spawn`](hyperman_transport::Spawn); it is
    /// public so that a bound on that trait can name it.
    pub struct Connection<R: Runtime, S: Service<Request<Body>>, B> {
        runtime: R,
        timer: R::Timer,
        armed: Option<Instant>,
        settings: Arc<Settings>,
        place: Place,
        registered: bool,
        #[pin]
        http1: Http1<Socket<R::Source>, S, S::Future, B>,
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
        service: S,
        settings: &Arc<Settings>,
    ) -> Self {
        let info = Arc::new(ConnectionInfo { peer: accepted.peer });
        let ticket = settings.gate.enter();
        let now = runtime.now();
        Connection {
            timer: runtime.timer(),
            runtime,
            armed: None,
            settings: Arc::clone(settings),
            place: Place { settings: Arc::clone(settings), ticket },
            registered: false,
            http1: Http1::new(accepted.socket, service, Arc::clone(settings), info, now),
        }
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
            this.settings.gate.register(&this.place.ticket, cx);
        }
        match this.settings.gate.word() {
            Word::Serve => {}
            Word::Drain => this.http1.as_mut().drain(),
            Word::Cut => return Poll::Ready(()),
        }
        loop {
            let now = this.runtime.now();
            if this.armed.is_some_and(|armed| armed <= now) {
                *this.armed = None;
            }
            if this.http1.as_mut().poll(cx, now).is_ready() {
                return Poll::Ready(());
            }
            // The timer is armed in place only for an earlier deadline: most move later with every request, and are
            // looked at again when the timer rings.
            let Some(deadline) = this.http1.poll_timeout() else { return Poll::Pending };
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
