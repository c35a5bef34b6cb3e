//! One level of a version: its files in order, and fast answers to "which files concern these keys".
//!
//! Invariants of a sorted level (every level but 0):
//! 1. Files are sorted by their smallest internal key, and each ends before the next begins (as internal keys).
//! 2. Two neighbours may share a boundary *user* key. The left one then holds its newer versions; a compaction
//!    must take both or none ([`Level::clean_cut`]).
//!
//! Level 0 is sorted from the newest file to the oldest, and its files may overlap.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use super::file::FileMeta;
use crate::error::{Error, Result};
use crate::key::{KeyOrder, key_head};

/// The files of one level.
#[derive(Clone, Debug, Default)]
pub struct Level {
    files: Vec<Arc<FileMeta>>,
    /// The bytes with which the largest user keys of all files begin. Bytewise sorted levels only.
    prefix: Vec<u8>,
    /// For each file the head of its largest user key behind `prefix`; empty unless bytewise and sorted. A search
    /// touches this dense array, and files only among equal heads.
    heads: Vec<u64>,
    /// `sums_before[i]`: what the files before `i` hold together; one entry more than there are files.
    sums_before: Vec<LevelSums>,
}

/// What files hold together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSums {
    /// Bytes of the files.
    pub size_bytes: u64,
    /// Bytes of the records in blob files that their rows point to.
    pub blob_bytes: u64,
    /// Point entries.
    pub entries: u64,
    /// Point tombstones among them.
    pub deletions: u64,
}

impl LevelSums {
    /// Of one file.
    pub fn of(file: &FileMeta) -> Self {
        Self {
            size_bytes: file.size_bytes,
            blob_bytes: file.blob_bytes(),
            entries: file.entries,
            deletions: file.deletions,
        }
    }

    fn with(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn without(self, other: Self) -> Self {
        self.each(other, u64::saturating_sub)
    }

    fn each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            size_bytes: combine(self.size_bytes, other.size_bytes),
            blob_bytes: combine(self.blob_bytes, other.blob_bytes),
            entries: combine(self.entries, other.entries),
            deletions: combine(self.deletions, other.deletions),
        }
    }
}

impl Level {
    /// A level 0 of these files, in any order.
    pub fn level0(mut files: Vec<Arc<FileMeta>>) -> Self {
        files.sort_unstable_by_key(|file| std::cmp::Reverse((file.sequence_max, file.number)));
        Self {
            sums_before: sums_before(&files),
            files,
            ..Self::default()
        }
    }

    /// A sorted level `level` of these files, in any order.
    ///
    /// # Errors
    /// `Corruption` that names two files which overlap.
    pub fn sorted(order: &KeyOrder, level: usize, mut files: Vec<Arc<FileMeta>>) -> Result<Self> {
        let by_smallest =
            |a: &Arc<FileMeta>, b: &Arc<FileMeta>| order.compare_internal(&a.smallest, &b.smallest);
        if !files.is_sorted_by(|a, b| by_smallest(a, b).is_le()) {
            files.sort_unstable_by(by_smallest);
        }
        for pair in files.windows(2) {
            if order.compare_internal(&pair[0].largest, &pair[1].smallest) != Ordering::Less {
                return Err(Error::corruption(format!(
                    "tables {} and {} overlap in level {level}",
                    pair[0].number, pair[1].number
                )));
            }
        }
        let (prefix, heads) = if order.is_bytewise() {
            heads_of(&files)
        } else {
            Default::default()
        };
        Ok(Self {
            sums_before: sums_before(&files),
            files,
            prefix,
            heads,
        })
    }

    /// The files: level 0 newest first, others by key.
    #[inline]
    pub fn files(&self) -> &[Arc<FileMeta>] {
        &self.files
    }

    /// Whether there are no files.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Number of files.
    #[inline]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Bytes of all files.
    #[inline]
    pub fn size_bytes(&self) -> u64 {
        self.sums_before.last().map_or(0, |sums| sums.size_bytes)
    }

    /// Bytes of a run of files. O(1).
    #[inline]
    pub fn range_bytes(&self, range: &Range<usize>) -> u64 {
        self.sums(range).size_bytes
    }

    /// What a run of files holds. O(1).
    #[inline]
    pub fn sums(&self, range: &Range<usize>) -> LevelSums {
        if range.is_empty() {
            return LevelSums::default();
        }
        self.sums_before[range.end].without(self.sums_before[range.start])
    }

