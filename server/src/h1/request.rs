//! What comes in: events of the machine into calls of the application.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::{Duration, Instant};

use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{HeaderMap, Method, Request, StatusCode};
use hyperman_http1::{BodyLength, BodySize, Error, Refused, Server, ServerEvent, Timeout};
use hyperman_transport::ByteStream;

use super::{Http1, Phase, Step};
use crate::body::{self, Body, BodyError, Demand, QUEUE_BYTES};
use crate::ends::{App, Ends};
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::upgrade;

impl<F, B> Http1<F, B>
where
    B: http_body::Body,
    B::Error: std::fmt::Display,
{
    /// Takes what the machine has to say and lets the application work, until neither moves. `driven`: the application
    /// has just done what it can.
    pub(super) fn take_events<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        cx: &mut Context<'_>,
        now: Instant,
        requests: &mut u32,
        mut driven: bool,
    ) -> Step {
        let limit = ends.settings.config.requests_per_turn;
        loop {
            let mut moved = !std::mem::take(&mut driven) && self.as_mut().drive(ends, cx);
            let demand = self.as_mut().heed_demand();
            // A peer that does not read its answers, or a handler that does not read its body, is not fed.
            let full = demand == Some(Demand::Full) || self.machine.queued() >= QUEUE_BYTES;
            if !full || self.is_due(now) {
                match self.as_mut().project().machine.next_event() {
                    Ok(None) => {}
                    Ok(Some(event)) => {
                        moved = true;
                        if matches!(event, ServerEvent::Request { .. }) {
                            *requests += 1;
                        }
                        self.as_mut().handle(ends, event, cx, now);
                    }
                    Err(error) => {
                        let _ = self.fault(ends, &error);
                        return Step::Moved;
                    }
                }
            }
            if *requests > limit {
                return Step::Moved;
            }
            if !moved {
                return Step::Stalled;
            }
        }
    }

    pub(super) fn handle<IO: ByteStream, S: App<F, B>>(
        mut self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        event: ServerEvent,
        cx: &mut Context<'_>,
        now: Instant,
    ) {
        match event {
            ServerEvent::Request { request, body, expect_continue, upgrade } => {
                let this = self.as_mut().project();
                *this.fresh = false;
                *this.head_request = request.method() == Method::HEAD;
                if upgrade
                    && body == BodyLength::Empty
                    && let Some(machine) = upgrade_to_http2(this.machine, ends, &request, now)
                {
                    this.extras.get_or_insert_default().http2 = Some(machine);
                    return;
                }
                let incoming = match body {
                    BodyLength::Empty => Ok(Body::empty()),
                    length => arriving_body(this.machine, this.upload, length, expect_continue),
                };
                match incoming {
                    Ok(_) if ends.is_misdirected(&request) => {
                        let status = StatusCode::MISDIRECTED_REQUEST;
                        tell_of_unheard(ends, &request, Some(status), &"not a host of this connection", 0);
                        self.answer_plainly(status);
                    }
                    Ok(body) => self.begin(ends, request.map(|()| body), upgrade, cx),
                    Err(error) => {
                        let sent = self.fault(ends, &error);
                        tell_of_unheard(ends, &request, error.status(), &error, sent);
                    }
                }
            }
            ServerEvent::Data(data) => {
                if let Some(upload) = &self.upload {
                    upload.send(data);
                }
            }
            ServerEvent::Trailers(trailers) => {
                if let Some(upload) = &self.upload {
                    upload.trailers(trailers);
                }
            }
            ServerEvent::End => {
                if let Some(upload) = self.project().upload.take() {
                    upload.end(Ok(()));
                }
            }
        }
    }

    pub(super) fn begin<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &mut Ends<IO, S>,
        request: Request<Body>,
        upgrade: bool,
        cx: &mut Context<'_>,
    ) {
        let this = self.project();
        let mut request = request.map(|body| body.on(&ends.info));
        let interim = ends.extend(&mut request);
        if interim.is_some() {
            this.extras.get_or_insert_default().interim = interim;
        }
        if upgrade {
            let (offer, on_upgrade) = upgrade::offer();
            request.extensions_mut().insert(on_upgrade);
            this.extras.get_or_insert_default().upgrade = Some(offer);
        }
        this.exchange.begin(&mut ends.service, request, cx);
    }

    /// Acts on what the reader of the request's body wants, and says what that is.
    pub(super) fn heed_demand(self: Pin<&mut Self>) -> Option<Demand> {
        let this = self.project();
        let demand = this.upload.as_ref()?.demand();
        match demand {
            Demand::Waiting => this.machine.send_continue(),
            Demand::Room | Demand::Full => {}
            Demand::Dropped => {
                *this.upload = None;
                this.machine.ignore_body();
                return None;
            }
        }
        this.machine.want_body(demand == Demand::Waiting);
        Some(demand)
    }

    /// The peer broke the protocol or was too slow: whoever works for it is dropped, and it is told why. Says how many
    /// bytes that takes.
    pub(super) fn fault<IO: ByteStream, S: App<F, B>>(
        self: Pin<&mut Self>,
        ends: &Ends<IO, S>,
        error: &Error,
    ) -> u64 {
        tracing::debug!("connection of {}: {error}", ends.info.peer);
        let mut this = self.project();
        if let Some(upload) = this.upload.take() {
            let too_large = error.status() == Some(StatusCode::PAYLOAD_TOO_LARGE);
            upload.end(Err(if too_large { BodyError::TooLarge } else { BodyError::Disconnected }));
        }
        this.exchange.set(Exchange::Idle);
        let (status, sent) =
            if *this.fresh && ends.settings.config.http2 && matches!(error, Error::NotHttp(_)) {
                // On a port where HTTP/2 is spoken too, this is a preface that is none: the connection is over, and words
                // in the other language would help nobody (RFC 9113 §3.4).
                this.machine.abort();
                (None, 0)
            } else {
                (error.status(), this.machine.answer_fault(error) as u64)
            };
        *this.phase = Phase::Closing;
        if let Some(refused) = this.machine.refused()
            // Nobody asked for anything.
            && *error != Error::Timeout(Timeout::Idle)
        {
            let Refused { first_line, after } = refused;
            ends.tell(&Refusal { peer: &ends.info.peer, status, reason: error, first_line, sent, after });
        }
        sent
    }
}

