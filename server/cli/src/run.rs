//! Puts the parts together and serves until it is told to stop.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use http::{Request, Response};
use hyperman::{Body, Bound, Listen, Server};
use tower_service::Service;

use crate::access_log::AccessLog;
use crate::announce;
use crate::diagnostics::Diagnostics;
use crate::lines::LineWriter;
use crate::options::ServeOptions;
use crate::path::FilePath;
use crate::root::{Found, Root, Symlinks};
use crate::service::FileService;

/// Why the program ends without having been asked to. What it shows says what to do.
#[derive(Debug)]
pub enum Error {
    /// The folder cannot be served.
    Folder(PathBuf, io::Error),
    /// The addresses cannot be listened on.
    Listen(Vec<Listen>, io::Error),
    /// The system refused something while the server ran.
    Run(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Folder(directory, error) => f.write_str(&announce::no_folder(directory, error)),
            Error::Listen(asked, error) => f.write_str(&announce::no_listener(asked.iter(), error)),
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

    let hint = hint(&root, options);
    let files = FileService::new(root, options.files());
    let announce = |addresses: &[Listen]| {
        let text = announce::started(&directory, addresses, hint);
        // A closed standard error is no reason not to serve.
        let _ = io::stderr().write_all(text.as_bytes());
    };
    if options.no_log {
        return run(bind(files, options)?, announce);
    }
    let log = LineWriter::start(io::stdout()).map_err(Error::Run)?;
    run(bind(AccessLog::new(files, log.lines(), options.log), options)?, announce)
}

fn bind<S>(service: S, options: &ServeOptions) -> Result<Bound<S>, Error> {
    let mut server = Server::new(service).config(options.config());
    for address in options.addresses() {
        server = match address {
            Listen::Tcp(address) => server.listen(address),
            Listen::Unix(path) => server.listen_unix(path),
        };
    }
    server.bind().map_err(|error| Error::Listen(options.addresses().cloned().collect(), error))
}

fn run<S, B>(server: Bound<S>, announce: impl FnOnce(&[Listen])) -> Result<(), Error>
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
    announce(server.addresses());
    let outcome = server.run().map_err(Error::Run);
    for path in sockets {
        // The next start replaces one that is left.
        let _ = std::fs::remove_file(path);
    }
    outcome
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
