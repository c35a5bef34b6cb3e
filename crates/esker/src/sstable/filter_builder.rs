//! Collects hashes while a table is written, and makes filters of them.

use super::filter::{build_filter, filter_hash};
use super::index::Partition;
use super::options::TableOptions;
use crate::key::user_key;
use crate::options::PrefixExtractor;

/// Collects hashes and turns them into filters, one for a run of data blocks.
#[derive(Debug)]
pub struct FilterBuilder {
    hashes: Vec<u64>,
    last_key_hash: Option<u64>,
    last_prefix_hash: Option<u64>,
    whole_keys: bool,
    extractor: Option<PrefixExtractor>,
    bits_per_key: u32,
    partition_hashes: usize,
    /// The finished filters, one after the other.
    pub bytes: Vec<u8>,
    pub partitions: Vec<Partition>,
}

impl FilterBuilder {
    /// `None` if the options ask for no filter.
    pub fn new(options: &TableOptions) -> Option<Self> {
        let bits_per_key = options.filter_bits_per_key;
        if bits_per_key == 0 || !(options.whole_key_filter || options.prefix_extractor.is_some()) {
            return None;
        }
        Some(Self {
            hashes: Vec::new(),
            last_key_hash: None,
            last_prefix_hash: None,
            whole_keys: options.whole_key_filter,
            extractor: options.prefix_extractor,
            bits_per_key,
            partition_hashes: (options.filter_partition_bytes * 8 / bits_per_key as usize).max(1),
            bytes: Vec::new(),
            partitions: Vec::new(),
        })
    }

    /// Adds a key behind the last. Versions of one key, and keys of one prefix, follow each other: only the first of them counts.
    #[inline]
    pub fn add(&mut self, user_key: &[u8]) {
        if self.whole_keys {
            let hash = Some(filter_hash(user_key));
            if hash != self.last_key_hash {
                self.last_key_hash = hash;
                self.hashes.extend(hash);
            }
        }
        if self.extractor.is_some() {
            self.add_prefix(user_key);
        }
    }

    fn add_prefix(&mut self, user_key: &[u8]) {
        let prefix = self.extractor.and_then(|extractor| extractor.prefix(user_key));
        let hash = prefix.map(filter_hash);
        if hash.is_some() && hash != self.last_prefix_hash {
            self.last_prefix_hash = hash;
            self.hashes.extend(hash);
        }
    }

    /// About the size of all filters so far, in bytes.
    pub fn byte_len(&self) -> usize {
        self.bytes.len() + self.hashes.len() * self.bits_per_key as usize / 8
    }

    /// A data block ended at `separator`; `next` is the key behind it. A separator may already have the prefix of
    /// the next key, so that a seek to that prefix ends here: the filter gets it too.
    pub fn end_block(&mut self, separator: &[u8], next: Option<&[u8]>) {
        if next.is_some() && self.hashes.len() < self.partition_hashes {
            return;
        }
        if let Some(next) = next {
            self.add_prefix(user_key(next));
        }
        build_filter(&self.hashes, self.bits_per_key, &mut self.bytes);
        self.partitions.push(Partition {
            end: self.bytes.len(),
            separator: separator.to_vec(),
        });
        self.hashes.clear();
        self.last_key_hash = None;
        self.last_prefix_hash = None;
    }
}
