//! Memory of a memtable: bump allocation in chunks that outlive it.
//!
//! A fresh page costs a page fault (about 0.25 us per 4 KiB, more than copying the rows into it), so chunks go back to a
//! [`MemtableArenaPool`] when their memtable is dropped and serve the next one.
//!
//! An arena fills two chunks side by side, one with rows and one with long values, so that rows lie densely.
//!
//! The chunks of each region double in size from 4 KiB up to a sixteenth of the memtable's budget, so that an idle
//! memtable holds little and a busy one wastes at most twice that much. What is larger than a quarter of the largest
//! chunk gets an allocation of its own, which is not pooled.
//!
//! Thread safety: `alloc` may be called by any number of threads; within a chunk it is one atomic add, and only
//! taking a new chunk locks.
//!
//! Invariants:
//! 1. The bytes `[HEAD, used)` of a chunk are handed out, each to one caller; `used` only grows (it may pass the
//!    chunk's end: those allocations failed and took nothing).
//! 2. A chunk is in exactly one place: the free lists of a pool, or the list of one arena.
//! 3. Nothing returns to the pool while the arena lives, so what `alloc` gives is valid as long as the arena.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};

/// log2 of the smallest chunk.
const CHUNK_BITS_MIN: usize = 12;
/// log2 of the largest chunk.
const CHUNK_BITS_MAX: usize = 21;
const CLASSES: usize = CHUNK_BITS_MAX - CHUNK_BITS_MIN + 1;
/// Alignment of what is allocated.
pub(super) const ALIGN: usize = 8;

struct Chunk {
    base: NonNull<u8>,
    layout: Layout,
    /// The size class whose free list it returns to; none: an allocation of its own.
    class: Option<usize>,
}

// SAFETY: a chunk owns its memory, as a `Box<[u8]>` does.
unsafe impl Send for Chunk {}

impl Chunk {
    fn new(bytes: usize, class: Option<usize>) -> Self {
        // Pages of their own, so that no other allocation shares a chunk's cache lines.
        let align = if class.is_some() { 1 << CHUNK_BITS_MIN } else { 64 };
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            handle_alloc_error(Layout::new::<u8>());
        };
        // SAFETY: no layout made here is empty (the smallest is a header and a row's header).
        let Some(base) = NonNull::new(unsafe { alloc(layout) }) else {
            handle_alloc_error(layout);
        };
        Self { base, layout, class }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and owned.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

#[derive(Default)]
struct FreeLists {
    bytes: usize,
    by_class: [Vec<Chunk>; CLASSES],
}

/// Chunks between two memtables. Shared by all memtables of a database; what it keeps is bounded.
pub struct MemtableArenaPool {
    bytes_max: usize,
    // Never held across an operation of `crate::sync`, so that loom need not know it.
    free: parking_lot::Mutex<FreeLists>,
}

impl MemtableArenaPool {
    /// A pool that keeps up to `bytes_max` bytes of unused chunks (0: none, every chunk is fresh).
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            free: parking_lot::Mutex::new(FreeLists::default()),
        })
    }

    /// Bytes of unused chunks that it keeps now: memory that counts against the database's budget.
    pub fn free_bytes(&self) -> usize {
        self.free.lock().bytes
    }

    /// Frees unused chunks until at most `bytes` are kept.
    pub fn shrink_to(&self, bytes: usize) {
        let mut dropped = Vec::new();
        {
            let mut free = self.free.lock();
            for class in (0..CLASSES).rev() {
                while free.bytes > bytes {
                    let Some(chunk) = free.by_class[class].pop() else {
                        break;
                    };
                    free.bytes -= chunk.layout.size();
                    dropped.push(chunk);
                }
            }
        }
        drop(dropped);
    }

    fn take(&self, class: usize) -> Chunk {
        let kept = {
            let mut free = self.free.lock();
            let kept = free.by_class[class].pop();
            free.bytes -= kept.as_ref().map_or(0, |chunk| chunk.layout.size());
            kept
        };
        kept.unwrap_or_else(|| Chunk::new(1 << (CHUNK_BITS_MIN + class), Some(class)))
    }

    fn give(&self, chunk: Chunk) {
        let Some(class) = chunk.class else {
            return;
        };
        let mut free = self.free.lock();
        if free.bytes + chunk.layout.size() <= self.bytes_max {
            free.bytes += chunk.layout.size();
            free.by_class[class].push(chunk);
        } else {
            drop(free);
            drop(chunk);
        }
    }
}

