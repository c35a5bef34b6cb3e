//! Ingestion on the real file system.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use esker::{ColumnFamilyOptions, Db, ErrorKind, IngestOptions, Options, TableFileWriter};

/// A folder can be reached by other names; what is in it must not be moved out of it.
#[test]
fn the_tables_of_the_database_itself_are_refused_by_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let (outside, own) = (dir.path().join("new.sst"), dir.path().join("db"));
    let options = ColumnFamilyOptions::default();
    let mut writer = TableFileWriter::create(&outside, &options).unwrap();
    writer.put(b"key", b"value").unwrap();
    writer.finish().unwrap();
    let db = Db::open(&own, Options::default()).unwrap();
    let family = db.default_column_family();
    let ingest = |path: &std::path::Path| {
        let move_files = IngestOptions {
            move_files: true,
            ..IngestOptions::default()
        };
        db.ingest(&[(family.clone(), vec![path.to_owned()])], &move_files)
    };
    ingest(&outside).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    let tables: Vec<_> = std::fs::read_dir(&link)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "sst"))
        .collect();
    assert_eq!(tables.len(), 1);
    for path in [&tables[0], &own.join(tables[0].file_name().unwrap())] {
        assert_eq!(ingest(path).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(path.exists());
    }
    assert_eq!(&db.get(b"key").unwrap().unwrap()[..], b"value");
}
