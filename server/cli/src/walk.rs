//! Opens a path below a directory name by name, for systems whose kernel cannot confine an open.
//!
//! No step follows a link in the kernel. Links are read and their targets walked here; `..` in a target goes back
//! along the descriptors that led here, never through the file system, so a directory that is moved meanwhile cannot
//! turn it into a way out.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// How many links one path may lead over: Linux's own number (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// What a directory on the way is opened for.
#[cfg(target_os = "linux")]
const PASS_THROUGH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS_THROUGH: OFlags = OFlags::RDONLY;

/// Opens `path` below `root` with `flags`. `EXDEV` says that it would leave `root`, as `openat2` does.
pub(crate) fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut walk = Walk { root, passed: Vec::new(), ahead: Vec::new(), links: 0 };
    walk.push_ahead(path)?;
    while let Some(name) = walk.ahead.pop() {
        if let Some(opened) = walk.step(&name, flags)? {
            return Ok(opened);
        }
    }
    // The path ended in `..` or was `.`: the directory that was reached is what is meant.
    rustix::fs::openat(walk.here(), c".", flags | OFlags::DIRECTORY, Mode::empty())
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    /// The directories between the root and here.
    passed: Vec<OwnedFd>,
    /// The names still to go, the next one last.
    ahead: Vec<OsString>,
    links: usize,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.passed.last().map_or(self.root, AsFd::as_fd)
    }

    fn push_ahead(&mut self, path: &[u8]) -> Result<(), Errno> {
        if path.first() == Some(&b'/') {
            return Err(Errno::XDEV);
        }
        let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        self.ahead.extend(names.rev().map(|name| OsStr::from_bytes(name).to_owned()));
        Ok(())
    }

    /// Goes over one name. Gives the descriptor when that was the last one.
    fn step(&mut self, name: &OsStr, flags: OFlags) -> Result<Option<OwnedFd>, Errno> {
        if name.as_bytes() == b".." {
            return match self.passed.pop() {
                Some(_) => Ok(None),
                None => Err(Errno::XDEV),
            };
        }
        match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => {
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = OsString::from_vec(target.into_bytes());
                self.push_ahead(target.as_bytes())?;
                return Ok(None);
            }
            Err(Errno::INVAL) => {} // not a link
            Err(error) => return Err(error),
        }
        // A link that took the name's place since then is not followed but an error.
        if self.ahead.is_empty() {
            let opened = rustix::fs::openat(self.here(), name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            return Ok(Some(opened));
        }
        let pass = PASS_THROUGH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.here(), name, pass, Mode::empty())?;
        self.passed.push(directory);
        Ok(None)
    }
}
