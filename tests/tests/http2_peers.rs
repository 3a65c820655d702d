//! HTTP/2 and TLS of the server against programs that are not ours: curl, nghttp, h2load.
#![allow(clippy::expect_used)] // a test fails where it panics

use std::convert::Infallible;
use std::process::Command;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyperman::tls::{ServerTls, development_certificate};
use hyperman::{Body, Server, service_fn};
use hyperman_tests::{EndOnDrop, native};

/// What the handlers say: the version of HTTP, the method and the target; `POST` gets its body back.
async fn answer(request: Request<Body>) -> Result<Response<Full<Bytes>>, Infallible> {
    let version = match request.version() {
        Version::HTTP_2 => "2",
        _ => "1",
    };
    let said = format!("{version} {} {}", request.method(), request.uri().path());
    let size = request.uri().path().strip_prefix("/size/").and_then(|size| size.parse().ok());
    let body = match (request.method().as_str(), size) {
        ("POST", _) => request.into_body().collect().await.expect("a whole body").to_bytes(),
        (_, Some(size)) => Bytes::from(vec![b'x'; size]),
        _ => Bytes::from(said),
    };
    Ok(Response::new(Full::new(body)))
}

/// The ports of a server for cleartext and for TLS, which ends with what is returned beside them.
fn start() -> (u16, u16, EndOnDrop) {
    let certificate = development_certificate(["localhost"]).expect("a certificate");
    let tls =
        ServerTls::builder().identity(certificate.identity()).alpn(["h2", "http/1.1"]).build().expect("TLS");
    let (ports, end) = native::start(move || {
        Server::new(service_fn(answer)).listen("127.0.0.1:0").listen_tls("127.0.0.1:0", &tls).bind()
    });
    let [plain, tls] = ports[..] else { panic!("two ports") };
    (plain, tls, end)
}

/// What a program prints; it must end well.
fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

