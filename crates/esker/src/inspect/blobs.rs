//! The verdict on blob files, and on the rows of tables that point into them.

use std::collections::BTreeMap;

use esker_env::IoMode;

use super::verify::{UNLISTED, missing};
use super::{BlobInfo, BlobUseInfo, FamilyInfo, FileEntry, FileReport, FileRole, Inspector};
use crate::blob::{BlobPointer, BlobReader, FOOTER_LEN, HEADER_LEN, check_header};
use crate::error::{Error, ErrorKind, Result};
use crate::key::ValueKind;
use crate::version::{BlobRef, VersionState, manifest};

/// What the rows of one table point to.
#[derive(Debug, Default)]
pub(super) struct PointerCount {
    files: BTreeMap<u64, Pointed>,
}

#[derive(Debug, Default)]
struct Pointed {
    records: u64,
    bytes: u64,
    /// The end of the last record that is pointed to.
    end: u64,
}

impl PointerCount {
    /// Counts a row.
    ///
    /// # Errors
    /// `Corruption` if the row should be a pointer and is none.
    #[inline]
    pub(super) fn row(&mut self, kind: ValueKind, value: &[u8]) -> Result<()> {
        if kind != ValueKind::BlobPointer {
            return Ok(());
        }
        let pointer = BlobPointer::decode(value)?;
        let pointed = self.files.entry(pointer.file).or_default();
        pointed.records += 1;
        pointed.bytes = pointed.bytes.saturating_add(pointer.bytes);
        pointed.end = pointed.end.max(pointer.end().unwrap_or(u64::MAX));
        Ok(())
    }

    /// Whether the rows point into files of the family and not beyond their ends, and the manifest counts them right.
    pub(super) fn check_against(&self, said: &[BlobRef], blobs: &[BlobUseInfo]) -> Result<()> {
        for (&file, pointed) in &self.files {
            let used = blobs.iter().find(|used| used.blob.pointed_as == file);
            let Some(BlobUseInfo { blob, .. }) = used else {
                return Err(Error::corruption(format!(
                    "a row points into blob file {file}, which the manifest does not name"
                )));
            };
            let records_end = blob.size_bytes.saturating_sub(FOOTER_LEN as u64);
            if pointed.end > records_end {
                return Err(Error::corruption(format!(
                    "a row points to offset {} of blob file {file}, whose records end at {records_end}",
                    pointed.end
                )));
            }
        }
        let found = self.files.iter().map(|(&file, pointed)| BlobRef {
            file,
            records: pointed.records,
            bytes: pointed.bytes,
        });
        let found: Vec<_> = found.collect();
        if found == said {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "references to blob files: the rows have {}, the manifest says {}",
            refs_text(&found),
            refs_text(said)
        )))
    }
}

fn refs_text(refs: &[BlobRef]) -> String {
    let text = |part: &BlobRef| format!("{} ({} records, {} bytes)", part.file, part.records, part.bytes);
    match refs {
        [] => "none".to_owned(),
        _ => refs.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}

impl Inspector {
    /// The verdict on a blob file that the manifest names.
    pub(super) fn verify_blob(
        &self,
        state: &VersionState,
        family: &FamilyInfo,
        used: &BlobUseInfo,
    ) -> FileReport {
        let blob = &used.blob;
        let mut file = FileReport::new(&blob.path, FileRole::Blob);
        let database_id = blob.origin_database_id.unwrap_or(state.database_id as u64);
        let id = Some((database_id, blob.pointed_as));
        let checked = self.walk_blob(&mut file, id);
        match checked.and_then(|reader| check_against(used, file.size_bytes, &reader)) {
            Ok(()) => file,
            Err(_) if !self.still_needs_blob(blob) => file.noted("removed by a compaction meanwhile"),
            Err(error) if error.kind() == ErrorKind::NotFound => file.damaged(missing()),
            Err(error) => file.damaged(error.in_column_family(&family.name)),
        }
    }

    /// The verdict on a blob file that the manifest does not name. One that is not finished is no damage: nothing points
    /// to it, and beside a running process a large one is being made for a while.
    pub(super) fn verify_blob_unlisted(&self, entry: &FileEntry) -> FileReport {
        let mut file = FileReport::new(&entry.path, FileRole::Blob);
        match self.walk_blob(&mut file, None) {
            Err(error) if error.kind() == ErrorKind::Io => file.damaged(error),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                file.noted("not part of the database and not whole: left by a crash or just being made")
            }
            _ => file.noted(UNLISTED),
        }
    }

    /// The verdict on a blob file where no manifest can be read.
    pub(super) fn verify_blob_alone(&self, entry: &FileEntry) -> FileReport {
        let mut file = FileReport::new(&entry.path, FileRole::Blob);
        match self.walk_blob(&mut file, None) {
            Err(error) if error.kind() != ErrorKind::NotFound => file.damaged(error),
            _ => file,
        }
        .noted("judged without the manifest")
    }

    /// Reads and checks all of the file; without `id` it may be any blob file.
    fn walk_blob(&self, file: &mut FileReport, id: Option<(u64, u64)>) -> Result<BlobReader> {
        // Past the page cache: what is on the device is what matters.
        let failed = |error| Error::io("can't read a blob file", error);
        let handle = self.fs.open(&file.path, IoMode::Direct).map_err(failed)?;
        file.size_bytes = handle.len().map_err(failed)?;
        let (database_id, number) = match id {
            Some(id) => id,
            None => {
                let mut header = [0; HEADER_LEN];
                handle.read_exact_at(0, &mut header).map_err(failed)?;
                check_header(&header).map_err(|error| error.at_offset(0))?
            }
        };
        let reader = BlobReader::open(handle, &file.path, database_id, number)?;
        file.records = reader.footer().records;
        reader.walk(|_, _| Ok(()))?;
        Ok(reader)
    }

    /// Whether the manifest of now names the blob file.
    fn still_needs_blob(&self, blob: &BlobInfo) -> bool {
        manifest::recover(&*self.fs, &self.dir).map_or(true, |now| {
            now.state
                .families()
                .any(|family| family.blobs().holds(blob.number))
        })
    }
}

