//! The names of `parking_lot` and `arc_swap` over loom's types, as far as the crate uses them.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ::loom::sync::atomic::AtomicUsize;
use arc_swap::{Guard, RefCnt};

use super::Ordering;

/// A lock without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(::loom::sync::Mutex<T>);

/// Holds a [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'a, T>(Option<::loom::sync::MutexGuard<'a, T>>);

const HELD: &str = "a guard holds its lock, except while it waits";

impl<T> Mutex<T> {
    /// An open lock.
    pub fn new(value: T) -> Self {
        Self(::loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The lock, if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = self.0.try_lock().ok()?;
        Some(MutexGuard(Some(guard)))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect(HELD)
    }
}

/// Wakes threads that wait for a change of what a [`Mutex`] guards.
#[derive(Debug, Default)]
pub struct Condvar(::loom::sync::Condvar);

impl Condvar {
    /// Nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the lock go, waits to be notified, takes the lock again.
    #[track_caller]
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take().expect(HELD);
        guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// [`wait`](Self::wait): in a model no time passes, so nobody wakes by himself.
    #[track_caller]
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) {
        self.wait(guard);
    }

    /// Wakes one that waits.
    #[track_caller]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all that wait.
    #[track_caller]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `arc_swap`'s cell of an `Arc`.
pub type ArcSwap<T> = Cell<Arc<T>>;
/// `arc_swap`'s cell that may be empty.
pub type ArcSwapOption<T> = Cell<Option<Arc<T>>>;

/// A cell that promises what `arc_swap` documents, and nothing beyond: the operations on it have one order, each sees
/// what the one before left, a load acquires what the store of its value released. A load releases nothing, so a thread
/// that stores learns nothing from those who have loaded. The cell's own reference goes with the store that replaces it;
/// what was loaded lives on.
pub struct Cell<T> {
    /// Where in `values` the current one is. Read by an operation that also writes, which is never given an old value:
    /// `arc_swap` makes sure that what it has loaded is still there.
    current: AtomicUsize,
    /// All that was ever stored; only the current one is held. Never locked across an operation of loom's.
    values: std::sync::Mutex<Vec<Option<T>>>,
}

impl<T: RefCnt> Cell<T> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        Self {
            current: AtomicUsize::new(0),
            values: std::sync::Mutex::new(vec![Some(value)]),
        }
    }

    fn values(&self) -> std::sync::MutexGuard<'_, Vec<Option<T>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, counted.
    #[track_caller]
    pub fn load_full(&self) -> T {
        let at = self.current.fetch_add(0, Ordering::Acquire);
        self.values()[at].clone().expect("the current value is held")
    }

    /// The value, pinned.
    #[track_caller]
    pub fn load(&self) -> Guard<T> {
        Guard::from_inner(self.load_full())
    }

    /// Replaces the value, and gives the one before.
    #[track_caller]
    pub fn swap(&self, value: T) -> T {
        let at = {
            let mut values = self.values();
            values.push(Some(value));
            values.len() - 1
        };
        let old = self.current.swap(at, Ordering::AcqRel);
        self.values()[old].take().expect("the current value is held")
    }

    /// Replaces the value.
    #[track_caller]
    pub fn store(&self, value: T) {
        drop(self.swap(value));
    }
}

impl<T> Cell<Arc<T>> {
    /// A cell that holds `value`.
    pub fn from_pointee(value: T) -> Self {
        Self::new(Arc::new(value))
    }
}

impl<T: RefCnt + Default> Default for Cell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cell")
    }
}
