//! A window that downloads: an address entry, a row for each download, and the picture that arrived last.
//!
//! Fetch runs on the main context that draws the window. There is no thread, channel or lock here: a click starts a
//! future, the future moves widgets, and cancelling is dropping it.
//!
//! * [`open`] makes the window; `window` puts it together and starts downloads.
//! * `row` is what one download looks like.
//! * `transfer` is the download itself, and knows no widget.
//! * `text` writes sizes, speeds and file names.

#![forbid(unsafe_code)]

mod row;
mod text;
mod transfer;
mod window;

pub use window::open;

/// The application's name on the desktop.
pub const ID: &str = "example.hyperman.Downloads";
