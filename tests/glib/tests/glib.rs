//! The cases on a GLib main context of the thread's own.

#[path = "../../cases/mod.rs"]
mod cases;

use std::future::Future;
use std::process::ExitCode;

type Rt = hyperman_glib::GlibRuntime;

fn block_on<F: Future>(future: impl FnOnce(Rt) -> F) -> F::Output {
    let context = glib::MainContext::new();
    let Ok(runtime) = Rt::new(context.clone()) else { panic!("no runtime") };
    context.block_on(future(runtime))
}

fn main() -> ExitCode {
    cases::run("glib (own context)")
}
