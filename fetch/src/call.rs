//! One call of the user: connections taken or made, a stale one replaced, redirects followed, until an answer is there.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::{EXPECT, HOST, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Version};
use hyperman_http1::Error as Fault;
use hyperman_transport::Runtime;
use url::{Host, Url};

use crate::body::Body;
use crate::client::{Inner, Redirects};
use crate::connect::Race;
use crate::connection::Connection;
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, RedirectFault};
use crate::exchange::{Arrival, Exchange, Head};
use crate::incoming::Incoming;
use crate::pool::Key;
use crate::redirect::{self, Follow, Hop};
use crate::request::{Parts, Watcher};
use crate::resolve::Refused;
use crate::response::Response;
use crate::target::{self, Origin};

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
    /// A redirect is followed.
    Redirect {
        /// The answer that redirects.
        response: &'a http::Response<()>,
        /// Where to.
        to: &'a Url,
    },
}

/// What stays the same over the hops of a call.
struct Call<R: Runtime> {
    client: Arc<Inner<R>>,
    deadline: Deadline<R::Timer>,
    version: Version,
    omitted: Vec<HeaderName>,
    connect_timeout: Option<Duration>,
    expect_continue: Option<Duration>,
    watch: Option<Watcher>,
}

/// What one hop asks for.
struct Question {
    method: Method,
    url: Url,
    headers: HeaderMap,
}

/// The head of an answer, whose it is, and what will give its body.
type Answered<R> = (http::Response<()>, SocketAddr, Incoming<R>);

/// Makes the request.
pub(crate) async fn run<R: Runtime>(client: Arc<Inner<R>>, parts: Box<Parts>) -> Result<Response<R>, Error> {
    let Parts { method, url, headers, redirects, max_body, .. } = *parts;
    let mut question = Question { method, url: url?, headers };
    let mut body = parts.body;
    let mut call = Call {
        deadline: Deadline::after(&client.runtime, parts.timeout),
        client,
        version: parts.version,
        omitted: parts.omitted,
        connect_timeout: parts.connect_timeout,
        expect_continue: parts.expect_continue,
        watch: parts.watch,
    };
    let mut followed = 0;
    loop {
        let spare = body.again();
        let (head, peer, incoming) =
            call.ask(&question, body).await.map_err(|error| error.about(&question.url))?;
        let next = match redirects {
            Redirects::Stay => None,
            Redirects::Follow(limit) => question
                .redirected(&head, call.client.config.referer, limit.saturating_sub(followed), limit, spare)
                .map_err(|kind| Error::new(kind).maybe_processed(true).about(&question.url))?,
        };
        let Some(next) = next else {
            let incoming = incoming.bound(call.deadline, max_body);
            let incoming =
                incoming.map_err(|kind| Error::new(kind).maybe_processed(true).about(&question.url))?;
            return Ok(Response::new(head, question.url, peer, incoming));
        };
        call.notify(Notice::Redirect { response: &head, to: &question.url });
        body = next;
        followed += 1;
    }
}

impl Question {
    /// Turns into the question that a redirect asks for, and says with which body; `None` when the answer is no redirect.
    fn redirected(
        &mut self,
        head: &http::Response<()>,
        referer: bool,
        left: u32,
        limit: u32,
        spare: Option<Body>,
    ) -> Result<Option<Body>, ErrorKind> {
        let Question { method, url, headers } = self;
        let mut hop = Hop { method, url, headers, referer };
        let follow = redirect::follow(head.status(), head.headers(), &mut hop)?;
        if follow != Follow::No && left == 0 {
            return Err(ErrorKind::TooManyRedirects(limit));
        }
        match (follow, spare) {
            (Follow::No, _) => Ok(None),
            (Follow::WithoutBody, _) => Ok(Some(Body::empty())),
            (Follow::WithBody, Some(body)) => Ok(Some(body)),
            (Follow::WithBody, None) => Err(ErrorKind::Redirect(RedirectFault::BodyNotReplayable)),
        }
    }

    /// Whether the request may be made a second time when it is not known whether the first one was acted on
    /// (RFC 9110 §9.2.2).
    fn is_idempotent(&self) -> bool {
        const IDEMPOTENT: [Method; 6] =
            [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE];
        IDEMPOTENT.contains(&self.method)
    }
}

impl<R: Runtime> Call<R> {
    /// One request and the head of its answer: on a kept connection if there is one, and once more on a new one if that
    /// turns out to be dead.
    async fn ask(&mut self, question: &Question, body: Body) -> Result<Answered<R>, Error> {
        let origin = Origin::of(&question.url)?;
        let key = Key { origin, local: self.client.config.local_address };
        let spare = body.again();
        let Some(kept) = self.kept(&key).await else {
            let connection = self.connect(&key).await?;
            let (outcome, exchange) = self.exchange(question, connection, body).await;
            return match outcome {
                Ok(arrival) => Ok(answer(arrival, exchange)),
                Err(kind) => Err(failure(kind, &exchange)),
            };
        };
        let (outcome, exchange) = self.exchange(question, kept, body).await;
        let kind = match outcome {
            Ok(arrival) => return Ok(answer(arrival, exchange)),
            Err(kind) => kind,
        };
        if exchange.heard() || !is_death(&kind) {
            return Err(failure(kind, &exchange));
        }
        let Some(spare) = spare.filter(|_| question.is_idempotent() || !exchange.sent()) else {
            return Err(failure(ErrorKind::StaleConnection, &exchange));
        };
        drop(exchange);
        self.client.pool.forget(&key);
        self.notify(Notice::Retry);
        let connection = self.connect(&key).await?;
        let (outcome, exchange) = self.exchange(question, connection, spare).await;
        match outcome {
            Ok(arrival) => Ok(answer(arrival, exchange)),
            Err(kind) => Err(failure(kind, &exchange)),
        }
    }

