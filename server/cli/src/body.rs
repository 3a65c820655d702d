//! The bodies of answers: bytes in memory, parts of a file, or both in turn.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::range::ByteRange;

/// How much of a file is read at once at the most, 64 KiB: a socket's send buffer takes about that much.
pub const CHUNK: usize = 64 * 1024;

/// How much is read first, 16 KiB, and twice as much each time after: a reader that takes nothing, on one of many streams,
/// makes us hold no more than this (S24).
const FIRST_CHUNK: usize = 16 * 1024;

/// The body of an answer of the file service. Its length is known from the start.
#[derive(Debug, Default)]
pub struct FileBody {
    pieces: VecDeque<Piece>,
    remaining: u64,
    /// How much of a file was read last.
    read: usize,
}

#[derive(Debug)]
enum Piece {
    Memory(Bytes),
    File { file: Arc<File>, range: ByteRange },
}

impl FileBody {
    /// A body without a byte.
    pub fn empty() -> Self {
        FileBody::default()
    }

    /// Appends bytes.
    pub fn push_bytes(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.remaining += bytes.len() as u64;
            self.pieces.push_back(Piece::Memory(bytes));
        }
    }

    /// Appends a part of a file.
    pub fn push_file(&mut self, file: Arc<File>, range: ByteRange) {
        if range.length() > 0 {
            self.remaining += range.length();
            self.pieces.push_back(Piece::File { file, range });
        }
    }

    /// How many bytes are still to come.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    fn next_chunk(&mut self) -> Option<io::Result<Bytes>> {
        let chunk = match self.pieces.front_mut()? {
            Piece::Memory(bytes) => Ok(std::mem::take(bytes)),
            Piece::File { file, range } => {
                self.read = self.read.saturating_mul(2).clamp(FIRST_CHUNK, CHUNK);
                read(file, range, self.read)
            }
        };
        if let Ok(bytes) = &chunk {
            self.remaining = self.remaining.saturating_sub(bytes.len() as u64);
        }
        // An error ends the body: what would follow stands at the wrong place.
        match self.pieces.front() {
            _ if chunk.is_err() => self.pieces.clear(),
            Some(Piece::File { range, .. }) if range.length() > 0 => {}
            _ => drop(self.pieces.pop_front()),
        }
        Some(chunk)
    }
}

impl<B: Into<Bytes>> From<B> for FileBody {
    fn from(bytes: B) -> Self {
        let mut body = FileBody::empty();
        body.push_bytes(bytes);
        body
    }
}

/// Reads the front of the range, at most `most` bytes, and advances it.
///
/// # Errors
/// The system call's, and `UnexpectedEof` when the file has become shorter than it was: nothing is made up in place
/// of what is gone.
fn read(file: &File, range: &mut ByteRange, most: usize) -> io::Result<Bytes> {
    let wanted = usize::try_from(range.length()).unwrap_or(most).min(most);
    let mut storage = Vec::with_capacity(wanted);
    let read = loop {
        match rustix::io::pread(file.as_fd(), spare_capacity(&mut storage), range.start) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was cut short while it was sent"));
    }
    // The storage may have been rounded up.
    storage.truncate(wanted);
    range.start += storage.len() as u64;
    Ok(Bytes::from(storage))
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(self.get_mut().next_chunk().map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file_of(content: &[u8]) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        Arc::new(file)
    }

    fn drain(body: &mut FileBody) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(chunk) = body.next_chunk() {
            let chunk = chunk?;
            assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
            all.extend_from_slice(&chunk);
            assert_eq!(body.size_hint().exact(), Some(body.remaining()));
        }
        Ok(all)
    }

    #[test]
    fn pieces_follow_one_another_and_the_length_counts_down() {
        let content: Vec<u8> = (0..CHUNK * 2 + 77).map(|i| (i % 251) as u8).collect();
        let file = file_of(&content);
        let mut body = FileBody::empty();
        body.push_bytes("head");
        body.push_file(Arc::clone(&file), ByteRange { start: 3, end: content.len() as u64 });
        body.push_bytes("");
        body.push_file(file, ByteRange { start: 0, end: 1 });
        assert_eq!(body.size_hint().exact(), Some(4 + content.len() as u64 - 3 + 1));
        assert!(!body.is_end_stream());
        let mut expected = b"head".to_vec();
        expected.extend_from_slice(&content[3..]);
        expected.push(content[0]);
        assert!(drain(&mut body).unwrap() == expected);
        assert!(body.is_end_stream());
        assert_eq!(body.remaining(), 0);
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error_and_ends_the_body() {
        let file = file_of(&[7; 100]);
        let mut body = FileBody::empty();
        body.push_file(Arc::clone(&file), ByteRange { start: 0, end: 200 });
        body.push_bytes("never reached");
        assert_eq!(body.next_chunk().unwrap().unwrap().len(), 100);
        let error = body.next_chunk().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(body.next_chunk().is_none());
    }

    #[test]
    fn nothing_is_an_end() {
        let mut body = FileBody::from("");
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
        assert!(body.next_chunk().is_none());
    }

    /// S24
    #[test]
    fn the_first_pieces_of_a_file_are_small() {
        let content = vec![7; CHUNK * 3];
        let mut body = FileBody::empty();
        body.push_file(file_of(&content), ByteRange { start: 0, end: content.len() as u64 });
        let lengths: Vec<usize> =
            std::iter::from_fn(|| body.next_chunk().map(|chunk| chunk.unwrap().len())).collect();
        assert_eq!(lengths, [16 * 1024, 32 * 1024, 64 * 1024, 64 * 1024, 16 * 1024]);
    }
}
