//! The program, started on a real folder.
#![allow(dead_code, reason = "not every test stops it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program, running. Ends with it.
pub struct Program {
    pub child: Child,
    pub url: String,
    /// What it said up to the first empty line after its addresses.
    pub started: String,
    pub messages: BufReader<std::process::ChildStderr>,
}

impl Program {
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        Program::of(command(folder, arguments))
    }

    pub fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut started = String::new();
        while !started.contains("Ctrl-C") {
            if messages.read_line(&mut started).unwrap() == 0 {
                panic!("the program ended at once: {started}");
            }
        }
        let url = started.lines().find_map(|line| line.trim().strip_prefix("http://")).map(|line| {
            let address = line.split('/').next().unwrap();
            format!("http://{address}")
        });
        Program { child, url: url.unwrap_or_default(), started, messages }
    }

    /// Reads what it says until a line holds `part`; gives that line.
    pub fn hear(&mut self, part: &str) -> String {
        let mut line = String::new();
        while self.messages.read_line(&mut line).unwrap() > 0 {
            if line.contains(part) {
                return line;
            }
            line.clear();
        }
        panic!("it ended without a word of {part:?}");
    }

    pub fn address(&self) -> SocketAddr {
        self.url.strip_prefix("http://").unwrap().parse().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, ends its direction, and reads until the server ends its own.
    pub fn raw(&self, bytes: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end, and gives what it wrote to its standard output.
    pub fn stop(mut self) -> (ExitStatus, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    pub fn wait(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut output = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        (status, output)
    }

    pub fn curl(&self, path: &str, arguments: &[&str]) -> String {
        curl(&format!("{}{path}", self.url), arguments)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut rest = String::new();
        let _ = self.messages.read_to_string(&mut rest);
        if std::thread::panicking() {
            eprintln!("the program's messages: {rest}");
        }
    }
}

pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperman"));
    command.arg("serve").arg(folder).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn serve(folder: &TempDir) -> Program {
    Program::start(folder.path(), &["--listen", "127.0.0.1:0"])
}

pub fn curl(url: &str, arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-m", "30"]).args(arguments).arg(url).output().unwrap();
    assert!(output.status.success(), "curl {arguments:?} {url}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), "<h1>Hello</h1>\n").unwrap();
    fs::write(folder.path().join("alphabet.txt"), "abcdefghijklmnopqrstuvwxyz").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/page.html"), "sub page").unwrap();
    folder
}

/// Bytes in which no two places look alike, so that a wrong place shows.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length.div_ceil(8) as u64)
        .flat_map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(length)
        .collect()
}
