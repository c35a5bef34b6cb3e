//! The verdict on blob files.

use esker_env::IoMode;

use super::pointers::Records;
use super::verify::{UNLISTED, missing};
use super::{BlobInfo, BlobUseInfo, FamilyInfo, FileEntry, FileReport, FileRole, Inspector};
use crate::blob::{BlobReader, HEADER_LEN, check_header};
use crate::error::{Error, ErrorKind, Result};
use crate::version::{VersionState, manifest};

impl Inspector {
    /// The verdict on a blob file that the manifest names, and where its records begin, if it is whole.
    pub(super) fn verify_blob(
        &self,
        state: &VersionState,
        family: &FamilyInfo,
        used: &BlobUseInfo,
    ) -> (FileReport, Records) {
        let blob = &used.blob;
        let mut file = FileReport::new(&blob.path, FileRole::Blob);
        let database_id = blob.origin_database_id.unwrap_or(state.database_id as u64);
        let id = Some((database_id, blob.pointed_as));
        let mut records = Records::default();
        let checked = self.walk_blob(&mut file, id, &mut records);
        let Err(error) = checked.and_then(|reader| check_against(used, file.size_bytes, &reader)) else {
            return (file, records);
        };
        let file = if !self.still_needs_blob(blob) {
            file.noted("removed by a compaction meanwhile")
        } else if error.kind() == ErrorKind::NotFound {
            file.damaged(missing())
        } else {
            file.damaged(error.in_column_family(&family.name))
        };
        // Tables are not blamed for it.
        (file, Records::default())
    }

    /// The verdict on a blob file that the manifest does not name. One that is not finished is no damage: nothing points
    /// to it, and beside a running process a large one is being made for a while.
    pub(super) fn verify_blob_unlisted(&self, entry: &FileEntry) -> FileReport {
        let mut file = FileReport::new(&entry.path, FileRole::Blob);
        match self.walk_blob(&mut file, None, &mut Records::default()) {
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
        match self.walk_blob(&mut file, None, &mut Records::default()) {
            Err(error) if error.kind() != ErrorKind::NotFound => file.damaged(error),
            _ => file,
        }
        .noted("judged without the manifest")
    }

    /// Reads and checks all of the file, and notes its records; without `id` it may be any blob file.
    fn walk_blob(
        &self,
        file: &mut FileReport,
        id: Option<(u64, u64)>,
        records: &mut Records,
    ) -> Result<BlobReader> {
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
        reader.walk(|record, _| {
            records.push(record);
            Ok(())
        })?;
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
