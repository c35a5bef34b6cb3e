//! Golden scenarios: transactions step by step, and what came of it under each kind and isolation.
//!
//! A file of `scenarios/` holds scenarios between lines of `---`:
//! ```text
//! # what it shows
//! put x 0                  a write without a transaction
//! A get x                  a step of the transaction A, which begins with its first step
//! == locks, read committed what came of it, under this kind and isolation
//! put x 0: ok
//! A get x: 0
//! ```
//! Every transaction has a thread of its own. A step that waits shows for whom; when a later step lets it go on, its outcome
//! stands behind that one, with `then`. Keys are words; `-` as the end of a range is no end. `leave` drops the object of a
//! transaction, and `take` makes one of what is prepared; `prepared` shows in brackets what nobody has.
//!
//! With `ESKER_BLESS` set, the files are rewritten to what comes out; read the difference before it is committed.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use esker::{Error, ErrorKind, ReadOptions, Result, WriteBatch};
use esker_env::Env;

use super::{Database, open, patient};
use crate::lock::TransactionId;
use crate::{Isolation, Iter, LockMode, SnapshotTime, Transaction, TransactionOptions};

/// Who makes writes without a transaction.
const NOBODY: &str = "";

struct Outcome {
    session: String,
    id: Option<TransactionId>,
    text: String,
}

struct Runner<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    database: Database,
    env: Env,
    isolation: Isolation,
    sessions: BTreeMap<String, Sender<String>>,
    ids: BTreeMap<TransactionId, String>,
    /// Steps that have no outcome yet.
    pending: BTreeMap<String, String>,
    outcomes: (Sender<Outcome>, Receiver<Outcome>),
    text: String,
}

impl<'scope> Runner<'scope, '_> {
    fn step(&mut self, line: &str) {
        if let Some(seconds) = line.strip_prefix("time ") {
            let seconds = seconds.parse().expect("seconds");
            self.env.clock.sleep(Duration::from_secs(seconds));
            if let Database::Locks(db) = &self.database {
                db.notice_time();
            }
            self.text += &format!("{line}\n");
            self.settle(NOBODY, true);
            return;
        }
        let (session, rest) = match line.split_once(' ') {
            Some((first, rest)) if first.chars().all(|next| next.is_ascii_uppercase()) => (first, rest),
            _ => (NOBODY, line),
        };
        let waits = self.pending.insert(session.to_owned(), line.to_owned());
        assert!(waits.is_none(), "{line}: {session} waits");
        self.session(session).send(rest.to_owned()).expect("a session");
        self.settle(session, false);
    }

    fn session(&mut self, name: &str) -> &Sender<String> {
        let (scope, database, isolation) = (self.scope, &self.database, self.isolation);
        let outcomes = &self.outcomes.0;
        self.sessions.entry(name.to_owned()).or_insert_with(|| {
            let (steps, received) = channel::<String>();
            let (name, database, outcomes) = (name.to_owned(), database.clone(), outcomes.clone());
            scope.spawn(move || {
                let mut session = Session {
                    database,
                    isolation,
                    transaction: None,
                };
                for step in received {
                    let begun = name != NOBODY && session.begin(&step);
                    let id = session.transaction.as_ref().map(Transaction::id);
                    if begun {
                        // Before anything waits.
                        let (session, text) = (name.clone(), String::new());
                        outcomes.send(Outcome { session, id, text }).expect("the runner");
                    }
                    let text = session.run(&step).unwrap_or_else(|error| word(&error));
                    let session = name.clone();
                    outcomes.send(Outcome { session, id, text }).expect("the runner");
                }
            });
            steps
        })
    }

    /// Waits until every step has an outcome or waits, and writes down what there is.
    fn settle(&mut self, first: &str, is_time: bool) {
        let mut done: BTreeMap<String, String> = BTreeMap::new();
        let waiting = loop {
            while let Ok(outcome) = self.outcomes.1.try_recv() {
                if let Some(id) = outcome.id {
                    self.ids.insert(id, outcome.session.clone());
                }
                if !outcome.text.is_empty() {
                    done.insert(outcome.session, outcome.text);
                }
            }
            let open = self.pending.len() - done.len();
            let waiting = self.database.waiting();
            // Until its thread has looked at the time, a request whose time is over is in the queue.
            let is_over = |since: Duration| self.env.clock.now() > since + Duration::from_secs(3600);
            let looks = is_time && waiting.iter().any(|waiting| is_over(waiting.since));
            // Who is in nobody's way but has not come for its lock yet.
            let comes = waiting.iter().any(|waiting| waiting.waits_for.is_empty());
            if waiting.len() == open && !looks && !comes {
                break waiting;
            }
            std::thread::yield_now();
        };
        if !is_time {
            let line = self.pending.get(first).expect("the step").clone();
            match done.remove(first) {
                Some(text) => {
                    self.pending.remove(first);
                    self.text += &format!("{line}: {text}\n");
                }
                None => {
                    let own = waiting.iter().rev().find(|waiting| {
                        self.ids.get(&waiting.transaction).map_or(NOBODY, String::as_str) == first
                    });
                    let name = |id: &TransactionId| {
                        let name = self.ids.get(id).map_or("", String::as_str);
                        if name == NOBODY { "a write" } else { name }
                    };
                    let names: Vec<&str> = own.expect("it waits").waits_for.iter().map(name).collect();
                    self.text += &format!("{line}: waits for {}\n", names.join(", "));
                }
            }
        }
        for (session, text) in done {
            let line = self.pending.remove(&session).expect("a step that waited");
            self.text += &format!("  then {line}: {text}\n");
        }
    }
}

