//! What fails stays small: the error says what and where, reads go on, and what was acknowledged is not lost.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use esker::{
    ColumnFamily, Db, Durability, Error, ErrorKind, Opener, Options, RecoveryMode, WriteBatch, WriteOptions,
};
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{CreateOptions, Env, Fs};
use esker_testkit::crash::{DIR, check_files, family_options, options};
use esker_testkit::watchdog::{self, Watchdog};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A database on a machine that fails on demand, and what was acknowledged by family.
struct Bench {
    mem: MemFs,
    faults: FaultFs,
    env: Env,
    db: Db,
    acknowledged: BTreeMap<String, Rows>,
    step: u32,
    _alive: Watchdog,
}

impl Bench {
    fn new(name: &str) -> Self {
        let mem = MemFs::new();
        let faults = FaultFs::new(Arc::new(mem.clone()));
        let env = Env {
            fs: Arc::new(faults.clone()),
            ..Env::simulated(1).0
        };
        let db = open(&env, options()).unwrap();
        Self {
            mem,
            faults,
            env,
            db,
            acknowledged: BTreeMap::new(),
            step: 0,
            _alive: watchdog::watch(name, Duration::from_secs(60)),
        }
    }

    fn family(&self, name: &str) -> ColumnFamily {
        self.db.column_family(name).unwrap()
    }

    fn write(&mut self, name: &str, number: u32, durability: Durability) -> Result<(), Error> {
        self.write_many(&[name], number, durability)
    }

    /// One batch that puts the same into every family.
    fn write_many(&mut self, names: &[&str], number: u32, durability: Durability) -> Result<(), Error> {
        self.step += 1;
        let key = format!("key{number:04}").into_bytes();
        let value = format!("value of step {} ", self.step).repeat(15).into_bytes();
        let mut batch = WriteBatch::new();
        for name in names {
            batch.put_cf(&self.family(name), &key, &value)?;
        }
        self.db
            .write_with(&mut batch, &WriteOptions::durability(durability))?;
        for name in names {
            let rows = self.acknowledged.entry((*name).to_owned()).or_default();
            rows.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    fn fill(&mut self, name: &str, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.write(name, number, Durability::Buffered).unwrap();
        }
    }

    /// Writes until one is taken: the device has room again, and nobody tells the database.
    fn write_until_taken(&mut self, name: &str, number: u32) {
        for _ in 0..2000 {
            match self.write(name, number, Durability::Buffered) {
                Ok(()) => return,
                Err(error) => assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}"),
            }
            pause();
        }
        panic!("writes don't resume: {:?}", self.db.stats().trouble);
    }

    /// Until nothing fails any more.
    fn settle(&self) {
        for _ in 0..2000 {
            if self.db.flush().is_ok() && self.db.wait_idle().is_ok() {
                return;
            }
            pause();
        }
        panic!("it does not settle: {:?}", self.db.stats().trouble);
    }

    fn check(&self) {
        check(&self.db, &self.acknowledged, "while open");
    }

    /// Nothing acknowledged is missing after closing, and after each kind of crash where all was synced.
    fn check_after_reopening(self, modes: &[CrashMode]) {
        self.check();
        let left: Vec<_> = modes.iter().map(|&mode| (mode, self.mem.crash(mode))).collect();
        for (mode, fs) in left {
            let db = open(&Env::simulated_on(fs.clone(), 1), options())
                .unwrap_or_else(|error| panic!("after {mode:?}: {error:?}"));
            check(&db, &self.acknowledged, &format!("after {mode:?}"));
            check_files(&fs, &db).unwrap_or_else(|problem| panic!("after {mode:?}: {problem}"));
        }
        self.faults.clear();
        self.db.close().unwrap();
        let db = open(&self.env, options()).unwrap();
        check(&db, &self.acknowledged, "after reopening");
        check_files(&self.mem, &db).unwrap();
    }
}

fn pause() {
    Env::posix().clock.sleep(Duration::from_millis(1));
}

fn open(env: &Env, options: Options) -> Result<Db, Error> {
    Opener::new(options).env(env.clone()).open(Path::new(DIR))
}

