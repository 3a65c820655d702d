//! Servers that others wrote, each started on a free port, over TLS or in clear, for as long as a test needs it.

#![allow(dead_code, clippy::expect_used, reason = "a test fails by panicking, and uses a part of this")]

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use hyperman_transport::tls::{DevelopmentCertificate, development_certificate};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tempfile::TempDir;

/// What `/large` is long, in bytes: more than any window at its start.
pub const LARGE: usize = 8 << 20;

/// A server, and the folder that it serves: `small`, `large` and `empty`.
pub struct Server {
    child: Child,
    pub port: u16,
    pub folder: TempDir,
    /// With which it proves to be `localhost`, where it speaks TLS.
    pub certificate: Option<DevelopmentCertificate>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://localhost:{}/{path}", self.port)
    }

    /// The file with the certificate, for those who are told whom to trust.
    pub fn certificate_file(&self) -> String {
        self.folder.path().join("certificate.pem").to_str().expect("text").to_owned()
    }
}

/// What a server is started with.
struct Place {
    folder: TempDir,
    certificate: Option<DevelopmentCertificate>,
}

impl Place {
    fn new(tls: bool) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, content: &[u8]| {
            std::fs::write(folder.path().join(name), content).expect("written");
        };
        write("small", b"small\n");
        write("large", &vec![b'n'; LARGE]);
        write("empty", b"");
        let certificate = tls.then(|| development_certificate(["localhost"]).expect("a certificate"));
        if let Some(made) = &certificate {
            write("certificate.pem", made.certificate_pem.as_bytes());
            write("key.pem", made.key_pem.as_bytes());
        }
        Place { folder, certificate }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }

    /// Waits until the server takes connections.
    fn serve(self, mut child: Child, port: u16) -> Server {
        let Place { folder, certificate } = self;
        for _ in 0..800 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Server { child, port, folder, certificate };
            }
            assert!(child.try_wait().expect("a child").is_none(), "the server has ended");
            thread::sleep(Duration::from_millis(25));
        }
        let _ = child.kill();
        panic!("the server takes no connections");
    }
}

/// A port that nobody has. It is picked without listening: a child that another test starts meanwhile holds our sockets
/// until it has become its program, and would seem to be a server that takes connections.
fn free_port() -> u16 {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let socket = socket.expect("a socket");
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true).expect("an option");
    rustix::net::bind(&socket, &any).expect("a port");
    SocketAddr::try_from(rustix::net::getsockname(&socket).expect("an address"))
        .expect("of the Internet")
        .port()
}

/// nghttp2's own server.
pub fn nghttpd(tls: bool) -> Server {
    let (place, port) = (Place::new(tls), free_port());
    let mut command = Command::new("nghttpd");
    command.args(["-a", "127.0.0.1", "--echo-upload", "--trailer=sum: 42", "-d"]).arg(place.folder.path());
    if !tls {
        command.arg("--no-tls");
    }
    command.arg(port.to_string());
    if tls {
        command.args([place.path("key.pem"), place.path("certificate.pem")]);
    }
    let child = command.stdout(Stdio::null()).spawn().expect("nghttpd, of Debian's nghttp2-server");
    place.serve(child, port)
}

/// nginx, which speaks HTTP/2 by ALPN over TLS, and in clear to who begins with it. `upload` throws a body away.
pub fn nginx(tls: bool) -> Server {
    let (place, port) = (Place::new(tls), free_port());
    let root = place.folder.path().display();
    let listen = if tls {
        format!("ssl http2; ssl_certificate {root}/certificate.pem; ssl_certificate_key {root}/key.pem")
    } else {
        "http2".to_owned()
    };
    let config = format!(
        "daemon off; master_process off; pid {root}/pid; error_log {root}/error.log; events {{}}
         http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}; fastcgi_temp_path {root};
           uwsgi_temp_path {root}; scgi_temp_path {root}; client_max_body_size 64m;
           http2_max_concurrent_streams 32;
           upstream stub {{ server unix:{root}/stub; }}
           server {{ listen unix:{root}/stub; location / {{ return 200 \"taken\\n\"; }} }}
           server {{ listen 127.0.0.1:{port} {listen}; root {root};
             add_header set-cookie a=1; add_header set-cookie b=2;
             location /moved {{ return 301 /small; }}
             location /upload {{ proxy_pass http://stub; }} }} }}"
    );
    let file = place.path("nginx.conf");
    std::fs::write(&file, config).expect("written");
    let child = Command::new("nginx")
        .arg("-c")
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .expect("nginx, of Debian's nginx-light");
    place.serve(child, port)
}

/// node's `http2` module with a small program: see `node.mjs`.
pub fn node(tls: bool) -> Server {
    let place = Place::new(tls);
    let program = place.path("node.mjs");
    std::fs::write(&program, include_str!("node.mjs")).expect("written");
    let mut command = Command::new("node");
    command.arg(program);
    if tls {
        command.args([place.path("key.pem"), place.path("certificate.pem")]);
    }
    let mut child = command.stdout(Stdio::piped()).spawn().expect("node, of Debian's nodejs");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let port = line.trim().parse().expect("a port");
    place.serve(child, port)
}
