//! Two-phase commit on machines that crash and fail: every name is prepared, committed or rolled back, as the history says.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use esker::{Db, Durability, ErrorKind, Mutation, Opener, Result, WriteBatch, WriteOptions};
use esker_env::Env;
use esker_env::fault::{Fault, FaultFs, Op, Rule};
use esker_env::mem::{CrashMode, MemFs};
use esker_testkit::crash::{DIR, check_files, family_options, open, options};
use esker_testkit::history::{History, crash_at_every_call};
use esker_testkit::runner::scan_all;
use esker_testkit::{number_from_env, watchdog};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
/// Puts: family, key, value.
type Puts = Vec<(u32, Vec<u8>, Vec<u8>)>;

/// What the database holds at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    rows: BTreeMap<u32, Rows>,
    prepared: BTreeMap<Vec<u8>, Puts>,
}

impl State {
    fn put(&mut self, puts: &Puts) {
        for (family, key, value) in puts {
            let rows = self.rows.entry(*family).or_default();
            rows.insert(key.clone(), value.clone());
        }
    }

    fn of(db: &Db) -> Result<Self> {
        let mut state = Self::default();
        for (family, rows) in scan_all(db)? {
            if !rows.is_empty() {
                state.rows.insert(family, rows.into_iter().collect());
            }
        }
        for prepared in db.prepared() {
            let put = |mutation: Mutation<'_>| match mutation {
                Mutation::Put { family, key, value } => (family, key.to_vec(), value.to_vec()),
                other => panic!("nobody prepared {other:?}"),
            };
            let puts = prepared.mutations().map(put).collect();
            state.prepared.insert(prepared.name().to_vec(), puts);
        }
        Ok(state)
    }

    /// For messages.
    fn told(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(|(id, rows)| (id, rows.len())).collect();
        let names: Vec<_> = self
            .prepared
            .keys()
            .map(|name| name.escape_ascii().to_string())
            .collect();
        format!("rows by family {rows:?}, prepared {names:?}")
    }
}

/// A run and all states that it went through.
struct Run {
    db: Db,
    history: History<State>,
}

impl Run {
    fn new(fs: &MemFs) -> Self {
        let db = open(fs).unwrap();
        db.create_column_family("two", family_options()).unwrap();
        Self {
            db,
            history: History::default(),
        }
    }

    fn last(&self) -> &State {
        self.history.last()
    }

    fn step(
        &mut self,
        next: State,
        durability: Durability,
        step: impl FnOnce(&Db) -> Result<()>,
    ) -> Result<()> {
        self.history.step(next, durability, || step(&self.db))
    }

    fn write(&mut self, number: u32, durability: Durability) -> Result<()> {
        let puts = puts(number, "written");
        let mut next = self.last().clone();
        next.put(&puts);
        let mut batch = batch(&self.db, &puts);
        let options = WriteOptions::durability(durability);
        self.step(next, durability, |db| db.write_with(&mut batch, &options))
    }

    fn prepare(&mut self, name: &str, number: u32, durability: Durability) -> Result<()> {
        let puts = puts(number, name);
        let mut batch = batch(&self.db, &puts);
        let mut next = self.last().clone();
        next.prepared.insert(name.into(), puts);
        let options = WriteOptions::durability(durability);
        self.step(next, durability, |db| {
            db.prepare(name.as_bytes(), &mut batch, &options)
        })
    }

    fn commit(&mut self, name: &str, durability: Durability) -> Result<()> {
        let mut next = self.last().clone();
        let more = puts(999, name);
        next.put(&self.last().prepared[name.as_bytes()]);
        next.put(&more);
        next.prepared.remove(name.as_bytes());
        let mut batch = batch(&self.db, &more);
        let options = WriteOptions::durability(durability);
        self.step(next, durability, |db| {
            db.commit_prepared_with(name.as_bytes(), &mut batch, &options)
        })
    }

    fn roll_back(&mut self, name: &str, durability: Durability) -> Result<()> {
        let mut next = self.last().clone();
        next.prepared.remove(name.as_bytes());
        let options = WriteOptions::durability(durability);
        self.step(next, durability, |db| {
            db.roll_back_prepared(name.as_bytes(), &options)
        })
    }