impl std::fmt::Debug for MemtableArenaPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemtableArenaPool")
            .field("bytes_max", &self.bytes_max)
            .field("free_bytes", &self.free_bytes())
            .finish()
    }
}

/// Lies at the base of the chunk that is being filled.
struct ChunkHead {
    used: AtomicUsize,
    len: usize,
}

const HEAD: usize = size_of::<ChunkHead>().next_multiple_of(ALIGN);

/// What is filled side by side: rows must lie densely, values (long ones) needn't.
#[derive(Clone, Copy)]
enum Region {
    Rows,
    Values,
}

const REGIONS: usize = 2;

#[derive(Default)]
struct Held {
    chunks: Vec<Chunk>,
    /// Chunks taken for each region.
    taken: [usize; REGIONS],
}

/// The memory of one memtable.
pub(super) struct Arena {
    /// The chunk that is being filled, for each region; null: none yet.
    current: [AtomicPtr<ChunkHead>; REGIONS],
    held_bytes: AtomicUsize,
    held: Mutex<Held>,
    class_max: usize,
    pool: Arc<MemtableArenaPool>,
}

impl Arena {
    /// An arena for a memtable of about `budget_bytes`. Allocates nothing yet.
    pub(super) fn new(pool: &Arc<MemtableArenaPool>, budget_bytes: usize) -> Self {
        let bits = (budget_bytes / 16).max(1).ilog2() as usize;
        Self {
            current: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
            held_bytes: AtomicUsize::new(0),
            held: Mutex::new(Held::default()),
            class_max: bits.clamp(CHUNK_BITS_MIN, CHUNK_BITS_MAX) - CHUNK_BITS_MIN,
            pool: Arc::clone(pool),
        }
    }

    /// `bytes` of memory with unknown content, aligned to [`ALIGN`], valid as long as the arena, for the caller alone.
    #[inline]
    pub(super) fn alloc(&self, bytes: usize) -> NonNull<u8> {
        self.alloc_in(Region::Rows, bytes)
    }

    /// [`alloc`](Self::alloc) for a value, apart from the rows.
    #[inline]
    pub(super) fn alloc_value(&self, bytes: usize) -> NonNull<u8> {
        self.alloc_in(Region::Values, bytes)
    }

    #[inline]
    fn alloc_in(&self, region: Region, bytes: usize) -> NonNull<u8> {
        let bytes = bytes.next_multiple_of(ALIGN);
        let current = self.current[region as usize].load(Ordering::Acquire);
        match self.bump(current, bytes) {
            Some(at) => at,
            None => self.alloc_slow(region, bytes),
        }
    }

    #[inline]
    fn bump(&self, current: *mut ChunkHead, bytes: usize) -> Option<NonNull<u8>> {
        if current.is_null() {
            return None;
        }
        // SAFETY: `current` is the head of a chunk in `held`, written before it was stored there (release, acquire),
        // and invariant 3 keeps it alive.
        let (used, len) = unsafe { (&(*current).used, (*current).len) };
        // Looking first keeps `used` from running away when large rows are refused again and again.
        if used.load(Ordering::Relaxed) + bytes > len {
            return None;
        }
        let at = used.fetch_add(bytes, Ordering::Relaxed);
        if at + bytes > len {
            return None;
        }
        // SAFETY: `at + bytes <= len`, so the result lies in the chunk; the pointer's provenance is the whole chunk.
        NonNull::new(unsafe { current.cast::<u8>().add(at) })
    }

    #[cold]
    fn alloc_slow(&self, region: Region, bytes: usize) -> NonNull<u8> {
        if bytes > 1 << (CHUNK_BITS_MIN + self.class_max - 2) {
            let chunk = Chunk::new(bytes, None);
            let base = chunk.base;
            self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.held.lock().chunks.push(chunk);
            return base;
        }
        let mut held = self.held.lock();
        loop {
            let current = &self.current[region as usize];
            // Another thread may have brought a chunk meanwhile.
            if let Some(at) = self.bump(current.load(Ordering::Acquire), bytes) {
                return at;
            }
            let fitting = (4 * bytes).next_power_of_two().ilog2() as usize;
            let class = held.taken[region as usize]
                .max(fitting.saturating_sub(CHUNK_BITS_MIN))
                .min(self.class_max);
            let chunk = self.pool.take(class);
            let head = chunk.base.cast::<ChunkHead>().as_ptr();
            let len = chunk.layout.size();
            // SAFETY: the chunk is ours alone, page-aligned, and larger than its head.
            unsafe {
                head.write(ChunkHead {
                    used: AtomicUsize::new(HEAD),
                    len,
                });
            }
            self.held_bytes.fetch_add(len, Ordering::Relaxed);
            held.chunks.push(chunk);
            held.taken[region as usize] += 1;
            current.store(head, Ordering::Release);
        }
    }

