//! The way that most requests go, past the circle: between two exchanges, read; a request that is known and plain, and
//! that the application answers at once with little, is answered on the spot, out of the thread's own storage.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Buf;
use http::response::Parts;
use http::{Response, StatusCode};
use http_body::Frame;
use hyperman_http1::{BodySize, Loan, Server};
use hyperman_transport::ByteStream;

use super::answer::body_size;
use super::{Http1, Phase, Step};
use crate::body::{Body, QUEUE_BYTES};
use crate::ends::{App, Ends};
use crate::exchange::{Exchange, PolledFrame, guarded, piece};
use crate::gate::Word;

/// Up to this many bytes of a body are copied behind their head, 4 KiB: cheaper than a second slice in the system call.
const COPIED: u64 = 4 << 10;

/// How far the short way went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// All that was received is answered.
    Drained,
    /// What comes next is for the long way; the machine has everything.
    Left,
}

impl<F, B> Http1<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// Whether the next turn may begin with the short way.
    pub(super) fn can_run_ahead(&self) -> bool {
        self.machine.can_run_ahead()
            && self.exchange.is_idle()
            && self.phase == Phase::Serving
            && self.upload.is_none()
            && !self.unflushed
    }

    /// See the module's words. `Moved` leaves what there is to the circle, with the loan lent.
    #[inline]
    pub(super) fn run_ahead<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        loan: &mut Loan,
        requests: &mut u32,
    ) -> Step {
        loop {
            match ends.stream.poll_recv(cx, Server::read_ahead(loan)) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0)) => {
                    let this = self.as_mut().project();
                    *this.read_ended = true;
                    this.machine.handle_eof();
                    return self.leave(loan);
                }
                // Every deadline has moved where something was answered just now.
                Poll::Pending if *requests == 0 && self.is_due(now) => return self.leave(loan),
                Poll::Pending => return Step::Stalled,
                Poll::Ready(Err(_)) => return Step::Done,
            }
            match guarded(|| self.as_mut().answer_received(ends, cx, loan, requests)) {
                Some(Ahead::Drained) => {}
                Some(Ahead::Left) => return Step::Moved,
                None => {
                    self.as_mut().leave(loan);
                    self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
                    return Step::Moved;
                }
            }
            match ends.stream.poll_send(cx, &[IoSlice::new(&loan.write)]) {
                Poll::Ready(Ok(sent)) if sent == loan.write.len() => loan.write.clear(),
                Poll::Ready(Err(_) | Ok(0)) => return Step::Done,
                Poll::Ready(Ok(sent)) => {
                    self.as_mut().leave(loan);
                    self.project().machine.transmitted(sent);
                    return Step::Moved;
                }
                Poll::Pending => {
                    return self.leave(loan);
                }
            }
            match ends.stream.poll_flush(cx) {
                Poll::Ready(Ok(())) if ends.stream.will_wake_to_read(cx) => return Step::Stalled,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Step::Done,
                Poll::Pending => return self.leave(loan),
            }
        }
    }

    /// Hands plain requests to the application, one after the other, as long as it answers each at once. To be called
    /// within [`guarded`].
    #[inline]
    fn answer_received<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        loan: &mut Loan,
        requests: &mut u32,
    ) -> Ahead {
        loop {
            let mut this = self.as_mut().project();
            let Some(head) = this.machine.find_plain(loan.heads.as_deref(), &loan.read) else { break };
            // Only when it is sure that it will be called. If it is not ready, the long way waits until it is.
            if !ends.is_unadorned() || !matches!(ends.service.poll_ready(cx), Poll::Ready(Ok(()))) {
                break;
            }
            *requests += 1;
            let body = Body::empty().on(&ends.info);
            let future = ends.service.call(this.machine.take_plain(head, &mut loan.read, body));
            this.exchange.set(Exchange::Handling { future });
            match this.exchange.poll_answer_unguarded(&mut ends.service, cx) {
                Poll::Ready(Some(response)) => {
                    if !self.as_mut().answer_ahead(ends, cx, loan, response) {
                        return Ahead::Left;
                    }
                }
                Poll::Ready(None) => {
                    self.as_mut().leave(loan);
                    self.answer_plainly(StatusCode::INTERNAL_SERVER_ERROR);
                    return Ahead::Left;
                }
                Poll::Pending => {
                    self.leave(loan);
                    return Ahead::Left;
                }
            }
            if loan.read.is_empty() {
                return Ahead::Drained;
            }
            if *requests > ends.settings.config.requests_per_turn || loan.write.len() >= QUEUE_BYTES {
                break;
            }
        }
        self.leave(loan);
        Ahead::Left
    }

    /// Answers out of the thread's storage. `false`: the answer is for the long way, which has begun with it.
    #[inline]
    fn answer_ahead<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        loan: &mut Loan,
        response: Response<B>,
    ) -> bool {
        let mut this = self.as_mut().project();
        let (head, body) = response.into_parts();
        let size = body_size(&body);
        this.exchange.set(Exchange::Answering { body });
        if !matches!(size, BodySize::Known(1..=COPIED))
            || this.extras.is_some()
            || !head.extensions.is_empty()
            // The word may have come since this turn began: from another thread, or from the handler.
            || ends.settings.gate.word() != Word::Serve
        {
            self.answer_slowly(ends, loan, &head, size, Poll::Pending);
            return false;
        }
        let frame = match this.exchange.as_mut().poll_frame_unguarded(cx) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    if size == BodySize::Known(data.chunk().len() as u64)
                        && data.remaining() == data.chunk().len()
                        && this.exchange.body_has_ended()
                        && this.machine.answer_plain(loan, head.status, &head.headers, data.chunk())
                    {
                        this.exchange.set(Exchange::Idle);
                        if head.headers.capacity() == 0 {
                            // It owns nothing, and finding that out once more takes a while.
                            std::mem::forget(head.headers);
                        }
                        return true;
                    }
                    Poll::Ready(Some(Ok(Frame::data(data))))
                }
                Err(frame) => Poll::Ready(Some(Ok(frame))),
            },
            frame => frame,
        };
        self.answer_slowly(ends, loan, &head, size, frame);
        false
    }

    /// Leaves the short way with an answer, of whose body the first frame has come already, or not.
    #[inline(never)]
    fn answer_slowly<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        loan: &mut Loan,
        head: &Parts,
        size: BodySize,
        frame: PolledFrame<B>,
    ) {
        self.as_mut().leave(loan);
        self.as_mut().answer_head(ends, head, size);
        if let Poll::Ready(frame) = frame
            && self.exchange.is_answering()
        {
            self.send_piece(piece(frame));
        }
    }

    /// Leaves the short way: the machine takes over what is in the thread's storage.
    #[inline(never)]
    fn leave(self: Pin<&mut Self>, loan: &mut Loan) -> Step {
        let this = self.project();
        *this.head_request = this.machine.answers_head();
        let unread = loan.read.len();
        this.machine.lend(loan);
        this.machine.received(unread);
        Step::Moved
    }
}
