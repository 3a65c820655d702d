//! Our server, their clients.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};

use hyperman_transport::tls::{ClientAuth, Error, ServerTls, TlsInfo, TlsStream, Version, is_truncated};

use crate::harness::{
    Authority, Program, Tcp, accept, block_on, close, exchange, listen, pattern, read_line, read_to_end, send,
};

/// Accepts one connection and its handshake.
fn handshake(server: &ServerTls, listener: &TcpListener) -> (TcpStream, Result<TlsStream<Tcp>, Error>) {
    let socket = accept(listener);
    let stream = server.accept(Tcp::new(socket.try_clone().unwrap()));
    let outcome = block_on(&socket, stream).map_err(|failure| failure.error);
    (socket, outcome)
}

/// Serves one connection: a line back, then an end in good order. What was agreed on.
fn echo_line(server: &ServerTls, listener: &TcpListener) -> TlsInfo {
    let (socket, stream) = handshake(server, listener);
    let mut stream = stream.unwrap();
    let info = stream.info().unwrap().clone();
    let line = block_on(&socket, async {
        let line = read_line(&mut stream).await.unwrap();
        send(&mut stream, format!("you said {line}\n").as_bytes()).await.unwrap();
        close(&mut stream).await.unwrap();
        // The peer may close without close_notify; a whole line was enough.
        let _ = read_to_end(&mut stream).await;
        line
    });
    assert_eq!(line, "ping");
    info
}

/// OpenSSL's client says a line; what we know of it, and what it says of us.
fn s_client(server: &ServerTls, authority: &Authority, options: &str, more: &[&str]) -> (TlsInfo, String) {
    let (listener, port) = listen();
    let arguments = format!(
        "s_client -connect 127.0.0.1:{port} -CAfile {} -verify_return_error {options}",
        authority.root()
    );
    let mut peer = Program::openssl(&arguments, more);
    // Its input stays open: s_client ends when the server does.
    peer.stdin().write_all(b"ping\n").unwrap();
    let info = echo_line(server, &listener);
    let (output, said) = peer.finish();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("you said ping\n"), "{said}");
    (info, said)
}

#[test]
fn openssl_agrees_on_version_protocol_and_name() {
    let authority = Authority::new("root");
    let server = ServerTls::builder()
        .identity(authority.issue(&["fallback.test"]).identity())
        .host("*.host.test", authority.issue(&["*.host.test"]).identity())
        .alpn(["h2", "http/1.1"])
        .build()
        .unwrap();
    for (option, version) in [("-tls1_3", Version::Tls13), ("-tls1_2", Version::Tls12)] {
        let options =
            format!("{option} -servername a.host.test -verify_hostname a.host.test -alpn http/1.1,h2");
        let (info, said) = s_client(&server, &authority, &options, &[]);
        assert_eq!(info.version(), version);
        assert_eq!(info.alpn(), Some(&b"h2"[..]));
        assert_eq!(info.server_name(), Some("a.host.test"));
        assert!(said.contains("ALPN protocol: h2"), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
        assert!(said.contains("subject=CN = *.host.test"), "{said}");
    }
    let (info, said) = s_client(&server, &authority, "-noservername -verify_hostname fallback.test", &[]);
    assert_eq!((info.server_name(), info.alpn()), (None, None));
    assert!(said.contains("subject=CN = fallback.test"), "{said}");
}

#[test]
fn openssl_shows_a_client_certificate() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let alice = people.issue(&["alice.test"]);
    let server =
        authority.server(&["host.test"]).client_auth(ClientAuth::Required(people.roots())).build().unwrap();
    for version in ["-tls1_3", "-tls1_2"] {
        let certificate = ["-cert", alice.certificate(), "-key", alice.key()];
        let (info, _) = s_client(&server, &authority, version, &certificate);
        let names = info.peer_certificate().unwrap();
        assert_eq!((names.subject.as_str(), names.issuer.as_str()), ("CN=alice.test", "CN=people"));
    }
    let (listener, port) = listen();
    let connect = format!("s_client -connect 127.0.0.1:{port}");
    let peer = Program::openssl(&connect, &[]);
    let (_, refused) = handshake(&server, &listener);
    assert!(matches!(refused, Err(Error::NoClientCertificate)), "{refused:?}");
    let (_, said) = peer.finish();
    assert!(said.contains("alert certificate required") || said.contains("alert number 116"), "{said}");
}

