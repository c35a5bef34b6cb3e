//! The database from end to end, by hand: what a newcomer would try first.

use esker::{ColumnFamilyOptions, Db, ErrorKind, Options, ReadOptions, WriteBatch};

fn small() -> Options {
    Options {
        memory_budget_bytes: 8 << 20,
        default_column_family: ColumnFamilyOptions {
            memtable_bytes: 64 << 10,
            level_base_bytes: 256 << 10,
            file_bytes: 64 << 10,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    }
}

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

#[test]
fn what_is_written_is_read_after_flushes_compactions_and_reopening() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let value = |i: u32, round: u32| format!("value {i} of round {round} {}", "x".repeat(100)).into_bytes();
    {
        let db = Db::open(dir.path(), small()).unwrap();
        for round in 0..5 {
            for i in 0..5_000_u32 {
                let i = i.wrapping_mul(2_654_435_761) % 5_000;
                db.put(&key(i), &value(i, round)).unwrap();
            }
        }
        db.wait_idle().unwrap();
        for i in 0..5_000 {
            let i2 = (0..5_000_u32).find(|j| j.wrapping_mul(2_654_435_761) % 5_000 == i);
            let got = db.get(&key(i)).unwrap();
            assert_eq!(got.is_some(), i2.is_some(), "{i}");
        }
        assert!(db.get(b"no such key").unwrap().is_none());
        println!("{}", db.stats());
    }
    let db = Db::open(dir.path(), small()).unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let mut rows = 0;
    let mut last = Vec::new();
    while iter.valid() {
        assert!(iter.key() > last.as_slice());
        last = iter.key().to_vec();
        assert!(iter.value().starts_with(b"value "));
        rows += 1;
        iter.next().unwrap();
    }
    assert!(rows > 1000, "{rows}");
    let mut back = 0;
    iter.seek_to_last().unwrap();
    while iter.valid() {
        back += 1;
        iter.prev().unwrap();
    }
    assert_eq!(rows, back);
    db.delete_range(&key(0), &key(2_500)).unwrap();
    db.compact_range(None, None).unwrap();
    iter.refresh().unwrap();
    iter.seek_to_first().unwrap();
    assert!(iter.key() >= key(2_500).as_slice());
    println!("{}", db.stats());
}

#[test]
fn families_are_atomic_together_and_gone_after_a_drop() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    {
        let db = Db::open(dir.path(), small()).unwrap();
        let users = db
            .create_column_family("users", ColumnFamilyOptions::default())
            .unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"a", b"1").unwrap();
        batch.put_cf(&users, b"a", b"2").unwrap();
        db.write(&mut batch).unwrap();
        assert_eq!(db.get(b"a").unwrap().unwrap(), b"1");
        assert_eq!(db.get_cf(&users, b"a").unwrap().unwrap(), b"2");
    }
    {
        let db = Db::open(dir.path(), small()).unwrap();
        let users = db.column_family("users").unwrap();
        assert_eq!(db.get_cf(&users, b"a").unwrap().unwrap(), b"2");
        for family in [db.default_column_family(), users.clone()] {
            let found = db.column_family_by_id(family.id()).unwrap();
            assert_eq!((found.id(), found.name()), (family.id(), family.name()));
        }
        db.drop_column_family(&users).unwrap();
        let error = db.column_family_by_id(users.id()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains(&users.id().to_string()), "{error}");
        assert_eq!(
            db.put_cf(&users, b"b", b"").unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
    }
    let db = Db::open(dir.path(), small()).unwrap();
    let error = db.column_family("users").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("default"), "{error}");
}