    /// A kept connection that is alive as far as the loop knows.
    async fn kept(&mut self, key: &Key) -> Option<Box<Connection<R>>> {
        let client = &*self.client;
        let now = client.runtime.now();
        let kept = poll_fn(|cx| {
            let idle = std::iter::from_fn(|| client.pool.take(key, now));
            Poll::Ready(idle.into_iter().find_map(|mut idle| idle.is_quiet(cx, now).then_some(idle)))
        })
        .await;
        if let Some(connection) = &kept {
            self.notify(Notice::Connected { peer: connection.peer, reused: true });
        }
        kept
    }

    /// A new connection.
    async fn connect(&mut self, key: &Key) -> Result<Box<Connection<R>>, ErrorKind> {
        let client = self.client.clone();
        let mut limit = Deadline::after(&client.runtime, self.connect_timeout);
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
        let (peer, stream) = winner.await?;
        self.notify(Notice::Connected { peer, reused: false });
        Ok(Connection::new(stream, &client.config, key.clone(), peer, client.runtime.now()))
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
    fn passed(&mut self, limit: &mut Deadline<R::Timer>, cx: &mut Context<'_>) -> Option<ErrorKind> {
        if self.deadline.has_passed(cx) {
            return Some(ErrorKind::Timeout);
        }
        limit.has_passed(cx).then_some(ErrorKind::ConnectTimeout)
    }

    /// The request on this connection, up to the final head of its answer.
    async fn exchange(
        &mut self,
        question: &Question,
        connection: Box<Connection<R>>,
        body: Body,
    ) -> (Result<Arrival, ErrorKind>, Exchange<R>) {
        let mut exchange = Exchange::new(self.client.clone(), connection);
        if let Err(kind) = self.begin(question, &mut exchange, body) {
            return (Err(kind), exchange);
        }
        let outcome = poll_fn(|cx| {
            if self.deadline.has_passed(cx) {
                return Poll::Ready(Err(ErrorKind::Timeout));
            }
            loop {
                match ready!(exchange.poll_head(cx)) {
                    Ok(Arrival::Interim(interim)) => self.notify(Notice::Interim(&interim)),
                    other => return Poll::Ready(other),
                }
            }
        })
        .await;
        (outcome, exchange)
    }

    /// Hands the request to the connection's machine.
    fn begin(
        &mut self,
        question: &Question,
        exchange: &mut Exchange<R>,
        body: Body,
    ) -> Result<(), ErrorKind> {
        let expects = self.expect_continue.filter(|_| self.version >= Version::HTTP_11 && !body.is_empty());
        let plain = question.headers.is_empty() && self.omitted.is_empty() && expects.is_none();
        let config = &self.client.config;
        let kept = exchange.connection.plain_head.take();
        let headers = match kept {
            Some((from, headers)) if plain && Arc::ptr_eq(&from, config) => headers,
            _ => self.fields(question, expects.is_some())?,
        };
        let hold_until = expects.and_then(|patience| self.client.runtime.now().checked_add(patience));
        let (method, target) = (&question.method, target::request_target(&question.url));
        let head = Head { method, target, version: self.version, headers: &headers, hold_until };
        if let Some(watch) = &mut self.watch {
            watch(Notice::Request { method, target, version: self.version, headers: &headers });
        }
        exchange.begin(&head, body).map_err(ErrorKind::Request)?;
        if plain {
            exchange.connection.plain_head = Some((self.client.config.clone(), headers));
        }
        Ok(())
    }

    /// The fields as they are written: `Host` first (RFC 9110 §7.2), the defaults, then the request's own.
    fn fields(&self, question: &Question, expects: bool) -> Result<HeaderMap, ErrorKind> {
        let own = &question.headers;
        let defaults = &self.client.config.defaults;
        let mut fields = HeaderMap::with_capacity(own.len() + defaults.len() + 2);
        if !own.contains_key(HOST) {
            let host = HeaderValue::from_str(target::authority(&question.url));
            fields.insert(HOST, host.map_err(|error| ErrorKind::Field(error.to_string()))?);
        }
        for (name, value) in defaults {
            if !own.contains_key(name) && !self.omitted.contains(name) {
                fields.append(name, value.clone());
            }
        }
        for (name, value) in own {
            fields.append(name, value.clone());
        }
        if expects {
            fields.insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
        Ok(fields)
    }

    fn notify(&mut self, notice: Notice<'_>) {
        if let Some(watch) = &mut self.watch {
            watch(notice);
        }
    }
}

/// The answer's head, and what will give its body.
fn answer<R: Runtime>(arrival: Arrival, exchange: Exchange<R>) -> Answered<R> {
    let peer = exchange.connection.peer;
    match arrival {
        Arrival::Answer(answer) => {
            let (head, incoming) = Incoming::new(answer, exchange);
            (head, peer, incoming)
        }
        Arrival::Upgraded(head) | Arrival::Interim(head) => (head, peer, Incoming::upgraded(exchange)),
    }
}

fn failure<R: Runtime>(kind: ErrorKind, exchange: &Exchange<R>) -> Error {
    let processed = exchange.sent();
    Error::new(kind).maybe_processed(processed)
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
