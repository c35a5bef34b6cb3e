//! Followers: beside a database that does random things, and beside a process that writes as fast as it can and is killed.
//!
//! `ESKER_TEST_CASES` runs (default 12), from `ESKER_TEST_SEED` on (default 1), of `ESKER_TEST_STEPS` steps (default 300);
//! `ESKER_FOLLOW_CATCH_UPS` catch-ups with something new beside the process (default 300), which is killed `ESKER_KILL_ROUNDS` times (default 3).
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use esker::{ErrorKind, Follower, Opener};
use esker_testkit::operation::{self, Operation, Scope};
use esker_testkit::random::Rng;
use esker_testkit::runner::Runner;
use esker_testkit::{crash, follow, number_from_env, watchdog};

/// Random steps, and between them a look through the follower: it shows what it did, catches up, and shows what the model says.
#[test]
fn a_follower_says_what_the_model_says() {
    let cases = number_from_env("ESKER_TEST_CASES", 12);
    let first = number_from_env("ESKER_TEST_SEED", 1);
    let steps = number_from_env("ESKER_TEST_STEPS", 300);
    for seed in first..first + cases {
        let _alive = watchdog::watch(
            &format!("following with ESKER_TEST_SEED={seed}"),
            Duration::from_secs(120),
        );
        let mut rng = Rng::new(seed);
        let scope = Scope::random(&mut rng);
        let mut runner = Runner::new(seed, scope).unwrap();
        for at in 0..steps {
            let step = if rng.one_in(8) {
                Operation::CatchUp {
                    snapshot: rng.one_in(2),
                }
            } else {
                operation::random(&mut rng, scope)
            };
            let result = runner.step(&step);
            result.unwrap_or_else(|problem| panic!("ESKER_TEST_SEED={seed}, step {at}, {step:?}: {problem}"));
        }
        let result = runner.finish();
        result.unwrap_or_else(|problem| panic!("ESKER_TEST_SEED={seed}, at the end: {problem}"));
    }
}

fn start(dir: &Path, seed: u64) -> Child {
    Command::new(env!("CARGO_BIN_EXE_esker-follow-child"))
        .arg(dir)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn open(dir: &Path) -> Follower {
    Opener::new(crash::options())
        .column_family(follow::SECOND, crash::family_options())
        .follow(dir)
        .unwrap()
}

/// Notes the last round that a child has acknowledged, until its end; tells `begun` about the first.
fn listen(out: ChildStdout, acknowledged: &AtomicU64, begun: &Sender<()>) {
    for line in BufReader::new(out).lines() {
        // The last line may be cut: then its number is a smaller one.
        let round: u64 = line.unwrap().parse().unwrap_or(0);
        if acknowledged.fetch_max(round, Ordering::SeqCst) < round {
            let _ = begun.send(());
        }
    }
}

/// SIGKILL at the end: nothing of the child runs any more.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a follower fared beside one life of the process.
#[derive(Default)]
struct Fared {
    catch_ups: u64,
    overtaken: u64,
    with_news: u64,
}

/// Catches up with the process again and again: what is shown is whole, holds all that was acknowledged before, and is never older
/// than what was shown before. Ends when that many have shown something new.
fn beside(follower: &Follower, acknowledged: &AtomicU64, with_news: u64) -> Fared {
    let mut fared = Fared::default();
    let mut shown = follow::round(follower.db()).unwrap().unwrap_or(0);
    while fared.with_news < with_news {
        let least = acknowledged.load(Ordering::SeqCst).max(shown);
        match follower.catch_up() {
            Ok(_) => fared.catch_ups += 1,
            Err(error) if error.kind() == ErrorKind::Retry => {
                fared.overtaken += 1;
                continue;
            }
            Err(error) => panic!("{error:?}"),
        }
        let round = follow::round(follower.db()).unwrap().unwrap_or(0);
        assert!(round >= least, "shows round {round}, but {least} was there");
        fared.with_news += u64::from(round > shown);
        shown = round;
    }
    fared
}

#[test]
fn a_follower_keeps_up_with_a_process_that_is_killed() {
    let kills = number_from_env("ESKER_KILL_ROUNDS", 3);
    let catch_ups = number_from_env("ESKER_FOLLOW_CATCH_UPS", 300);
    let seed = number_from_env("ESKER_TEST_SEED", 1);
    let _alive = watchdog::watch("following a process", Duration::from_secs(240));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    esker::Db::open(dir.path(), crash::options())
        .unwrap()
        .close()
        .unwrap();
    let follower = open(dir.path());
    let acknowledged = AtomicU64::new(0);
    for life in 0..kills {
        let mut child = start(dir.path(), seed + life);
        let out = child.stdout.take().unwrap();
        std::thread::scope(|scope| {
            let (begun, begins) = channel();
            let acknowledged = &acknowledged;
            scope.spawn(move || listen(out, acknowledged, &begun));
            // Also when an assertion fails, as the listener waits for the child's end.
            let _killed = Killed(child);
            begins.recv().unwrap();
            let fared = beside(&follower, acknowledged, catch_ups / kills);
            println!(
                "life {life}: {} catch-ups, {} of them with something new, {} were overtaken, {} rounds acknowledged",
                fared.catch_ups,
                fared.with_news,
                fared.overtaken,
                acknowledged.load(Ordering::SeqCst)
            );
        });
        // The dead process says no more; what it left is shown, and is what the next one finds.
        follower.catch_up().unwrap();
        let shown = follow::round(follower.db()).unwrap().unwrap();
        assert!(shown >= acknowledged.load(Ordering::SeqCst));
        let db = esker::Db::open(dir.path(), crash::options()).unwrap();
        assert_eq!(follow::round(&db).unwrap(), Some(shown));
        db.close().unwrap();
        follower.catch_up().unwrap();
        assert_eq!(follow::round(follower.db()).unwrap(), Some(shown));
    }
}
