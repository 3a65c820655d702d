//! From received bytes to frames, and from each frame to the code that knows what it does (RFC 9113 §4.1, §6).
//!
//! Here are the rules that hold before a frame's content is looked at: its size, the stream that it may name, and what
//! may stand between the frames of a header block.

use bytes::Buf;

use crate::connection::{Connection, Fault, Phase, Role};
use crate::error::{Spent, Violation};
use crate::event::Event;
use crate::frame::{self, HEAD_LENGTH, Head, Kind, PREFACE, StreamId, flag};

/// What came of looking at the input once.
#[allow(clippy::large_enum_variant)] // It is taken apart where it is returned; a box would cost more.
pub(super) enum Step {
    Event(Event),
    /// A frame was taken that has nothing to tell.
    Again,
    /// The input holds no complete frame.
    Starved,
}

impl Connection {
    pub(super) fn receive(&mut self) -> Result<Step, Fault> {
        if self.phase == Phase::Preface && !self.receive_preface()? {
            return Ok(Step::Starved);
        }
        let Some(head) = Head::parse(&self.input) else { return Ok(Step::Starved) };
        self.admit(&head)?;
        let length = HEAD_LENGTH + head.length as usize;
        if self.input.len() < length {
            return Ok(Step::Starved);
        }
        self.timing.note_frame();
        let event = if head.kind == Kind::Data {
            // The payload goes on to the application as a slice of the buffer that it was read into.
            let mut frame = self.input.split_to(length).freeze();
            frame.advance(HEAD_LENGTH);
            self.receive_data(&head, frame)?
        } else {
            let input = std::mem::take(&mut self.input);
            let payload = input.get(HEAD_LENGTH..length).unwrap_or_default();
            let event = self.dispatch(&head, payload);
            self.input = input;
            self.input.advance(length);
            event?
        };
        Ok(event.map_or(Step::Again, Step::Event))
    }

    /// Octets that are missing from the frame that the input begins with.
    pub(super) fn missing(&self) -> usize {
        let whole = Head::parse(&self.input).map_or(0, |head| HEAD_LENGTH + head.length as usize);
        whole.saturating_sub(self.input.len())
    }

    /// Takes the client's preface; false while it is incomplete. A difference shows at its first octet, so that
    /// somebody who speaks another protocol hears of it at once.
    fn receive_preface(&mut self) -> Result<bool, Fault> {
        let length = self.input.len().min(PREFACE.len());
        if self.input.get(..length) != PREFACE.get(..length) {
            return Err(Violation::BadPreface.into());
        }
        if length < PREFACE.len() {
            return Ok(false);
        }
        self.input.advance(length);
        self.phase = Phase::FirstSettings;
        Ok(true)
    }

    /// The rules that need no payload.
    fn admit(&mut self, head: &Head) -> Result<(), Fault> {
        if self.phase == Phase::FirstSettings {
            if head.kind != Kind::Settings || head.flags & flag::ACK != 0 {
                return Err(Violation::NoSettingsFirst.into());
            }
        } else if let Some(block) = &self.block {
            // Nothing may come between the frames of a header block, on any stream (RFC 9113 §4.3).
            if head.kind != Kind::Continuation || head.stream != block.stream {
                return Err(Violation::InterruptedHeaderBlock.into());
            }
        } else if head.kind == Kind::Continuation {
            return Err(Violation::UnexpectedContinuation.into());
        }
        if head.length > self.config.max_frame_size {
            return Err(Violation::FrameTooLarge.into());
        }
        let on_connection = head.stream == StreamId::CONNECTION;
        let fits = match head.kind {
            Kind::Settings | Kind::Ping | Kind::GoAway | Kind::PriorityUpdate => on_connection,
            Kind::WindowUpdate | Kind::Unknown => true,
            _ => !on_connection,
        };
        if fits { Ok(()) } else { Err(Violation::WrongStream.into()) }
    }

    fn dispatch(&mut self, head: &Head, payload: &[u8]) -> Result<Option<Event>, Fault> {
        match head.kind {
            Kind::Headers => self.receive_headers(head, payload),
            Kind::Continuation => self.receive_continuation(head, payload),
            Kind::Settings => {
                let event = self.receive_settings(head.flags, payload)?;
                self.phase = Phase::Open;
                Ok(event)
            }
            Kind::Ping => self.receive_ping(head.flags, payload),
            Kind::GoAway => self.receive_goaway(payload),
            Kind::WindowUpdate => self.receive_window_update(head.stream, payload),
            Kind::RstStream => self.receive_reset(head.stream, payload),
            Kind::Priority => self.receive_priority(head.stream, payload),
            Kind::PriorityUpdate => self.receive_priority_update(payload),
            // A client cannot push, and we do not allow a server to (RFC 9113 §8.4, S29).
            Kind::PushPromise => Err(Violation::UnexpectedPush.into()),
            // DATA was taken before.
            Kind::Data | Kind::Unknown => {
                self.spend_control(1)?;
                Ok(None)
            }
        }
    }

    /// A frame without use was taken.
    pub(super) fn spend_control(&mut self, tokens: u32) -> Result<(), Fault> {
        if self.budgets.control.spend(tokens, self.now) { Ok(()) } else { Err(Spent::ControlFrames.into()) }
    }

    /// A stream ended by a reset, the peer's or one that it provoked.
    pub(super) fn spend_reset(&mut self) -> Result<(), Fault> {
        if self.budgets.resets.spend(1, self.now) { Ok(()) } else { Err(Spent::Resets.into()) }
    }

    /// Whether a stream with this id is ours to open.
    pub(super) fn is_local(&self, stream: StreamId) -> bool {
        stream.is_client() == (self.role == Role::Client)
    }

    /// Takes padding off a payload: what is between, and how many octets went.
    pub(super) fn unpad(head: &Head, payload: &[u8]) -> Result<(usize, usize), Fault> {
        frame::padding(head, payload).map_err(|bad| {
            Fault::from(match bad {
                frame::BadPadding::Missing => Violation::FrameLength,
                frame::BadPadding::TooLong => Violation::Padding,
            })
        })
    }
}
