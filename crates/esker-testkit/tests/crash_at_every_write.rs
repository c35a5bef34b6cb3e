//! A run that touches everything, ended at each of its writes: what is left opens, is a state that the database was in,
//! with all that was synced, and can be used like any other.
//!
//! `ESKER_CRASH_STRIDE` (default 3) leaves out writes; each run starts at another one.

use std::time::Duration;

use esker_env::mem::{CrashMode, MemFs};
use esker_testkit::crash::{Script, check_rows, check_usable, open};
use esker_testkit::random::Rng;
use esker_testkit::{number_from_env, watchdog};

/// Interrupts the recovery of `left` as well, and recovers again: the state must be the same.
fn interrupt_recovery(left: &MemFs, script: &Script, n: u64) -> Result<(), String> {
    let mut rng = Rng::new(n);
    let whole = left.crash(CrashMode::KeepAll);
    let (db, mut oracle) = script.recover(&whole, CrashMode::DropUnsynced)?;
    let _ = db.close();
    oracle.reopened();
    let second = left.crash(CrashMode::KeepAll);
    let stop = rng.below(40) as u64;
    second.stop_after(Some(stop));
    let _ = open(&second).map(|db| db.close());
    let mode = rng.pick(&[
        CrashMode::DropUnsynced,
        CrashMode::KeepAll,
        CrashMode::Torn { seed: n },
    ]);
    let third = second.crash(mode);
    let db = open(&third).map_err(|error| format!("second recovery: {error:?}"))?;
    check_rows(&db, &oracle)
        .map_err(|problem| format!("recovery stopped after {stop}, {mode:?}: {problem}"))?;
    db.close().map_err(|error| format!("{error:?}"))
}

#[test]
fn a_crash_at_any_write_leaves_a_prefix() {
    let _alive = watchdog::watch("crash_at_every_write", Duration::from_secs(600));
    let whole = MemFs::new();
    let (_, done) = Script::run(&whole);
    assert!(done, "the script fails by itself");
    let total = whole.operations();
    let stride = number_from_env("ESKER_CRASH_STRIDE", 3).max(1);
    println!("{total} mutating calls");
    let mut crashes = 0;
    let mut failures = Vec::new();
    for n in (0..total).step_by(stride as usize) {
        let fs = MemFs::new();
        fs.stop_after(Some(n));
        let (script, _) = Script::run(&fs);
        let modes = [
            CrashMode::KeepAll,
            CrashMode::DropUnsynced,
            CrashMode::Torn { seed: n },
            CrashMode::Torn { seed: !n },
        ];
        for mode in modes {
            crashes += 1;
            let left = fs.crash(mode);
            let again = left.crash(CrashMode::KeepAll);
            let result = script
                .recover(&left, mode)
                .and_then(|(db, oracle)| check_usable(&left, db, oracle))
                .and_then(|()| match mode {
                    CrashMode::Torn { .. } => interrupt_recovery(&again, &script, n),
                    _ => Ok(()),
                });
            if let Err(problem) = result {
                failures.push(format!("stopped after {n} of {total} calls, {mode:?}: {problem}"));
            }
        }
        if failures.len() > 5 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(crashes > 100, "only {crashes} crashes");
}
