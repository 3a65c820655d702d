//! gRPC, which takes of HTTP/2 what browsers never do: trailers, streams that go both ways at once and are left half-way,
//! deadlines, pings as a habit. The client is Google's own library; `./test` installs it.
#![allow(clippy::expect_used, clippy::indexing_slicing)] // a test fails where it panics

use std::convert::Infallible;
use std::process::Command;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyperman::{Body, BodyError, Config, Server, service_fn};
use hyperman_tests::native;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Sends each message back as it comes.
async fn echo(request: Request<Body>) -> Result<Response<BoxBody<Bytes, BodyError>>, Infallible> {
    let grpc = Response::builder().header(CONTENT_TYPE, "application/grpc");
    let body = match request.uri().path() {
        "/echo.Echo/Unary" | "/echo.Echo/Stream" => {
            let trailers = HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))]);
            request.into_body().with_trailers(std::future::ready(Some(Ok(trailers)))).boxed()
        }
        "/echo.Echo/Never" => std::future::pending().await,
        _ => {
            // All that there is to say fits into the head.
            let grpc = grpc.header(STATUS, "12").header(MESSAGE, "no such method");
            return Ok(grpc.body(nothing()).expect("an answer"));
        }
    };
    Ok(grpc.body(body).expect("an answer"))
}

fn nothing() -> BoxBody<Bytes, BodyError> {
    Empty::new().map_err(|never: Infallible| match never {}).boxed()
}

#[test]
fn a_grpc_client_is_served() {
    let (ports, _end) = native::start(|| {
        let mut config = Config::default();
        config.limits.body = u64::MAX;
        Server::new(service_fn(echo)).config(config).listen("127.0.0.1:0").bind()
    });
    let address = format!("127.0.0.1:{}", ports[0]);
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/call");
    let output = Command::new(client).arg(address).output().expect("python3 is installed, see ./test");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.lines().last(), Some("all over one connection"));
}
