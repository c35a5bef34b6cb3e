//! Values behind pointers: out of the block cache, or read out of blob files, one or many together.

use std::sync::Arc;

use super::{BlobSet, Tables};
use crate::blob::{BlobPointer, BlobReader, WantedValue, read_values};
use crate::cache::{BlockKey, CachedBlock, SharedBytes};
use crate::error::Result;
use crate::sstable::TableReadOptions;

/// Values that are read together, and their bytes, unless one alone has more.
const BATCH_VALUES_MAX: usize = 128;
const BATCH_BYTES_MAX: u64 = 4 << 20;

impl Tables {
    /// The value behind `pointer`, as a row holds it: from the block cache, or by one storage read.
    pub fn value(&self, blobs: &BlobSet, pointer: &[u8], read: TableReadOptions) -> Result<SharedBytes> {
        let pointer = BlobPointer::decode(pointer)?;
        let key = value_key(blobs, &pointer);
        if let Some(cached) = self.cache.get(key) {
            self.metrics.cache_hits.add(1);
            return Ok(cached.bytes);
        }
        self.metrics.cache_misses.add(1);
        let file = blobs.find(pointer.file)?;
        let value = self.with_blob(file, |reader| reader.read(&pointer, read.verify_checksums))?;
        if read.fill_cache {
            self.keep_value(blobs, &pointer, value.clone());
        }
        Ok(value)
    }

    /// The value behind a pointer if it is in the block cache.
    #[inline]
    pub fn cached_value(&self, blobs: &BlobSet, pointer: &BlobPointer) -> Option<SharedBytes> {
        let cached = self.cache.get(value_key(blobs, pointer))?;
        self.metrics.cache_hits.add(1);
        Some(cached.bytes)
    }

    /// Keeps a value in the block cache.
    pub fn keep_value(&self, blobs: &BlobSet, pointer: &BlobPointer, bytes: SharedBytes) {
        let words = [0; 4];
        self.cache
            .insert(value_key(blobs, pointer), CachedBlock { bytes, words });
    }

    /// Gives `found` the value behind each of `pointers`, by its number among them and in no particular order: those
    /// that the block cache has, then the others, which are read together. What [`value`](Self::value) gives for each.
    /// Fails with the error of one of them if one fails.
    pub fn values(
        &self,
        blobs: &BlobSet,
        pointers: &[&[u8]],
        read: TableReadOptions,
        mut found: impl FnMut(usize, SharedBytes),
    ) -> Result<()> {
        let mut missing = Vec::new();
        for (number, pointer) in pointers.iter().enumerate() {
            let pointer = BlobPointer::decode(pointer)?;
            match self.cached_value(blobs, &pointer) {
                Some(value) => found(number, value),
                None => missing.push((pointer, number)),
            }
        }
        missing.sort_unstable_by_key(|(pointer, _)| (pointer.file, pointer.offset, pointer.bytes));
        let mut rest = missing.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_len(rest));
            rest = later;
            self.read_batch(blobs, batch, read, &mut found)?;
        }
        Ok(())
    }

    fn read_batch(
        &self,
        blobs: &BlobSet,
        batch: &[(BlobPointer, usize)],
        read: TableReadOptions,
        found: &mut impl FnMut(usize, SharedBytes),
    ) -> Result<()> {
        // A value that is wanted more than once is read once.
        let groups: Vec<&[(BlobPointer, usize)]> = batch.chunk_by(|a, b| a.0 == b.0).collect();
        self.metrics.cache_misses.add(groups.len() as u64);
        let readers = groups
            .iter()
            .map(|group| self.blob(blobs.find(group[0].0.file)?))
            .collect::<Result<Vec<Arc<BlobReader>>>>()?;
        let wanted: Vec<WantedValue<'_>> = groups
            .iter()
            .zip(&readers)
            .map(|(group, reader)| WantedValue {
                reader,
                pointer: &group[0].0,
            })
            .collect();
        let values = read_values(self.fs(), &wanted, read.verify_checksums)?;
        for (group, value) in groups.into_iter().zip(values) {
            if read.fill_cache {
                self.keep_value(blobs, &group[0].0, value.clone());
            }
            for &(_, number) in group {
                found(number, value.clone());
            }
        }
        Ok(())
    }
}

/// How many of the values go into the next batch; at least one.
fn batch_len(values: &[(BlobPointer, usize)]) -> usize {
    let mut bytes = 0_u64;
    let fits = |(pointer, _): &&(BlobPointer, usize)| {
        bytes = bytes.saturating_add(pointer.bytes);
        bytes <= BATCH_BYTES_MAX
    };
    values
        .iter()
        .take(BATCH_VALUES_MAX)
        .take_while(fits)
        .count()
        .max(1)
}

/// Files of all kinds draw the numbers in their names from one counter, so a value's key is no block's.
#[inline]
fn value_key(blobs: &BlobSet, pointer: &BlobPointer) -> BlockKey {
    BlockKey {
        table: blobs.number_of(pointer.file),
        offset: pointer.offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_values_and_by_bytes() {
        let values = |bytes: u64, count: usize| {
            let pointer = BlobPointer {
                file: 1,
                offset: 32,
                bytes,
            };
            vec![(pointer, 0); count]
        };
        for (bytes, count, len) in [
            (1000, 5, 5),
            (1000, 500, BATCH_VALUES_MAX),
            (1 << 20, 500, 4),
            (5 << 20, 500, 1),
            (u64::MAX, 2, 1),
        ] {
            assert_eq!(batch_len(&values(bytes, count)), len, "{count} of {bytes} bytes");
        }
    }
}
