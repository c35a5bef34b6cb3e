//! A version: all tables of one column family at one moment.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::LEVELS_MAX;
use super::blobs::BlobSet;
use super::edit::VersionEdit;
use super::file::FileMeta;
use super::level::Level;
use crate::error::{Error, Result};
use crate::key::KeyOrder;

/// The tables of one column family. Immutable; levels that an edit does not touch are shared between versions.
#[derive(Clone, Debug)]
pub struct Version {
    order: KeyOrder,
    levels: Vec<Arc<Level>>,
    blobs: Arc<BlobSet>,
}

impl Version {
    /// A version without tables. `levels` is brought into 2..=[`LEVELS_MAX`].
    pub fn empty(order: KeyOrder, levels: usize) -> Self {
        let levels = levels.clamp(2, LEVELS_MAX);
        Self {
            order,
            levels: vec![Arc::default(); levels],
            blobs: Arc::default(),
        }
    }

    /// A version of these files, level by level, in any order within a level. There are at least `levels` levels,
    /// and more where there are files below that.
    ///
    /// # Errors
    /// `Corruption` that names the files at fault: impossible bounds, overlap in a sorted level, a number used
    /// twice.
    pub fn new(order: KeyOrder, levels: usize, files: Vec<Vec<Arc<FileMeta>>>) -> Result<Self> {
        let used = files
            .iter()
            .rposition(|level| !level.is_empty())
            .map_or(0, |last| last + 1);
        if used > LEVELS_MAX {
            return Err(Error::corruption(format!(
                "there are tables in level {}, but {} is the last one there can be",
                used - 1,
                LEVELS_MAX - 1
            )));
        }
        let mut version = Self::empty(order, levels.max(used));
        let mut numbers = HashSet::new();
        for (number, files) in files.into_iter().enumerate().take(used) {
            for file in &files {
                file.check(&version.order)?;
                if !numbers.insert(file.number) {
                    return Err(Error::corruption(format!(
                        "table {} is listed twice",
                        file.number
                    )));
                }
            }
            version.levels[number] = Arc::new(version.build(number, files)?);
        }
        Ok(version)
    }

    /// [`new`](Self::new) with the blob files that the tables refer to.
    ///
    /// # Errors
    /// As `new`; `Corruption` also if a table refers to a blob file that is not among `blobs`.
    pub fn with_blobs(
        order: KeyOrder,
        levels: usize,
        files: Vec<Vec<Arc<FileMeta>>>,
        blobs: &BlobSet,
    ) -> Result<Self> {
        let mut version = Self::new(order, levels, files)?;
        let mut used = BlobSet::default();
        for blob in blobs.iter() {
            used.add(Arc::clone(&blob.file))?;
        }
        for (_, file) in version.files() {
            used.add_refs(file)?;
        }
        used.prune();
        version.blobs = Arc::new(used);
        Ok(version)
    }

    fn build(&self, level: usize, files: Vec<Arc<FileMeta>>) -> Result<Level> {
        if level == 0 {
            Ok(Level::level0(files))
        } else {
            Level::sorted(&self.order, level, files)
        }
    }

    /// The order of keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// All levels, from 0.
    #[inline]
    pub fn levels(&self) -> &[Arc<Level>] {
        &self.levels
    }

    /// Level `level`, which must be smaller than [`level_count`](Self::level_count).
    #[inline]
    pub fn level(&self, level: usize) -> &Level {
        &self.levels[level]
    }

    /// The blob files that its tables refer to.
    #[inline]
    pub fn blobs(&self) -> &Arc<BlobSet> {
        &self.blobs
    }

    /// Number of levels, empty ones included.
    #[inline]
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// Bytes of all tables.
    pub fn size_bytes(&self) -> u64 {
        self.levels
            .iter()
            .fold(0, |sum, level| sum.saturating_add(level.size_bytes()))
    }

    /// Number of all tables.
    pub fn file_count(&self) -> usize {
        self.levels.iter().map(|level| level.len()).sum()
    }