/// Whether a blob file is what the manifest says of it.
fn check_against(used: &BlobUseInfo, size_bytes: u64, reader: &BlobReader) -> Result<()> {
    let (blob, found) = (&used.blob, reader.footer());
    let said = [
        ("bytes", blob.size_bytes, size_bytes),
        ("records", blob.records, found.records),
        ("bytes of records", blob.record_bytes, found.record_bytes),
    ];
    for (what, said, found) in said {
        if said != found {
            return Err(Error::corruption(format!(
                "{what}: the blob file has {found}, the manifest says {said}"
            )));
        }
    }
    if used.live_records > blob.records || used.live_bytes > blob.record_bytes {
        return Err(Error::corruption(format!(
            "tables refer to {} records of {} bytes, more than the blob file has",
            used.live_records, used.live_bytes
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pointers: &[(u64, u64, u64)]) -> PointerCount {
        let mut count = PointerCount::default();
        for &(file, offset, bytes) in pointers {
            let mut row = Vec::new();
            BlobPointer { file, offset, bytes }.encode_into(&mut row);
            count.row(ValueKind::BlobPointer, &row).unwrap();
            count.row(ValueKind::Put, b"no pointer").unwrap();
        }
        count
    }

    fn listed(number: u64) -> BlobUseInfo {
        BlobUseInfo {
            blob: BlobInfo {
                number,
                pointed_as: number,
                origin_database_id: None,
                path: std::path::PathBuf::new(),
                size_bytes: 32 + 300 + 64,
                records: 3,
                record_bytes: 300,
            },
            live_records: 3,
            live_bytes: 300,
        }
    }

    #[test]
    fn what_rows_point_to_is_held_against_the_manifest() {
        let blobs = [listed(5), listed(7)];
        let part = |file, records, bytes| BlobRef { file, records, bytes };
        let count = counted(&[(7, 32, 100), (5, 132, 200), (7, 232, 100)]);
        count
            .check_against(&[part(5, 1, 200), part(7, 2, 200)], &blobs)
            .unwrap();
        counted(&[]).check_against(&[], &blobs).unwrap();
        let said = [
            vec![],
            vec![part(7, 2, 200)],
            vec![part(5, 1, 200), part(7, 1, 200)],
            vec![part(5, 1, 201), part(7, 2, 200)],
            vec![part(5, 1, 200), part(7, 2, 200), part(9, 1, 9)],
        ];
        for said in said {
            let error = count.check_against(&said, &blobs).unwrap_err();
            assert!(error.message().contains("the rows have 5 (1 records"), "{error}");
        }
        assert!(counted(&[]).check_against(&[part(5, 1, 9)], &blobs).is_err());
    }

    #[test]
    fn rows_that_point_nowhere_are_damage() {
        let blobs = [listed(5)];
        for (pointer, what) in [((6, 32, 9), "blob file 6"), ((5, 233, 100), "end at 332")] {
            let said = BlobRef {
                file: pointer.0,
                records: 1,
                bytes: pointer.2,
            };
            let error = counted(&[pointer]).check_against(&[said], &blobs).unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
        let mut count = PointerCount::default();
        assert!(count.row(ValueKind::BlobPointer, b"no pointer").is_err());
    }
}
