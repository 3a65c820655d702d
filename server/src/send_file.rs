//! A part of a file as the body of an answer, sent without passing through user land where the connection allows.

use std::fs::File;
use std::sync::Arc;

/// Put into a response's extensions, this part of a file is sent instead of the response's body wherever the
/// connection can do so by `sendfile` (a plain socket on Linux). Elsewhere the body is sent as usual, so it must hold
/// the same bytes.
///
/// The body's exact size hint must be `length`. A file that turns out shorter ends the connection.
#[derive(Clone, Debug)]
pub struct SendFile {
    /// The file, open for reading.
    pub file: Arc<File>,
    /// The position of the first byte.
    pub offset: u64,
    /// How many bytes are sent.
    pub length: u64,
}
