//! A client and a server of ours, joined by a path with a delay, under virtual time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperman_http2::{Client, ClientEvent, Config, Error, Server, ServerEvent};

use super::{Path, feed, write_once};

pub struct Pair {
    pub client: Client,
    pub server: Server,
    pub now: Instant,
    pub start: Instant,
    /// Of each direction.
    pub delay: Duration,
    to_server: Path,
    to_client: Path,
    pub client_error: Option<Error>,
    pub server_error: Option<Error>,
    /// Octets that the server wrote.
    pub from_server: u64,
    /// Writes that the server made.
    pub writes: u64,
}

impl Pair {
    pub fn new(delay: Duration) -> Self {
        Self::with(delay, Config::client(), Config::server())
    }

    pub fn with(delay: Duration, client: Config, server: Config) -> Self {
        let now = Instant::now();
        Pair {
            client: Client::new(Arc::new(client), now),
            server: Server::new(Arc::new(server), now),
            now,
            start: now,
            delay,
            to_server: Path::default(),
            to_client: Path::default(),
            client_error: None,
            server_error: None,
            from_server: 0,
            writes: 0,
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// Lets both sides act, and time pass, until nothing is under way any more.
    pub fn run(
        &mut self,
        mut on_client: impl FnMut(&mut Client, ClientEvent),
        mut on_server: impl FnMut(&mut Server, ServerEvent),
    ) {
        loop {
            self.turn(&mut on_client, &mut on_server);
            let next = self.to_server.arrival().into_iter().chain(self.to_client.arrival()).min();
            let Some(next) = next else { return };
            self.now = self.now.max(next);
            while let Some(bytes) = self.to_server.receive(self.now) {
                self.server.handle_timeout(self.now);
                feed(&mut self.server, &bytes);
            }
            while let Some(bytes) = self.to_client.receive(self.now) {
                self.client.handle_timeout(self.now);
                feed(&mut self.client, &bytes);
            }
        }
    }

    fn turn(
        &mut self,
        on_client: &mut impl FnMut(&mut Client, ClientEvent),
        on_server: &mut impl FnMut(&mut Server, ServerEvent),
    ) {
        self.client.handle_timeout(self.now);
        loop {
            loop {
                match self.client.next_event() {
                    Ok(Some(event)) => on_client(&mut self.client, event),
                    Ok(None) => break,
                    Err(error) => {
                        self.client_error = Some(error);
                        break;
                    }
                }
            }
            let bytes = write_once(&mut self.client);
            if bytes.is_empty() {
                break;
            }
            self.to_server.send(self.now, self.delay, bytes);
        }
        self.server.handle_timeout(self.now);
        loop {
            loop {
                match self.server.next_event() {
                    Ok(Some(event)) => on_server(&mut self.server, event),
                    Ok(None) => break,
                    Err(error) => {
                        self.server_error = Some(error);
                        break;
                    }
                }
            }
            let bytes = write_once(&mut self.server);
            if bytes.is_empty() {
                break;
            }
            self.from_server += bytes.len() as u64;
            self.writes += 1;
            self.to_client.send(self.now, self.delay, bytes);
        }
    }

    pub fn advance(&mut self, time: Duration) {
        self.now += time;
    }
}
