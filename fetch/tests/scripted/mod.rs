//! The scripted server's process, and what Fetch makes of its scripts.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use http::Method;
use hyperman_fetch::Client;

use crate::told::ask;

/// The scripted server.
pub struct Scripts {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Scripts {
    pub fn start() -> Scripts {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted");
        let mut child = Command::new("python3")
            .arg(folder.join("run"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let (commands, answers) =
            (child.stdin.take().expect("piped"), BufReader::new(child.stdout.take().expect("piped")));
        Scripts { child, commands, answers }
    }

    fn command(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").expect("the scripted server runs");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the scripted server answers");
        assert!(!answer.is_empty(), "the scripted server has ended at {command:?}: see its words above");
        answer
    }

    /// Starts a script, over TLS with this certificate if there is one: its port.
    pub fn start_script(&mut self, script: &str, files: &str) -> u16 {
        self.command(&format!("{script} {files}")).trim().parse().expect("a port")
    }

    /// Ends it: what the client sent on each connection, without the frames that come and go as they like.
    pub fn end_script(&mut self) -> Vec<Vec<String>> {
        let record: serde_json::Value = serde_json::from_str(&self.command("")).expect("JSON");
        assert_eq!(record["failure"], serde_json::Value::Null, "the script failed");
        let connections = record["connections"].as_array().expect("a list").iter().map(|connection| {
            let frames = connection.as_array().expect("a list").iter();
            let frames = frames.map(|frame| frame.as_str().expect("text").to_owned());
            let idle = ["SETTINGS", "WINDOWUPDATE", "PING", "DATA"];
            frames.filter(|frame| !idle.iter().any(|kind| frame.starts_with(kind))).collect()
        });
        connections.collect()
    }

    /// Asks a server that plays this script, and once more with GET: what came the first time, and what Fetch sent on each
    /// connection.
    pub fn play(&mut self, script: &str, method: &Method, body: &'static str) -> (String, Vec<Vec<String>>) {
        let port = self.start_script(script, "");
        let url = format!("http://127.0.0.1:{port}/");
        let told = hyperman_loop::block_on(async |handle| {
            let client =
                Client::builder(handle).http2_prior_knowledge().timeout(Duration::from_secs(15)).build();
            let first = ask(&client, method, &url, body).await;
            let second = ask(&client, &Method::GET, &url, "").await;
            assert_eq!(second, "200 ok", "{script}, where the first said {first:?}");
            first
        });
        (told.expect("a loop"), self.end_script())
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
