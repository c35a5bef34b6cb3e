//! What a prefix scan leaves out: files in which bounds and filter tell that no key has the prefix.

use std::cmp::Ordering;

use crate::options::PrefixExtractor;
use crate::sstable::SamePrefix;
use crate::version::FileMeta;

/// The prefix to which a source is restricted, if it is.
#[derive(Debug, Default)]
pub struct Restriction {
    extractor: Option<PrefixExtractor>,
    prefix: Vec<u8>,
}

impl Restriction {
    /// Restricts to the keys of which the extractor gives the prefix; `None`: to nothing.
    pub fn set(&mut self, prefix: Option<(PrefixExtractor, &[u8])>) {
        self.extractor = None;
        self.prefix.clear();
        if let Some((extractor, prefix)) = prefix {
            self.extractor = Some(extractor);
            self.prefix.extend_from_slice(prefix);
        }
    }

    /// The keys that are asked for, if not all are.
    #[inline]
    pub fn keys(&self) -> Option<SamePrefix<'_>> {
        Some(SamePrefix::new(self.extractor?, &self.prefix))
    }
}

/// Where a file lies: wholly before the keys, wholly behind them, or around some (`Equal`). Reads nothing.
pub fn side_of_file(keys: &SamePrefix<'_>, file: &FileMeta) -> Ordering {
    if keys.side_of(file.smallest_user_key()).is_gt() {
        Ordering::Greater
    } else if keys.side_of(file.largest_user_key()).is_lt() {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}
