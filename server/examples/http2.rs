//! A server to try HTTP/2 with: cleartext and TLS, each beside HTTP/1.1. Prints both addresses.
//!
//! `cargo run -p hyperman --features tls-development --example http2 [-- --read-body]`
//!
//! With `--read-body` an answer waits for the end of its request, otherwise it is given at once. `/size/N` answers with
//! N bytes.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body::Body as _;
use hyperman::tls::{ServerTls, development_certificate};
use hyperman::{Body, Listen, Server, service_fn};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let read_body = std::env::args().any(|argument| argument == "--read-body");
    let certificate = development_certificate(["localhost", "127.0.0.1"])?;
    let tls = ServerTls::builder().identity(certificate.identity()).alpn(["h2", "http/1.1"]).build()?;
    let service = service_fn(move |request| answer(request, read_body));
    let bound = Server::new(service).listen("127.0.0.1:0").listen_tls("127.0.0.1:0", &tls).bind()?;
    for (listen, scheme) in bound.addresses().iter().zip(["http", "https"]) {
        if let Listen::Tcp(address) = listen {
            println!("{scheme}://{address}/");
        }
    }
    Ok(bound.run()?)
}

async fn answer(request: Request<Body>, read_body: bool) -> Result<Response<Body>, Infallible> {
    let size = request.uri().path().strip_prefix("/size/").and_then(|size| size.parse().ok());
    if read_body {
        let mut body = std::pin::pin!(request.into_body());
        while let Some(Ok(_)) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {}
    }
    static LETTERS: [u8; 256] = [b'h'; 256];
    let body = match size {
        Some(size) => Bytes::from(vec![b'h'; size]),
        None => Bytes::from_static(&LETTERS),
    };
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}
