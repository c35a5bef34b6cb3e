//! Whether a key is the one before it, in most cases without a call to compare them.

/// The length, first and last eight bytes of a key. Keys of up to 16 bytes are equal if these are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyEnds {
    len: usize,
    head: u64,
    tail: u64,
}

impl KeyEnds {
    /// The ends of `key`.
    #[inline]
    pub fn of(key: &[u8]) -> Self {
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        match (key.first_chunk(), key.last_chunk()) {
            (Some(head), Some(tail)) => Self {
                len: key.len(),
                head: word(head),
                tail: word(tail),
            },
            _ => {
                let mut head = [0; 8];
                head[..key.len()].copy_from_slice(key);
                Self {
                    len: key.len(),
                    head: word(&head),
                    tail: 0,
                }
            }
        }
    }

    /// Whether `key` is `same`, whose ends these are.
    #[inline]
    pub fn are_of(&self, same: &[u8], key: &[u8]) -> bool {
        *self == Self::of(key) && (self.len <= 16 || same == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ends_agree_with_equality(
            a in prop::collection::vec(0_u8..2, 0..20), b in prop::collection::vec(0_u8..2, 0..20), at: usize
        ) {
            let ends = KeyEnds::of(&a);
            prop_assert!(ends.are_of(&a, &a.clone()));
            prop_assert_eq!(ends.are_of(&a, &b), a == b);
            if let Some(at) = at.checked_rem(a.len()) {
                let mut other = a.clone();
                other[at] ^= 1;
                prop_assert!(!ends.are_of(&a, &other));
            }
        }
    }
}
