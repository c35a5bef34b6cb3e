//! Carries operations out on the engine and on the model, and compares what both say.

mod changes;
mod checkpoint;
mod compare;
mod drop_range;
mod follow;
mod ingest;
mod iterators;
mod reimport;
mod two_phase;

use std::collections::BTreeMap;
use std::path::Path;

use esker::{
    ColumnFamily, Db, Durability, Iter, Opener, ReadOptions, Result, Snapshot, WriteBatch, WriteOptions,
};
use esker_env::Env;
use esker_env::mem::{CrashMode, MemFs};

use self::follow::Following;
use crate::operation::{Change, ChangeKind, KEYS, Move, Operation, Scope, is_single, key};
use crate::oracle::{Changes, Merge, Mutation, Oracle, Rows, State, difference, show};
use crate::random::Rng;
use crate::scan::{Limits, Scan};
use crate::settings::{FamilySettings, database};

const DIR: &str = "/db";
/// Families that a run has at most.
const FAMILIES_MAX: usize = 4;
/// What may be written while background work is paused: less than the memtables take without a flush.
const PAUSED_BYTES_MAX: usize = 6 << 10;

/// Every row of a family, forward.
pub fn scan(db: &Db, family: &ColumnFamily, options: ReadOptions) -> Result<Rows> {
    let mut iter = db.iter_cf(family, options)?;
    let mut rows = Rows::new();
    iter.seek_to_first()?;
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.next()?;
    }
    Ok(rows)
}

/// Every row of a family, backward.
pub fn scan_back(db: &Db, family: &ColumnFamily, options: ReadOptions) -> Result<Rows> {
    let mut iter = db.iter_cf(family, options)?;
    let mut rows = Rows::new();
    iter.seek_to_last()?;
    while iter.valid() {
        rows.push((iter.key().to_vec(), iter.value().to_vec()));
        iter.prev()?;
    }
    Ok(rows)
}

/// Every row of every family of `db`, by id.
pub fn scan_all(db: &Db) -> Result<BTreeMap<u32, Rows>> {
    let mut all = BTreeMap::new();
    for name in db.column_family_names() {
        let family = db.column_family(&name)?;
        all.insert(family.id(), scan(db, &family, ReadOptions::default())?);
    }
    Ok(all)
}

struct OpenFamily {
    handle: ColumnFamily,
    settings: FamilySettings,
}

struct OpenIter {
    iter: Iter,
    scan: Scan,
    family: u32,
    limits: Limits,
    /// What it sees for ever; `None`: it moves on with each refresh.
    pinned: Option<State>,
}

/// A database beside its model.
pub struct Runner {
    seed: u64,
    scope: Scope,
    opened: u64,
    fs: MemFs,
    db: Db,
    oracle: Oracle,
    /// The settings of every family by name.
    settings: BTreeMap<String, FamilySettings>,
    families: Vec<OpenFamily>,
    snapshots: Vec<(Snapshot, State)>,
    iterators: Vec<OpenIter>,
    created: usize,
    ingested: usize,
    checkpoints: usize,
    /// Who reads along.
    following: Option<Following>,
    /// What is prepared, by name.
    prepared: BTreeMap<Vec<u8>, Changes>,
    named: usize,
    paused: bool,
    paused_bytes: usize,
}

/// What went wrong.
pub type Failure = String;

fn failed(what: &str) -> impl FnOnce(esker::Error) -> Failure {
    let what = what.to_owned();
    move |error| format!("{what}: {error:?}")
}

impl Runner {
    /// A new database on a new simulated machine.
    pub fn new(seed: u64, scope: Scope) -> std::result::Result<Self, Failure> {
        let settings = BTreeMap::from([("default".to_owned(), FamilySettings::random(seed))]);
        let fs = MemFs::new();
        let db = open(&fs, seed, 0, &settings).map_err(failed("create"))?;
        let mut runner = Self {
            seed,
            scope,
            opened: 0,
            fs,
            db,
            oracle: Oracle::default(),
            settings,
            families: Vec::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            created: 0,
            ingested: 0,
            checkpoints: 0,
            following: None,
            prepared: BTreeMap::new(),
            named: 0,
            paused: false,
            paused_bytes: 0,
        };
        runner.oracle.create(0, runner.settings["default"].model());
        runner.load_families()?;
        Ok(runner)
    }

