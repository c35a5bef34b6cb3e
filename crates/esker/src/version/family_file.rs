//! The description of an exported column family: one file beside its tables and blob files.
//!
//! It is an edit of the manifest that makes the family, in a frame of its own: see `docs/formats/family.md`. Every
//! file in it says which database wrote it, so that any other can read it.

use std::collections::BTreeSet;

use super::edit::{ColumnFamilyRecord, VersionEdit};
use super::state::VersionState;
use crate::codec::{checksum, take_u32, take_u64};
use crate::error::{Error, ErrorKind, Result};

/// The name of the description in the folder of an export.
pub const FAMILY_FILE: &str = "FAMILY";

const MAGIC: [u8; 8] = *b"ESKERFAM";
const VERSION: u32 = 1;
/// Magic, version, flags, length of the edit, checksum.
const HEADER_LEN: usize = 28;
/// What the checksum in the header covers of it.
const CHECKED_LEN: usize = 24;

/// The largest number of a file: those that are drawn after an import must be larger still.
const NUMBER_MAX: u64 = 1 << 62;

/// The bytes of a description. `edit` makes the family and says what [`decode_family`] demands of it.
pub fn encode_family(edit: &VersionEdit) -> Vec<u8> {
    let mut body = Vec::new();
    edit.encode(&mut body);
    let mut bytes = Vec::with_capacity(HEADER_LEN + body.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let crc = checksum(&[&bytes, &body]);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// The edit in a description. Its family is 0; it makes it, gives the last sequence number, and adds blob files and tables,
/// each with its origin, and does nothing else. Tables refer only to blob files that are there.
///
/// # Errors
/// `Corruption` if the bytes are no description, or it contradicts itself; `Unsupported` if it needs a newer version of
/// the engine.
pub fn decode_family(bytes: &[u8]) -> Result<VersionEdit> {
    let Some((header, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(malformed("it is too short"));
    };
    let (checked, mut stored) = header.split_at(CHECKED_LEN);
    let Some(mut fields) = checked.strip_prefix(&MAGIC) else {
        return Err(malformed("it does not begin as one"));
    };
    let (version, flags) = (take_u32(&mut fields), take_u32(&mut fields));
    match version {
        Some(VERSION) => {}
        Some(later) if later > VERSION => return Err(newer(&format!("format version {later}"))),
        _ => return Err(malformed("it has an impossible format version")),
    }
    if take_u64(&mut fields) != Some(body.len() as u64) {
        return Err(malformed("its length is not what it says"));
    }
    if take_u32(&mut stored) != Some(checksum(&[checked, body])) {
        return Err(malformed("its checksum does not fit"));
    }
    if flags != Some(0) {
        return Err(newer("an unknown flag"));
    }
    let edit = VersionEdit::decode(body)?;
    check(&edit)?;
    Ok(edit)
}

/// The family that the edit of a description makes.
///
/// # Errors
/// `Corruption` if it makes none.
pub fn record_of(edit: &VersionEdit) -> Result<&ColumnFamilyRecord> {
    edit.create
        .as_ref()
        .ok_or_else(|| malformed("it makes no family"))
}

fn check(edit: &VersionEdit) -> Result<()> {
    record_of(edit)?;
    let plain = edit.database_id.is_none()
        && edit.next_file_number.is_none()
        && edit.next_column_family.is_none()
        && edit.column_family == 0
        && !edit.drop
        && edit.log_number.is_none()
        && edit.options.is_none()
        && edit.merge_operator.is_none()
        && edit.removed.is_empty();
    let Some(last_sequence) = edit.last_sequence.filter(|_| plain) else {
        return Err(malformed("it is not about a family alone"));
    };
    let tables = edit.added.iter().map(|(_, file)| file);
    let mut names = BTreeSet::new();
    for file in tables {
        if file.origin.is_none() || file.number == 0 || file.number > NUMBER_MAX {
            return Err(malformed("it has an impossible table"));
        }
        if file.sequence_max > last_sequence {
            return Err(malformed("a table is newer than the family"));
        }
        names.insert(file.number);
    }
    for file in &edit.added_blobs {
        let largest = file.number.max(file.pointed_as());
        if file.origin.is_none() || file.number == 0 || largest > NUMBER_MAX || !names.insert(file.number) {
            return Err(malformed("it has an impossible blob file"));
        }
    }
    // The rules of the manifest.
    VersionState::new(0).apply(edit)
}

fn malformed(what: &str) -> Error {
    Error::corruption(format!(
        "the description of an exported column family is malformed: {what}"
    ))
}

fn newer(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("the export was written by a newer version of the engine: {what}"),
    )
}

/// Fuzz entry point: any bytes are refused or survive a round trip. Where the first byte is odd, the length and checksum of
/// the rest are mended first, so that a fuzzer gets past them.
///
/// # Panics
/// If a description that was read does not come back as it was.
pub fn fuzz_family(bytes: &[u8]) {
    let Some((mend, bytes)) = bytes.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if mend % 2 == 1 && bytes.len() >= HEADER_LEN {
        let len = (bytes.len() - HEADER_LEN) as u64;
        bytes[16..CHECKED_LEN].copy_from_slice(&len.to_le_bytes());
        let crc = checksum(&[&bytes[..CHECKED_LEN], &bytes[HEADER_LEN..]]);
        bytes[CHECKED_LEN..HEADER_LEN].copy_from_slice(&crc.to_le_bytes());
    }
    let Ok(edit) = decode_family(&bytes) else {
        return;
    };
    let first = encode_family(&edit);
    let again = decode_family(&first).map(|edit| encode_family(&edit));
    assert!(
        again.is_ok_and(|again| again == first),
        "a description does not survive its encoding"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::key::{ValueKind, internal_key};
    use crate::version::{BlobFile, BlobOrigin, BlobRef, FileMeta, Origin};

    fn table(number: u64, blob: Option<u64>) -> FileMeta {
        FileMeta {
            number,
            size_bytes: 1000,
            smallest: internal_key(&number.to_be_bytes(), 7, ValueKind::Put),
            largest: internal_key(&number.to_be_bytes(), 7, ValueKind::Put),
            sequence_min: 7,
            sequence_max: 7,
            blobs: blob
                .into_iter()
                .map(|file| BlobRef {
                    file,
                    records: 1,
                    bytes: 100,
                })
                .collect(),
            origin: Some(Origin {
                database_id: 5,
                sequence_shift: 0,
            }),
            ..FileMeta::default()
        }
    }

    fn blob(number: u64, was: u64) -> BlobFile {
        BlobFile {
            origin: Some(BlobOrigin {
                database_id: 5,
                number: was,
            }),
            ..BlobFile::new(number, 1100, 10, 1000)
        }
    }

    fn edit() -> VersionEdit {
        VersionEdit {
            create: Some(ColumnFamilyRecord {
                name: "users".to_owned(),
                comparator: "esker.bytewise".to_owned(),
                merge_operator: Some("sum".to_owned()),
                options: "levels=7;".to_owned(),
            }),
            last_sequence: Some(9),
            added_blobs: vec![Arc::new(blob(3, 2))],
            added: vec![(0, Arc::new(table(4, Some(2)))), (6, Arc::new(table(5, None)))],
            ..VersionEdit::default()
        }
    }

    #[test]
    fn a_description_comes_back() {
        let bytes = encode_family(&edit());
        let back = decode_family(&bytes).unwrap();
        assert_eq!(encode_family(&back), bytes);
        assert_eq!(record_of(&back).unwrap().name, "users");
        assert_eq!(back.last_sequence, Some(9));
        assert!(back.added_blobs[0].same_stored(&blob(3, 2)));
        assert!(back.added[0].1.same_stored(&table(4, Some(2))));
    }

    #[test]
    fn no_flipped_or_missing_byte_goes_unnoticed() {
        let bytes = encode_family(&edit());
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            decode_family(&flipped).unwrap_err();
            decode_family(&bytes[..at]).unwrap_err();
        }
        decode_family(&[&bytes[..], &[0]].concat()).unwrap_err();
        let mut later = bytes;
        later[8] = 2;
        assert_eq!(decode_family(&later).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        type Spoil = fn(&mut VersionEdit);
        let spoils: [(&str, Spoil); 11] = [
            ("no family", |edit| edit.create = None),
            ("no sequence", |edit| edit.last_sequence = None),
            ("another family", |edit| edit.column_family = 1),
            ("a drop", |edit| edit.drop = true),
            ("a removal", |edit| edit.remove(0, 4)),
            ("a table of later", |edit| edit.last_sequence = Some(6)),
            ("a table twice", |edit| edit.add(1, Arc::new(table(4, None)))),
            ("a table without a number", |edit| {
                edit.add(1, Arc::new(table(0, None)))
            }),
            ("a missing blob file", |edit| {
                edit.add(1, Arc::new(table(6, Some(3))))
            }),
            ("one name for two files", |edit| {
                edit.added_blobs.push(Arc::new(blob(4, 9)))
            }),
            ("a number at the end of all", |edit| {
                edit.added_blobs.push(Arc::new(blob(6, u64::MAX)));
            }),
        ];
        for (what, spoil) in spoils {
            let mut edit = edit();
            spoil(&mut edit);
            let error = decode_family(&encode_family(&edit)).expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
        }
        let mut foreign = edit();
        foreign.add(
            1,
            Arc::new(FileMeta {
                origin: None,
                ..table(8, None)
            }),
        );
        decode_family(&encode_family(&foreign)).unwrap_err();
    }
}
