//! Puts the parts together and serves until it is told to stop.

use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use hyperman::tls::{ConfigError, ServerTls};
use hyperman::{Body, Bound, Config, Listen, Server};
use tower_service::Service;

use crate::access_log::AccessLog;
use crate::announce::{self, Mode};
use crate::descriptors;
use crate::diagnostics::Diagnostics;
use crate::hangup::{self, Reload};
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
        Ok((Root::open(&options.directory, symlinks)?, directory))
    };
    let (root, directory) = open().map_err(|error| Error::Folder(options.directory.clone(), error))?;

    // There is nobody to tell that nobody can be told.
    let notes = LineWriter::start(io::stderr(), |_| {}).map_err(Error::Run)?;
    // Fails only when there is one already, which then has the say.
    let _ = tracing::subscriber::set_global_default(Diagnostics::new(notes.lines(), options.verbose));

    let tls = tls::settings(options).map_err(Error::Certificate)?;
    let reload = match &tls {
        None => Reload::Nothing,
        Some(_) if options.cert.is_none() => Reload::Made,
        Some(tls) => Reload::Files(tls.clone()),
    };
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
    let config = config(options);
    if options.no_log {
        return run(bind(files, options, config, tls.as_ref())?, reload, announce);
    }
    let lost = |error: &io::Error| tracing::error!("requests are not written down: {error}");
    let log = LineWriter::start(io::stdout(), lost).map_err(Error::Run)?;
    let logged = AccessLog::new(files, log.lines(), options.log);
    let config = Config { on_refusal: Some(logged.refusals()), ..config };
    run(bind(logged, options, config, tls.as_ref())?, reload, announce)
}

fn tcp_port(listen: &Listen) -> Option<u16> {
    match listen {
        Listen::Tcp(address) => Some(address.port()),
        Listen::Unix(_) => None,
    }
}

/// The server's settings: unless more are asked for, no more connections than there are descriptors for.
fn config(options: &ServeOptions) -> Config {
    let mut config = options.config();
    let room = descriptors::connections(descriptors::raise_limit());
    match options.max_connections {
        None => config.connections = config.connections.min(room),
        Some(_) if config.connections > room => {
            tracing::warn!("the limit of open files (ulimit -n) is enough for {room} connections");
        }
        Some(_) => {}
    }
    config
}

fn bind<S>(
    service: S,
    options: &ServeOptions,
    config: Config,
    tls: Option<&ServerTls>,
) -> Result<Bound<S>, Error> {
    let mut server = Server::new(service).config(config);
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

fn run<S, B>(server: Bound<S>, reload: Reload, announce: impl FnOnce(&[Listen])) -> Result<(), Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Unpin + 'static,
    S::Error: fmt::Display,
    B: http_body::Body + 'static,
    B::Error: fmt::Display,
{
    let sockets: Vec<SocketFile> = server.addresses().iter().filter_map(SocketFile::of).collect();
    hangup::heed(&server, reload).map_err(Error::Run)?;
    announce(server.addresses());
    let outcome = server.run().map_err(Error::Run);
    sockets.into_iter().for_each(SocketFile::remove);
    outcome
}

/// The file of a Unix socket that this process listens on.
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn of(address: &Listen) -> Option<Self> {
        let Listen::Unix(path) = address else { return None };
        Some(SocketFile { path: path.clone(), identity: Self::identity(path)? })
    }

    fn identity(path: &Path) -> Option<(u64, u64)> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    /// Unless another server has taken the path over meanwhile. What is left behind, the next start replaces.
    fn remove(self) {
        if Self::identity(&self.path) == Some(self.identity) {
            let _ = std::fs::remove_file(self.path);
        }
    }
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
