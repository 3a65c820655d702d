//! SETTINGS of both ends, the preface that carries ours, and the state of GOAWAY (RFC 9113 §3.4, §6.5, §6.8).

use crate::connection::{Connection, Fault, Role};
use crate::error::{CloseReason, Error, Misuse, Spent, StreamError, Violation};
use crate::event::{BodyLength, Event};
use crate::flow::DEFAULT_WINDOW;
use crate::frame::{self, DEFAULT_MAX_FRAME_SIZE, MAX_31, PREFACE, SETTING_LENGTH, StreamId, flag, setting};
use crate::reason::Reason;
use crate::stream::{ClosedBy, Receiving};

/// Our streams that may be open before the peer has said how many it takes: what RFC 9113 §6.5.2 advises as minimum.
const ASSUMED_CONCURRENT_STREAMS: u32 = 100;

/// The PING between the two GOAWAY frames of a graceful end.
pub(super) const DRAIN_PING: [u8; 8] = *b"goaway\0\0";

/// The PING that asks whether the peer lives.
pub(super) const LIVENESS_PING: [u8; 8] = *b"alive?\0\0";

/// What the peer's SETTINGS say, from their defaults on.
#[derive(Debug)]
pub(crate) struct PeerSettings {
    pub(crate) initial_window: u32,
    pub(crate) max_frame_size: u32,
    pub(crate) max_concurrent_streams: u32,
    pub(crate) connect_protocol: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        PeerSettings {
            initial_window: DEFAULT_WINDOW,
            max_frame_size: DEFAULT_MAX_FRAME_SIZE,
            max_concurrent_streams: ASSUMED_CONCURRENT_STREAMS,
            connect_protocol: false,
        }
    }
}

/// How far the end of the connection has come.
#[derive(Debug, Default)]
pub(crate) struct Going {
    /// `drain` was called.
    pub(super) draining: bool,
    /// The last stream of our latest GOAWAY.
    pub(super) sent_last: Option<u32>,
    /// The last stream of the peer's latest GOAWAY.
    pub(super) received_last: Option<StreamId>,
    /// The code that came with it.
    pub(super) received_reason: Option<Reason>,
}

impl Connection {
    /// Our preface: the magic of a client, SETTINGS, and the connection window that the settings cannot carry.
    pub(super) fn send_preface(&mut self) {
        let config = &self.config;
        let mut settings = [(0, 0); 8];
        let mut count = 0;
        let mut add = |id: u16, value: u32| {
            if let Some(slot) = settings.get_mut(count) {
                *slot = (id, value);
                count += 1;
            }
        };
        if config.header_table_size != 4096 {
            add(setting::HEADER_TABLE_SIZE, config.header_table_size);
        }
        match self.role {
            // Push is never wanted (S29).
            Role::Client => add(setting::ENABLE_PUSH, 0),
            Role::Server => {
                add(setting::MAX_CONCURRENT_STREAMS, config.limits.concurrent_streams);
                if config.connect_protocol {
                    add(setting::ENABLE_CONNECT_PROTOCOL, 1);
                }
            }
        }
        if config.windows.stream != DEFAULT_WINDOW {
            add(setting::INITIAL_WINDOW_SIZE, config.windows.stream);
        }
        if config.max_frame_size != DEFAULT_MAX_FRAME_SIZE {
            add(setting::MAX_FRAME_SIZE, config.max_frame_size);
        }
        add(setting::MAX_HEADER_LIST_SIZE, u32::try_from(config.limits.header_list).unwrap_or(u32::MAX));
        // We ignore the priorities of RFC 7540 and read those of RFC 9218.
        add(setting::NO_RFC7540_PRIORITIES, 1);
        self.recv_window.raise(config.windows.connection);
        let grant = self.recv_window.grant();
        let client = self.role == Role::Client;
        self.out.frames(|out| {
            if client {
                out.extend_from_slice(PREFACE);
            }
            frame::put_settings(out, settings.get(..count).unwrap_or_default());
            if let Some(increment) = grant {
                frame::put_window_update(out, StreamId::CONNECTION, increment);
            }
        });
        self.timing.settings_sent(self.now);
    }

    /// The receive window of a new stream: until the peer has acknowledged our settings it goes by the default, where
    /// that is more (RFC 9113 §6.9.3).
    pub(super) fn initial_receive_window(&self) -> u32 {
        let ours = self.config.windows.stream;
        if self.timing.settings_acknowledged() { ours } else { ours.max(DEFAULT_WINDOW) }
    }

