//! The blob files of a column family, and how much of each its tables still refer to.
//!
//! A table tells of each blob file how many records, and how many bytes of them, its rows point to. What is live in a
//! blob file is the sum over all tables of the version, so it needs no bookkeeping of its own, can't drift, and is as
//! atomic as the edits that add and remove tables. A file leaves with the last table that refers to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::FileMeta;
use super::names::FileKind;
use super::slot::{BlobSlot, Graveyard};
use crate::error::{Error, Result};

/// What a table refers to in one blob file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobRef {
    /// The blob file's number, as [rows have it](BlobFile::pointed_as).
    pub file: u64,
    /// Rows that point into it.
    pub records: u64,
    /// Bytes of the records that they point to.
    pub bytes: u64,
}

/// What a blob file was in the database that wrote it, where that is another one.
///
/// Rows hold the number of the blob file that they point into, and every record's checksum depends on it. So a file that
/// is imported gets another name, and stays for its rows what it was. That is without ambiguity within a family: all
/// files that it was imported with come from one family, and numbers that are drawn later are larger than all of theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobOrigin {
    /// The database id in its header.
    pub database_id: u64,
    /// The number in its header.
    pub number: u64,
}

/// A blob file. Immutable, and shared by all versions that hold it.
#[derive(Debug)]
pub struct BlobFile {
    /// The number in its name.
    pub number: u64,
    /// Its length in bytes.
    pub file_bytes: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of all records.
    pub record_bytes: u64,
    /// What it was where it comes from, if it was not written by this database.
    pub origin: Option<BlobOrigin>,
    /// Its open reader.
    pub reader: BlobSlot,
}

impl BlobFile {
    /// A file as its writer left it.
    pub fn new(number: u64, file_bytes: u64, records: u64, record_bytes: u64) -> Self {
        Self {
            number,
            file_bytes,
            records,
            record_bytes,
            origin: None,
            reader: BlobSlot::default(),
        }
    }

    /// The same file under another name.
    pub fn renamed(&self, number: u64, origin: Option<BlobOrigin>) -> Self {
        Self {
            origin,
            ..Self::new(number, self.file_bytes, self.records, self.record_bytes)
        }
    }

    /// Its number in rows that point into it, unique in its column family; that in its name, unless it was imported.
    #[inline]
    pub fn pointed_as(&self) -> u64 {
        self.origin.map_or(self.number, |origin| origin.number)
    }

    /// As [`Slot::mark_obsolete`](super::Slot::mark_obsolete).
    pub fn mark_obsolete(&self, graveyard: &Arc<Graveyard>) {
        let file = FileKind::Blob(self.number);
        self.reader.mark_obsolete(graveyard, file, self.file_bytes);
    }

    /// Whether all that is stored of the two is equal.
    pub fn same_stored(&self, other: &Self) -> bool {
        let fields = |file: &Self| [file.number, file.file_bytes, file.records, file.record_bytes];
        fields(self) == fields(other) && self.origin == other.origin
    }
}

/// A blob file and what is live in it.
#[derive(Clone, Debug)]
pub struct BlobUse {
    /// The file.
    pub file: Arc<BlobFile>,
    /// Rows that point into it.
    pub live_records: u64,
    /// Bytes of the records that they point to.
    pub live_bytes: u64,
}

impl BlobUse {
    /// The live part of the file, 0 to 1.
    pub fn live_ratio(&self) -> f64 {
        self.live_bytes as f64 / self.file.record_bytes.max(1) as f64
    }
}

/// The blob files of a column family.
#[derive(Clone, Debug, Default)]
pub struct BlobSet {
    /// By the number that rows have.
    files: BTreeMap<u64, BlobUse>,
    /// Whether some of them have another number in their name.
    imported: bool,
}

