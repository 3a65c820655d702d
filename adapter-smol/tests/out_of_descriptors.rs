//! Accepting with no descriptor free. A process of its own, as the limit holds for all of it.

use std::rc::Rc;

use hyperman_smol::SmolLocal;
use hyperman_transport::conformance::{Harness, sockets};
use smol::LocalExecutor;

struct Local;

impl Harness for Local {
    type Runtime = SmolLocal;

    fn block_on(&self, case: impl AsyncFnOnce(SmolLocal)) {
        let executor = Rc::new(LocalExecutor::new());
        smol::block_on(executor.run(case(SmolLocal::new(&executor))));
    }
}

#[test]
fn accepting_waits() {
    sockets::out_of_descriptors(&Local);
}
