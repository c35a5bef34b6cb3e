//! The order of keys.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{trailer, user_key};

/// A total order over user keys, given by the user. It must never change for a database: its name is stored, and
/// opening with another name is refused.
///
/// Keys that compare as equal must be equal bytes.
pub trait Comparator: Send + Sync {
    /// The name stored with the database.
    fn name(&self) -> &str;
    /// Compares two user keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
    /// May replace `separator` (on entry equal to some key `a`) by a shorter key that is >= `a` and < `limit`.
    /// The default keeps it.
    fn shorten_separator(&self, separator: &mut Vec<u8>, limit: &[u8]) {
        let _ = (separator, limit);
    }
    /// May replace `key` by a shorter key that is >= `key`. The default keeps it.
    fn shorten_successor(&self, key: &mut Vec<u8>) {
        let _ = key;
    }
}

/// `memcmp` order; the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytewiseComparator;

impl BytewiseComparator {
    /// The name stored with the database.
    pub const NAME: &'static str = "esker.bytewise";
}

impl Comparator for BytewiseComparator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    fn shorten_separator(&self, separator: &mut Vec<u8>, limit: &[u8]) {
        let shared = separator.iter().zip(limit).take_while(|(a, b)| a == b).count();
        // One is a prefix of the other: nothing shorter lies between.
        if shared >= separator.len().min(limit.len()) {
            return;
        }
        let byte = separator[shared];
        if byte < 0xff && byte + 1 < limit[shared] {
            separator.truncate(shared + 1);
            separator[shared] = byte + 1;
        }
    }

    fn shorten_successor(&self, key: &mut Vec<u8>) {
        if let Some(at) = key.iter().position(|&byte| byte != 0xff) {
            key[at] += 1;
            key.truncate(at + 1);
        }
    }
}

/// Descending `memcmp` order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReverseBytewiseComparator;

impl Comparator for ReverseBytewiseComparator {
    fn name(&self) -> &str {
        "esker.reverse-bytewise"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}

/// The order that a column family uses. The bytewise case is a branch, not a virtual call.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// `memcmp`.
    #[default]
    Bytewise,
    /// The user's.
    Custom(Arc<dyn Comparator>),
}

impl KeyOrder {
    /// Whether keys order as their bytes do.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, Self::Bytewise)
    }

    /// The name stored with the database.
    pub fn name(&self) -> &str {
        match self {
            Self::Bytewise => BytewiseComparator::NAME,
            Self::Custom(custom) => custom.name(),
        }
    }

    /// The order that the engine itself has under this name; `None` for one of the user's own.
    pub fn builtin(name: &str) -> Option<Self> {
        let reverse = || Self::Custom(Arc::new(ReverseBytewiseComparator));
        match name {
            BytewiseComparator::NAME => Some(Self::Bytewise),
            _ => Some(reverse()).filter(|order| order.name() == name),
        }
    }

    /// Compares two user keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Bytewise => a.cmp(b),
            Self::Custom(custom) => custom.compare(a, b),
        }
    }

    /// Compares two internal keys: user key ascending, trailer descending.
    #[inline]
    pub fn compare_internal(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.compare(user_key(a), user_key(b))
            .then_with(|| trailer(b).cmp(&trailer(a)))
    }

    /// [`Comparator::shorten_separator`].
    pub fn shorten_separator(&self, separator: &mut Vec<u8>, limit: &[u8]) {
        match self {
            Self::Bytewise => BytewiseComparator.shorten_separator(separator, limit),
            Self::Custom(custom) => custom.shorten_separator(separator, limit),
        }
    }

    /// [`Comparator::shorten_successor`].
    pub fn shorten_successor(&self, key: &mut Vec<u8>) {
        match self {
            Self::Bytewise => BytewiseComparator.shorten_successor(key),
            Self::Custom(custom) => custom.shorten_successor(key),
        }
    }
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_separator_separates(mut a: Vec<u8>, mut b: Vec<u8>) {
            if a > b {
                std::mem::swap(&mut a, &mut b);
            }
            if a == b {
                return Ok(());
            }
            let mut separator = a.clone();
            BytewiseComparator.shorten_separator(&mut separator, &b);
            prop_assert!(a <= separator && separator < b && separator.len() <= a.len());
        }

        #[test]
        fn a_successor_follows(key: Vec<u8>) {
            let mut successor = key.clone();
            BytewiseComparator.shorten_successor(&mut successor);
            prop_assert!(key <= successor && successor.len() <= key.len());
        }
    }
}
