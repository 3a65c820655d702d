//! Peers that break off, babble or flood.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConnection, ServerConfig, ServerConnection};

use super::pipe::{End, Network, close, pipe, read_to_end, run, send_all};
use super::{Authority, connected, library_client};
use crate::stream::ByteStream;
use crate::tls::{Error, Provider};

/// The first flight of a client, as bytes.
fn client_hello(authority: &Authority) -> Vec<u8> {
    let (near, _far) = pipe(Network::KIND);
    let mut client = authority.client().build().unwrap().stream(near, "host.test").unwrap();
    let ((), ()) = run(
        poll_fn(|cx| {
            assert!(client.poll_handshake(cx).is_pending());
            Poll::Ready(())
        }),
        async {},
    );
    client.inner.on_the_way()
}

/// What a server makes of these bytes and the end behind them, and what it says.
fn fed(authority: &Authority, bytes: &[u8], network: Network) -> (Error, Vec<u8>) {
    let server = authority.server(&["host.test"]).build().unwrap();
    let (mut near, far) = pipe(network);
    let (said, error) = run(
        async {
            // It may have hung up before it read everything.
            let _ = send_all(&mut near, bytes).await;
            close(&mut near).await.unwrap();
            read_to_end(&mut near).await.0
        },
        async {
            let failure = server.accept(far).await.expect_err("no handshake can come of this");
            failure.error
        },
    );
    (error, said)
}

#[test]
fn a_handshake_cut_at_any_byte_is_an_end_in_the_handshake() {
    let authority = Authority::new("root");
    let hello = client_hello(&authority);
    for length in 0..hello.len() {
        let (error, said) = fed(&authority, &hello[..length], Network::KIND);
        assert!(matches!(error, Error::HandshakeEof), "{length}: {error:?}");
        assert_eq!(said, b"", "nothing is said to half a hello");
    }
    let (error, said) = fed(&authority, &hello, Network { chunk: 1, capacity: 64 * 1024 });
    assert!(matches!(error, Error::HandshakeEof), "{error:?}");
    assert_eq!(said[..3], [22, 3, 3], "the server's flight went out");
}

#[test]
fn a_damaged_hello_never_hangs_and_never_connects() {
    let authority = Authority::new("root");
    let hello = client_hello(&authority);
    for at in 0..hello.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = hello.clone();
            damaged[at] ^= bit;
            // Some changes make another good hello (its randomness, say); then the end comes in the handshake.
            fed(&authority, &damaged, Network::KIND);
        }
    }
}

#[test]
fn noise_is_told_from_http_and_nothing_is_said_to_either() {
    let authority = Authority::new("root");
    for network in [Network::KIND, Network::BYTE_BY_BYTE] {
        let (error, said) = fed(&authority, b"GET / HTTP/1.1\r\nHost: host.test\r\n\r\n", network);
        assert!(matches!(error, Error::PlainHttp), "{error:?}");
        assert_eq!(said, b"");
        let (error, said) = fed(&authority, b"\x00\x01\x02\x03\x04\x05", network);
        assert!(matches!(error, Error::NotTls), "{error:?}");
        assert_eq!(said, b"");
    }
}

#[test]
fn a_client_that_spoke_plain_http_can_be_answered_in_plain_text() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let (mut near, far) = pipe(Network::KIND);
    let (said, ()) = run(
        async {
            send_all(&mut near, b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            read_to_end(&mut near).await.0
        },
        async {
            let mut failure = server.accept(far).await.unwrap_err();
            send_all(&mut failure.stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        },
    );
    assert_eq!(said, b"HTTP/1.1 400 Bad Request\r\n\r\n");
}

#[test]
fn a_hello_without_end_is_bounded() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let (mut near, far) = pipe(Network { chunk: 4096, capacity: 4096 });
    // Handshake records that carry a message of a claimed 16 MiB.
    let mut record = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    record.resize(5 + 0x4000, 0);
    let (sent, error) = run(
        async {
            let mut sent = 0;
            while sent < 4 << 20 {
                let Ok(taken) =
                    poll_fn(|cx| near.poll_send(cx, &[IoSlice::new(&record[sent % record.len()..])])).await
                else {
                    break;
                };
                sent += taken;
            }
            sent
        },
        async { server.accept(far).await.unwrap_err().error },
    );
    assert!(matches!(error, Error::Protocol(_) | Error::Flood), "{error:?}");
    assert!(sent < 512 * 1024, "{sent} bytes were taken in");
}

