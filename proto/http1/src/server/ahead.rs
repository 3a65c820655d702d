//! The short way: a connection between two exchanges that gets a request which the cache knows, and answers it at once
//! in few words, does so out of the loan's own storage. The machine's state is what it would be, but nothing is moved
//! into it and back, and nothing is asked that is known.
//!
//! ```text
//!   can_run_ahead() ─► receive into read_ahead(loan) ─► find_plain, take_plain ─► answer_plain ─┐ until there is no more;
//!                                                          ▲─────────────────────────────────────┘ then write loan.write
//! ```
//!
//! At any point [`lend`](Server::lend) leaves the short way: the machine takes over what was read and not consumed, and
//! what is still to be written, and goes on from there.

use bytes::BytesMut;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, StatusCode, Uri, Version};

use super::head::{consume, request};
use super::{Answer, Exchange, MIN_SPARE, RECEIVE, Receive, Server};
use crate::cache::{Block, HeadCache, Line};
use crate::framing::AnsweredMethod;
use crate::loan::Loan;
use crate::write;

/// A request that was found in the cache.
#[derive(Clone, Copy, Debug)]
pub struct KnownHead<'a> {
    block: &'a Block,
    line: &'a Line,
    target: &'a PathAndQuery,
}

impl Server {
    /// Whether the short way is open: between two exchanges, nothing is half-read, and nothing waits to be written.
    #[inline]
    pub fn can_run_ahead(&self) -> bool {
        self.is_idle() && !self.eof && !self.draining
    }

    /// Where to receive what [`find_plain`](Self::find_plain) looks at. After [`lend`](Self::lend), tell
    /// [`received`](Self::received) how much is still there.
    #[inline]
    pub fn read_ahead(loan: &mut Loan) -> &mut BytesMut {
        if loan.read.capacity() - loan.read.len() < MIN_SPARE {
            loan.read.reserve(RECEIVE);
        }
        &mut loan.read
    }

    /// The request that what was received begins with, if the cache knows it, line and fields, there is no body behind
    /// it, and nothing to be judged; for [`take_plain`](Self::take_plain). If not, what comes next is for the long way.
    #[inline]
    pub fn find_plain<'a>(&self, heads: Option<&'a HeadCache>, received: &[u8]) -> Option<KnownHead<'a>> {
        let cache = heads?;
        let (block, line) = (cache.block(self.last_block)?, cache.line(self.last_line)?);
        let target = line.plain.as_ref()?;
        // This connection has scanned both before, so each is within its limits; together they need not be.
        let is_it = block.fields.facts.plain
            && received.starts_with(&line.bytes)
            && received.get(line.bytes.len()..).is_some_and(|rest| rest.starts_with(&block.bytes))
            && line.bytes.len() + block.bytes.len() <= self.config.limits.head;
        is_it.then_some(KnownHead { block, line, target })
    }

    /// Opens the exchange of a request that [`find_plain`](Self::find_plain) has found at the front of `received`, and
    /// hands it out; `body` is of the type that the driver wants.
    #[inline]
    pub fn take_plain<B>(&mut self, head: KnownHead<'_>, received: &mut BytesMut, body: B) -> Request<B> {
        let KnownHead { block, line, target } = head;
        consume(received, line.bytes.len() + block.bytes.len());
        self.exchange = Exchange { method: line.method, ..Exchange::PLAIN };
        self.plain = line.method == AnsweredMethod::Other;
        self.answer = Answer::Owed;
        self.receive = Receive::Done;
        let (method, uri) = (line.line.method.clone(), Uri::from(target.clone()));
        request(body, method, uri, block.fields.headers.clone(), Version::HTTP_11)
    }

    /// Whether the request that is being answered was a HEAD.
    #[inline]
    pub fn answers_head(&self) -> bool {
        self.exchange.method == AnsweredMethod::Head
    }

    /// Answers the last plain request with a 200 and all of this body. `false`: nothing was written; leave the short way
    /// and [`send_head`](Self::send_head).
    #[inline]
    pub fn answer_plain(
        &mut self,
        loan: &mut Loan,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> bool {
        if status != StatusCode::OK || !self.plain || self.answer != Answer::Owed {
            return false;
        }
        let Some(cache) = loan.heads.as_deref_mut() else { return false };
        let head = cache.ready.with(&loan.date, body.len() as u64);
        if headers.is_empty() {
            loan.write.extend_from_slice(head);
        } else {
            let before = loan.write.len();
            let (line, rest) = head.split_at_checked(write::OK_LINE.len()).unwrap_or_default();
            loan.write.extend_from_slice(line);
            match write::fields(&mut loan.write, headers) {
                Ok(asked) if asked.is_nothing() => loan.write.extend_from_slice(rest),
                _ => {
                    loan.write.truncate(before);
                    return false;
                }
            }
        }
        loan.write.extend_from_slice(body);
        self.receive = Receive::NEXT_HEAD;
        self.answer = Answer::None;
        self.since = self.now;
        true
    }
}
