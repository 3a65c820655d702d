//! Two of our machines with a network between them: windows, their growth, priorities, and that nothing leaks.
#![allow(clippy::unwrap_used)] // What fails here fails the test.

mod support;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyperman_http2::{BodySize, ClientEvent, Config, Reason, Server, ServerEvent, StreamId};
use support::exchange::{Received, TRIP, get, respond, uri};
use support::letters;
use support::pair::Pair;

#[test]
fn a_large_download_is_not_bound_by_the_windows() {
    let mut pair = Pair::new(TRIP);
    let stream = get(&mut pair.client, "/");
    let mut received = Received::default();
    let body = letters(100 * 1024 * 1024);
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, .. } = event {
                respond(server, stream, body.clone());
            }
        },
    );
    assert_eq!(received.bodies[&stream], 100 * 1024 * 1024);
    assert!(pair.elapsed() < Duration::from_millis(900), "{:?}", pair.elapsed());
}

#[test]
fn windows_grow_to_their_maximum_and_no_further() {
    let mut pair = Pair::new(TRIP);
    let stream = pair.client.open(&Method::POST, &uri("/"), &HeaderMap::new(), BodySize::Unknown).unwrap();
    pair.client.send_data(stream, letters(15 * 1024 * 1024)).unwrap();
    pair.client.end(stream).unwrap();
    let mut largest = 0;
    pair.run(
        |client, event| {
            if let ClientEvent::Response { stream, .. } = event {
                client.finished(stream);
            }
        },
        |server, event| match event {
            ServerEvent::Data { stream, data } => {
                server.release(stream, data.len());
                largest = largest.max(server.connection_windows().target);
            }
            ServerEvent::End { stream } => respond(server, stream, ""),
            _ => {}
        },
    );
    assert!(pair.elapsed() < Duration::from_millis(1_500), "{:?}", pair.elapsed());
    assert!((1024 * 1024..=4 * 1024 * 1024).contains(&largest), "{largest}");
    assert!(pair.client.is_idle() && pair.server.is_idle());
}

#[test]
fn back_pressure_reaches_the_sender() {
    let mut pair = Pair::new(TRIP);
    let stream = pair.client.open(&Method::POST, &uri("/"), &HeaderMap::new(), BodySize::Unknown).unwrap();
    assert_eq!(pair.client.capacity(stream), 65_535, "before the server's window is known");
    let mut taken = 0;
    let mut unread = Vec::new();
    let mut sent = 0;
    while pair.client.capacity(stream) > 0 {
        let capacity = pair.client.capacity(stream);
        pair.client.send_data(stream, letters(capacity)).unwrap();
        sent += capacity;
        pair.run(
            |_, _| {},
            |_, event| {
                if let ServerEvent::Data { data, .. } = event {
                    taken += data.len();
                    unread.push(data.len());
                }
            },
        );
    }
    assert_eq!((sent, taken), (65_535, 65_535));
    // Reading makes room, and the sender is told.
    let mut told = false;
    for length in unread {
        pair.server.release(stream, length);
    }
    pair.run(|_, event| told |= matches!(event, ClientEvent::Capacity { .. }), |_, _| {});
    assert!(told && pair.client.capacity(stream) > 0);
}

#[test]
fn priorities() {
    let order = |priorities: [&'static str; 3]| {
        let mut pair = Pair::new(TRIP);
        for priority in priorities {
            let mut headers = HeaderMap::new();
            headers.insert("priority", HeaderValue::from_static(priority));
            pair.client.open(&Method::GET, &uri("/"), &headers, BodySize::Known(0)).unwrap();
        }
        let mut order: Vec<u32> = Vec::new();
        let body = letters(40_000);
        pair.run(
            |client, event| {
                if let ClientEvent::Data { stream, data } = event {
                    order.push(stream.get());
                    client.release(stream, data.len());
                }
            },
            |server, event| {
                if let ServerEvent::Request { stream, .. } = event {
                    respond(server, stream, body.clone());
                }
            },
        );
        order
    };
    assert_eq!(order(["u=5", "u=1", "u=3"]), [3, 3, 3, 5, 5, 5, 1, 1, 1]);
    assert_eq!(order(["u=3", "u=3", "u=3"]), [1, 1, 1, 3, 3, 3, 5, 5, 5]);
    assert_eq!(order(["u=3, i", "u=3, i", "u=7"]), [1, 3, 1, 3, 1, 3, 5, 5, 5]);
}

