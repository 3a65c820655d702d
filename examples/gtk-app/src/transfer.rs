//! One download: from a URL into a file, and into a picture when it is one. No widget here; [`Progress`] is what a
//! widget may look at meanwhile.

use std::cell::Cell;
use std::fmt;

use gtk4::{gdk, gdk_pixbuf, gio, glib, prelude::*};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyperman_fetch::{Client, Error, ErrorKind, Url};
use hyperman_glib::GlibRuntime;

use crate::text;

/// The work of a download comes after drawing.
pub(crate) const PRIORITY: i32 = hyperman_glib::DEFAULT_PRIORITY;

/// How many files of one name a folder may get.
const MOST_OF_A_NAME: u32 = 1000;

/// How far a download is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) received: Cell<u64>,
    pub(crate) total: Cell<Option<u64>>,
}

/// What a download came to.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(crate) file: gio::File,
    pub(crate) bytes: u64,
    pub(crate) picture: Option<gdk::Texture>,
}

/// Why there is no file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server or the way to it.
    Exchange(Error),
    /// The folder, or its disk.
    File(glib::Error),
}

/// Downloads. Dropping the future ends the exchange and removes the part of the file that is there.
pub(crate) async fn download(
    client: &Client<GlibRuntime>,
    url: Url,
    folder: &gio::File,
    progress: &Progress,
) -> Result<Arrived, Failure> {
    let mut answer = client.get(url).send().await?.error_for_status()?;
    progress.total.set(answer.content_length());
    let mut picture = is_picture(answer.headers()).then(Picture::default);
    let part = Part::create(folder, &text::file_name(answer.url())).await?;
    while let Some(piece) = answer.chunk().await? {
        progress.received.set(progress.received.get() + piece.len() as u64);
        if let Some(picture) = &mut picture {
            picture.read(&piece);
        }
        part.write(piece).await?;
    }
    let bytes = progress.received.get();
    let picture = picture.and_then(Picture::finish);
    Ok(Arrived { file: part.keep().await?, bytes, picture })
}

fn is_picture(fields: &HeaderMap) -> bool {
    let kind = fields.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("image/"))
}

/// A file that is being written, and removed unless it is kept.
struct Part {
    file: gio::File,
    stream: gio::FileOutputStream,
    kept: Cell<bool>,
}

impl Part {
    /// A new file; one that is there already keeps its name.
    async fn create(folder: &gio::File, name: &str) -> Result<Self, glib::Error> {
        let mut number = 1;
        loop {
            let file = folder.child(text::numbered(name, number));
            match file.create_future(gio::FileCreateFlags::NONE, PRIORITY.into()).await {
                Ok(stream) => return Ok(Part { file, stream, kept: Cell::new(false) }),
                Err(error) if error.matches(gio::IOErrorEnum::Exists) && number < MOST_OF_A_NAME => {
                    number += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn write(&self, piece: impl AsRef<[u8]> + Send + 'static) -> Result<(), glib::Error> {
        match self.stream.write_all_future(piece, PRIORITY.into()).await {
            Ok((_, _, None)) => Ok(()),
            Ok((_, _, Some(error))) | Err((_, error)) => Err(error),
        }
    }

    async fn keep(self) -> Result<gio::File, glib::Error> {
        self.stream.close_future(PRIORITY.into()).await?;
        self.kept.set(true);
        Ok(self.file.clone())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.kept.get() {
            // Removing a large file can take a disk long, so it is not waited for; but the application is there until
            // then. Nothing can be done about a file that is in the way of its own removal.
            let stay = gio::Application::default().map(|application| application.hold());
            self.file.delete_async(PRIORITY.into(), gio::Cancellable::NONE, move |_| drop(stay));
        }
    }
}

/// A picture that is decoded as its bytes arrive, so that no step of it takes long.
struct Picture {
    loader: gdk_pixbuf::PixbufLoader,
    readable: bool,
}

impl Default for Picture {
    fn default() -> Self {
        Picture { loader: gdk_pixbuf::PixbufLoader::new(), readable: true }
    }
}

impl Picture {
    fn read(&mut self, piece: &[u8]) {
        // A file that is no picture after all is still a file.
        self.readable = self.readable && self.loader.write(piece).is_ok();
    }

    fn finish(self) -> Option<gdk::Texture> {
        let whole = self.loader.close().is_ok() && self.readable;
        whole.then(|| self.loader.pixbuf()).flatten().map(|pixbuf| gdk::Texture::for_pixbuf(&pixbuf))
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // A loader insists on being closed; that it holds half a picture is no news.
        let _ = self.loader.close();
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Exchange(error)
    }
}

impl From<glib::Error> for Failure {
    fn from(error: glib::Error) -> Self {
        Failure::File(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Exchange(error) => match error.kind() {
                ErrorKind::Status(status) => write!(f, "The server answered {status}"),
                ErrorKind::Resolve { host, .. } => {
                    write!(f, "There is no server called {}", host.escape_debug())
                }
                ErrorKind::Connect { authority, .. } => {
                    write!(f, "{} cannot be reached", authority.escape_debug())
                }
                kind => {
                    let text = kind.to_string();
                    let mut rest = text.chars();
                    rest.next().map_or(Ok(()), |first| write!(f, "{}{}", first.to_uppercase(), rest.as_str()))
                }
            },
            Failure::File(error) => f.write_str(error.message()),
        }
    }
}
