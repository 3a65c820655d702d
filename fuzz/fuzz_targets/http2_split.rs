//! The same bytes, whole and cut anywhere: the same events, the same end.
//!
//! The application only reads. One that answers may close a stream earlier or later, and a late frame then means
//! something else.
#![no_main]

#[path = "support/http2.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;

use hyperman_http2::{Config, PREFACE, Server, ServerEvent};
use libfuzzer_sys::fuzz_target;
use support::{SETTINGS, drain, feed, frames};

fuzz_target!(|input: &[u8]| {
    let Some((&first, input)) = input.split_first() else { return };
    let bytes = [&PREFACE[..], SETTINGS, &frames(input)].concat();
    let whole = events(&[&bytes]);
    let at = usize::from(first) * bytes.len() / 256;
    assert_eq!(events(&[&bytes[..at], &bytes[at..]]), whole);
    let parts: Vec<&[u8]> = bytes.chunks(1 + usize::from(first % 16)).collect();
    assert_eq!(events(&parts), whole);
});

fn events(parts: &[&[u8]]) -> Vec<String> {
    let mut server = Server::new(Arc::new(Config::server()), Instant::now());
    let mut events = Vec::new();
    for part in parts {
        feed(&mut server, part);
        loop {
            match server.next_event() {
                Ok(Some(event)) => {
                    if let ServerEvent::Data { stream, data } = &event {
                        server.release(*stream, data.len());
                    }
                    events.push(format!("{event:?}"));
                }
                Ok(None) => break,
                Err(error) => {
                    events.push(error.to_string());
                    return events;
                }
            }
        }
        drain(&mut server);
    }
    events
}
