//! Faults of the peer: what is remembered of them, and what is answered.

use std::time::Duration;

use http::StatusCode;

use super::{Answer, Receive, Server};
use crate::error::{CloseReason, Error, Timeout};
use crate::framing::AnsweredMethod;
use crate::write;

/// How much of a refused request's first line is kept, 1 KiB: enough for a log to show what was asked for.
const KEPT_LINE: usize = 1 << 10;

/// Why the machine is sealed.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: Error,
    /// Of a request that was never given out: the beginning of its first line.
    line: Option<Box<[u8]>>,
    after: Duration,
}

/// A request that was refused before it was given out; see [`Server::refused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<'a> {
    /// Its first line as it was received, without its end: at most 1 KiB of it, and less where the rest has not come.
    /// Nothing about these bytes has been checked.
    pub first_line: &'a [u8],
    /// From its first byte to its refusal.
    pub after: Duration,
}

impl Server {
    /// After an error from [`next_event`](Self::next_event): what is known of the request that the error kept from
    /// being given out as an event; `None` where the application had it already.
    pub fn refused(&self) -> Option<Refused<'_>> {
        let fault = self.fault.as_deref()?;
        let first_line = fault.line.as_deref()?;
        Some(Refused { first_line, after: fault.after })
    }

    /// After an error from [`next_event`](Self::next_event): answers it, if there is an answer for it and none has
    /// begun, and closes. Says how many bytes the content of that answer has.
    pub fn answer_fault(&mut self, error: &Error) -> usize {
        if self.closed.is_some() {
            return 0;
        }
        self.exchange.persist = false;
        let mut content = 0;
        let unanswered = matches!(self.answer, Answer::None | Answer::Owed);
        if let (Some(status), true) = (error.status(), unanswered) {
            content = self.write_fault(status, error);
            self.answer = Answer::Done;
        }
        if *error == Error::Timeout(Timeout::WriteStall) {
            self.queue.clear();
        }
        self.receive = match std::mem::replace(&mut self.receive, Receive::Done) {
            // So that closing lingers: the peer may be in the middle of it.
            Receive::Done => Receive::NEXT_HEAD,
            unread => unread,
        };
        self.close(if matches!(error, Error::Timeout(_)) {
            CloseReason::Timeout
        } else {
            CloseReason::Fault
        });
        content
    }

    /// Nothing more is read as a message.
    pub(super) fn seal(&mut self, error: Error) -> Error {
        if self.fault.is_none() {
            let waits = matches!(self.receive, Receive::Head { .. });
            let line = waits.then(|| first_line(&self.read));
            self.remember(error.clone(), line);
        }
        error
    }

    /// Seals the machine for the request that `received` begins with, which is no longer in the buffer.
    #[cold]
    pub(super) fn refuse(&mut self, error: Error, received: &[u8]) -> Error {
        self.remember(error.clone(), Some(first_line(received)));
        error
    }

    pub(super) fn remember(&mut self, error: Error, line: Option<Box<[u8]>>) {
        let after = self.now.saturating_duration_since(self.since);
        self.fault = Some(Box::new(Fault { error, line, after }));
    }

    /// A small answer that says what is wrong.
    fn write_fault(&mut self, status: StatusCode, error: &Error) -> usize {
        self.begin_write();
        let to_head = self.answers_to_head();
        let text = error.to_string();
        let out = &mut self.queue.copied;
        write::status_line(out, status);
        out.extend_from_slice(b"content-type: text/plain; charset=utf-8\r\n");
        write::content_length(out, text.len() as u64 + 1);
        self.date.write(out);
        out.extend_from_slice(b"connection: close\r\n\r\n");
        if to_head {
            return 0;
        }
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
        text.len() + 1
    }

    /// Whether the answer will be taken for one to HEAD, whose content would be taken for the next answer.
    fn answers_to_head(&self) -> bool {
        match self.refused() {
            Some(refused) => refused.first_line.starts_with(b"HEAD "),
            None => self.exchange.method == AnsweredMethod::Head,
        }
    }
}

fn first_line(received: &[u8]) -> Box<[u8]> {
    let length = memchr::memchr(b'\n', received).unwrap_or(received.len());
    let line = received.get(..length).unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.get(..KEPT_LINE).unwrap_or(line).into()
}
