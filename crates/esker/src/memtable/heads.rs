//! Key heads: eight bytes of a key as a number, so that most comparisons are of two registers.
//!
//! Keys of one memtable often begin alike (a table's id, leading zeros), and then their first eight bytes say
//! little. So heads are taken behind a prefix that is fixed before the first insert: what the keys of the previous
//! memtable had in common. A key without that prefix gets the smallest or the largest head, by its side.
//!
//! Invariant (monotony): for bytewise keys `a <= b` implies `head(a) <= head(b)`, whatever the prefix. So unequal
//! heads order their keys, and equal heads say nothing. Under a custom order all heads are 0.

use crate::key::{KeyOrder, key_head};

/// The head function of a memtable.
#[derive(Clone, Debug)]
pub(super) struct Heads {
    bytewise: bool,
    prefix: Box<[u8]>,
}

impl Heads {
    pub(super) fn new(order: &KeyOrder, prefix: &[u8]) -> Self {
        Self {
            bytewise: order.is_bytewise(),
            prefix: prefix.into(),
        }
    }

    #[inline]
    pub(super) fn head(&self, user_key: &[u8]) -> u64 {
        if !self.bytewise {
            return 0;
        }
        if self.prefix.is_empty() {
            return key_head(user_key);
        }
        match user_key.strip_prefix(&*self.prefix) {
            Some(rest) => key_head(rest),
            None if *user_key < *self.prefix => 0,
            None => u64::MAX,
        }
    }
}

/// What two keys begin with.
pub(super) fn shared_prefix<'a>(a: &'a [u8], b: &[u8]) -> &'a [u8] {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    &a[..shared]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 256 }, failure_persistence: None, ..Default::default() })]
        #[test]
        fn heads_are_monotone(
            a in prop::collection::vec(0_u8..3, 0..14),
            b in prop::collection::vec(0_u8..3, 0..14),
            prefix in prop::collection::vec(0_u8..3, 0..4),
        ) {
            let heads = Heads::new(&KeyOrder::Bytewise, &prefix);
            prop_assert!(a > b || heads.head(&a) <= heads.head(&b));
            prop_assert!(a < b || heads.head(&a) >= heads.head(&b));
        }
    }
}
