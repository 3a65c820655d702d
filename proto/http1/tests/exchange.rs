//! Whole exchanges between the two roles, joined in memory.

#![allow(clippy::indexing_slicing, clippy::disallowed_methods)] // a test panics where it is wrong, and may read a clock

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Version};
use hyperman_http1::{
    BodyLength, BodySize, Client, ClientConfig, ClientEvent, HeadCache, Loan, Server, ServerConfig,
    ServerEvent,
};

fn drain_server(server: &mut Server) -> Vec<u8> {
    let mut out = Vec::new();
    while server.has_transmit() {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = server.poll_transmit(&mut slices);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        server.transmitted(bytes.len());
        out.extend(bytes);
    }
    out
}

fn drain_client(client: &mut Client) -> Vec<u8> {
    let mut out = Vec::new();
    while client.has_transmit() {
        let mut slices = [IoSlice::new(&[]); 8];
        let filled = client.poll_transmit(&mut slices);
        let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        client.transmitted(bytes.len());
        out.extend(bytes);
    }
    out
}

fn server_input(server: &mut Server, bytes: &[u8]) {
    server.read_buf().extend_from_slice(bytes);
    server.received(bytes.len());
}

fn client_input(client: &mut Client, bytes: &[u8]) {
    client.read_buf().extend_from_slice(bytes);
    client.received(bytes.len());
}

#[test]
fn keep_alive_exchanges_with_every_kind_of_body() {
    let now = Instant::now();
    let mut server = Server::new(Arc::new(ServerConfig::default()), now);
    let mut client = Client::new(Arc::new(ClientConfig::default()), now);
    let mut loan = Loan { heads: Some(Box::new(HeadCache::new(7))), ..Loan::default() };
    let mut headers = HeaderMap::new();
    headers.insert("host", "example.com".parse().unwrap());
    headers.insert("user-agent", "test".parse().unwrap());
    let sizes = [BodySize::Known(0), BodySize::Known(5), BodySize::Unknown, BodySize::Known(20_000)];
    for round in 0..40usize {
        let (up, down) = (sizes[round % 4], sizes[round / 4 % 4]);
        let content = |size| match size {
            BodySize::Known(length) => vec![b'x'; length as usize],
            BodySize::Unknown => b"of unknown length".to_vec(),
        };
        assert!(client.can_reuse());
        client.send_head(&Method::POST, "/path?query", Version::HTTP_11, &headers, up).unwrap();
        client.send_data(Bytes::from(content(up))).unwrap();
        client.end().unwrap();
        let request_bytes = drain_client(&mut client);

        server.lend(&mut loan);
        server_input(&mut server, &request_bytes);
        let Some(ServerEvent::Request { request, body, .. }) = server.next_event().unwrap() else { panic!() };
        assert_eq!((request.method(), request.uri().path()), (&Method::POST, "/path"));
        assert_eq!(request.headers()["user-agent"], "test");
        let mut received = Vec::new();
        if body != BodyLength::Empty {
            loop {
                match server.next_event().unwrap() {
                    Some(ServerEvent::Data(data)) => received.extend_from_slice(&data),
                    Some(ServerEvent::End) => break,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(received, content(up));
        assert!(server.next_event().unwrap().is_none());
        server.send_head(StatusCode::OK, &HeaderMap::new(), down).unwrap();
        server.send_data(Bytes::from(content(down))).unwrap();
        server.end().unwrap();
        assert!(server.next_event().unwrap().is_none());
        let answer_bytes = drain_server(&mut server);
        assert!(server.is_idle());
        server.reclaim(&mut loan);

        client_input(&mut client, &answer_bytes);
        let Some(ClientEvent::Response { response, body }) = client.next_event().unwrap() else { panic!() };
        assert_eq!(response.status(), StatusCode::OK);
        let mut received = Vec::new();
        if body != BodyLength::Empty {
            loop {
                match client.next_event().unwrap() {
                    Some(ClientEvent::Data(data)) => received.extend_from_slice(&data),
                    Some(ClientEvent::End) => break,
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(received, content(down));
        assert!(client.next_event().unwrap().is_none());
    }
}

#[test]
fn machines_are_small() {
    println!("server {} client {}", size_of::<Server>(), size_of::<Client>());
    assert!(size_of::<Server>() <= 400, "{}", size_of::<Server>());
    assert!(size_of::<Client>() <= 400, "{}", size_of::<Client>());
}
