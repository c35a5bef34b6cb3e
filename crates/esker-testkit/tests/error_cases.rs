//! What callers get wrong is told to them: the kind of the error, and what it names.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use esker::{
    AppendOperator, ColumnFamilyOptions, Comparator, Db, ErrorKind, KeyOrder, MergeOperator, Opener, Options,
    ReadOptions, ReverseBytewiseComparator, U64AddOperator, WriteBatch,
};
use esker_env::mem::MemFs;
use esker_env::{CreateOptions, Env, Fs as _};
use esker_testkit::crash::{DIR, family_options, options};
use esker_testkit::watchdog;

fn machine() -> (Env, MemFs) {
    Env::simulated(1)
}

fn try_open(env: &Env, options: Options) -> esker::Result<Db> {
    Opener::new(options).env(env.clone()).open(Path::new(DIR))
}

fn open(env: &Env) -> Db {
    try_open(env, options()).unwrap()
}

fn with_default(family: ColumnFamilyOptions) -> Options {
    Options {
        default_column_family: family,
        ..options()
    }
}

#[test]
fn a_database_is_open_once() {
    let (env, _) = machine();
    let db = open(&env);
    let error = try_open(&env, options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    db.close().unwrap();
    open(&env);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    assert_eq!(
        Db::open(dir.path(), options()).unwrap_err().kind(),
        ErrorKind::Locked
    );
    drop(db);
    Db::open(dir.path(), options()).unwrap();
}

#[test]
fn keys_have_a_limit_and_a_refused_key_leaves_the_batch() {
    let (env, _) = machine();
    let db = open(&env);
    let longest = vec![b'k'; 64 << 10];
    let longer = vec![b'k'; (64 << 10) + 1];
    db.put(&longest, b"v").unwrap();
    assert_eq!(db.get(&longest).unwrap().unwrap(), b"v");
    let error = db.put(&longer, b"v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("65536"), "{error}");
    assert_eq!(
        db.delete_range(b"a", &longer).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let mut batch = WriteBatch::new();
    batch.put(b"a", b"1").unwrap();
    batch.put(&longer, b"2").unwrap_err();
    assert_eq!(batch.len(), 1);
    db.write(&mut batch).unwrap();
    assert!(db.get(&longer).unwrap().is_none());
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1");
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    assert_eq!(db.get(&longest).unwrap().unwrap(), b"v");
}

#[test]
fn a_closed_database_says_so() {
    let (env, _) = machine();
    let db = open(&env);
    let family = db.create_column_family("f", family_options()).unwrap();
    db.put(b"a", b"1").unwrap();
    let mut iter = db.iter(ReadOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let snapshot = db.snapshot();
    let again = db.clone();
    db.close().unwrap();
    again.close().unwrap();
    assert_eq!(iter.value(), b"1", "what it stands on stays readable");
    let closed = |result: esker::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
    closed(again.put(b"a", b"1"));
    closed(again.write(&mut WriteBatch::new()));
    closed(again.get(b"a").map(drop));
    closed(
        again
            .get_with(
                &family,
                b"a",
                &ReadOptions {
                    snapshot: Some(snapshot),
                    ..ReadOptions::default()
                },
            )
            .map(drop),
    );
    closed(again.iter(ReadOptions::default()).map(drop));
    closed(again.flush());
    closed(again.flush_cf(&family));
    closed(again.compact_range(None, None));
    closed(again.sync_wal());
    closed(again.wait_idle());
    closed(again.create_column_family("g", family_options()).map(drop));
    closed(again.drop_column_family(&family));
    closed(again.set_family_options(&family, &[("file_bytes", "1MiB")]));
    closed(iter.seek(b"a"));
    closed(iter.refresh());
}

#[test]
fn families_that_are_not_there_are_named() {
    let (env, _) = machine();
    let db = open(&env);
    assert_eq!(db.column_family("nope").unwrap_err().kind(), ErrorKind::NotFound);
    let family = db.create_column_family("f", family_options()).unwrap();
    let error = db.create_column_family("f", family_options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    db.put_cf(&family, b"a", b"1").unwrap();
    db.drop_column_family(&family).unwrap();
    assert_eq!(
        db.put_cf(&family, b"a", b"2").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        db.drop_column_family(&family).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        db.flush_cf(&family).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(
        db.get_cf(&family, b"a").unwrap().unwrap(),
        b"1",
        "handles stay readable"
    );
    let default = db.default_column_family();
    assert_eq!(
        db.drop_column_family(&default).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    for name in ["", &"n".repeat(2000)] {
        let error = db.create_column_family(name, family_options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    // A batch with a family that is gone is refused whole.
    let mut batch = WriteBatch::new();
    batch.put(b"b", b"1").unwrap();
    batch.put_cf(&family, b"b", b"1").unwrap();
    assert_eq!(
        db.write(&mut batch).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    assert_eq!(batch.len(), 2);
    assert!(db.get(b"b").unwrap().is_none());
    db.close().unwrap();
    let error = Opener::new(options())
        .env(env)
        .column_family("nope", family_options())
        .open(DIR)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("nope"));
}

#[test]
fn a_snapshot_of_another_database_is_refused() {
    let (db, other) = (open(&machine().0), open(&machine().0));
    let options = ReadOptions {
        snapshot: Some(other.snapshot()),
        ..ReadOptions::default()
    };
    let error = db
        .get_with(&db.default_column_family(), b"a", &options)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        db.iter(options).map(drop).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

struct Shouting;

impl Comparator for Shouting {
    fn name(&self) -> &str {
        "test.shouting"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

impl MergeOperator for Shouting {
    fn name(&self) -> &str {
        "test.shouting"
    }
    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        Ok(operands.concat())
    }
}

#[test]
fn another_key_order_or_merge_operator_is_refused() {
    let (env, _) = machine();
    let reverse = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        merge_operator: Some(Arc::new(AppendOperator::default())),
        ..family_options()
    };
    let db = try_open(&env, with_default(reverse.clone())).unwrap();
    db.merge(b"a", b"1").unwrap();
    db.close().unwrap();
    for order in [KeyOrder::Bytewise, KeyOrder::Custom(Arc::new(Shouting))] {
        let family = ColumnFamilyOptions {
            key_order: order,
            ..reverse.clone()
        };
        let error = try_open(&env, with_default(family)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert_eq!(error.column_family(), Some("default"));
    }
    for operator in [
        Arc::new(U64AddOperator) as Arc<dyn MergeOperator>,
        Arc::new(Shouting),
    ] {
        let family = ColumnFamilyOptions {
            merge_operator: Some(operator),
            ..reverse.clone()
        };
        let error = try_open(&env, with_default(family)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    }
    let db = try_open(&env, with_default(reverse)).unwrap();
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1");
}

/// The separator was not stored: a database that was opened without naming an operator joined with nothing.
#[test]
fn an_append_operator_keeps_its_separator_without_being_named_again() {
    let with = |separator: &[u8]| ColumnFamilyOptions {
        merge_operator: Some(Arc::new(AppendOperator::new(separator))),
        ..family_options()
    };
    let (env, _) = machine();
    let db = try_open(&env, with_default(with(b", "))).unwrap();
    db.merge(b"a", b"1").unwrap();
    db.merge(b"a", b"2").unwrap();
    db.close().unwrap();
    let db = open(&env);
    db.merge(b"a", b"3").unwrap();
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1, 2, 3");
    db.compact_range(None, None).unwrap();
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1, 2, 3");
    db.close().unwrap();
    for other in [&b""[..], b","] {
        let error = try_open(&env, with_default(with(other))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!(error.message().contains("'esker.append:, '"), "{error}");
    }
    try_open(&env, with_default(with(b", "))).unwrap();
}

#[test]
fn a_merge_without_an_operator_fails_when_it_is_read() {
    let (env, _) = machine();
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.merge(b"b", b"1").unwrap();
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1");
    assert_eq!(db.get(b"b").unwrap_err().kind(), ErrorKind::InvalidArgument);
    // Neither a flush nor a compaction takes the operand away.
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let family = ColumnFamilyOptions {
        merge_operator: Some(Arc::new(AppendOperator::default())),
        ..family_options()
    };
    let db = try_open(&env, with_default(family)).unwrap();
    assert_eq!(db.get(b"b").unwrap().unwrap(), b"1");
}

#[test]
fn folders_of_others_are_left_alone() {
    let (env, fs) = machine();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    let foreign = Path::new(DIR).join("letter.txt");
    let mut file = fs.create(&foreign, CreateOptions::default()).unwrap();
    file.append(b"dear").unwrap();
    file.finish(true).unwrap();
    let error = try_open(&env, options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("letter.txt"), "{error}");
    assert_eq!(fs.list(Path::new(DIR)).unwrap(), ["letter.txt"]);
    fs.remove(&foreign).unwrap();
    open(&env).close().unwrap();
    // In a folder that is a database already, foreign files stay.
    let mut file = fs.create(&foreign, CreateOptions::default()).unwrap();
    file.finish(true).unwrap();
    open(&env).close().unwrap();
    assert!(fs.exists(&foreign).unwrap());
}

#[test]
fn what_is_not_there_is_not_made_unasked() {
    let (env, fs) = machine();
    let wanted = [
        Options {
            create_if_missing: false,
            ..options()
        },
        Options {
            read_only: true,
            ..options()
        },
    ];
    for options in wanted {
        assert_eq!(try_open(&env, options).unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert!(!fs.exists(Path::new(DIR)).unwrap());
    open(&env).close().unwrap();
    let settings = Options {
        error_if_exists: true,
        ..options()
    };
    assert_eq!(
        try_open(&env, settings).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let settings = Options {
        memory_budget_bytes: 1,
        ..options()
    };
    assert_eq!(
        try_open(&env, settings).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn a_reader_beside_a_writer_sees_what_was_logged_and_changes_nothing() {
    let (env, fs) = machine();
    let db = open(&env);
    for number in 0..100 {
        db.put(format!("key{number}").as_bytes(), &[b'v'; 300]).unwrap();
    }
    db.put(b"last", b"1").unwrap();
    let reader = try_open(
        &env,
        Options {
            read_only: true,
            ..options()
        },
    )
    .unwrap();
    assert_eq!(reader.get(b"last").unwrap().unwrap(), b"1");
    assert_eq!(reader.get(b"key50").unwrap().unwrap(), [b'v'; 300]);
    for error in [
        reader.put(b"a", b"1").unwrap_err(),
        reader.flush().unwrap_err(),
        reader.compact_range(None, None).unwrap_err(),
        reader
            .create_column_family("f", family_options())
            .map(drop)
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
    }
    reader.close().unwrap();
    db.put(b"last", b"2").unwrap();
    db.close().unwrap();
    let before = fs.operations();
    let reader = try_open(
        &env,
        Options {
            read_only: true,
            ..options()
        },
    )
    .unwrap();
    assert_eq!(reader.get(b"last").unwrap().unwrap(), b"2");
    drop(reader);
    assert_eq!(fs.operations(), before, "a reader changes no file");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (env, fs) = machine();
    let db = open(&env);
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let names = fs.list(Path::new(DIR)).unwrap();
    let manifest = names.iter().find(|name| name.starts_with("MANIFEST-")).unwrap();
    let path = Path::new(DIR).join(manifest);
    let bytes = fs.read_all(&path).unwrap();
    // Whichever byte the version is in: no change of the header may pass for the known format.
    for at in 0..16 {
        let mut changed = bytes.clone();
        changed[at] = changed[at].wrapping_add(1);
        let mut file = fs.create(&path, CreateOptions::default()).unwrap();
        file.append(&changed).unwrap();
        file.finish(true).unwrap();
        let error = try_open(&env, options()).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Corruption),
            "byte {at}: {error:?}"
        );
        assert_eq!(error.file(), Some(path.as_path()), "{error:?}");
    }
    let mut file = fs.create(&path, CreateOptions::default()).unwrap();
    file.append(&bytes).unwrap();
    file.finish(true).unwrap();
    assert_eq!(open(&env).get(b"a").unwrap().unwrap(), b"1");
}

#[test]
fn a_write_that_would_wait_can_ask_for_an_error_instead() {
    let _alive = watchdog::watch("a_write_that_would_wait", Duration::from_secs(60));
    let (env, _) = machine();
    let db = open(&env);
    db.pause_background_work();
    let options = esker::WriteOptions {
        no_wait: true,
        ..Default::default()
    };
    let refused = (0..10_000_u32).find_map(|n| db.put_with(&n.to_le_bytes(), &[1; 100], &options).err());
    assert_eq!(refused.unwrap().kind(), ErrorKind::Retry);
    // Nor does it wait behind one that waits. It did, and hung with it.
    std::thread::scope(|scope| {
        scope.spawn(|| db.put(b"a", b"1").unwrap());
        while db.stats().write_stall != esker::WriteStall::Stopped {
            std::thread::yield_now();
        }
        let refused = db.put_with(b"b", b"1", &options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Retry, "{refused}");
        db.resume_background_work();
    });
    assert_eq!(db.get(b"a").unwrap().unwrap(), b"1");
    db.put(b"a", b"2").unwrap();
}
