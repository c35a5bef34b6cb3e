//! A key as the lock table keeps it: a short one lies in the entry itself.

/// Bytes of the longest key that needs no allocation.
const INLINE_LEN_MAX: usize = 22;

/// A copy of a key.
#[derive(Clone)]
pub(super) enum StoredKey {
    Inline { len: u8, bytes: [u8; INLINE_LEN_MAX] },
    Heap(Box<[u8]>),
}

impl StoredKey {
    pub(super) fn new(key: &[u8]) -> Self {
        let mut bytes = [0; INLINE_LEN_MAX];
        match (bytes.get_mut(..key.len()), u8::try_from(key.len())) {
            (Some(start), Ok(len)) => {
                start.copy_from_slice(key);
                Self::Inline { len, bytes }
            }
            _ => Self::Heap(key.into()),
        }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Heap(bytes) => bytes,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for len in 0..=all.len() {
            let key = StoredKey::new(&all[..len]);
            assert_eq!(key.as_bytes(), &all[..len]);
            assert_eq!(matches!(key, StoredKey::Inline { .. }), len <= INLINE_LEN_MAX);
        }
        assert_eq!(size_of::<StoredKey>(), 24);
    }
}