/// Tells of a request that could be read, but was not handed on.
#[cold]
fn tell_of_unheard<IO, S>(
    ends: &Ends<IO, S>,
    request: &Request<()>,
    status: Option<StatusCode>,
    reason: &dyn std::fmt::Display,
    sent: u64,
) {
    let line = format!("{} {} {:?}", request.method(), request.uri(), request.version());
    let (peer, first_line, after) = (&ends.info.peer, line.as_bytes(), Duration::ZERO);
    ends.tell(&Refusal { peer, status, reason, first_line, sent, after });
}

/// The machine that goes on with the connection where `request` asks for `h2c` (RFC 7540 §3.2), with the 101 queued.
/// `None` leaves the request to be answered by HTTP/1.1, as an upgrade may always be.
fn upgrade_to_http2<IO, S>(
    machine: &mut Server,
    ends: &Ends<IO, S>,
    request: &Request<()>,
    now: Instant,
) -> Option<Box<hyperman_http2::Server>> {
    if !ends.settings.config.http2 || ends.info.is_encrypted() {
        return None;
    }
    let names = |field, token: &str| {
        let mut values = request.headers().get_all(field).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(token)))
    };
    // Who asks for a tunnel, or for the end of the connection, does not mean this.
    if *request.method() == Method::CONNECT || names(CONNECTION, "close") {
        return None;
    }
    if !names(UPGRADE, "h2c") || !names(CONNECTION, "http2-settings") {
        return None;
    }
    let config = Arc::clone(&ends.settings.http2);
    let http2 = hyperman_http2::Server::upgraded(config, now, request.clone()).ok()?;
    let upgrade = HeaderMap::from_iter([(UPGRADE, HeaderValue::from_static("h2c"))]);
    machine.send_head(StatusCode::SWITCHING_PROTOCOLS, &upgrade, BodySize::Known(0)).ok()?;
    Some(Box::new(http2))
}

/// The body for a request whose head has just come: whole when all of it is here already, else a queue that starts
/// with what is.
fn arriving_body(
    machine: &mut Server,
    upload: &mut Option<body::Sender>,
    length: BodyLength,
    expect_continue: bool,
) -> Result<Body, Error> {
    let mut pieces: [Option<ServerEvent>; 2] = [None, None];
    if !expect_continue {
        for piece in &mut pieces {
            match machine.next_event()? {
                None => break,
                Some(event) => *piece = Some(event),
            }
        }
    }
    let (sender, receiver) = match (pieces, length) {
        ([Some(ServerEvent::End), _], _) => return Ok(Body::empty()),
        ([Some(ServerEvent::Data(data)), Some(ServerEvent::End)], _) => return Ok(Body::whole(data)),
        (pieces, length) => {
            let declared = match length {
                BodyLength::Known(length) => Some(length),
                _ => None,
            };
            let (sender, receiver) = body::channel(declared);
            for piece in pieces.into_iter().flatten() {
                match piece {
                    ServerEvent::Data(data) => sender.send(data),
                    ServerEvent::Trailers(trailers) => sender.trailers(trailers),
                    ServerEvent::End => {
                        sender.end(Ok(()));
                        return Ok(Body::queue(receiver));
                    }
                    ServerEvent::Request { .. } => {}
                }
            }
            (sender, receiver)
        }
    };
    *upload = Some(sender);
    Ok(Body::queue(receiver))
}
