//! The `hyperman` program.

use std::process::ExitCode;

use clap::Parser;
use hyperman_cli::options::{Command, Options};
use hyperman_cli::run;

/// Exit codes: 0 after a shutdown that was asked for, 1 when something failed, 2 for a command line that is wrong.
fn main() -> ExitCode {
    let Command::Serve(options) = Options::parse().command;
    match run::serve(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hyperman: {error}");
            ExitCode::FAILURE
        }
    }
}
