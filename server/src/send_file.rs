//! A part of a file as the body of an answer, sent without passing through user land where the connection allows.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyperman_transport::{ByteStream, FileRegion};

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

/// Put into a response's extensions beside a [`SendFile`], it is told how many bytes each system call sent, and dropped
/// once the last byte has left or the connection has ended. The response's body, which hears nothing then, is dropped
/// before.
#[derive(Clone)]
pub struct SendProgress(Arc<dyn Fn(u64) + Send + Sync>);

impl SendProgress {
    /// Calls `told` with the number of bytes of each step. It must not block.
    pub fn new(told: impl Fn(u64) + Send + Sync + 'static) -> Self {
        SendProgress(Arc::new(told))
    }
}

impl std::fmt::Debug for SendProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SendProgress")
    }
}

/// A part of a file under way.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) file: SendFile,
    pub(crate) progress: Option<SendProgress>,
}

impl Sending {
    /// Sends a piece, and says how many bytes that were; 0 when the file has ended too early.
    pub(crate) fn poll_send<IO: ByteStream>(
        &mut self,
        stream: &mut IO,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let part = &mut self.file;
        let mut region = FileRegion { file: part.file.as_fd(), offset: part.offset, length: part.length };
        let sent = ready!(stream.poll_send_file(cx, &mut region));
        (part.offset, part.length) = (region.offset, region.length);
        if let (Ok(sent), Some(SendProgress(told))) = (&sent, &self.progress) {
            told(*sent as u64);
        }
        Poll::Ready(sent)
    }

    /// Whether all of it has left.
    pub(crate) fn is_over(&self) -> bool {
        self.file.length == 0
    }
}