    fn load_families(&mut self) -> std::result::Result<(), Failure> {
        self.families.clear();
        for name in self.db.column_family_names() {
            self.families.push(OpenFamily {
                handle: self.db.column_family(&name).map_err(failed("column_family"))?,
                settings: self.settings[&name].clone(),
            });
        }
        Ok(())
    }

    /// Carries out one operation.
    pub fn step(&mut self, operation: &Operation) -> std::result::Result<(), Failure> {
        match operation {
            Operation::Write { changes, durability } => self.write(changes, *durability),
            Operation::Prepare { changes, durability } => self.prepare(changes, *durability),
            Operation::Resolve {
                prepared,
                commit,
                durability,
            } => self.resolve(*prepared, *commit, *durability),
            Operation::Ingest {
                family,
                changes,
                behind,
            } => self.ingest(*family, changes, *behind),
            Operation::Reimport(at) => self.reimport(*at),
            Operation::DropRange(change) => self.drop_range(change),
            Operation::SyncWal => {
                self.db.sync_wal().map_err(failed("sync_wal"))?;
                self.oracle.synced();
                Ok(())
            }
            Operation::Flush => {
                self.resume();
                self.db.flush().map_err(failed("flush"))?;
                for family in &self.families {
                    self.oracle.flushed(family.handle.id());
                }
                Ok(())
            }
            Operation::FlushFamily(at) => {
                self.resume();
                let family = self.family(*at);
                self.db.flush_cf(&family.handle).map_err(failed("flush_cf"))?;
                let id = family.handle.id();
                self.oracle.flushed(id);
                Ok(())
            }
            Operation::Compact { family, start, end } => {
                self.resume();
                let family = self.family(*family);
                let ends = [start.map(key), end.map(key)];
                let [start, end] = &ends;
                self.db
                    .compact_range_cf(&family.handle, start.as_deref(), end.as_deref())
                    .map_err(failed("compact_range"))?;
                let id = family.handle.id();
                self.oracle.flushed(id);
                Ok(())
            }
            Operation::WaitIdle => self.db.wait_idle().map_err(failed("wait_idle")),
            Operation::Pause => {
                if !self.paused {
                    self.db.wait_idle().map_err(failed("wait_idle"))?;
                    self.db.pause_background_work();
                    (self.paused, self.paused_bytes) = (true, 0);
                }
                Ok(())
            }
            Operation::Resume => {
                self.resume();
                Ok(())
            }
            Operation::Reopen => self.reopen(),
            Operation::Crash(mode) => self.crash(*mode),
            Operation::CreateFamily(number) => self.create_family(*number),
            Operation::DropFamily(at) => self.drop_family(*at),
            Operation::SetOption { family, number } => {
                let at = family % self.families.len();
                let (name, value) = self.families[at].settings.change(*number);
                let family = &self.families[at];
                self.settings
                    .insert(family.handle.name().to_owned(), family.settings.clone());
                self.db
                    .set_family_options(&family.handle, &[(name, &value)])
                    .map_err(failed("set_family_options"))
            }
            Operation::Snapshot => {
                if self.snapshots.len() < 6 {
                    self.snapshots
                        .push((self.db.snapshot(), self.oracle.state().clone()));
                }
                Ok(())
            }
            Operation::DropSnapshot(at) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.remove(at % self.snapshots.len());
                }
                Ok(())
            }
            Operation::OpenIterator {
                family,
                snapshot,
                lower,
                upper,
                prefix_same,
            } => self.open_iterator(*family, *snapshot, [*lower, *upper], *prefix_same),
            Operation::MoveIterator { iterator, to } => self.move_iterator(*iterator, *to),
            Operation::DropIterator(at) => {
                if !self.iterators.is_empty() {
                    self.iterators.remove(at % self.iterators.len());
                }
                Ok(())
            }
            Operation::Get {
                family,
                key,
                snapshot,
            } => self.get_some(*family, &[*key], *snapshot, false),
            Operation::MultiGet {
                family,
                keys,
                snapshot,
            } => self.get_some(*family, keys, *snapshot, true),
            Operation::Checkpoint { wal_bytes_max } => self.checkpoint(*wal_bytes_max),
            Operation::CatchUp { snapshot } => self.catch_up(*snapshot),
            Operation::CheckAll => self.check_all(),
        }
    }

    /// Ends a run: everything is compared, also after opening once more.
    pub fn finish(mut self) -> std::result::Result<(), Failure> {
        self.check_all()?;
        self.resume();
        self.db.wait_idle().map_err(failed("wait_idle"))?;
        self.check_all()?;
        self.catch_up(true)?;
        self.reopen()?;
        self.check_all()?;
        self.catch_up(true)?;
        let handle = self.db.default_column_family();
        for name in esker::PROPERTIES {
            self.db.property(&handle, name).map_err(failed(name))?;
        }
        self.db.close().map_err(failed("close"))
    }

    fn family(&self, at: usize) -> &OpenFamily {
        &self.families[at % self.families.len()]
    }

    fn resume(&mut self) {
        if std::mem::take(&mut self.paused) {
            self.db.resume_background_work();
            self.db.start_background_work();
        }
    }

    fn write(&mut self, changes: &[Change], durability: Durability) -> std::result::Result<(), Failure> {
        let mut batch = WriteBatch::new();
        let mut applied = Changes::new();
        let singles = !self.scope.unlogged;
        for change in changes {
            let family = self.family(change.family);
            let (id, handle) = (family.handle.id(), &family.handle);
            let mut mutation = changes::mutation(change, &family.settings, self.scope.large);
            if singles
                && is_single(change.key)
                && let Mutation::Put(key, _) | Mutation::Delete(key) | Mutation::Merge(key, _) = &mutation
            {
                // What the batch did to it before would have to be known, too.
                let before = |(other, mutation): &(u32, Mutation)| {
                    *other == id
                        && match mutation {
                            Mutation::Put(other, _) | Mutation::SingleDelete(other) => other == key,
                            Mutation::DeleteRange(..) => true,
                            _ => false,
                        }
                };
                if applied.iter().any(before) {
                    continue;
                }
                let key = key.clone();
                if self.oracle.family(id).may_single_delete(&key) {
                    mutation = Mutation::SingleDelete(key);
                } else if !matches!(mutation, Mutation::Put(..)) {
                    let value = 8_u64.to_le_bytes();
                    mutation = Mutation::Put(key, value.to_vec());
                }
            }
            changes::add(&mut batch, handle, &mutation).map_err(failed("batch"))?;
            applied.push((id, mutation));
        }
        self.make_room(batch.size_bytes() + 100 * batch.len());
        self.db
            .write_with(&mut batch, &WriteOptions::durability(durability))
            .map_err(failed("write"))?;
        self.oracle.commit(applied, durability);
        Ok(())
    }

    /// Ends a pause in which memtables would become too large.
    fn make_room(&mut self, bytes: usize) {
        self.paused_bytes += bytes;
        if self.paused && self.paused_bytes > PAUSED_BYTES_MAX {
            self.resume();
        }
    }

    fn create_family(&mut self, number: u64) -> std::result::Result<(), Failure> {
        if self.families.len() >= FAMILIES_MAX {
            return Ok(());
        }
        let settings = FamilySettings::random(number);
        let name = format!("family{}", self.created);
        self.created += 1;
        let handle = self
            .db
            .create_column_family(&name, settings.options.clone())
            .map_err(failed("create_column_family"))?;
        self.oracle.create(handle.id(), settings.model());
        self.settings.insert(name, settings.clone());
        self.families.push(OpenFamily { handle, settings });
        Ok(())
    }

    fn drop_family(&mut self, at: usize) -> std::result::Result<(), Failure> {
        let at = at % self.families.len();
        if self.families[at].handle.name() == "default" {
            return Ok(());
        }
        let family = self.families.remove(at);
        self.db
            .drop_column_family(&family.handle)
            .map_err(failed("drop_column_family"))?;
        self.oracle.drop_family(family.handle.id());
        self.settings.remove(family.handle.name());
        for (_, state) in &mut self.snapshots {
            state.remove(&family.handle.id());
        }
        Ok(())
    }

    fn forget_handles(&mut self) {
        self.iterators.clear();
        self.snapshots.clear();
        self.families.clear();
    }

    fn open_again(&mut self) -> std::result::Result<(), Failure> {
        self.opened += 1;
        self.db = open(&self.fs, self.seed, self.opened, &self.settings).map_err(failed("open"))?;
        // Some runs begin with the background work off.
        (self.paused, self.paused_bytes) = (starts_off(self.seed, self.opened), 0);
        self.load_families()
    }

    fn reopen(&mut self) -> std::result::Result<(), Failure> {
        self.forget_handles();
        self.db.close().map_err(failed("close"))?;
        self.open_again()?;
        self.check_report()?;
        self.check_prepared(&self.db)?;
        self.oracle.reopened();
        self.check_all()
    }

    fn crash(&mut self, mode: CrashMode) -> std::result::Result<(), Failure> {
        let after = self.fs.crash(mode);
        self.following = None;
        self.forget_handles();
        // The old machine goes on for a moment; nobody sees what it does.
        self.resume();
        let _ = self.db.close();
        self.fs = after;
        self.open_again()?;
        if mode == CrashMode::KeepAll {
            self.check_report()?;
            self.check_prepared(&self.db)?;
        }
        let found = scan_all(&self.db).map_err(failed("scan after a crash"))?;
        let report = self.db.recovery_report();
        self.oracle
            .crashed(&found, mode != CrashMode::KeepAll)
            .map_err(|problem| format!("after {mode:?}: {problem}\nrecovery said: {report:?}"))?;
        self.recover_prepared()?;
        self.check_all()
    }

    /// Without a power cut nothing can be damaged.
    fn check_report(&self) -> std::result::Result<(), Failure> {
        let report = self.db.recovery_report();
        if report.damages == 0 && report.kept_aside.is_empty() {
            Ok(())
        } else {
            Err(format!("recovery found damage where there was none: {report:?}"))
        }
    }
}

