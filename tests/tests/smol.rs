//! The cases on smol.

#![allow(clippy::expect_used)] // a test fails where it panics

use std::future::Future;
use std::sync::Arc;

type Rt = hyperman_smol::SmolRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let executor = Arc::new(smol::Executor::new());
    smol::block_on(executor.run(future(Rt::new(&executor))))
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
