//! Bytes into events.

use super::{Answer, Receive, Server, ServerEvent};
use crate::chunked::Piece;
use crate::error::{CloseReason, Error, Timeout};

impl Server {
    /// The next event; `None` asks for more bytes, or for the answer to the request that was given out. To be called
    /// until it gives `None`, after every input and every command.
    ///
    /// # Errors
    /// The peer's fault, or a deadline that has passed. It is repeated until [`answer_fault`](Self::answer_fault) is
    /// called; from then on bytes are thrown away.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<ServerEvent>, Error> {
        if self.closed.is_none() && self.fault.is_none() && matches!(self.receive, Receive::Head { .. }) {
            if self.read.is_empty() {
                if !self.eof && self.passed_timeout().is_none() {
                    return Ok(None);
                }
            } else if let Some(mut heads) = self.heads.take() {
                // Taken out for the moment, so that what is borrowed from it does not hold the whole machine.
                let event = self.known_head(&mut heads);
                self.heads = Some(heads);
                match event {
                    Ok(None) => {}
                    Ok(event) => return Ok(event),
                    Err(error) => return Err(self.seal(error)),
                }
            }
        }
        self.next_event_slowly()
    }

    /// Everything but a head that the cache knows, and nothing at all.
    #[inline(never)]
    fn next_event_slowly(&mut self) -> Result<Option<ServerEvent>, Error> {
        if self.closed.is_some() || self.fault.is_some() {
            return self.next_sealed();
        }
        let event = match self.receive {
            Receive::Head { .. } => self.next_head(),
            Receive::Body(_) => self.next_piece(),
            Receive::Done => Ok(None),
        };
        match event {
            Ok(None) => match self.passed_timeout() {
                Some(timeout) => Err(self.seal(Error::Timeout(timeout))),
                None => Ok(None),
            },
            Ok(event) => Ok(event),
            Err(error) => Err(self.seal(error)),
        }
    }

    /// Closed, or failed: nothing that comes is read as a message.
    fn next_sealed(&mut self) -> Result<Option<ServerEvent>, Error> {
        match (self.closed, &self.fault) {
            (None, Some(fault)) => return Err(fault.error.clone()),
            // What was read already belongs to the next protocol.
            (Some(CloseReason::Upgraded), _) => {}
            _ => {
                self.discard = self.discard.saturating_sub(self.read.len() as u64);
                self.read.clear();
                if self.discard == 0 {
                    self.linger = false;
                }
            }
        }
        match self.passed_timeout() {
            Some(Timeout::Linger) => self.linger = false,
            // The last bytes are not taken: there is nothing left to wait for.
            Some(timeout) => {
                self.linger = false;
                self.remember(Error::Timeout(timeout), None);
                return Err(Error::Timeout(timeout));
            }
            None => {}
        }
        Ok(None)
    }

    fn next_piece(&mut self) -> Result<Option<ServerEvent>, Error> {
        loop {
            if self.ignoring && self.discard == 0 {
                return Ok(None);
            }
            let Receive::Body(reading) = &mut self.receive else { return Ok(None) };
            let piece = reading.next(&mut self.read, self.eof, &self.config.limits)?;
            match piece {
                None => return Ok(None),
                Some(Piece::Data(data)) => {
                    self.exchange.expects_continue = false;
                    if !self.ignoring {
                        return Ok(Some(ServerEvent::Data(data)));
                    }
                    self.discard = self.discard.saturating_sub(data.len() as u64);
                    if self.discard == 0 {
                        self.give_up_body();
                        return Ok(None);
                    }
                }
                Some(Piece::Trailers(trailers)) if !self.ignoring => {
                    return Ok(Some(ServerEvent::Trailers(trailers)));
                }
                Some(Piece::Trailers(_)) => {}
                Some(Piece::End) => {
                    self.exchange.expects_continue = false;
                    self.receive = Receive::Done;
                    let ignored = std::mem::take(&mut self.ignoring);
                    self.finish_exchange();
                    if !ignored {
                        return Ok(Some(ServerEvent::End));
                    }
                    return self.next_event();
                }
            }
        }
    }

    /// More of the body is left than is worth reading: the connection ends with the current answer.
    pub(super) fn give_up_body(&mut self) {
        self.exchange.persist = false;
        self.finish_exchange();
    }

    /// Goes on to the next exchange, or closes, once this one is over.
    #[inline]
    pub(super) fn finish_exchange(&mut self) {
        if self.answer != Answer::Done {
            return;
        }
        let body_read = matches!(self.receive, Receive::Done);
        if !self.exchange.persist || self.draining {
            self.close(match () {
                () if self.draining => CloseReason::Drained,
                () if !body_read => CloseReason::UnreadBody,
                () => CloseReason::KeepAliveOff,
            });
        } else if body_read {
            self.receive = Receive::NEXT_HEAD;
            self.answer = Answer::None;
            self.since = self.now;
        }
    }
}
