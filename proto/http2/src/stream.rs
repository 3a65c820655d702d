//! One stream: its state, its windows, and what waits on it (RFC 9113 §5.1).

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;

use crate::flow::{ReceiveWindow, SendWindow};
use crate::frame::StreamId;
use crate::priority::Priority;

/// How far the peer's message has come. With [`Sending`] this is the state of RFC 9113 §5.1: *open* while neither is
/// `Done`, *half-closed (remote)* when only receiving is, *half-closed (local)* when only sending is, *closed* when both
/// are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// The final head is still to come: responses only.
    Head,
    Body,
    /// END_STREAM has come.
    Done,
}

/// How far our message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    Head,
    Body,
    /// The end is queued behind the body.
    Ending,
    /// END_STREAM has been written.
    Done,
}

/// How a closed stream came to its end: it decides what a late frame means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// We reset it. The peer may not know yet, so late frames are ignored (RFC 9113 §5.1).
    Us,
    /// The peer reset it. A late frame is a stream error (RFC 9113 §5.1).
    Peer,
}

/// What a driver waits for that has more to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starved {
    /// Windows that let octets through.
    Capacity,
    /// Those, or that nothing waits any more before the next piece of the body.
    Piece,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    pub(crate) receiving: Receiving,
    pub(crate) sending: Sending,
    /// RST_STREAM was sent or received: the entry only waits for the driver to let go of it.
    pub(crate) reset: bool,
    /// The driver has let go of it.
    pub(crate) finished: bool,
    pub(crate) priority: Priority,
    pub(crate) recv: Incoming,
    pub(crate) send: Outgoing,
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) window: ReceiveWindow,
    /// What Content-Length still promises.
    pub(crate) expected: Option<u64>,
    pub(crate) received: u64,
    /// The message has no content, whatever its fields say (RFC 9110 §6.4.1).
    pub(crate) no_content: bool,
    /// 1xx responses so far.
    pub(crate) interim: u32,
    /// The application does not want the rest of the body: octets that were thrown away so far.
    pub(crate) discarded: Option<u64>,
    /// Small DATA frames among what the window holds.
    pub(crate) small: u32,
    /// The application waits for body octets.
    pub(crate) wanted: bool,
    /// Since when, and from how many octets, the rate is measured.
    pub(crate) mark: Option<(Instant, u64)>,
    /// Since when the application does not wait: that time is not the peer's.
    pub(crate) paused: Option<Instant>,
}

impl Incoming {
    /// Whether the application waits for body octets, from `now` on.
    pub(crate) fn want(&mut self, wanted: bool, now: Instant) {
        if std::mem::replace(&mut self.wanted, wanted) == wanted {
            return;
        }
        let paused = self.paused.take();
        if !wanted {
            self.paused = Some(now);
        } else if let (Some((since, _)), Some(paused)) = (&mut self.mark, paused) {
            *since += now.saturating_duration_since(paused);
        }
    }

    /// Nobody waits for the body any more; how fast the rest comes is measured from here.
    pub(crate) fn forsake(&mut self) {
        self.wanted = false;
        (self.mark, self.paused) = (None, None);
    }
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) window: SendWindow,
    pub(crate) queue: Queue,
    /// What the head announced and is still to be queued.
    pub(crate) promised: Option<u64>,
    pub(crate) trailers: Option<Box<HeaderMap>>,
    /// The message has no content, whatever is queued: an answer to HEAD, 204, 304.
    pub(crate) no_content: bool,
    /// The request was HEAD.
    pub(crate) head_request: bool,
    /// The request was CONNECT: what follows a successful answer is a tunnel, not content (RFC 9113 §8.5).
    pub(crate) tunnel: bool,
    /// The client waits for a 100.
    pub(crate) owes_continue: bool,
    /// It stands in the scheduler.
    pub(crate) scheduled: bool,
    /// What the driver was told that there is no room for.
    pub(crate) starved: Option<Starved>,
    /// Octets written so far.
    pub(crate) written: u64,
    /// Since when, and from how many octets, progress is measured.
    pub(crate) mark: Option<(Instant, u64)>,
    /// Where the head stands in the output of the connection.
    pub(crate) position: u64,
}

