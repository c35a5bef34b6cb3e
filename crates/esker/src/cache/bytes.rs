//! A range of shared, immutable bytes: what pinned values and blocks are made of.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A range of a shared buffer. Cloning counts one reference and copies nothing; the whole buffer lives as long as
/// any range of it.
#[derive(Clone)]
pub struct SharedBytes {
    buffer: Arc<[u8]>,
    // Invariant: start <= end <= buffer.len().
    start: usize,
    end: usize,
}

impl SharedBytes {
    /// The whole of `buffer`.
    #[inline]
    pub fn new(buffer: Arc<[u8]>) -> Self {
        let end = buffer.len();
        Self {
            buffer,
            start: 0,
            end,
        }
    }

    /// A range of `buffer`, or `None` if it is not inside.
    #[inline]
    pub fn from_range(buffer: Arc<[u8]>, range: Range<usize>) -> Option<Self> {
        (range.start <= range.end && range.end <= buffer.len()).then_some(Self {
            buffer,
            start: range.start,
            end: range.end,
        })
    }

    /// A range of this range, or `None` if it is not inside. Counts one reference.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        (range.start <= range.end && range.end <= self.end - self.start).then(|| Self {
            buffer: Arc::clone(&self.buffer),
            start: self.start + range.start,
            end: self.start + range.end,
        })
    }

    /// Bytes of the buffer that this range keeps alive.
    #[inline]
    pub fn backing_len(&self) -> usize {
        self.buffer.len()
    }
}

/// A buffer of `len` zeros that can be filled through [`Arc::get_mut`] as long as it is not shared.
pub(crate) fn zeroed(len: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, len).collect()
}

impl Default for SharedBytes {
    fn default() -> Self {
        Self::new(Arc::from([]))
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Arc::from(bytes))
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::new(Arc::from(bytes))
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedBytes({} bytes)", self.end - self.start)
    }
}
