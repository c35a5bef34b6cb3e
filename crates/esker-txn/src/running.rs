//! The list of transactions that run: each keeps an entry of its own up to date, and whoever lists them reads these.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use esker::sync::Mutex;
use esker_env::Clock;

use crate::lock::TransactionId;

/// A transaction that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTransaction {
    /// Its number.
    pub id: TransactionId,
    /// What its options call it.
    pub label: Option<Arc<str>>,
    /// The name that it was given.
    pub name: Option<Arc<[u8]>>,
    /// Whether it is prepared. Those that no object has are not listed here, but by
    /// [`prepared`](crate::TransactionDb::prepared).
    pub is_prepared: bool,
    /// Time since it began.
    pub age: Duration,
    /// Mutations that it would commit.
    pub writes: u64,
    /// Locks that it holds; without locks: keys and ranges that its commit will ask about.
    pub locks: u64,
}

/// What a transaction says of itself. One object's transactions share an entry, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// 0: none runs.
    id: AtomicU64,
    /// By the clock, in microseconds.
    since_us: AtomicU64,
    writes: AtomicU64,
    locks: AtomicU64,
    is_prepared: AtomicBool,
    names: Mutex<EntryNames>,
}

#[derive(Clone, Debug, Default)]
struct EntryNames {
    label: Option<Arc<str>>,
    name: Option<Arc<[u8]>>,
}

impl Entry {
    /// For the transaction `id`, which begins now.
    pub(crate) fn begin(&self, id: TransactionId, now: Duration) {
        self.since_us.store(micros(now), Ordering::Relaxed);
        self.count(0, 0);
        self.id.store(id.0, Ordering::Release);
    }

    pub(crate) fn set_label(&self, label: Option<Arc<str>>) {
        self.names.lock().label = label;
    }

    pub(crate) fn set_name(&self, name: Option<Arc<[u8]>>) {
        self.names.lock().name = name;
    }

    pub(crate) fn set_prepared(&self, is_prepared: bool) {
        self.is_prepared.store(is_prepared, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, writes: usize, locks: usize) {
        self.writes.store(writes as u64, Ordering::Relaxed);
        self.locks.store(locks as u64, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.id.store(0, Ordering::Release);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The entries of all transaction objects, by their numbers, and the numbers of transactions.
#[derive(Debug)]
pub(crate) struct Running {
    clock: Arc<dyn Clock>,
    entries: Mutex<BTreeMap<u64, Arc<Entry>>>,
    last_id: AtomicU64,
}

impl Running {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            entries: Mutex::default(),
            last_id: AtomicU64::new(0),
        }
    }

    /// A number that no other transaction has had: 1 or more.
    pub(crate) fn next_id(&self) -> TransactionId {
        TransactionId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// An entry for a transaction object; `object` is any number that no other has.
    pub(crate) fn add(&self, object: TransactionId) -> Arc<Entry> {
        let entry = Arc::<Entry>::default();
        self.entries.lock().insert(object.0, Arc::clone(&entry));
        entry
    }

    pub(crate) fn remove(&self, object: TransactionId) {
        self.entries.lock().remove(&object.0);
    }

    /// All that run, in the order in which they began.
    pub(crate) fn list(&self) -> Vec<RunningTransaction> {
        let now = micros(self.now());
        let mut listed: Vec<RunningTransaction> = self
            .entries
            .lock()
            .values()
            .filter_map(|entry| match entry.id.load(Ordering::Acquire) {
                0 => None,
                id => Some(entry.names.lock().clone()).map(|EntryNames { label, name }| RunningTransaction {
                    id: TransactionId(id),
                    label,
                    name,
                    is_prepared: entry.is_prepared.load(Ordering::Relaxed),
                    age: Duration::from_micros(now.saturating_sub(entry.since_us.load(Ordering::Relaxed))),
                    writes: entry.writes.load(Ordering::Relaxed),
                    locks: entry.locks.load(Ordering::Relaxed),
                }),
            })
            .collect();
        listed.sort_by_key(|running| running.id);
        listed
    }
}
