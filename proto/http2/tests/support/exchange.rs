//! Requests, answers, and what a client makes of them.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use hyperman_http2::{BodyLength, BodySize, Client, ClientEvent, Server, StreamId};

pub const TRIP: Duration = Duration::from_millis(20);

pub fn uri(path: &str) -> Uri {
    format!("https://example.com{path}").parse().unwrap()
}

pub fn get(client: &mut Client, path: &str) -> StreamId {
    client.open(&Method::GET, &uri(path), &HeaderMap::new(), BodySize::Known(0)).unwrap()
}

pub fn respond(server: &mut Server, stream: StreamId, body: impl Into<Bytes>) {
    let body = body.into();
    server.send_head(stream, StatusCode::OK, &HeaderMap::new(), BodySize::Known(body.len() as u64)).unwrap();
    server.send_data(stream, body).unwrap();
    server.end(stream).unwrap();
    server.finished(stream);
}

/// What a client has received of its responses.
#[derive(Default)]
pub struct Received {
    pub heads: HashMap<StreamId, http::Response<()>>,
    pub bodies: HashMap<StreamId, usize>,
    pub log: Vec<String>,
}

impl Received {
    pub fn take(&mut self, client: &mut Client, event: ClientEvent) {
        match event {
            ClientEvent::Response { stream, response, body } => {
                self.log.push(format!("{stream} {} {body:?}", response.status().as_u16()));
                self.heads.insert(stream, response);
                if body == BodyLength::Empty {
                    client.finished(stream);
                }
            }
            ClientEvent::Data { stream, data } => {
                *self.bodies.entry(stream).or_default() += data.len();
                client.release(stream, data.len());
            }
            ClientEvent::End { stream } => {
                self.log.push(format!("{stream} end"));
                client.finished(stream);
            }
            ClientEvent::Interim { stream, response } => {
                self.log.push(format!("{stream} {}", response.status().as_u16()));
            }
            ClientEvent::Trailers { stream, trailers } => self.log.push(format!("{stream} {trailers:?}")),
            ClientEvent::Reset { stream, error } => {
                self.log.push(format!("{stream} {error}"));
                client.finished(stream);
            }
            ClientEvent::GoAway { reason, last } => self.log.push(format!("goaway {last} {reason}")),
            ClientEvent::Settings | ClientEvent::Capacity { .. } => {}
        }
    }
}
