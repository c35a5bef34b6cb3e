//! What can still be read of manifests that are damaged, and of one that `CURRENT` does not name any more.
//!
//! Each record proves itself, so that what follows a damage can be read. What the records then say does not add up to a
//! state: an edit is missing between them. It is given as [`Facts`], each of which was true when it was written:
//! a file that was removed by any of them is dead for ever, as numbers are never used twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use esker_env::Fs;

use super::reader::{parse_header, record_at};
use super::{HEADER_LEN, MAGIC, RECORD_HEADER_LEN, RecordKind, current};
use crate::codec::{take_slice, take_u8, take_u32, take_varint};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Sequence;
use crate::version::blobs::BlobFile;
use crate::version::edit::{ColumnFamilyRecord, VersionEdit};
use crate::version::file::FileMeta;
use crate::version::names::FileKind;

/// Bytes that may be looked at in search of a record behind a damage: a few seconds.
const SEARCH_BYTES_MAX: u64 = 4 << 30;

/// What a manifest says of a column family.
#[derive(Clone, Debug, Default)]
pub struct FamilyFacts {
    /// Name, key order, merge operator and settings; `None` if the record that made it is lost.
    pub record: Option<ColumnFamilyRecord>,
    /// WAL segments with smaller numbers hold nothing that it needs.
    pub log_number: u64,
    /// The ids of the databases that wrote blob files which it was imported with.
    pub databases: BTreeSet<u64>,
}

/// A table that a manifest lists.
#[derive(Clone, Debug)]
pub struct ListedTable {
    /// The id of its column family.
    pub family: u32,
    /// Its level, when it was listed last.
    pub level: u8,
    /// What is said of it.
    pub meta: Arc<FileMeta>,
}

/// What was read of the manifest.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The number of the manifest; `None` if none could be read.
    pub number: Option<u64>,
    /// Whether all of it was read, so that what it says is the state of the database.
    pub whole: bool,
    /// Whether it ends in a record that is not whole: that of a crash, if the state without it is there.
    pub torn: bool,
    /// The database's id.
    pub database_id: Option<u128>,
    /// No file that it knows has this number or a larger one.
    pub next_file_number: u64,
    /// No write in a table that it knows has a larger sequence number.
    pub last_sequence: Sequence,
    /// No column family that it knows has this id or a larger one.
    pub next_column_family: u32,
    /// The column families by id.
    pub families: BTreeMap<u32, FamilyFacts>,
    /// Column families that were dropped.
    pub dropped: BTreeSet<u32>,
    /// The tables by number.
    pub tables: BTreeMap<u64, ListedTable>,
    /// Tables that left.
    pub removed: BTreeSet<u64>,
    /// Blob files that came.
    pub blobs: BTreeMap<u64, Arc<BlobFile>>,
    /// What is wrong with `CURRENT` and the manifests.
    pub problems: Vec<Error>,
}

/// Reads what can be read: of the manifest that `CURRENT` names or, where that is lost, of the newest that is whole.
///
/// # Errors
/// `Unsupported` if a manifest was written by a newer version of the engine; `Io` if the folder can't be listed.
pub fn salvage(fs: &dyn Fs, dir: &Path) -> Result<Facts> {
    let names = fs
        .list(dir)
        .map_err(|error| Error::io("can't list the folder", error).in_file(dir))?;
    let number = |name: &String| match FileKind::parse(name)? {
        FileKind::Manifest(number) => Some(number),
        _ => None,
    };
    let mut problems = Vec::new();
    let named = match current::read(fs, dir) {
        Ok(number) => Some(number),
        Err(error) => {
            problems.push(error);
            None
        }
    };
    let mut found = Vec::new();
    for number in names.iter().filter_map(number) {
        found.push(read(fs, dir, number)?);
    }
    let live = found
        .iter()
        .position(|facts| facts.number == named && named.is_some());
    if let (None, Some(number)) = (live, named) {
        let path = FileKind::Manifest(number).path(dir);
        problems.push(Error::corruption("the manifest that CURRENT names is missing").in_file(&path));
    }
    let is_read = |facts: &Facts| facts.whole || !facts.families.is_empty() || !facts.tables.is_empty();
    let mut best = match live.filter(|&at| is_read(&found[at])) {
        Some(at) => found.swap_remove(at),
        None => {
            if let Some(at) = live {
                problems.append(&mut found[at].problems);
            }
            // The one that was written to last: it knows the most files.
            let newest = found
                .into_iter()
                .filter(is_read)
                .max_by_key(|facts| (facts.whole, facts.next_file_number, facts.number));
            let mut newest = newest.unwrap_or_default();
            // One that `CURRENT` never named, or not any more.
            newest.whole &= named.is_none();
            newest
        }
    };
    problems.append(&mut best.problems);
    best.problems = problems;
    Ok(best)
}

