//! The served folder: opens what lies below it, and nothing else.
//!
//! Every open is relative to the folder's descriptor. On Linux the kernel itself refuses to leave it
//! (`openat2` with `RESOLVE_BENEATH`); elsewhere, and on kernels before 5.6, `walk` follows the path
//! name by name. Nothing here blocks on a FIFO or a device: they are opened without waiting and turned away.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::path::FilePath;
use crate::walk;

/// What a symbolic link may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// It is followed while it stays below the served folder. One with an absolute target leaves it.
    #[default]
    Confined,
    /// It is followed wherever it points.
    Followed,
}

/// The served folder: whatever its path leads to at the time of a request.
///
/// A build that removes its output folder and makes it anew, or a deployment that turns a link to the next release, is
/// so seen by the next request.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    held: Mutex<Held>,
    confinement: Confinement,
}

/// A directory that is held open, and which one that is.
#[derive(Clone, Debug)]
struct Held {
    directory: Arc<OwnedFd>,
    identity: (u64, u64),
}

/// Who keeps an open below the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Confinement {
    /// The kernel, by `openat2`.
    #[cfg(target_os = "linux")]
    Kernel,
    /// [`walk`].
    Walk,
    /// Nobody: the owner asked for that.
    None,
}

/// What was found at a path.
#[derive(Debug)]
pub enum Found {
    /// A regular file, open for reading.
    File(FoundFile),
    /// A directory, open for reading.
    Directory(OwnedFd),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct FoundFile {
    /// The file.
    pub file: File,
    /// What there is to know about it, read from the open descriptor.
    pub facts: Facts,
}

/// What a file's validators and head are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Its length in bytes.
    pub length: u64,
    /// When its content changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, i64),
    /// When its inode changed. Cannot be set back, so it tells replaced files with equal times apart.
    pub changed: (i64, i64),
    /// Its device and inode number.
    pub identity: (u64, u64),
}

impl Facts {
    /// Whether the content is from an earlier second than `other`'s. Programs that compress a file give the result the
    /// file's own date, some in whole seconds.
    pub fn is_older_than(&self, other: &Facts) -> bool {
        self.modified.0 < other.modified.0
    }

    fn of(metadata: &Metadata) -> Self {
        Facts {
            length: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            identity: (metadata.dev(), metadata.ino()),
        }
    }
}

/// Why nothing could be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Nothing has that path.
    NotFound,
    /// A symbolic link on the way leaves the served folder.
    Outside,
    /// The program may not read it.
    Denied,
    /// It is neither a file nor a directory: a FIFO, a socket, a device.
    Special,
    /// The system is short of descriptors or memory for the moment.
    Busy(io::Error),
    /// Anything else, e.g. a disk that fails.
    Failed(io::Error),
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::INVAL | Errno::ILSEQ => {
                OpenError::NotFound
            }
            Errno::XDEV => OpenError::Outside,
            Errno::ACCESS | Errno::PERM => OpenError::Denied,
            // A socket, or a device without a driver.
            Errno::NXIO | Errno::NODEV => OpenError::Special,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => OpenError::Busy(errno.into()),
            _ => OpenError::Failed(errno.into()),
        }
    }
}

/// How often an open is tried again that a rename somewhere in the tree has disturbed (openat2(2), `EAGAIN`).
#[cfg(target_os = "linux")]
const RENAME_RETRIES: usize = 16;

impl Root {
    /// Opens the folder that is to be served.
    ///
    /// # Errors
    /// The system call's: it does not exist, is no directory, or may not be read.
    pub fn open(directory: &Path, symlinks: Symlinks) -> io::Result<Self> {
        let path = std::path::absolute(directory)?;
        let held = Held::open(&path)?;
        let confinement = match symlinks {
            Symlinks::Followed => Confinement::None,
            Symlinks::Confined => Confinement::best(held.directory.as_fd()),
        };
        Ok(Root { path, held: Mutex::new(held), confinement })
    }

    /// The same folder, confined by `walk` even where the kernel could do it. For tests of the walk.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_walking(directory: &Path) -> io::Result<Self> {
        let root = Root::open(directory, Symlinks::Confined)?;
        Ok(Root { confinement: Confinement::Walk, ..root })
    }

    /// Opens a file or a directory for reading.
    ///
    /// # Errors
    /// What [`OpenError`] lists.
    pub fn find(&self, path: &FilePath) -> Result<Found, OpenError> {
        // NONBLOCK: the open of a FIFO waits for a writer otherwise, and the whole loop with it.
        let descriptor = self.descriptor(path.bytes(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let file = File::from(descriptor);
        let metadata = file.metadata().map_err(OpenError::Failed)?;
        if metadata.is_file() {
            let facts = Facts::of(&metadata);
            return Ok(Found::File(FoundFile { file, facts }));
        }
        if metadata.is_dir() { Ok(Found::Directory(file.into())) } else { Err(OpenError::Special) }
    }

    /// What a path leads to, also where it may not be read.
    ///
    /// # Errors
    /// What [`OpenError`] lists.
    pub fn stat(&self, path: &FilePath) -> Result<Stat, OpenError> {
        // A descriptor that is only a place in the tree: no permission is needed, no device is touched.
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let descriptor = self.descriptor(path.bytes(), flags)?;
        Ok(rustix::fs::fstat(descriptor)?)
    }

    /// Whether a path leads to a directory, also to one that may not be read.
    pub fn is_directory(&self, path: &FilePath) -> bool {
        self.stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn descriptor(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let directory = self.directory();
        match self.confinement {
            #[cfg(target_os = "linux")]
            Confinement::Kernel => open_beneath(directory.as_fd(), path, flags),
            Confinement::Walk => walk::open(directory.as_fd(), path, flags),
            Confinement::None => rustix::fs::openat(&directory, path, flags, Mode::empty()),
        }
    }

    /// The directory that the path leads to now. As long as it leads nowhere, the one that it led to before: that may be
    /// there still, and only its name cannot be reached.
    fn directory(&self) -> Arc<OwnedFd> {
        // Nothing that panics runs under this lock.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = rustix::fs::stat(&self.path).is_ok_and(|stat| identity(&stat) != held.identity);
        if moved && let Ok(now) = Held::open(&self.path) {
            *held = now;
        }
        Arc::clone(&held.directory)
    }
}

impl Held {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let identity = identity(&rustix::fs::fstat(&directory)?);
        Ok(Held { directory: Arc::new(directory), identity })
    }
}

/// The device and the inode number.
#[allow(
    clippy::unnecessary_cast,
    clippy::useless_conversion,
    clippy::cast_sign_loss,
    reason = "the types differ between systems"
)]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino.into())
}

impl Confinement {
    /// The kernel where it can, which one call tells: old kernels and some sandboxes refuse it.
    #[cfg(target_os = "linux")]
    fn best(directory: BorrowedFd<'_>) -> Self {
        match open_beneath(directory, b".", OFlags::PATH | OFlags::CLOEXEC) {
            Ok(_) => Confinement::Kernel,
            Err(_) => Confinement::Walk,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn best(_directory: BorrowedFd<'_>) -> Self {
        Confinement::Walk
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(directory: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    // Magic links are those of /proc, which jump to any open file.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut outcome = Err(Errno::AGAIN);
    for _ in 0..RENAME_RETRIES {
        outcome = rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve);
        if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    outcome
}

/// The type of an entry, and its facts, without following a link at its end.
///
/// # Errors
/// The system call's.
pub(crate) fn stat_entry(directory: BorrowedFd<'_>, name: &std::ffi::CStr) -> Result<Stat, Errno> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}
