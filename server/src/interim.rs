//! 1xx answers that a handler sends before its final one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, StatusCode};

/// Sends 1xx answers, e.g. 103 (Early Hints, RFC 8297), while the handler still works on the final one. An extension of
/// each request where [`Config::interim_extension`](crate::Config::interim_extension) asks for it.
///
/// They leave the next time the handler is pending. What comes after the final answer is dropped, as is what a peer
/// that speaks HTTP/1.0 would not understand.
#[derive(Clone, Debug, Default)]
pub struct Interim(Arc<Mutex<VecDeque<(StatusCode, HeaderMap)>>>);

impl Interim {
    /// Queues one 1xx answer. A status that is not 102 to 199, or a field that cannot be written, is passed over with
    /// a warning.
    pub fn send(&self, status: StatusCode, headers: HeaderMap) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back((status, headers));
    }

    pub(crate) fn take(&self) -> Option<(StatusCode, HeaderMap)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}
