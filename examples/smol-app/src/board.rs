//! What there is to do, what is under way and what is done. One thread, so a `RefCell` is all that it takes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

/// One URL's way through the program.
#[derive(Clone, Serialize)]
pub struct Job {
    url: String,
    bytes: u64,
    millis: u64,
    #[serde(flatten)]
    state: State,
    #[serde(skip)]
    since: Option<Instant>,
}

/// Where on that way it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum State {
    Waiting,
    Fetching,
    Done { status: u16 },
    Failed { reason: String },
}

/// All jobs, in the order in which they were given.
pub struct Board {
    jobs: RefCell<Vec<Job>>,
    next: Cell<usize>,
    begin: Instant,
}

impl Board {
    pub fn new(urls: Vec<String>) -> Self {
        let waiting = |url| Job { url, bytes: 0, millis: 0, state: State::Waiting, since: None };
        Board {
            jobs: RefCell::new(urls.into_iter().map(waiting).collect()),
            next: Cell::new(0),
            begin: Instant::now(),
        }
    }

    /// The number and URL of a job that nobody has taken yet.
    pub fn take(&self) -> Option<(usize, String)> {
        let number = self.next.get();
        let mut jobs = self.jobs.borrow_mut();
        let job = jobs.get_mut(number)?;
        self.next.set(number + 1);
        job.state = State::Fetching;
        job.since = Some(Instant::now());
        Some((number, job.url.clone()))
    }

    /// More of a job's body has arrived.
    pub fn add(&self, number: usize, bytes: usize) {
        if let Some(job) = self.jobs.borrow_mut().get_mut(number) {
            job.bytes += bytes as u64;
            job.millis = job.elapsed();
        }
    }

    /// Ends a job; the line that tells of it.
    pub fn finish(&self, number: usize, end: State) -> String {
        let mut jobs = self.jobs.borrow_mut();
        if let Some(job) = jobs.get_mut(number) {
            job.millis = job.elapsed();
            job.state = end;
        }
        let ended = jobs.iter().filter(|job| job.has_ended()).count();
        let (width, all) = (jobs.len().to_string().len(), jobs.len());
        let job = jobs.get(number).map(Job::to_string).unwrap_or_default();
        format!("[{ended:width$}/{all}] {job}")
    }

    pub fn failures(&self) -> usize {
        self.jobs.borrow().iter().filter(|job| matches!(job.state, State::Failed { .. })).count()
    }

    pub fn jobs(&self) -> Vec<Job> {
        self.jobs.borrow().clone()
    }
}

/// The sum, in one line.
impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.jobs.borrow();
        let count = |is_it: fn(&State) -> bool| jobs.iter().filter(|job| is_it(&job.state)).count();
        let (done, failed) = (
            count(|state| matches!(state, State::Done { .. })),
            count(|state| matches!(state, State::Failed { .. })),
        );
        let (fetching, waiting) =
            (count(|state| *state == State::Fetching), count(|state| *state == State::Waiting));
        write!(f, "{done} done, {failed} failed")?;
        if fetching + waiting > 0 {
            write!(f, ", {fetching} under way, {waiting} waiting")?;
        }
        let bytes: u64 = jobs.iter().map(|job| job.bytes).sum();
        let seconds = Duration::as_secs_f64(&self.begin.elapsed());
        write!(f, "; {bytes} bytes in {seconds:.1} s")
    }
}

impl Job {
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Done { .. } | State::Failed { .. })
    }

    fn elapsed(&self) -> u64 {
        let elapsed = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Job { url, bytes, millis, .. } = self;
        match &self.state {
            State::Waiting => write!(f, "{url}: waiting"),
            State::Fetching => write!(f, "{url}: {bytes} bytes so far, {millis} ms"),
            State::Done { status } => write!(f, "{url}: {status}, {bytes} bytes, {millis} ms"),
            State::Failed { reason } => write!(f, "{url}: {reason}"),
        }
    }
}
