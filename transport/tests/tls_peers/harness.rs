//! Sockets that are waited for with `poll(2)`, programs that end with their test, and files with certificates.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use hyperman_transport::ByteStream;
use hyperman_transport::tls::{
    Authorities, ClientTls, ClientTlsBuilder, Identity, ServerTls, ServerTlsBuilder,
};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a test waits for a peer before it fails. Nothing waits for this long when all is well.
const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

thread_local! {
    /// What the last poll of the future waits for.
    static WAITS: Cell<PollFlags> = const { Cell::new(PollFlags::empty()) };
}

/// A non-blocking socket.
#[derive(Debug)]
pub struct Tcp(TcpStream);

impl Tcp {
    pub fn new(socket: TcpStream) -> Self {
        socket.set_nonblocking(true).unwrap();
        Tcp(socket)
    }

    fn wait<T>(outcome: io::Result<T>, flags: PollFlags) -> Poll<io::Result<T>> {
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                WAITS.set(WAITS.get() | flags);
                Poll::Pending
            }
            other => Poll::Ready(other),
        }
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl ByteStream for Tcp {
    fn poll_recv(&mut self, _cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut storage = vec![0; buf.capacity() - buf.len()];
        let read = Self::wait(self.0.read(&mut storage), PollFlags::IN);
        if let Poll::Ready(Ok(length)) = read {
            buf.extend_from_slice(&storage[..length]);
        }
        read
    }

    fn poll_send(&mut self, _cx: &mut Context<'_>, data: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Self::wait(self.0.write_vectored(data), PollFlags::OUT)
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close_write(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.shutdown(Shutdown::Write) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

/// Runs a future that waits for nothing but `socket`.
pub fn block_on<F: Future>(socket: &TcpStream, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        WAITS.set(PollFlags::empty());
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        let flags = WAITS.get();
        // A stream that lets others have their turn has woken itself and waits for nothing.
        if !flags.is_empty() {
            let ready = poll(&mut [PollFd::new(socket, flags)], Some(&PATIENCE)).unwrap();
            assert!(ready > 0, "the peer is silent, and we wait for {flags:?}");
        }
    }
}

/// Sends `out` and receives `length` bytes, both at once.
pub async fn exchange<S: ByteStream>(stream: &mut S, out: &[u8], length: usize) -> io::Result<Vec<u8>> {
    let mut sent = 0;
    let mut received = Vec::new();
    poll_fn(|cx| {
        loop {
            let mut moved = false;
            if sent < out.len() {
                if let Poll::Ready(taken) = stream.poll_send(cx, &[IoSlice::new(&out[sent..])])? {
                    sent += taken;
                    moved = true;
                }
            } else if stream.poll_flush(cx)?.is_ready() && received.len() == length {
                return Poll::Ready(Ok(()));
            }
            if received.len() < length {
                let mut buf = BytesMut::with_capacity(16 * 1024);
                if let Poll::Ready(got) = stream.poll_recv(cx, &mut buf)? {
                    if got == 0 {
                        return Poll::Ready(Err(io::Error::other("an end too early")));
                    }
                    moved = true;
                    received.extend_from_slice(&buf);
                }
            }
            if !moved {
                return Poll::Pending;
            }
        }
    })
    .await?;
    Ok(received)
}

/// Sends and flushes.
pub async fn send<S: ByteStream>(stream: &mut S, data: &[u8]) -> io::Result<()> {
    exchange(stream, data, 0).await.map(drop)
}

/// Receives up to the end.
pub async fn read_to_end<S: ByteStream>(stream: &mut S) -> (Vec<u8>, io::Result<()>) {
    let mut all = BytesMut::new();
    loop {
        all.reserve(4096);
        match poll_fn(|cx| stream.poll_recv(cx, &mut all)).await {
            Ok(0) => return (all.to_vec(), Ok(())),
            Ok(_) => {}
            Err(error) => return (all.to_vec(), Err(error)),
        }
    }
}

/// Receives up to the end of a line.
pub async fn read_line<S: ByteStream>(stream: &mut S) -> io::Result<String> {
    let mut all = BytesMut::new();
    while !all.contains(&b'\n') {
        all.reserve(4096);
        if poll_fn(|cx| stream.poll_recv(cx, &mut all)).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(String::from_utf8_lossy(&all).trim_end().to_owned())
}

/// Ends our direction.
pub async fn close<S: ByteStream>(stream: &mut S) -> io::Result<()> {
    poll_fn(|cx| stream.poll_close_write(cx)).await
}

/// Bytes that differ from place to place.
pub fn pattern(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

/// A listening socket on a port that the kernel picked.
pub fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Accepts one connection, or fails the test.
pub fn accept(listener: &TcpListener) -> TcpStream {
    let ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&PATIENCE)).unwrap();
    assert!(ready > 0, "nobody connects");
    listener.accept().unwrap().0
}

/// A program that is killed when its test ends early.
pub struct Program(Option<Child>);

impl Program {
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        Program(Some(child))
    }

    pub fn openssl(arguments: &str, more: &[&str]) -> Self {
        let all: Vec<&str> = arguments.split_whitespace().chain(more.iter().copied()).collect();
        Self::start("openssl", &all)
    }

    pub fn python(script: &str, arguments: &[&str]) -> Self {
        let all: Vec<&str> = ["-c", script].into_iter().chain(arguments.iter().copied()).collect();
        Self::start("python3", &all)
    }

    pub fn stdin(&mut self) -> &mut ChildStdin {
        self.0.as_mut().unwrap().stdin.as_mut().unwrap()
    }

    /// The first line of its output that begins with `prefix`, without it.
    pub fn line(&mut self, prefix: &str) -> String {
        let stdout = self.0.as_mut().unwrap().stdout.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "it ended without {prefix:?}");
            if byte[0] != b'\n' {
                line.push(byte[0]);
                continue;
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            if let Some(rest) = text.strip_prefix(prefix) {
                return rest.to_owned();
            }
            line.clear();
        }
    }

    /// Ends its input and waits for its end; both of its outputs.
    pub fn finish(mut self) -> (Output, String) {
        let output = self.0.take().unwrap().wait_with_output().unwrap();
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        (output, said)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An authority and a folder for its files.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key as files.
pub struct Pair {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Pair {
    pub fn certificate(&self) -> &str {
        self.certificate.to_str().unwrap()
    }

    pub fn key(&self) -> &str {
        self.key.to_str().unwrap()
    }

    pub fn identity(&self) -> Identity {
        Identity::from_files(&self.certificate, &self.key)
    }
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("root.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
        Authority { folder, issuer: Issuer::new(parameters, key) }
    }

    /// A path in the authority's folder.
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn root(&self) -> String {
        self.path("root.pem")
    }

    pub fn roots(&self) -> Authorities {
        Authorities::from_file(self.root())
    }

    pub fn issue(&self, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let file = names[0].replace('*', "any");
        let mut parameters = CertificateParams::new(names.clone()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, names[0].clone());
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap().pem();
        let pair = Pair {
            certificate: self.path(&format!("{file}.pem")).into(),
            key: self.path(&format!("{file}.key")).into(),
        };
        std::fs::write(&pair.certificate, certificate).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }

    pub fn server(&self, names: &[&str]) -> ServerTlsBuilder {
        ServerTls::builder().identity(self.issue(names).identity())
    }

    pub fn client(&self) -> ClientTlsBuilder {
        ClientTls::builder().only_authorities(self.roots())
    }
}
