//! Every engine's transactions, through the trait: own writes, snapshots, and what losing against others is called.

// Deadlocks take two threads.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::mpsc;

use esker_lab_core::data::{Dataset, Keys};
use esker_lab_core::engine::{Compression, Database, Durability, OpenSettings, Profile};
use esker_lab_core::transaction::{Begin, Control, Loss, TransactionSession};
use esker_lab_core::{Error, error::Kind};
use esker_lab_engines::registry::Choice;
use esker_lab_engines::{Libraries, Registry};

const NEWEST: Begin = Begin {
    durability: Durability::Buffered,
    snapshot: false,
};

const SNAPSHOT: Begin = Begin {
    durability: Durability::Sync,
    snapshot: true,
};

fn libraries() -> Libraries {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Libraries {
        rocksdb: root.join("peers/librocksdb.so"),
        leveldb: root.join("peers/libleveldb.so"),
        dropin: root.join("target/dropin"),
    }
}

fn settings(transactions: bool) -> OpenSettings {
    OpenSettings {
        profile: Profile::Mixed,
        memory_bytes: 64 << 20,
        cpus: 2,
        block_bytes: 4096,
        compression: Compression::None,
        dataset: Dataset {
            rows: 100,
            keys: Keys::new(10),
            value_bytes: 100,
            compressibility: 0.5,
            seed: 1,
        },
        merge_operator: false,
        transactions,
    }
}

/// Runs `test` on every engine with transactions, set up in every way, with the rows `a`, `b` and `c` loaded without any.
fn with_each(engines: &[&str], test: impl Fn(&str, Control, &dyn Database)) {
    let registry = Registry::new(&libraries());
    for engine in engines {
        let choices: Vec<Choice<'_>> = registry.choose(&format!("{engine}:all"), true).unwrap();
        if let Err(error) = choices[0].engine.version() {
            println!("skipped: {error}");
            continue;
        }
        for Choice { engine, variant } in choices {
            let name = format!("{}:{}", engine.name(), variant.name);
            let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let open = |transactions| engine.open(dir.path(), variant.name, &settings(transactions));
            let plain = open(false).unwrap();
            for key in [b"a", b"b", b"c"] {
                let mut session = plain.session().unwrap();
                session.put(key, b"0", Durability::None).unwrap();
            }
            let refused = plain.transactions().map(drop).map_err(|error| error.kind());
            assert!(
                engine.name() == "memory" || refused == Err(Kind::Unsupported),
                "{name}: transactions on a database that was opened without"
            );
            plain.flush().unwrap();
            plain.close().unwrap();
            let database = open(true).unwrap();
            test(&name, variant.control.unwrap(), database.as_ref());
            assert!(
                engine.name() == "memory"
                    || database.applied().iter().any(|(name, _)| name == "transactions"),
                "{name}"
            );
            database.close().unwrap();
        }
    }
}

const ALL: [&str; 3] = ["memory", "esker", "rocksdb"];

/// Those whose transactions run at the same time.
const CONCURRENT: [&str; 2] = ["esker", "rocksdb"];

fn read(session: &mut dyn TransactionSession, key: &str) -> Option<String> {
    let mut found = None;
    let is_there = session.get(key.as_bytes(), &mut |value| {
        found = Some(String::from_utf8(value.to_vec()).unwrap());
    });
    assert_eq!(is_there.unwrap(), found.is_some());
    found
}

fn read_for_update(session: &mut dyn TransactionSession, key: &str) -> Result<Option<String>, Error> {
    let mut found = None;
    session.get_for_update(key.as_bytes(), &mut |value| {
        found = Some(String::from_utf8(value.to_vec()).unwrap());
    })?;
    Ok(found)
}

#[test]
fn a_transaction_sees_its_writes_and_others_see_its_commit() {
    with_each(&ALL, |name, _, database| {
        let mut session = database.transactions().unwrap();
        assert_eq!(
            session.get(b"a", &mut |_| ()).is_err(),
            name.starts_with("esker") || name.starts_with("rocksdb")
        );
        session.begin(NEWEST).unwrap();
        assert_eq!(
            read_for_update(session.as_mut(), "a").unwrap().as_deref(),
            Some("0"),
            "{name}"
        );
        assert_eq!(read_for_update(session.as_mut(), "z").unwrap(), None, "{name}");
        session.put(b"a", b"1").unwrap();
        session.put(b"z", b"1").unwrap();
        assert_eq!(read(session.as_mut(), "a").as_deref(), Some("1"), "{name}");
        session.commit().unwrap();
        session.begin(NEWEST).unwrap();
        session.put(b"b", b"2").unwrap();
        session.roll_back().unwrap();
        session.begin(SNAPSHOT).unwrap();
        let values = ["a", "b", "c", "z", "y"].map(|key| read(session.as_mut(), key));
        let values = values.each_ref().map(Option::as_deref);
        assert_eq!(
            values,
            [Some("1"), Some("0"), Some("0"), Some("1"), None],
            "{name}"
        );
        session.commit().unwrap();
        // Left while it runs: rolled back.
        session.begin(NEWEST).unwrap();
        session.put(b"c", b"3").unwrap();
        drop(session);
        let mut rows = Vec::new();
        let mut plain = database.session().unwrap();
        plain
            .scan(esker_lab_core::engine::Start::First, &mut |key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                true
            })
            .unwrap();
        let expected = [(b"a", b"1"), (b"b", b"0"), (b"c", b"0"), (b"z", b"1")];
        assert_eq!(rows, expected.map(|(k, v)| (k.to_vec(), v.to_vec())), "{name}");
    });
}

