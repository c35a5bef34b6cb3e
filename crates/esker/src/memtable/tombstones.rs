//! The range tombstones of a memtable: a list that grows, and its fragments, cut anew when someone asks.
//!
//! Range deletes are rare, so the common question ("are there any?") is one relaxed load. The fragments are cached
//! until the next range delete; cutting costs O(n log n) in the memtable's range deletes.
//!
//! Ordering: a reader's sequence number was published after the inserts that it may see, so its relaxed load of
//! `count` sees them; `cut_count` is stored after the fragments that it counts.

use std::sync::Arc;

use crate::key::{FragmentedTombstones, KeyOrder, RangeTombstone, Sequence};
use crate::sync::{ArcSwap, AtomicUsize, Mutex, Ordering};

#[derive(Default)]
pub(super) struct Tombstones {
    count: AtomicUsize,
    bytes: AtomicUsize,
    list: Mutex<Vec<RangeTombstone>>,
    cut: ArcSwap<FragmentedTombstones>,
    cut_count: AtomicUsize,
}

impl Tombstones {
    pub(super) fn insert(&self, sequence: Sequence, start: &[u8], end: &[u8]) {
        let tombstone = RangeTombstone {
            start: start.to_vec(),
            end: end.to_vec(),
            sequence,
        };
        let bytes = size_of::<RangeTombstone>() + start.len() + end.len();
        // Once in the list, and about once in the fragments.
        self.bytes.fetch_add(2 * bytes, Ordering::Relaxed);
        let mut list = self.list.lock();
        list.push(tombstone);
        self.count.store(list.len(), Ordering::Release);
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn fragments(&self, order: &KeyOrder) -> Arc<FragmentedTombstones> {
        self.refresh(order);
        self.cut.load_full()
    }

    #[inline]
    pub(super) fn max_covering(&self, order: &KeyOrder, user_key: &[u8], sequence_max: Sequence) -> Sequence {
        if self.count() == 0 {
            return 0;
        }
        self.refresh(order);
        self.cut.load().max_covering(order, user_key, sequence_max)
    }

    #[inline]
    fn refresh(&self, order: &KeyOrder) {
        if self.cut_count.load(Ordering::Acquire) < self.count() {
            self.cut_again(order);
        }
    }

    #[cold]
    fn cut_again(&self, order: &KeyOrder) {
        let list = self.list.lock();
        if self.cut_count.load(Ordering::Relaxed) < list.len() {
            self.cut
                .store(Arc::new(FragmentedTombstones::from_slice(order, &list)));
            self.cut_count.store(list.len(), Ordering::Release);
        }
    }
}
