//! A sorted array beside a skiplist's tall nodes, from which searches start.
//!
//! The upper levels of a skiplist are its slow ones: every step is a cache miss and, since nodes lie wherever their
//! rows came to lie, a TLB miss. A guide holds the tall nodes (one in sixteen) with their heads in a dense array,
//! which a binary search crosses within a few pages; the search then goes on from the tall node before its target,
//! a few steps away.
//!
//! A guide is a hint and is never updated: nodes inserted later are simply not in it. When the list has twice as
//! many tall nodes as its guide, a new one is built by walking their level, a few nodes with each tall insert, so
//! that no single insert pays for it. Old guides stay in the arena until the memtable is dropped: readers may be in
//! them, and together they are no larger than the newest.
//!
//! Invariants:
//! 1. A published guide is immutable, and its heads ascend.
//! 2. Its rows are nodes of the list that were reached on `GUIDE_LEVEL`, so they have that level's link.
//! 3. `heads[i]` is the head of `rows[i]`'s key. So if it is below a target's head, the node is before the target.

use std::ptr::NonNull;

use super::arena::Arena;
use super::row::Row;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// Nodes that reach this level are tall.
pub(super) const GUIDE_LEVEL: usize = 2;
/// Tall nodes at which the first guide is built (few in tests, so that small lists have one).
const TALL_MIN: u64 = if cfg!(test) { 2 } else { 16 };
/// Tall nodes that one tall insert looks at on behalf of the next guide.
const STEPS: usize = if cfg!(test) { 2 } else { 16 };

/// In the arena: this, then `capacity` heads, then as many rows, of each of which `len` are set.
struct Array {
    len: usize,
    capacity: usize,
}

/// A guide that is being built; `at` is the last node it holds.
struct Work {
    array: NonNull<Array>,
    at: Row,
}

/// The guide of a list, and the next one.
pub(super) struct Guide {
    current: AtomicPtr<Array>,
    tall: AtomicU64,
    /// Number of tall nodes at which the next guide is begun; only changed under the lock of `work`.
    due: AtomicU64,
    // Only ever tried, never waited for.
    work: parking_lot::Mutex<Option<Work>>,
}

/// Where an array's heads and rows begin.
///
/// # Safety
/// `array` came from `Guide::begin`.
unsafe fn parts(array: *mut Array) -> (*mut u64, *mut Row) {
    // SAFETY: the allocation holds the header and twice `capacity` words behind it, and the pointer spans all of it.
    unsafe {
        let heads = array.add(1).cast::<u64>();
        (heads, heads.add((*array).capacity).cast::<Row>())
    }
}

impl Guide {
    pub(super) fn new() -> Self {
        Self {
            current: AtomicPtr::new(std::ptr::null_mut()),
            tall: AtomicU64::new(0),
            due: AtomicU64::new(TALL_MIN),
            work: parking_lot::Mutex::new(None),
        }
    }

    /// A tall node before the target whose head this is: the last one that the guide knows. None behind the end of
    /// the guide, where ascending inserts pile up. O(log n), no node is read.
    #[inline]
    pub(super) fn start(&self, head: u64) -> Option<Row> {
        let array = self.current.load(Ordering::Acquire);
        if array.is_null() {
            return None;
        }
        // SAFETY: published (release) after `len` heads and rows were written, and never changed since.
        unsafe {
            let (heads, rows) = parts(array);
            let heads = std::slice::from_raw_parts(heads, (*array).len);
            let behind = heads.partition_point(|&other| other < head);
            if behind == 0 || behind == heads.len() {
                return None;
            }
            Some(*rows.add(behind - 1))
        }
    }

    /// Called when a tall node was inserted: does its share of building the next guide, if one is due. `next` gives
    /// the next node on `GUIDE_LEVEL` (or null), `head_of` the head of a node's key.
    pub(super) fn grow(
        &self,
        arena: &Arena,
        root: Row,
        next: impl Fn(Row) -> Row,
        head_of: impl Fn(Row) -> u64,
    ) {
        let tall = self.tall.fetch_add(1, Ordering::Relaxed) + 1;
        if tall < self.due.load(Ordering::Relaxed) {
            return;
        }
        // Whoever holds the lock does the work; missing a turn costs nothing.
        let Some(mut work) = self.work.try_lock() else {
            return;
        };
        if tall < self.due.load(Ordering::Relaxed) {
            return;
        }
        let building = work.get_or_insert_with(|| Work {
            array: Self::begin(arena, tall),
            at: root,
        });
        let array = building.array.as_ptr();
        // SAFETY: until it is published, the array belongs to who holds the lock.
        let (heads, rows, capacity) = unsafe {
            let (heads, rows) = parts(array);
            (heads, rows, (*array).capacity)
        };
        for _ in 0..STEPS {
            building.at = next(building.at);
            // SAFETY: as above; `len < capacity` before each write.
            unsafe {
                if building.at.is_null() || (*array).len == capacity {
                    self.due.store(2 * tall, Ordering::Relaxed);
                    self.current.store(array, Ordering::Release);
                    *work = None;
                    return;
                }
                heads.add((*array).len).write(head_of(building.at));
                rows.add((*array).len).write(building.at);
                (*array).len += 1;
            }
        }
    }

    /// An empty array for `tall` nodes, and those that are inserted while it is built (one for `STEPS` steps, and
    /// some for the turns that writers miss).
    fn begin(arena: &Arena, tall: u64) -> NonNull<Array> {
        let capacity = tall as usize + tall as usize / 8 + 16;
        let bytes = size_of::<Array>() + capacity * (size_of::<u64>() + size_of::<Row>());
        let array = arena.alloc(bytes).cast::<Array>();
        // SAFETY: the memory is ours alone, aligned, and large enough.
        unsafe { array.write(Array { len: 0, capacity }) };
        array
    }
}

// SAFETY: the pointers lead into the list's arena; `work` is under a lock, published arrays are immutable.
unsafe impl Send for Guide {}
// SAFETY: as above.
unsafe impl Sync for Guide {}