/// Acknowledged rows are there. (Rows that were refused may be: of some errors nobody knows the outcome.)
fn check(db: &Db, acknowledged: &BTreeMap<String, Rows>, when: &str) {
    for (name, rows) in acknowledged {
        let family = db.column_family(name).unwrap();
        for (key, value) in rows {
            let found = db
                .get_cf(&family, key)
                .unwrap_or_else(|error| panic!("{when}: {error:?}"));
            assert!(
                found.as_deref() == Some(value),
                "{when}: family {name}, {}: {:?}",
                key.escape_ascii(),
                found.map(|found| found.escape_ascii().to_string())
            );
        }
    }
}

const ALL_MODES: [CrashMode; 4] = [
    CrashMode::KeepAll,
    CrashMode::DropUnsynced,
    CrashMode::Torn { seed: 1 },
    CrashMode::Torn { seed: 2 },
];

#[test]
fn a_failed_sync_of_the_log_is_final() {
    for by_write in [true, false] {
        let mut bench = Bench::new("a_failed_sync_of_the_log_is_final");
        bench.fill("default", 0..5);
        bench
            .faults
            .add(Rule::new(Op::Sync, Fault::FailedSync).on_path(".wal"));
        let error = if by_write {
            bench.write("default", 9, Durability::Sync).unwrap_err()
        } else {
            bench.db.sync_wal().unwrap_err()
        };
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        bench.faults.clear();
        for durability in [Durability::Sync, Durability::Buffered, Durability::None] {
            let error = bench.write("default", 10, durability).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReadOnly);
        }
        assert_eq!(bench.db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(bench.db.sync_wal().unwrap_err().kind(), ErrorKind::ReadOnly);
        bench.check();
        assert_eq!(
            bench.db.get(b"key0009").unwrap(),
            None,
            "a refused write is not visible"
        );
        let _ = bench.db.close();
        open(&bench.env, options()).unwrap();
    }
}

#[test]
fn a_full_device_at_the_log_refuses_writes_until_there_is_room() {
    for fault in [Fault::Enospc, Fault::ShortWrite] {
        for idle_family in [false, true] {
            for sync in [false, true] {
                let mut bench = Bench::new("a_full_device_at_the_log");
                if idle_family {
                    bench.db.create_column_family("idle", family_options()).unwrap();
                }
                bench.fill("default", 0..8);
                bench
                    .faults
                    .add(Rule::new(Op::Append, fault).on_path(".wal").sticky());
                for _ in 0..3 {
                    let error = bench.write("default", 9, Durability::Buffered).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::NoSpace);
                }
                assert_eq!(bench.db.get(b"key0009").unwrap(), None);
                bench.check();
                bench.faults.clear();
                if sync {
                    // Either it fails, or what it promises holds.
                    bench.db.sync_wal().unwrap();
                } else {
                    bench.write_until_taken("default", 9);
                    bench.write("default", 10, Durability::Sync).unwrap();
                }
                bench.check_after_reopening(&ALL_MODES);
            }
        }
    }
}

