//! The storage that a machine works in for one turn, kept by the thread in between.

use std::cell::Cell;

use hyperman_http1::Loan;
use hyperman_transport::loan;

/// What is kept of a write buffer between turns, 64 KiB; a larger one is freed.
const KEPT: usize = 64 << 10;

thread_local! {
    static WRITE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(crate) fn take() -> Loan {
    let write = WRITE.try_with(Cell::take).unwrap_or_default();
    Loan { read: loan::take(), write, ..Loan::default() }
}

pub(crate) fn give_back(loan: Loan) {
    loan::give_back(loan.read);
    let mut write = loan.write;
    write.clear();
    if write.capacity() > 0 && write.capacity() <= KEPT {
        let _ = WRITE.try_with(|shelf| shelf.set(write));
    }
}
