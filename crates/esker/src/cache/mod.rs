//! The block cache: what was read from files, shared by all tables, within one byte budget.
//!
//! # Policy and structure
//! The cache is `quick_cache`'s sharded Clock-PRO relative (scan-resistant: what was seen once leaves first), weighted
//! by bytes. A hit takes a shared lock of one shard, sets a reference bit and clones one `Arc`; nothing is moved, so
//! readers of one shard do not wait for each other. Evicted blocks are freed outside the lock.
//!
//! In a full cache what enters has a thirtieth of the room and leaves it in the order of arrival, unless it is used
//! before. Where readers fill the cache with values that they meet once, that is a fraction of a second. What a job puts
//! in because readers will want it ([`insert_used`](BlockCache::insert_used)) therefore counts as used once.
//!
//! # Changes of the capacity
//! A change locks every shard for writing; what is too much leaves on the thread that asks, which may be the one that
//! leads all writers, and comes back from the device if the change is undone. What is asked for moves a little with
//! every table that is opened and every flush. So the capacity follows in steps of a 64th of the first capacity: down as
//! soon as less is asked for, up only when two steps more are.
//!
//! # Invariants
//! - A key names immutable bytes: tables are never rewritten under the same number, so entries are never stale.
//! - The capacity in force is never above the one asked for (rounded up to a multiple of the shards), and below it by
//!   less than two steps.
//! - Which shard and slot a key has depends on the key alone (no random hash seed), so that a simulated run evicts
//!   the same blocks every time.

mod bytes;

use std::hash::{BuildHasher, Hash, Hasher};

use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

pub use bytes::SharedBytes;
pub(crate) use bytes::zeroed;

/// Bytes that an entry costs besides its block: key, slot, list links, hash table and the `Arc`'s counters.
const ENTRY_OVERHEAD_BYTES: u64 = 128;

/// What a typical block weighs; only sizes the ghost list and the number of shards.
const TYPICAL_BLOCK_BYTES: u64 = 4 << 10;

/// The least that a shard should hold: several blocks of the largest common size.
const SHARD_BYTES_MIN: u64 = 1 << 20;

/// Steps that the first capacity has.
const STEPS: u64 = 64;

/// With 64 shards, 32 threads rarely meet on one lock.
const SHARDS_MAX: u64 = 64;

/// Names a block: the table's number and the block's offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockKey {
    /// The table's number, unique in the database for ever.
    pub table: u64,
    /// The block's offset in the file, in bytes.
    pub offset: u64,
}

impl Hash for BlockKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.table);
        state.write_u64(self.offset);
    }
}

/// A cached block: its bytes and four words in which its owner keeps what it knows about them (their kind and
/// layout), so that nothing is parsed again on a hit.
#[derive(Clone, Debug)]
pub struct CachedBlock {
    /// The block's bytes, decompressed.
    pub bytes: SharedBytes,
    /// The owner's words.
    pub words: [u32; 4],
}

#[derive(Clone, Copy, Debug)]
struct ByBytes;

impl Weighter<BlockKey, CachedBlock> for ByBytes {
    #[inline]
    fn weight(&self, _: &BlockKey, block: &CachedBlock) -> u64 {
        allocated_bytes(block.bytes.backing_len() as u64) + ENTRY_OVERHEAD_BYTES
    }
}

/// What an allocator takes for a buffer of `len` bytes with its two counters: sizes come in four steps for each
/// doubling (jemalloc's classes; others are as coarse or finer). A budget that ignores this is passed by a fifth.
fn allocated_bytes(len: u64) -> u64 {
    let bytes = (len + 16).max(128);
    let step = (bytes - 1).next_power_of_two() / 8;
    bytes.next_multiple_of(step.max(16))
}

/// Folds each word by a 128-bit multiplication: all bits of both words reach all bits of the result.
#[derive(Clone, Copy, Debug, Default)]
struct FoldHasher(u64);

impl Hasher for FoldHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FoldHash;

impl BuildHasher for FoldHash {
    type Hasher = FoldHasher;

    #[inline]
    fn build_hasher(&self) -> FoldHasher {
        FoldHasher::default()
    }
}

/// The block cache of a database. All methods may be called from any thread.
pub struct BlockCache {
    blocks: Cache<BlockKey, CachedBlock, ByBytes, FoldHash>,
    step_bytes: u64,
    capacity: Mutex<Capacity>,
}

