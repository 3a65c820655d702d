//! One stream of an HTTP/2 connection: the exchange in its berth against the machine.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode};
use hyperman_http2::{BodySize, Misuse, Reason, Server, StreamId};
use hyperman_transport::ByteStream;

use crate::body::{self, Demand};
use crate::ends::App;
use crate::exchange::{Exchange, Outcome, Piece};
use crate::interim::Interim;
use crate::upgrade::{Offer, Tunnel};

/// What is known of the stream in a berth.
#[derive(Default)]
pub(super) struct Berth {
    pub(super) stream: Option<StreamId>,
    pub(super) upload: Option<body::Sender>,
    pub(super) interim: Option<Interim>,
    pub(super) head: bool,
    pub(super) connect: bool,
    pub(super) offer: Option<Offer>,
    /// What a CONNECT has turned the stream into (RFC 9113 §8.5), and what came for it so far.
    tunnel: Option<Tunnel>,
    incoming: VecDeque<Bytes>,
    pub(super) incoming_ended: bool,
    /// The answer is complete; the request's body is still being read.
    answered: bool,
}

impl Berth {
    /// Bytes of the request's body, or of the tunnel.
    pub(super) fn receive(&mut self, machine: &mut Server, data: Bytes) {
        if self.connect {
            self.incoming.push_back(data);
        } else if let Some(upload) = &self.upload {
            upload.send(data);
        } else if let Some(stream) = self.stream {
            machine.release(stream, data.len());
        }
    }

    /// The request is complete.
    pub(super) fn end_upload(&mut self) {
        self.incoming_ended = true;
        if let Some(upload) = &self.upload {
            upload.end(Ok(()));
        }
    }

