//! Edits as bytes.
//!
//! ```text
//! edit  := field*                    field := tag: varint | length: varint | payload
//! table := number size smallest largest sequence_min sequence_max entries deletions range_tombstones created raw
//!          field*                    numbers as varints, keys behind their length
//! ```
//! An unknown odd tag may be skipped; an unknown even one means that a reader which does not know it would get
//! the state wrong, and is refused. A tag keeps its meaning for ever.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::blobs::{BlobFile, BlobOrigin, BlobRef};
use super::edit::{ColumnFamilyRecord, VersionEdit};
use super::file::{FileMeta, Origin};
use crate::codec::{put_slice, put_varint, take_bytes, take_slice, take_u64, take_varint, take_varint32};
use crate::error::{Error, ErrorKind, Result};
use crate::key::SEQUENCE_MAX;

/// A module of tags, and a list of all of them, so that a tag which no golden database holds is noticed.
macro_rules! tags {
    ($(#[$about:meta])* $module:ident, $all:ident: $($name:ident = $tag:literal,)*) => {
        $(#[$about])*
        mod $module {
            $(pub const $name: u64 = $tag;)*
        }

        $(#[$about])*
        pub const $all: &[u64] = &[$($module::$name),*];
    };
}

tags! {
    /// Tags of an edit's fields. Even: required. Odd: ignorable. 22 is reserved.
    tag, EDIT_TAGS:
    DATABASE_ID = 2,
    NEXT_FILE_NUMBER = 4,
    LAST_SEQUENCE = 6,
    NEXT_COLUMN_FAMILY = 8,
    COLUMN_FAMILY = 10,
    CREATE = 12,
    DROP = 14,
    LOG_NUMBER = 16,
    REMOVED = 18,
    ADDED_BLOB = 20,
    ADDED = 24,
    MERGE_OPERATOR = 26,
    OPTIONS = 27,
    ADDED_IMPORTED_BLOB = 28,
}

tags! {
    /// Tags of a table's extra fields, by the same rule.
    table_tag, TABLE_TAGS:
    MARKED = 1,
    BLOBS = 2,
    ORIGIN = 4,
}

impl VersionEdit {
    /// Appends the edit's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        let mut field = |tag: u64, fill: &dyn Fn(&mut Vec<u8>)| {
            payload.clear();
            fill(&mut payload);
            put_varint(out, tag);
            put_slice(out, &payload);
        };
        if let Some(id) = self.database_id {
            field(tag::DATABASE_ID, &|p| p.extend_from_slice(&id.to_le_bytes()));
        }
        let numbers = [
            (tag::NEXT_FILE_NUMBER, self.next_file_number),
            (tag::LAST_SEQUENCE, self.last_sequence),
            (tag::NEXT_COLUMN_FAMILY, self.next_column_family.map(u64::from)),
            (tag::COLUMN_FAMILY, Some(u64::from(self.column_family))),
        ];
        for (tag, number) in numbers {
            if let Some(number) = number {
                field(tag, &|p| put_varint(p, number));
            }
        }
        if let Some(record) = &self.create {
            field(tag::CREATE, &|p| {
                put_slice(p, record.name.as_bytes());
                put_slice(p, record.comparator.as_bytes());
                put_slice(p, record.merge_operator.as_deref().unwrap_or_default().as_bytes());
                put_slice(p, record.options.as_bytes());
            });
        }
        if self.drop {
            field(tag::DROP, &|_| {});
        }
        if let Some(number) = self.log_number {
            field(tag::LOG_NUMBER, &|p| put_varint(p, number));
        }
        if let Some(name) = &self.merge_operator {
            field(tag::MERGE_OPERATOR, &|p| p.extend_from_slice(name.as_bytes()));
        }
        if let Some(options) = &self.options {
            field(tag::OPTIONS, &|p| p.extend_from_slice(options.as_bytes()));
        }
        for blob in &self.added_blobs {
            let tag = match blob.origin {
                None => tag::ADDED_BLOB,
                Some(_) => tag::ADDED_IMPORTED_BLOB,
            };
            field(tag, &|p| {
                for number in [blob.number, blob.file_bytes, blob.records, blob.record_bytes] {
                    put_varint(p, number);
                }
                if let Some(origin) = blob.origin {
                    p.extend_from_slice(&origin.database_id.to_le_bytes());
                    put_varint(p, origin.number);
                }
            });
        }
        for &(level, number) in &self.removed {
            field(tag::REMOVED, &|p| {
                put_varint(p, u64::from(level));
                put_varint(p, number);
            });
        }
        for (level, file) in &self.added {
            field(tag::ADDED, &|p| {
                put_varint(p, u64::from(*level));
                encode_table(file, p);
            });
        }
    }

    /// The edit in `input`, all of which it must take up.
    ///
    /// # Errors
    /// `Corruption` if the bytes are no edit; `Unsupported` if they need a newer version of the engine.
    pub fn decode(mut input: &[u8]) -> Result<Self> {
        let mut edit = Self::default();
        while !input.is_empty() {
            let (tag, payload) = take_field(&mut input).ok_or_else(|| malformed("an edit"))?;
            edit.read_field(tag, payload)?;
        }
        Ok(edit)
    }

    fn read_field(&mut self, tag: u64, mut p: &[u8]) -> Result<()> {
        let known = match tag {
            tag::DATABASE_ID => p.try_into().ok().map(|id| {
                self.database_id = Some(u128::from_le_bytes(id));
                p = &[];
            }),
            tag::NEXT_FILE_NUMBER => take_varint(&mut p).map(|n| self.next_file_number = Some(n)),
            tag::LAST_SEQUENCE => take_varint(&mut p).map(|n| self.last_sequence = Some(n)),
            tag::NEXT_COLUMN_FAMILY => take_varint32(&mut p).map(|n| self.next_column_family = Some(n)),
            tag::COLUMN_FAMILY => take_varint32(&mut p).map(|n| self.column_family = n),
            tag::CREATE => take_record(&mut p).map(|record| self.create = Some(record)),
            tag::DROP => {
                self.drop = true;
                Some(())
            }
            tag::LOG_NUMBER => take_varint(&mut p).map(|n| self.log_number = Some(n)),
            tag::MERGE_OPERATOR => take_text(&mut p).map(|name| self.merge_operator = Some(name)),
            tag::OPTIONS => take_text(&mut p).map(|text| self.options = Some(text)),
            tag::ADDED_BLOB => take_blob(&mut p).map(|blob| self.added_blobs.push(Arc::new(blob))),
            tag::ADDED_IMPORTED_BLOB => take_blob(&mut p).and_then(|blob| {
                let origin = BlobOrigin {
                    database_id: take_u64(&mut p)?,
                    number: take_varint(&mut p)?,
                };
                self.added_blobs.push(Arc::new(BlobFile {
                    origin: Some(origin),
                    ..blob
                }));
                Some(())
            }),
            tag::REMOVED => take_level(&mut p)
                .and_then(|level| Some((level, take_varint(&mut p)?)))
                .map(|removed| self.removed.push(removed)),
            tag::ADDED => {
                let level = take_level(&mut p).ok_or_else(|| malformed("an added table"))?;
                let file = decode_table(&mut p)?;
                self.added.push((level, Arc::new(file)));
                Some(())
            }
            unknown if unknown % 2 == 1 => return Ok(()),
            unknown => return Err(newer(&format!("field {unknown} of an edit"))),
        };
        match known {
            Some(()) if p.is_empty() => Ok(()),
            _ => Err(malformed(&format!("field {tag} of an edit"))),
        }
    }
}

fn encode_table(file: &FileMeta, out: &mut Vec<u8>) {
    put_varint(out, file.number);
    put_varint(out, file.size_bytes);
    put_slice(out, &file.smallest);
    put_slice(out, &file.largest);
    let numbers = [
        file.sequence_min,
        file.sequence_max,
        file.entries,
        file.deletions,
        file.range_tombstones,
        file.created_unix_seconds,
        file.raw_bytes,
    ];
    for number in numbers {
        put_varint(out, number);
    }
    if file.is_marked() {
        put_varint(out, table_tag::MARKED);
        put_slice(out, &[]);
    }
    if !file.blobs.is_empty() {
        let mut refs = Vec::new();
        for part in &file.blobs {
            for number in [part.file, part.records, part.bytes] {
                put_varint(&mut refs, number);
            }
        }
        put_varint(out, table_tag::BLOBS);
        put_slice(out, &refs);
    }
    if let Some(origin) = file.origin {
        let mut fields = origin.database_id.to_le_bytes().to_vec();
        put_varint(&mut fields, origin.sequence_shift);
        put_varint(out, table_tag::ORIGIN);
        put_slice(out, &fields);
    }
}

fn decode_table(input: &mut &[u8]) -> Result<FileMeta> {
    let mut file = take_table(input).ok_or_else(|| malformed("an added table"))?;
    while !input.is_empty() {
        match take_field(input).ok_or_else(|| malformed("an added table"))? {
            (table_tag::MARKED, _) => file.marked = AtomicBool::new(true),
            (table_tag::BLOBS, refs) => {
                file.blobs = take_refs(refs).ok_or_else(|| malformed("what a table refers to"))?;
            }
            (table_tag::ORIGIN, fields) => {
                file.origin = Some(take_origin(fields).ok_or_else(|| malformed("where a table comes from"))?);
            }
            (unknown, _) if unknown % 2 == 1 => {}
            (unknown, _) => return Err(newer(&format!("field {unknown} of table {}", file.number))),
        }
    }
    Ok(file)
}

fn take_table(input: &mut &[u8]) -> Option<FileMeta> {
    Some(FileMeta {
        number: take_varint(input)?,
        size_bytes: take_varint(input)?,
        smallest: take_slice(input)?.to_vec(),
        largest: take_slice(input)?.to_vec(),
        sequence_min: take_varint(input)?,
        sequence_max: take_varint(input)?,
        entries: take_varint(input)?,
        deletions: take_varint(input)?,
        range_tombstones: take_varint(input)?,
        created_unix_seconds: take_varint(input)?,
        raw_bytes: take_varint(input)?,
        ..FileMeta::default()
    })
}

/// At least one part, in ascending order of files, none of them empty.
fn take_refs(mut input: &[u8]) -> Option<Vec<BlobRef>> {
    let mut refs: Vec<BlobRef> = Vec::new();
    while !input.is_empty() || refs.is_empty() {
        let part = BlobRef {
            file: take_varint(&mut input)?,
            records: take_varint(&mut input)?,
            bytes: take_varint(&mut input)?,
        };
        if part.records == 0 || refs.last().is_some_and(|last| last.file >= part.file) {
            return None;
        }
        refs.push(part);
    }
    Some(refs)
}

fn take_origin(mut input: &[u8]) -> Option<Origin> {
    let origin = Origin {
        database_id: take_u64(&mut input)?,
        sequence_shift: take_varint(&mut input).filter(|&shift| shift <= SEQUENCE_MAX)?,
    };
    input.is_empty().then_some(origin)
}

fn take_blob(input: &mut &[u8]) -> Option<BlobFile> {
    let mut number = || take_varint(input);
    Some(BlobFile::new(number()?, number()?, number()?, number()?))
}

fn take_field<'a>(input: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let tag = take_varint(input)?;
    Some((tag, take_slice(input)?))
}

