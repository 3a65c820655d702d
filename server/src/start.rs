//! The beginning of a connection: the TLS handshake, and which protocol the peer speaks.
//!
//! Over TLS the peer says so by ALPN. On cleartext its first bytes do: the preface of HTTP/2 with prior knowledge (RFC
//! 9113 §3.3) is no request of HTTP/1.

use std::task::{Context, Poll};
#[cfg(feature = "tls")]
use std::time::Duration;
use std::time::Instant;

use bytes::BytesMut;
use hyperman_transport::{ArmReadiness, ByteStream};

use crate::config::Config;
use crate::ends::Ends;
#[cfg(feature = "tls")]
use crate::refusal::Refusal;
use crate::wire::Wire;

/// What a connection turns out to be.
pub(crate) enum Start {
    /// It is over before it began.
    Over,
    /// HTTP/1.1, with what was received.
    Http1(BytesMut),
    /// HTTP/2, with what was received.
    Http2(BytesMut),
}

/// A connection that has not said yet what it speaks.
pub(crate) struct Starting {
    since: Instant,
    received: BytesMut,
    /// The handshake is over, or there is none.
    shaken: bool,
}

impl Starting {
    pub(crate) fn new(since: Instant) -> Self {
        Starting { since, received: BytesMut::new(), shaken: false }
    }

    /// When to give up: the handshake has the time of a head, a peer that has said nothing yet the idle time, and from its
    /// first byte on one timer covers what tells the protocol and the head behind (S31).
    pub(crate) fn deadline(&self, config: &Config) -> Instant {
        let silent = self.shaken && self.received.is_empty();
        self.since + if silent { config.timeouts.idle } else { config.timeouts.head }
    }

    /// Whether the peer has sent nothing yet of what it will speak.
    pub(crate) fn is_silent(&self) -> bool {
        self.received.is_empty()
    }

    /// When the peer's first byte came; where none has, when the connection was accepted.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    pub(crate) fn poll<A: ArmReadiness, S>(
        &mut self,
        ends: &mut Ends<Wire<A>, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Start> {
        if !self.shaken {
            match shake(ends, cx) {
                Poll::Pending if now >= self.deadline(&ends.settings.config) => {
                    return Poll::Ready(Start::Over);
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Shaken::Failed) => return Poll::Ready(Start::Over),
                Poll::Ready(Shaken::Protocol(http2)) if http2 => {
                    return Poll::Ready(Start::Http2(BytesMut::new()));
                }
                Poll::Ready(Shaken::Protocol(_)) => return Poll::Ready(Start::Http1(BytesMut::new())),
                Poll::Ready(Shaken::Cleartext) => self.shaken = true,
            }
        }
        self.sniff(ends, cx, now)
    }

    /// Reads until the first bytes differ from the preface of HTTP/2, or are it.
    fn sniff<A: ArmReadiness, S>(
        &mut self,
        ends: &mut Ends<Wire<A>, S>,
        cx: &mut Context<'_>,
        now: Instant,
    ) -> Poll<Start> {
        if !ends.settings.config.http2 {
            return Poll::Ready(Start::Http1(BytesMut::new()));
        }
        loop {
            let mut buffer = hyperman_transport::loan::take();
            let outcome = ends.stream.poll_recv(cx, &mut buffer);
            match outcome {
                Poll::Ready(Ok(1..)) if self.received.is_empty() => {
                    self.received = buffer;
                    self.since = now;
                }
                Poll::Ready(Ok(1..)) => self.received.extend_from_slice(&buffer),
                _ => hyperman_transport::loan::give_back(buffer),
            }
            match outcome {
                Poll::Ready(Err(_)) => return Poll::Ready(Start::Over),
                // The machine of HTTP/1.1 knows what to say to half a request.
                Poll::Ready(Ok(0)) => return Poll::Ready(Start::Http1(std::mem::take(&mut self.received))),
                Poll::Ready(Ok(_)) => {
                    let preface = &hyperman_http2::PREFACE[..];
                    if self.received.starts_with(preface) {
                        return Poll::Ready(Start::Http2(std::mem::take(&mut self.received)));
                    }
                    if !preface.starts_with(&self.received) {
                        return Poll::Ready(Start::Http1(std::mem::take(&mut self.received)));
                    }
                }
                Poll::Pending if now < self.deadline(&ends.settings.config) => return Poll::Pending,
                Poll::Pending if self.received.is_empty() => return Poll::Ready(Start::Over),
                Poll::Pending => return Poll::Ready(Start::Http1(std::mem::take(&mut self.received))),
            }
        }
    }
}

/// How the handshake went.
enum Shaken {
    /// There is none.
    Cleartext,
    /// Well; whether HTTP/2 was agreed on.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS nothing is agreed on"))]
    Protocol(bool),
    /// Badly; the peer has been told what it can be told.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS nothing can fail"))]
    Failed,
}

#[cfg(not(feature = "tls"))]
fn shake<A: ArmReadiness, S>(_ends: &mut Ends<Wire<A>, S>, _cx: &mut Context<'_>) -> Poll<Shaken> {
    Poll::Ready(Shaken::Cleartext)
}

#[cfg(feature = "tls")]
fn shake<A: ArmReadiness, S>(ends: &mut Ends<Wire<A>, S>, cx: &mut Context<'_>) -> Poll<Shaken> {
    use hyperman_transport::tls;

    let Wire::Tls(stream) = &mut ends.stream else { return Poll::Ready(Shaken::Cleartext) };
    match std::task::ready!(stream.poll_handshake(cx)) {
        Ok(()) => {
            let info = stream.info().cloned();
            let http2 = info.as_ref().and_then(|info| info.alpn()) == Some(b"h2");
            let peer = ends.info.peer.clone();
            ends.learn(crate::body::ConnectionInfo { peer, tls: info });
            Poll::Ready(Shaken::Protocol(http2))
        }
        Err(error) => {
            tracing::debug!("handshake of {}: {error}", ends.info.peer);
            if matches!(error, tls::Error::PlainHttp) {
                refuse_cleartext(stream, cx);
                ends.tell(&Refusal {
                    peer: &ends.info.peer,
                    status: Some(http::StatusCode::BAD_REQUEST),
                    reason: &error,
                    first_line: b"",
                    sent: SPOKE_CLEARTEXT.len() as u64,
                    after: Duration::ZERO,
                });
            }
            Poll::Ready(Shaken::Failed)
        }
    }
}

/// What a peer hears that speaks HTTP to a port for HTTPS.
#[cfg(feature = "tls")]
const SPOKE_CLEARTEXT: &str = "This port speaks HTTPS, and you spoke HTTP.\r\n";

/// Tells a peer that speaks HTTP to a port for HTTPS so, in the only language that it understands. One attempt is
/// enough: nothing was sent before, so the socket takes it.
#[cfg(feature = "tls")]
fn refuse_cleartext<T: ByteStream>(stream: &mut hyperman_transport::tls::TlsStream<T>, cx: &mut Context<'_>) {
    let refusal = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         date: {}\r\nconnection: close\r\n\r\n{SPOKE_CLEARTEXT}",
        SPOKE_CLEARTEXT.len(),
        httpdate::fmt_http_date(std::time::SystemTime::now()),
    );
    let socket = stream.get_mut();
    let _ = socket.poll_send(cx, &[std::io::IoSlice::new(refusal.as_bytes())]);
    let _ = socket.poll_close_write(cx);
}