    /// All tables with their levels.
    pub fn files(&self) -> impl Iterator<Item = (usize, &Arc<FileMeta>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(number, level)| level.files().iter().map(move |file| (number, file)))
    }

    /// The deepest level with a table in it.
    pub fn last_non_empty(&self) -> Option<usize> {
        self.levels.iter().rposition(|level| !level.is_empty())
    }

    /// The run of files of a sorted level that reach into `smallest..=largest` (user keys).
    pub fn overlapping(&self, level: usize, smallest: &[u8], largest: &[u8]) -> Range<usize> {
        debug_assert!(level > 0, "level 0 is not sorted by key");
        self.levels[level].overlapping(&self.order, smallest, largest)
    }

    /// Whether a file in a level below `level` (a larger number) reaches into `smallest..=largest` (user keys).
    pub fn overlaps_below(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        (level + 1..self.levels.len()).any(|below| !self.overlapping(below, smallest, largest).is_empty())
    }

    /// The version that `edit` leads to. Looks only at the edit's tables; whether it concerns this column family
    /// is for the caller to know. O(files of the levels touched).
    ///
    /// # Errors
    /// `Corruption` that names the table: one to remove is not there, one to add is there already or overlaps
    /// another in its level, a level that can't be.
    pub fn apply(&self, edit: &VersionEdit) -> Result<Version> {
        let mut next = self.clone();
        let mut touched = [false; LEVELS_MAX];
        let deepest = edit.added.iter().map(|&(level, _)| usize::from(level)).max();
        if let Some(level) = deepest.filter(|&level| level >= LEVELS_MAX) {
            return Err(Error::corruption(format!(
                "a table can't be added to level {level}"
            )));
        }
        let levels = self.levels.len().max(deepest.map_or(0, |level| level + 1));
        next.levels.resize_with(levels, Arc::default);
        for &(level, number) in &edit.removed {
            let level = usize::from(level);
            if level >= levels {
                return Err(missing(number, level));
            }
            touched[level] = true;
        }
        for (level, file) in &edit.added {
            file.check(&self.order)?;
            touched[usize::from(*level)] = true;
        }
        next.blobs = self.next_blobs(edit)?;
        for level in (0..levels).filter(|&level| touched[level]) {
            let files = next_files(next.levels[level].files(), edit, level)?;
            next.levels[level] = Arc::new(self.build(level, files)?);
        }
        next.debug_check();
        Ok(next)
    }

    /// The blob files after `edit`: what comes is counted before what leaves, so that a table that moves takes
    /// nothing away.
    fn next_blobs(&self, edit: &VersionEdit) -> Result<Arc<BlobSet>> {
        let touches = |file: &FileMeta| !file.blobs.is_empty();
        if self.blobs.is_empty() && !edit.added.iter().any(|(_, file)| touches(file)) {
            return Ok(Arc::clone(&self.blobs));
        }
        let mut blobs = BlobSet::clone(&self.blobs);
        for blob in &edit.added_blobs {
            blobs.add(Arc::clone(blob))?;
        }
        for (_, file) in &edit.added {
            blobs.add_refs(file)?;
        }
        for &(level, number) in &edit.removed {
            let files = self
                .levels
                .get(usize::from(level))
                .map_or(&[][..], |level| level.files());
            if let Some(file) = files.iter().find(|file| file.number == number) {
                blobs.remove_refs(file);
            }
        }
        Ok(Arc::new(blobs))
    }

    /// In debug builds: no number is listed twice (the constructors check the rest always).
    fn debug_check(&self) {
        if cfg!(debug_assertions) && self.file_count() < 4096 {
            let mut numbers = HashSet::new();
            for (level, file) in self.files() {
                debug_assert!(
                    numbers.insert(file.number),
                    "table {} is in level {level} and elsewhere",
                    file.number
                );
            }
        }
    }
}

fn missing(number: u64, level: usize) -> Error {
    Error::corruption(format!(
        "table {number} is to be removed from level {level}, where it is not"
    ))
}

