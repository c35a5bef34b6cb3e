//! The table of a run of transactions.

use esker_lab_core::figures::{micros, three_digits};
use esker_lab_core::schema::{Row, Run};
use esker_lab_core::summary;

use super::{aligned, lead, or_dash, plus_minus, times, to_baseline};

/// What the columns mean that do not say it themselves.
pub const LEGEND: &str = "\
An operation is a committed transaction, or a put without one. Ratios are to the best RocksDB of the same kind: with locks
to locks, optimistic to optimistic. `CPU to a put`: processor time of a commit over that of a put of the same engine.
Conflicts, deadlocks and timeouts, each rolled back and run again, are per thousand commits.
";

const HEAD: [&str; 14] = [
    "test",
    "engine",
    "ops/s",
    "±",
    "to RocksDB",
    "p50",
    "p99",
    "CPU us/op",
    "CPU to a put",
    "conflicts",
    "deadlocks",
    "timeouts",
    "syncs/op",
    "write amp",
];

/// The run's table.
pub fn results(run: &Run) -> String {
    let mut rows = Vec::new();
    let mut previous = "";
    for line in summary::lines(&run.rows) {
        let mut cells = match lead(&line, &mut previous, HEAD.len(), |row| row.partial) {
            Ok(cells) => cells,
            Err(failed) => {
                rows.push(failed);
                continue;
            }
        };
        let each = |count: fn(&Row) -> u64| {
            let of_thousand = line.median(|r| count(r) as f64 * 1e3 / r.ops as f64);
            or_dash(of_thousand, three_digits)
        };
        cells.extend([
            plus_minus(&line, |r| r.ops_per_s),
            to_baseline(&line),
            or_dash(line.median(|r| r.p50_us), micros),
            or_dash(line.median(|r| r.p99_us), micros),
            or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
            times(line.plain_cpu_ratio),
            each(|r| r.conflicts),
            each(|r| r.deadlocks),
            each(|r| r.timeouts),
            or_dash(line.median(|r| r.syncs_per_op.unwrap_or(0.0)), three_digits),
            or_dash(line.median(|r| r.write_amplification), |v| format!("{v:.2}x")),
        ]);
        rows.push(cells);
    }
    aligned(&HEAD, 2, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_stand_beside_puts_and_beside_rocksdb() {
        let row = |engine: &str, workload: &str, ops_per_s: f64, cpu: f64| Row {
            engine: engine.into(),
            variant: "locks".into(),
            workload: workload.into(),
            ops: 1_000,
            ops_per_s,
            cpu_us_per_op_settled: cpu,
            ..Row::default()
        };
        let commits = |engine: &str, ops_per_s: f64, cpu: f64| Row {
            control: "locks".into(),
            plain_workload: "put".into(),
            conflicts: 20,
            deadlocks: 5,
            syncs_per_op: Some(0.25),
            ..row(engine, "update", ops_per_s, cpu)
        };
        let run = Run {
            rows: vec![
                row("esker", "put", 200_000.0, 4.0),
                commits("rocksdb", 60_000.0, 12.0),
                commits("esker", 90_000.0, 6.0),
                Row {
                    errors: 1,
                    ..commits("memory", 1.0, 1.0)
                },
            ],
            ..Run::default()
        };
        let text = results(&run);
        let line = |engine: &str, rate: &str| {
            let found = text.lines().find(|l| l.contains(engine) && l.contains(rate));
            found.unwrap_or_else(|| panic!("{engine}: {text}")).to_owned()
        };
        let esker = line("esker:locks", "90,000");
        for figure in ["1.50x", "6.00", "20.0", "5.00", "0.250"] {
            assert!(esker.contains(figure), "{figure}: {text}");
        }
        // Twice: against RocksDB, and against the put.
        assert_eq!(esker.matches("1.50x").count(), 2, "{text}");
        assert!(line("rocksdb", "60,000").contains("best"), "{text}");
        line("memory", "FAILED");
    }
}