    /// The first file that does not lie wholly before `key`: its index, or the number of files. Sorted levels
    /// only. O(log n), mostly in the array of heads.
    #[inline]
    pub fn seek(&self, order: &KeyOrder, key: &[u8]) -> usize {
        if self.heads.is_empty() || !order.is_bytewise() {
            return self.files.partition_point(|file| file.ends_before(order, key));
        }
        let Some(suffix) = key.strip_prefix(self.prefix.as_slice()) else {
            // All largest keys begin with the prefix, so the key lies before or after every one of them.
            return if key < self.prefix.as_slice() {
                0
            } else {
                self.files.len()
            };
        };
        let head = key_head(suffix);
        let start = self.heads.partition_point(|&at| at < head);
        let equal = self.heads[start..].partition_point(|&at| at == head);
        start + self.files[start..start + equal].partition_point(|file| file.ends_before(order, key))
    }

    /// The file that holds the newest version of a user key in this level, if any file's range covers the key.
    /// Sorted levels only. Older versions may continue in the next file; [`find_all`](Self::find_all) gives all.
    #[inline]
    pub fn find(&self, order: &KeyOrder, user_key: &[u8]) -> Option<&Arc<FileMeta>> {
        let file = self.files.get(self.seek(order, user_key))?;
        (!file.starts_after(order, user_key)).then_some(file)
    }

    /// The files whose ranges cover a user key, newest versions first; rarely more than one. Sorted levels only.
    #[inline]
    pub fn find_all(&self, order: &KeyOrder, user_key: &[u8]) -> &[Arc<FileMeta>] {
        let start = self.seek(order, user_key);
        let count = self.files[start..]
            .iter()
            .take_while(|file| !file.starts_after(order, user_key))
            .count();
        &self.files[start..start + count]
    }

    /// The run of files that reach into `smallest..=largest` (user keys). Sorted levels only. O(log n).
    pub fn overlapping(&self, order: &KeyOrder, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        let start = self.seek(order, smallest);
        let mut end = self.seek(order, largest).max(start);
        // Files that share `largest` as a boundary all belong.
        while self
            .files
            .get(end)
            .is_some_and(|file| !file.starts_after(order, largest))
        {
            end += 1;
        }
        start..end
    }

    /// Grows a run of files until no file outside shares a user key with one inside. Sorted levels only.
    pub fn clean_cut(&self, order: &KeyOrder, range: Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return range;
        }
        let Range { mut start, mut end } = range;
        while start > 0 && self.shares_boundary(order, start - 1) {
            start -= 1;
        }
        while end < self.files.len() && self.shares_boundary(order, end - 1) {
            end += 1;
        }
        start..end
    }

    /// Whether file `index` and the one after it hold versions of one user key.
    #[inline]
    fn shares_boundary(&self, order: &KeyOrder, index: usize) -> bool {
        !self.files[index].ends_before(order, self.files[index + 1].smallest_user_key())
    }
}

fn sums_before(files: &[Arc<FileMeta>]) -> Vec<LevelSums> {
    let mut total = LevelSums::default();
    let mut sums = Vec::with_capacity(files.len() + 1);
    sums.push(total);
    for file in files {
        total = total.with(LevelSums::of(file));
        sums.push(total);
    }
    sums
}

