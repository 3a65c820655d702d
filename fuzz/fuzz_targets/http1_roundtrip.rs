//! What one role's writer lets through, the other role's reader reads back, unchanged.
#![no_main]

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use hyperman_fuzz::{client_output, server_output};
use hyperman_http1::{
    BodyLength, BodySize, Client, ClientConfig, ClientEvent, Server, ServerConfig, ServerEvent,
};
use libfuzzer_sys::fuzz_target;

type Input<'a> = (&'a [u8], &'a str, Vec<(&'a [u8], &'a [u8])>, bool, Vec<&'a [u8]>, u16);

fuzz_target!(|input: Input<'_>| {
    let (method, target, fields, known, body, status) = input;
    let Ok(method) = Method::from_bytes(method) else { return };
    let Ok(status) = StatusCode::from_u16(status) else { return };
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    if !headers.contains_key("host") {
        headers.insert("host", HeaderValue::from_static("a"));
    }
    let length: usize = body.iter().map(|piece| piece.len()).sum();
    let size = if known { BodySize::Known(length as u64) } else { BodySize::Unknown };
    exchange(&method, target, &headers, &body, size, status);
});

fn exchange(
    method: &Method,
    target: &str,
    headers: &HeaderMap,
    body: &[&[u8]],
    size: BodySize,
    status: StatusCode,
) {
    let now = Instant::now();
    let mut client = Client::new(Arc::new(ClientConfig::default()), now);
    let mut server = Server::new(Arc::new(ServerConfig::default()), now);
    if client.send_head(method, target, Version::HTTP_11, headers, size).is_err() {
        assert!(!client.has_transmit());
        return;
    }
    for piece in body {
        if client.send_data(Bytes::copy_from_slice(piece)).is_err() {
            return;
        }
    }
    if client.end().is_err() {
        return;
    }
    let bytes = client_output(&mut client);
    server.read_buf().extend_from_slice(&bytes);
    server.received(bytes.len());
    let mut sent_body = Vec::new();
    match server.next_event() {
        Ok(Some(ServerEvent::Request { request, body: framing, .. })) => {
            assert_eq!(request.method(), method);
            same_fields(headers, request.headers(), request.uri().scheme().is_some());
            if framing != BodyLength::Empty {
                loop {
                    match server.next_event().expect("a good body") {
                        Some(ServerEvent::Data(data)) => sent_body.extend_from_slice(&data),
                        Some(ServerEvent::End) => break,
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        Ok(other) => panic!("{other:?}"),
        // What the reader's own limits and expectations refuse is not the writer's to know; what it writes must
        // never be malformed.
        Err(error) => {
            let text = error.to_string();
            let known = ["too", "expectation", "target"].iter().any(|word| text.contains(word));
            assert!(known, "{text}");
            return;
        }
    }
    assert_eq!(sent_body, body.concat());
    answer(&mut server, &mut client, method, headers, body, size, status);
}

fn answer(
    server: &mut Server,
    client: &mut Client,
    method: &Method,
    headers: &HeaderMap,
    body: &[&[u8]],
    size: BodySize,
    status: StatusCode,
) {
    if server.send_head(status, headers, size).is_err() {
        assert!(!server.has_transmit());
        return;
    }
    let switched = server.is_closed().is_some();
    if !switched {
        for piece in body {
            if server.send_data(Bytes::copy_from_slice(piece)).is_err() {
                return;
            }
        }
        if server.end().is_err() {
            return;
        }
    }
    let bytes = server_output(server);
    client.read_buf().extend_from_slice(&bytes);
    client.received(bytes.len());
    client.handle_eof();
    let mut got = Vec::new();
    loop {
        match client.next_event() {
            Ok(Some(ClientEvent::Response { response, body: framing })) => {
                assert_eq!(response.status(), status);
                same_fields(headers, response.headers(), false);
                if framing == BodyLength::Empty {
                    break;
                }
            }
            Ok(Some(ClientEvent::Data(data))) => got.extend_from_slice(&data),
            Ok(Some(ClientEvent::End)) => break,
            Ok(Some(ClientEvent::Upgraded(_))) => return,
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("too"), "{text}");
                return;
            }
        }
    }
    let has_body = *method != Method::HEAD && !matches!(status.as_u16(), 204 | 205 | 304);
    assert_eq!(got, if has_body { body.concat() } else { Vec::new() });
}

/// Every field that the machines do not write themselves came through, in order.
fn same_fields(sent: &HeaderMap, received: &HeaderMap, host_replaced: bool) {
    for name in sent.keys() {
        let own = ["connection", "content-length", "transfer-encoding", "date"].contains(&name.as_str());
        if own || host_replaced && name == "host" {
            continue;
        }
        let sent: Vec<_> = sent.get_all(name).iter().map(|value| value.as_bytes().trim_ascii()).collect();
        let received: Vec<_> =
            received.get_all(name).iter().map(|value| value.as_bytes().trim_ascii()).collect();
        assert_eq!(sent, received, "{name}");
    }
}