/// Two numbers of bytes.
struct Capacity {
    wanted: u64,
    in_force: u64,
}

impl BlockCache {
    /// A cache that holds blocks of `capacity_bytes` in all, bookkeeping included. A block of more than a shard's
    /// part (the capacity over [`shards`](Self::shards)) is never kept.
    pub fn new(capacity_bytes: u64) -> Self {
        let capacity_bytes = capacity_bytes.max(1);
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        // Rounded down: the crate rounds up to a power of two, and shards should not become smaller than meant.
        let shards = 1 << shards.ilog2();
        let items = (capacity_bytes / TYPICAL_BLOCK_BYTES).max(32 * shards);
        let blocks = OptionsBuilder::new()
            .shards(shards as usize)
            .estimated_items_capacity(items as usize)
            .weight_capacity(capacity_bytes)
            .build()
            .map_or_else(
                |_| {
                    Cache::with(
                        items as usize,
                        capacity_bytes,
                        ByBytes,
                        FoldHash,
                        DefaultLifecycle::default(),
                    )
                },
                |options| Cache::with_options(options, ByBytes, FoldHash, DefaultLifecycle::default()),
            );
        Self {
            blocks,
            step_bytes: (capacity_bytes / STEPS).max(1),
            capacity: Mutex::new(Capacity {
                wanted: capacity_bytes,
                in_force: capacity_bytes,
            }),
        }
    }

    /// The block of this key, if it is here.
    #[inline]
    pub fn get(&self, key: BlockKey) -> Option<CachedBlock> {
        self.blocks.get(&key)
    }

    /// Whether the block is here, without counting as a use of it.
    pub fn contains(&self, key: BlockKey) -> bool {
        self.blocks.contains_key(&key)
    }

    /// Keeps a block; others may leave, or this one at once if it is too large.
    #[inline]
    pub fn insert(&self, key: BlockKey, block: CachedBlock) {
        self.blocks.insert(key, block);
    }

    /// Keeps a block as [`insert`](Self::insert) does, and as one that was used, so that it is not among the first to leave.
    pub fn insert_used(&self, key: BlockKey, block: CachedBlock) {
        self.blocks.insert(key, block);
        let _ = self.blocks.get(&key);
    }

    /// Gives up a block that nobody will ask for again; gives it, if it was here.
    pub fn remove(&self, key: BlockKey) -> Option<CachedBlock> {
        self.blocks.remove(&key).map(|(_, block)| block)
    }

    /// Gives up all blocks of tables that never came to be. Visits every entry: for what goes wrong.
    pub fn remove_tables(&self, tables: &[u64]) {
        self.blocks.retain(|key, _| !tables.contains(&key.table));
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.blocks.clear();
    }

    /// Gives `bytes` of the capacity away, to something that was just allocated beside the cache.
    pub fn shrink_by(&self, bytes: u64) {
        self.resize(|wanted| wanted.saturating_sub(bytes));
    }

    /// Takes back what [`shrink_by`](Self::shrink_by) gave away.
    pub fn grow_by(&self, bytes: u64) {
        self.resize(|wanted| wanted.saturating_add(bytes));
    }

    /// Changes the capacity, in bytes and in steps (see the module); what is too much leaves before this returns.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.resize(|_| capacity_bytes);
    }

    fn resize(&self, change: impl FnOnce(u64) -> u64) {
        let mut capacity = self.capacity.lock();
        capacity.wanted = change(capacity.wanted);
        let grows = capacity.wanted >= capacity.in_force.saturating_add(2 * self.step_bytes);
        if grows || capacity.wanted < capacity.in_force {
            capacity.in_force = (capacity.wanted - capacity.wanted % self.step_bytes).max(1);
            self.blocks.set_capacity(capacity.in_force);
        }
    }

    /// The capacity in force, in bytes (rounded up to a multiple of the number of shards).
    pub fn capacity(&self) -> u64 {
        self.blocks.capacity()
    }

    /// Bytes held now, bookkeeping included.
    pub fn used_bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Bytes that it could hold beside what it holds.
    pub fn free_bytes(&self) -> u64 {
        self.capacity().saturating_sub(self.used_bytes())
    }

    /// Blocks held now.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Parts that are locked one by one.
    pub fn shards(&self) -> usize {
        self.blocks.num_shards()
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockCache")
            .field("capacity_bytes", &self.capacity())
            .field("used_bytes", &self.used_bytes())
            .field("blocks", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
