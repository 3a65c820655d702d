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
        Waiting { request: Option<Request<Body>> },
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

    /// Calls the service with `request`, at once or as soon as it is ready.
    pub(crate) fn begin(mut self: Pin<&mut Self>, request: Request<Body>) {
        self.set(Exchange::Waiting { request: Some(request) });
    }

    /// Drives the call up to the answer.
    #[inline]
    pub(crate) fn poll_answer<S>(
        mut self: Pin<&mut Self>,
        service: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome<B>>
    where
        S: App<F, B>,
    {
        if let ExchangeProjection::Waiting { request } = self.as_mut().project() {
            let called = catch_unwind(AssertUnwindSafe(|| match service.poll_ready(cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => Poll::Ready(Ok(request.take().map(|request| service.call(request)))),
            }));
            match called {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Ok(Some(future)))) => self.set(Exchange::Handling { future }),
                Ok(Poll::Ready(Err(error))) => return Poll::Ready(failed(&error)),
                // The hook has printed the panic. A request that is gone cannot be: begin() puts one there.
                Err(_) | Ok(Poll::Ready(Ok(None))) => return Poll::Ready(Outcome::Failed),
            }
        }
        let ExchangeProjection::Handling { future } = self.project() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| S::poll_answer(future, cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(Ok(response))) => Poll::Ready(Outcome::Answer(response)),
            Ok(Poll::Ready(Err(error))) => Poll::Ready(failed(&error)),
            Err(_) => Poll::Ready(Outcome::Failed),
        }
    }

    /// Drives the answer's body up to its next piece.
    #[inline]
    pub(crate) fn poll_piece(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Piece>
    where
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        let ExchangeProjection::Answering { body } = self.project() else { return Poll::Pending };
        match catch_unwind(AssertUnwindSafe(|| body.poll_frame(cx).map_ok(|frame| frame.map_data(to_bytes))))
        {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(None)) => Poll::Ready(Piece::End),
            Ok(Poll::Ready(Some(Ok(frame)))) => Poll::Ready(piece(frame)),
            Ok(Poll::Ready(Some(Err(error)))) => {
                tracing::warn!("an answer's body failed: {error}");
                Poll::Ready(Piece::Failed)
            }
            Err(_) => Poll::Ready(Piece::Failed),
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

fn failed<B>(error: &dyn std::fmt::Display) -> Outcome<B> {
    tracing::error!("a handler failed: {error}");
    Outcome::Failed
}

fn to_bytes(mut data: impl Buf) -> Bytes {
    let length = data.remaining();
    // No copy where the data is `Bytes` already.
    data.copy_to_bytes(length)
}

fn piece(frame: Frame<Bytes>) -> Piece {
    match frame.into_data() {
        Ok(data) => Piece::Data(data),
        Err(frame) => match frame.into_trailers() {
            Ok(trailers) => Piece::Trailers(trailers),
            // A kind of frame that http-body may add one day says nothing that HTTP/1 could send.
            Err(_) => Piece::Data(Bytes::new()),
        },
    }
}
