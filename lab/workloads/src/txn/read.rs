//! Transactions that only read.

use esker_lab_core::data::pick;
use esker_lab_core::engine::Durability;
use esker_lab_core::transaction::Begin;
use esker_lab_core::{Error, Result};

use super::tally::{Shape, measure};
use crate::runner::Runner;

const READS: u64 = 10;

/// Reads of one moment. Nobody writes, so that every row must be as loaded.
pub(super) fn snapshot(runner: &mut Runner<'_>) -> Result<()> {
    let rows = runner.spec.rows;
    let shape = Shape {
        begin: Begin {
            durability: Durability::Buffered,
            snapshot: true,
        },
        rows: READS,
        updates: 0,
        plain_workload: "",
    };
    measure(runner, &shape, &|client, seed, i| {
        for n in 0..READS {
            let row = pick(seed, i * READS + n, rows);
            match client.read(row)? {
                0 => {}
                version => {
                    return Err(Error::wrong(format!(
                        "row {row}: found version {version}, loaded was 0"
                    )));
                }
            }
        }
        Ok(())
    })
}
