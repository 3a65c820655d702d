//! What goes out: the application's answer into commands of the machine.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::response::Parts;
use http::{Extensions, HeaderMap, Response, StatusCode};
use hyperman_http1::{BodySize, CloseReason, Misuse};
use hyperman_transport::ByteStream;

use super::Http1;
use crate::body::QUEUE_BYTES;
use crate::ends::{App, Ends};
use crate::exchange::{Exchange, Piece, guarded};
use crate::gate::Word;
use crate::send_file::{SendFile, Sending};

impl<F, B> Http1<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// Lets the application work until it waits for something. Says whether anything moved.
    pub(super) fn drive<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> bool {
        if self.exchange.is_idle() {
            return false;
        }
        guarded(|| self.as_mut().drive_unguarded(ends, cx)).unwrap_or_else(|| {
            self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
            true
        })
    }

    /// The same, to be called within [`guarded`].
    #[inline]
    pub(super) fn drive_unguarded<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut moved = false;
        if self.exchange.awaits_answer() {
            let this = self.as_mut().project();
            match this.exchange.poll_answer_unguarded(&mut ends.service, cx) {
                Poll::Pending => return self.send_interims(),
                Poll::Ready(Some(response)) => self.as_mut().answer(ends, response),
                Poll::Ready(None) => self.as_mut().answer_plainly(StatusCode::INTERNAL_SERVER_ERROR),
            }
            moved = true;
        }
        while self.exchange.is_answering()
            && self.machine.queued() < QUEUE_BYTES
            && self.machine.external() == 0
        {
            match self.as_mut().project().exchange.poll_piece_unguarded(cx) {
                Poll::Pending => break,
                Poll::Ready(piece) => self.as_mut().send_piece(piece),
            }
            moved = true;
        }
        moved
    }

    pub(super) fn send_interims(self: Pin<&mut Self>) -> bool {
        let this = self.project();
        let Some(interim) = this.extras.as_ref().and_then(|extras| extras.interim.as_ref()) else {
            return false;
        };
        let mut moved = false;
        while let Some((status, headers)) = interim.take() {
            moved = true;
            if let Err(misuse) = this.machine.send_interim(status, &headers) {
                tracing::warn!("a 1xx answer was not sent: {misuse}");
            }
        }
        moved
    }

    /// Queues the head of an answer and gets its body ready to be driven.
    #[inline]
    pub(super) fn answer<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        response: Response<B>,
    ) {
        let (head, body) = response.into_parts();
        let size = body_size(&body);
        self.as_mut().project().exchange.set(Exchange::Answering { body });
        self.answer_head(ends, &head, size);
    }

    /// Queues the head of the answer whose body is in its place already.
    #[inline]
    pub(super) fn answer_head<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        head: &Parts,
        size: BodySize,
    ) {
        if self.extras.is_some() {
            self.as_mut().send_interims();
        }
        if self.upload.is_some() {
            // A handler that is through with the request's body before it answers is known to be.
            self.as_mut().heed_demand();
        }
        if ends.settings.gate.word() != Word::Serve {
            // The word may have come since this turn began: from another thread, or from the handler.
            self.as_mut().drain();
        }
        let mut this = self.as_mut().project();
        if let Err(misuse) = this.machine.send_head(head.status, &head.headers, size) {
            return self.refuse_answer(&misuse);
        }
        if this.machine.is_closed() == Some(CloseReason::Upgraded) {
            return this.exchange.set(Exchange::Idle);
        }
        if let Some(extras) = this.extras {
            extras.upgrade = None;
        }
        if size == BodySize::Known(0) || *this.head_request {
            this.exchange.set(Exchange::Idle);
            return self.end_answer();
        }
        if !head.extensions.is_empty() && self.as_mut().send_file(ends, &head.extensions, size) {
            self.as_mut().project().exchange.set(Exchange::Idle);
            self.end_answer();
        }
    }

    #[cold]
    pub(super) fn refuse_answer(self: Pin<&mut Self>, misuse: &Misuse) {
        tracing::error!("a handler's answer cannot be sent: {misuse}");
        self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
    }

    /// Announces a file in place of the answer's body, if the answer asks for that and the stream can do it.
    pub(super) fn send_file<IO: ByteStream, S>(
        self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        extensions: &Extensions,
        size: BodySize,
    ) -> bool {
        let this = self.project();
        let Some(file) = extensions.get::<SendFile>() else { return false };
        // One file at a time: pipelined answers behind it go through their bodies.
        let busy = this.extras.as_ref().is_some_and(|extras| extras.file.is_some());
        if busy
            || !ends.stream.can_send_file()
            || size != BodySize::Known(file.length)
            || this.machine.send_external(file.length).is_err()
        {
            return false;
        }
        let sending = Sending { file: file.clone(), progress: extensions.get().cloned() };
        this.extras.get_or_insert_default().file = Some(sending);
        true
    }

    /// An answer of our own, in place of the one that the handler failed to give. Without effect but an end of the
    /// connection where one has begun.
    #[cold]
    pub(super) fn answer_plainly(mut self: Pin<&mut Self>, status: StatusCode) {
        let mut this = self.as_mut().project();
        this.exchange.set(Exchange::Idle);
        if this.machine.send_head(status, &HeaderMap::new(), BodySize::Known(0)).is_ok() {
            self.end_answer();
        } else {
            this.machine.abort();
        }
    }

    #[inline]
    pub(super) fn send_piece(mut self: Pin<&mut Self>, piece: Piece) {
        let mut this = self.as_mut().project();
        let sent = match piece {
            Piece::Data(data) => {
                let sent = this.machine.send_data(data);
                if sent.is_ok() && !this.exchange.body_has_ended() {
                    return;
                }
                sent
            }
            Piece::Trailers(trailers) => this.machine.send_trailers(&trailers),
            Piece::End => Ok(()),
            Piece::Failed => {
                this.machine.abort();
                return this.exchange.set(Exchange::Idle);
            }
        };
        this.exchange.set(Exchange::Idle);
        match sent {
            Ok(()) => self.end_answer(),
            Err(misuse) => {
                tracing::error!("an answer's body cannot be sent: {misuse}");
                this.machine.abort();
            }
        }
    }

    /// The application has said all that it has to say for this request.
    #[inline]
    pub(super) fn end_answer(self: Pin<&mut Self>) {
        let this = self.project();
        if let Err(misuse) = this.machine.end() {
            tracing::error!("an answer's body ended early: {misuse}");
        }
    }
}

/// What the answer's body says of its size.
#[inline]
pub(super) fn body_size<B: http_body::Body>(body: &B) -> BodySize {
    if body.is_end_stream() {
        return BodySize::Known(0);
    }
    match body.size_hint().exact() {
        Some(length) => BodySize::Known(length),
        None => BodySize::Unknown,
    }
}
