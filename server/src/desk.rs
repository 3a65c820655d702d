//! What belongs to a thread and is lent to a connection for one turn: buffers, parsed heads, the date.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime};

use hyperman_http1::{HeadCache, Loan};

thread_local! {
    static DESK: Cell<Option<Box<Desk>>> = const { Cell::new(None) };
}

/// See the module's words.
pub(crate) struct Desk {
    pub(crate) loan: Loan,
    pub(crate) loan2: hyperman_http2::Loan,
    date_until: Option<Instant>,
}

impl Desk {
    fn new() -> Box<Self> {
        // Keys that no client knows: what lands in which place of the cache must not be its choice.
        let seed = RandomState::new().build_hasher().finish();
        let loan = Loan { heads: Some(Box::new(HeadCache::new(seed))), ..Loan::default() };
        Box::new(Desk { loan, loan2: hyperman_http2::Loan::default(), date_until: None })
    }
}

/// Takes the thread's desk. A connection that is polled inside another one's turn gets a desk of its own.
#[inline]
pub(crate) fn take(now: Instant) -> Box<Desk> {
    let mut desk = DESK.try_with(Cell::take).ok().flatten().unwrap_or_else(Desk::new);
    if desk.date_until.is_none_or(|until| now >= until) {
        render_date(&mut desk, now);
    }
    desk
}

/// Puts the desk back for the next connection of this thread.
#[inline]
pub(crate) fn give_back(mut desk: Box<Desk>) {
    // Bytes of one connection must never be there for the next one.
    desk.loan.read.clear();
    desk.loan.write.clear();
    let _ = DESK.try_with(|place| place.set(Some(desk)));
}

/// Renders the date (RFC 9110 §6.6.1), which holds until the second is over.
#[cold]
fn render_date(desk: &mut Desk, now: Instant) {
    let time = SystemTime::now();
    let text = httpdate::fmt_http_date(time);
    if let Ok(date) = <[u8; 29]>::try_from(text.as_bytes()) {
        desk.loan.date = date;
        desk.loan2.date = date;
    }
    let into_second = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    desk.date_until = Some(now + Duration::from_nanos(1_000_000_000 - u64::from(into_second)));
}