fn open(fs: &MemFs, seed: u64, opened: u64, settings: &BTreeMap<String, FamilySettings>) -> Result<Db> {
    let opener = opener(fs, seed, opened, settings);
    match starts_off(seed, opened) {
        true => opener.background_work_off().open(DIR),
        false => opener.open(DIR),
    }
}

/// Whether a database that is opened again does nothing in the background at first.
fn starts_off(seed: u64, opened: u64) -> bool {
    opened > 0 && Rng::new(seed.rotate_left(32) ^ opened).one_in(4)
}

fn open_in(
    dir: &str,
    fs: &MemFs,
    seed: u64,
    opened: u64,
    settings: &BTreeMap<String, FamilySettings>,
) -> Result<Db> {
    opener(fs, seed, opened, settings).open(Path::new(dir))
}

fn opener(fs: &MemFs, seed: u64, opened: u64, settings: &BTreeMap<String, FamilySettings>) -> Opener {
    // Other database settings each time: nothing that is stored may depend on them.
    let number = Rng::new(seed ^ opened).bits();
    let mut opener =
        Opener::new(database(number, &settings["default"])).env(Env::simulated_on(fs.clone(), number));
    for (name, settings) in settings {
        opener = opener.column_family(name, settings.options.clone());
    }
    opener
}