/// A broken segment is left by way of a flush, which only writers that waited for it asked for.
#[test]
fn a_full_log_is_mended_also_for_who_would_not_wait() {
    let mut bench = Bench::new("a_full_log_is_mended_also_for_who_would_not_wait");
    bench.fill("default", 0..8);
    bench
        .faults
        .add(Rule::new(Op::Append, Fault::Enospc).on_path(".wal").sticky());
    let options = WriteOptions {
        no_wait: true,
        ..WriteOptions::default()
    };
    let error = bench.db.put_with(b"patience", b"none", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    bench.faults.clear();
    while let Err(error) = bench.db.put_with(b"patience", b"none", &options) {
        assert_eq!(error.kind(), ErrorKind::Retry, "{error}");
        std::thread::yield_now();
    }
    assert_eq!(bench.db.get(b"patience").unwrap().unwrap(), b"none");
}

#[test]
fn a_full_device_at_the_very_first_write_loses_nothing_later() {
    let mut bench = Bench::new("a_full_device_at_the_very_first_write");
    bench
        .faults
        .add(Rule::new(Op::Append, Fault::ShortWrite).on_path(".wal"));
    bench.write("default", 1, Durability::Buffered).unwrap_err();
    bench.write_until_taken("default", 2);
    bench.write("default", 3, Durability::Sync).unwrap();
    bench.check_after_reopening(&ALL_MODES);
}

#[test]
fn a_log_segment_whose_end_can_not_be_marked_loses_nothing() {
    // Which of the appends it is that fails: the mark, the next segment's header, its first record.
    for nth in 1..4 {
        let mut bench = Bench::new("a_log_segment_whose_end_can_not_be_marked");
        bench.db.create_column_family("other", family_options()).unwrap();
        for number in 0..8 {
            bench
                .write_many(&["default", "other"], number, Durability::Buffered)
                .unwrap();
        }
        let other = bench.family("other");
        bench
            .faults
            .add(Rule::new(Op::Append, Fault::ShortWrite).on_path(".wal").nth(nth));
        let _ = bench.db.flush_cf(&other);
        if bench.write("default", 20, Durability::Buffered).is_err() {
            bench.write_until_taken("default", 20);
        }
        bench.write_until_taken("other", 21);
        bench.write("default", 22, Durability::Sync).unwrap();
        assert_eq!(bench.faults.injected(), 1, "{nth}");
        bench.check_after_reopening(&ALL_MODES);
    }
}

#[test]
fn a_batch_over_two_families_stays_whole_when_the_log_breaks() {
    // Every point between the broken append and the first write that is taken again, as a power cut leaves it.
    for stop in 0..40 {
        let mut bench = Bench::new("a_batch_over_two_families");
        bench.db.create_column_family("other", family_options()).unwrap();
        for number in 0..8 {
            bench
                .write_many(&["default", "other"], number, Durability::Buffered)
                .unwrap();
        }
        bench
            .faults
            .add(Rule::new(Op::Append, Fault::ShortWrite).on_path(".wal"));
        bench.write("default", 9, Durability::Buffered).unwrap_err();
        bench.mem.stop_after(Some(stop));
        let _ = bench.write("default", 9, Durability::Buffered);
        for mode in ALL_MODES {
            let db = open(&Env::simulated_on(bench.mem.crash(mode), 1), options()).unwrap();
            let other = db.column_family("other").unwrap();
            let mut last = true;
            for number in 0..8 {
                let key = format!("key{number:04}");
                let (a, b) = (
                    db.get(key.as_bytes()).unwrap(),
                    db.get_cf(&other, key.as_bytes()).unwrap(),
                );
                assert_eq!(a.is_some(), b.is_some(), "{key}, stopped after {stop}, {mode:?}");
                assert!(
                    last || a.is_none(),
                    "{key} without its predecessor, stopped after {stop}, {mode:?}"
                );
                last = a.is_some();
            }
        }
    }
}

#[test]
fn a_full_device_at_flushes_and_compactions_is_waited_for() {
    for op in [Op::Create, Op::Append, Op::Finish] {
        let mut bench = Bench::new("a_full_device_at_flushes");
        bench.fill("default", 0..40);
        bench
            .faults
            .add(Rule::new(op, Fault::Enospc).on_path(".sst").sticky());
        assert_eq!(bench.db.flush().unwrap_err().kind(), ErrorKind::NoSpace, "{op:?}");
        bench.check();
        assert_eq!(bench.db.stats().trouble.unwrap().kind(), ErrorKind::NoSpace);
        // Memory fills up, and then writes are refused rather than stuck.
        let refused =
            (0..1000).find_map(|number| bench.write("default", number % 50, Durability::Buffered).err());
        assert_eq!(refused.unwrap().kind(), ErrorKind::NoSpace);
        bench.check();
        bench.faults.clear();
        bench.write_until_taken("default", 3);
        bench.settle();
        check_files(&bench.mem, &bench.db).unwrap();
        bench.check_after_reopening(&ALL_MODES);
    }
}

#[test]
fn a_failing_compaction_leaves_the_database_as_it_was_and_is_tried_again() {
    let faults = [
        (Op::Create, Fault::Eio),
        (Op::Append, Fault::ShortWrite),
        (Op::Append, Fault::Eio),
        (Op::Finish, Fault::FailedSync),
        (Op::Read, Fault::Eio),
        (Op::Read, Fault::ShortRead),
    ];
    for (op, fault) in faults {
        let mut bench = Bench::new("a_failing_compaction");
        // Of the default family's values only pointers are in tables.
        bench
            .db
            .create_column_family("in tables", family_options())
            .unwrap();
        bench.fill("in tables", 0..50);
        bench.db.flush().unwrap();
        bench.db.wait_idle().unwrap();
        // Else the two could be one table already when the fault comes.
        bench.db.pause_background_work();
        bench.fill("in tables", 0..20);
        bench.db.flush().unwrap();
        bench.faults.add(Rule::new(op, fault).on_path(".sst").sticky());
        let family = bench.family("in tables");
        let error = bench.db.compact_range_cf(&family, None, None).unwrap_err();
        assert!(error.file().is_some(), "{error:?}");
        bench.faults.clear();
        bench.db.resume_background_work();
        bench.check();
        bench.db.compact_range_cf(&family, None, None).unwrap();
        bench.settle();
        check_files(&bench.mem, &bench.db).unwrap();
        bench.check_after_reopening(&ALL_MODES);
    }
}

#[test]
fn a_failing_manifest_loses_neither_rows_nor_files() {
    let faults = [
        (Op::Append, Fault::Enospc, "MANIFEST"),
        (Op::Append, Fault::ShortWrite, "MANIFEST"),
        (Op::Sync, Fault::Eio, "MANIFEST"),
        (Op::Sync, Fault::FailedSync, "MANIFEST"),
    ];
    for (op, fault, path) in faults {
        for sticky in [false, true] {
            for compacting in [false, true] {
                let mut bench = Bench::new("a_failing_manifest");
                bench.fill("default", 0..20);
                if compacting {
                    bench.db.flush().unwrap();
                    bench.fill("default", 10..20);
                    bench.db.flush().unwrap();
                    bench.db.wait_idle().unwrap();
                } else {
                    bench.db.sync_wal().unwrap();
                }
                let rule = Rule::new(op, fault).on_path(path);
                bench.faults.add(if sticky { rule.sticky() } else { rule });
                let result = if compacting {
                    bench.db.compact_range(None, None)
                } else {
                    bench.db.flush()
                };
                let context = format!("{op:?} {fault:?} sticky {sticky} compacting {compacting}");
                // Once: the flush was tried again before anybody looked.
                assert!(result.is_err() || !sticky && !compacting, "{context}");
                bench.check();
                // The machine goes down with the doubtful edit in the file, or without it.
                for mode in ALL_MODES {
                    let db = open(&Env::simulated_on(bench.mem.crash(mode), 1), options())
                        .unwrap_or_else(|error| panic!("{context}, {mode:?}: {error:?}"));
                    check(&db, &bench.acknowledged, &format!("{context}, {mode:?}"));
                }
                bench.faults.clear();
                bench.settle();
                bench.write_until_taken("default", 30);
                bench.write("default", 31, Durability::Sync).unwrap();
                bench.check_after_reopening(&ALL_MODES);
            }
        }
    }
}

#[test]
fn a_new_manifest_that_can_not_be_made_live_changes_nothing() {
    for (op, path) in [
        (Op::Rename, "CURRENT"),
        (Op::SyncDir, ""),
        (Op::Create, "MANIFEST"),
        (Op::Create, "CURRENT"),
    ] {
        for nth in 1..3 {
            let mut bench = Bench::new("a_new_manifest");
            bench.fill("default", 0..20);
            bench.write("default", 20, Durability::Sync).unwrap();
            // The first failure makes a new manifest necessary, the second hits it.
            bench
                .faults
                .add(Rule::new(Op::Append, Fault::Eio).on_path("MANIFEST"));
            bench.faults.add(Rule::new(op, Fault::Eio).on_path(path).nth(nth));
            let _ = bench.db.flush();
            for mode in ALL_MODES {
                let db = open(&Env::simulated_on(bench.mem.crash(mode), 1), options())
                    .unwrap_or_else(|error| panic!("{op:?} {nth}, {mode:?}: {error:?}"));
                check(&db, &bench.acknowledged, &format!("{op:?} {nth}, {mode:?}"));
            }
            bench.faults.clear();
            bench.settle();
            bench.check_after_reopening(&ALL_MODES);
        }
    }
}

#[test]
fn a_failing_open_can_be_repeated() {
    for op in Op::ALL {
        for nth in 1..30 {
            let mut bench = Bench::new("a_failing_open");
            bench.fill("default", 0..20);
            bench.write("default", 20, Durability::Sync).unwrap();
            bench.db.close().unwrap();
            bench.faults.add(Rule::new(op, Fault::Eio).nth(nth));
            let before = bench.faults.injected();
            let first = open(&bench.env, options());
            let hit = bench.faults.injected() > before;
            bench.faults.clear();
            if let Err(error) = &first {
                assert!(hit, "{op:?} {nth}: {error:?}");
            }
            drop(first);
            let db = open(&bench.env, options()).unwrap_or_else(|error| panic!("{op:?} {nth}: {error:?}"));
            check(&db, &bench.acknowledged, &format!("{op:?} {nth}"));
            check_files(&bench.mem, &db).unwrap_or_else(|problem| panic!("{op:?} {nth}: {problem}"));
            if !hit {
                break;
            }
        }
    }
}

fn files(fs: &dyn Fs, suffix: &str) -> Vec<PathBuf> {
    let mut names = fs.list(Path::new(DIR)).unwrap();
    names.sort();
    let paths = names
        .iter()
        .filter(|name| name.ends_with(suffix) || name.starts_with(suffix));
    paths.map(|name| Path::new(DIR).join(name)).collect()
}

/// Rewrites a file.
fn change(fs: &dyn Fs, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs.read_all(path).unwrap();
    change(&mut bytes);
    let mut file = fs.create(path, CreateOptions::default()).unwrap();
    file.append(&bytes).unwrap();
    file.finish(true).unwrap();
}

/// A run that goes on after errors. What failed is left out of what was acknowledged.
fn run_through(bench: &mut Bench) {
    let known = |error: Error| {
        let kinds = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::ReadOnly];
        assert!(kinds.contains(&error.kind()), "{error:?}");
    };
    let default = bench.db.default_column_family();
    for number in 0..12 {
        let durability = if number % 5 == 4 {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        bench.write("default", number, durability).unwrap_or_else(known);
    }
    let created = bench.db.create_column_family("other", family_options());
    let other = created.map_err(known).ok();
    bench.db.flush_cf(&default).unwrap_or_else(known);
    for number in 0..60 {
        let both: &[&str] = if other.is_some() {
            &["default", "other"]
        } else {
            &["default"]
        };
        bench
            .write_many(both, number * 7 % 40, Durability::Buffered)
            .unwrap_or_else(known);
    }
    bench.db.sync_wal().unwrap_or_else(known);
    bench.db.compact_range(None, None).unwrap_or_else(known);
    bench
        .db
        .set_family_options(&default, &[("block_bytes", "2048")])
        .unwrap_or_else(known);
    for number in 40..50 {
        bench
            .write("default", number, Durability::Buffered)
            .unwrap_or_else(known);
    }
    match bench.db.create_column_family("passing", family_options()) {
        Ok(passing) => {
            bench.db.put_cf(&passing, b"a", b"1").unwrap_or_else(known);
            bench.db.drop_column_family(&passing).unwrap_or_else(known);
        }
        Err(error) => known(error),
    }
    bench.db.flush().unwrap_or_else(known);
    bench.db.wait_idle().unwrap_or_else(known);
    for number in 50..55 {
        bench
            .write("default", number, Durability::Sync)
            .unwrap_or_else(known);
    }
}

#[test]
fn a_call_that_fails_once_loses_nothing_whichever_it_is() {
    let ops = [
        Op::Create,
        Op::Rewind,
        Op::Append,
        Op::Flush,
        Op::Sync,
        Op::Finish,
        Op::Rename,
        Op::Remove,
        Op::SyncDir,
        Op::Open,
        Op::Read,
    ];
    for op in ops {
        for fault in [Fault::Eio, Fault::Enospc, Fault::ShortWrite, Fault::FailedSync] {
            let only = match fault {
                Fault::ShortWrite => Some(vec![Op::Append]),
                Fault::FailedSync => Some(vec![Op::Sync, Op::Finish]),
                _ => None,
            };
            if only.is_some_and(|only| !only.contains(&op)) {
                continue;
            }
            for nth in 1.. {
                let mut bench = Bench::new(&format!("{op:?} number {nth} fails with {fault:?}"));
                bench.faults.add(Rule::new(op, fault).nth(nth));
                run_through(&mut bench);
                if bench.faults.injected() == 0 {
                    let rare = [Op::Read, Op::Rewind, Op::Rename, Op::Open];
                    assert!(nth > 1 || rare.contains(&op), "{op:?} is never called");
                    break;
                }
                bench.faults.clear();
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    bench.check();
                    let taken = (0..500).find_map(|_| match bench.write("default", 60, Durability::Sync) {
                        Ok(()) => Some(true),
                        Err(error) if error.kind() == ErrorKind::ReadOnly => Some(false),
                        Err(_) => {
                            pause();
                            None
                        }
                    });
                    if taken.expect("writes don't resume") {
                        bench.settle();
                        bench.check_after_reopening(&ALL_MODES);
                    } else {
                        // A sync failed: what the device holds nobody knows, but it opens, and holds no half files.
                        let _ = bench.db.close();
                        let db = open(&bench.env, options()).unwrap();
                        db.put(b"a", b"1").unwrap();
                        db.flush().unwrap();
                        db.wait_idle().unwrap();
                        check_files(&bench.mem, &db).unwrap();
                    }
                }));
                assert!(result.is_ok(), "{op:?} number {nth} failed with {fault:?}");
            }
        }
    }
}

