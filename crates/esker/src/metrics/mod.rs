//! Counters of what the engine did, read by `stats`, properties and the lab.
//!
//! All are monotone and relaxed: they are statistics, never synchronisation.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The live counters of a database.
        #[derive(Debug, Default)]
        pub struct Metrics { $($(#[$doc])* pub $name: Counter,)* }

        impl Metrics {
            /// Every counter with its name, in declaration order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.get()),)*]
            }
        }
    };
}

/// A monotone counter.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The count.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

counters! {
    /// Mutations committed.
    writes,
    /// Bytes of batches committed.
    write_bytes,
    /// Commit groups.
    commit_groups,
    /// Bytes appended to the WAL, framing included.
    wal_bytes,
    /// Syncs of the WAL.
    wal_syncs,
    /// Time that writes were held back, in microseconds.
    stall_us,
    /// Flushes finished.
    flushes,
    /// Bytes of SSTables written by flushes.
    flush_bytes,
    /// Compactions finished (trivial moves not counted).
    compactions,
    /// Of these, those of tables with many tombstones.
    compactions_for_tombstones,
    /// Of these, those of tables that were too old.
    compactions_for_age,
    /// Files moved to another level without rewriting them.
    trivial_moves,
    /// Bytes of SSTables read by compactions.
    compaction_read_bytes,
    /// Bytes of SSTables written by compactions.
    compaction_write_bytes,
    /// Entries that compactions dropped.
    compaction_dropped,
    /// Merges that the operator refused during compactions; their operands stay.
    merge_failures,
    /// Point reads.
    gets,
    /// Point reads that found a value.
    gets_found,
    /// Blocks found in the block cache.
    cache_hits,
    /// Blocks read from files for users.
    cache_misses,
    /// Blocks that flushes and compactions put into the block cache as they wrote them.
    blocks_warmed,
    /// Filter checks that spared a block read.
    filter_negatives,
    /// Filter checks that did not, though the key was not in the file.
    filter_false_positives,
    /// Filter checks that spared a prefix scan a look into a table.
    prefix_filter_negatives,
    /// Iterator positionings.
    seeks,
    /// Iterators made.
    iterators_opened,
    /// Iterators dropped.
    iterators_closed,
    /// Batches found damaged and skipped by recovery.
    recovery_skipped,
    /// WAL bytes that recovery could not use.
    recovery_lost_bytes,
}