    /// Steps of every kind over flushes of both families together and of one alone, and more rotations than there are
    /// segments to be used again.
    fn run(&mut self) -> Result<()> {
        use Durability::{Buffered, Sync};
        self.prepare("long", 1, Sync)?;
        self.prepare("early", 2, Buffered)?;
        self.write(3, Buffered)?;
        self.commit("early", Buffered)?;
        self.prepare("kept", 4, Buffered)?;
        self.db.flush()?;
        self.write(1, Sync)?;
        for round in 0..6 {
            let name = format!("round {round}");
            self.prepare(&name, 10 + round, Buffered)?;
            for number in 0..9 {
                self.write(20 + round * 3 + number, Buffered)?;
            }
            let durability = if round % 2 == 0 { Sync } else { Buffered };
            match round % 3 {
                0 => self.commit(&name, durability)?,
                1 => self.roll_back(&name, durability)?,
                _ => {}
            }
            match round {
                1 => self.db.flush_cf(&self.db.column_family("two")?)?,
                3 => self.db.flush()?,
                _ => self.db.wait_idle()?,
            }
        }
        self.prepare("round 0", 5, Sync)?;
        self.roll_back("kept", Buffered)?;
        self.commit("long", Sync)?;
        self.write(7, Buffered)?;
        self.roll_back("round 0", Buffered)
    }

    /// What a crash left is one of the states that it may leave; and goes on from there.
    fn check(&self, fs: &MemFs, mode: CrashMode) -> std::result::Result<(), String> {
        let db = open(fs).map_err(|error| format!("it does not open: {error:?}"))?;
        let found = State::of(&db).map_err(|error| format!("it can't be read: {error:?}"))?;
        let said = |problem| format!("{problem}\nrecovery said {:?}", db.recovery_report());
        self.history.check(&found, mode, State::told).map_err(said)?;
        if mode == CrashMode::KeepAll && db.recovery_report().damages > 0 {
            return Err(format!(
                "damage where there can be none: {:?}",
                db.recovery_report()
            ));
        }
        check_files(fs, &db)?;
        go_on(fs, db, found).map_err(|error| format!("after recovery: {error:?}"))
    }
}

/// Another crash keeps what the first left; then every name is resolved, which a third crash does not undo.
fn go_on(fs: &MemFs, db: Db, mut state: State) -> Result<()> {
    let again = fs.crash(CrashMode::DropUnsynced);
    let second = open(&again)?;
    assert_eq!(State::of(&second)?, state);
    second.close()?;
    for (at, (name, puts)) in std::mem::take(&mut state.prepared).into_iter().enumerate() {
        let sync = WriteOptions::durability(Durability::Sync);
        if at % 2 == 0 {
            db.commit_prepared(&name, &sync)?;
            state.put(&puts);
        } else {
            db.roll_back_prepared(&name, &sync)?;
        }
    }
    let third = open(&fs.crash(CrashMode::DropUnsynced))?;
    assert_eq!(State::of(&third)?, state);
    third.close()?;
    db.close()
}

fn puts(number: u32, word: &str) -> Puts {
    let key = |at: u32| format!("key{:03}", (number * 7 + at) % 50).into_bytes();
    let value = format!("{word} {number}, ").repeat(40).into_bytes();
    let family = |at: u32| (number + at) % 2;
    (0..3).map(|at| (family(at), key(at), value.clone())).collect()
}

fn batch(db: &Db, puts: &Puts) -> WriteBatch {
    let families = [db.default_column_family(), db.column_family("two").unwrap()];
    let mut batch = WriteBatch::new();
    for (family, key, value) in puts {
        batch.put_cf(&families[*family as usize], key, value).unwrap();
    }
    batch
}

#[test]
fn a_crash_at_any_write_leaves_each_name_in_one_state() {
    let _alive = watchdog::watch("a_crash_at_any_write_leaves_each_name", Duration::from_secs(280));
    crash_at_every_call(
        number_from_env("ESKER_CRASH_STRIDE", 3),
        Run::new,
        Run::run,
        |run| drop(run.db.close()),
        Run::check,
    );
}

/// A machine that fails on demand, with two families.
fn failing() -> (MemFs, FaultFs, Db) {
    let fs = MemFs::new();
    let faults = FaultFs::new(Arc::new(fs.clone()));
    let env = Env {
        fs: Arc::new(faults.clone()),
        ..Env::simulated_on(fs.clone(), 1)
    };
    let db = Opener::new(options()).env(env).open(Path::new(DIR)).unwrap();
    db.create_column_family("two", family_options()).unwrap();
    (fs, faults, db)
}

fn named(db: &Db) -> Vec<Vec<u8>> {
    db.prepared()
        .iter()
        .map(|prepared| prepared.name().to_vec())
        .collect()
}

