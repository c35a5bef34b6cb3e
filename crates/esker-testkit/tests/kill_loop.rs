//! A process that writes is killed at random moments, on real files; what it acknowledged with `Buffered` or `Sync`
//! is there afterwards, batches over two families are whole.
//!
//! `ESKER_KILL_ROUNDS` rounds (default 5).
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use esker::{Db, ReadOptions};
use esker_env::Env;
use esker_testkit::random::Rng;
use esker_testkit::runner::scan;
use esker_testkit::{crash, kill, number_from_env, watchdog};

/// The newest logged write and the newest write at all of each key.
#[derive(Default)]
struct Acknowledged {
    logged: BTreeMap<Vec<u8>, u64>,
    last: u64,
}

/// Lets a child write for a while and kills it; reads what it acknowledged. The while begins with the child, or with what it
/// acknowledges first: on a busy machine it is killed before that else, again and again.
fn round(dir: &std::path::Path, first: u64, seed: u64, lets_it_write: bool, acknowledged: &mut Acknowledged) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_esker-kill-child"))
        .arg(dir)
        .arg(first.to_string())
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let life = Duration::from_millis(50 + Rng::new(seed).below(400) as u64);
    let (begun, begins) = channel();
    std::thread::scope(|scope| {
        let child = &mut child;
        scope.spawn(move || {
            if lets_it_write {
                // An error: it has ended by itself.
                let _ = begins.recv();
            }
            Env::posix().clock.sleep(life);
            // SIGKILL: nothing of the child runs any more.
            child.kill().unwrap();
        });
        let begun = begun;
        for line in out.lines() {
            let line = line.unwrap();
            let _ = begun.send(());
            // The last line may be cut.
            let Some((number, letter)) = line.split_once(' ') else {
                break;
            };
            let number: u64 = number.parse().unwrap();
            acknowledged.last = number;
            if letter == "s" || letter == "b" {
                acknowledged.logged.insert(kill::key(number), number);
            }
        }
    });
    child.wait().unwrap();
}

#[test]
fn what_a_killed_process_acknowledged_is_there() {
    let rounds = number_from_env("ESKER_KILL_ROUNDS", 5);
    let seed = number_from_env("ESKER_TEST_SEED", 1);
    let _alive = watchdog::watch("kill_loop", Duration::from_secs(60 + 10 * rounds));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut acknowledged = Acknowledged::default();
    for at in 0..rounds {
        // One write may have happened without an answer.
        let first = acknowledged.last + 2;
        round(dir.path(), first, seed + at, at % 2 == 0, &mut acknowledged);
        let db = Db::open(dir.path(), crash::options()).unwrap();
        assert_eq!(
            db.recovery_report().damages,
            0,
            "round {at}: {:?}",
            db.recovery_report()
        );
        let Ok(second) = db.column_family("second") else {
            assert!(acknowledged.logged.is_empty(), "round {at}");
            continue;
        };
        let default = db.default_column_family();
        let [rows, others] =
            [&default, &second].map(|family| scan(&db, family, ReadOptions::default()).unwrap());
        let number = |value: &[u8]| kill::number(value).unwrap_or_else(|| panic!("round {at}: a torn value"));
        let found: BTreeMap<_, _> = rows
            .iter()
            .map(|(key, value)| (key.clone(), number(value)))
            .collect();
        let other: BTreeMap<_, _> = others
            .iter()
            .map(|(key, value)| (key.clone(), number(value)))
            .collect();
        for (key, &wanted) in &acknowledged.logged {
            for found in [&found, &other] {
                // Or a later one: unlogged, or not answered.
                let is = found.get(key).copied().unwrap_or(0);
                assert!(
                    is >= wanted && is <= acknowledged.last + 1,
                    "round {at}: {} is {is}, acknowledged {wanted}, last {}",
                    key.escape_ascii(),
                    acknowledged.last
                );
            }
            // Logged batches are whole; unlogged ones may differ between families, and are newer.
            if found[key] != other[key] {
                assert!(found[key].max(other[key]) > wanted, "round {at}: half a batch");
            }
        }
        db.close().unwrap();
    }
    assert!(acknowledged.last > 0, "no child wrote anything");
    println!("{} writes in {rounds} rounds", acknowledged.last);
}
