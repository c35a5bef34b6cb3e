//! The keys of one prefix, as filters and bounds of files know them. In the order of bytes they follow each other.

use std::cmp::Ordering;

use crate::options::PrefixExtractor;

/// All keys of which an extractor gives one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamePrefix<'a> {
    prefix: &'a [u8],
    /// Whether longer keys are among them; else only the one that is the prefix itself.
    reaches_on: bool,
}

impl<'a> SamePrefix<'a> {
    /// The keys of which `extractor` gives this prefix, which it gave of one.
    pub fn new(extractor: PrefixExtractor, prefix: &'a [u8]) -> Self {
        let reaches_on = match extractor {
            PrefixExtractor::Fixed(_) => true,
            PrefixExtractor::Capped(len) => prefix.len() == len,
        };
        Self { prefix, reaches_on }
    }

    /// The first of the keys there can be.
    #[inline]
    pub fn first(&self) -> &'a [u8] {
        self.prefix
    }

    /// Where a key lies in the order of bytes: before them, among them, or behind.
    #[inline]
    pub fn side_of(&self, key: &[u8]) -> Ordering {
        if self.reaches_on && key.starts_with(self.prefix) {
            Ordering::Equal
        } else {
            key.cmp(self.prefix)
        }
    }

    /// The one prefix that another extractor gives of all of them; `None` if there is no such prefix.
    pub fn under(&self, other: PrefixExtractor) -> Option<&'a [u8]> {
        let (PrefixExtractor::Fixed(len) | PrefixExtractor::Capped(len)) = other;
        if self.reaches_on {
            self.prefix.get(..len)
        } else {
            other.prefix(self.prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extractor() -> impl Strategy<Value = PrefixExtractor> {
        (0_usize..4, any::<bool>()).prop_map(|(len, fixed)| match fixed {
            true => PrefixExtractor::Fixed(len),
            false => PrefixExtractor::Capped(len),
        })
    }

    proptest! {
        #[test]
        fn sides_and_other_prefixes_are_true_of_every_key(
            extractor in extractor(), other in extractor(),
            key in prop::collection::vec(0_u8..3, 0..5),
            all in prop::collection::vec(prop::collection::vec(0_u8..3, 0..5), 0..40),
        ) {
            let Some(prefix) = extractor.prefix(&key) else { return Ok(()) };
            let same = SamePrefix::new(extractor, prefix);
            let (mut among, mut others) = (vec![&key], vec![]);
            for key in &all {
                if extractor.prefix(key) == Some(prefix) {
                    among.push(key);
                } else {
                    others.push(key);
                }
            }
            for key in among {
                prop_assert_eq!(same.side_of(key), Ordering::Equal);
                prop_assert!(same.first() <= key.as_slice());
                if let Some(shared) = same.under(other) {
                    prop_assert_eq!(other.prefix(key), Some(shared));
                }
            }
            for key in others {
                prop_assert_eq!(same.side_of(key), key.as_slice().cmp(prefix));
                prop_assert_ne!(same.side_of(key), Ordering::Equal);
            }
            // Under the same extractor it is the prefix itself.
            prop_assert_eq!(same.under(extractor), Some(prefix));
        }
    }
}
