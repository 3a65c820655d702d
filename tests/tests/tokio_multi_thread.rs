//! The cases on tokio, multi_thread.

#![allow(clippy::expect_used)] // a test fails where it panics

use std::future::Future;

type Rt = hyperman_tokio::TokioRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime
        .block_on(async { future(hyperman_tokio::TokioRuntime::current().expect("inside a runtime")).await })
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
