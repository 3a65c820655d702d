//! What each program of ours is given, as the peers are: a port on the command line, and the body to answer with.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;

use http::{Request, Response};
use hyperman::Body;

/// The answer's body: 256 bytes.
pub const BODY: &str = match std::str::from_utf8(&[b'x'; 256]) {
    Ok(body) => body,
    Err(_) => panic!("letters are UTF-8"),
};

/// The address to listen on or to connect to, 127.0.0.1 with the port that the first argument gives.
pub fn address() -> SocketAddr {
    let port =
        std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("the first argument is a port");
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// How many requests a client is to make, the second argument.
pub fn requests() -> usize {
    std::env::args().nth(2).and_then(|count| count.parse().ok()).expect("the second argument is a count")
}

/// The handler of every server here.
pub fn answer(_: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    ready(Ok(Response::new(Body::from(BODY))))
}
