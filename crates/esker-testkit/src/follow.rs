//! What the test `following` and its child agree upon.

use esker::{Db, ReadOptions, Result};

use crate::random::Rng;
use crate::runner::scan;

/// The family beside the default one.
pub const SECOND: &str = "second";

/// Keys that hold the number of the round, in both families, far from each other. The rows around them are elsewhere: their keys
/// begin with zeros.
pub const KEYS: [&[u8]; 4] = [b"", b"\x01", b"m", b"z"];

/// A value of a round: its number, and so much weight that some lie in blob files.
pub fn value(round: u64, rng: &mut Rng) -> Vec<u8> {
    let mut value = round.to_le_bytes().to_vec();
    value.resize(8 + rng.below(60), 7);
    value
}

/// The round that all keys of both families hold, as of one moment; `None` before the first.
///
/// # Panics
/// If they hold different ones.
pub fn round(db: &Db) -> Result<Option<u64>> {
    let options = ReadOptions {
        snapshot: Some(db.snapshot()),
        ..ReadOptions::default()
    };
    let Ok(second) = db.column_family(SECOND) else {
        return Ok(None);
    };
    let mut rounds = Vec::new();
    for family in [db.default_column_family(), second] {
        let together = db.multi_get(&family, &KEYS, &options)?;
        let rows = scan(db, &family, options.clone())?;
        for (key, value) in KEYS.iter().zip(together) {
            let scanned = rows.binary_search_by(|(other, _)| other.as_slice().cmp(key)).ok();
            let scanned = scanned.map(|at| rows[at].1.as_slice());
            assert_eq!(scanned, value.as_deref(), "a scan and a get of one moment");
            rounds.push(value.as_deref().map(number));
        }
    }
    assert!(
        rounds.iter().all(|round| *round == rounds[0]),
        "half a batch: {rounds:?}"
    );
    Ok(rounds[0])
}

fn number(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => panic!("a value of {} bytes", value.len()),
    }
}