/// What one manifest says.
fn read(fs: &dyn Fs, dir: &Path, number: u64) -> Result<Facts> {
    let path = FileKind::Manifest(number).path(dir);
    match fs.read_all(&path) {
        Ok(bytes) => parse(&bytes, number)
            .map_err(|error| error.in_file(&path))
            .map(|mut facts| {
                let problems = std::mem::take(&mut facts.problems);
                facts.problems = problems.into_iter().map(|error| error.in_file(&path)).collect();
                facts
            }),
        Err(error) => Ok(Facts {
            number: Some(number),
            problems: vec![Error::io("can't read a manifest", error).in_file(&path)],
            ..Facts::default()
        }),
    }
}

/// Whether a format version that this engine does not know can be one: formats are counted, and what a power cut leaves of a header
/// that was never synced is not.
fn is_plausible(header: &[u8]) -> bool {
    let mut version = header.get(MAGIC.len()..).unwrap_or_default();
    take_u32(&mut version).is_some_and(|version| version <= 255)
}

pub(super) fn parse(bytes: &[u8], number: u64) -> Result<Facts> {
    let mut facts = Facts {
        number: Some(number),
        whole: true,
        next_file_number: number.saturating_add(1),
        ..Facts::default()
    };
    match parse_header(bytes, number) {
        Ok(id) => facts.database_id = Some(id),
        Err(error) if error.kind() == ErrorKind::Unsupported && is_plausible(bytes) => return Err(error),
        Err(error) => facts.damaged(Error::corruption(error.message()).at_offset(0)),
    }
    let (mut offset, mut in_snapshot) = (HEADER_LEN, true);
    while offset < bytes.len() {
        let Some(payload) = record_at(bytes, number, offset) else {
            let Some(next) = next_record(bytes, number, offset + 1) else {
                facts.torn = true;
                break;
            };
            let lost = next - offset;
            let error = Error::corruption(format!("{lost} bytes of the manifest are damaged"));
            facts.damaged(error.at_offset(offset as u64));
            offset = next;
            continue;
        };
        match facts.note_record(payload) {
            Ok(kind) => in_snapshot &= kind == RecordKind::Snapshot,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(error) => facts.damaged(error.at_offset(offset as u64)),
        }
        offset += RECORD_HEADER_LEN + payload.len();
    }
    if in_snapshot {
        facts.damaged(Error::corruption("the manifest ends within its snapshot").at_offset(offset as u64));
    }
    Ok(facts)
}

/// The first whole record at `from` or behind.
fn next_record(bytes: &[u8], number: u64, from: usize) -> Option<usize> {
    let mut budget = SEARCH_BYTES_MAX;
    (from..bytes.len().saturating_sub(RECORD_HEADER_LEN)).find(|&at| {
        let len = bytes[at..]
            .first_chunk()
            .map_or(0, |len| u32::from_le_bytes(*len));
        if len == 0 || len as usize > bytes.len() - at - RECORD_HEADER_LEN || u64::from(len) > budget {
            return false;
        }
        budget -= u64::from(len);
        record_at(bytes, number, at).is_some()
    })
}

impl Facts {
    fn damaged(&mut self, error: Error) {
        self.whole = false;
        self.problems.push(error);
    }