#[test]
fn a_snapshot_shows_the_moment_of_the_begin() {
    with_each(&CONCURRENT, |name, _, database| {
        let (mut reader, mut writer) = (database.transactions().unwrap(), database.transactions().unwrap());
        for round in ["0", "1", "2"] {
            reader.begin(SNAPSHOT).unwrap();
            writer.begin(NEWEST).unwrap();
            let next = (round.parse::<u32>().unwrap() + 1).to_string();
            assert_eq!(
                read_for_update(writer.as_mut(), "a").unwrap().as_deref(),
                Some(round),
                "{name}"
            );
            writer.put(b"a", next.as_bytes()).unwrap();
            writer.commit().unwrap();
            assert_eq!(read(reader.as_mut(), "a").as_deref(), Some(round), "{name}");
            reader.commit().unwrap();
            // Without a snapshot the newest is seen, also by an object that had one.
            reader.begin(NEWEST).unwrap();
            assert_eq!(
                read(reader.as_mut(), "a").as_deref(),
                Some(next.as_str()),
                "{name}"
            );
            reader.roll_back().unwrap();
        }
    });
}

#[test]
fn an_update_of_what_others_update_is_not_lost() {
    with_each(&CONCURRENT, |name, control, database| {
        let (mut first, mut second) = (database.transactions().unwrap(), database.transactions().unwrap());
        first.begin(NEWEST).unwrap();
        second.begin(NEWEST).unwrap();
        read_for_update(first.as_mut(), "a").unwrap();
        first.put(b"a", b"first").unwrap();
        let error = match control {
            // Waits for a second.
            Control::Locks => read_for_update(second.as_mut(), "a").unwrap_err(),
            Control::Optimistic => {
                read_for_update(second.as_mut(), "a").unwrap();
                second.put(b"a", b"second").unwrap();
                second.commit().unwrap();
                first.commit().unwrap_err()
            }
        };
        let expected = match control {
            Control::Locks => Loss::TimedOut,
            Control::Optimistic => Loss::Conflict,
        };
        assert_eq!(Loss::of(error.kind()), Some(expected), "{name}: {error}");
        let loser = match control {
            Control::Locks => &mut second,
            Control::Optimistic => &mut first,
        };
        loser.roll_back().unwrap();
        if control == Control::Locks {
            first.commit().unwrap();
        }
        // Run again, it wins.
        let again = if control == Control::Locks {
            &mut second
        } else {
            &mut first
        };
        again.begin(NEWEST).unwrap();
        read_for_update(again.as_mut(), "a").unwrap();
        again.put(b"a", b"third").unwrap();
        again.commit().unwrap();
    });
}

#[test]
fn a_circle_of_waiters_is_called_a_deadlock() {
    with_each(&CONCURRENT, |name, control, database| {
        if control == Control::Optimistic {
            return;
        }
        let mut lost = close_a_circle(database);
        // On a busy machine the time of who waits may be over before the other one asks.
        for _ in 0..10 {
            if lost.iter().any(|(kind, _)| *kind == Kind::TimedOut) {
                lost = close_a_circle(database);
            }
        }
        assert_eq!(lost.len(), 1, "{name}: {lost:?}");
        assert_eq!(Loss::of(lost[0].0), Some(Loss::Deadlock), "{name}: {lost:?}");
    });
}

/// Two sessions, each of which has what the other one wants; what those hear that don't get it.
fn close_a_circle(database: &dyn Database) -> Vec<(Kind, String)> {
    let (locked, wait) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let results = std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let mut session = database.transactions().unwrap();
            session.begin(NEWEST).unwrap();
            read_for_update(session.as_mut(), "b").unwrap();
            locked.send(()).unwrap();
            may_go.recv().unwrap();
            let result = read_for_update(session.as_mut(), "a").map_err(|e| (e.kind(), e.to_string()));
            session.roll_back().unwrap();
            result.map(drop)
        });
        let mut session = database.transactions().unwrap();
        session.begin(NEWEST).unwrap();
        read_for_update(session.as_mut(), "a").unwrap();
        wait.recv().unwrap();
        go.send(()).unwrap();
        let result = read_for_update(session.as_mut(), "b").map_err(|e| (e.kind(), e.to_string()));
        session.roll_back().unwrap();
        [result.map(drop), other.join().unwrap()]
    });
    // Whoever asks last closes the circle; the other one gets its lock then.
    results.into_iter().filter_map(Result::err).collect()
}

#[test]
fn group_commits_tell_their_syncs() {
    with_each(&CONCURRENT, |name, _, database| {
        let mut session = database.transactions().unwrap();
        assert!(database.syncs_per_write().unwrap_or(0.0) == 0.0, "{name}");
        for i in 0..10u32 {
            session
                .begin(Begin {
                    durability: Durability::Sync,
                    snapshot: false,
                })
                .unwrap();
            session.put(b"a", i.to_string().as_bytes()).unwrap();
            session.commit().unwrap();
        }
        let alone = database.syncs_per_write().unwrap();
        assert!((0.9..1.2).contains(&alone), "{name}: {alone}");
        for i in 0..30u32 {
            session.begin(NEWEST).unwrap();
            session.put(b"a", i.to_string().as_bytes()).unwrap();
            session.commit().unwrap();
        }
        let mixed = database.syncs_per_write().unwrap();
        assert!((0.2..0.35).contains(&mixed), "{name}: {mixed}");
    });
}