    /// Bytes of memory held, used or not.
    #[inline]
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Bytes handed out, about: the ends of full chunks count as used.
    pub(super) fn used_bytes(&self) -> usize {
        let unused = self.current.each_ref().map(|current| {
            let current = current.load(Ordering::Acquire);
            if current.is_null() {
                return 0;
            }
            // SAFETY: as in `bump`.
            let (used, len) = unsafe { ((*current).used.load(Ordering::Relaxed), (*current).len) };
            len.saturating_sub(used)
        });
        self.held_bytes().saturating_sub(unused.iter().sum())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let chunks = std::mem::take(&mut self.held.lock().chunks);
        // The one filled last is the warmest: the next memtable takes it first.
        for chunk in chunks {
            self.pool.give(chunk);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_back_to_the_next_arena() {
        let pool = MemtableArenaPool::new(1 << 20);
        let arena = Arena::new(&pool, 256 << 10);
        let first = arena.alloc(100);
        let held = arena.held_bytes();
        assert_eq!(held, 4096, "an idle memtable holds little");
        drop(arena);
        assert_eq!(pool.free_bytes(), held);
        let again = Arena::new(&pool, 256 << 10);
        assert_eq!(again.alloc(100), first);
        assert_eq!(pool.free_bytes(), 0);
    }

    #[test]
    fn the_pool_keeps_no_more_than_its_bound() {
        let pool = MemtableArenaPool::new(8192);
        let arenas: Vec<_> = (0..4).map(|_| Arena::new(&pool, 4096)).collect();
        for arena in &arenas {
            arena.alloc(8);
        }
        drop(arenas);
        assert_eq!(pool.free_bytes(), 8192);
        pool.shrink_to(5000);
        assert_eq!(pool.free_bytes(), 4096);
    }

    #[test]
    fn large_rows_get_memory_of_their_own() {
        let pool = MemtableArenaPool::new(1 << 20);
        let arena = Arena::new(&pool, 64 << 10);
        arena.alloc(8);
        let before = arena.used_bytes();
        arena.alloc(100_000);
        assert_eq!(arena.held_bytes(), 4096 + 100_000);
        assert_eq!(arena.used_bytes(), before + 100_000);
        drop(arena);
        assert_eq!(pool.free_bytes(), 4096, "only the chunk is kept");
    }

    #[test]
    fn rows_stay_dense_whatever_lies_between_and_both_regions_count() {
        let pool = MemtableArenaPool::new(1 << 20);
        let arena = Arena::new(&pool, 256 << 10);
        let rows: Vec<_> = (0..4)
            .map(|_| {
                arena.alloc_value(800);
                arena.alloc(56).as_ptr().addr()
            })
            .collect();
        assert!(rows.windows(2).all(|pair| pair[1] - pair[0] == 56), "{rows:?}");
        assert_eq!(arena.held_bytes(), 2 * 4096);
        assert_eq!(arena.used_bytes(), 4 * (56 + 800) + 2 * HEAD);
        drop(arena);
        assert_eq!(pool.free_bytes(), 2 * 4096);
    }

    #[test]
    fn no_byte_is_handed_out_twice() {
        let pool = MemtableArenaPool::new(1 << 20);
        let arena = Arena::new(&pool, 64 << 10);
        let rounds = if cfg!(miri) { 40 } else { 3000 };
        std::thread::scope(|scope| {
            for thread in 0..3_u8 {
                let arena = &arena;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for round in 0..rounds {
                        let len = 1 + (round * 37) % 300;
                        let at = match round % 2 {
                            0 => arena.alloc(len).as_ptr(),
                            _ => arena.alloc_value(len).as_ptr(),
                        };
                        assert_eq!(at.addr() % ALIGN, 0);
                        // SAFETY: `len` bytes for this thread alone.
                        unsafe { at.write_bytes(thread, len) };
                        mine.push((at, len));
                    }
                    for (at, len) in mine {
                        // SAFETY: written above; nobody else may have touched it, which is what is tested.
                        let bytes = unsafe { std::slice::from_raw_parts(at, len) };
                        assert!(bytes.iter().all(|&byte| byte == thread));
                    }
                });
            }
        });
        assert!(arena.held_bytes() >= arena.used_bytes());
    }
}