impl Stream {
    pub(crate) fn new(id: StreamId, receiving: Receiving, send: SendWindow, recv: ReceiveWindow) -> Self {
        Stream {
            id,
            receiving,
            sending: Sending::Head,
            reset: false,
            finished: false,
            priority: Priority::default(),
            recv: Incoming {
                window: recv,
                expected: None,
                received: 0,
                no_content: false,
                interim: 0,
                discarded: None,
                small: 0,
                wanted: false,
                mark: None,
                paused: None,
            },
            send: Outgoing {
                window: send,
                queue: Queue::default(),
                promised: None,
                trailers: None,
                no_content: false,
                head_request: false,
                tunnel: false,
                owes_continue: false,
                scheduled: false,
                starved: None,
                written: 0,
                mark: None,
                position: 0,
            },
        }
    }

    /// Closed in the sense of RFC 9113 §5.1.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || (self.receiving == Receiving::Done && self.sending == Sending::Done)
    }

    /// Whether a DATA frame could be written now, as far as the stream goes. An end with nothing before it does not wait.
    pub(crate) fn is_sendable(&self) -> bool {
        !self.reset && !self.send.queue.is_empty() && self.send.window.available() > 0
    }

    /// Whether there is something that the peer's windows hold back.
    pub(crate) fn waits_to_send(&self) -> bool {
        !self.reset
            && self.sending != Sending::Done
            && (!self.send.queue.is_empty() || self.send.starved.is_some())
    }
}

/// Body bytes that wait for a window. One chunk, which is the rule, needs no heap.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    first: Bytes,
    rest: VecDeque<Bytes>,
    octets: usize,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.octets == 0
    }

    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    pub(crate) fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.octets += data.len();
        if self.first.is_empty() {
            self.first = data;
        } else {
            self.rest.push_back(data);
        }
    }

    /// Takes at most `most` octets, of one chunk.
    pub(crate) fn take(&mut self, most: usize) -> Bytes {
        let taken = if self.first.len() <= most {
            let next = self.rest.pop_front().unwrap_or_default();
            std::mem::replace(&mut self.first, next)
        } else {
            self.first.split_to(most)
        };
        self.octets -= taken.len();
        taken
    }

    pub(crate) fn clear(&mut self) {
        *self = Queue::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_gives_back_what_was_pushed_in_parts() {
        let mut queue = Queue::default();
        queue.push(Bytes::new());
        assert!(queue.is_empty());
        queue.push(Bytes::from_static(b"abc"));
        queue.push(Bytes::from_static(b"de"));
        assert_eq!(queue.take(2), "ab");
        assert_eq!(queue.take(9), "c");
        assert_eq!(queue.octets(), 2);
        assert_eq!(queue.take(9), "de");
        assert!(queue.is_empty());
    }

    #[test]
    fn a_stream_is_closed_when_both_halves_are_or_when_it_was_reset() {
        let window = || ReceiveWindow::new(1, 1);
        let mut stream = Stream::new(StreamId(1), Receiving::Body, SendWindow::new(1), window());
        let table = [
            (Receiving::Body, Sending::Body, false, false),
            (Receiving::Done, Sending::Body, false, false),
            (Receiving::Done, Sending::Ending, false, false),
            (Receiving::Body, Sending::Done, false, false),
            (Receiving::Done, Sending::Done, false, true),
            (Receiving::Body, Sending::Body, true, true),
        ];
        for (receiving, sending, reset, closed) in table {
            (stream.receiving, stream.sending, stream.reset) = (receiving, sending, reset);
            assert_eq!(stream.is_closed(), closed, "{receiving:?} {sending:?} {reset}");
        }
    }
}
