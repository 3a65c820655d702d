//! Any frames against a client with requests under way: no panic, well-formed output, and an error that stays.
#![no_main]

#[path = "support/http2.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Method};
use hyperman_http2::{BodySize, Client, ClientEvent, Config};
use libfuzzer_sys::fuzz_target;
use support::{SETTINGS, drain, feed, frames};

fuzz_target!(|input: &[u8]| {
    let Some((&seed, input)) = input.split_first() else { return };
    let now = Instant::now();
    let mut client = Client::new(Arc::new(Config::client()), now);
    let uri = "https://example.com/".parse().unwrap();
    for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT] {
        let size = if method == Method::POST { BodySize::Unknown } else { BodySize::Known(0) };
        let stream = client.open(&method, &uri, &HeaderMap::new(), size).unwrap();
        client
            .send_data(stream, if method == Method::POST { vec![b'x'; 90_000].into() } else { "".into() })
            .unwrap();
    }
    feed(&mut client, SETTINGS);
    let bytes = frames(input);
    let mut events = 0;
    for part in bytes.chunks(1 + usize::from(seed)) {
        client.handle_timeout(now);
        feed(&mut client, part);
        loop {
            events += 1;
            match client.next_event() {
                Ok(Some(ClientEvent::Data { stream, data })) if seed & 1 == 0 => {
                    client.release(stream, data.len())
                }
                Ok(Some(ClientEvent::Data { stream, .. })) => client.finished(stream),
                Ok(Some(ClientEvent::End { stream } | ClientEvent::Reset { stream, .. }))
                    if events % 2 == 0 =>
                {
                    client.finished(stream);
                }
                Ok(Some(ClientEvent::Capacity { stream })) => {
                    let _ = client.send_data(stream, vec![b'y'; 100].into());
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    drain(&mut client);
                    assert_eq!(client.next_event().unwrap_err(), error);
                    return;
                }
            }
        }
        drain(&mut client);
        let _ = client.open(&Method::GET, &uri, &HeaderMap::new(), BodySize::Known(0));
    }
});
