//! One request over HTTP/2, where the server speaks it: a connection found or made, and the request made again where it
//! was not processed.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, ready};

use http::header::UPGRADE;
use http::{Method, Uri, Version};
use hyperman_http2::Misuse;
use hyperman_transport::Runtime;
use url::Position;

use crate::call::{Call, Notice};
use crate::connect::Stream;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind};
use crate::exchange::Arrival;
use crate::h2::directory::{Found, Outcome};
use crate::h2::ending::{Failure, Refused};
use crate::h2::exchange::{Exchange, Request};
use crate::h2::hub::Shared;
use crate::pool::Key;
use crate::request::Parts;
use crate::transaction::Transaction;

/// How often a request is made again, 3 times: a server that refuses more is not going to take it. A connection that ends
/// after it has served others does not count.
const AGAIN: u32 = 3;

/// What a request goes over.
enum Line<R: Runtime> {
    /// A connection with others on it.
    Shared(Arc<Shared<R>>, Reused),
    /// A new connection to a server that speaks HTTP/1.1.
    Alone(Box<Connection<R>>),
    /// A kept one to such a server.
    Kept(Box<Connection<R>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Reused(bool);

/// What a request has tried in vain.
struct Avoided<R: Runtime> {
    /// Connections that refused it.
    refused: Vec<Arc<Shared<R>>>,
    /// Kept connections.
    kept: bool,
}

impl<R: Runtime> Call<R> {
    /// Whether this request may go over HTTP/2. One that wants to change the protocol of its connection, or asks for an
    /// older version, may not (RFC 9113 §8.6).
    #[inline]
    pub(crate) fn may_speak_http2(&self) -> bool {
        let Parts { method, version, headers, .. } = &*self.parts;
        let config = &self.client.config;
        let offered = match self.url.scheme() {
            "http" => config.http2_prior_knowledge,
            _ => config.http2,
        };
        offered
            && !self.http1_required
            && *version >= Version::HTTP_11
            && *method != Method::CONNECT
            && !headers.contains_key(UPGRADE)
    }

    /// One request and the head of its answer. None where the server wants it over HTTP/1 alone.
    pub(crate) async fn ask_shared(&mut self) -> Result<Option<Transaction<R>>, Error> {
        let key = self.key()?;
        let mut again = 0;
        let mut avoided = Avoided { refused: Vec::new(), kept: false };
        loop {
            let (shared, reused) = match self.line(&key, &avoided).await? {
                Line::Shared(shared, reused) => (shared, reused),
                Line::Alone(connection) => return self.ask_new(connection).await.map(Some),
                Line::Kept(connection) => {
                    let transaction = self.ask_kept(&key, connection).await?;
                    if transaction.is_some() {
                        return Ok(transaction);
                    }
                    // The next connection may speak HTTP/2: behind one address are several servers.
                    avoided.kept = true;
                    continue;
                }
            };
            self.notify(Notice::Connected { peer: shared.peer, reused: reused.0 });
            let failure = match self.exchange_shared(&shared).await {
                Ok(exchange) => return Ok(Some(Transaction::Http2(exchange))),
                Err(failure) => failure,
            };
            if failure.lost {
                self.client.multiplexed.remove(&shared);
            }
            if failure.refused == Refused::Yes {
                // Not asked again for this request; those who are on it stay, and others may come.
                avoided.refused.push(shared);
            }
            if failure.wants_http1() && key.origin.scheme.is_encrypted() && !self.parts.body.is_used_up() {
                // It did not look at the request, then (RFC 9113 §7, HTTP_1_1_REQUIRED).
                self.http1_required = true;
                self.notify(Notice::Retry);
                return Ok(None);
            }
            let stale = failure.lost && reused.0 && self.is_idempotent();
            let unprocessed = !failure.processed && (failure.refused != Refused::No || failure.lost);
            if !(stale || unprocessed)
                || self.parts.body.is_used_up()
                || again > AGAIN.saturating_sub(u32::from(!failure.in_turn))
            {
                return Err(Error::new(failure.kind).maybe_processed(failure.processed));
            }
            again += u32::from(!failure.in_turn);
            self.notify(Notice::Retry);
        }
    }

    /// What there is to send a request over, once there is something.
    async fn line(&mut self, key: &Key, avoided: &Avoided<R>) -> Result<Line<R>, ErrorKind> {
        loop {
            let now = self.client.runtime.now();
            let promise = match self.client.multiplexed.find(key, now, &avoided.refused) {
                Found::Shared(shared) => return Ok(Line::Shared(shared, Reused(true))),
                Found::Http1 if avoided.kept => None,
                Found::Http1 => match poll_fn(|cx| Poll::Ready(self.kept(cx, key))).await {
                    Some(kept) => return Ok(Line::Kept(kept)),
                    None => None,
                },
                Found::Wait(ticket) => {
                    let mut limit = self.connect_limit();
                    let outcome = poll_fn(|cx| match self.passed(&mut limit, cx) {
                        Some(kind) => Poll::Ready(Err(kind)),
                        None => ticket.poll(cx).map(Ok),
                    });
                    match outcome.await? {
                        Outcome::Over => continue,
                        Outcome::Failed => None,
                    }
                }
                Found::Connect(promise) => Some(promise),
            };
            let line = match self.reach(key).await {
                Ok((peer, stream)) => self.line_over(key, peer, stream),
                Err(kind) => {
                    if let Some(promise) = promise {
                        promise.fail();
                    }
                    return Err(kind);
                }
            };
            // The others look only now.
            drop(promise);
            return Ok(line);
        }
    }

    /// What a new stream of bytes speaks.
    fn line_over(&mut self, key: &Key, peer: SocketAddr, stream: Stream<R::Source>) -> Line<R> {
        let client = &self.client;
        if stream.chose_http2() || !key.origin.scheme.is_encrypted() {
            let (config, known) = (client.config.http2_machine.clone(), (key.clone(), peer));
            let shared = Shared::new(stream, config, known, &client.runtime);
            client.multiplexed.put(&shared);
            return Line::Shared(shared, Reused(false));
        }
        client.multiplexed.note_http1(key);
        Line::Alone(self.connected(key.clone(), peer, stream))
    }

    /// The request on this connection, up to the final head of its answer.
    async fn exchange_shared(&mut self, shared: &Arc<Shared<R>>) -> Result<Box<Exchange<R>>, Failure> {
        let expects = self.parts.expect_continue.filter(|_| !self.parts.body.is_empty());
        let hold_until = expects.and_then(|patience| self.client.runtime.now().checked_add(patience));
        let fields = self.fields(expects.is_some(), !self.parts.body.is_empty()).map_err(Failure::before)?;
        let target = &self.url[..Position::AfterQuery];
        let uri: Uri =
            target.parse().map_err(|_| Failure::before(ErrorKind::Http2Request(Misuse::BadTarget)))?;
        if let Some(watch) = &mut self.parts.watch {
            let target = crate::target::request_target(&self.url);
            let (method, version) = (&self.parts.method, Version::HTTP_2);
            watch(Notice::Request { method, target, version, headers: &fields });
        }
        let mut exchange = Exchange::new(self.client.clone(), shared.clone());
        poll_fn(|cx| {
            if self.deadline.has_passed(cx) {
                let processed = exchange.is_opened();
                return Poll::Ready(Err(Failure { processed, ..Failure::before(ErrorKind::Timeout) }));
            }
            if !exchange.is_opened() {
                let Parts { method, body, .. } = &mut *self.parts;
                let request = Request { method, uri: &uri, fields: &fields, hold_until };
                ready!(exchange.poll_open(cx, &request, body))?;
            }
            loop {
                match ready!(exchange.poll_head(cx))? {
                    Arrival::Interim(interim) => self.notify(Notice::Interim(&interim)),
                    Arrival::Answer => return Poll::Ready(Ok(())),
                }
            }
        })
        .await?;
        Ok(exchange)
    }
}
