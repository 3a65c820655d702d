//! Lines that are written by a thread of their own, in batches, so that a terminal or a pipe that takes its time holds
//! up nobody. Should the reader of a pipe stop altogether, lines are dropped once a mebibyte waits, and their number is
//! written when it goes on.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How many bytes of lines wait for the writer before further lines are dropped, 1 MiB: some ten thousand lines.
const MOST_WAITING: usize = 1 << 20;

/// How long the writer gathers lines after the first one, 5 ms: nobody sees it, and a busy server is not slowed down
/// by a write and a thread switch for each request.
const GATHERING: Duration = Duration::from_millis(5);

/// How long the end of the program waits for the last lines to be taken, 1 s.
const PARTING: Duration = Duration::from_secs(1);

/// Owns the writing thread. Dropping it writes what is left.
#[derive(Debug)]
pub struct LineWriter {
    waiting: Arc<Waiting>,
}

/// Takes lines for a [`LineWriter`]; a cheap handle.
#[derive(Clone, Debug)]
pub struct Lines {
    waiting: Arc<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    dropped: u64,
    /// The writer sleeps until a line comes. Otherwise it looks again by itself, and need not be woken.
    idle: bool,
    /// No further line will come.
    ended: bool,
    /// The last line is written.
    written: bool,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineWriter {
    /// Starts the thread that writes to `sink`. `failed` hears when that cannot be done, once until it can be again: the
    /// lines are lost, which must not end the server.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(
        sink: impl Write + Send + 'static,
        failed: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let waiting = Arc::new(Waiting::default());
        let theirs = Arc::clone(&waiting);
        thread::Builder::new().name("lines".to_owned()).spawn(move || {
            write_on(&theirs, sink, failed);
            theirs.lock().written = true;
            theirs.changed.notify_all();
        })?;
        Ok(LineWriter { waiting })
    }

    /// A handle that takes lines.
    pub fn lines(&self) -> Lines {
        Lines { waiting: Arc::clone(&self.waiting) }
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        let mut state = self.waiting.lock();
        state.ended = true;
        self.waiting.changed.notify_all();
        // A sink that takes nothing any more must not keep the program from ending.
        let _ = self.waiting.changed.wait_timeout_while(state, PARTING, |state| !state.written);
    }
}

impl Lines {
    /// Hands a line over, its line feed included. Never waits for the sink.
    pub fn push(&self, line: &[u8]) {
        let mut state = self.waiting.lock();
        if state.lines.len() + line.len() > MOST_WAITING {
            state.dropped += 1;
            return;
        }
        state.lines.extend_from_slice(line);
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            self.waiting.changed.notify_all();
        }
    }
}

/// The writer's thread.
fn write_on(waiting: &Waiting, mut sink: impl Write, failed: impl Fn(&io::Error)) {
    let mut works = true;
    loop {
        let mut state = waiting.lock();
        while state.lines.is_empty() && !state.ended {
            state.idle = true;
            state = waiting.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        if !state.ended {
            let gathered = waiting.changed.wait_timeout_while(state, GATHERING, |state| !state.ended);
            state = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        let ended;
        (works, ended) = write_batch(waiting, &mut sink, &failed, works);
        if ended {
            return;
        }
    }
}

/// Writes what waits; says whether that worked, and whether no further line will come. Failures are told when the last
/// batch `worked`.
fn write_batch(
    waiting: &Waiting,
    sink: &mut impl Write,
    failed: &impl Fn(&io::Error),
    worked: bool,
) -> (bool, bool) {
    let mut state = waiting.lock();
    let mut batch = std::mem::take(&mut state.lines);
    let dropped = std::mem::take(&mut state.dropped);
    let ended = state.ended;
    drop(state);
    if dropped > 0 {
        batch.extend_from_slice(format!("# {dropped} lines were dropped: nobody read them\n").as_bytes());
    }
    let written = sink.write_all(&batch).and_then(|()| sink.flush());
    if let Err(error) = &written
        && worked
    {
        failed(error);
    }
    (written.is_ok(), ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A sink that tells what it is given, and waits for leave before it takes more.
    struct Gated {
        given: mpsc::Sender<Vec<u8>>,
        leave: mpsc::Receiver<()>,
    }

    impl Write for Gated {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let _ = self.given.send(data.to_vec());
            let _ = self.leave.recv();
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (LineWriter, mpsc::Receiver<Vec<u8>>, mpsc::Sender<()>) {
        let (given, receiver) = mpsc::channel();
        let (leave, waits) = mpsc::channel();
        (
            LineWriter::start(Gated { given, leave: waits }, |error| panic!("{error}")).unwrap(),
            receiver,
            leave,
        )
    }

    #[test]
    fn lines_arrive_whole_in_order_and_all_by_the_end() {
        let (writer, given, leave) = gated();
        drop(leave);
        let lines = writer.lines();
        let mut expected = String::new();
        for number in 0..1000 {
            let line = format!("line {number}\n");
            lines.push(line.as_bytes());
            expected.push_str(&line);
        }
        drop(writer);
        let all: Vec<u8> = given.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(all).unwrap(), expected);
    }

    #[test]
    fn a_sink_that_takes_nothing_costs_lines_and_says_how_many() {
        let (writer, given, leave) = gated();
        let lines = writer.lines();
        lines.push(b"first\n");
        assert_eq!(given.recv().unwrap(), b"first\n");
        // The writer is held up now. Fill what may wait, and three lines more.
        let line = vec![b'x'; 1024];
        for _ in 0..MOST_WAITING / 1024 + 3 {
            lines.push(&line);
        }
        leave.send(()).unwrap();
        drop(leave);
        let rest = given.recv().unwrap();
        assert!(rest.ends_with(b"# 3 lines were dropped: nobody read them\n"), "{}", rest.len());
        assert_eq!(rest.iter().filter(|&&byte| byte == b'x').count(), MOST_WAITING);
    }

    /// A sink that fails for its first so many writes.
    struct Failing(usize);

    impl Write for Failing {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    Err(io::ErrorKind::StorageFull.into())
                }
                None => Ok(data.len()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn that_lines_cannot_be_written_is_told_once() {
        let waiting = Waiting::default();
        let told = Mutex::new(Vec::new());
        let failed = |error: &io::Error| told.lock().unwrap().push(error.kind());
        let mut sink = Failing(3);
        let mut works = true;
        for line in 0..6 {
            waiting.lock().lines.extend_from_slice(b"x\n");
            works = write_batch(&waiting, &mut sink, &failed, works).0;
            assert_eq!(works, line >= 3);
        }
        assert_eq!(*told.lock().unwrap(), [io::ErrorKind::StorageFull]);
        sink.0 = 1;
        waiting.lock().lines.extend_from_slice(b"x\n");
        write_batch(&waiting, &mut sink, &failed, works);
        assert_eq!(told.lock().unwrap().len(), 2);
    }
}
