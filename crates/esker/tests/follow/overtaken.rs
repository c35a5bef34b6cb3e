//! Whatever the writer does between any two calls that a catch-up makes of the file system, what it shows then is what the
//! writer's own readers saw at some moment of the call.

use std::sync::Mutex;

use esker::{WriteBatch, WriteOptions};
use esker_env::fault::{Fault, FaultFs, Op, Rule};

use super::between::{Between, Hook};
use super::shows::ingest;
use super::*;

/// The writer's side.
struct Writer {
    mem: MemFs,
    fs: Arc<dyn Fs>,
    faults: FaultFs,
    db: Option<Db>,
    /// What its readers saw, after each step.
    seen: Vec<BTreeMap<String, Rows>>,
}

impl Writer {
    fn new() -> Self {
        let mem = MemFs::new();
        let faults = FaultFs::new(Arc::new(mem.clone()));
        let fs: Arc<dyn Fs> = Arc::new(faults.clone());
        let mut writer = Self {
            mem,
            fs,
            faults,
            db: None,
            seen: Vec::new(),
        };
        writer.open();
        let second = writer
            .db()
            .create_column_family("second", family_options())
            .unwrap();
        for key in 0..30_u8 {
            writer.db().put(&[key], &[key; 450]).unwrap();
            writer.db().put_cf(&second, &[key], &[key; 50]).unwrap();
        }
        writer.db().flush().unwrap();
        writer.both(b"start");
        writer
    }

