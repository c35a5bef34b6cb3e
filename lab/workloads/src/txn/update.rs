//! Transactions that write.

use esker_lab_core::Result;
use esker_lab_core::data::pick;
use esker_lab_core::engine::Durability;
use esker_lab_core::transaction::Begin;
use esker_lab_core::zipf::Zipf;

use super::tally::{Shape, measure};
use super::{PUT, PUT_ONE, PUT_SYNC};
use crate::runner::Runner;

/// Rows that are updated all the time …
const HOT_ROWS: u64 = 100;

/// … and YCSB's exponent: the first of them gets a fifth of all updates.
const HOT_EXPONENT: f64 = 0.99;

/// Reads of a mixed transaction, and as many updates.
const READS: u64 = 5;

fn begin(durability: Durability) -> Begin {
    Begin {
        durability,
        snapshot: false,
    }
}

fn single(runner: &mut Runner<'_>, durability: Durability, plain_workload: &'static str) -> Result<()> {
    let rows = runner.spec.rows;
    let shape = Shape {
        begin: begin(durability),
        rows: 1,
        updates: 1,
        plain_workload,
    };
    measure(runner, &shape, &|client, seed, i| {
        client.update(pick(seed, i, rows))
    })
}

pub(super) fn one_thread(runner: &mut Runner<'_>) -> Result<()> {
    single(runner, Durability::Buffered, PUT_ONE)
}

pub(super) fn many_threads(runner: &mut Runner<'_>) -> Result<()> {
    single(runner, Durability::Buffered, PUT)
}

pub(super) fn synced(runner: &mut Runner<'_>) -> Result<()> {
    single(runner, Durability::Sync, PUT_SYNC)
}

/// Reads and updates by turns.
pub(super) fn mixed(runner: &mut Runner<'_>) -> Result<()> {
    let rows = runner.spec.rows;
    let shape = Shape {
        begin: begin(Durability::Buffered),
        rows: 2 * READS,
        updates: READS,
        plain_workload: PUT,
    };
    measure(runner, &shape, &|client, seed, i| {
        for n in 0..READS {
            let choice = 2 * (i * READS + n);
            client.read(pick(seed, choice, rows))?;
            client.update(pick(seed, choice + 1, rows))?;
        }
        Ok(())
    })
}

/// Two rows, locked in the order in which they are drawn, so that circles of waiters come about. The hot rows lie apart.
pub(super) fn hot(runner: &mut Runner<'_>) -> Result<()> {
    let distance = runner.spec.rows / HOT_ROWS;
    let zipf = Zipf::new(HOT_ROWS as usize, HOT_EXPONENT);
    let shape = Shape {
        begin: begin(Durability::Buffered),
        rows: 2,
        updates: 2,
        plain_workload: PUT,
    };
    measure(runner, &shape, &|client, seed, i| {
        let first = zipf.pick(seed, 2 * i);
        let second = match zipf.pick(seed, 2 * i + 1) {
            same if same == first => (same + 1) % HOT_ROWS,
            other => other,
        };
        client.update(first * distance)?;
        client.update(second * distance)
    })
}
