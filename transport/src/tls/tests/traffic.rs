//! Bytes both ways, ends, and how many records and system calls they take.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;

use super::pipe::{End, Network, close, pipe, read_exact, read_to_end, run, send_all};
use super::{Authority, connected, library_client, library_stream};
use crate::stream::ByteStream;
use crate::tls::{ClientTls, ServerTls, TlsStream, Version, is_truncated};

const NETWORKS: [Network; 4] = [
    Network::KIND,
    Network { chunk: 1000, capacity: 5000 },
    Network { chunk: 7, capacity: 64 },
    Network::BYTE_BY_BYTE,
];

fn both() -> (ClientTls, ServerTls) {
    let authority = Authority::new("root");
    (authority.client().build().unwrap(), authority.server(&["host.test"]).build().unwrap())
}

/// Bytes that differ from place to place, so that a record out of order shows.
fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

async fn exchange(stream: &mut TlsStream<End>, out: &[u8], length: usize) -> Vec<u8> {
    // Sends and receives in turn, so that neither direction waits for the other's end.
    let mut sent = 0;
    let mut received = Vec::new();
    let mut closed = false;
    poll_fn(|cx| {
        loop {
            let mut moved = false;
            if sent < out.len() {
                if let Poll::Ready(n) = stream.poll_send(cx, &[IoSlice::new(&out[sent..])]) {
                    sent += n.unwrap();
                    moved = true;
                }
            } else if !closed && let Poll::Ready(done) = stream.poll_close_write(cx) {
                done.unwrap();
                closed = true;
                moved = true;
            }
            let mut buf = BytesMut::with_capacity(10_000);
            if let Poll::Ready(n) = stream.poll_recv(cx, &mut buf) {
                if n.unwrap() == 0 && closed {
                    return Poll::Ready(());
                }
                moved |= !buf.is_empty();
                received.extend_from_slice(&buf);
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
    .await;
    assert_eq!(received.len(), length);
    received
}

#[test]
fn bytes_go_both_ways_at_once_over_any_network() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    for (versions, version) in
        [(&rustls::version::TLS13, Version::Tls13), (&rustls::version::TLS12, Version::Tls12)]
    {
        let config = Arc::new(library_client(&authority, &[versions]));
        for network in NETWORKS {
            let length = if network.chunk < 1000 { 40_000 } else { 1 << 20 };
            let (up, down) = (pattern(length, 1), pattern(length, 2));
            let (near, far) = pipe(network);
            let (mut client, mut server) = (library_stream(&config, near, "host.test"), server.stream(far));
            let (got_down, got_up) =
                run(exchange(&mut client, &up, length), exchange(&mut server, &down, length));
            assert!(got_up == up && got_down == down, "{network:?}");
            for stream in [&client, &server] {
                let info = stream.info().unwrap();
                assert_eq!((info.version(), info.server_name()), (version, Some("host.test")));
            }
        }
    }
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    let (client, server) = both();
    let (mut client, mut server) = connected(&client, &server, "host.test", Network::KIND);
    let up = pattern(50_000, 3);
    let (sent, got) = run(send_all(&mut client, &up), read_exact(&mut server, up.len()));
    sent.unwrap();
    assert_eq!(got.unwrap(), up);
    // The server answers and waits; the client reads the answer (and the tickets before it) and waits.
    let (sent, got) = run(send_all(&mut server, b"answer"), read_exact(&mut client, 6));
    sent.unwrap();
    assert_eq!(got.unwrap(), b"answer");
    for stream in [&mut client, &mut server] {
        let mut buf = BytesMut::with_capacity(100);
        let ((), ()) = run(
            poll_fn(|cx| {
                assert!(stream.poll_recv(cx, &mut buf).is_pending());
                Poll::Ready(())
            }),
            async {},
        );
        assert_eq!((stream.incoming.capacity(), stream.plain.capacity()), (0, 0));
        assert!(stream.outgoing.holds_nothing());
    }
}

#[test]
fn a_request_and_its_answer_take_one_send_each() {
    let (client, server) = both();
    let (mut client, mut server) = connected(&client, &server, "host.test", Network::KIND);
    // The first exchange also carries the tickets.
    for _ in 0..3 {
        let before = (client.inner.sends.get(), server.inner.sends.get());
        let (a, b) = run(
            async {
                send_all(&mut client, b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
                read_exact(&mut client, 2).await
            },
            async {
                let got = read_exact(&mut server, 18).await;
                send_all(&mut server, b"OK").await.unwrap();
                got
            },
        );
        assert_eq!((a.unwrap(), b.unwrap().len()), (b"OK".to_vec(), 18));
        let after = (client.inner.sends.get(), server.inner.sends.get());
        assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    }
}

/// The lengths of the records in `bytes`.
fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_type, 3, 3, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty());
    lengths
}

#[test]
fn small_slices_are_gathered_into_full_records() {
    // What encryption adds to a record in TLS 1.3 with AES-GCM: the content type and the tag.
    const ADDED: usize = 17;
    let cases: [(&[usize], &[usize]); 6] = [
        (&[100, 200, 300], &[600]),
        (&[200, 20_000], &[16_384, 3816]),
        (&[40_000, 100], &[16_384, 16_384, 7332]),
        (&[0, 0, 5, 0], &[5]),
        (&[10_000, 10_000, 10_000], &[16_384, 13_616]),
        (&[200_000], &[16_384, 16_384, 16_384]),
    ];
    let (client, server) = both();
    for (lengths, expected) in cases {
        let (mut client, _server) = connected(&client, &server, "host.test", Network::KIND);
        let before = client.inner.on_the_way().len();
        let all = pattern(lengths.iter().sum(), 9);
        let mut rest = all.as_slice();
        let slices: Vec<IoSlice<'_>> = lengths
            .iter()
            .map(|length| {
                let (now, later) = rest.split_at(*length);
                rest = later;
                IoSlice::new(now)
            })
            .collect();
        let (taken, ()) = run(poll_fn(|cx| client.poll_send(cx, &slices)), async {});
        let plain: Vec<usize> =
            records(&client.inner.on_the_way()[before..]).iter().map(|length| length - ADDED).collect();
        assert_eq!(plain, expected, "{lengths:?}");
        assert_eq!(taken.unwrap(), plain.iter().sum::<usize>());
    }
}

#[test]
fn an_end_with_close_notify_is_an_end() {
    for network in NETWORKS {
        let (client, server) = both();
        let (mut client, mut server) = connected(&client, &server, "host.test", network);
        let (answer, question) = run(
            async {
                send_all(&mut client, b"question").await.unwrap();
                close(&mut client).await.unwrap();
                // Our direction has ended, the other has not.
                read_to_end(&mut client).await
            },
            async {
                let question = read_to_end(&mut server).await;
                send_all(&mut server, b"answer").await.unwrap();
                close(&mut server).await.unwrap();
                question
            },
        );
        assert_eq!((question.0.as_slice(), question.1.is_ok()), (&b"question"[..], true));
        assert_eq!((answer.0.as_slice(), answer.1.is_ok()), (&b"answer"[..], true));
    }
}

#[test]
fn an_end_without_close_notify_is_told_apart_and_repeated() {
    let (client, server) = both();
    let (mut client, mut server) = connected(&client, &server, "host.test", Network::KIND);
    let (sent, ()) = run(send_all(&mut server, b"half an ans"), async {});
    sent.unwrap();
    drop(server);
    let ((got, end), ()) = run(read_to_end(&mut client), async {});
    assert_eq!(got, b"half an ans");
    let error = end.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert!(is_truncated(&error));
    let ((_, again), ()) = run(read_to_end(&mut client), async {});
    assert!(is_truncated(&again.unwrap_err()));
}

#[test]
fn a_record_cut_in_the_middle_is_truncation_too() {
    let (client, server) = both();
    let network = Network { chunk: usize::MAX, capacity: 1500 };
    let (mut client, mut server) = connected(&client, &server, "host.test", network);
    // Only the beginning of the record fits on the way.
    let (taken, ()) = run(poll_fn(|cx| server.poll_send(cx, &[IoSlice::new(&[7; 9000])])), async {});
    assert_eq!(taken.unwrap(), 9000);
    drop(server);
    let ((got, end), ()) = run(read_to_end(&mut client), async {});
    assert_eq!(got, b"");
    assert!(is_truncated(&end.unwrap_err()));
}

#[test]
fn a_peer_that_does_not_read_stops_the_sender() {
    let (client, server) = both();
    let network = Network { chunk: usize::MAX, capacity: 10_000 };
    let (mut client, mut server) = connected(&client, &server, "host.test", network);
    let data = pattern(1 << 20, 4);
    let mut taken = 0;
    let (pending, ()) = run(
        poll_fn(|cx| {
            while let Poll::Ready(sent) = client.poll_send(cx, &[IoSlice::new(&data[taken..])]) {
                taken += sent.unwrap();
            }
            Poll::Ready(taken)
        }),
        async {},
    );
    // One batch of three records waits, no more; and not all of it is lost.
    assert_eq!(pending, 3 * 16_384);
    let (flushed, got) = run(poll_fn(|cx| client.poll_flush(cx)), read_exact(&mut server, pending));
    flushed.unwrap();
    assert!(got.unwrap() == data[..pending]);
}

#[test]
fn what_does_not_fit_the_readers_buffer_is_kept() {
    let (client, server) = both();
    let (mut client, mut server) = connected(&client, &server, "host.test", Network::KIND);
    let data = pattern(40_000, 5);
    let (sent, ()) = run(send_all(&mut client, &data), async {});
    sent.unwrap();
    let mut all = Vec::new();
    let (got, ()) = run(
        async {
            while all.len() < data.len() {
                let mut buf = BytesMut::with_capacity(333);
                let received = poll_fn(|cx| server.poll_recv(cx, &mut buf)).await.unwrap();
                assert!(received > 0 && received <= 333);
                all.extend_from_slice(&buf);
                // Writing in between decrypts what is left over; order must hold.
                if all.len() < 5_000 {
                    send_all(&mut server, b"x").await.unwrap();
                }
            }
            all
        },
        async {},
    );
    assert!(got == data);
}

#[test]
fn a_full_buffer_is_refused_rather_than_read_as_an_end() {
    let (client, server) = both();
    let (mut client, _server) = connected(&client, &server, "host.test", Network::KIND);
    let mut full = BytesMut::new();
    let (got, ()) = run(poll_fn(|cx| client.poll_recv(cx, &mut full)), async {});
    assert_eq!(got.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn the_handshake_runs_by_itself_with_the_first_read_or_write() {
    let (client, server) = both();
    for network in NETWORKS {
        let (near, far) = pipe(network);
        let mut client = client.stream(near, "host.test").unwrap();
        let mut server = server.stream(far);
        let (answer, question) = run(
            async {
                send_all(&mut client, b"ping").await.unwrap();
                read_exact(&mut client, 4).await.unwrap()
            },
            async {
                let question = read_exact(&mut server, 4).await.unwrap();
                send_all(&mut server, b"pong").await.unwrap();
                question
            },
        );
        assert_eq!((question.as_slice(), answer.as_slice()), (&b"ping"[..], &b"pong"[..]));
    }
}

#[test]
fn bytes_received_ahead_belong_to_the_handshake() {
    let (client, server) = both();
    let (near, far) = pipe(Network::KIND);
    let mut client = client.stream(near, "host.test").unwrap();
    // The client's first flight is taken off the connection before TLS is begun, as a PROXY header's reader would.
    let mut far = far;
    let mut received = BytesMut::with_capacity(8192);
    let ((), ()) = run(
        poll_fn(|cx| {
            assert!(client.poll_handshake(cx).is_pending());
            assert!(far.poll_recv(cx, &mut received).is_ready());
            Poll::Ready(())
        }),
        async {},
    );
    let mut server = server.stream_after(far, received);
    let (client, server) =
        run(poll_fn(|cx| client.poll_handshake(cx)), poll_fn(|cx| server.poll_handshake(cx)));
    client.unwrap();
    server.unwrap();
}

#[test]
fn tls_runs_over_tls_as_behind_a_proxy_that_is_spoken_to_in_tls() {
    let (client, server) = both();
    // With room for one byte only, the two ends of the layers would wait for each other: neither reads while it closes.
    for network in NETWORKS.into_iter().filter(|network| network.capacity > 1) {
        let (near, far) = connected(&client, &server, "host.test", network);
        let mut near = client.stream(near, "host.test").unwrap();
        let mut far = server.stream(far);
        let data = pattern(30_000, 6);
        let (end, got) = run(
            async {
                send_all(&mut near, &data).await.unwrap();
                close(&mut near).await.unwrap();
                read_to_end(&mut near).await
            },
            async {
                let (got, end) = read_to_end(&mut far).await;
                end.unwrap();
                close(&mut far).await.unwrap();
                got
            },
        );
        end.1.unwrap();
        assert!(got == data, "{network:?}");
    }
}
