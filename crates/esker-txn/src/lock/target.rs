//! What is locked: a key or a range of keys, and when two requests conflict.

use std::cmp::Ordering;
use std::sync::Arc;

use esker::KeyOrder;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::LockMode;
use super::key::StoredKey;

/// The hash of a key of a family: it chooses the shard, and the place in its table.
pub(crate) fn hash_key(family: u32, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, u64::from(family))
}

/// The keys from `start` on, up to `end` without it, in the order of their family. Never empty.
pub(super) struct Range {
    pub(super) order: KeyOrder,
    pub(super) start: Box<[u8]>,
    /// `None`: to the last key.
    pub(super) end: Option<Box<[u8]>>,
}

impl Range {
    fn is_before_end(&self, key: &[u8]) -> bool {
        self.end
            .as_deref()
            .is_none_or(|end| self.order.compare(key, end) == Ordering::Less)
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.order.compare(key, &self.start) != Ordering::Less && self.is_before_end(key)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.is_before_end(&other.start) && other.is_before_end(&self.start)
    }

    /// Whether both are the same keys. Equal keys are equal bytes, in every order.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.start == other.start && self.end == other.end
    }
}

/// What a request is for.
#[derive(Clone)]
pub(super) enum Target {
    Point { hash: u64, key: StoredKey },
    Range(Arc<Range>),
}

/// A lock that a transaction wants.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) family: u32,
    pub(super) target: Target,
    pub(super) mode: LockMode,
}

impl Request {
    /// Whether two transactions can't have both.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        if self.family != other.family || !self.mode.conflicts(other.mode) {
            return false;
        }
        match (&self.target, &other.target) {
            (
                Target::Point { hash, key },
                Target::Point {
                    hash: other_hash,
                    key: other_key,
                },
            ) => hash == other_hash && key.as_bytes() == other_key.as_bytes(),
            (Target::Point { key, .. }, Target::Range(range))
            | (Target::Range(range), Target::Point { key, .. }) => range.contains(key.as_bytes()),
            (Target::Range(range), Target::Range(other)) => range.overlaps(other),
        }
    }

    pub(super) fn is_range(&self) -> bool {
        matches!(self.target, Target::Range(_))
    }

    /// Whether both are for the same point or the same range.
    pub(super) fn is_same_target(&self, other: &Self) -> bool {
        self.family == other.family
            && match (&self.target, &other.target) {
                (
                    Target::Point { hash, key },
                    Target::Point {
                        hash: other_hash,
                        key: other_key,
                    },
                ) => hash == other_hash && key.as_bytes() == other_key.as_bytes(),
                (Target::Range(range), Target::Range(other)) => range.is_same(other),
                _ => false,
            }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use esker::ReverseBytewiseComparator;

    use super::*;

    fn range(order: &KeyOrder, start: &[u8], end: Option<&[u8]>) -> Range {
        Range {
            order: order.clone(),
            start: start.into(),
            end: end.map(Into::into),
        }
    }

    #[test]
    fn ranges_overlap_exactly_where_they_share_a_key() {
        let reverse = KeyOrder::Custom(Arc::new(ReverseBytewiseComparator));
        for order in [KeyOrder::Bytewise, reverse] {
            let mut keys: Vec<[u8; 1]> = (0..6).map(|key| [key]).collect();
            keys.sort_by(|a, b| order.compare(a, b));
            let mut ranges = Vec::new();
            for (at, start) in keys.iter().enumerate() {
                ranges.push(range(&order, start, None));
                ranges.extend(keys[at + 1..].iter().map(|end| range(&order, start, Some(end))));
            }
            for a in &ranges {
                for b in &ranges {
                    let shared = keys.iter().any(|key| a.contains(key) && b.contains(key));
                    assert_eq!(a.overlaps(b), shared);
                }
            }
        }
    }
}
