//! Control without locks: what was touched is noted with a snapshot of its moment, and the commit asks whether it was written since.

use std::ops::Range as Span;
use std::sync::Arc;

use esker::{ColumnFamily, Db, Error, Mutation, Result, Snapshot, WriteOptions};
use hashbrown::HashTable;

use super::KeyRange;
use super::commit_locks::{CommitLocks, Needed};
use crate::lock::{Acquired, hash_key, range_conflict, write_conflict};
use crate::write_set::WriteSet;

/// What was touched.
enum Place {
    /// The key is this part of the list's bytes.
    Key {
        hash: u64,
        key: Span<usize>,
    },
    Range {
        start: Vec<u8>,
        end: Option<Vec<u8>>,
    },
    /// Nothing any more.
    Forgotten,
}

struct Tracked {
    /// By their places in the lists.
    family: usize,
    snapshot: usize,
    place: Place,
}

/// What a transaction has touched.
///
/// Invariants:
/// 1. No key is noted twice: the first note has the oldest snapshot, and to ask since then is to ask for all.
/// 2. `index` has the places of the keys in `entries`, and of nothing else.
pub(crate) struct Tracking {
    commit_locks: Arc<CommitLocks>,
    /// In order of time.
    entries: Vec<Tracked>,
    /// How many of them have a meaning.
    live: usize,
    /// Keys, one behind the other.
    keys: Vec<u8>,
    index: HashTable<usize>,
    families: Vec<ColumnFamily>,
    snapshots: Vec<Snapshot>,
    /// How many entries there were at each save point.
    save_points: Vec<usize>,
    /// What untracked writes need at the commit.
    untracked: Needed,
    /// Memory for commits.
    needed: Needed,
}

impl Tracking {
    pub(super) fn new(commit_locks: Arc<CommitLocks>) -> Self {
        Self {
            commit_locks,
            entries: Vec::new(),
            live: 0,
            keys: Vec::new(),
            index: HashTable::new(),
            families: Vec::new(),
            snapshots: Vec::new(),
            save_points: Vec::new(),
            untracked: Needed::default(),
            needed: Needed::default(),
        }
    }

    pub(super) fn track_key(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        key: &[u8],
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        let hash = hash_key(family.id(), key);
        if self.find(family, hash, key).is_some() {
            return Ok(Acquired::Held);
        }
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        let entry = Tracked {
            family: self.family_place(family),
            snapshot: self.snapshot_place(db, since),
            place: Place::Key {
                hash,
                key: start..self.keys.len(),
            },
        };
        let entries = &self.entries;
        self.index
            .insert_unique(hash, self.entries.len(), |&at| hash_of(entries, at));
        self.entries.push(entry);
        self.live += 1;
        Ok(Acquired::New)
    }

    pub(super) fn track_range(
        &mut self,
        db: &Db,
        family: &ColumnFamily,
        (start, end): KeyRange<'_>,
        since: Option<&Snapshot>,
    ) -> Result<Acquired> {
        let entry = Tracked {
            family: self.family_place(family),
            snapshot: self.snapshot_place(db, since),
            place: Place::Range {
                start: start.to_vec(),
                end: end.map(<[u8]>::to_vec),
            },
        };
        self.entries.push(entry);
        self.live += 1;
        Ok(Acquired::New)
    }

    pub(super) fn forget_key(&mut self, family: &ColumnFamily, key: &[u8]) {
        let hash = hash_key(family.id(), key);
        if let Some(at) = self.find(family, hash, key) {
            self.forget(at);
        }
    }

    pub(super) fn forget_range(&mut self, family: &ColumnFamily, (start, end): KeyRange<'_>) {
        let last = self.entries.iter().rposition(|entry| {
            let is_same = matches!(&entry.place, Place::Range { start: own_start, end: own_end }
                if own_start == start && own_end.as_deref() == end);
            is_same
                && self
                    .families
                    .get(entry.family)
                    .is_some_and(|own| own.id() == family.id())
        });
        if let Some(at) = last {
            self.forget(at);
        }
    }

    pub(super) fn note_untracked(&mut self, mutation: Mutation<'_>) {
        self.untracked.add_mutation(mutation);
    }

    pub(super) fn set_save_point(&mut self) {
        self.save_points.push(self.entries.len());
    }

    pub(super) fn roll_back_to_save_point(&mut self) {
        let Some(kept) = self.save_points.pop() else {
            return;
        };
        while self.entries.len() > kept {
            self.forget(self.entries.len() - 1);
        }
    }

