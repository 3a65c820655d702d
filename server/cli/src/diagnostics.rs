//! What the server's parts say of themselves, to the standard error: notes, warnings and errors, and more when asked for.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::lines::Lines;

/// Writes events as lines, `warning: ...`. Spans are not followed.
#[derive(Debug)]
pub struct Diagnostics {
    most: Level,
    lines: Lines,
}

impl Diagnostics {
    /// Notes, warnings and errors; with `verbose` also why connections were closed.
    pub fn new(lines: Lines, verbose: bool) -> Self {
        Diagnostics { most: if verbose { Level::DEBUG } else { Level::INFO }, lines }
    }
}

impl Subscriber for Diagnostics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(self.most.into())
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let word = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            _ => "note",
        };
        let mut line = format!("{word}: ");
        event.record(&mut Words(&mut line));
        line.push('\n');
        self.lines.push(line.as_bytes());
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// Writes the message, and the fields behind it.
struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
