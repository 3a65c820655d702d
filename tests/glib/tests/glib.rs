//! The cases on a GLib main context of the thread's own.

#![allow(clippy::expect_used)] // a test fails where it panics

use std::future::Future;

type Rt = hyperman_glib::GlibRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let context = glib::MainContext::new();
    context.block_on(future(Rt::new(context.clone())))
}

mod server {
    use super::{Rt, block_on};

    include!("../../cases/harness.rs");
    include!("../../cases/server.rs");
}

mod client {
    use super::{Rt, block_on};

    include!("../../cases/client.rs");
}

mod together {
    use super::{Rt, block_on};

    const SECURE: bool = false;

    include!("../../cases/together.rs");
}

mod together_over_tls {
    use super::{Rt, block_on};

    const SECURE: bool = true;

    include!("../../cases/together.rs");
}
