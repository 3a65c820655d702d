//! The handler's side of one exchange, polled in place inside its connection: the call, its future, its answer's body.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use pin_project_lite::pin_project;

use crate::body::Body;
use crate::ends::App;

pin_project! {
    /// What the application is doing for this connection.
    #[project = ExchangeProjection]
    pub(crate) enum Exchange<F, B> {
        /// Nothing.
        Idle,
        /// The service is not ready to be called yet.
        Waiting { request: Option<Box<Request<Body>>> },
        /// The handler runs.
        Handling { #[pin] future: F },
        /// The answer's head is sent; its body is being produced.
        Answering { #[pin] body: B },
    }
}

/// What came out of the handler.
pub(crate) enum Outcome<B> {
    /// An answer.
    Answer(Response<B>),
    /// An error or a panic: its words are in the log already.
    Failed,
}

/// What a body gives when it is polled.
pub(crate) type PolledFrame<B> =
    Poll<Option<Result<Frame<<B as http_body::Body>::Data>, <B as http_body::Body>::Error>>>;

/// What came out of the answer's body.
pub(crate) enum Piece {
    /// Bytes.
    Data(Bytes),
    /// The fields after the body, which end it.
    Trailers(HeaderMap),
    /// Its end.
    End,
    /// An error or a panic: the answer cannot be finished.
    Failed,
}

impl<F, B> Exchange<F, B> {
    /// Whether a handler was called, or is about to be, whose answer has not come yet.
    pub(crate) fn awaits_answer(&self) -> bool {
        matches!(self, Exchange::Waiting { .. } | Exchange::Handling { .. })
    }

    /// Whether the answer's body is being produced.
    pub(crate) fn is_answering(&self) -> bool {
        matches!(self, Exchange::Answering { .. })
    }

    /// Whether nothing is under way.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Exchange::Idle)
    }

    /// Calls the service with `request`, at once or as soon as it is ready.
    pub(crate) fn begin<S>(
        mut self: Pin<&mut Self>,
        service: &mut S,
        request: Request<Body>,
        cx: &mut Context<'_>,
    ) where
        S: App<F, B>,
    {
        if guarded(|| self.as_mut().call(service, request, cx)) != Some(true) {
            // Without a request, it comes out as failed.
            self.set(Exchange::Waiting { request: None });
        }
    }

    /// The same, to be called within [`guarded`]. `false`: the service has failed, and nothing is under way.
    #[inline]
    pub(crate) fn call<S>(
        mut self: Pin<&mut Self>,
        service: &mut S,
        request: Request<Body>,
        cx: &mut Context<'_>,
    ) -> bool
    where
        S: App<F, B>,
    {
        match service.poll_ready(cx) {
            Poll::Ready(Ok(())) => {
                let future = service.call(request);
                self.set(Exchange::Handling { future });
                true
            }
            Poll::Pending => {
                self.set(Exchange::Waiting { request: Some(Box::new(request)) });
                true
            }
            Poll::Ready(Err(error)) => {
                log_failure(&error);
                false
            }
        }
    }

    /// Drives the call up to the answer.
    #[inline]
    pub(crate) fn poll_answer<S>(
        self: Pin<&mut Self>,
        service: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome<B>>
    where
        S: App<F, B>,
    {
        match guarded(|| self.poll_answer_unguarded(service, cx)) {
            None | Some(Poll::Ready(None)) => Poll::Ready(Outcome::Failed),
            Some(Poll::Ready(Some(response))) => Poll::Ready(Outcome::Answer(response)),
            Some(Poll::Pending) => Poll::Pending,
        }
    }

    /// The same, to be called within [`guarded`]. `None`: there is no answer, and the log says why.
    #[inline]
    pub(crate) fn poll_answer_unguarded<S>(
        mut self: Pin<&mut Self>,
        service: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Response<B>>>
    where
        S: App<F, B>,
    {
        if let ExchangeProjection::Waiting { request } = self.as_mut().project() {
            if request.is_none() {
                return Poll::Ready(None);
            }
            match service.poll_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    log_failure(&error);
                    return Poll::Ready(None);
                }
            }
            let Some(request) = request.take() else { return Poll::Ready(None) };
            let future = service.call(*request);
            self.as_mut().set(Exchange::Handling { future });
        }
        let ExchangeProjection::Handling { future } = self.project() else { return Poll::Pending };
        match S::poll_answer(future, cx) {
            Poll::Ready(Ok(response)) => Poll::Ready(Some(response)),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => {
                log_failure(&error);
                Poll::Ready(None)
            }
        }
    }

    /// Drives the answer's body up to its next piece.
    #[inline]
    pub(crate) fn poll_piece(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece>
    where
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        guarded(|| self.poll_piece_unguarded(cx)).unwrap_or(Poll::Ready(Piece::Failed))
    }

    /// The same, to be called within [`guarded`].
    #[inline]
    pub(crate) fn poll_piece_unguarded(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece>
    where
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        self.poll_frame_unguarded(cx).map(piece)
    }

    /// The same, with the piece as the body gives it, which [`piece`] makes use of.
    #[inline]
    pub(crate) fn poll_frame_unguarded(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame<B>
    where
        B: http_body::Body,
    {
        match self.project() {
            ExchangeProjection::Answering { body } => body.poll_frame(cx),
            _ => Poll::Pending,
        }
    }

    /// Whether the answer's body says that nothing more comes.
    #[inline]
    pub(crate) fn body_has_ended(&self) -> bool
    where
        B: http_body::Body,
    {
        match self {
            Exchange::Answering { body } => body.is_end_stream(),
            _ => true,
        }
    }
}

/// Runs code of the application. `None`: it has panicked, and the hook has printed that.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    // What a panic may leave half-done is the application's own; the exchange is ended after one.
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cold]
fn log_failure(error: &dyn std::fmt::Display) {
    tracing::error!("a handler failed: {error}");
}

#[cold]
fn log_broken_body(error: &dyn std::fmt::Display) {
    tracing::warn!("an answer's body failed: {error}");
}

/// What a body's next frame, or its end, is for the connection.
#[inline]
pub(crate) fn piece<D: Buf, E: std::fmt::Display>(frame: Option<Result<Frame<D>, E>>) -> Piece {
    let frame = match frame {
        None => return Piece::End,
        Some(Ok(frame)) => frame,
        Some(Err(error)) => {
            log_broken_body(&error);
            return Piece::Failed;
        }
    };
    match frame.into_data() {
        Ok(mut data) => {
            let length = data.remaining();
            // No copy where the data is `Bytes` already.
            Piece::Data(data.copy_to_bytes(length))
        }
        Err(frame) => match frame.into_trailers() {
            Ok(trailers) => Piece::Trailers(trailers),
            // A kind of frame that http-body may add one day says nothing that HTTP/1 could send.
            Err(_) => Piece::Data(Bytes::new()),
        },
    }
}
