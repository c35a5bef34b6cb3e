//! The batch and its index, as a value that iterators share: see the module's head.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use esker::key::{FragmentedTombstones, RangeTombstone};
use esker::{ColumnFamily, Error, KeyOrder, Mutation, Result, WriteBatch};

use super::ordered::{Ordered, Position};
use super::past_limit;

/// No operation.
const NONE: u32 = u32::MAX;

/// A mutation of the batch that reads see.
#[derive(Clone, Copy, Debug)]
struct Operation {
    /// Where it begins in the batch, which is smaller than 4 GiB.
    offset: u32,
    /// The operation before it on the same key, or `NONE`.
    previous: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    pub(super) batch: WriteBatch,
    operations: Vec<Operation>,
    /// By id. Families stay when the set is emptied: it is going to be used for the same ones.
    families: Vec<FamilyWrites>,
    /// Numbers of operations, beside the batch's own save points.
    save_points: Vec<u32>,
}

/// What was written to a family.
#[derive(Clone, Debug)]
pub(super) struct FamilyWrites {
    id: u32,
    pub(super) order: KeyOrder,
    /// The newest operation of each key.
    pub(super) keys: Ordered,
    /// In the order of writing. The sequence is the operation's number plus 1, so that there is no 0.
    tombstones: Vec<RangeTombstone>,
    fragments: OnceLock<Arc<FragmentedTombstones>>,
}

impl FamilyWrites {
    fn new(family: &ColumnFamily) -> Self {
        Self {
            id: family.id(),
            order: family.key_order().clone(),
            keys: Ordered::default(),
            tombstones: Vec::new(),
            fragments: OnceLock::new(),
        }
    }

    /// The range tombstones in fragments, cut anew if there are others than the last time.
    pub(super) fn fragments(&self) -> Option<&FragmentedTombstones> {
        if self.tombstones.is_empty() {
            return None;
        }
        let cut = || Arc::new(FragmentedTombstones::from_slice(&self.order, &self.tombstones));
        Some(self.fragments.get_or_init(cut))
    }
}

impl Writes {
    /// Adds a mutation to the batch alone; gives its offset.
    pub(super) fn push(&mut self, mutation: Mutation<'_>, bytes_max: usize) -> Result<usize> {
        let offset = self.batch.size_bytes();
        // Far from the limit, as nearly always, nothing has to be taken back.
        if bytes_at_most(mutation) <= bytes_max.saturating_sub(offset) {
            return self.batch.push(mutation).map(|()| offset);
        }
        self.batch.set_save_point();
        let pushed = self
            .batch
            .push(mutation)
            .and_then(|()| match self.batch.size_bytes() {
                bytes if bytes > bytes_max => Err(past_limit(bytes, bytes_max)),
                _ => Ok(offset),
            });
        if pushed.is_ok() {
            self.batch.pop_save_point();
        } else {
            self.batch.roll_back_to_save_point();
        }
        pushed
    }

    /// Lets reads see the mutation that was pushed at `offset`.
    pub(super) fn index(
        &mut self,
        family: &ColumnFamily,
        mutation: Mutation<'_>,
        offset: usize,
    ) -> Result<()> {
        let number = u32::try_from(self.operations.len())
            .ok()
            .filter(|&number| number < NONE);
        let (Some(number), Ok(offset)) = (number, u32::try_from(offset)) else {
            // A batch counts its mutations and bytes in 32 bits.
            return Err(Error::bug("a batch holds more than it can"));
        };
        let at = self.family_slot(family);
        let previous = match mutation {
            Mutation::DeleteRange { start, end, .. } => {
                if let Some(writes) = self.families.get_mut(at) {
                    writes.tombstones.push(RangeTombstone {
                        start: start.to_vec(),
                        end: end.to_vec(),
                        sequence: u64::from(number) + 1,
                    });
                    writes.fragments = OnceLock::new();
                }
                NONE
            }
            _ => {
                let found = self
                    .families
                    .get(at)
                    .map(|writes| self.search(writes, key_of(mutation)));
                match (self.families.get_mut(at), found) {
                    (Some(writes), Some(Ok(position))) => {
                        let previous = writes.keys.get(position).unwrap_or(NONE);
                        writes.keys.replace(position, number);
                        previous
                    }
                    (Some(writes), Some(Err(position))) => {
                        writes.keys.insert(position, number);
                        NONE
                    }
                    _ => NONE,
                }
            }
        };
        self.operations.push(Operation { offset, previous });
        Ok(())
    }

    /// Where the family's writes are, which begin with the first.
    fn family_slot(&mut self, family: &ColumnFamily) -> usize {
        match self
            .families
            .binary_search_by_key(&family.id(), |writes| writes.id)
        {
            Ok(at) => at,
            Err(at) => {
                self.families.insert(at, FamilyWrites::new(family));
                at
            }
        }
    }

    /// What was written to a family, if anything ever was.
    pub(super) fn family(&self, id: u32) -> Option<&FamilyWrites> {
        let at = self.families.binary_search_by_key(&id, |writes| writes.id).ok()?;
        self.families.get(at)
    }