    pub(super) fn receive_settings(&mut self, flags: u8, payload: &[u8]) -> Result<Option<Event>, Fault> {
        if flags & flag::ACK != 0 {
            if !payload.is_empty() {
                return Err(Violation::FrameLength.into());
            }
            self.spend_control(1)?;
            self.settings_acknowledged();
            return Ok(None);
        }
        if !payload.len().is_multiple_of(SETTING_LENGTH) {
            return Err(Violation::FrameLength.into());
        }
        if payload.len() / SETTING_LENGTH > self.config.limits.settings_entries {
            return Err(Spent::SettingsEntries.into());
        }
        self.spend_control(1)?;
        self.apply_settings(payload)?;
        self.out.frames(frame::put_settings_ack);
        self.capacity_changed |= !self.starved.is_empty();
        Ok((self.role == Role::Client).then_some(Event::Settings))
    }

    fn settings_acknowledged(&mut self) {
        if !self.timing.take_settings_ack(self.now) {
            return;
        }
        self.decoder.set_allowed(self.config.header_table_size as usize);
        let ours = self.config.windows.stream;
        if ours < DEFAULT_WINDOW {
            for stream in self.streams.iter_mut() {
                stream.recv.window.resize(DEFAULT_WINDOW, ours);
            }
        }
    }

    fn apply_settings(&mut self, payload: &[u8]) -> Result<(), Fault> {
        for entry in payload.chunks_exact(SETTING_LENGTH) {
            let &[id_high, id_low, a, b, c, d] = entry else { continue };
            let id = u16::from_be_bytes([id_high, id_low]);
            self.apply_setting(id, u32::from_be_bytes([a, b, c, d]))?;
        }
        Ok(())
    }

    /// One setting, with the range of RFC 9113 §6.5.2. Unknown ones are ignored.
    pub(super) fn apply_setting(&mut self, id: u16, value: u32) -> Result<(), Fault> {
        match id {
            setting::HEADER_TABLE_SIZE => self.encoder.set_allowed(value as usize),
            // A server may not send anything but 0 (RFC 9113 §6.5.2).
            setting::ENABLE_PUSH if value > 1 || (value == 1 && self.role == Role::Client) => {
                return Err(Violation::BadSetting.into());
            }
            setting::MAX_CONCURRENT_STREAMS => self.peer.max_concurrent_streams = value,
            setting::INITIAL_WINDOW_SIZE => return self.change_initial_window(value),
            setting::MAX_FRAME_SIZE => {
                if !(DEFAULT_MAX_FRAME_SIZE..=0x00ff_ffff).contains(&value) {
                    return Err(Violation::BadSetting.into());
                }
                self.peer.max_frame_size = value;
            }
            // A server may not take it back; from a client it says nothing (RFC 8441 §3).
            setting::ENABLE_CONNECT_PROTOCOL => {
                let taken_back = value == 0 && self.peer.connect_protocol;
                if value > 1 || (taken_back && self.role == Role::Client) {
                    return Err(Violation::BadSetting.into());
                }
                self.peer.connect_protocol = value == 1;
            }
            setting::NO_RFC7540_PRIORITIES if value > 1 => return Err(Violation::BadSetting.into()),
            _ => {}
        }
        Ok(())
    }

    /// The windows of all streams change by the difference, below zero if need be (RFC 9113 §6.9.2).
    fn change_initial_window(&mut self, size: u32) -> Result<(), Fault> {
        if size > MAX_31 {
            return Err(Violation::BadInitialWindow.into());
        }
        let difference = i64::from(size) - i64::from(self.peer.initial_window);
        self.peer.initial_window = size;
        if difference == 0 {
            return Ok(());
        }
        let mut ready = Vec::new();
        for stream in self.streams.iter_mut() {
            // A window that overflows by a setting is a fault of the connection (RFC 9113 §6.9.2).
            stream.send.window.change(difference).map_err(|_| Violation::WindowOverflow)?;
            ready.push(stream.id);
        }
        for stream in ready {
            self.schedule(stream);
        }
        Ok(())
    }