#[test]
fn a_manifest_that_rolls_over_is_whole_at_every_moment() {
    // How many changes it takes is found out first; the crashes are around that one.
    let names = |fs: &MemFs| files(fs, "MANIFEST-");
    let changes = |bench: &Bench, count: usize| -> usize {
        let family = bench.family("default");
        let first = names(&bench.mem);
        (0..count)
            .take_while(|number| {
                let bytes = if number % 2 == 0 { "2048" } else { "4096" };
                let _ = bench.db.set_family_options(&family, &[("block_bytes", bytes)]);
                names(&bench.mem) == first
            })
            .count()
    };
    let mut bench = Bench::new("a_manifest_that_rolls_over");
    bench.fill("default", 0..3);
    let needed = changes(&bench, 100_000);
    assert!((1000..100_000).contains(&needed), "{needed}");
    let stride = esker_testkit::number_from_env("ESKER_CRASH_STRIDE", 4).max(1);
    for stop in (1..13).step_by(stride as usize) {
        let mut bench = Bench::new("a_manifest_that_rolls_over");
        bench.write("default", 1, Durability::Sync).unwrap();
        changes(&bench, needed - 1);
        bench.mem.stop_after(Some(stop));
        changes(&bench, 4);
        for mode in ALL_MODES {
            let fs = bench.mem.crash(mode);
            let db = open(&Env::simulated_on(fs.clone(), 1), options())
                .unwrap_or_else(|error| panic!("stopped after {stop}, {mode:?}: {error:?}"));
            check(
                &db,
                &bench.acknowledged,
                &format!("stopped after {stop}, {mode:?}"),
            );
            check_files(&fs, &db).unwrap();
        }
    }
}

