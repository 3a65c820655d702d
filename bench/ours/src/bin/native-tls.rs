//! Hyperman on its own loop behind TLS: `native-tls PORT CERTIFICATE KEY`, two PEM files.

use hyperman::tls::{Identity, ServerTls};
use hyperman::{Server, service_fn};

fn main() {
    let mut files = std::env::args().skip(2);
    let mut file = || files.next().expect("after the port come a certificate and its key");
    let identity = Identity::from_files(file(), file());
    let tls = ServerTls::builder().identity(identity).build().expect("a certificate and its key");
    Server::new(service_fn(bench_ours::answer))
        .listen_tls(bench_ours::address(), &tls)
        .run()
        .expect("serves until a signal");
}