#[test]
fn a_damaged_record_ends_the_connection_with_an_alert_after_what_came_before() {
    let authority = Authority::new("root");
    let (mut client, mut server) = connected(
        &authority.client().build().unwrap(),
        &authority.server(&["host.test"]).build().unwrap(),
        "host.test",
        Network::KIND,
    );
    let (sent, ()) = run(send_all(&mut client, b"good"), async {});
    sent.unwrap();
    // A record of 32 bytes that nobody encrypted.
    let mut forged = vec![23, 3, 3, 0, 32];
    forged.resize(37, 0xaa);
    let (sent, ()) = run(send_all(&mut client.inner, &forged), async {});
    sent.unwrap();
    let ((got, end), ()) = run(read_to_end(&mut server), async {});
    assert_eq!(got, b"good");
    let error = end.unwrap_err();
    assert!(matches!(Error::from_io(&error), Some(Error::Protocol(_))), "{error:?}");
    // Sealed: both directions repeat it.
    let (again, ()) = run(poll_fn(|cx| server.poll_send(cx, &[IoSlice::new(b"x")])), async {});
    assert_eq!(again.unwrap_err().to_string(), error.to_string());
    let ((_, end), ()) = run(read_to_end(&mut client), async {});
    let error = end.unwrap_err();
    assert!(matches!(Error::from_io(&error), Some(Error::PeerAlert(alert)) if alert.code == 20), "{error:?}");
}