#[test]
fn a_failed_sync_of_a_step_is_final_and_nothing_is_said_to_have_happened() {
    let sync = WriteOptions::durability(Durability::Sync);
    // Of the first, nothing that was to be synced arrives.
    let faults_and_steps = [Fault::FailedSync, Fault::Eio]
        .into_iter()
        .flat_map(|fault| ["prepare", "commit", "roll back"].map(|step| (fault, step)));
    for (fault, step) in faults_and_steps {
        let (fs, faults, db) = failing();
        db.prepare(b"before", &mut batch(&db, &puts(1, "before")), &sync)
            .unwrap();
        faults.add(Rule::new(Op::Sync, fault).on_path(".wal"));
        let mut new = batch(&db, &puts(2, "new"));
        let error = match step {
            "prepare" => db.prepare(b"new", &mut new, &sync),
            "commit" => db.commit_prepared_with(b"before", &mut new, &sync),
            _ => db.roll_back_prepared(b"before", &sync),
        };
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ReadOnly, "{step}");
        assert_eq!(new.len(), 3, "as it was");
        assert_eq!(named(&db), [b"before"]);
        assert!(scan_all(&db).unwrap().values().all(Vec::is_empty));
        faults.clear();
        let error = db.commit_prepared(b"before", &sync).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{step}");
        // What was synced before is there, and the step as a whole or not at all.
        let db = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
        assert_eq!(named(&db), [b"before"], "{step}");
        let db = open(&fs.crash(CrashMode::KeepAll)).unwrap();
        let arrived = fault == Fault::Eio;
        let wanted: &[&[u8]] = match step {
            "prepare" if arrived => &[b"before", b"new"],
            _ if arrived => &[],
            _ => &[b"before"],
        };
        assert_eq!(named(&db), wanted, "{step}");
        let committed = scan_all(&db).unwrap().values().any(|rows| !rows.is_empty());
        assert_eq!(committed, arrived && step == "commit");
    }
}

#[test]
fn a_step_that_a_full_device_refuses_did_not_happen_and_can_be_repeated() {
    let buffered = WriteOptions::durability(Durability::Buffered);
    for fault in [Fault::Enospc, Fault::ShortWrite] {
        let (fs, faults, db) = failing();
        let _alive = watchdog::watch("a_step_that_a_full_device_refuses", Duration::from_secs(60));
        db.prepare(b"a", &mut batch(&db, &puts(1, "a")), &buffered)
            .unwrap();
        db.prepare(b"b", &mut batch(&db, &puts(2, "b")), &buffered)
            .unwrap();
        let steps: [&dyn Fn() -> Result<()>; 3] = [
            &|| db.prepare(b"new", &mut batch(&db, &puts(3, "new")), &buffered),
            &|| db.commit_prepared(b"a", &buffered),
            &|| db.roll_back_prepared(b"b", &buffered),
        ];
        for step in steps {
            let before = State::of(&db).unwrap();
            faults.add(Rule::new(Op::Append, fault).on_path(".wal"));
            assert_eq!(step().unwrap_err().kind(), ErrorKind::NoSpace);
            assert_eq!(State::of(&db).unwrap(), before);
            // The segment that failed, and that by which the log would go on, too.
            faults.add(Rule::new(Op::Append, fault).on_path(".wal"));
            assert!(step().is_err());
            faults.clear();
            for mode in [CrashMode::KeepAll, CrashMode::Torn { seed: 7 }] {
                let left = open(&fs.crash(mode)).unwrap();
                let found = State::of(&left).unwrap();
                if mode == CrashMode::KeepAll {
                    assert_eq!(found, before);
                    assert_eq!(left.recovery_report().damages, 0);
                }
            }
            step().unwrap();
        }
        let wanted = State::of(&db).unwrap();
        assert_eq!(named(&db), [b"new"]);
        db.sync_wal().unwrap();
        let db = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
        assert_eq!(State::of(&db).unwrap(), wanted);
    }
}

/// The copy at the front of the next segment is what fails.
#[test]
fn a_segment_that_can_not_take_what_is_prepared_does_not_begin() {
    let sync = WriteOptions::durability(Durability::Sync);
    for (op, fault) in [(Op::Append, Fault::Enospc), (Op::Sync, Fault::FailedSync)] {
        let (fs, faults, db) = failing();
        db.prepare(b"a", &mut batch(&db, &puts(1, "a")), &sync).unwrap();
        db.write_with(&mut batch(&db, &puts(2, "written")), &sync)
            .unwrap();
        let wanted = State::of(&db).unwrap();
        // Only the leader's flush by hand writes to the log here: header and copy are appended, the copy is synced.
        faults.add(Rule::new(op, fault).on_path(".wal"));
        assert!(db.flush().is_err());
        faults.clear();
        for mode in [CrashMode::KeepAll, CrashMode::DropUnsynced] {
            let left = open(&fs.crash(mode)).unwrap();
            assert_eq!(State::of(&left).unwrap(), wanted);
            assert_eq!(left.recovery_report().damages, 0);
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let left = open(&fs.crash(CrashMode::DropUnsynced)).unwrap();
        assert_eq!(State::of(&left).unwrap(), wanted);
        db.commit_prepared(b"a", &sync).unwrap();
        assert!(db.prepared().is_empty());
    }
}