#[test]
fn a_damaged_block_is_named_and_the_others_can_be_read() {
    for (family, suffix) in [("in tables", ".sst"), ("default", ".blob")] {
        damage_of(family, suffix);
    }
}

fn damage_of(family: &str, suffix: &str) {
    let mut bench = Bench::new("a_damaged_block");
    bench
        .db
        .create_column_family("in tables", family_options())
        .unwrap();
    bench.fill(family, 0..40);
    let handle = bench.family(family);
    bench.db.flush().unwrap();
    bench.db.compact_range_cf(&handle, None, None).unwrap();
    bench.db.close().unwrap();
    let table = files(&bench.mem, suffix).remove(0);
    change(&bench.mem, &table, |bytes| bytes[600] ^= 1);
    let db = open(&bench.env, options()).unwrap();
    let handle = db.column_family(family).unwrap();
    let mut failed = 0;
    for (key, value) in &bench.acknowledged[family] {
        match db.get_cf(&handle, key) {
            Ok(found) => assert!(found.as_deref() == Some(value)),
            Err(error) => {
                failed += 1;
                assert_eq!(error.kind(), ErrorKind::Corruption);
                assert_eq!(error.file(), Some(table.as_path()));
                assert!(error.offset().is_some(), "{error:?}");
            }
        }
    }
    assert!((1..20).contains(&failed), "{failed} of 40 keys");
}

