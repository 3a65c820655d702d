//! A folder to serve, and requests that are put to the service without a socket.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Method, Request, Response, Uri};
use http_body::Body;
use hyperman_cli::body::FileBody;
use hyperman_cli::root::{Root, Symlinks};
use hyperman_cli::service::{FileOptions, FileService};
use tempfile::TempDir;
use tower_service::Service;

/// A served folder `site` beside a file that must never be served.
pub struct Site {
    pub whole: TempDir,
}

impl Site {
    pub fn new() -> Self {
        let whole = tempfile::tempdir().unwrap();
        fs::create_dir(whole.path().join("site")).unwrap();
        fs::write(whole.path().join("secret.txt"), "SECRET").unwrap();
        Site { whole }
    }

    pub fn root(&self) -> std::path::PathBuf {
        self.whole.path().join("site")
    }

    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn service(&self, options: FileOptions) -> FileService {
        FileService::new(Root::open(&self.root(), Symlinks::Confined).unwrap(), options)
    }

    pub fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[])
    }

    pub fn ask(&self, method: Method, target: &str, fields: &[(&str, &str)]) -> Answer {
        ask(&mut self.service(FileOptions::default()), method, target, fields)
    }
}

pub struct Answer {
    pub head: Response<()>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.head.status().as_u16()
    }

    pub fn field(&self, name: impl AsHeaderName) -> &str {
        self.head.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub trait AsHeaderName: http::header::AsHeaderName {}
impl<T: http::header::AsHeaderName> AsHeaderName for T {}

pub fn ask(service: &mut FileService, method: Method, target: &str, fields: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(target.parse::<Uri>().unwrap());
    for &(name, value) in fields {
        request = request.header(name, value);
    }
    let mut future = service.call(request.body(()).unwrap());
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(answer)) = Future::poll(Pin::new(&mut future), &mut cx) else { panic!("not ready") };
    let (head, mut body) = answer.into_parts();
    let announced = body.size_hint().exact().unwrap();
    let body = read_body(&mut body);
    assert_eq!(announced, body.len() as u64);
    Answer { head: Response::from_parts(head, ()), body }
}

fn read_body(body: &mut FileBody) -> Vec<u8> {
    let mut all = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(frame)) = Pin::new(&mut *body).poll_frame(&mut cx) {
        all.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    assert!(body.is_end_stream());
    all
}
