//! The cases on our own loop over epoll.

#![allow(clippy::expect_used)] // a test fails where it panics

use std::future::Future;

type Rt = hyperman_loop::Handle;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let event_loop = hyperman_loop::Loop::with_backend(hyperman_loop::Backend::Epoll).expect("a loop");
    let handle = event_loop.handle();
    event_loop.block_on(future(handle))
}

mod server {
    use super::{Rt, block_on};

    include!("../cases/harness.rs");
    include!("../cases/server.rs");
}

mod client {
    use super::{Rt, block_on};

    include!("../cases/client.rs");
}

mod together {
    use super::{Rt, block_on};

    const SECURE: bool = false;

    include!("../cases/together.rs");
}

mod together_over_tls {
    use super::{Rt, block_on};

    const SECURE: bool = true;

    include!("../cases/together.rs");
}
