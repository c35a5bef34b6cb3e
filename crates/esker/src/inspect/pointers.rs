//! Whether rows of tables point to values in blob files that can be theirs.
//!
//! A record of a blob file does not say whose value it is. But blob files are written in the order of keys, and what moves values
//! moves them in that order: in each table the rows that point into one file do so in rising order. So a pointer is right as far
//! as can be told if a whole record of just that length begins where it points to, behind the records of earlier keys.

use std::collections::BTreeMap;

use super::BlobUseInfo;
use crate::blob::{BlobPointer, FOOTER_LEN, HEADER_LEN};
use crate::codec::{put_varint, take_varint};
use crate::error::{Error, Result};
use crate::key::ValueKind;
use crate::version::BlobRef;

/// Records between two of which the place is stored.
const RECORDS_PER_MARK: usize = 64;

/// Where the records of a blob file begin: of each the length, 2 or 3 bytes as a rule.
#[derive(Debug, Default)]
pub(super) struct Records {
    lengths: Vec<u8>,
    /// The offset of each 64th record in the file, and that of its length in `lengths`.
    marks: Vec<(u64, usize)>,
    count: usize,
    /// The end of the last record.
    end: u64,
}

/// Those of a family's blob files, by the number that rows have.
pub(super) type FamilyRecords = BTreeMap<u64, Records>;

impl Records {
    /// Takes the next record.
    pub(super) fn push(&mut self, record: &BlobPointer) {
        if self.count.is_multiple_of(RECORDS_PER_MARK) {
            self.marks.push((record.offset, self.lengths.len()));
        }
        self.count += 1;
        self.end = record.offset.saturating_add(record.bytes);
        put_varint(&mut self.lengths, record.bytes);
    }

    /// Whether the record that `pointer` points to begins there; of what lies behind the last one, nothing is said. Else says what is there.
    fn check(&self, pointer: &BlobPointer) -> std::result::Result<(), String> {
        if pointer.offset >= self.end.max(HEADER_LEN as u64) {
            return Ok(());
        }
        let nothing = || "where no record begins".to_owned();
        let mark = self
            .marks
            .partition_point(|&(offset, _)| offset <= pointer.offset);
        let (mut offset, at) = mark
            .checked_sub(1)
            .and_then(|mark| self.marks.get(mark))
            .copied()
            .ok_or_else(nothing)?;
        let mut lengths = &self.lengths[at..];
        while let Some(bytes) = take_varint(&mut lengths) {
            if offset == pointer.offset {
                return match bytes == pointer.bytes {
                    true => Ok(()),
                    false => Err(format!("to a record which has {bytes} bytes")),
                };
            }
            if offset > pointer.offset {
                break;
            }
            offset = offset.saturating_add(bytes);
        }
        Err(nothing())
    }
}

#[cold]
fn misled(key: &[u8], pointer: &BlobPointer, what: &str) -> Error {
    let BlobPointer { file, offset, bytes } = pointer;
    Error::corruption(format!(
        "the row of key '{}' points to {bytes} bytes at offset {offset} of blob file {file}, {what}",
        key.escape_ascii()
    ))
}

/// What the rows of one table point to.
#[derive(Debug)]
pub(super) struct PointerCount<'a> {
    /// The records of the family's blob files, by the numbers that rows have; none where no manifest says which is which.
    records: &'a FamilyRecords,
    files: BTreeMap<u64, Pointed>,
}

#[derive(Debug, Default)]
struct Pointed {
    records: u64,
    bytes: u64,
    /// The end of the last record that is pointed to.
    end: u64,
}

impl<'a> PointerCount<'a> {
    /// Of no row yet.
    pub(super) fn new(records: &'a FamilyRecords) -> Self {
        Self {
            records,
            files: BTreeMap::new(),
        }
    }

