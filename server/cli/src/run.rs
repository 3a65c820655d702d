//! Puts the parts together and serves until it is told to stop.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use hyperman::tls::{ConfigError, ServerTls};
use hyperman::{Body, Bound, Config, Listen, OnRefusal, Server};
use hyperman_loop::signal::{Signal, signals};
use hyperman_transport::Spawn;
use tower_service::Service;

use crate::access_log::AccessLog;
use crate::announce::{self, Mode};
use crate::diagnostics::Diagnostics;
use crate::lines::LineWriter;
use crate::options::ServeOptions;
use crate::path::FilePath;
use crate::redirect::ToHttps;
use crate::root::{Found, Root, Symlinks};
use crate::service::FileService;
use crate::tls;

/// Why the program ends without having been asked to. What it shows says what to do.
#[derive(Debug)]
pub enum Error {
    /// The folder cannot be served.
    Folder(PathBuf, io::Error),
    /// The addresses cannot be listened on.
    Listen(Vec<Listen>, io::Error),
    /// The certificate or its key cannot be used.
    Certificate(ConfigError),
    /// The system refused something while the server ran.
    Run(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Folder(directory, error) => f.write_str(&announce::no_folder(directory, error)),
            Error::Listen(asked, error) => f.write_str(&announce::no_listener(asked.iter(), error)),
            Error::Certificate(error) => error.fmt(f),
            Error::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Serves a folder until SIGINT or SIGTERM.
///
/// # Errors
/// What [`Error`] lists.
pub fn serve(options: &ServeOptions) -> Result<(), Error> {
    let symlinks = if options.follow_symlinks { Symlinks::Followed } else { Symlinks::Confined };
    let open = || {
        let directory = options.directory.canonicalize()?;
        Ok((Root::open(&directory, symlinks)?, directory))
    };
    let (root, directory) = open().map_err(|error| Error::Folder(options.directory.clone(), error))?;

    let notes = LineWriter::start(io::stderr()).map_err(Error::Run)?;
    // Fails only when there is one already, which then has the say.
    let _ = tracing::subscriber::set_global_default(Diagnostics::new(notes.lines(), options.verbose));

    let tls = tls::settings(options).map_err(Error::Certificate)?;
    let hint = hint(&root, options);
    let https = Arc::new(OnceLock::new());
    let files = ToHttps::new(FileService::new(root, options.files()), Arc::clone(&https));
    let announce = |addresses: &[Listen]| {
        if let Some(port) = addresses.iter().find_map(tcp_port)
            && !options.redirect_from.is_empty()
        {
            // Nobody else sets it.
            let _ = https.set(port);
        }
        let mode = match &tls {
            None => Mode::Cleartext,
            Some(_) => Mode::Tls { cleartext: options.redirected().count(), made: options.cert.is_none() },
        };
        let text = announce::started(&directory, addresses, mode, hint);
        // A closed standard error is no reason not to serve.
        let _ = io::stderr().write_all(text.as_bytes());
    };
    if options.no_log {
        return run(bind(files, options, None, tls.as_ref())?, tls.as_ref(), announce);
    }
    let log = LineWriter::start(io::stdout()).map_err(Error::Run)?;
    let logged = AccessLog::new(files, log.lines(), options.log);
    let refusals = logged.refusals();
    run(bind(logged, options, Some(refusals), tls.as_ref())?, tls.as_ref(), announce)
}

fn tcp_port(listen: &Listen) -> Option<u16> {
    match listen {
        Listen::Tcp(address) => Some(address.port()),
        Listen::Unix(_) => None,
    }
}

fn bind<S>(
    service: S,
    options: &ServeOptions,
    on_refusal: Option<OnRefusal>,
    tls: Option<&ServerTls>,
) -> Result<Bound<S>, Error> {
    let mut server = Server::new(service).config(Config { on_refusal, ..options.config() });
    for address in options.addresses() {
        server = match (address, tls) {
            (Listen::Tcp(address), Some(tls)) => server.listen_tls(address, tls),
            (Listen::Tcp(address), None) => server.listen(address),
            (Listen::Unix(path), _) => server.listen_unix(path),
        };
    }
    for address in options.redirected() {
        server = match address {
            Listen::Tcp(address) => server.listen(address),
            Listen::Unix(path) => server.listen_unix(path),
        };
    }
    let asked = || options.addresses().chain(options.redirected()).cloned().collect();
    server.bind().map_err(|error| Error::Listen(asked(), error))
}

fn run<S, B>(server: Bound<S>, tls: Option<&ServerTls>, announce: impl FnOnce(&[Listen])) -> Result<(), Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Unpin + 'static,
    S::Error: fmt::Display,
    B: http_body::Body + 'static,
    B::Error: fmt::Display,
{
    let sockets: Vec<PathBuf> = server
        .addresses()
        .iter()
        .filter_map(|address| match address {
            Listen::Unix(path) => Some(path.clone()),
            Listen::Tcp(_) => None,
        })
        .collect();
    if let Some(tls) = tls {
        reload_on_hangup(&server, tls.clone()).map_err(Error::Run)?;
    }
    announce(server.addresses());
    let outcome = server.run().map_err(Error::Run);
    for path in sockets {
        // The next start replaces one that is left.
        let _ = std::fs::remove_file(path);
    }
    outcome
}

/// Reads the certificate again on SIGHUP. A bad one leaves the old one in place and says why.
fn reload_on_hangup<S>(server: &Bound<S>, tls: ServerTls) -> io::Result<()> {
    let handle = server.handle();
    let mut hangups = signals(&handle, &[Signal::Hangup])?;
    handle.spawn(async move {
        while hangups.recv().await.is_ok() {
            match tls.reload() {
                Ok(()) => tracing::warn!("the certificate was read again"),
                Err(error) => tracing::error!("the old certificate stays: {error}"),
            }
        }
    });
    Ok(())
}

/// A word to the owner of a folder that shows nothing at its top.
fn hint(root: &Root, options: &ServeOptions) -> Option<&'static str> {
    let top = FilePath::parse("/").ok()?;
    let has_index = options
        .index
        .iter()
        .any(|index| matches!(root.find(&top.join(index.as_bytes())), Ok(Found::File(_))));
    (!has_index && !options.list)
        .then_some("There is no index file in this folder; with --list its files are listed instead.")
}