    fn note_record(&mut self, mut payload: &[u8]) -> Result<RecordKind> {
        let malformed = || Error::corruption("a record of the manifest is malformed");
        let kind = match take_u8(&mut payload).ok_or_else(malformed)? {
            1 => RecordKind::Snapshot,
            2 => RecordKind::SnapshotEnd,
            3 => RecordKind::Group,
            unknown => {
                let message =
                    format!("a record of kind {unknown} was written by a newer version of the engine");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        for _ in 0..take_varint(&mut payload).ok_or_else(malformed)? {
            let edit = VersionEdit::decode(take_slice(&mut payload).ok_or_else(malformed)?)?;
            self.note(&edit);
        }
        Ok(kind)
    }

    fn note(&mut self, edit: &VersionEdit) {
        let id = edit.column_family;
        self.database_id = self.database_id.or(edit.database_id);
        self.next_file_number = self.next_file_number.max(edit.next_file_number.unwrap_or(0));
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        self.next_column_family = self.next_column_family.max(edit.next_column_family.unwrap_or(0));
        if edit.drop {
            self.families.remove(&id);
            self.dropped.insert(id);
            let gone: Vec<u64> = self
                .tables
                .iter()
                .filter(|(_, table)| table.family == id)
                .map(|(&number, _)| number)
                .collect();
            for number in gone {
                self.tables.remove(&number);
                self.removed.insert(number);
            }
            return;
        }
        for blob in &edit.added_blobs {
            self.next_file_number = self.next_file_number.max(blob.number.saturating_add(1));
            self.blobs.insert(blob.number, Arc::clone(blob));
        }
        for &(_, number) in &edit.removed {
            self.tables.remove(&number);
            self.removed.insert(number);
        }
        for (level, meta) in &edit.added {
            self.next_file_number = self.next_file_number.max(meta.number.saturating_add(1));
            // One that moved.
            self.removed.remove(&meta.number);
            let table = ListedTable {
                family: id,
                level: *level,
                meta: Arc::clone(meta),
            };
            self.tables.insert(meta.number, table);
        }
        let concerns_family = edit.create.is_some()
            || edit.log_number.is_some()
            || edit.options.is_some()
            || edit.merge_operator.is_some()
            || !edit.added.is_empty()
            || !edit.added_blobs.is_empty();
        if !concerns_family || self.dropped.contains(&id) {
            return;
        }
        self.next_column_family = self.next_column_family.max(id.saturating_add(1));
        let family = self.families.entry(id).or_default();
        let origins = edit.added_blobs.iter().filter_map(|blob| blob.origin);
        family.databases.extend(origins.map(|origin| origin.database_id));
        if let Some(record) = &edit.create {
            family.record = Some(record.clone());
        }
        if let Some(number) = edit.log_number {
            family.log_number = family.log_number.max(number);
        }
        if let Some(record) = &mut family.record {
            if let Some(options) = &edit.options {
                record.options.clone_from(options);
            }
            if let Some(name) = &edit.merge_operator {
                record.merge_operator = Some(name.clone()).filter(|name| !name.is_empty());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{header, record};
    use super::*;

    fn create(id: u32, name: &str) -> VersionEdit {
        VersionEdit {
            create: Some(ColumnFamilyRecord {
                name: name.to_owned(),
                comparator: "esker.bytewise".to_owned(),
                ..ColumnFamilyRecord::default()
            }),
            ..VersionEdit::of(id)
        }
    }

    fn table(number: u64) -> VersionEdit {
        let key = crate::key::internal_key(b"key", number, crate::key::ValueKind::Put);
        let mut edit = VersionEdit::of(0);
        edit.add(
            0,
            Arc::new(FileMeta {
                number,
                smallest: key.clone(),
                largest: key,
                sequence_min: number,
                sequence_max: number,
                ..FileMeta::default()
            }),
        );
        edit
    }

    /// A snapshot, then five groups: tables 10 to 13 come, and 10 leaves.
    fn manifest() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header(99, 3);
        let mut offsets = Vec::new();
        let mut leave = VersionEdit::of(0);
        leave.remove(0, 10);
        let groups = [10, 11, 12, 13].map(table).into_iter().chain([leave]);
        let all = std::iter::once((RecordKind::SnapshotEnd, create(0, "default")))
            .chain(groups.map(|edit| (RecordKind::Group, edit)));
        for (kind, edit) in all {
            offsets.push(bytes.len());
            let next = record(kind, &[edit], 3, bytes.len() as u64).unwrap();
            bytes.extend_from_slice(&next);
        }
        (bytes, offsets)
    }

    fn numbers(facts: &Facts) -> Vec<u64> {
        facts.tables.keys().copied().collect()
    }

    #[test]
    fn a_whole_manifest_is_known_to_be_whole() {
        let facts = parse(&manifest().0, 3).unwrap();
        assert!(facts.whole && !facts.torn && facts.problems.is_empty());
        assert_eq!(numbers(&facts), [11, 12, 13]);
        assert!(facts.removed.contains(&10) && facts.database_id == Some(99));
        assert_eq!((facts.next_file_number, facts.next_column_family), (14, 1));
    }

    #[test]
    fn a_damaged_record_costs_its_own_edits() {
        let (whole, offsets) = manifest();
        for (lost, &offset) in offsets.iter().enumerate() {
            let mut bytes = whole.clone();
            bytes[offset + RECORD_HEADER_LEN + 3] ^= 1;
            let facts = parse(&bytes, 3).unwrap();
            let expected: Vec<u64> = match lost {
                0 | 1 => vec![11, 12, 13],
                5 => vec![10, 11, 12, 13],
                _ => [11, 12, 13]
                    .into_iter()
                    .filter(|&n| n != lost as u64 + 9)
                    .collect(),
            };
            assert_eq!(numbers(&facts), expected, "record {lost}");
            // The last one looks like that of a crash.
            assert_eq!((facts.whole, facts.torn), (lost == 5, lost == 5), "record {lost}");
        }
        let mut bytes = whole;
        bytes[20] ^= 1;
        let facts = parse(&bytes, 3).unwrap();
        assert!(!facts.whole && facts.database_id.is_none());
        assert_eq!(numbers(&facts), [11, 12, 13]);
    }

    #[test]
    fn any_flip_gives_facts_that_were_written() {
        let (whole, _) = manifest();
        for at in 12..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let facts = parse(&bytes, 3).unwrap();
            assert!(facts.tables.keys().all(|number| (10..14).contains(number)));
            assert!(!facts.whole || facts.torn, "byte {at}");
        }
    }

    #[test]
    fn a_dropped_family_takes_its_tables_along() {
        let mut facts = Facts::default();
        for edit in [create(0, "default"), table(10)] {
            facts.note(&edit);
        }
        let mut drop = VersionEdit::of(0);
        drop.drop = true;
        facts.note(&drop);
        facts.note(&VersionEdit {
            log_number: Some(7),
            ..VersionEdit::of(0)
        });
        assert!(facts.families.is_empty() && facts.tables.is_empty());
        assert!(facts.removed.contains(&10) && facts.dropped.contains(&0));
    }

    /// A power cut in the middle of a repair left such a manifest, and every later repair refused it as newer.
    #[test]
    fn a_header_full_of_garbage_is_damaged_and_a_newer_one_is_newer() {
        let (whole, _) = manifest();
        for (version, is_newer) in [(2_u32, true), (255, true), (256, false), (1_951_727_617, false)] {
            let mut bytes = whole.clone();
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            match parse(&bytes, 3) {
                Err(error) => assert!(is_newer && error.kind() == ErrorKind::Unsupported, "{error}"),
                Ok(facts) => {
                    assert!(!is_newer && !facts.whole, "{version}");
                    assert_eq!(facts.problems[0].kind(), ErrorKind::Corruption);
                    assert!(!facts.tables.is_empty(), "records prove themselves");
                }
            }
        }
    }
}
