// Included into one module per loop, which has defined `Rt`, the loop's `Runtime`, and `block_on`.

use std::net::SocketAddr;
use std::sync::mpsc;

use hyperman::{Config, Shutdown, serve};
use hyperman_transport::{ListenOptions, Listener};

/// Serves `$service` on this loop, in a thread of its own, while `$peers` plays the other side; then ends the server.
macro_rules! with_server {
    ($service:expr, $config:expr, $peers:expr) => {{
        let (tell, told) = mpsc::channel::<(SocketAddr, Shutdown)>();
        let server = std::thread::spawn(move || {
            block_on(|runtime: Rt| async move {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let listener = Listener::bind_tcp(runtime.clone(), any, &ListenOptions::default())?;
                let address = listener.local_addr()?.expect("a TCP address");
                let service = ($service)(runtime.clone());
                let serving = serve(runtime, listener, service, $config);
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