#[test]
fn openssl_resumes_at_home_and_nowhere_else() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let identity = authority.issue(&["open.test", "closed.test", "asks.test"]).identity();
    let server = ServerTls::builder()
        .host("open.test", identity.clone())
        .host_with_client_auth("closed.test", identity.clone(), ClientAuth::Required(people.roots()))
        .host_with_client_auth("asks.test", identity, ClientAuth::Optional(people.roots()))
        .build()
        .unwrap();
    for version in ["-tls1_3", "-tls1_2"] {
        let session = authority.path("session");
        let first = format!("{version} -servername open.test");
        let (info, said) = s_client(&server, &authority, &first, &["-sess_out", &session]);
        assert!(!info.is_resumed() && said.contains("\nNew, "), "{said}");

        let (info, said) = s_client(&server, &authority, &first, &["-sess_in", &session]);
        assert!(info.is_resumed() && said.contains("\nReused, "), "{said}");

        let other = format!("{version} -servername asks.test");
        let (info, said) = s_client(&server, &authority, &other, &["-sess_in", &session]);
        assert!(!info.is_resumed() && said.contains("\nNew, "), "{said}");
        assert!(said.contains("Acceptable client certificate CA names"), "it was asked for one: {said}");

        let (listener, port) = listen();
        let closed = format!("s_client -connect 127.0.0.1:{port} {version} -servername closed.test");
        let peer = Program::openssl(&closed, &["-sess_in", &session]);
        let (_, refused) = handshake(&server, &listener);
        assert!(matches!(refused, Err(Error::NoClientCertificate)), "{refused:?}");
        drop(peer);
    }
}

#[test]
fn old_versions_of_tls_are_refused() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let modern = authority.server(&["host.test"]).min_version(Version::Tls13).build().unwrap();
    for (server, version) in [(&server, "-tls1"), (&server, "-tls1_1"), (&modern, "-tls1_2")] {
        let (listener, port) = listen();
        let connect = format!("s_client -connect 127.0.0.1:{port} {version} -cipher DEFAULT@SECLEVEL=0");
        let peer = Program::openssl(&connect, &[]);
        let (_, refused) = handshake(server, &listener);
        assert!(matches!(refused, Err(Error::NoCommonVersion)), "{version}: {refused:?}");
        let (output, said) = peer.finish();
        assert!(!output.status.success() && said.contains("alert protocol version"), "{version}: {said}");
    }
}

/// Connects; argument 1 is the port, 2 the root's file. The rest of the script has `tls`.
const PYTHON_CLIENT: &str = "
import socket, ssl, sys, threading
context = ssl.create_default_context(cafile=sys.argv[2])
plain = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
tls = context.wrap_socket(plain, server_hostname='host.test', suppress_ragged_eofs=False)
";

fn python(authority: &Authority, rest: &str) -> (TcpStream, TlsStream<Tcp>, Program) {
    let server = authority.server(&["host.test"]).build().unwrap();
    let (listener, port) = listen();
    let script = format!("{PYTHON_CLIENT}{rest}");
    let peer = Program::python(&script, &[&port.to_string(), &authority.root()]);
    let (socket, stream) = handshake(&server, &listener);
    (socket, stream.unwrap(), peer)
}

#[test]
fn a_mebibyte_goes_both_ways_at_once() {
    let authority = Authority::new("root");
    // It sends back what it gets, with every byte turned over, as it comes.
    let (socket, mut stream, peer) = python(
        &authority,
        "
left = 1 << 20
while left:
    data = tls.recv(65536)
    left -= len(data)
    tls.sendall(bytes(255 - b for b in data))
assert tls.recv(1) == b''
tls.unwrap()
print('in good order')
",
    );
    let data = pattern(1 << 20, 1);
    let back = block_on(&socket, async {
        let back = exchange(&mut stream, &data, data.len()).await.unwrap();
        close(&mut stream).await.unwrap();
        let (rest, end) = read_to_end(&mut stream).await;
        assert_eq!(rest, b"");
        end.unwrap();
        back
    });
    assert!(back.iter().zip(&data).all(|(a, b)| *a == 255 - *b));
    let (_, said) = peer.finish();
    assert!(said.contains("in good order"), "{said}");
}

#[test]
fn a_client_that_just_hangs_up_is_truncated() {
    let authority = Authority::new("root");
    let (socket, mut stream, peer) = python(
        &authority,
        "
tls.sendall(b'half a mess')
plain = socket.socket(fileno=tls.detach())
plain.shutdown(socket.SHUT_RDWR)
",
    );
    let (got, end) = block_on(&socket, read_to_end(&mut stream));
    assert_eq!(got, b"half a mess");
    let error = end.unwrap_err();
    assert!(is_truncated(&error) && error.kind() == io::ErrorKind::UnexpectedEof, "{error:?}");
    peer.finish();
}

#[test]
fn our_close_notify_is_an_end_for_others_and_a_drop_is_not() {
    let authority = Authority::new("root");
    for (in_order, expected) in [(true, "an end"), (false, "cut short")] {
        let (socket, mut stream, peer) = python(
            &authority,
            "
try:
    print('an end' if tls.recv(1) == b'' else 'a byte')
except ssl.SSLEOFError:
    print('cut short')
",
        );
        if in_order {
            block_on(&socket, close(&mut stream)).unwrap();
        }
        drop(stream);
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        let (_, said) = peer.finish();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn plain_http_is_noticed_on_a_real_socket() {
    let authority = Authority::new("root");
    let server = authority.server(&["host.test"]).build().unwrap();
    let (listener, port) = listen();
    let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: host.test\r\n\r\n").unwrap();
    let (_, refused) = handshake(&server, &listener);
    assert!(matches!(refused, Err(Error::PlainHttp)), "{refused:?}");
}
