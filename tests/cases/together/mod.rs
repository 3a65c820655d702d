//! Fetch and the server on one loop.

/// Serves `$service` on the loop of the case itself. Gives the beginning of its URLs, the handle that ends it, and what
/// tells that it has ended.
macro_rules! serve_here {
    ($on:expr, $runtime:expr, $service:expr, $config:expr) => {{
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let options = hyperman_transport::ListenOptions::default();
        let listener =
            hyperman_transport::Listener::bind_tcp($runtime.clone(), any, &options).expect("a port");
        let port = listener.local_addr().expect("an address").expect("a TCP address").port();
        let serving = hyperman::serve_all($runtime.clone(), vec![$on.endpoint(listener)], $service, $config);
        let shutdown = serving.shutdown_handle();
        let (ended, end) = smol::channel::bounded::<()>(1);
        hyperman_transport::Spawn::spawn(&$runtime, async move {
            serving.await.expect("the server ends well");
            let _ = ended.send(()).await;
        });
        ($on.base(port), shutdown, end)
    }};
    ($on:expr, $runtime:expr, $service:expr) => {
        serve_here!($on, $runtime, $service, hyperman::Config::default())
    };
}

mod bodies;
mod calls;
mod ends;

use std::convert::Infallible;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyperman_tests::matrix::Case;

pub const CASES: &[&[Case]] = &[calls::CASES, bodies::CASES, ends::CASES];

fn text(body: impl Into<Bytes>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(body.into())))
}
