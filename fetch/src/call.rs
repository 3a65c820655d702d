//! One call of the user: connections taken or made, a stale one replaced, redirects followed, until an answer is there.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{EXPECT, HOST};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use hyperman_http1::{Error as Fault, Misuse, PreparedFields};
use hyperman_transport::{Runtime, Socket};
use url::{Host, Url};

use crate::body::Body;
use crate::client::{Inner, Redirects};
use crate::connect::{Race, Stream};
use crate::connection::{Connection, PlainHead};
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, RedirectFault, UrlFault};
use crate::exchange::{Answer, Arrival, Exchange, Fields, Head};
use crate::incoming::Incoming;
use crate::pool::Key;
use crate::redirect::{self, Follow, Hop};
use crate::request::{Parts, Watcher};
use crate::resolve::Refused;
use crate::response::Response;
use crate::target::{self, Origin};
use crate::transaction::Transaction;

/// What happens before an answer is there.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A name is being looked up.
    Resolving(&'a str),
    /// There is a connection.
    Connected {
        /// The server's address.
        peer: SocketAddr,
        /// Whether it was kept from an earlier exchange.
        reused: bool,
    },
    /// This is about to be sent.
    Request {
        /// The method.
        method: &'a Method,
        /// The target as it is written.
        target: &'a str,
        /// The version.
        version: Version,
        /// The fields, without those that frame the body.
        headers: &'a HeaderMap,
    },
    /// An interim answer (1xx) came.
    Interim(&'a http::Response<()>),
    /// A kept connection turned out to be dead; the request is made again on a new one.
    Retry,
    /// The server does not know what to do with `Expect` (417); the request is made again without it.
    ExpectationFailed(&'a http::Response<()>),
    /// A redirect is followed.
    Redirect {
        /// The answer that redirects.
        response: &'a http::Response<()>,
        /// Where to.
        to: &'a Url,
    },
}

/// A call under way. The request is changed in place as redirects are followed.
pub(crate) struct Call<R: Runtime> {
    pub(crate) client: Arc<Inner<R>>,
    pub(crate) deadline: Deadline<R::Timer>,
    pub(crate) parts: Box<Parts>,
    pub(crate) url: Arc<Url>,
    /// A server wants this request over HTTP/1.1 and no other version.
    pub(crate) http1_required: bool,
}

/// Makes the request.
pub(crate) async fn run<R: Runtime>(
    client: Arc<Inner<R>>,
    mut parts: Box<Parts>,
) -> Result<Response<R>, Error> {
    let url = match (parts.fault.take(), parts.url.take()) {
        (None, Some(url)) => url,
        (Some(fault), _) => return Err(fault),
        (None, None) => return Err(ErrorKind::Url(UrlFault::NoHost).into()),
    };
    if parts.method == Method::TRACE && !parts.body.is_empty() {
        // RFC 9110 §9.3.8: a TRACE request has no content.
        return Err(Error::new(ErrorKind::Request(Misuse::ConflictingFraming)).about(&url));
    }
    let deadline = Deadline::after(&client.runtime, parts.timeout);
    let mut call = Call { client, deadline, parts, url, http1_required: false };
    let mut followed = 0;
    let exchange = loop {
        let mut exchange = call.ask().await.map_err(|error| error.about(&call.url))?;
        let next = match call.redirected(&exchange, followed) {
            Ok(false) if call.expects_too_much(&mut exchange) => {
                exchange.pass_over();
                continue;
            }
            Ok(false) => break exchange,
            Ok(true) => Ok(followed + 1),
            Err(kind) => Err(Error::new(kind).maybe_processed(true).about(&call.url)),
        };
        if let (Ok(_), Some(answer)) = (&next, exchange.answer()) {
            let to = &call.url;
            notify(&mut call.parts.watch, Notice::Redirect { response: &answer.head, to });
        }
        exchange.pass_over();
        followed = next?;
    };
    call.respond(exchange)
}

impl<R: Runtime> Call<R> {
    /// The answer to the caller.
    fn respond(self, mut exchange: Transaction<R>) -> Result<Response<R>, Error> {
        let Call { deadline, parts, url, .. } = self;
        let peer = exchange.peer();
        // Nobody else takes it.
        let Some(Answer { head, length, early, upgraded }) = exchange.take_answer() else {
            return Err(Error::new(ErrorKind::EmptyReply).maybe_processed(true).about(&url));
        };
        match Incoming::new(exchange, length, early, upgraded, deadline, parts.max_body) {
            Ok(body) => Ok(Response::new(head, url, peer, body)),
            Err(kind) => Err(Error::answered(kind).about(&url)),
        }
    }

    /// Turns the request into the one that a redirect asks for; false when the answer is no redirect, or redirects are
    /// not followed.
    fn redirected(&mut self, exchange: &Transaction<R>, followed: u32) -> Result<bool, ErrorKind> {
        let (Redirects::Follow(limit), Some(answer)) = (self.parts.redirects, exchange.answer()) else {
            return Ok(false);
        };
        if !answer.head.status().is_redirection() {
            return Ok(false);
        }
        let Parts { method, headers, body, .. } = &mut *self.parts;
        let referer = self.client.config.referer;
        let mut hop = Hop { method, url: Arc::make_mut(&mut self.url), headers, referer };
        let follow = redirect::follow(answer.head.status(), answer.head.headers(), &mut hop)?;
        if follow == Follow::No {
            return Ok(false);
        }
        if followed >= limit {
            return Err(ErrorKind::TooManyRedirects(limit));
        }
        if follow == Follow::WithoutBody {
            *body = Body::empty();
        }
        if body.is_used_up() {
            return Err(ErrorKind::Redirect(RedirectFault::BodyNotReplayable));
        }
        Ok(true)
    }

    /// Whether the server failed an expectation of the request (417). It is taken back then, as far as the body is there to
    /// be sent: somebody on the way does not know `100-continue`, which says nothing about the request itself
    /// (RFC 9110 §10.1.1).
    #[inline]
    fn expects_too_much(&mut self, exchange: &mut Transaction<R>) -> bool {
        let plain = self.parts.expect_continue.is_none() && self.parts.headers.is_empty();
        !plain && self.takes_expectation_back(exchange)
    }

    #[inline(never)]
    fn takes_expectation_back(&mut self, exchange: &mut Transaction<R>) -> bool {
        let Parts { headers, body, expect_continue, watch, .. } = &mut *self.parts;
        if expect_continue.is_none() && !headers.contains_key(EXPECT) {
            return false;
        }
        let failed =
            exchange.answer().is_some_and(|answer| answer.head.status() == StatusCode::EXPECTATION_FAILED);
        if !failed {
            return false;
        }
        if body.is_used_up()
            && let Some(unwanted) = exchange.take_unwanted()
        {
            *body = unwanted;
        }
        // Without content nothing was expected.
        if body.is_used_up() || body.is_empty() {
            return false;
        }
        *expect_continue = None;
        headers.remove(EXPECT);
        if let Some(answer) = exchange.answer() {
            notify(watch, Notice::ExpectationFailed(&answer.head));
        }
        true
    }

    /// Whether the request may be made a second time when it is not known whether the first one was acted on
    /// (RFC 9110 §9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        const IDEMPOTENT: [Method; 6] =
            [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE];
        IDEMPOTENT.contains(&self.parts.method)
    }

    /// One request and the head of its answer.
    async fn ask(&mut self) -> Result<Transaction<R>, Error> {
        // In a box, for the sake of all those that speak HTTP/1.
        if self.may_speak_http2()
            && let Some(transaction) = Box::pin(self.ask_shared()).await?
        {
            return Ok(transaction);
        }
        let key = self.key()?;
        if let Some(kept) = poll_fn(|cx| Poll::Ready(self.kept(cx, &key))).await
            && let Some(transaction) = self.ask_kept(&key, kept).await?
        {
            return Ok(transaction);
        }
        let (peer, stream) = self.reach(&key).await?;
        let connection = self.connected(key, peer, stream);
        self.ask_new(connection).await
    }

    /// The request on a new connection.
    pub(crate) async fn ask_new(&mut self, connection: Box<Connection<R>>) -> Result<Transaction<R>, Error> {
        let exchange = self.exchange(connection).await;
        exchange.map(Transaction::Http1).map_err(|failed| failure(*failed))
    }

    /// The request on a kept connection. None when that turns out to be dead, and the request may be made on a new one.
    pub(crate) async fn ask_kept(
        &mut self,
        key: &Key,
        kept: Box<Connection<R>>,
    ) -> Result<Option<Transaction<R>>, Error> {
        let (kind, exchange) = match self.exchange(kept).await {
            Ok(exchange) => return Ok(Some(Transaction::Http1(exchange))),
            Err(failed) => *failed,
        };
        if exchange.heard() || !is_death(&kind) {
            return Err(failure((kind, exchange)));
        }
        if self.parts.body.is_used_up() || exchange.sent() && !self.is_idempotent() {
            return Err(failure((ErrorKind::StaleConnection, exchange)));
        }
        drop(exchange);
        self.client.pool.forget(key);
        self.notify(Notice::Retry);
        Ok(None)
    }

    /// A kept connection that is alive as far as can be known.
    #[inline]
    pub(crate) fn kept(&mut self, cx: &mut Context<'_>, key: &Key) -> Option<Box<Connection<R>>> {
        let now = self.client.runtime.now();
        while let Some(mut idle) = self.client.pool.take(key, now) {
            if idle.is_quiet(cx, now) {
                self.notify(Notice::Connected { peer: idle.peer, reused: true });
                return Some(idle);
            }
        }
        None
    }

    /// A new connection to a server that is asked over HTTP/1.
    pub(crate) fn connected(
        &mut self,
        key: Key,
        peer: SocketAddr,
        stream: Stream<R::Source>,
    ) -> Box<Connection<R>> {
        self.notify(Notice::Connected { peer, reused: false });
        Connection::new(stream, &self.client.config, key, peer, self.client.runtime.now())
    }

    /// The time that a new connection may take.
    pub(crate) fn connect_limit(&self) -> Deadline<R::Timer> {
        Deadline::after(&self.client.runtime, self.parts.connect_timeout)
    }

    /// A new stream of bytes to the server, and the address that it was reached at.
    pub(crate) async fn reach(&mut self, key: &Key) -> Result<(SocketAddr, Stream<R::Source>), ErrorKind> {
        let client = self.client.clone();
        let mut limit = self.connect_limit();
        let origin = &key.origin;
        let addresses: Arc<[SocketAddr]> = match &origin.host {
            Host::Ipv4(address) => [SocketAddr::from((*address, 0))].into(),
            Host::Ipv6(address) => [SocketAddr::from((*address, 0))].into(),
            Host::Domain(name) => match client.config.addresses.get(name) {
                Some(addresses) => addresses.clone(),
                None => self.resolve(name, &mut limit).await?,
            },
        };
        let mut race = Race::new(client.runtime.clone(), &addresses, origin.port, key.local);
        let winner = poll_fn(|cx| match self.passed(&mut limit, cx) {
            Some(kind) => Poll::Ready(Err(kind)),
            None => race.poll(cx).map_err(|source| {
                let authority = format!("{}:{}", origin.host, origin.port);
                ErrorKind::Connect { authority, source }
            }),
        });
        let (peer, socket) = winner.await?;
        let stream = self.secure(key, socket, &mut limit).await?;
        Ok((peer, stream))
    }

    /// The identity of the connection that the request needs.
    #[inline]
    pub(crate) fn key(&self) -> Result<Key, ErrorKind> {
        let origin = Origin::of(&self.url)?;
        let encrypted = origin.scheme.is_encrypted();
        let key = Key::plain(origin, self.client.config.local_address);
        #[cfg(feature = "tls")]
        if encrypted {
            let tls = self.tls()?;
            return Ok(Key { tls: Some(tls.id()), ..key });
        }
        debug_assert!(!encrypted, "without TLS no URL is taken that needs it");
        Ok(key)
    }

    /// The TLS configuration of the request.
    #[cfg(feature = "tls")]
    fn tls(&self) -> Result<crate::tls::ClientTls, ErrorKind> {
        let http2 = self.may_speak_http2();
        self.client.config.tls.get(&self.parts.tls, http2).map_err(ErrorKind::TlsConfig)
    }

    /// The stream over a socket that has just connected, with its handshake done where the origin asks for one.
    #[cfg(feature = "tls")]
    async fn secure(
        &mut self,
        key: &Key,
        socket: Socket<R::Source>,
        limit: &mut Deadline<R::Timer>,
    ) -> Result<Stream<R::Source>, ErrorKind> {
        if !key.origin.scheme.is_encrypted() {
            return Ok(Stream::Plain(socket));
        }
        let tls = self.tls()?;
        let mut stream = Box::new(tls.stream(socket, &key.origin.host.to_string()).map_err(ErrorKind::Tls)?);
        poll_fn(|cx| match self.passed(limit, cx) {
            Some(kind) => Poll::Ready(Err(kind)),
            None => stream.poll_handshake(cx).map_err(ErrorKind::Tls),
        })
        .await?;
        Ok(Stream::Tls(stream))
    }

    #[cfg(not(feature = "tls"))]
    async fn secure(
        &mut self,
        _key: &Key,
        socket: Socket<R::Source>,
        _limit: &mut Deadline<R::Timer>,
    ) -> Result<Stream<R::Source>, ErrorKind> {
        Ok(Stream::Plain(socket))
    }

    async fn resolve(
        &mut self,
        name: &str,
        limit: &mut Deadline<R::Timer>,
    ) -> Result<Arc<[SocketAddr]>, ErrorKind> {
        self.notify(Notice::Resolving(name));
        let failed = |source| ErrorKind::Resolve { host: name.to_owned(), source };
        let mut resolution = match self.client.config.resolver.resolve(name) {
            Ok(resolution) => resolution,
            Err(Refused::Busy) => return Err(ErrorKind::ResolverBusy),
            Err(Refused::Thread(source)) => return Err(failed(source)),
        };
        poll_fn(|cx| match self.passed(limit, cx) {
            Some(kind) => Poll::Ready(Err(kind)),
            None => Pin::new(&mut resolution).poll(cx).map_err(failed),
        })
        .await
    }

    /// Which of the two deadlines has passed, if one has.
    pub(crate) fn passed(
        &mut self,
        limit: &mut Deadline<R::Timer>,
        cx: &mut Context<'_>,
    ) -> Option<ErrorKind> {
        if self.deadline.has_passed(cx) {
            return Some(ErrorKind::Timeout);
        }
        limit.has_passed(cx).then_some(ErrorKind::ConnectTimeout)
    }

    /// The request on this connection, up to the final head of its answer.
    async fn exchange(&mut self, connection: Box<Connection<R>>) -> Result<Exchange<R>, Failed<R>> {
        let mut exchange = Exchange::new(self.client.clone(), connection);
        let mut begun = false;
        let outcome = poll_fn(|cx| {
            if self.deadline.has_passed(cx) {
                return Poll::Ready(Err(ErrorKind::Timeout));
            }
            exchange.on_loan(|exchange| {
                if !std::mem::replace(&mut begun, true) {
                    self.begin(exchange)?;
                }
                loop {
                    match ready!(exchange.poll_head(cx))? {
                        Arrival::Interim(interim) => self.notify(Notice::Interim(&interim)),
                        Arrival::Answer => return Poll::Ready(Ok(())),
                    }
                }
            })
        })
        .await;
        match outcome {
            Ok(()) => Ok(exchange),
            Err(kind) => Err(Box::new((kind, exchange))),
        }
    }

    /// Hands the request to the connection's machine.
    fn begin(&mut self, exchange: &mut Exchange<R>) -> Result<(), ErrorKind> {
        let body = self.parts.body.lend();
        let Parts { method, version, headers, omitted, expect_continue, .. } = &*self.parts;
        let expects = expect_continue.filter(|_| *version >= Version::HTTP_11 && !body.is_empty());
        let hold_until = expects.and_then(|patience| self.client.runtime.now().checked_add(patience));
        let plain = if headers.is_empty() && omitted.is_empty() && expects.is_none() {
            Some(self.plain_head(exchange)?)
        } else {
            None
        };
        let own;
        let (headers, fields) = match &plain {
            Some(plain) => (&plain.fields, Fields::Prepared(&plain.prepared)),
            None => {
                own = self.fields(expects.is_some(), !body.is_empty())?;
                (&own, Fields::Map(&own))
            }
        };
        let (target, version) = (target::request_target(&self.url), *version);
        let head = Head { method, target, version, fields, hold_until };
        exchange.begin(&head, body).map_err(ErrorKind::Request)?;
        if let Some(watch) = &mut self.parts.watch {
            watch(Notice::Request { method: &self.parts.method, target, version, headers });
        }
        exchange.connection.plain_head = plain;
        Ok(())
    }

    /// The fields of a request that adds none of its own, from the last time if this connection has sent them before.
    fn plain_head(&self, exchange: &mut Exchange<R>) -> Result<Box<PlainHead>, ErrorKind> {
        let config = &self.client.config;
        let known = exchange.connection.plain_head.take();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.config, config)) {
            return Ok(known);
        }
        let fields = self.fields(false, true)?;
        let prepared = PreparedFields::new(&fields).map_err(ErrorKind::Request)?;
        Ok(Box::new(PlainHead { config: config.clone(), fields, prepared }))
    }

    /// The fields as they are written: `Host` first (RFC 9110 §7.2), the defaults, then the request's own. Without content
    /// none says `Expect: 100-continue` (RFC 9110 §10.1.1).
    pub(crate) fn fields(&self, expects: bool, content: bool) -> Result<HeaderMap, ErrorKind> {
        let own = &self.parts.headers;
        let defaults = &self.client.config.defaults;
        let mut fields = HeaderMap::with_capacity(own.len() + defaults.len() + 2);
        if !own.contains_key(HOST) {
            let host = HeaderValue::from_str(target::authority(&self.url));
            fields.insert(HOST, host.map_err(|error| ErrorKind::Field(error.to_string()))?);
        }
        for (name, value) in defaults {
            if !own.contains_key(name) && !self.parts.omitted.contains(name) {
                fields.append(name, value.clone());
            }
        }
        for (name, value) in own {
            fields.append(name, value.clone());
        }
        if expects {
            fields.insert(EXPECT, HeaderValue::from_static("100-continue"));
        } else if !content {
            fields.remove(EXPECT);
        }
        Ok(fields)
    }

    pub(crate) fn notify(&mut self, notice: Notice<'_>) {
        notify(&mut self.parts.watch, notice);
    }
}

fn notify(watch: &mut Option<Watcher>, notice: Notice<'_>) {
    if let Some(watch) = watch {
        watch(notice);
    }
}

/// Why an exchange failed, and what is left of it.
type Failed<R> = Box<(ErrorKind, Exchange<R>)>;

fn failure<R: Runtime>((kind, exchange): (ErrorKind, Exchange<R>)) -> Error {
    Error::new(kind).maybe_processed(exchange.sent())
}

/// Whether this is how a connection looks that the server had closed, or spoiled, before the request came.
fn is_death(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::EmptyReply
            | ErrorKind::Send(_)
            | ErrorKind::Receive(_)
            | ErrorKind::Protocol(Fault::Unsolicited | Fault::AnswerBeforeRequest)
    )
}
