//! Priorities (RFC 9218): urgency and incremental delivery, and the order in which streams send.

use std::collections::VecDeque;

use crate::frame::StreamId;

/// The parameters of a `priority` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Priority {
    /// 0 is the most urgent, 7 the least (RFC 9218 §4.1).
    pub(crate) urgency: u8,
    /// Whether the recipient gains from parts (RFC 9218 §4.2).
    pub(crate) incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads a field value, a dictionary of structured fields. What is unknown or out of range leaves `self` as it is
    /// (RFC 9218 §4).
    pub(crate) fn merge(mut self, field: &[u8]) -> Self {
        for member in field.split(|&byte| byte == b',') {
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', urgency @ b'0'..=b'7'] => self.urgency = urgency - b'0',
                b"i" | b"i=?1" => self.incremental = true,
                b"i=?0" => self.incremental = false,
                _ => {}
            }
        }
        self
    }
}

/// Priorities of requests still to come that are remembered. A browser names one or two.
const ANNOUNCED: usize = 16;

/// Streams that have something to send and a window to send it in, by urgency.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    levels: [VecDeque<StreamId>; 8],
    waiting: usize,
    /// Priorities that came before their requests.
    announced: VecDeque<(StreamId, Priority)>,
}

impl Scheduler {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Puts a stream behind those of the same urgency.
    pub(crate) fn push(&mut self, stream: StreamId, priority: Priority) {
        if let Some(level) = self.levels.get_mut(usize::from(priority.urgency)) {
            level.push_back(stream);
            self.waiting += 1;
        }
    }

    /// Puts a stream before those of the same urgency: it is served until it is done (RFC 9218 §10).
    pub(crate) fn push_front(&mut self, stream: StreamId, priority: Priority) {
        if let Some(level) = self.levels.get_mut(usize::from(priority.urgency)) {
            level.push_front(stream);
            self.waiting += 1;
        }
    }

    /// Takes a stream out that stands among those of `priority`.
    pub(crate) fn remove(&mut self, stream: StreamId, priority: Priority) {
        if let Some(level) = self.levels.get_mut(usize::from(priority.urgency))
            && let Some(place) = level.iter().position(|waiting| *waiting == stream)
        {
            level.remove(place);
            self.waiting -= 1;
        }
    }

    /// Remembers the priority of a request that has not come yet; the latest word for it counts (RFC 9218 §7.1).
    pub(crate) fn announce(&mut self, stream: StreamId, priority: Priority) {
        self.announced.retain(|(announced, _)| *announced != stream);
        if self.announced.len() == ANNOUNCED {
            self.announced.pop_front();
        }
        self.announced.push_back((stream, priority));
    }

    /// The priority that was announced for a request which has come now.
    pub(crate) fn take_announced(&mut self, stream: StreamId) -> Option<Priority> {
        if self.announced.is_empty() {
            return None;
        }
        let place = self.announced.iter().position(|(announced, _)| *announced == stream)?;
        self.announced.remove(place).map(|(_, priority)| priority)
    }

    /// The next stream to serve.
    pub(crate) fn pop(&mut self) -> Option<StreamId> {
        if self.waiting == 0 {
            return None;
        }
        let stream = self.levels.iter_mut().find_map(VecDeque::pop_front)?;
        self.waiting -= 1;
        Some(stream)
    }

    /// Frees the storage of an idle connection.
    pub(crate) fn shrink(&mut self) {
        if self.waiting == 0 {
            self.levels = Default::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_the_standard_says() {
        let cases: [(&[u8], u8, bool); 9] = [
            (b"", 3, false),
            (b"u=0", 0, false),
            (b"u=5, i", 5, true),
            (b"i=?1,u=1", 1, true),
            (b"u=1;x=2, i;y", 1, true),
            (b"u=8", 3, false),
            (b"u=-1, i=?0", 3, false),
            (b"u=2, u=4", 4, false),
            (b"x, u = 1", 3, false),
        ];
        for (field, urgency, incremental) in cases {
            assert_eq!(Priority::default().merge(field), Priority { urgency, incremental }, "{field:?}");
        }
    }

    #[test]
    fn the_more_urgent_goes_first_and_equals_in_their_order() {
        let mut scheduler = Scheduler::default();
        let at = |urgency| Priority { urgency, incremental: false };
        for (id, urgency) in [(1, 3), (3, 7), (5, 0), (7, 3)] {
            scheduler.push(StreamId(id), at(urgency));
        }
        let order: Vec<u32> = std::iter::from_fn(|| scheduler.pop().map(StreamId::get)).collect();
        assert_eq!(order, [5, 1, 7, 3]);
        assert!(scheduler.is_empty());
        scheduler.push(StreamId(1), at(3));
        scheduler.remove(StreamId(1), at(3));
        scheduler.remove(StreamId(1), at(3));
        assert!(scheduler.is_empty() && scheduler.pop().is_none());
    }

    #[test]
    fn a_few_priorities_are_remembered_ahead_of_their_requests() {
        let mut scheduler = Scheduler::default();
        let at = |urgency| Priority { urgency, incremental: false };
        for id in 0..20 {
            scheduler.announce(StreamId(2 * id + 1), at(5));
        }
        scheduler.announce(StreamId(39), at(1));
        assert_eq!(scheduler.announced.len(), ANNOUNCED);
        assert_eq!(scheduler.take_announced(StreamId(1)), None, "the oldest are forgotten");
        assert_eq!(scheduler.take_announced(StreamId(39)), Some(at(1)), "the latest word counts");
        assert_eq!(scheduler.take_announced(StreamId(39)), None);
    }
}