/// The files of `level` after `edit`. A file that the edit both removes and adds in the level is replaced.
fn next_files(files: &[Arc<FileMeta>], edit: &VersionEdit, level: usize) -> Result<Vec<Arc<FileMeta>>> {
    let mut removed: HashSet<u64> = HashSet::new();
    for &(_, number) in edit.removed.iter().filter(|&&(at, _)| usize::from(at) == level) {
        if !removed.insert(number) {
            return Err(missing(number, level));
        }
    }
    let mut next: Vec<Arc<FileMeta>> = Vec::with_capacity(files.len() + edit.added.len());
    if removed.is_empty() {
        next.extend_from_slice(files);
    } else {
        next.extend(files.iter().filter(|file| !removed.remove(&file.number)).cloned());
        if let Some(&number) = removed.iter().min() {
            return Err(missing(number, level));
        }
    }
    let kept = next.len();
    next.extend(
        edit.added
            .iter()
            .filter(|(at, _)| usize::from(*at) == level)
            .map(|(_, file)| Arc::clone(file)),
    );
    let (kept, added) = next.split_at(kept);
    if !added.is_empty() {
        let added: HashSet<u64> = added.iter().map(|file| file.number).collect();
        let twice = kept.iter().find(|file| added.contains(&file.number));
        if let Some(number) = twice.map(|file| file.number) {
            return Err(Error::corruption(format!(
                "table {number} is to be added to level {level}, where it is already"
            )));
        }
        if added.len() < next.len() - kept.len() {
            return Err(Error::corruption(format!(
                "a table is added to level {level} twice"
            )));
        }
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{ValueKind, internal_key};

    fn file(number: u64, smallest: &str, largest: &str) -> Arc<FileMeta> {
        Arc::new(FileMeta {
            number,
            size_bytes: 100 + number,
            smallest: internal_key(smallest.as_bytes(), number, ValueKind::Put),
            largest: internal_key(largest.as_bytes(), number, ValueKind::Put),
            sequence_min: number,
            sequence_max: number,
            ..FileMeta::default()
        })
    }

    fn numbers(version: &Version, level: usize) -> Vec<u64> {
        version
            .level(level)
            .files()
            .iter()
            .map(|file| file.number)
            .collect()
    }

    fn start() -> Version {
        let files = vec![
            vec![file(10, "a", "z"), file(11, "c", "d")],
            vec![],
            vec![file(1, "a", "c"), file(2, "e", "g"), file(3, "k", "p")],
        ];
        Version::new(KeyOrder::Bytewise, 4, files).expect("valid")
    }

    #[test]
    fn an_edit_leads_to_the_next_version_and_leaves_the_old_one() {
        let old = start();
        let edit = VersionEdit {
            removed: vec![(0, 10), (2, 2)],
            added: vec![
                (2, file(20, "d", "e")),
                (2, file(21, "f", "h")),
                (3, file(22, "a", "b")),
            ],
            ..VersionEdit::default()
        };
        let new = old.apply(&edit).expect("valid");
        assert_eq!(
            (numbers(&new, 0), numbers(&new, 2), numbers(&new, 3)),
            (vec![11], vec![1, 20, 21, 3], vec![22])
        );
        assert_eq!(
            (numbers(&old, 0), numbers(&old, 2)),
            (vec![11, 10], vec![1, 2, 3])
        );
        assert_eq!(new.size_bytes(), 111 + 101 + 120 + 121 + 103 + 122);
        assert_eq!((new.last_non_empty(), new.file_count()), (Some(3), 6));
        assert!(new.overlaps_below(2, b"b", b"c") && !new.overlaps_below(2, b"c", b"z"));
    }

    #[test]
    fn a_moved_file_stays_the_same_object() {
        let old = start();
        let moved = Arc::clone(&old.level(2).files()[1]);
        let edit = VersionEdit {
            removed: vec![(2, 2)],
            added: vec![(3, Arc::clone(&moved))],
            ..VersionEdit::default()
        };
        let new = old.apply(&edit).expect("valid");
        assert!(Arc::ptr_eq(&moved, &new.level(3).files()[0]));
        assert!(
            Arc::ptr_eq(&old.levels()[0], &new.levels()[0]),
            "untouched levels are shared"
        );
    }

    #[test]
    fn an_edit_that_does_not_fit_is_corruption_that_names_the_table() {
        let bad: [(&str, VersionEdit); 7] = [
            (
                "table 7 is to be removed from level 2",
                VersionEdit {
                    removed: vec![(2, 7)],
                    ..Default::default()
                },
            ),
            (
                "table 1 is to be removed from level 0",
                VersionEdit {
                    removed: vec![(0, 1)],
                    ..Default::default()
                },
            ),
            (
                "table 1 is to be removed from level 9",
                VersionEdit {
                    removed: vec![(9, 1)],
                    ..Default::default()
                },
            ),
            (
                "table 1 is to be removed from level 2",
                VersionEdit {
                    removed: vec![(2, 1), (2, 1)],
                    ..Default::default()
                },
            ),
            (
                "tables 2 and 30 overlap in level 2",
                VersionEdit {
                    added: vec![(2, file(30, "f", "h"))],
                    ..Default::default()
                },
            ),
            (
                "table 3 is to be added to level 2",
                VersionEdit {
                    added: vec![(2, file(3, "x", "y"))],
                    ..Default::default()
                },
            ),
            (
                "level 16",
                VersionEdit {
                    added: vec![(16, file(40, "x", "y"))],
                    ..Default::default()
                },
            ),
        ];
        for (message, edit) in bad {
            let error = start().apply(&edit).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corruption);
            assert!(error.message().contains(message), "{error}");
        }
    }

    #[test]
    fn files_below_the_configured_levels_are_kept() {
        let version = Version::new(
            KeyOrder::Bytewise,
            2,
            vec![vec![], vec![], vec![], vec![file(1, "a", "b")]],
        )
        .expect("valid");
        assert_eq!(version.level_count(), 4);
    }
}