    /// Where in the family's keys this one is, or would be.
    #[inline]
    pub(super) fn search(&self, family: &FamilyWrites, key: &[u8]) -> Result<Position, Position> {
        family.keys.search(|number| self.compare(family, number, key))
    }

    #[inline]
    fn compare(&self, family: &FamilyWrites, number: u32, key: &[u8]) -> Ordering {
        family.order.compare(self.key(number), key)
    }

    /// The mutation of an operation. `None` for a number that there is not.
    #[inline]
    pub(super) fn mutation(&self, number: u32) -> Option<Mutation<'_>> {
        let operation = self.operations.get(number as usize)?;
        self.batch.mutation_at(operation.offset as usize)
    }

    /// The key of an operation.
    #[inline]
    pub(super) fn key(&self, number: u32) -> &[u8] {
        self.mutation(number).map_or(&[], key_of)
    }

    /// An operation and those before it on the same key, newest first.
    pub(super) fn history(&self, newest: u32) -> impl Iterator<Item = (u32, Mutation<'_>)> {
        let before = |number: &u32| {
            self.operations
                .get(*number as usize)
                .map(|operation| operation.previous)
        };
        std::iter::successors(Some(newest), before)
            .take_while(|&number| number != NONE)
            .filter_map(|number| Some((number, self.mutation(number)?)))
    }

    pub(super) fn set_save_point(&mut self) {
        self.batch.set_save_point();
        // As many as the batch counts, in 32 bits.
        self.save_points.push(self.operations.len() as u32);
    }

    pub(super) fn pop_save_point(&mut self) -> bool {
        self.batch.pop_save_point();
        self.save_points.pop().is_some()
    }

    pub(super) fn roll_back_to_save_point(&mut self) -> bool {
        let Some(kept) = self.save_points.pop() else {
            return false;
        };
        while self.operations.len() > kept as usize {
            self.take_back();
        }
        // After the index, whose keys are in the batch.
        self.batch.roll_back_to_save_point()
    }

    /// Takes the last operation out of the index.
    fn take_back(&mut self) {
        let number = (self.operations.len() as u32).wrapping_sub(1);
        let Some(mutation) = self.mutation(number) else {
            self.operations.pop();
            return;
        };
        let found = self
            .families
            .binary_search_by_key(&family_of(mutation), |writes| writes.id);
        let position = match (&found, mutation) {
            (Ok(at), mutation) if !matches!(mutation, Mutation::DeleteRange { .. }) => self
                .families
                .get(*at)
                .and_then(|writes| self.search(writes, key_of(mutation)).ok()),
            _ => None,
        };
        let previous = self.operations.pop().map_or(NONE, |operation| operation.previous);
        let Some(writes) = found.ok().and_then(|at| self.families.get_mut(at)) else {
            return;
        };
        match position {
            Some(position) if previous == NONE => writes.keys.remove(position),
            Some(position) => writes.keys.replace(position, previous),
            None => {
                writes.tombstones.pop();
                writes.fragments = OnceLock::new();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.operations.clear();
        self.save_points.clear();
        for family in &mut self.families {
            family.keys.clear();
            family.tombstones.clear();
            family.fragments = OnceLock::new();
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let families: usize = self
            .families
            .iter()
            .map(|family| {
                let tombstones = family.tombstones.iter();
                let bounds: usize = tombstones.map(|range| range.start.len() + range.end.len()).sum();
                family.keys.memory_bytes()
                    + bounds
                    + family.tombstones.capacity() * size_of::<RangeTombstone>()
                    + family.fragments.get().map_or(0, |list| list.memory_bytes())
            })
            .sum();
        self.batch.size_bytes()
            + self.operations.capacity() * size_of::<Operation>()
            + self.families.capacity() * size_of::<FamilyWrites>()
            + self.save_points.capacity() * size_of::<u32>()
            + families
    }
}

/// A mutation takes no more bytes of a batch than this: its parts, and a few for what they are and how long.
#[inline]
fn bytes_at_most(mutation: Mutation<'_>) -> usize {
    let value = match mutation {
        Mutation::Put { value, .. } => value.len(),
        Mutation::Merge { operand, .. } => operand.len(),
        Mutation::DeleteRange { end, .. } => end.len(),
        _ => 0,
    };
    key_of(mutation).len() + value + 32
}

/// The key, or the start of the range.
#[inline]
pub(super) fn key_of(mutation: Mutation<'_>) -> &[u8] {
    match mutation {
        Mutation::Put { key, .. }
        | Mutation::Delete { key, .. }
        | Mutation::SingleDelete { key, .. }
        | Mutation::Merge { key, .. } => key,
        Mutation::DeleteRange { start, .. } => start,
        _ => &[],
    }
}

fn family_of(mutation: Mutation<'_>) -> u32 {
    match mutation {
        Mutation::Put { family, .. }
        | Mutation::Delete { family, .. }
        | Mutation::SingleDelete { family, .. }
        | Mutation::Merge { family, .. }
        | Mutation::DeleteRange { family, .. } => family,
        _ => 0,
    }
}