impl BlobSet {
    /// The file that rows point to by this number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&Arc<BlobFile>> {
        Some(&self.files.get(&number)?.file)
    }

    /// The file that rows point to by this number; a pointer to one that is not there is damage.
    #[inline]
    pub fn find(&self, number: u64) -> Result<&Arc<BlobFile>> {
        self.get(number).ok_or_else(|| {
            Error::corruption(format!(
                "a row points into blob file {number}, which is not there"
            ))
        })
    }

    /// The number in the name of the file that rows point to by `pointed_as`, which is unique in the database. Of a file that is
    /// not there it may be `u64::MAX`, which no file has.
    #[inline]
    pub fn number_of(&self, pointed_as: u64) -> u64 {
        match self.imported {
            false => pointed_as,
            true => self.get(pointed_as).map_or(u64::MAX, |file| file.number),
        }
    }

    /// Whether a file with this number in its name is among them. O(log files), or O(files) where some were imported.
    pub fn holds(&self, number: u64) -> bool {
        match self.imported {
            false => self.files.contains_key(&number),
            true => self.iter().any(|blob| blob.file.number == number),
        }
    }

    /// All files, by the number that rows have.
    pub fn iter(&self) -> impl Iterator<Item = &BlobUse> {
        self.files.values()
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.iter()
            .fold(0, |sum, blob| sum.saturating_add(blob.file.file_bytes))
    }

    /// Bytes of all records that tables refer to.
    pub fn live_bytes(&self) -> u64 {
        self.iter()
            .fold(0, |sum, blob| sum.saturating_add(blob.live_bytes))
    }

    /// Adds a file that nothing refers to yet; it stays until something did and no longer does.
    ///
    /// # Errors
    /// `Corruption` if it is there already.
    pub fn add(&mut self, file: Arc<BlobFile>) -> Result<()> {
        let number = file.pointed_as();
        self.imported |= number != file.number;
        let unused = BlobUse {
            file,
            live_records: 0,
            live_bytes: 0,
        };
        match self.files.insert(number, unused) {
            None => Ok(()),
            Some(_) => Err(Error::corruption(format!("blob file {number} is added twice"))),
        }
    }

    /// Counts what a table refers to.
    ///
    /// # Errors
    /// `Corruption` if it refers to a file that is not there, or to more than the file holds.
    pub fn add_refs(&mut self, table: &FileMeta) -> Result<()> {
        for part in &table.blobs {
            let Some(blob) = self.files.get_mut(&part.file) else {
                return Err(Error::corruption(format!(
                    "table {} refers to blob file {}, which is not there",
                    table.number, part.file
                )));
            };
            blob.live_records = blob.live_records.saturating_add(part.records);
            blob.live_bytes = blob.live_bytes.saturating_add(part.bytes);
        }
        Ok(())
    }

    /// Discounts what a table that leaves referred to; files that nothing refers to any more leave with it.
    pub fn remove_refs(&mut self, table: &FileMeta) {
        for part in &table.blobs {
            if let Some(blob) = self.files.get_mut(&part.file) {
                blob.live_records = blob.live_records.saturating_sub(part.records);
                blob.live_bytes = blob.live_bytes.saturating_sub(part.bytes);
                if blob.live_records == 0 {
                    self.files.remove(&part.file);
                }
            }
        }
    }

    /// Forgets files that nothing refers to: what a snapshot in parts may leave until its last part.
    pub fn prune(&mut self) {
        self.files.retain(|_, blob| blob.live_records > 0);
    }

    /// Files of `self` that are not in `next`.
    pub fn gone(&self, next: &Self) -> Vec<Arc<BlobFile>> {
        let gone = |blob: &&BlobUse| !next.files.contains_key(&blob.file.pointed_as());
        self.iter()
            .filter(gone)
            .map(|blob| Arc::clone(&blob.file))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(number: u64, refs: &[(u64, u64, u64)]) -> FileMeta {
        let part = |&(file, records, bytes): &(u64, u64, u64)| BlobRef { file, records, bytes };
        FileMeta {
            number,
            blobs: refs.iter().map(part).collect(),
            ..FileMeta::default()
        }
    }

    fn live(set: &BlobSet) -> Vec<(u64, u64, u64)> {
        set.iter()
            .map(|blob| (blob.file.number, blob.live_records, blob.live_bytes))
            .collect()
    }

    #[test]
    fn a_file_leaves_with_the_last_table_that_refers_to_it() {
        let mut set = BlobSet::default();
        for number in [3, 5] {
            set.add(Arc::new(BlobFile::new(number, 1100, 10, 1000))).unwrap();
        }
        let (first, second) = (table(1, &[(3, 4, 400), (5, 1, 100)]), table(2, &[(3, 6, 600)]));
        set.add_refs(&first).unwrap();
        set.add_refs(&second).unwrap();
        assert_eq!(live(&set), [(3, 10, 1000), (5, 1, 100)]);
        assert_eq!((set.file_bytes(), set.live_bytes()), (2200, 1100));
        let before = set.clone();
        set.remove_refs(&first);
        assert_eq!(live(&set), [(3, 6, 600)]);
        assert_eq!(before.gone(&set).len(), 1);
        set.remove_refs(&second);
        assert!(set.is_empty());
    }

    #[test]
    fn an_imported_file_is_known_to_rows_by_the_number_it_had() {
        let imported = |number, was| {
            let origin = BlobOrigin {
                database_id: 9,
                number: was,
            };
            Arc::new(BlobFile {
                origin: Some(origin),
                ..BlobFile::new(number, 1100, 10, 1000)
            })
        };
        let mut set = BlobSet::default();
        set.add(imported(40, 3)).unwrap();
        set.add(imported(41, 40)).unwrap();
        set.add(Arc::new(BlobFile::new(50, 1100, 10, 1000))).unwrap();
        assert!(set.clone().add(imported(60, 3)).is_err(), "two of one number");
        assert_eq!(
            [3, 40, 50, 7].map(|number| set.number_of(number)),
            [40, 41, 50, u64::MAX]
        );
        assert_eq!(set.find(40).unwrap().number, 41);
        assert_eq!(
            [3, 40, 41, 50].map(|number| set.holds(number)),
            [false, true, true, true]
        );
        let refs = table(1, &[(3, 4, 400), (50, 1, 100)]);
        set.add_refs(&refs).unwrap();
        let before = set.clone();
        set.prune();
        assert_eq!(live(&set), [(40, 4, 400), (50, 1, 100)]);
        let gone = before.gone(&set);
        assert_eq!(gone.iter().map(|file| file.number).collect::<Vec<_>>(), [41]);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let mut set = BlobSet::default();
        set.add(Arc::new(BlobFile::new(3, 1100, 10, 1000))).unwrap();
        assert!(set.add(Arc::new(BlobFile::new(3, 1, 1, 1))).is_err());
        let error = set.add_refs(&table(9, &[(4, 1, 1)])).unwrap_err();
        assert!(
            error.message().contains("table 9") && error.message().contains("blob file 4"),
            "{error}"
        );
    }

    #[test]
    fn a_removed_file_is_buried_when_its_last_holder_is_gone() {
        let graveyard = Arc::new(Graveyard::default());
        let held = Arc::new(BlobFile::new(3, 1100, 10, 1000));
        let reader = Arc::clone(&held);
        held.mark_obsolete(&graveyard);
        drop(held);
        assert!(graveyard.is_empty());
        drop(reader);
        assert_eq!(graveyard.drain()[0].file, FileKind::Blob(3));
        drop(BlobFile::new(4, 1, 1, 1));
        assert!(graveyard.is_empty(), "what was not removed stays");
    }
}
