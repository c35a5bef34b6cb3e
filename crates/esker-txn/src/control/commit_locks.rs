//! Locks under which commits of optimistic transactions ask and write.
//!
//! **Whoever commits a key holds the lock of its shard from before it asks who has written it until its own write is
//! published.** So of two that have touched the same key one comes first, and the other sees it. Shards are taken in rising
//! order, so nobody waits in a circle; a range takes all of them. They are held across the sync of a durable commit: commits
//! of keys in different shards share it, those of the same shard follow each other.

use esker::Mutation;
use esker::sync::{Mutex, MutexGuard};

use crate::lock::hash_key;

/// With eight that commit a key each at the same time, two of them meet in one of 37 cases.
const SHARDS: usize = 1024;

/// The shards.
pub(crate) struct CommitLocks {
    shards: Box<[Mutex<()>]>,
}

/// The shards that a commit needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Needed {
    shards: Vec<u16>,
    all: bool,
}

impl Needed {
    pub(super) fn add(&mut self, hash: u64) {
        // The shift leaves 10 bits.
        self.shards.push((hash >> (64 - SHARDS.ilog2())) as u16);
    }

    pub(super) fn add_mutation(&mut self, mutation: Mutation<'_>) {
        match mutation {
            Mutation::Put { family, key, .. }
            | Mutation::Delete { family, key }
            | Mutation::SingleDelete { family, key }
            | Mutation::Merge { family, key, .. } => self.add(hash_key(family, key)),
            _ => self.add_all(),
        }
    }

    pub(super) fn add_all(&mut self) {
        self.all = true;
    }

    pub(super) fn clear(&mut self) {
        self.shards.clear();
        self.all = false;
    }
}

impl CommitLocks {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes the shards that are needed, in rising order.
    pub(super) fn lock(&self, needed: &mut Needed) -> Vec<MutexGuard<'_, ()>> {
        if needed.all {
            return self.shards.iter().map(Mutex::lock).collect();
        }
        needed.shards.sort_unstable();
        needed.shards.dedup();
        let shards = needed
            .shards
            .iter()
            .filter_map(|&shard| self.shards.get(usize::from(shard)));
        shards.map(Mutex::lock).collect()
    }
}
