//! Point reads: what the set knows of a key, over what the database holds of it.

use esker::key::SEQUENCE_MAX;
use esker::read::operands::no_operator;
use esker::{ColumnFamily, Db, MergeOperator, Mutation, PinnedValue, ReadOptions, Result};

use super::WriteSet;
use super::writes::{FamilyWrites, Writes};

/// What lies below the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base<'a> {
    /// The set has a value.
    Value(&'a [u8]),
    /// The set has deleted the key.
    Absent,
    /// The set says nothing: the database's value, if any.
    Database,
}

/// What the set knows of a key.
#[derive(Debug)]
pub(super) struct Known<'a> {
    /// Merged behind the base, newest first.
    operands: Vec<&'a [u8]>,
    pub(super) base: Base<'a>,
}

impl Known<'_> {
    pub(super) fn is_merged(&self) -> bool {
        !self.operands.is_empty()
    }

    /// The operands on the base, for which `database` stands where it is the database's.
    pub(super) fn fold(
        &self,
        family: &ColumnFamily,
        key: &[u8],
        database: Option<&[u8]>,
        operator: Option<&dyn MergeOperator>,
    ) -> Result<Vec<u8>> {
        let base = match self.base {
            Base::Value(value) => Some(value),
            Base::Absent => None,
            Base::Database => database,
        };
        let oldest_first: Vec<&[u8]> = self.operands.iter().rev().copied().collect();
        operator
            .ok_or_else(|| no_operator(key))
            .and_then(|operator| operator.full_merge(key, base, &oldest_first))
            .map_err(|error| error.in_column_family(family.name()))
    }
}

impl Writes {
    /// What it knows of a key. O(log n), and the operations on the key back to the last put or delete.
    pub(super) fn known(&self, family: &FamilyWrites, key: &[u8]) -> Known<'_> {
        let found = self.search(family, key).ok();
        let newest = found.and_then(|position| family.keys.get(position));
        self.known_from(family, key, newest)
    }

    /// The same where the newest operation on the key is at hand.
    pub(super) fn known_from(&self, family: &FamilyWrites, key: &[u8], newest: Option<u32>) -> Known<'_> {
        let covering = match family.fragments() {
            Some(list) => list.max_covering(&family.order, key, SEQUENCE_MAX),
            None => 0,
        };
        let mut known = Known {
            operands: Vec::new(),
            base: if covering > 0 {
                Base::Absent
            } else {
                Base::Database
            },
        };
        for (number, mutation) in newest.into_iter().flat_map(|newest| self.history(newest)) {
            if u64::from(number) + 1 < covering {
                break;
            }
            match mutation {
                Mutation::Merge { operand, .. } => known.operands.push(operand),
                Mutation::Put { value, .. } => {
                    known.base = Base::Value(value);
                    break;
                }
                _ => {
                    known.base = Base::Absent;
                    break;
                }
            }
        }
        known
    }
}

impl WriteSet {
    /// The value of `key` as it will be once the set is committed over what `options` see of the database: own writes
    /// hide the database's, own operands are folded over its value. Reads the database only where the set leaves
    /// that open. O(log n) beside that.
    ///
    /// # Errors
    /// Those of [`Db::get_with`] and of the merge operator.
    pub fn get(
        &self,
        db: &Db,
        family: &ColumnFamily,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<PinnedValue>> {
        let Some(own) = self.writes.family(family.id()) else {
            return db.get_with(family, key, options);
        };
        let known = self.writes.known(own, key);
        let below = match known.base {
            Base::Database => db.get_with(family, key, options)?,
            _ => None,
        };
        value_of(&known, family, key, below)
    }

    /// The values of several keys, in the order of `keys`: for each what [`get`](Self::get) gives. The database is asked for all
    /// keys together that the set leaves open.
    ///
    /// # Errors
    /// As [`get`](Self::get), if one of them fails.
    pub fn multi_get(
        &self,
        db: &Db,
        family: &ColumnFamily,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Option<PinnedValue>>> {
        let Some(own) = self.writes.family(family.id()) else {
            return db.multi_get(family, keys, options);
        };
        let known: Vec<(&[u8], Known<'_>)> = keys
            .iter()
            .map(|&key| (key, self.writes.known(own, key)))
            .collect();
        let open: Vec<&[u8]> = known
            .iter()
            .filter(|(_, known)| known.base == Base::Database)
            .map(|(key, _)| *key)
            .collect();
        let mut below = match open.is_empty() {
            true => Vec::new(),
            false => db.multi_get(family, &open, options)?,
        }
        .into_iter();
        known
            .iter()
            .map(|(key, known)| {
                let below = match known.base {
                    Base::Database => below.next().flatten(),
                    _ => None,
                };
                value_of(known, family, key, below)
            })
            .collect()
    }
}

fn value_of(
    known: &Known<'_>,
    family: &ColumnFamily,
    key: &[u8],
    below: Option<PinnedValue>,
) -> Result<Option<PinnedValue>> {
    if known.is_merged() {
        let operator = family.merge_operator();
        let merged = known.fold(family, key, below.as_deref(), operator.as_deref())?;
        return Ok(Some(merged.into()));
    }
    Ok(match known.base {
        Base::Value(value) => Some(value.to_vec().into()),
        Base::Absent => None,
        Base::Database => below,
    })
}
