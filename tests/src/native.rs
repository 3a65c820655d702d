//! A server on our own loop, in a thread of its own, for peers that are programs.

use std::io;
use std::sync::mpsc;
use std::thread;

use http::{Request, Response};
use hyperman::{Body, Bound, Listen};
use tower_service::Service;

use crate::EndOnDrop;

/// Runs the server that `bind` makes: its ports, in the order in which it listens, and what ends it.
///
/// # Panics
/// When it cannot be had.
pub fn start<S, B>(bind: impl FnOnce() -> io::Result<Bound<S>> + Send + 'static) -> (Vec<u16>, EndOnDrop)
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + 'static,
    S::Error: std::fmt::Display,
    B: http_body::Body + 'static,
    B::Error: std::fmt::Display,
{
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let bound = bind().expect("bind");
        let port = |listen: &Listen| match listen {
            Listen::Tcp(address) => Some(address.port()),
            Listen::Unix(_) => None,
        };
        let ports = bound.addresses().iter().filter_map(port).collect();
        let arrange = |shutdown| {
            let _ = tell.send((ports, shutdown));
            Ok(())
        };
        bound.run_with(arrange).expect("serve");
    });
    let (ports, shutdown) = told.recv().expect("the server starts");
    (ports, EndOnDrop(shutdown))
}