    /// Lets the exchange work until it waits for something. Ready when it is over.
    pub(super) fn drive<F, B, S>(
        &mut self,
        mut exchange: Pin<&mut Exchange<F, B>>,
        mut cx: Context<'_>,
        machine: &mut Server,
        service: &mut S,
    ) -> Poll<()>
    where
        S: App<F, B>,
        B: http_body::Body,
        B::Error: std::fmt::Display,
    {
        let Some(stream) = self.stream else { return Poll::Ready(()) };
        loop {
            if self.tunnel.is_some() {
                return self.drive_tunnel(&mut cx, machine, stream);
            }
            let mut moved = self.heed_demand(&cx, machine, stream);
            if exchange.awaits_answer() {
                match exchange.as_mut().poll_answer(service, &mut cx) {
                    Poll::Pending => self.send_interims(machine, stream),
                    Poll::Ready(outcome) => {
                        moved = true;
                        self.answer(outcome, exchange.as_mut(), &cx, machine, stream);
                    }
                }
            }
            while exchange.is_answering() && machine.takes_piece(stream) {
                let Poll::Ready(piece) = exchange.as_mut().poll_piece(&mut cx) else { break };
                moved = true;
                self.send_piece(piece, exchange.as_mut(), machine, stream);
            }
            if self.answered && self.upload.is_none() {
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Acts on what the reader of the request's body has taken and wants.
    fn heed_demand(&mut self, cx: &Context<'_>, machine: &mut Server, stream: StreamId) -> bool {
        let Some(upload) = &self.upload else { return false };
        let taken = upload.take_taken();
        if taken > 0 {
            machine.release(stream, taken);
        }
        let demand = upload.demand();
        machine.want_body(stream, demand == Demand::Waiting);
        match demand {
            Demand::Dropped => {
                machine.ignore_body(stream);
                self.upload = None;
                return true;
            }
            Demand::Waiting => machine.send_continue(stream),
            Demand::Room | Demand::Full => {}
        }
        if upload.is_through() {
            self.upload = None;
            return true;
        }
        !upload.watch(demand, cx)
    }

    fn send_interims(&self, machine: &mut Server, stream: StreamId) {
        let Some(interim) = &self.interim else { return };
        while let Some((status, headers)) = interim.take() {
            if let Err(misuse) = machine.send_interim(stream, status, &headers) {
                tracing::warn!("a 1xx answer was not sent: {misuse}");
            }
        }
    }

    fn answer<F, B>(
        &mut self,
        outcome: Outcome<B>,
        mut exchange: Pin<&mut Exchange<F, B>>,
        cx: &Context<'_>,
        machine: &mut Server,
        stream: StreamId,
    ) where
        B: http_body::Body,
    {
        self.send_interims(machine, stream);
        // A handler that is through with the request's body before it answers is known to be.
        self.heed_demand(cx, machine, stream);
        let sent = match outcome {
            Outcome::Answer(response) => self.send_answer(response, exchange.as_mut(), machine, stream),
            Outcome::Failed => Err(None),
        };
        if let Err(misuse) = sent {
            if let Some(misuse) = misuse {
                tracing::error!("a handler's answer cannot be sent: {misuse}");
            }
            exchange.set(Exchange::Idle);
            let failed = StatusCode::INTERNAL_SERVER_ERROR;
            // The stream may be gone already; then nobody waits for an answer.
            let _ = machine.send_head(stream, failed, &HeaderMap::new(), BodySize::Known(0));
            self.answered = true;
        }
    }

    fn send_answer<F, B>(
        &mut self,
        response: Response<B>,
        mut exchange: Pin<&mut Exchange<F, B>>,
        machine: &mut Server,
        stream: StreamId,
    ) -> Result<(), Option<Misuse>>
    where
        B: http_body::Body,
    {
        let (parts, body) = response.into_parts();
        if self.connect && parts.status.is_success() {
            machine.send_head(stream, parts.status, &parts.headers, BodySize::Unknown)?;
            exchange.set(Exchange::Idle);
            match self.offer.take() {
                Some(offer) => self.tunnel = Some(offer.accept(Bytes::new())),
                None => self.answered = true,
            }
            return Ok(());
        }
        self.offer = None;
        let size = match body.size_hint().exact() {
            _ if body.is_end_stream() => BodySize::Known(0),
            Some(length) => BodySize::Known(length),
            None => BodySize::Unknown,
        };
        machine.send_head(stream, parts.status, &parts.headers, size)?;
        if size == BodySize::Known(0) || self.head {
            exchange.set(Exchange::Idle);
            self.answered = true;
        } else {
            exchange.set(Exchange::Answering { body });
        }
        Ok(())
    }

    fn send_piece<F, B>(
        &mut self,
        piece: Piece,
        mut exchange: Pin<&mut Exchange<F, B>>,
        machine: &mut Server,
        stream: StreamId,
    ) where
        B: http_body::Body,
    {
        let sent = match piece {
            Piece::Data(data) => match machine.send_data(stream, data) {
                Ok(()) if !exchange.body_has_ended() => return,
                Ok(()) => machine.end(stream),
                Err(misuse) => Err(misuse),
            },
            Piece::Trailers(trailers) => machine.send_trailers(stream, &trailers),
            Piece::End => machine.end(stream),
            Piece::Failed => {
                machine.reset(stream, Reason::InternalError);
                Ok(())
            }
        };
        if let Err(misuse) = sent {
            tracing::error!("an answer's body cannot be sent: {misuse}");
            machine.reset(stream, Reason::InternalError);
        }
        exchange.set(Exchange::Idle);
        self.answered = true;
    }

    fn drive_tunnel(&mut self, cx: &mut Context<'_>, machine: &mut Server, stream: StreamId) -> Poll<()> {
        let Some(tunnel) = &mut self.tunnel else { return Poll::Ready(()) };
        let mut bytes =
            StreamBytes { machine, stream, incoming: &mut self.incoming, ended: self.incoming_ended };
        tunnel.poll(&mut bytes, cx).map(|_| ())
    }
}

/// A stream's DATA as a stream of bytes, for a tunnel. Whoever polls it is woken by the events of the stream.
struct StreamBytes<'a> {
    machine: &'a mut Server,
    stream: StreamId,
    incoming: &'a mut VecDeque<Bytes>,
    ended: bool,
}

impl ByteStream for StreamBytes<'_> {
    fn poll_recv(&mut self, _cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let Some(mut data) = self.incoming.pop_front() else {
            return if self.ended { Poll::Ready(Ok(0)) } else { Poll::Pending };
        };
        let taken = data.split_to(data.len().min(buf.capacity() - buf.len()));
        buf.extend_from_slice(&taken);
        if !data.is_empty() {
            self.incoming.push_front(data);
        }
        self.machine.release(self.stream, taken.len());
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_send(&mut self, _cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let capacity = self.machine.capacity(self.stream);
        let Some(first) = data.iter().find(|slice| !slice.is_empty()) else { return Poll::Ready(Ok(0)) };
        let Some(part) = first.get(..first.len().min(capacity)).filter(|part| !part.is_empty()) else {
            return Poll::Pending;
        };
        match self.machine.send_data(self.stream, Bytes::copy_from_slice(part)) {
            Ok(()) => Poll::Ready(Ok(part.len())),
            Err(_) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close_write(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The stream may be over already; then its end was said.
        let _ = self.machine.end(self.stream);
        Poll::Ready(Ok(()))
    }
}
