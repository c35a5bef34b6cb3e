//! A process that moves money by transactions is killed at random moments, on real files: the sum is what it was, each transfer
//! happened as a whole or not at all, as it was acknowledged; what was prepared is prepared still, with its locks, and can be
//! resolved.
//!
//! `ESKER_KILL_ROUNDS` rounds (default 6), every third without locks.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use esker::Opener;
use esker_env::Env;
use esker_testkit::bank::{ACCOUNTS, Books, Families, account, check_locked, is_locked};
use esker_testkit::random::Rng;
use esker_testkit::{crash, number_from_env, watchdog};
use esker_txn::{TransactionDb, TransactionSettings};

/// Lets a child work for a while and kills it; what it said of each transfer last. In every other round the while begins with the
/// first commit: on a busy machine the child is killed before that else, again and again.
fn round(dir: &Path, at: u64, seed: u64) -> BTreeMap<String, char> {
    let kind = if at % 3 == 2 { "optimistic" } else { "locks" };
    let mut child = Command::new(env!("CARGO_BIN_EXE_esker-bank-child"))
        .arg(dir)
        .args([&at.to_string(), &seed.to_string(), kind])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let life = Duration::from_millis(50 + Rng::new(seed).below(400) as u64);
    let mut said = BTreeMap::new();
    let (begun, begins) = channel();
    std::thread::scope(|scope| {
        let child = &mut child;
        scope.spawn(move || {
            if at.is_multiple_of(2) {
                // An error: it has ended by itself.
                let _ = begins.recv();
            }
            Env::posix().clock.sleep(life);
            // SIGKILL: nothing of the child runs any more.
            child.kill().unwrap();
        });
        let begun = begun;
        let mut lines: Vec<String> = out
            .split(b'\n')
            .map(|line| String::from_utf8(line.unwrap()).unwrap())
            .inspect(|line| {
                if line.starts_with("c ") {
                    let _ = begun.send(());
                }
            })
            .collect();
        // The last line may be cut, and its name be another's.
        lines.pop();
        for line in lines {
            let (letter, name) = line.split_once(' ').unwrap();
            said.insert(name.to_owned(), letter.chars().next().unwrap());
        }
    });
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "round {at}: the child ended by itself");
    said
}

fn open(dir: &Path) -> TransactionDb {
    TransactionDb::open(
        Opener::new(crash::options()),
        dir,
        &TransactionSettings::default(),
    )
    .unwrap()
}

#[test]
fn a_killed_bank_has_its_sum_and_what_was_prepared() {
    let rounds = number_from_env("ESKER_KILL_ROUNDS", 6);
    let seed = number_from_env("ESKER_TEST_SEED", 1);
    let _alive = watchdog::watch("kill_bank", Duration::from_secs(60 + 10 * rounds));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut rng = Rng::new(seed);
    // What is certain.
    let mut journal: BTreeSet<String> = BTreeSet::new();
    let (mut acknowledged, mut found_prepared) = (0, 0);
    for at in 0..rounds {
        let said = round(dir.path(), at, seed + at);
        let db = open(dir.path());
        let report = db.db().recovery_report();
        assert_eq!(report.damages, 0, "round {at}: {report:?}");
        let books = Books::read(db.db()).unwrap_or_else(|problem| panic!("round {at}: {problem}"));
        let names: BTreeSet<String> = db
            .prepared()
            .iter()
            .map(|prepared| String::from_utf8(prepared.name.to_vec()).unwrap())
            .collect();
        for name in &journal {
            assert!(
                books.journal.contains(name),
                "round {at}: {name} was there before"
            );
        }
        for (name, said) in &said {
            let found = (books.journal.contains(name), names.contains(name));
            let is_right = match said {
                'c' => found == (true, false),
                'r' => found == (false, false),
                'l' => found == (false, true),
                // Its end is not acknowledged: it may have happened.
                _ => found != (true, true),
            };
            assert!(is_right, "round {at}: {name} is {said}, found {found:?}");
        }
        check_locks(&db, &names);
        found_prepared += names.len();
        acknowledged += said.len();
        // A coordinator's word, which the next opening finds done.
        let mut wanted = books.journal;
        for name in names {
            let mut transaction = db.prepared_transaction(name.as_bytes()).unwrap();
            if rng.one_in(2) {
                transaction.commit().unwrap();
                wanted.insert(name);
            } else {
                transaction.roll_back().unwrap();
            }
        }
        assert!(db.locks().is_empty());
        db.db().close().unwrap();
        let db = open(dir.path());
        let books = Books::read(db.db()).unwrap_or_else(|problem| panic!("round {at}: {problem}"));
        assert!(books.journal == wanted && db.prepared().is_empty(), "round {at}");
        journal = wanted;
        db.db().close().unwrap();
    }
    assert!(acknowledged > 0 && !journal.is_empty(), "no child did anything");
    println!(
        "{acknowledged} transfers acknowledged in {rounds} rounds, {} happened, {found_prepared} were found prepared",
        journal.len()
    );
}

/// What is prepared has its locks, and no other account is locked.
fn check_locks(db: &TransactionDb, names: &BTreeSet<String>) {
    let families = Families::of(db.db()).unwrap();
    let mut locked = BTreeSet::new();
    for name in names {
        check_locked(db, name.as_bytes()).unwrap();
        let batch = db.db().prepared_named(name.as_bytes()).unwrap();
        for mutation in batch.mutations() {
            if let esker::Mutation::Put { family: 0, key, .. } = mutation {
                locked.insert(key.to_vec());
            }
        }
    }
    for number in 0..ACCOUNTS {
        let key = account(number);
        let is = is_locked(db, &families.accounts, &key).unwrap();
        assert_eq!(is, locked.contains(&key), "account {number}");
    }
}