/// The bytes that the library's connection has to send.
fn take_tls(connection: &mut rustls::Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Drives the library's own connection over an end until its handshake is over.
async fn library_handshake(connection: &mut rustls::Connection, end: &mut End) {
    loop {
        let bytes = take_tls(connection);
        let sent = send_all(end, &bytes).await;
        if sent.is_err() || !connection.is_handshaking() {
            return;
        }
        let mut buf = BytesMut::with_capacity(8192);
        assert!(poll_fn(|cx| end.poll_recv(cx, &mut buf)).await.unwrap() > 0);
        let mut rest = &buf[..];
        while !rest.is_empty() {
            connection.read_tls(&mut rest).unwrap();
            connection.process_new_packets().unwrap();
        }
    }
}

#[test]
fn a_flood_of_key_updates_is_refused() {
    let authority = Authority::new("root");
    let config = Arc::new(library_client(&authority, &[&rustls::version::TLS13]));
    let name = ServerName::try_from("host.test").unwrap();
    let mut client = rustls::Connection::from(ClientConnection::new(config, name).unwrap());
    let (mut near, far) = pipe(Network { chunk: usize::MAX, capacity: 64 * 1024 });
    let server = authority.server(&["host.test"]).build().unwrap();
    let (mut near, end) = run(
        async {
            library_handshake(&mut client, &mut near).await;
            // Not before the server is done with its handshake.
            let mut buf = BytesMut::with_capacity(8192);
            poll_fn(|cx| near.poll_recv(cx, &mut buf)).await.unwrap();
            for _ in 0..1000 {
                client.refresh_traffic_keys().unwrap();
                if send_all(&mut near, &take_tls(&mut client)).await.is_err() {
                    break;
                }
            }
            near
        },
        async {
            let mut server = server.accept(far).await.unwrap();
            send_all(&mut server, b"go").await.unwrap();
            let end = read_to_end(&mut server).await;
            assert_eq!(server.outgoing.len(), 0, "no answers pile up");
            (end, server)
        },
    );
    let ((got, result), server) = end;
    assert_eq!(got, b"");
    let error = result.unwrap_err();
    assert!(matches!(Error::from_io(&error), Some(Error::Protocol(_) | Error::Flood)), "{error:?}");
    drop(server);
    // What it says back is bounded too: its handshake, and at most an answer or two.
    let (back, ()) = run(read_to_end(&mut near), async {});
    assert!(back.0.len() < 4096, "{}", back.0.len());
}

#[test]
fn a_flood_of_tickets_is_refused() {
    let authority = Authority::new("root");
    let (certificate, key) = authority.issue_pem(&["host.test"], |_| {});
    let mut config = ServerConfig::builder_with_provider(Provider::default().crypto())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.ticketer = Provider::default().tickets().unwrap();
    config.send_tls13_tickets = 2000;
    let mut server = rustls::Connection::from(ServerConnection::new(Arc::new(config)).unwrap());
    let (near, mut far) = pipe(Network { chunk: usize::MAX, capacity: 1 << 20 });
    let client = authority.client().build().unwrap();
    let (end, sent) = run(
        async {
            let mut client = client.stream(near, "host.test").unwrap().handshake().await.unwrap();
            read_to_end(&mut client).await
        },
        async {
            library_handshake(&mut server, &mut far).await;
            far.sent()
        },
    );
    assert!(sent > 200_000, "{sent} bytes of tickets are a flood");
    assert_eq!(end.0, b"");
    let error = end.1.unwrap_err();
    assert!(matches!(Error::from_io(&error), Some(Error::Flood)), "{error:?}");
}

#[test]
fn a_wait_costs_one_receive_and_a_trickle_one_per_piece() {
    let authority = Authority::new("root");
    let (mut client, mut server) = connected(
        &authority.client().build().unwrap(),
        &authority.server(&["host.test"]).build().unwrap(),
        "host.test",
        Network::KIND,
    );
    let mut buf = BytesMut::with_capacity(100);
    let wait = |server: &mut crate::tls::TlsStream<End>, buf: &mut BytesMut| {
        let before = server.inner.receives.get();
        let (outcome, ()) = run(poll_fn(|cx| Poll::Ready(server.poll_recv(cx, buf))), async {});
        (outcome.is_ready(), server.inner.receives.get() - before)
    };
    for _ in 0..3 {
        assert_eq!(wait(&mut server, &mut buf), (false, 1));
    }
    let before = client.inner.on_the_way().len();
    assert_eq!(before, 0);
    // A record of the client's, taken off its way and handed on byte by byte.
    let (taken, ()) = run(poll_fn(|cx| client.poll_send(cx, &[IoSlice::new(b"hello")])), async {});
    assert_eq!(taken.unwrap(), 5);
    let record = client.inner.take_off_the_way();
    for (at, byte) in record.iter().enumerate() {
        let (sent, ()) = run(send_all(&mut client.inner, &[*byte]), async {});
        sent.unwrap();
        let is_last = at + 1 == record.len();
        // The byte, and the wait for the next one.
        assert_eq!(wait(&mut server, &mut buf), (is_last, if is_last { 1 } else { 2 }), "byte {at}");
    }
    assert_eq!(buf, b"hello"[..]);
}

#[test]
fn a_client_meets_a_server_that_is_none() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    for answer in
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"\x15\x03\x03\x00\x02\x02\x28"]
    {
        for network in [Network::KIND, Network::BYTE_BY_BYTE] {
            let (near, mut far) = pipe(network);
            let connecting = client.stream(near, "host.test").unwrap().handshake();
            let (error, _) = run(async { connecting.await.unwrap_err().error }, async {
                let _ = send_all(&mut far, answer).await;
                read_to_end(&mut far).await
            });
            match answer.first() {
                Some(0x15) => {
                    assert!(matches!(error, Error::PeerAlert(alert) if alert.code == 40), "{error:?}")
                }
                _ => assert!(matches!(error, Error::NotTls), "{error:?}"),
            }
        }
    }
}

#[test]
fn a_server_that_hangs_up_in_the_handshake_is_told_apart() {
    let authority = Authority::new("root");
    let client = authority.client().build().unwrap();
    let (near, far) = pipe(Network::KIND);
    let (failure, ()) = run(client.stream(near, "host.test").unwrap().handshake(), async {
        drop(far);
    });
    let error = failure.unwrap_err().error;
    assert!(matches!(error, Error::HandshakeEof), "{error:?}");
}
