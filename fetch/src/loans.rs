//! What a machine works with for one turn, kept by the thread in between: storage, and the heads that were read before.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};

use hyperman_http1::{HeadCache, Loan};

/// What is kept of a buffer between turns, 64 KiB; a larger one is freed.
const KEPT: usize = 64 << 10;

thread_local! {
    static SHELF: Cell<Option<Box<Loan>>> = const { Cell::new(None) };
}

/// The thread's storage; other storage where a turn happens within a turn.
#[inline]
pub(crate) fn take() -> Box<Loan> {
    SHELF.try_with(Cell::take).ok().flatten().unwrap_or_else(make)
}

#[cold]
fn make() -> Box<Loan> {
    let heads = Box::new(HeadCache::new(RandomState::new().hash_one(0)));
    Box::new(Loan { heads: Some(heads), ..Loan::default() })
}

/// Keeps the storage for the next turn.
#[inline]
pub(crate) fn give_back(mut loan: Box<Loan>) {
    loan.read.clear();
    loan.write.clear();
    if loan.read.capacity() <= KEPT && loan.write.capacity() <= KEPT {
        let _ = SHELF.try_with(|shelf| shelf.set(Some(loan)));
    }
}