struct Session {
    database: Database,
    isolation: Isolation,
    transaction: Option<Transaction>,
}

impl Session {
    /// Begins with the first step, and with the first behind an end. Whether it did.
    fn begin(&mut self, step: &str) -> bool {
        let is_open = |own: &Transaction| own.is_active() || own.is_prepared();
        if self.transaction.as_ref().is_some_and(is_open) || step.starts_with("take ") {
            return false;
        }
        let mut options = TransactionOptions::isolation(self.isolation);
        if step.starts_with("begin") {
            options.snapshot = SnapshotTime::Begin;
            options.deadlock_detection = !step.contains("patient");
        }
        match &mut self.transaction {
            Some(transaction) => transaction.restart(&options),
            None => self.transaction = Some(self.database.begin(&options)),
        }
        true
    }

    fn run(&mut self, step: &str) -> Result<String> {
        let family = self.database.family();
        let words: Vec<&str> = step.split(' ').collect();
        let at = |i: usize| {
            words
                .get(i)
                .unwrap_or_else(|| panic!("{step}: too short"))
                .as_bytes()
        };
        let end = || (words[2] != "-").then(|| at(2));
        let ok = |()| "ok".to_owned();
        if words[0] == "prepared" {
            return Ok(prepared(&self.database));
        }
        if let ("take", Database::Locks(db)) = (words[0], &self.database) {
            return db.prepared_transaction(at(1)).map(|taken| {
                self.transaction = Some(taken);
                ok(())
            });
        }
        let Some(transaction) = &mut self.transaction else {
            let mut batch = WriteBatch::new();
            match words[0] {
                "put" => return self.database.put(at(1), at(2)).map(ok),
                "get" => return self.database.db().get(at(1)).map(|value| shown(value.as_deref())),
                "delete" => batch.delete(at(1))?,
                "delete_range" => batch.delete_range(at(1), at(2))?,
                "merge" => batch.merge(at(1), at(2))?,
                _ => panic!("no step {step}"),
            }
            return self.database.write(&mut batch).map(ok);
        };
        let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
        match words[0] {
            "begin" => Ok(ok(())),
            "get" => transaction
                .get(&family, at(1))
                .map(|value| shown(value.as_deref())),
            "get_shared" => transaction
                .get_for_update(&family, at(1), shared)
                .map(|value| shown(value.as_deref())),
            "get_for_update" => transaction
                .get_for_update(&family, at(1), exclusive)
                .map(|value| shown(value.as_deref())),
            "undo" => transaction
                .undo_get_for_update(&family, at(1))
                .map(|undone| undone.to_string()),
            "lock_range" => transaction.lock_range(&family, at(1), end(), exclusive).map(ok),
            "share_range" => transaction.lock_range(&family, at(1), end(), shared).map(ok),
            "scan" => transaction
                .iter(&family, ReadOptions::default())
                .and_then(|mut iter| rows(&mut iter)),
            "put" => transaction.put(&family, at(1), at(2)).map(ok),
            "put_untracked" => transaction.put_untracked(&family, at(1), at(2)).map(ok),
            "delete" => transaction.delete(&family, at(1)).map(ok),
            "merge" => transaction.merge(&family, at(1), at(2)).map(ok),
            "delete_range" => transaction.delete_range(&family, at(1), at(2)).map(ok),
            "snapshot" => transaction.set_snapshot().map(ok),
            "save_point" => transaction.set_save_point().map(ok),
            "back" => transaction.roll_back_to_save_point().map(|was| was.to_string()),
            "keep" => transaction.pop_save_point().map(|was| was.to_string()),
            "locks" => Ok(transaction.lock_count().to_string()),
            "name" => transaction.set_name(at(1)).map(ok),
            "prepare" => transaction.prepare().map(ok),
            "leave" => {
                self.transaction = None;
                Ok(ok(()))
            }
            "commit" => transaction.commit().map(ok),
            "roll_back" => {
                transaction.roll_back().unwrap();
                Ok("ok".to_owned())
            }
            _ => panic!("no step {step}"),
        }
    }
}

