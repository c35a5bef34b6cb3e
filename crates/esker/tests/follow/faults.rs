//! Reads that fail, end early or give bytes that were not written, at each call of a catch-up.

use esker::ErrorKind;
use esker_env::fault::{Fault, FaultFs, Op, Rule};

use super::*;

/// A writer, what it wrote in steps, and a follower from before the steps that reads through faults.
fn stepped() -> (Db, Vec<Rows>, Follower, FaultFs) {
    let (_, fs) = machine();
    let db = opener(&fs, options()).open(DIR).unwrap();
    for key in 0..20_u8 {
        db.put(&[key], &[key; 450]).unwrap();
    }
    let faults = FaultFs::new(Arc::clone(&fs));
    let shared: Arc<dyn Fs> = Arc::new(faults.clone());
    let follower = follow(&shared);
    let seen = |db: &Db| rows_with(db, &db.default_column_family(), ReadOptions::default()).unwrap();
    let mut steps = vec![seen(&db)];
    for key in 10..30_u8 {
        if key % 10 == 5 {
            db.flush().unwrap();
        }
        db.put(&[key], &[1; 450]).unwrap();
        steps.push(seen(&db));
    }
    (db, steps, follower, faults)
}

fn shown(follower: &Follower) -> Rows {
    let db = follower.db();
    rows_with(db, &db.default_column_family(), ReadOptions::default()).unwrap()
}

#[test]
fn a_catch_up_that_fails_changes_nothing_and_can_be_repeated() {
    for op in [Op::Read, Op::Open, Op::List, Op::Stat] {
        for nth in 1.. {
            let (_db, steps, follower, faults) = stepped();
            faults.add(Rule::new(op, Fault::Eio).nth(nth));
            let result = follower.catch_up();
            let injected = faults.injected();
            faults.clear();
            if let Err(error) = &result {
                assert_eq!(error.kind(), ErrorKind::Io, "{op:?} {nth}: {error}");
                assert!(shown(&follower) == steps[0], "{op:?} {nth}");
            }
            follower.catch_up().unwrap();
            assert!(Some(&shown(&follower)) == steps.last(), "{op:?} {nth}");
            if injected == 0 {
                assert!(result.is_ok());
                break;
            }
        }
    }
}

/// What is not whole is taken for what is still to come, and read again the next time.
#[test]
fn bytes_that_were_not_written_are_never_shown() {
    for fault in [
        Fault::ShortRead,
        Fault::CorruptRead { bit: 8 * 70 },
        Fault::CorruptRead { bit: 3 },
    ] {
        for nth in 1.. {
            let (_db, steps, follower, faults) = stepped();
            faults.add(Rule::new(Op::Read, fault).nth(nth));
            let result = follower.catch_up();
            let injected = faults.injected();
            faults.clear();
            let now = shown(&follower);
            match result {
                Ok(_) => assert!(steps.contains(&now), "{fault:?} {nth}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{fault:?} {nth}: {error}");
                    assert!(now == steps[0], "{fault:?} {nth}");
                }
            }
            follower.catch_up().unwrap();
            assert!(Some(&shown(&follower)) == steps.last(), "{fault:?} {nth}");
            if injected == 0 {
                break;
            }
        }
    }
}
