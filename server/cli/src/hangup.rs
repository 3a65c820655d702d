//! What SIGHUP means here: the terminal is gone, or somebody wants the certificate to be read again.

use std::io::{self, IsTerminal};

use hyperman::Bound;
use hyperman::tls::ServerTls;
use hyperman_loop::signal::{Signal, signals};
use hyperman_transport::Spawn;
use rustix::process::{Signal as Kill, getpid, kill_process};

/// What there is to read again.
#[derive(Clone, Debug)]
pub enum Reload {
    /// Nothing: all that is served is read anew for each request.
    Nothing,
    /// Nothing either: the certificate was made by this process.
    Made,
    /// The certificate and its key.
    Files(ServerTls),
}

/// Heeds SIGHUP from now on. When the terminal that the program was started on is gone, the server drains, as upon
/// SIGTERM: nobody is left who could stop it. Otherwise the certificate is read again; a bad one leaves the old one in
/// place and says why.
///
/// # Errors
/// When the loop cannot watch for signals.
pub fn heed<S>(server: &Bound<S>, reload: Reload) -> io::Result<()> {
    let handle = server.handle();
    let mut hangups = signals(&handle, &[Signal::Hangup])?;
    let began = terminals();
    handle.spawn(async move {
        while hangups.recv().await.is_ok() {
            if began.iter().zip(terminals()).any(|(before, now)| *before && !now) {
                // It cannot fail: the process exists and is ours.
                let _ = kill_process(getpid(), Kill::TERM);
                return;
            }
            match &reload {
                Reload::Nothing => tracing::info!("SIGHUP: there is nothing to read again"),
                Reload::Made => {
                    tracing::info!("SIGHUP: the certificate is of this program's making and stays")
                }
                Reload::Files(tls) => match tls.reload() {
                    Ok(()) => tracing::info!("the certificate was read again"),
                    Err(error) => tracing::error!("the old certificate stays: {error}"),
                },
            }
        }
    });
    Ok(())
}

/// Which of the standard streams are terminals. One that has hung up is none any more.
fn terminals() -> [bool; 3] {
    [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()]
}