#[test]
fn curl_speaks_both_versions_on_both_ports() {
    let (plain, tls, _end) = start();
    let (plain, tls) = (format!("http://127.0.0.1:{plain}/a"), format!("https://localhost:{tls}/a"));
    assert_eq!(run("curl", &["-sS", &plain]), "1 GET /a");
    assert_eq!(run("curl", &["-sS", "--http2-prior-knowledge", &plain]), "2 GET /a");
    assert_eq!(run("curl", &["-sS", "-k", &tls]), "2 GET /a");
    assert_eq!(run("curl", &["-sS", "-k", "--http1.1", &tls]), "1 GET /a");
    assert_eq!(
        run("curl", &["-sS", "-k", "-I", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", &tls]),
        "2 200"
    );
}

#[test]
fn an_upgrade_to_h2c_is_taken_and_its_request_answered_by_http_2() {
    let (plain, _, _end) = start();
    assert_eq!(run("curl", &["-sS", "--http2", &format!("http://127.0.0.1:{plain}/up")]), "2 GET /up");
    let two = format!("http://127.0.0.1:{plain}/two");
    let one = format!("http://127.0.0.1:{plain}/one");
    assert_eq!(run("curl", &["-sS", "--http2", &one, &two]), "2 GET /one2 GET /two");
}

#[test]
fn large_bodies_pass_the_windows_both_ways() {
    let (plain, tls, _end) = start();
    let folder = tempfile::tempdir().expect("a folder");
    let sent: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    let (upload, download) = (folder.path().join("up"), folder.path().join("down"));
    std::fs::write(&upload, &sent).expect("write");
    for (version, url) in [
        ("--http2-prior-knowledge", format!("http://127.0.0.1:{plain}/echo")),
        ("--http2", format!("https://127.0.0.1:{tls}/echo")),
        ("--http1.1", format!("https://127.0.0.1:{tls}/echo")),
    ] {
        let data = format!("@{}", upload.display());
        let out = download.to_string_lossy();
        run("curl", &["-sSk", version, "--data-binary", &data, "-o", &out, &url]);
        assert!(std::fs::read(&download).expect("read") == sent, "{version} {url}");
    }
    let url = format!("http://127.0.0.1:{plain}/size/20000000");
    let size =
        run("curl", &["-sS", "--http2-prior-knowledge", "-o", "/dev/null", "-w", "%{size_download}", &url]);
    assert_eq!(size, "20000000");
}

#[test]
fn nghttp_multiplexes() {
    let (plain, tls, _end) = start();
    for base in [format!("http://127.0.0.1:{plain}"), format!("https://127.0.0.1:{tls}")] {
        let urls: Vec<String> = (0..20).map(|number| format!("{base}/size/{}", number * 1000)).collect();
        let mut arguments = vec!["-n", "-s", "-y"];
        arguments.extend(urls.iter().map(String::as_str));
        let said = run("nghttp", &arguments);
        assert_eq!(said.lines().filter(|line| line.contains(" 200 ")).count(), 20, "{said}");
    }
}

#[test]
fn h2load_gets_every_answer() {
    let (plain, tls, _end) = start();
    for url in [format!("http://127.0.0.1:{plain}/size/256"), format!("https://127.0.0.1:{tls}/size/256")] {
        let said = run("h2load", &["-c10", "-m100", "-n20000", &url]);
        assert!(said.contains("20000 succeeded, 0 failed, 0 errored, 0 timeout"), "{said}");
    }
}

#[test]
fn what_is_neither_preface_nor_request_gets_no_words() {
    use std::io::{Read, Write};
    let (plain, _, _end) = start();
    let said = |text: &str| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", plain)).expect("connect");
        stream.write_all(text.as_bytes()).expect("write");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the connection closes");
        answer
    };
    assert_eq!(said("INVALID CONNECTION PREFACE\r\n\r\n"), "");
    assert!(said("GET / PREFACE\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // Who has spoken HTTP/1 before is answered in it.
    let answers = said("GET / HTTP/1.1\r\nHost: a\r\n\r\nINVALID CONNECTION PREFACE\r\n\r\n");
    assert!(answers.starts_with("HTTP/1.1 200 ") && answers.contains("HTTP/1.1 400 "), "{answers}");
}

#[test]
fn plain_http_on_the_port_for_https_is_told_so() {
    let (_, tls, _end) = start();
    let code =
        run("curl", &["-sS", "-o", "/dev/null", "-w", "%{http_code}", &format!("http://127.0.0.1:{tls}/")]);
    assert_eq!(code, "400");
}

#[test]
fn s81_a_request_for_a_host_with_its_own_client_check_is_misdirected() {
    use hyperman::tls::{Authorities, ClientAuth};

    let made = development_certificate(["localhost", "private.test"]).expect("a certificate");
    let authorities = Authorities::from_pem(&made.certificate_pem);
    let tls = ServerTls::builder()
        .identity(made.identity())
        .host_with_client_auth("private.test", made.identity(), ClientAuth::Required(authorities))
        .alpn(["h2", "http/1.1"])
        .build()
        .expect("TLS");
    let (ports, _end) =
        native::start(move || Server::new(service_fn(answer)).listen_tls("127.0.0.1:0", &tls).bind());
    let port = ports[0];
    let url = format!("https://localhost:{port}/");
    let host = format!("Host: private.test:{port}");
    for version in ["--http1.1", "--http2"] {
        let status = |more: &[&str]| {
            let usual = ["-sSk", version, "-o", "/dev/null", "-w", "%{http_code}"];
            run("curl", &[&usual, more, &[url.as_str()]].concat())
        };
        assert_eq!(status(&[]), "200", "{version}");
        assert_eq!(status(&["-H", &host]), "421", "{version}");
        // The second one has a head that is known already.
        assert_eq!(status(&["-H", &host, &url, "-o", "/dev/null"]), "421421", "{version}");
    }
}
