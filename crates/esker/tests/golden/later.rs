//! What format 3 has that the two before lack: rows that expire, properties of the user's own, tables and a family that come from
//! outside, marked tables, the steps of two-phase commit in two segments of the log.

use std::path::Path;
use std::sync::Arc;

use esker::codec::{checksum, put_slice, put_varint};
use esker::version::VersionEdit;
use esker::{
    Aging, CollectedRow, ColumnFamilyOptions, Compression, Hooks, ImportOptions, IngestOptions, Opener,
    Options, PropertyCollector, PropertyCollectorFactory, TableFileWriter, WriteBatch, WriteOptions,
};
use esker_env::{CreateOptions, Env, Fs};

use crate::content::{Content, settings};

/// What is still prepared when the database is closed.
pub const UNDECIDED: &[u8] = b"undecided";

/// The family that gets a merge operator by a field of its own, and the operator.
pub const GETS_OPERATOR: (&str, &str) = ("inline", "esker.append:,");

/// Says how many rows a table has.
struct Rows(u64);

impl PropertyCollector for Rows {
    fn add(&mut self, _: &CollectedRow<'_>) {
        self.0 += 1;
    }

    fn finish(self: Box<Self>) -> Vec<(String, Vec<u8>)> {
        vec![("rows".to_owned(), self.0.to_string().into_bytes())]
    }
}

struct RowsOfTables;

impl PropertyCollectorFactory for RowsOfTables {
    fn name(&self) -> &'static str {
        "golden"
    }

    fn create(&self) -> Box<dyn PropertyCollector> {
        Box::new(Rows(0))
    }
}

/// Writes what is in tables.
pub fn tables(content: &mut Content, env: &Env) {
    expiring(content);
    ingested(content, env);
    imported(content, env);
}

/// Rows that expire in the far future, and so many tombstones in a row that the table is marked.
fn expiring(content: &mut Content) {
    let options = ColumnFamilyOptions {
        aging: Aging::Expire(1 << 40),
        blob_compression: Compression::Snappy,
        hooks: Hooks {
            property_collectors: vec![Arc::new(RowsOfTables)],
            ..Hooks::default()
        },
        ..settings(Compression::Zstd)
    };
    content.create("expiring", options);
    for i in 0..4200 {
        content.put("expiring", format!("row{i:04}").as_bytes(), b"");
    }
    content.put("expiring", b"stays", "to the end; ".repeat(100).as_bytes());
    content.commit();
    content.flush_family("expiring");
    for i in 0..4200 {
        content.delete("expiring", format!("row{i:04}").as_bytes());
    }
    content.commit();
    content.flush_family("expiring");
}

/// Two tables from outside, the second of which lies over the first.
fn ingested(content: &mut Content, env: &Env) {
    let options = settings(Compression::Lz4);
    content.create("ingested", options.clone());
    content.put("ingested", b"before", b"the tables came");
    content.put("ingested", b"key05", b"before the tables came");
    content.commit();
    for round in 0..2_u64 {
        let path = format!("/outside-{round}.sst");
        let mut writer = TableFileWriter::create_on(env, &path, &options).expect("a new table");
        for i in 0..20 {
            let (key, value) = (format!("key{:02}", 10 * round + i), format!("{round}.{i}"));
            writer.put(key.as_bytes(), value.as_bytes()).expect("in order");
            content.note("ingested", key.as_bytes(), value.as_bytes());
        }
        writer.finish().expect("a table");
        let files = vec![(content.families["ingested"].clone(), vec![path.into()])];
        let ingested = content.db.ingest(&files, &IngestOptions::default());
        assert_eq!(ingested.expect("ingested").tables, 1);
    }
}

/// A family of another database, with a blob file, and rows of this one behind it.
fn imported(content: &mut Content, env: &Env) {
    let options = Options {
        compaction_threads: 1,
        default_column_family: settings(Compression::Snappy),
        ..Options::default()
    };
    let other = Opener::new(options)
        .env(env.clone())
        .open("/other")
        .expect("a new database");
    for i in 0..10 {
        let (key, value) = (
            format!("key{i}"),
            format!("of another database {i}; ").repeat(40 * (i % 2) + 1),
        );
        other.put(key.as_bytes(), value.as_bytes()).expect("written");
        content.note("imported", key.as_bytes(), value.as_bytes());
    }
    let exported = other.export_column_family(&other.default_column_family(), "/export");
    assert_eq!(exported.expect("exported").blob_files, 1);
    other.close().expect("closed");
    let imported = content
        .db
        .import_column_family("imported", "/export", &ImportOptions::default());
    content.families.insert("imported", imported.expect("imported").0);
    content.put("imported", b"key3", b"of this one");
    content.commit();
    content.flush_family("imported");
}

/// Prepares, goes on in another segment of the log, and commits one, rolls back another and leaves a third.
pub fn steps(content: &mut Content) {
    let options = WriteOptions::default();
    let large = b"prepared ".repeat(100);
    for name in [&b"committed"[..], b"rolled-back", UNDECIDED] {
        let mut batch = WriteBatch::new();
        batch.put(name, &large).expect("within the limits");
        content.db.prepare(name, &mut batch, &options).expect("prepared");
    }
    content.put("expiring", b"carried", b"into the next segment");
    content.commit();
    content.flush_family("expiring");
    let mut more = WriteBatch::new();
    more.put(b"committed-with", b"more").expect("within the limits");
    let committed = content.db.commit_prepared_with(b"committed", &mut more, &options);
    committed.expect("committed");
    content.note("default", b"committed", &large);
    content.note("default", b"committed-with", b"more");
    let rolled_back = content.db.roll_back_prepared(b"rolled-back", &options);
    rolled_back.expect("rolled back");
}

/// Adds what the engine reads but has no occasion to write: the field of an edit that changes a family's merge operator. An
/// opening changes it too, but then the snapshot of the new manifest says it.
pub fn change_operator(files: &dyn Fs, dir: &Path, family: u32) {
    let names = files.list(dir).expect("a folder");
    let name = names.into_iter().find(|name| name.starts_with("MANIFEST-"));
    let name = name.expect("a manifest");
    let number: u64 = name["MANIFEST-".len()..].parse().expect("a number");
    let mut bytes = files.read_all(&dir.join(&name)).expect("a manifest");
    let mut edit = Vec::new();
    let change = VersionEdit {
        merge_operator: Some(GETS_OPERATOR.1.to_owned()),
        ..VersionEdit::of(family)
    };
    change.encode(&mut edit);
    let mut payload = vec![3];
    put_varint(&mut payload, 1);
    put_slice(&mut payload, &edit);
    let place = [number, bytes.len() as u64, payload.len() as u64].map(u64::to_le_bytes);
    let crc = checksum(&[&place[0], &place[1], &place[2], &payload]);
    bytes.extend_from_slice(&u32::try_from(payload.len()).expect("small").to_le_bytes());
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&payload);
    let mut file = files
        .create(&dir.join(&name), CreateOptions::default())
        .expect("a file");
    file.append(&bytes).expect("written");
    file.finish(true).expect("written");
}
