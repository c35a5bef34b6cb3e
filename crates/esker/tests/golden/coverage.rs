//! Everything that a manifest, a log or a table can hold is in one of the golden databases.
//!
//! Manifests are taken apart by the words of docs/formats/manifest.md, so that this depends on the reader as little as it can.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use esker::PrefixExtractor;
use esker::codec::{take_slice, take_varint};
use esker::inspect::{FileRole, Inspector, StepKind};
use esker::key::ValueKind;
use esker::sstable::{OutsideFiles, TableFamily, TableProperties, WriteTimes};
use esker::version::{EDIT_TAGS, TABLE_TAGS};

/// What is in golden databases.
#[derive(Default)]
struct Found {
    edit_tags: BTreeSet<u64>,
    table_tags: BTreeSet<u64>,
    steps: BTreeSet<u8>,
    logged: BTreeSet<u8>,
    stored: BTreeSet<u8>,
    properties: BTreeSet<Vec<u8>>,
}

impl Found {
    fn look_at(&mut self, dir: &Path) {
        let inspector = Inspector::new(dir);
        for file in inspector.files().expect("a golden database") {
            match file.role {
                Some(FileRole::Manifest) if file.number.is_some() => {
                    self.manifest(&fs::read(&file.path).expect("a manifest"));
                }
                Some(FileRole::Wal) => self.segment(&inspector, &file.path),
                Some(FileRole::Table) => self.table(&inspector, &file.path),
                _ => {}
            }
        }
    }

    fn manifest(&mut self, bytes: &[u8]) {
        let mut at = 44;
        while at < bytes.len() {
            let len = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
            let mut payload = &bytes[at + 9..at + 8 + len];
            at += 8 + len;
            for _ in 0..take_varint(&mut payload).expect("a count") {
                let mut edit = take_slice(&mut payload).expect("an edit");
                while !edit.is_empty() {
                    let (tag, field) = field(&mut edit);
                    self.edit_tags.insert(tag);
                    if tag == 24 {
                        self.added(field);
                    }
                }
            }
        }
    }

    fn added(&mut self, mut table: &[u8]) {
        for _ in 0..3 {
            take_varint(&mut table).expect("level, number, size");
        }
        for _ in 0..2 {
            take_slice(&mut table).expect("a bound");
        }
        for _ in 0..7 {
            take_varint(&mut table).expect("a count");
        }
        while !table.is_empty() {
            self.table_tags.insert(field(&mut table).0);
        }
    }

    fn segment(&mut self, inspector: &Inspector, path: &Path) {
        let segment = inspector.segment_at(path).expect("a segment");
        let read = segment.batches(|batch| {
            self.steps.insert(batch.kind() as u8);
            let kinds = batch
                .mutations()
                .map(|mutation| mutation.expect("whole").kind as u8);
            self.logged.extend(kinds);
            ControlFlow::Continue(())
        });
        read.expect("readable");
    }

    fn table(&mut self, inspector: &Inspector, path: &Path) {
        // One whose order is the user's own is not read.
        let Ok(table) = inspector.table_at(path) else {
            return;
        };
        self.properties.extend(names(table.properties()));
        if table.range_tombstones().next().is_some() {
            self.stored.insert(ValueKind::RangeDelete as u8);
        }
        let read = table.entries(|entry| {
            self.stored.insert(entry.kind as u8);
            ControlFlow::Continue(())
        });
        read.expect("readable");
    }
}

fn field<'a>(input: &mut &'a [u8]) -> (u64, &'a [u8]) {
    let tag = take_varint(input).expect("a tag");
    (tag, take_slice(input).expect("a field"))
}

/// Names of stored properties; of the user's own, the beginning that all have.
fn names(properties: &TableProperties) -> BTreeSet<Vec<u8>> {
    let mut block = Vec::new();
    properties.encode(&mut block);
    let mut rest = &block[..];
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let name = take_slice(&mut rest).expect("a name");
        take_slice(&mut rest).expect("a value");
        names.insert(match name.starts_with(b"user.") {
            true => b"user.".to_vec(),
            false => name.to_vec(),
        });
    }
    names
}

/// Properties in which nothing is left out; a new field has to be set here.
fn all_properties() -> TableProperties {
    TableProperties {
        entries: 1,
        deletions: 1,
        merges: 1,
        range_tombstones: 1,
        raw_key_bytes: 1,
        raw_value_bytes: 1,
        sequence_min: 1,
        sequence_max: 1,
        data_blocks: 1,
        data_bytes: 1,
        index_bytes: 1,
        filter_bytes: 1,
        creation_unix_seconds: 1,
        comparator: "order".to_owned(),
        whole_key_filter: true,
        prefix_extractor: Some(PrefixExtractor::Fixed(1)),
        write_times: WriteTimes::new([(1, 1)]),
        family: Some(TableFamily {
            id: 1,
            name: "family".to_owned(),
            log_number: 1,
            outside: vec![OutsideFiles::default()],
        }),
        user: [(b"name".to_vec(), Vec::new())].into(),
    }
}

/// Fails if the code knows a tag, or a kind of record or row, that no golden database holds.
pub fn check() {
    let mut found = Found::default();
    for entry in fs::read_dir(crate::folder()).expect("the golden databases") {
        let path = entry.expect("a golden database").path();
        if path.is_dir() {
            found.look_at(&path);
        }
    }
    let advice = "add what is missing to the content, and write a golden database of a new version";
    assert_eq!(
        found.edit_tags,
        EDIT_TAGS.iter().copied().collect(),
        "tags of edits: {advice}"
    );
    assert_eq!(
        found.table_tags,
        TABLE_TAGS.iter().copied().collect(),
        "tags of tables: {advice}"
    );
    let steps = StepKind::ALL.map(|kind| kind as u8);
    assert_eq!(found.steps, steps.into(), "records of the log: {advice}");
    let kinds: BTreeSet<u8> = (0..=u8::MAX)
        .filter(|&byte| ValueKind::from_u8(byte).is_some())
        .collect();
    assert_eq!(found.stored, kinds, "kinds of rows: {advice}");
    let mut logged = kinds;
    logged.remove(&(ValueKind::BlobPointer as u8));
    assert_eq!(found.logged, logged, "kinds of mutations: {advice}");
    let missing: Vec<_> = names(&all_properties())
        .difference(&found.properties)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    assert!(missing.is_empty(), "properties {missing:?}: {advice}");
}
