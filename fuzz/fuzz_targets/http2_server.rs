//! Any frames against a server that answers in different ways: no panic, well-formed output, and an error that stays.
#![no_main]

#[path = "support/http2.rs"]
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use hyperman_http2::{BodySize, Config, PREFACE, Reason, Server, ServerEvent};
use libfuzzer_sys::fuzz_target;
use support::{SETTINGS, drain, feed, frames};

fuzz_target!(|input: &[u8]| {
    let Some((&seed, input)) = input.split_first() else { return };
    let mut now = Instant::now();
    let mut config = Config::server();
    config.connect_protocol = seed & 1 != 0;
    config.limits.body = 10_000;
    let mut server = Server::new(Arc::new(config), now);
    feed(&mut server, PREFACE);
    feed(&mut server, SETTINGS);
    let bytes = frames(input);
    let mut choice = seed;
    for part in bytes.chunks(1 + usize::from(seed)) {
        server.handle_timeout(now);
        feed(&mut server, part);
        if !turn(&mut server, &mut choice) {
            return;
        }
        now += Duration::from_millis(u64::from(seed));
    }
    server.handle_eof();
    while turn(&mut server, &mut choice) && server.is_closed().is_none() {}
    assert!(server.is_closed().is_some());
});

/// Events and output of a turn; false when the connection is over.
fn turn(server: &mut Server, choice: &mut u8) -> bool {
    loop {
        match server.next_event() {
            Ok(Some(event)) => act(server, event, choice),
            Ok(None) => break,
            Err(error) => {
                drain(server);
                assert!(server.is_closed().is_some());
                assert_eq!(server.next_event().unwrap_err(), error);
                return false;
            }
        }
    }
    drain(server);
    let windows = server.connection_windows();
    assert!(windows.granted + i64::from(windows.due) <= i64::from(windows.target));
    true
}

fn act(server: &mut Server, event: ServerEvent, choice: &mut u8) {
    *choice = choice.wrapping_mul(77).wrapping_add(41);
    match event {
        ServerEvent::Request { stream, .. } => {
            let (size, body) = match *choice % 4 {
                0 => (BodySize::Known(0), 0),
                1 => (BodySize::Known(5), 5),
                _ => (BodySize::Unknown, 2_000),
            };
            if *choice & 0x80 != 0 {
                server.send_head(stream, StatusCode::OK, &HeaderMap::new(), size).unwrap();
                let _ = server.capacity(stream);
                server.send_data(stream, vec![b'x'; body].into()).unwrap();
                server.end(stream).unwrap();
                server.finished(stream);
            } else {
                server.want_body(stream, true);
                server.send_continue(stream);
            }
        }
        ServerEvent::Data { stream, data } if *choice % 3 != 0 => server.release(stream, data.len()),
        ServerEvent::Data { stream, .. } => server.reset(stream, Reason::Cancel),
        ServerEvent::End { stream } => {
            let _ = server.send_head(stream, StatusCode::NO_CONTENT, &HeaderMap::new(), BodySize::Known(0));
            server.finished(stream);
        }
        ServerEvent::Reset { stream, .. } => server.finished(stream),
        ServerEvent::Trailers { .. } | ServerEvent::Capacity { .. } | ServerEvent::GoAway { .. } => {}
    }
}
