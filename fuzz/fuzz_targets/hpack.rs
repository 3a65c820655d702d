//! Header compression from outside: any header block is decoded without a panic, and any fields that a client of ours
//! sends come out of a server of ours as they went in, over several requests that share their tables.
#![no_main]

#[path = "support/http2.rs"]
mod support;

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use hyperman_http2::{BodySize, Client, Config, PREFACE, Server, ServerEvent};
use libfuzzer_sys::fuzz_target;
use support::{SETTINGS, drain, feed};

fuzz_target!(|input: &[u8]| {
    let Some((&how, rest)) = input.split_first() else { return };
    if how % 2 == 0 { blocks(rest) } else { round_trip(how, rest) }
});

/// Each 0xff ends a block.
fn blocks(input: &[u8]) {
    let mut server = Server::new(Arc::new(Config::server()), Instant::now());
    feed(&mut server, PREFACE);
    feed(&mut server, SETTINGS);
    for (place, block) in input.split(|&byte| byte == 0xff).enumerate() {
        let block = &block[..block.len().min(16_384)];
        let mut frame = (block.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[1, 5]);
        frame.extend_from_slice(&(1 + 2 * place as u32).to_be_bytes());
        frame.extend_from_slice(block);
        feed(&mut server, &frame);
        loop {
            match server.next_event() {
                Ok(Some(ServerEvent::Request { stream, .. })) => server.finished(stream),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        drain(&mut server);
    }
}

fn round_trip(how: u8, input: &[u8]) {
    let now = Instant::now();
    let mut config = Config::server();
    config.header_table_size = u32::from(how) * 20;
    let mut server = Server::new(Arc::new(config), now);
    let mut client = Client::new(Arc::new(Config::client()), now);
    let uri = "https://example.com/".parse().unwrap();
    for request in input.split(|&byte| byte == 0).take(100) {
        let mut sent = HeaderMap::new();
        for (place, field) in request.split(|&byte| byte == b'\n').take(30).enumerate() {
            let middle = field.iter().position(|&byte| byte == b':').unwrap_or(0);
            let (name, value) = field.split_at(middle);
            let name = [&b"x-"[..], &name[..name.len().min(50)], &[b'a' + (place % 3) as u8]].concat();
            let value = value.trim_ascii();
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&name), HeaderValue::from_bytes(value)) {
                sent.append(name, value);
            }
        }
        let stream = client.open(&Method::GET, &uri, &sent, BodySize::Known(0)).unwrap();
        feed(&mut server, &drain(&mut client));
        let Some(ServerEvent::Request { stream: seen, request, .. }) = server.next_event().unwrap() else {
            panic!()
        };
        assert_eq!(request.headers(), &sent);
        server.finished(seen);
        feed(&mut client, &drain(&mut server));
        while client.next_event().unwrap().is_some() {}
        client.finished(stream);
    }
}
