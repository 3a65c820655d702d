//! The server's cases: a plain peer in the thread of the case, the server on the loop in a thread of its own.

/// Serves `$service` on this loop, in a thread of its own, while `$peers` plays the other side; then ends the server.
macro_rules! with_server {
    ($on:expr, $service:expr, $config:expr, $peers:expr) => {{
        let on: hyperman_tests::carrier::Carrier = $on;
        let (tell, told) = std::sync::mpsc::channel::<(std::net::SocketAddr, hyperman::Shutdown)>();
        let server = std::thread::spawn(move || {
            crate::block_on(|runtime: crate::Rt| async move {
                let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
                let options = hyperman_transport::ListenOptions::default();
                let listener = hyperman_transport::Listener::bind_tcp(runtime.clone(), any, &options)?;
                let address = listener.local_addr()?.expect("a TCP address");
                let service = ($service)(runtime.clone());
                let serving = hyperman::serve_all(runtime, vec![on.endpoint(listener)], service, $config);
                let _ = tell.send((address, serving.shutdown_handle()));
                serving.await
            })
        });
        let (address, shutdown) = told.recv().expect("the server starts");
        // Ends the server even when an assertion fails, so that the test fails instead of hanging.
        let _end = hyperman_tests::EndOnDrop(shutdown.clone());
        #[allow(clippy::redundant_closure_call)]
        ($peers)(address, &shutdown);
        shutdown.cut();
        server.join().expect("the loop's thread").expect("the server ends well");
    }};
}

mod again;
mod bodies;
mod cut;
mod disconnects;
mod drain;
mod frames;
mod h2c;
mod messages;
mod numbers;
mod odd;
mod syntax;
mod timers;
mod upgrades;

use std::convert::Infallible;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyperman::Body;
use hyperman_tests::matrix::Case;

pub const CASES: &[&[Case]] = &[
    messages::CASES,
    again::CASES,
    syntax::CASES,
    bodies::CASES,
    cut::CASES,
    disconnects::CASES,
    timers::CASES,
    drain::CASES,
    upgrades::CASES,
    numbers::CASES,
    odd::CASES,
    frames::CASES,
    h2c::CASES,
];

type Text = Full<Bytes>;

fn text(body: impl Into<Bytes>) -> Result<Response<Text>, Infallible> {
    Ok(Response::new(Full::new(body.into())))
}

/// Answers with the method and the path.
async fn say_target(request: Request<Body>) -> Result<Response<Text>, Infallible> {
    text(format!("{} {}", request.method(), request.uri().path()))
}

/// Answers with the request's body, collected.
async fn echo(request: Request<Body>) -> Result<Response<Text>, Infallible> {
    match request.into_body().collect().await {
        Ok(body) => text(body.to_bytes()),
        Err(error) => text(error.to_string()),
    }
}

/// A GET request in bytes.
fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

/// Tells when it is dropped.
struct Told(mpsc::Sender<&'static str>, &'static str);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// How long is waited for what happens at once, 10 s: the machine may be busy.
const SOON: Duration = Duration::from_secs(10);
