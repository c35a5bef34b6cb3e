//! Ending a wait from another thread.

use std::fmt;
use std::sync::Arc;

use esker::sync::{AtomicBool, Mutex, Ordering};

use super::waits::Seat;

/// Ends waits for locks of one transaction object, from any thread: what a program does with a query that its user has given up.
///
/// A request stays until it is [cleared](Self::clear), so that none is lost which comes shortly before a wait begins. It keeps nobody
/// from a lock that is free, and from nothing but locks.
#[derive(Clone, Default)]
pub struct Interrupter(Arc<State>);

#[derive(Default)]
struct State {
    is_requested: AtomicBool,
    /// Where the transaction waits, if it does.
    seat: Mutex<Option<Arc<Seat>>>,
}

impl Interrupter {
    /// The lock that is waited for is refused, with [`Interrupted`](esker::ErrorKind::Interrupted); so is each that would have to be
    /// waited for from now on.
    pub fn request(&self) {
        self.0.is_requested.swap(true, Ordering::AcqRel);
        // Who sits down behind this line sees the request.
        let seat = self.0.seat.lock().clone();
        if let Some(seat) = seat {
            // Who has looked already is asleep once its seat can be had.
            drop(seat.word.lock());
            seat.wake.notify_one();
        }
    }

    /// Lets waits go on as if nobody had asked. What those who asked before did before that is seen from here on, so that who looks
    /// behind this for a reason to give up finds theirs.
    pub fn clear(&self) {
        // A store alone would not wait for what it overwrites.
        self.0.is_requested.swap(false, Ordering::AcqRel);
    }

    /// Whether waits are refused.
    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Acquire)
    }

    /// The transaction begins to wait there, or, with none, has ended to.
    pub(super) fn watch(&self, seat: Option<&Arc<Seat>>) {
        *self.0.seat.lock() = seat.map(Arc::clone);
    }
}

impl fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupter")
            .field("is_requested", &self.is_requested())
            .finish()
    }
}
