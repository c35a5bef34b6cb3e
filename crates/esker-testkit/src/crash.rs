//! A scripted run on a machine that stops after a given number of mutating calls, and what must hold after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use esker::{
    ColumnFamily, ColumnFamilyOptions, Db, Durability, Opener, Options, Result, WriteBatch, WriteOptions,
};
use esker_env::mem::{CrashMode, MemFs};
use esker_env::{Env, Fs as _};

use crate::oracle::{Changes, Family, Mutation, Oracle};
use crate::runner::scan_all;

/// Where the database is.
pub const DIR: &str = "/db";
/// Bytes of a WAL segment.
const SEGMENT_BYTES: u64 = 64 << 10;
/// Segments that are used again.
const RECYCLED: u64 = 2;

/// Settings under which little data goes a long way.
pub fn options() -> Options {
    Options {
        memory_budget_bytes: 4 << 20,
        wal_segment_bytes: SEGMENT_BYTES,
        wal_memory_bytes: RECYCLED * SEGMENT_BYTES,
        compaction_threads: 1,
        subcompactions_max: 1,
        default_column_family: ColumnFamilyOptions {
            // Values lie in blob files in this family, and in tables in all others.
            blob_value_bytes_min: 16,
            blob_space_percent: 120,
            ..family_options()
        },
        ..Options::default()
    }
}

/// The same for families.
pub fn family_options() -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        memtable_bytes: 16 << 10,
        block_bytes: 1 << 10,
        level_base_bytes: 64 << 10,
        file_bytes: 16 << 10,
        level0_compaction_trigger: 2,
        blob_value_bytes_min: 0,
        ..ColumnFamilyOptions::default()
    }
}

/// Opens the database on this machine.
pub fn open(fs: &MemFs) -> Result<Db> {
    let env = Env::simulated_on(fs.clone(), fs.operations());
    Opener::new(options()).env(env).open(Path::new(DIR))
}

/// A family whose creation or drop was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unanswered {
    Created(String),
    Dropped(u32),
}

/// A run beside its model; it ends with the first call that fails.
#[derive(Default)]
pub struct Script {
    db: Option<Db>,
    /// What is known of the database.
    pub oracle: Oracle,
    unanswered: Option<Unanswered>,
    step: u64,
    careless: bool,
}

impl Script {
    /// Runs as far as the machine goes; `true`: to the end. Whatever the engine answers after that is an error.
    pub fn run(fs: &MemFs) -> (Self, bool) {
        Self::run_with(fs, false)
    }

    /// The same on a database that does not sync its files, if `careless`: what no check may let pass.
    pub fn run_with(fs: &MemFs, careless: bool) -> (Self, bool) {
        let mut script = Self {
            careless,
            ..Self::default()
        };
        script.oracle.create(0, Family::default());
        let done = script.steps(fs).is_ok();
        if let Some(db) = script.db.take() {
            let _ = db.close();
        }
        (script, done)
    }

    fn steps(&mut self, fs: &MemFs) -> Result<()> {
        self.db = Some(self.open(fs)?);
        self.writes(0, None, 8, Durability::Buffered)?;
        let two = self.create("two")?;
        self.writes(4, Some(&two), 12, Durability::Buffered)?;
        self.writes(10, Some(&two), 1, Durability::Sync)?;
        self.flush()?;
        // More than a memtable, so that flushes come by themselves, and compactions after them.
        self.writes(0, None, 70, Durability::Buffered)?;
        self.wait_idle()?;
        let three = self.create("three")?;
        self.writes(0, Some(&three), 6, Durability::Buffered)?;
        self.delete_range(&two, 2, 9)?;
        self.writes(30, Some(&two), 6, Durability::Buffered)?;
        self.db()?.flush_cf(&two)?;
        self.oracle.flushed(two.id());
        self.wait_idle()?;
        self.writes(60, None, 2, Durability::Sync)?;
        self.drop(&three)?;
        self.writes(20, Some(&two), 10, Durability::Buffered)?;
        self.db()?.sync_wal()?;
        self.oracle.synced();
        self.writes(25, Some(&two), 10, Durability::Buffered)?;
        self.db()?.compact_range(None, None)?;
        self.oracle.flushed(0);
        self.wait_idle()?;
        self.writes(40, Some(&two), 3, Durability::Buffered)?;
        let names = BTreeSet::from(["default", "two"]);
        let db = self.db()?.clone();
        db.close()?;
        self.db = None;
        drop(db);
        self.db = Some(self.open(fs)?);
        assert_eq!(
            self.db()?
                .column_family_names()
                .iter()
                .map(String::as_str)
                .collect::<BTreeSet<_>>(),
            names
        );
        self.oracle.reopened();
        let two = self.db()?.column_family("two")?;
        self.db()?.set_family_options(&two, &[("block_bytes", "2048")])?;
        self.writes(50, Some(&two), 40, Durability::Buffered)?;
        self.flush()?;
        self.writes(55, Some(&two), 3, Durability::Sync)?;
        self.wait_idle()
    }