/// Names that are prepared, those that no object has in brackets.
fn prepared(database: &Database) -> String {
    let Database::Locks(db) = database else {
        return "nothing".to_owned();
    };
    let listed = db.prepared();
    let names = listed.iter().map(|prepared| {
        let name = prepared.name.escape_ascii();
        match prepared.is_open {
            true => name.to_string(),
            false => format!("({name})"),
        }
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(" ")
    }
}

fn rows(iter: &mut Iter) -> Result<String> {
    let mut rows = Vec::new();
    iter.seek_to_first()?;
    while iter.valid() {
        rows.push(format!(
            "{}={}",
            iter.key().escape_ascii(),
            iter.value().escape_ascii()
        ));
        iter.next()?;
    }
    Ok(if rows.is_empty() {
        "nothing".to_owned()
    } else {
        rows.join(" ")
    })
}

fn shown(value: Option<&[u8]>) -> String {
    value.map_or("none".to_owned(), |value| value.escape_ascii().to_string())
}

fn word(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Conflict => "conflict".to_owned(),
        ErrorKind::Deadlock => "deadlock".to_owned(),
        ErrorKind::TimedOut => "timed out".to_owned(),
        _ => error.to_string(),
    }
}

/// Runs the steps of a scenario under a kind and an isolation.
fn run(steps: &[&str], heading: &str) -> String {
    let (kind, isolation) = heading.split_once(", ").expect("kind, isolation");
    let isolation = match isolation {
        "read committed" => Isolation::ReadCommitted,
        "repeatable read" => Isolation::RepeatableRead,
        _ => panic!("no isolation {isolation}"),
    };
    let (database, env) = open(kind == "locks", &patient());
    std::thread::scope(|scope| {
        let mut runner = Runner {
            scope,
            database,
            env,
            isolation,
            sessions: BTreeMap::new(),
            ids: BTreeMap::new(),
            pending: BTreeMap::new(),
            outcomes: channel(),
            text: format!("== {heading}\n"),
        };
        for step in steps {
            runner.step(step);
        }
        assert!(
            runner.pending.is_empty(),
            "somebody waits at the end: {}",
            runner.text
        );
        std::mem::take(&mut runner.text)
    })
}

/// Runs every scenario of a file and gives the file as it should read.
fn run_file(text: &str) -> String {
    let scenarios: Vec<String> = text
        .split("---\n")
        .map(|scenario| {
            let head: Vec<&str> = scenario
                .lines()
                .take_while(|line| !line.starts_with("== "))
                .collect();
            let steps: Vec<&str> = head
                .iter()
                .copied()
                .filter(|line| !line.starts_with('#'))
                .collect();
            let mut out = head.join("\n") + "\n";
            for heading in scenario.lines().filter_map(|line| line.strip_prefix("== ")) {
                out += &run(&steps, heading);
            }
            out
        })
        .collect();
    scenarios.join("---\n")
}

#[test]
fn scenarios() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 7, "a file for each anomaly");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let out = run_file(&text);
        if std::env::var_os("ESKER_BLESS").is_some() {
            std::fs::write(&path, out).unwrap();
        } else {
            assert_eq!(out, text, "{}", path.display());
        }
    }
}
