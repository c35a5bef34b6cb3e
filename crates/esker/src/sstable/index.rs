//! Indexes: sorted blocks of separators, each with the handle of the block whose keys are <= it.

use super::block::BlockBuilder;
use super::format::BlockHandle;
use crate::key::{KeyOrder, SEQUENCE_MAX, ValueKind, append_internal_key, user_key};

/// Puts into `out` a short internal key that is >= `last` and < `next`.
pub fn separator(order: &KeyOrder, last: &[u8], next: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(user_key(last));
    order.shorten_separator(out, user_key(next));
    complete(last, out);
}

/// Puts into `out` a short internal key that is >= `last`, the table's last.
pub fn successor(order: &KeyOrder, last: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(user_key(last));
    order.shorten_successor(out);
    complete(last, out);
}

/// A shortened user key gets the trailer that sorts first (it is > `last` whatever its trailer); an unchanged one
/// keeps that of `last`, because versions of the same user key may follow in the next block.
fn complete(last: &[u8], out: &mut Vec<u8>) {
    if out == user_key(last) {
        out.clear();
        out.extend_from_slice(last);
    } else {
        append_internal_key(out, &[], SEQUENCE_MAX, ValueKind::SEEK);
    }
}

/// Builds one level of index, cut into partitions that are kept until the data is written.
#[derive(Debug)]
pub struct IndexBuilder {
    partition_bytes: usize,
    bytewise: bool,
    leaf: BlockBuilder,
    value: Vec<u8>,
    last_separator: Vec<u8>,
    /// The finished partitions, one after the other, then the values of the one that is being built.
    bytes: Vec<u8>,
    partitions: Vec<Partition>,
}

/// A finished block of an index or filter, before it is written.
#[derive(Debug)]
pub struct Partition {
    /// Where it ends in the buffer of all; it begins where the one before ends.
    pub end: usize,
    /// An internal key >= all that it covers.
    pub separator: Vec<u8>,
}

impl IndexBuilder {
    /// An index of partitions of about this size; `usize::MAX`: of one block.
    pub fn new(partition_bytes: usize, bytewise: bool) -> Self {
        Self {
            partition_bytes,
            bytewise,
            leaf: BlockBuilder::new(),
            value: Vec::new(),
            last_separator: Vec::new(),
            bytes: Vec::new(),
            partitions: Vec::new(),
        }
    }

    /// Adds the next separator.
    pub fn add(&mut self, separator: &[u8], handle: BlockHandle) {
        if self.leaf.byte_len() >= self.partition_bytes {
            self.cut();
        }
        self.value.clear();
        handle.put(&mut self.value);
        self.leaf.add(&mut self.bytes, separator, &self.value);
        self.last_separator.clear();
        self.last_separator.extend_from_slice(separator);
    }

    /// Bytes so far.
    pub fn byte_len(&self) -> usize {
        self.bytes.len() + self.leaf.byte_len()
    }

    /// The partitions' bytes and bounds; at least one, which may be empty.
    pub fn finish(mut self) -> (Vec<u8>, Vec<Partition>) {
        if self.partitions.is_empty() || !self.leaf.is_empty() {
            self.cut();
        }
        (self.bytes, self.partitions)
    }

    fn cut(&mut self) {
        self.leaf.finish(&mut self.bytes, self.bytewise);
        self.partitions.push(Partition {
            end: self.bytes.len(),
            separator: std::mem::take(&mut self.last_separator),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{ReverseBytewiseComparator, internal_key};
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn separators_separate(
            a in prop::collection::vec(0_u8..4, 0..6), b in prop::collection::vec(0_u8..4, 0..6),
            a_sequence in 0_u64..4, b_sequence in 0_u64..4, reverse: bool,
        ) {
            let order = if reverse {
                KeyOrder::Custom(Arc::new(ReverseBytewiseComparator))
            } else {
                KeyOrder::Bytewise
            };
            let mut a = internal_key(&a, a_sequence, ValueKind::Put);
            let mut b = internal_key(&b, b_sequence, ValueKind::Put);
            if order.compare_internal(&a, &b).is_gt() {
                std::mem::swap(&mut a, &mut b);
            }
            prop_assume!(a != b);
            let mut middle = b"left over".to_vec();
            separator(&order, &a, &b, &mut middle);
            prop_assert!(order.compare_internal(&a, &middle).is_le());
            prop_assert!(order.compare_internal(&middle, &b).is_lt());
            successor(&order, &b, &mut middle);
            prop_assert!(order.compare_internal(&b, &middle).is_le());
        }
    }

    #[test]
    fn one_partition_or_many_hold_all_in_order() {
        for (size, one) in [(usize::MAX, true), (100, false)] {
            let mut index = IndexBuilder::new(size, true);
            for i in 0..100_u64 {
                let key = internal_key(&i.to_be_bytes(), 1, ValueKind::Put);
                index.add(&key, BlockHandle { offset: i, size: 1 });
            }
            let (bytes, partitions) = index.finish();
            assert_eq!(partitions.len() == 1, one);
            assert_eq!(partitions.last().map(|last| last.end), Some(bytes.len()));
            assert!(
                partitions
                    .windows(2)
                    .all(|pair| pair[0].separator < pair[1].separator)
            );
        }
        assert_eq!(IndexBuilder::new(100, true).finish().1.len(), 1);
    }
}