    fn open(&mut self) {
        self.db = Some(opener(&self.fs, options()).open(DIR).unwrap());
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// One batch over both families.
    fn both(&mut self, value: &[u8]) {
        let db = self.db();
        let mut batch = WriteBatch::new();
        batch.put(b"both", value).unwrap();
        if let Ok(second) = db.column_family("second") {
            batch.put_cf(&second, b"both", value).unwrap();
        }
        db.write(&mut batch).unwrap();
        self.note();
    }

    fn note(&mut self) {
        let now = all(self.db()).unwrap();
        self.seen.push(now);
    }
}

/// Runs `steps` in front of each call of a catch-up in turn.
fn everywhere(prepare: impl Fn(&mut Writer), steps: fn(&mut Writer)) {
    let mut call = 0;
    loop {
        let writer = Arc::new(Mutex::new(Writer::new()));
        let hook = Arc::new(Hook::default());
        let fs: Arc<dyn Fs> = Arc::new(Between {
            inner: Arc::clone(&writer.lock().unwrap().fs),
            hook: Arc::clone(&hook),
        });
        let follower = opener(&fs, options())
            .column_family("second", family_options())
            .column_family("third", family_options())
            .follow(DIR)
            .unwrap();
        {
            let mut writer = writer.lock().unwrap();
            prepare(&mut writer);
            writer.seen.clear();
            writer.note();
        }
        let acting = Arc::clone(&writer);
        hook.arm(call, move || steps(&mut acting.lock().unwrap()));
        let caught = follower.catch_up();
        let is_over = hook.disarm();
        caught.unwrap_or_else(|error| panic!("call {call}: {error}"));
        let found = all(follower.db()).unwrap();
        let mut writer = writer.lock().unwrap();
        assert!(
            writer.seen.contains(&found),
            "call {call}: what is shown is no moment of the writer: {:?}",
            found
                .iter()
                .map(|(name, rows)| (name, rows.get(&b"both"[..])))
                .collect::<Vec<_>>()
        );
        if is_over {
            // It came to its end without.
            steps(&mut writer);
        }
        follower.catch_up().unwrap();
        assert!(
            all(follower.db()).unwrap() == all(writer.db()).unwrap(),
            "call {call}"
        );
        assert_eq!(follower.db().last_sequence(), writer.db().last_sequence());
        if is_over {
            assert!(call > 5, "a catch-up makes more calls");
            return;
        }
        call += 1;
    }
}

/// The same for an opening that is read-only.
fn everywhere_in_an_opening(steps: fn(&mut Writer)) {
    let mut call = 0;
    loop {
        let writer = Arc::new(Mutex::new(Writer::new()));
        let hook = Arc::new(Hook::default());
        let fs: Arc<dyn Fs> = Arc::new(Between {
            inner: Arc::clone(&writer.lock().unwrap().fs),
            hook: Arc::clone(&hook),
        });
        let acting = Arc::clone(&writer);
        hook.arm(call, move || steps(&mut acting.lock().unwrap()));
        let looking = Options {
            read_only: true,
            ..options()
        };
        let db = opener(&fs, looking).open(DIR);
        let is_over = hook.disarm();
        let db = db.unwrap_or_else(|error| panic!("call {call}: {error}"));
        let found = all(&db).unwrap();
        let writer = writer.lock().unwrap();
        assert!(
            writer.seen.contains(&found),
            "call {call}: what is shown is no moment of the writer"
        );
        if is_over {
            assert!(call > 5, "an opening makes more calls");
            return;
        }
        call += 1;
    }
}

fn some_in_the_log(writer: &mut Writer) {
    writer.both(b"logged");
}

fn tables_and_log(writer: &mut Writer) {
    writer.both(b"flushed");
    writer.db().flush().unwrap();
    writer.both(b"logged");
}

#[test]
fn by_flushes_and_compactions() {
    for prepare in [some_in_the_log, tables_and_log] {
        everywhere(prepare, |writer| {
            writer.both(b"one");
            writer.db().flush().unwrap();
            writer.both(b"two");
            writer.db().compact_range(None, None).unwrap();
            writer.both(b"three");
        });
    }
}

/// What was logged before the call is in segments that are used again, and the newest one says nothing of it.
#[test]
fn by_flushes_that_leave_nothing_in_the_log() {
    let prepare = |writer: &mut Writer| {
        // No table goes, which would tell, too.
        for name in ["default", "second"] {
            let family = writer.db().column_family(name).unwrap();
            let manual = [("compaction_style", "manual")];
            writer.db().set_family_options(&family, &manual).unwrap();
        }
        tables_and_log(writer);
    };
    everywhere(prepare, |writer| {
        for round in 0..8_u8 {
            writer.both(&[round]);
            writer.db().flush().unwrap();
        }
    });
}

/// Segments are used again, several times over.
#[test]
fn by_a_log_that_goes_round() {
    everywhere(tables_and_log, |writer| {
        for round in 0..30_u8 {
            let mut batch = WriteBatch::new();
            for key in 0..10 {
                batch.put(&[key], &[round; 300]).unwrap();
            }
            writer.db().write(&mut batch).unwrap();
            writer.note();
            writer.both(&[round]);
            if round % 5 == 0 {
                writer.db().flush().unwrap();
            }
        }
        writer.db().wait_idle().unwrap();
    });
}

#[test]
fn by_an_ingestion() {
    fn steps(writer: &mut Writer) {
        writer.both(b"before");
        ingest(&writer.fs, writer.db(), 1);
        writer.note();
        writer.both(b"after");
    }
    everywhere(some_in_the_log, steps);
    everywhere_in_an_opening(steps);
}

/// A batch over an old family and a new one shows whole. So it was not where a database was opened read-only meanwhile.
#[test]
fn by_families_that_come_and_go() {
    fn steps(writer: &mut Writer) {
        let third = writer
            .db()
            .create_column_family("third", family_options())
            .unwrap();
        writer.note();
        let mut batch = WriteBatch::new();
        batch.put(b"both", b"with the third").unwrap();
        batch.put_cf(&third, b"both", b"with the third").unwrap();
        writer.db().write(&mut batch).unwrap();
        writer.note();
        writer.both(b"more");
        let second = writer.db().column_family("second").unwrap();
        writer.db().drop_column_family(&second).unwrap();
        writer.note();
        writer.both(b"without the second");
    }
    everywhere(some_in_the_log, steps);
    everywhere_in_an_opening(steps);
}

#[test]
fn by_a_two_phase_commit() {
    let prepare = |writer: &mut Writer| {
        let second = writer.db().column_family("second").unwrap();
        let mut batch = WriteBatch::new();
        batch.put(b"both", b"prepared").unwrap();
        batch.put_cf(&second, b"both", b"prepared").unwrap();
        writer
            .db()
            .prepare(b"name", &mut batch, &WriteOptions::default())
            .unwrap();
    };
    everywhere(prepare, |writer| {
        writer.both(b"one");
        writer.db().flush().unwrap();
        writer
            .db()
            .commit_prepared(b"name", &WriteOptions::default())
            .unwrap();
        writer.note();
        writer.db().flush().unwrap();
        writer.both(b"two");
    });
}

#[test]
fn by_tables_that_are_dropped() {
    everywhere(some_in_the_log, |writer| {
        writer.both(b"before");
        let family = writer.db().default_column_family();
        writer.db().flush().unwrap();
        let ranges: [(&[u8], &[u8]); 1] = [(b"", &[200])];
        writer.db().delete_files_in_ranges(&family, &ranges).unwrap();
        writer.note();
        writer.both(b"after");
    });
}

/// The writer's process ends and another one opens the database: another manifest, another log.
#[test]
fn by_another_writer() {
    everywhere(tables_and_log, |writer| {
        writer.both(b"one");
        writer.mem.stop_after(Some(0));
        writer.db = None;
        writer.mem.stop_after(None);
        writer.open();
        writer.both(b"two");
        writer.db().flush().unwrap();
        writer.both(b"three");
    });
}

/// A group that the writer could not store for certain, and disowned.
#[test]
fn by_a_manifest_that_fails() {
    everywhere(some_in_the_log, |writer| {
        writer.both(b"one");
        writer
            .faults
            .add(Rule::new(Op::Sync, Fault::Eio).on_path("MANIFEST"));
        // It is tried again, on another manifest.
        while writer.db().flush().is_err() {}
        assert_eq!(writer.faults.injected(), 1);
        writer.note();
        writer.both(b"two");
        writer.db().compact_range(None, None).unwrap();
        writer.both(b"three");
    });
}
