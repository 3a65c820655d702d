//! What the listeners for cleartext answer beside those for TLS: the same place by `https`.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::header::{HOST, LOCATION};
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode};
use hyperman::Body;
use tower_service::Service;

use crate::body::FileBody;
use crate::service::FileService;

/// Serves files over TLS and redirects what comes on cleartext there.
#[derive(Clone, Debug)]
pub struct ToHttps {
    files: FileService,
    port: Arc<OnceLock<u16>>,
}

impl ToHttps {
    /// Redirects cleartext to the port that `port` holds once it is known; as long as it holds none, every request is
    /// served.
    pub fn new(files: FileService, port: Arc<OnceLock<u16>>) -> Self {
        ToHttps { files, port }
    }
}

impl Service<Request<Body>> for ToHttps {
    type Response = Response<FileBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<FileBody>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let encrypted = request.body().connection().is_some_and(|connection| connection.is_encrypted());
        match self.port.get() {
            Some(&port) if !encrypted => ready(Ok(redirect(&request, port))),
            _ => self.files.call(request),
        }
    }
}

/// 308 keeps the method and the body (RFC 9110 §15.4.9). Without a host there is no place to point to.
fn redirect<B>(request: &Request<B>, port: u16) -> Response<FileBody> {
    let mut response = Response::new(FileBody::empty());
    match location(request, port) {
        Some(location) => {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(LOCATION, location);
        }
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

fn location<B>(request: &Request<B>, port: u16) -> Option<HeaderValue> {
    let named = request.headers().get(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    let authority = request.uri().authority().cloned().or(named)?;
    let host = authority.host();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let target = if target.starts_with('/') { target } else { "/" };
    let location = match port {
        443 => format!("https://{host}{target}"),
        port => format!("https://{host}:{port}{target}"),
    };
    HeaderValue::from_str(&location).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_same_by_https() {
        let at = |host: &str, target: &str, port| {
            let request = Request::get(target).header(HOST, host).body(()).unwrap();
            location(&request, port).map(|location| location.to_str().unwrap().to_owned())
        };
        assert_eq!(at("a.test:8080", "/x?y", 443).as_deref(), Some("https://a.test/x?y"));
        assert_eq!(at("[::1]:80", "//evil/..", 8443).as_deref(), Some("https://[::1]:8443//evil/.."));
        assert_eq!(at("", "/", 443), None);
    }
}