    /// Counts the next row, and checks that it points to a whole record which can be its own.
    ///
    /// # Errors
    /// `Corruption` if the row should be a pointer and is none, or points elsewhere.
    #[inline]
    pub(super) fn row(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) -> Result<()> {
        if kind != ValueKind::BlobPointer {
            return Ok(());
        }
        let pointer = BlobPointer::decode(value)?;
        let end = pointer.end().unwrap_or(u64::MAX);
        if let Some(records) = self.records.get(&pointer.file) {
            records
                .check(&pointer)
                .map_err(|what| misled(key, &pointer, &what))?;
        }
        let pointed = self.files.entry(pointer.file).or_default();
        if pointer.offset < pointed.end {
            let what = "which lies in front of one that an earlier key has: it is another key's";
            return Err(misled(key, &pointer, what));
        }
        pointed.records += 1;
        pointed.bytes = pointed.bytes.saturating_add(pointer.bytes);
        pointed.end = end;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::BlobInfo;

    static UNKNOWN: FamilyRecords = FamilyRecords::new();

    fn add(count: &mut PointerCount<'_>, (file, offset, bytes): (u64, u64, u64)) -> Result<()> {
        let mut row = Vec::new();
        BlobPointer { file, offset, bytes }.encode_into(&mut row);
        count.row(ValueKind::Put, b"key", b"no pointer")?;
        count.row(ValueKind::BlobPointer, b"key", &row)
    }

    fn counted(pointers: &[(u64, u64, u64)]) -> PointerCount<'static> {
        let mut count = PointerCount::new(&UNKNOWN);
        for &pointer in pointers {
            add(&mut count, pointer).unwrap();
        }
        count
    }

    /// Records of 9, 10, ... bytes.
    fn records(count: u64) -> Records {
        let mut records = Records::default();
        let mut offset = HEADER_LEN as u64;
        for bytes in 9..9 + count {
            records.push(&BlobPointer {
                file: 5,
                offset,
                bytes,
            });
            offset += bytes;
        }
        records
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
        let mut count = PointerCount::new(&UNKNOWN);
        assert!(count.row(ValueKind::BlobPointer, b"key", b"no pointer").is_err());
    }

    #[test]
    fn every_record_is_found_and_nothing_else_is() {
        let records = records(1000);
        let mut offset = HEADER_LEN as u64;
        for bytes in 9..1009 {
            let at = |offset, bytes| {
                records.check(&BlobPointer {
                    file: 5,
                    offset,
                    bytes,
                })
            };
            at(offset, bytes).unwrap();
            for wrong in [bytes - 1, bytes + 1] {
                assert!(at(offset, wrong).unwrap_err().contains("which has"), "{offset}");
            }
            for wrong in [offset - 1, offset + 1] {
                assert!(
                    at(wrong, bytes).unwrap_err().contains("no record begins"),
                    "{offset}"
                );
            }
            offset += bytes;
        }
        // What lies behind the last record is held against the file's length.
        records
            .check(&BlobPointer {
                file: 5,
                offset: offset + 7,
                bytes: 9,
            })
            .unwrap();
        Records::default()
            .check(&BlobPointer {
                file: 5,
                offset: 40,
                bytes: 9,
            })
            .unwrap();
    }

    #[test]
    fn pointers_of_a_table_go_forward_in_each_file() {
        let known = FamilyRecords::from([(5, records(3))]);
        let (first, second, third) = ((5, 32, 9), (5, 41, 10), (5, 51, 11));
        let mut count = PointerCount::new(&known);
        for pointer in [first, (6, 900, 10), second, (6, 910, 10), third] {
            add(&mut count, pointer).unwrap();
        }
        for pointers in [[second, first], [third, second], [second, second]] {
            let mut count = PointerCount::new(&known);
            add(&mut count, pointers[0]).unwrap();
            let error = add(&mut count, pointers[1]).unwrap_err();
            assert!(error.message().contains("another key's"), "{error}");
        }
        let error = add(&mut PointerCount::new(&known), (5, 40, 9)).unwrap_err();
        assert!(
            error.message().contains("'key'") && error.message().contains("offset 40"),
            "{error}"
        );
    }
}