    pub(super) fn pop_save_point(&mut self) {
        self.save_points.pop();
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.live = 0;
        self.keys.clear();
        self.index.clear();
        self.families.clear();
        self.snapshots.clear();
        self.save_points.clear();
        self.untracked.clear();
        self.needed.clear();
    }

    /// Asks about everything that was touched and writes, while nobody else commits any of it.
    pub(super) fn commit(&mut self, db: &Db, writes: &mut WriteSet, options: &WriteOptions) -> Result<()> {
        if self.entries.is_empty() && writes.is_empty() {
            return Ok(());
        }
        let mut needed = std::mem::take(&mut self.needed);
        needed.clone_from(&self.untracked);
        for entry in &self.entries {
            match &entry.place {
                Place::Key { hash, .. } => needed.add(*hash),
                Place::Range { .. } => needed.add_all(),
                Place::Forgotten => {}
            }
        }
        let guards = self.commit_locks.lock(&mut needed);
        let mut checked = self.entries.iter().map(|entry| self.check(db, entry));
        let result = checked.try_for_each(|checked| checked);
        let result = match result {
            Ok(()) if !writes.is_empty() => writes.commit(db, options),
            result => result,
        };
        drop(guards);
        self.needed = needed;
        result
    }

    fn check(&self, db: &Db, entry: &Tracked) -> Result<()> {
        let (Some(family), Some(since)) = (
            self.families.get(entry.family),
            self.snapshots.get(entry.snapshot),
        ) else {
            return Err(Error::bug("a note without its family or snapshot"));
        };
        let conflict = match &entry.place {
            Place::Key { key, .. } => {
                let key = self.key(key);
                db.changed_since(family, key, since)?
                    .then(|| write_conflict(family.id(), key))
            }
            Place::Range { start, end } => {
                let end = end.as_deref();
                db.range_changed_since(family, start, end, since)?
                    .then(|| range_conflict(family.id(), start, end))
            }
            Place::Forgotten => None,
        };
        match conflict {
            Some(conflict) => Err(conflict.in_column_family(family.name())),
            None => Ok(()),
        }
    }

    fn key(&self, span: &Span<usize>) -> &[u8] {
        self.keys.get(span.clone()).unwrap_or_default()
    }

    /// The place of a key among the entries.
    fn find(&self, family: &ColumnFamily, hash: u64, key: &[u8]) -> Option<usize> {
        let is_it = |at: &usize| {
            self.entries.get(*at).is_some_and(|entry| {
                let own = self.families.get(entry.family);
                own.is_some_and(|own| own.id() == family.id())
                    && matches!(&entry.place, Place::Key { key: span, .. } if self.key(span) == key)
            })
        };
        self.index.find(hash, is_it).copied()
    }

    /// The entry goes where it is the last; before a save point, and among others, it stays without meaning, so that save points
    /// stay what they are.
    fn forget(&mut self, at: usize) {
        let is_last = at + 1 == self.entries.len();
        let Some(entry) = self.entries.get_mut(at) else {
            return;
        };
        let place = std::mem::replace(&mut entry.place, Place::Forgotten);
        self.live -= usize::from(!matches!(place, Place::Forgotten));
        if let Place::Key { hash, key } = place {
            if let Ok(found) = self.index.find_entry(hash, |&other| other == at) {
                found.remove();
            }
            if is_last {
                self.keys.truncate(key.start);
            }
        }
        let kept = self.save_points.last().copied().unwrap_or(0);
        while self.entries.len() > kept
            && let Some(Tracked {
                place: Place::Forgotten,
                ..
            }) = self.entries.last()
        {
            self.entries.pop();
        }
    }

    fn family_place(&mut self, family: &ColumnFamily) -> usize {
        let known = self.families.iter().position(|own| own.id() == family.id());
        known.unwrap_or_else(|| {
            self.families.push(family.clone());
            self.families.len() - 1
        })
    }

    /// The place of `since`, or of a snapshot of now.
    fn snapshot_place(&mut self, db: &Db, since: Option<&Snapshot>) -> usize {
        // Where nobody has committed meanwhile, the last one is as good as new.
        let wanted = since.map_or_else(|| db.last_sequence(), Snapshot::sequence);
        if self.snapshots.last().map(Snapshot::sequence) != Some(wanted) {
            self.snapshots
                .push(since.cloned().unwrap_or_else(|| db.snapshot()));
        }
        self.snapshots.len() - 1
    }
}

fn hash_of(entries: &[Tracked], at: usize) -> u64 {
    match entries.get(at).map(|entry| &entry.place) {
        Some(Place::Key { hash, .. }) => *hash,
        _ => 0,
    }
}