    /// Takes a request that came by HTTP/1.1 as a stream that the client has already ended.
    pub(crate) fn adopt(
        &mut self,
        id: StreamId,
        request: http::Request<()>,
        head_request: bool,
        settings: &[u8],
    ) -> Result<(), Misuse> {
        self.apply_settings(settings).map_err(|_| Misuse::BadField)?;
        self.streams.note_remote(id);
        let mut stream = self.new_stream(id, Receiving::Done);
        stream.send.head_request = head_request;
        self.streams.insert(stream);
        self.remote_active += 1;
        self.timing.streams_busy(self.now);
        let body = BodyLength::Empty;
        self.pending.push_back(Event::Request { stream: id, request, body, expect_continue: false });
        Ok(())
    }

    // ------------------------------------------------------------------------------------------------- GOAWAY

    pub(super) fn say_goaway(&mut self, reason: Reason, debug: &[u8]) {
        let last = self.last_processed();
        self.going.sent_last = Some(last);
        self.out.frames(|out| frame::put_goaway(out, last, reason, debug));
    }

    /// The highest stream of the peer that we may have acted on. It never goes up again (RFC 9113 §6.8).
    fn last_processed(&self) -> u32 {
        let highest = if self.role == Role::Server { self.streams.highest_remote } else { 0 };
        self.going.sent_last.map_or(highest, |before| before.min(highest))
    }

    /// Ends the connection gracefully: streams that are open go on, further ones are not taken, and when the last one is
    /// done `is_closed` says so.
    ///
    /// A server does it in two steps (RFC 9113 §6.8): requests that were already under way when the first GOAWAY arrived
    /// are still answered.
    pub fn drain(&mut self) {
        if self.going.draining || self.closed.is_some() {
            return;
        }
        self.going.draining = true;
        if self.role == Role::Client || self.streams.is_empty() {
            self.say_goaway(Reason::NoError, &[]);
            self.finish_drain();
            return;
        }
        self.going.sent_last = Some(MAX_31);
        self.out.frames(|out| {
            frame::put_goaway(out, MAX_31, Reason::NoError, &[]);
            frame::put_ping(out, DRAIN_PING, false);
        });
        self.timing.drain_started(self.now, self.config.timeouts.drain);
    }

    /// The second step, once a round trip has passed.
    pub(super) fn second_goaway(&mut self) {
        if self.going.sent_last == Some(MAX_31) {
            self.timing.drain_done();
            self.say_goaway(Reason::NoError, &[]);
            self.finish_drain();
        }
    }

    /// Closes a draining connection whose last stream is done.
    pub(super) fn finish_drain(&mut self) {
        let ours = self.going.draining && self.going.sent_last != Some(MAX_31);
        // A client's GOAWAY says nothing about requests: it is the client who closes then.
        let peers = self.role == Role::Client && self.going.received_last.is_some();
        if (ours || peers) && self.streams.is_empty() && self.closed.is_none() {
            if self.going.sent_last.is_none() {
                self.say_goaway(Reason::NoError, &[]);
            }
            self.close_with(CloseReason::Drained);
        }
    }

    pub(super) fn receive_goaway(&mut self, payload: &[u8]) -> Result<Option<Event>, Fault> {
        let (Some(last), Some(reason)) = (frame::number(payload, 0), frame::number(payload, 4)) else {
            return Err(Violation::FrameLength.into());
        };
        self.spend_control(1)?;
        let last = StreamId(last & MAX_31);
        let reason = Reason::from(reason);
        if self.going.received_last.is_some_and(|before| last > before) {
            return Err(Violation::GoAwayIncreased.into());
        }
        self.going.received_last = Some(last);
        self.going.received_reason = Some(reason);
        if self.role == Role::Client {
            self.refuse_above(last);
            if reason != Reason::NoError && self.streams.iter().all(|stream| stream.is_closed()) {
                return Err(Error::GoAway { reason, last }.into());
            }
        }
        Ok(Some(Event::GoAway { reason, last }))
    }

    /// Streams above the last one of a GOAWAY were not and will not be processed (RFC 9113 §6.8).
    fn refuse_above(&mut self, last: StreamId) {
        let mut refused: Vec<StreamId> = self
            .streams
            .iter()
            .filter(|stream| stream.id > last && stream.id.is_client() && !stream.is_closed())
            .map(|stream| stream.id)
            .collect();
        refused.sort_unstable();
        for id in refused {
            self.streams.note_reset(id, ClosedBy::Us);
            self.end_by_reset(id);
            self.pending.push_back(Event::Reset { stream: id, error: StreamError::Refused });
        }
    }
}
