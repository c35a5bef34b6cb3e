//! The table of a run in a database server.

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::Run;
use esker_lab_core::{size, summary};

use super::{WRITER, aligned, lead, or_dash, plus_minus, times};

/// What the columns mean that do not say it themselves.
pub const LEGEND: &str = "\
Rates are queries a second (`load`, `insert-load`: rows; `full-scan`: rows looked at); p99 is of what sysbench's script does once, which
may be a transaction. CPU is the server's, all threads. Figures for each operation count what was left to do behind writes; `reads` are
those of the device, `written` includes both logs.
";

const HEAD: [&str; 13] = [
    "test",
    "engine",
    "ops/s",
    "±",
    "to MyRocks",
    "to InnoDB",
    "p99",
    "CPU us/op",
    "reads/op",
    "read B/op",
    "written B/op",
    "size",
    "memory",
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
        cells.extend([
            plus_minus(&line, |r| r.ops_per_s),
            times(line.ratio.map(|(ratio, _)| ratio)),
            times(line.innodb_ratio),
            or_dash(line.median(|r| r.p99_us), micros),
            or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
            or_dash(
                line.median(|r| r.device_reads_per_op.unwrap_or(0.0)),
                three_digits,
            ),
            or_dash(line.median(|r| r.read_bytes_per_op), count),
            or_dash(line.median(|r| r.write_bytes_per_op_settled), count),
            or_dash(line.median(|r| r.db_bytes as f64), size::display),
            or_dash(line.median(|r| r.rss_bytes as f64), size::display),
        ]);
        rows.push(cells);
        if let Some(rows_per_s) = line.writes_per_s() {
            let p99 = or_dash(line.median(|r| r.write_p99_us), micros);
            rows.push(
                ["", WRITER, &count(rows_per_s), "", "", "", &p99]
                    .map(str::to_owned)
                    .into(),
            );
        }
    }
    aligned(&HEAD, 2, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_lab_core::schema::Row;

    #[test]
    fn engines_stand_beside_both_peers() {
        let row = |engine: &str, ops_per_s: f64| Row {
            engine: engine.into(),
            workload: "queries-1000".into(),
            ops: 10,
            ops_per_s,
            writes_per_s: 1000.0,
            cpu_us_per_op_settled: 44.0,
            ..Row::default()
        };
        let run = Run {
            rows: vec![
                row("esker", 3000.0),
                row("innodb", 2000.0),
                Row {
                    errors: 1,
                    ..row("myrocks", 1.0)
                },
                Row {
                    repeat: 1,
                    ..row("myrocks", 1500.0)
                },
            ],
            ..Run::default()
        };
        let text = results(&run);
        let line = text.lines().find(|l| l.contains("esker")).unwrap();
        for figure in ["3,000", "2.00x", "1.50x", "44.0"] {
            assert!(line.contains(figure), "{figure}: {text}");
        }
        assert!(text.contains("1,500!"), "{text}");
        assert_eq!(text.matches(WRITER).count(), 3, "{text}");
    }
}
