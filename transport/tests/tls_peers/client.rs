//! Our client, their servers.

use std::net::TcpStream;

use hyperman_transport::tls::{Alert, ClientTls, Error, TlsStream, Version, is_truncated};

use crate::harness::{
    Authority, Pair, Program, Tcp, block_on, close, exchange, pattern, read_line, read_to_end, send,
};

/// OpenSSL's server on a port that the kernel picked; it sends each line back in reverse.
struct Server {
    _program: Program,
    port: u16,
}

impl Server {
    fn openssl(pair: &Pair, options: &str) -> Self {
        let arguments = format!("s_server -accept 127.0.0.1:0 -rev {options}");
        let mut program = Program::openssl(&arguments, &["-cert", pair.certificate(), "-key", pair.key()]);
        let port = program.line("ACCEPT 127.0.0.1:").parse().unwrap();
        Server { _program: program, port }
    }

    fn python(pair: &Pair, serve: &str) -> Self {
        let script = format!(
            "
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
listener = socket.create_server(('127.0.0.1', 0))
print('PORT', listener.getsockname()[1], flush=True)
plain, _ = listener.accept()
tls = context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)
{serve}
"
        );
        let mut program = Program::python(&script, &[pair.certificate(), pair.key()]);
        let port = program.line("PORT ").parse().unwrap();
        Server { _program: program, port }
    }

    fn connect(&self, client: &ClientTls, host: &str) -> (TcpStream, Result<TlsStream<Tcp>, Error>) {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let stream = client.stream(Tcp::new(socket.try_clone().unwrap()), host).unwrap();
        let outcome = block_on(&socket, stream.handshake()).map_err(|failure| failure.error);
        (socket, outcome)
    }

    /// A line there, a line back, an end in good order; the connection afterwards.
    fn say(&self, client: &ClientTls, host: &str) -> TlsStream<Tcp> {
        let (socket, stream) = self.connect(client, host);
        let mut stream = stream.unwrap();
        let line = block_on(&socket, async {
            send(&mut stream, b"stressed\n").await.unwrap();
            let line = read_line(&mut stream).await.unwrap();
            close(&mut stream).await.unwrap();
            line
        });
        assert_eq!(line, "desserts");
        stream
    }
}

#[test]
fn openssl_agrees_on_version_and_protocol() {
    let authority = Authority::new("root");
    let pair = authority.issue(&["host.test", "127.0.0.1"]);
    let client = authority.client().alpn(["h2", "http/1.1"]).build().unwrap();
    for (options, version) in [("-tls1_3", Version::Tls13), ("-tls1_2", Version::Tls12)] {
        let server = Server::openssl(&pair, &format!("{options} -alpn http/1.1"));
        for host in ["host.test", "127.0.0.1"] {
            let stream = server.say(&client, host);
            let info = stream.info().unwrap();
            assert_eq!((info.version(), info.alpn()), (version, Some(&b"http/1.1"[..])));
            assert_eq!(info.peer_certificate().unwrap().subject, "CN=host.test");
        }
    }
}

#[test]
fn sessions_are_resumed_with_openssl() {
    let authority = Authority::new("root");
    let pair = authority.issue(&["host.test"]);
    for options in ["-tls1_3", "-tls1_2"] {
        let client = authority.client().build().unwrap();
        let server = Server::openssl(&pair, options);
        let resumed = [0, 1].map(|_| server.say(&client, "host.test").info().unwrap().is_resumed());
        assert_eq!(resumed, [false, true], "{options}");
    }
}

#[test]
fn openssl_takes_our_client_certificate_and_misses_it() {
    let (authority, people) = (Authority::new("root"), Authority::new("people"));
    let alice = people.issue(&["alice.test"]);
    let pair = authority.issue(&["host.test"]);
    for version in ["-tls1_3", "-tls1_2"] {
        let server = Server::openssl(
            &pair,
            &format!("{version} -Verify 1 -verify_return_error -CAfile {}", people.root()),
        );
        server.say(&authority.client().identity(alice.identity()).build().unwrap(), "host.test");

        let (socket, stream) = server.connect(&authority.client().build().unwrap(), "host.test");
        // In TLS 1.3 the refusal comes after our side of the handshake.
        let error = match stream {
            Err(error) => error,
            Ok(mut stream) => {
                let error = block_on(&socket, read_to_end(&mut stream)).1.unwrap_err();
                Error::from_io(&error).unwrap().clone()
            }
        };
        let expected = if version == "-tls1_3" { Alert::CERTIFICATE_REQUIRED } else { Alert { code: 40 } };
        assert!(matches!(error, Error::PeerAlert(alert) if alert == expected), "{version}: {error:?}");
    }
}

#[test]
fn a_server_that_speaks_old_versions_only_is_refused() {
    let authority = Authority::new("root");
    let pair = authority.issue(&["host.test"]);
    let client = authority.client().build().unwrap();
    let modern = authority.client().min_version(Version::Tls13).build().unwrap();
    for (client, version) in [(&client, "-tls1_1"), (&client, "-tls1"), (&modern, "-tls1_2")] {
        let server = Server::openssl(&pair, &format!("{version} -cipher DEFAULT@SECLEVEL=0"));
        let (_, refused) = server.connect(client, "host.test");
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, Error::PeerAlert(Alert::PROTOCOL_VERSION) | Error::NoCommonVersion),
            "{version}: {refused:?}"
        );
    }
}

#[test]
fn a_certificate_for_another_name_or_from_elsewhere_is_refused() {
    let (authority, other) = (Authority::new("root"), Authority::new("other"));
    let server = Server::openssl(&authority.issue(&["host.test"]), "-tls1_3");
    let (_, refused) = server.connect(&authority.client().build().unwrap(), "127.0.0.1");
    assert!(matches!(refused, Err(Error::WrongName { .. })), "{refused:?}");
    let (_, refused) = server.connect(&other.client().build().unwrap(), "host.test");
    assert!(matches!(refused, Err(Error::UnknownIssuer)), "{refused:?}");
    let careless = other.client().danger_accept_invalid_certificates().build().unwrap();
    server.say(&careless, "anything.test");
}

#[test]
fn a_mebibyte_goes_both_ways_at_once() {
    let authority = Authority::new("root");
    let server = Server::python(
        &authority.issue(&["host.test"]),
        "
left = 1 << 20
while left:
    data = tls.recv(65536)
    left -= len(data)
    tls.sendall(bytes(255 - b for b in data))
tls.unwrap()
",
    );
    let (socket, stream) = server.connect(&authority.client().build().unwrap(), "host.test");
    let mut stream = stream.unwrap();
    let data = pattern(1 << 20, 2);
    let back = block_on(&socket, async {
        let back = exchange(&mut stream, &data, data.len()).await.unwrap();
        let (rest, end) = read_to_end(&mut stream).await;
        assert_eq!(rest, b"");
        end.unwrap();
        close(&mut stream).await.unwrap();
        back
    });
    assert!(back.iter().zip(&data).all(|(a, b)| *a == 255 - *b));
}

#[test]
fn a_server_that_just_hangs_up_is_truncated() {
    let authority = Authority::new("root");
    let server = Server::python(
        &authority.issue(&["host.test"]),
        "
tls.sendall(b'half an ans')
socket.socket(fileno=tls.detach()).shutdown(socket.SHUT_RDWR)
",
    );
    let (socket, stream) = server.connect(&authority.client().build().unwrap(), "host.test");
    let (got, end) = block_on(&socket, read_to_end(&mut stream.unwrap()));
    assert_eq!(got, b"half an ans");
    assert!(is_truncated(&end.unwrap_err()));
}