    fn open(&self, fs: &MemFs) -> Result<Db> {
        let options = Options {
            sync_files: !self.careless,
            ..options()
        };
        let env = Env::simulated_on(fs.clone(), fs.operations());
        Opener::new(options).env(env).open(Path::new(DIR))
    }

    fn db(&self) -> Result<&Db> {
        self.db
            .as_ref()
            .ok_or_else(|| esker::Error::bug("the script has no database"))
    }

    fn wait_idle(&self) -> Result<()> {
        self.db()?.wait_idle()
    }

    fn flush(&mut self) -> Result<()> {
        self.db()?.flush()?;
        for id in self.oracle.state().keys().copied().collect::<Vec<_>>() {
            self.oracle.flushed(id);
        }
        Ok(())
    }

    /// Batches of three changes: two puts, in both families if there are two, and a delete.
    fn writes(
        &mut self,
        from: u64,
        other: Option<&ColumnFamily>,
        count: u64,
        durability: Durability,
    ) -> Result<()> {
        for at in from..from + count {
            self.step += 1;
            let key = |number: u64| format!("key{:04}", number * 37 % 80).into_bytes();
            let value = format!("{} of step {}, ", key(at).escape_ascii(), self.step)
                .repeat(12)
                .into_bytes();
            let default = self.db()?.default_column_family();
            let other = other.unwrap_or(&default);
            let changes = vec![
                (0, Mutation::Put(key(at), value.clone())),
                (other.id(), Mutation::Put(key(at + 1), value)),
                (other.id(), Mutation::Delete(key(at + 11))),
            ];
            self.commit(changes, [&default, other], durability)?;
        }
        Ok(())
    }

    fn delete_range(&mut self, family: &ColumnFamily, from: u64, to: u64) -> Result<()> {
        let key = |number: u64| format!("key{number:04}").into_bytes();
        let changes = vec![(family.id(), Mutation::DeleteRange(key(from), key(to)))];
        self.commit(changes, [family, family], Durability::Buffered)
    }

    fn commit(
        &mut self,
        changes: Changes,
        families: [&ColumnFamily; 2],
        durability: Durability,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        for (id, mutation) in &changes {
            let family = families[usize::from(*id == families[1].id())];
            match mutation {
                Mutation::Put(key, value) => batch.put_cf(family, key, value)?,
                Mutation::Delete(key) => batch.delete_cf(family, key)?,
                Mutation::DeleteRange(start, end) => batch.delete_range_cf(family, start, end)?,
                other => panic!("the script has no {other:?}"),
            }
        }
        let written = self
            .db()?
            .write_with(&mut batch, &WriteOptions::durability(durability));
        match written {
            Ok(()) => self.oracle.commit(changes, durability),
            Err(_) => self.oracle.attempt(changes, durability),
        }
        written
    }

    fn create(&mut self, name: &str) -> Result<ColumnFamily> {
        self.unanswered = Some(Unanswered::Created(name.to_owned()));
        let family = self.db()?.create_column_family(name, family_options())?;
        self.unanswered = None;
        self.oracle.create(family.id(), Family::default());
        Ok(family)
    }

    fn drop(&mut self, family: &ColumnFamily) -> Result<()> {
        self.unanswered = Some(Unanswered::Dropped(family.id()));
        self.db()?.drop_column_family(family)?;
        self.unanswered = None;
        self.oracle.drop_family(family.id());
        Ok(())
    }

    /// Opens what a crash left, and holds it against the model. Gives the database, and the model of it.
    pub fn recover(&self, fs: &MemFs, mode: CrashMode) -> std::result::Result<(Db, Oracle), String> {
        let db = open(fs).map_err(|error| format!("it does not open: {error:?}"))?;
        let mut oracle = self.oracle.clone();
        match &self.unanswered {
            Some(Unanswered::Created(name)) => {
                if let Ok(family) = db.column_family(name) {
                    oracle.create(family.id(), Family::default());
                }
            }
            Some(Unanswered::Dropped(id)) => {
                let names = db.column_family_names();
                let ids = names
                    .iter()
                    .filter_map(|name| db.column_family(name).ok())
                    .map(|family| family.id());
                if !ids.collect::<Vec<_>>().contains(id) {
                    oracle.drop_family(*id);
                }
            }
            None => {}
        }
        let found = scan_all(&db).map_err(|error| format!("a scan fails: {error:?}"))?;
        let report = db.recovery_report();
        oracle
            .crashed(&found, mode != CrashMode::KeepAll)
            .map_err(|problem| format!("{problem}\nrecovery said {report:?}"))?;
        if mode == CrashMode::KeepAll && report.damages > 0 {
            return Err(format!("damage where there can be none: {report:?}"));
        }
        check_files(fs, &db)?;
        Ok((db, oracle))
    }
}