#[test]
fn a_hundred_answers_leave_in_one_write() {
    let mut pair = Pair::new(TRIP);
    pair.run(|_, _| {}, |_, _| {});
    let before = (pair.writes, pair.from_server);
    for _ in 0..100 {
        get(&mut pair.client, "/");
    }
    let body = letters(256);
    let mut received = Received::default();
    pair.run(
        |client, event| received.take(client, event),
        |server, event| {
            if let ServerEvent::Request { stream, .. } = event {
                respond(server, stream, body.clone());
            }
        },
    );
    assert_eq!(received.bodies.len(), 100);
    assert_eq!(pair.writes - before.0, 1);
    assert!(pair.from_server - before.1 < 100 * (256 + 9 + 9 + 8), "heads are small");
}

#[test]
fn ten_thousand_broken_streams_leave_the_windows_as_they_were() {
    let mut server = Config::server();
    let mut client = Config::client();
    server.limits.concurrent_streams = 20;
    server.limits.resets = 100_000;
    // Without growth the start value is also the value at the end.
    server.windows.connection_max = server.windows.connection;
    client.windows.connection_max = client.windows.connection;
    let mut pair = Pair::with(Duration::from_millis(1), client, server);
    let mut seed: u32 = 1;
    let mut random = move |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    pair.run(|_, _| {}, |_, _| {});
    let start = (pair.client.connection_windows(), pair.server.connection_windows());
    let body = letters(30_000);
    let mut opened = 0;
    let mut ends: HashMap<String, u32> = HashMap::new();
    while opened < 10_000 {
        let mut batch = Vec::new();
        for _ in 0..random(30) {
            let Ok(stream) = pair.client.open(&Method::POST, &uri("/"), &HeaderMap::new(), BodySize::Unknown)
            else {
                break;
            };
            opened += 1;
            batch.push(stream);
            pair.client.send_data(stream, body.slice(..random(30_000) as usize)).unwrap();
            match random(4) {
                0 => pair.client.end(stream).unwrap(),
                1 => pair.client.reset(stream, Reason::Cancel),
                2 => pair.client.finished(stream),
                _ => {}
            }
            if random(2) == 0 {
                pair.client.finished(stream);
            }
        }
        let choices: Vec<u32> = (0..200).map(|_| random(7)).collect();
        let mut choice = choices.iter().copied().cycle();
        let mut other = choices.iter().copied().cycle().skip(50);
        pair.run(
            |client, event| match event {
                ClientEvent::Response { stream, .. } if other.next() == Some(0) => client.finished(stream),
                ClientEvent::Data { stream, data } => match other.next() {
                    Some(0) => client.finished(stream),
                    Some(1) => client.reset(stream, Reason::Cancel),
                    Some(2) => {}
                    _ => client.release(stream, data.len()),
                },
                ClientEvent::End { stream } => client.finished(stream),
                ClientEvent::Reset { stream, error } => {
                    *ends.entry(error.to_string()).or_default() += 1;
                    client.finished(stream);
                }
                _ => {}
            },
            |server, event| match event {
                ServerEvent::Request { stream, .. } => match choice.next() {
                    Some(0) => server.finished(stream),
                    Some(1) => server.reset(stream, Reason::RefusedStream),
                    Some(2) => server.ignore_body(stream),
                    Some(3) => respond(server, stream, body.clone()),
                    _ => {}
                },
                ServerEvent::Data { stream, data } => match choice.next() {
                    Some(0) => server.reset(stream, Reason::Cancel),
                    Some(1) => respond_if_new(server, stream, body.clone()),
                    Some(2) => {}
                    _ => server.release(stream, data.len()),
                },
                ServerEvent::End { stream } => respond_if_new(server, stream, body.clone()),
                ServerEvent::Reset { stream, .. } => server.finished(stream),
                _ => {}
            },
        );
        // Whatever is still open is given up.
        for stream in batch {
            pair.client.finished(stream);
            pair.server.finished(stream);
        }
        pair.run(|_, _| {}, |_, _| {});
        assert_eq!((&pair.client_error, &pair.server_error), (&None, &None));
        assert_eq!((pair.client.open_streams(), pair.server.open_streams()), (0, 0));
    }
    let end = (pair.client.connection_windows(), pair.server.connection_windows());
    for (start, end) in [(start.0, end.0), (start.1, end.1)] {
        assert_eq!(end.granted + i64::from(end.due), start.granted);
        assert_eq!(end.target, start.target);
    }
    assert_eq!(end.0.send, end.1.granted, "both sides agree");
    assert_eq!(end.1.send, end.0.granted, "both sides agree");
    assert!(ends.len() >= 3 && ends.values().sum::<u32>() > 500, "{ends:?}");
}

fn respond_if_new(server: &mut Server, stream: StreamId, body: Bytes) {
    let size = BodySize::Known(body.len() as u64);
    if server.send_head(stream, StatusCode::OK, &HeaderMap::new(), size).is_ok() {
        server.send_data(stream, body).unwrap();
        server.end(stream).unwrap();
        server.finished(stream);
    }
}