#[test]
fn a_read_that_fails_is_named_and_can_be_repeated() {
    for (family, suffix) in [("in tables", ".sst"), ("default", ".blob")] {
        let mut bench = Bench::new("a_read_that_fails");
        bench
            .db
            .create_column_family("in tables", family_options())
            .unwrap();
        bench.fill(family, 0..40);
        bench.db.flush().unwrap();
        bench.db.close().unwrap();
        bench.db = open(&bench.env, options()).unwrap();
        let handle = bench.family(family);
        bench.db.get_cf(&handle, b"key0030").unwrap();
        bench.faults.add(Rule::new(Op::Read, Fault::Eio).on_path(suffix));
        let error = bench.db.get_cf(&handle, b"key0000").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error
                .file()
                .is_some_and(|path| path.to_string_lossy().ends_with(suffix)),
            "{error:?}"
        );
        bench.check();
    }
}

#[test]
fn a_damaged_log_opens_as_the_recovery_mode_says() {
    let mut bench = Bench::new("a_damaged_log");
    bench.fill("default", 0..30);
    bench.db.sync_wal().unwrap();
    let left = bench.mem.crash(CrashMode::KeepAll);
    let segments = files(&left, ".wal");
    let segment = segments
        .iter()
        .max_by_key(|path| left.file_len(path).unwrap())
        .unwrap();
    change(&left, segment, |bytes| bytes[3000] ^= 1);
    let open_as = |mode| {
        let fs = left.crash(CrashMode::KeepAll);
        let settings = Options {
            recovery_mode: mode,
            ..options()
        };
        open(&Env::simulated_on(fs, 1), settings)
    };
    let there = |db: &Db| {
        (0..30)
            .filter(|number| db.get(format!("key{number:04}").as_bytes()).unwrap().is_some())
            .collect::<Vec<i32>>()
    };
    let error = open_as(RecoveryMode::Absolute).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(error.file(), Some(segment.as_path()));
    let db = open_as(RecoveryMode::PointInTime).unwrap();
    let rows = there(&db);
    assert!(
        !rows.is_empty() && rows.len() < 29 && rows.iter().copied().eq(0..rows.len() as i32),
        "{rows:?}"
    );
    assert_eq!(db.recovery_report().damages, 1);
    assert_eq!(db.recovery_report().kept_aside.len(), 1);
    db.put(b"key", b"value").unwrap();
    let db = open_as(RecoveryMode::SkipCorrupt).unwrap();
    assert!(there(&db).len() >= 28, "{:?}", there(&db));
    assert!(db.recovery_report().lost_bytes > 0);
}

#[test]
fn a_damaged_manifest_or_current_is_named() {
    let mut bench = Bench::new("a_damaged_manifest");
    bench.fill("default", 0..5);
    bench.db.flush().unwrap();
    bench.db.close().unwrap();
    for name in ["MANIFEST-", "CURRENT"] {
        for at in [0, 9, 40] {
            let fs = bench.mem.crash(CrashMode::KeepAll);
            let path = files(&fs, name).remove(0);
            let mut changed = false;
            change(&fs, &path, |bytes| {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 0x55;
                    changed = true;
                }
            });
            if changed {
                let error = open(&Env::simulated_on(fs, 1), options()).unwrap_err();
                assert!(
                    matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported),
                    "{name} at {at}: {error:?}"
                );
                assert!(error.file().is_some(), "{error:?}");
            }
        }
    }
}