/// The common prefix of the largest user keys (of the first and the last, as they are sorted) and the heads
/// behind it.
fn heads_of(files: &[Arc<FileMeta>]) -> (Vec<u8>, Vec<u64>) {
    let (Some(first), Some(last)) = (files.first(), files.last()) else {
        return Default::default();
    };
    let (first, last) = (first.largest_user_key(), last.largest_user_key());
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let heads = files
        .iter()
        .map(|file| key_head(&file.largest_user_key()[shared..]))
        .collect();
    (first[..shared].to_vec(), heads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{BytewiseComparator, ValueKind, internal_key};
    use crate::version::exclusive_bound;
    use proptest::prelude::*;

    fn file(number: u64, smallest: (&[u8], u64), largest: (&[u8], u64)) -> Arc<FileMeta> {
        Arc::new(FileMeta {
            number,
            size_bytes: number * 10,
            smallest: internal_key(smallest.0, smallest.1, ValueKind::Put),
            largest: internal_key(largest.0, largest.1, ValueKind::Put),
            sequence_max: number,
            ..FileMeta::default()
        })
    }

    /// Sorted distinct keys, cut into files of two keys each; some cuts share a user key, some end exclusively.
    fn files_of(keys: &[Vec<u8>], shared: &[bool]) -> Vec<Arc<FileMeta>> {
        let mut files: Vec<Arc<FileMeta>> = Vec::new();
        for (i, pair) in keys.chunks_exact(2).enumerate() {
            let number = i as u64 + 1;
            let shares = shared.get(i).copied().unwrap_or(false);
            let mut meta = FileMeta {
                number,
                size_bytes: number,
                smallest: internal_key(&pair[0], 5, ValueKind::Put),
                largest: internal_key(&pair[1], 9, ValueKind::Put),
                ..FileMeta::default()
            };
            if let (true, Some(before)) = (shares, files.last()) {
                meta.smallest = internal_key(before.largest_user_key(), 5, ValueKind::Put);
            } else if i % 3 == 2 {
                meta.largest = exclusive_bound(&pair[1]);
            }
            files.push(Arc::new(meta));
        }
        files
    }

    fn covers(file: &FileMeta, low: &[u8], high: &[u8]) -> bool {
        let end = file.largest_user_key();
        file.smallest_user_key() <= high && (low < end || (low == end && !file.largest_is_exclusive()))
    }

    fn key_strategy() -> impl Strategy<Value = Vec<u8>> {
        let tail = proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(255), any::<u8>()], 0..4);
        (
            prop_oneof![Just(&b"user00000000"[..]), Just(&b"user0"[..]), Just(&b""[..])],
            tail,
        )
            .prop_map(|(head, tail)| [head, &tail].concat())
    }

    proptest! {
        #[test]
        fn searches_agree_with_a_linear_scan(
            keys in proptest::collection::btree_set(key_strategy(), 0..40),
            shared in proptest::collection::vec(any::<bool>(), 20),
            probes in proptest::collection::vec((key_strategy(), key_strategy()), 30),
            custom: bool,
            long_prefix: bool,
        ) {
            let order = if custom { KeyOrder::Custom(Arc::new(BytewiseComparator)) } else { KeyOrder::Bytewise };
            let grow = |key: &Vec<u8>| if long_prefix { [b"table/17/", key.as_slice()].concat() } else { key.clone() };
            let keys: Vec<Vec<u8>> = keys.iter().map(grow).collect();
            let files = files_of(&keys, &shared);
            let level = Level::sorted(&order, 1, files.clone()).expect("disjoint");
            let grown = probes.iter().map(|(a, b)| (grow(a), grow(b)));
            for (a, b) in grown.chain(probes.clone()).chain(keys.iter().map(|k| (k.clone(), k.clone()))) {
                let all: Vec<u64> = files.iter().filter(|f| covers(f, &a, &a)).map(|f| f.number).collect();
                let found: Vec<u64> = level.find_all(&order, &a).iter().map(|f| f.number).collect();
                prop_assert_eq!(&found, &all);
                prop_assert_eq!(level.find(&order, &a).map(|f| f.number), all.first().copied());
                let (low, high) = if a <= b { (a, b) } else { (b, a) };
                let range = level.overlapping(&order, &low, &high);
                let inside: Vec<u64> = level.files()[range.clone()].iter().map(|f| f.number).collect();
                let expected: Vec<u64> =
                    files.iter().filter(|f| covers(f, &low, &high)).map(|f| f.number).collect();
                prop_assert_eq!(&inside, &expected);
                prop_assert_eq!(level.range_bytes(&range), inside.iter().sum::<u64>());
                let cut = level.clean_cut(&order, range.clone());
                prop_assert!(cut.start <= range.start && cut.end >= range.end);
                if !cut.is_empty() {
                    let (inner, outer) = (&files[cut.clone()], [&files[..cut.start], &files[cut.end..]].concat());
                    for inside in inner {
                        prop_assert!(!outer.iter().any(|f| inside.overlaps_file(&order, f)));
                    }
                }
            }
        }
    }

    #[test]
    fn level0_is_newest_first() {
        let files = vec![
            file(3, (b"a", 1), (b"z", 1)),
            file(9, (b"a", 1), (b"z", 1)),
            file(5, (b"a", 1), (b"z", 1)),
        ];
        let numbers: Vec<u64> = Level::level0(files).files().iter().map(|f| f.number).collect();
        assert_eq!(numbers, [9, 5, 3]);
    }

    #[test]
    fn overlap_is_an_error_that_names_both_tables() {
        let files = vec![file(4, (b"a", 1), (b"m", 5)), file(6, (b"m", 7), (b"z", 1))];
        let error = Level::sorted(&KeyOrder::Bytewise, 3, files).unwrap_err();
        assert_eq!(error.message(), "tables 4 and 6 overlap in level 3");
        let cut = vec![file(4, (b"a", 1), (b"m", 7)), file(6, (b"m", 5), (b"z", 1))];
        Level::sorted(&KeyOrder::Bytewise, 3, cut).expect("one user key, disjoint versions");
    }
}
