//! A plain async function as a service.

use std::future::Future;
use std::task::{Context, Poll};

use http::Request;
use tower_service::Service;

use crate::body::Body;

/// Makes a service out of a function from a request to a future of an answer.
///
/// ```
/// use http::{Request, Response};
/// use hyperman::{service_fn, Body};
///
/// let service = service_fn(|request: Request<Body>| async move {
///     Ok::<_, std::convert::Infallible>(Response::new(Body::from(request.uri().path().to_owned())))
/// });
/// # fn is_service<S: tower_service::Service<Request<Body>>>(_: S) {}
/// # is_service(service);
/// ```
pub fn service_fn<F>(function: F) -> ServiceFn<F> {
    ServiceFn { function }
}

/// See [`service_fn`].
#[derive(Clone, Copy, Debug)]
pub struct ServiceFn<F> {
    function: F,
}

impl<F, Fut, A, E> Service<Request<Body>> for ServiceFn<F>
where
    F: FnMut(Request<Body>) -> Fut,
    Fut: Future<Output = Result<A, E>>,
{
    type Response = A;
    type Error = E;
    type Future = Fut;

    #[inline]
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Request<Body>) -> Fut {
        (self.function)(request)
    }
}