/// Holds a database against its model.
pub fn check_rows(db: &Db, oracle: &Oracle) -> std::result::Result<(), String> {
    let found = scan_all(db).map_err(|error| format!("a scan fails: {error:?}"))?;
    let wanted: BTreeMap<_, _> = oracle
        .state()
        .iter()
        .map(|(&id, family)| (id, family.rows()))
        .collect();
    if found == wanted {
        return Ok(());
    }
    let mut text = format!("families {:?}, wanted {:?}", found.keys(), wanted.keys());
    for (id, rows) in &found {
        if let Some(wanted) = wanted.get(id) {
            text += &format!("\nfamily {id}: {}", crate::oracle::difference(rows, wanted));
        }
    }
    Err(text)
}

/// That the folder of an open and idle database comes to hold what it needs, and nothing else. Background threads
/// may be about to remove files.
pub fn check_files(fs: &MemFs, db: &Db) -> std::result::Result<(), String> {
    check_files_in(DIR, fs, db)
}

/// The same for a database in another folder.
pub fn check_files_in(dir: &str, fs: &MemFs, db: &Db) -> std::result::Result<(), String> {
    let mut result = Ok(());
    for _ in 0..200 {
        result = check_files_now(dir, fs, db);
        if result.is_ok() {
            break;
        }
        esker_env::Env::posix()
            .clock
            .sleep(std::time::Duration::from_millis(10));
    }
    result
}

fn check_files_now(dir: &str, fs: &MemFs, db: &Db) -> std::result::Result<(), String> {
    let names = fs
        .list(Path::new(dir))
        .map_err(|error| format!("can't list: {error}"))?;
    let count = |suffix: &str| names.iter().filter(|name| name.ends_with(suffix)).count();
    let (mut tables, mut blobs) = (0, 0);
    for name in db.column_family_names() {
        let family = db.column_family(&name).map_err(|error| format!("{error:?}"))?;
        let number = |name: &str| {
            let text = db.property(&family, name).map_err(|error| format!("{error:?}"))?;
            text.parse::<usize>().map_err(|error| format!("{error}"))
        };
        tables += number("files")?;
        blobs += number("blob-files")?;
    }
    let manifests = names.iter().filter(|name| name.starts_with("MANIFEST-")).count();
    let known = |name: &str| {
        name == "CURRENT" || name == "LOCK" || name.starts_with("MANIFEST-") || {
            let suffix = name.split_once('.').map_or("", |(_, suffix)| suffix);
            ["sst", "blob", "wal", "wal.damaged"].contains(&suffix)
        }
    };
    let strange: Vec<_> = names.iter().filter(|name| !known(name)).collect();
    let kept = db.recovery_report().kept_aside.len();
    let wals = count(".wal");
    if manifests == 1
        && count(".sst") == tables
        && count(".blob") == blobs
        && strange.is_empty()
        && wals <= 4 + RECYCLED as usize
        && count(".damaged") >= kept
    {
        return Ok(());
    }
    Err(format!(
        "{tables} tables and {blobs} blob files are in use, {} and {} are there; {manifests} manifests; {wals} segments; strange: {strange:?}; {names:?}",
        count(".sst"),
        count(".blob")
    ))
}

/// That a recovered database can be used like any other: written, flushed, compacted, opened again, also after
/// another power cut.
pub fn check_usable(fs: &MemFs, db: Db, mut oracle: Oracle) -> std::result::Result<(), String> {
    let bad = |what: &'static str| move |error: esker::Error| format!("{what} after recovery: {error:?}");
    oracle.reopened();
    let names = db.column_family_names();
    for (at, name) in names.iter().enumerate() {
        let family = db.column_family(name).map_err(bad("column_family"))?;
        for number in 0..20 {
            let (key, value) = (format!("key{:04}", number * 4 + at), "after recovery ".repeat(20));
            db.put_cf(&family, key.as_bytes(), value.as_bytes())
                .map_err(bad("put"))?;
            let put = Mutation::Put(key.into_bytes(), value.into_bytes());
            oracle.commit(vec![(family.id(), put)], Durability::Buffered);
        }
    }
    check_rows(&db, &oracle)?;
    db.flush().map_err(bad("flush"))?;
    db.compact_range(None, None).map_err(bad("compact_range"))?;
    db.wait_idle().map_err(bad("wait_idle"))?;
    check_rows(&db, &oracle)?;
    check_files(fs, &db)?;
    let cut = fs.crash(CrashMode::DropUnsynced);
    db.close().map_err(bad("close"))?;
    for fs in [fs, &cut] {
        let db = open(fs).map_err(bad("open"))?;
        check_rows(&db, &oracle)?;
        check_files(fs, &db)?;
        db.close().map_err(bad("close"))?;
    }
    Ok(())
}
