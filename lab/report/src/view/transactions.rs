//! Transactions: each engine's commits beside its plain puts, and what they lost against each other.

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::Row;
use esker_lab_core::summary::Line;
use serde::Serialize;

use super::{Engine, colour_of, or_dash};

/// One engine in one test, with transactions or, for comparison, without.
#[derive(Serialize)]
pub(crate) struct TransactionLine {
    /// Empty in all but the first line of a test.
    workload: String,
    anchor: String,
    threads: usize,
    label: String,
    colour: usize,
    control: String,
    ops_per_s: String,
    ratio: String,
    is_baseline: bool,
    failed: bool,
    p99: String,
    cpu: String,
    cpu_to_put: String,
    conflicts: String,
    deadlocks: String,
    timeouts: String,
    syncs: String,
}

/// All of a run; empty where no transactions were run.
pub(super) fn lines(id: &str, lines: &[Line<'_>], engines: &[Engine]) -> Vec<TransactionLine> {
    if lines.iter().all(|line| line.control().is_empty()) {
        return Vec::new();
    }
    let mut previous = "";
    let views = lines.iter().map(|line| {
        let before = std::mem::replace(&mut previous, line.workload);
        let of_thousand = |lost: fn(&Row) -> u64| {
            let share = line.median(|row| lost(row) as f64 * 1e3 / row.ops as f64);
            or_dash(share, three_digits)
        };
        TransactionLine {
            workload: if before == line.workload {
                ""
            } else {
                line.workload
            }
            .to_owned(),
            anchor: format!("{id}-{}", line.workload),
            threads: line.rows.iter().map(|row| row.threads).max().unwrap_or(0),
            label: line.label.clone(),
            colour: colour_of(engines, &line.label),
            control: match line.control() {
                "" => "none".to_owned(),
                control => control.to_owned(),
            },
            ops_per_s: line.median(|row| row.ops_per_s).map_or("failed".into(), count),
            ratio: line
                .ratio
                .map_or("–".into(), |(ratio, _)| format!("{}×", three_digits(ratio))),
            is_baseline: line.is_baseline,
            failed: line.failed(),
            p99: or_dash(line.median(|row| row.p99_us), micros),
            cpu: or_dash(line.median(|row| row.cpu_us_per_op_settled), three_digits),
            cpu_to_put: or_dash(line.plain_cpu_ratio, |ratio| format!("{}×", three_digits(ratio))),
            conflicts: of_thousand(|row| row.conflicts),
            deadlocks: of_thousand(|row| row.deadlocks),
            timeouts: of_thousand(|row| row.timeouts),
            syncs: or_dash(line.median(|row| row.syncs_per_op.unwrap_or(0.0)), three_digits),
        }
    });
    views.collect()
}
