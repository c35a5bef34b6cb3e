//! Random operations on a database behind a C interface, and what it answered to each.
//!
//! The two interfaces have their core alike but for the prefix of the names; what only RocksDB's has (merges, range
//! deletions, bounds, column families) is used where `full` says so.

// Test code throughout.
#![allow(clippy::unwrap_used)]

mod joined;
mod others;
mod target;

use std::path::Path;

use proptest::prelude::*;

pub use others::assert_refuses_the_others;
use target::Target;

/// One operation. Keys and snapshots are small numbers, so that they meet again.
#[derive(Clone, Debug)]
pub enum Op {
    Put(u8, Vec<u8>),
    Delete(u8),
    Merge(u8, Vec<u8>),
    DeleteRange(u8, u8),
    Write(Vec<(u8, Option<Vec<u8>>)>),
    Get(u8),
    Snapshot,
    Release(u8),
    GetThen(u8, u8),
    Scan {
        from: u8,
        forward: bool,
        rows: usize,
        then: Option<u8>,
    },
    Within {
        lower: u8,
        upper: u8,
        forward: bool,
    },
    Compact(Option<(u8, u8)>),
    Reopen,
    MultiGet(Vec<u8>),
    /// The operation in the other column family.
    Other(Box<Op>),
}

/// Operations; all that both interfaces have, or all.
pub fn ops(full: bool) -> impl Strategy<Value = Vec<Op>> {
    let key = 0..24_u8;
    let value = || prop_oneof![8 => prop::collection::vec(any::<u8>(), 0..20), 1 => prop::collection::vec(any::<u8>(), 900..5000)];
    let small = prop_oneof![
        8 => (key.clone(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        4 => key.clone().prop_map(Op::Delete),
        4 => prop::collection::vec((key.clone(), prop::option::of(value())), 0..6).prop_map(Op::Write),
        6 => key.clone().prop_map(Op::Get),
        2 => Just(Op::Snapshot),
        1 => any::<u8>().prop_map(Op::Release),
        3 => (any::<u8>(), key.clone()).prop_map(|(snapshot, key)| Op::GetThen(snapshot, key)),
        4 => (key.clone(), any::<bool>(), 0..30_usize, prop::option::of(any::<u8>()))
            .prop_map(|(from, forward, rows, then)| Op::Scan { from, forward, rows, then }),
        1 => prop::option::of((key.clone(), key.clone())).prop_map(Op::Compact),
        1 => Just(Op::Reopen),
    ];
    let more = prop_oneof![
        4 => (key.clone(), value()).prop_map(|(key, value)| Op::Merge(key, value)),
        2 => (key.clone(), key.clone()).prop_map(|(a, b)| Op::DeleteRange(a.min(b), a.max(b))),
        1 => prop::collection::vec(key.clone(), 0..6).prop_map(Op::MultiGet),
        3 => (key.clone(), key, any::<bool>()).prop_map(|(lower, upper, forward)| Op::Within { lower, upper, forward }),
    ];
    let one = if full {
        let both = prop_oneof![3 => small, 1 => more].boxed();
        let other = both.clone().prop_map(|op| Op::Other(Box::new(op)));
        prop_oneof![2 => both, 1 => other].boxed()
    } else {
        small.boxed()
    };
    prop::collection::vec(one, 1..80)
}

/// Runs the same operations on both libraries; the answers must be the same.
pub fn assert_agree(ours: &Path, real: &Path, prefix: &'static str, full: bool, ops: &[Op]) {
    let dir = tempfile::tempdir().unwrap();
    let mut ours = Target::open(ours, prefix, dir.path().join("ours"), full);
    let mut real = Target::open(real, prefix, dir.path().join("real"), full);
    for (number, op) in ops.iter().enumerate() {
        let (our, their) = (ours.run(op), real.run(op));
        assert_eq!(
            our, their,
            "operation {number}, {op:?} (ours, then the real library's)"
        );
    }
}