fn take_level(input: &mut &[u8]) -> Option<u8> {
    u8::try_from(take_varint(input)?).ok()
}

fn take_record(input: &mut &[u8]) -> Option<ColumnFamilyRecord> {
    let mut text = || text_of(take_slice(input)?);
    let (name, comparator, merge_operator, options) = (text()?, text()?, text()?, text()?);
    Some(ColumnFamilyRecord {
        name,
        comparator,
        merge_operator: Some(merge_operator).filter(|name| !name.is_empty()),
        options,
    })
}

/// All of the input as text.
fn take_text(input: &mut &[u8]) -> Option<String> {
    let len = input.len();
    text_of(take_bytes(input, len)?)
}

fn text_of(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

fn malformed(what: &str) -> Error {
    Error::corruption(format!("{what} is malformed"))
}

fn newer(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{what} was written by a newer version of the engine"),
    )
}

/// Fuzz entry point: any bytes are refused or survive a round trip.
///
/// # Panics
/// If an edit that was read does not come back as it was.
pub fn fuzz_edit(bytes: &[u8]) {
    let Ok(edit) = VersionEdit::decode(bytes) else {
        return;
    };
    let mut first = Vec::new();
    edit.encode(&mut first);
    let mut second = Vec::new();
    if let Ok(again) = VersionEdit::decode(&first) {
        again.encode(&mut second);
    }
    assert!(first == second, "an edit does not survive its encoding");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    prop_compose! {
        fn any_file()(
            n: [u64; 10], smallest: Vec<u8>, largest: Vec<u8>, marked: bool,
            refs in proptest::collection::btree_map(any::<u64>(), (1_u64.., any::<u64>()), 0..4),
            origin in option::of((any::<u64>(), 0..=SEQUENCE_MAX)),
        ) -> Arc<FileMeta> {
            Arc::new(FileMeta {
                number: n[0], size_bytes: n[1], sequence_min: n[2], sequence_max: n[3], entries: n[4],
                deletions: n[5], range_tombstones: n[6], created_unix_seconds: n[7], raw_bytes: n[8],
                smallest, largest, marked: AtomicBool::new(marked),
                blobs: refs.into_iter().map(|(file, (records, bytes))| BlobRef { file, records, bytes }).collect(),
                origin: origin.map(|(database_id, sequence_shift)| Origin { database_id, sequence_shift }), ..FileMeta::default()
            })
        }
    }

    prop_compose! {
        fn any_record()(name: String, comparator: String, merge in option::of("[a-z]{1,9}"), options: String)
            -> ColumnFamilyRecord {
            ColumnFamilyRecord { name, comparator, merge_operator: merge, options }
        }
    }

    prop_compose! {
        fn any_edit()(
            (database_id, next_file_number, last_sequence, next_column_family, column_family) in any::<(
                Option<u128>, Option<u64>, Option<u64>, Option<u32>, u32)>(),
            create in option::of(any_record()),
            (drop, log_number, options, merge_operator) in any::<(
                bool, Option<u64>, Option<String>, Option<String>)>(),
            removed: Vec<(u8, u64)>,
            blobs: Vec<([u64; 4], Option<(u64, u64)>)>,
            added in vec((any::<u8>(), any_file()), 0..5),
        ) -> VersionEdit {
            VersionEdit {
                database_id, next_file_number, last_sequence, next_column_family, column_family, create, drop,
                log_number, options, merge_operator, removed, added,
                added_blobs: blobs.iter().map(|(n, origin)| Arc::new(BlobFile {
                    origin: origin.map(|(database_id, number)| BlobOrigin { database_id, number }),
                    ..BlobFile::new(n[0], n[1], n[2], n[3])
                })).collect(),
            }
        }
    }

    fn bytes_of(edit: &VersionEdit) -> Vec<u8> {
        let mut out = Vec::new();
        edit.encode(&mut out);
        out
    }

    fn same(a: &VersionEdit, b: &VersionEdit) -> bool {
        let heads = |e: &VersionEdit| {
            (
                (
                    e.database_id,
                    e.next_file_number,
                    e.last_sequence,
                    e.next_column_family,
                    e.column_family,
                ),
                (
                    e.create.clone(),
                    e.drop,
                    e.log_number,
                    e.options.clone(),
                    e.merge_operator.clone(),
                ),
                e.removed.clone(),
            )
        };
        heads(a) == heads(b)
            && a.added_blobs.len() == b.added_blobs.len()
            && a.added_blobs
                .iter()
                .zip(&b.added_blobs)
                .all(|(x, y)| x.same_stored(y))
            && a.added.len() == b.added.len()
            && a.added
                .iter()
                .zip(&b.added)
                .all(|(x, y)| x.0 == y.0 && x.1.same_stored(&y.1))
    }

    proptest! {
        #[test]
        fn edits_come_back(edit in any_edit()) {
            let bytes = bytes_of(&edit);
            let again = VersionEdit::decode(&bytes).expect("own encoding");
            prop_assert!(same(&edit, &again), "{edit:?} {again:?}");
        }

        #[test]
        fn damaged_edits_never_panic(edit in any_edit(), at: prop::sample::Index, flip: u8, cut: prop::sample::Index) {
            let mut bytes = bytes_of(&edit);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
                bytes.truncate(cut.index(bytes.len()) + 1);
            }
            fuzz_edit(&bytes);
        }

        #[test]
        fn noise_never_panics(bytes: Vec<u8>) {
            fuzz_edit(&bytes);
        }

        #[test]
        fn a_cut_edit_is_refused_or_loses_whole_fields(edit in any_edit(), cut: prop::sample::Index) {
            let bytes = bytes_of(&edit);
            let cut = cut.index(bytes.len());
            if let Ok(part) = VersionEdit::decode(&bytes[..cut]) {
                prop_assert!(bytes.starts_with(&bytes_of(&part)) || part.column_family == 0);
            }
        }
    }

    #[test]
    fn an_unknown_odd_field_is_skipped_and_an_unknown_even_one_refused() {
        let known = VersionEdit {
            log_number: Some(7),
            ..VersionEdit::of(3)
        };
        for (tag, readable) in [(101, true), (100, false), (22, false)] {
            let mut bytes = bytes_of(&known);
            put_varint(&mut bytes, tag);
            put_slice(&mut bytes, b"from the future");
            match VersionEdit::decode(&bytes) {
                Ok(edit) => assert!(readable && same(&edit, &known), "{tag}"),
                Err(error) => {
                    assert!(!readable, "{tag}");
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                }
            }
        }
    }

    #[test]
    fn an_unknown_field_of_a_table_follows_the_same_rule() {
        for (tag, readable) in [(51, true), (50, false)] {
            let mut table = Vec::new();
            put_varint(&mut table, 2);
            encode_table(
                &FileMeta {
                    number: 9,
                    ..FileMeta::default()
                },
                &mut table,
            );
            put_varint(&mut table, tag);
            put_slice(&mut table, b"?");
            let mut bytes = Vec::new();
            put_varint(&mut bytes, tag::ADDED);
            put_slice(&mut bytes, &table);
            match VersionEdit::decode(&bytes) {
                Ok(edit) => assert!(readable && edit.added[0].1.number == 9, "{tag}"),
                Err(error) => assert!(
                    !readable && error.kind() == ErrorKind::Unsupported,
                    "{tag}: {error}"
                ),
            }
        }
    }

    #[test]
    fn bytes_left_in_a_field_are_refused() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, tag::LOG_NUMBER);
        put_slice(&mut bytes, &[7, 7]);
        let error = VersionEdit::decode(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
}
