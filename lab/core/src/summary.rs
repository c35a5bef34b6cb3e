//! From rows to lines: repetitions become medians, and engines are compared with the best RocksDB, pair by pair.

use crate::schema::Row;
use crate::stats::{median, spread};

/// The engine that ratios are taken to.
pub const BASELINE: &str = "rocksdb";

/// All repetitions of one engine, set up one way, in one workload.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Workload's name.
    pub workload: &'a str,
    /// `rocksdb:direct`.
    pub label: String,
    /// All repetitions, failed ones included, by number.
    pub rows: Vec<&'a Row>,
    /// Throughput over that of the best RocksDB in the same repetition: median and spread. `None` without a RocksDB.
    pub ratio: Option<(f64, f64)>,
    /// The best RocksDB of its workload, that ratios are taken to.
    pub is_baseline: bool,
}

impl<'a> Line<'a> {
    /// The repetitions that count.
    pub fn good(&self) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().copied().filter(|row| row.is_good())
    }

    /// The median of a figure over the repetitions that count; `None` if none does.
    pub fn median(&self, figure: impl Fn(&Row) -> f64) -> Option<f64> {
        median(&self.good().map(figure).collect::<Vec<_>>())
    }

    /// Plus or minus, as a share of the median; `None` for a single repetition.
    pub fn spread(&self, figure: impl Fn(&Row) -> f64) -> Option<f64> {
        let figures: Vec<f64> = self.good().map(figure).collect();
        if figures.len() < 2 { None } else { spread(&figures) }
    }

    /// The repetition with the median throughput (the slower of the middle two), to draw.
    pub fn typical(&self) -> Option<&'a Row> {
        let mut rows: Vec<_> = self.good().collect();
        rows.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s));
        rows.get(rows.len().saturating_sub(1) / 2).copied()
    }

    /// Whether any repetition failed.
    pub fn failed(&self) -> bool {
        self.rows.iter().any(|row| row.errors > 0)
    }
}

/// The lines of `rows`, workloads and engines in the order in which they first appear.
pub fn lines(rows: &[Row]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows {
        let label = row.label();
        match lines
            .iter_mut()
            .find(|l| l.workload == row.workload && l.label == label)
        {
            Some(line) => line.rows.push(row),
            None => lines.push(Line {
                workload: &row.workload,
                label,
                rows: vec![row],
                ratio: None,
                is_baseline: false,
            }),
        }
    }
    // Workloads stay together even when engines alternate.
    let order: Vec<&str> = lines.iter().fold(Vec::new(), |mut order, line| {
        if !order.contains(&line.workload) {
            order.push(line.workload);
        }
        order
    });
    lines.sort_by_key(|line| order.iter().position(|w| *w == line.workload));
    for workload in order {
        let best = lines
            .iter()
            .enumerate()
            .filter(|(_, l)| l.workload == workload && l.rows.iter().all(|r| r.engine == BASELINE))
            .filter_map(|(i, l)| Some((i, l.median(|r| r.ops_per_s)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, best_ops_per_s)) = best else {
            continue;
        };
        lines[best].is_baseline = true;
        let baseline: Vec<&Row> = lines[best].good().collect();
        for line in lines.iter_mut().filter(|l| l.workload == workload) {
            let pairs: Vec<f64> = line
                .good()
                .filter_map(|row| {
                    let pair = baseline.iter().find(|b| b.repeat == row.repeat)?;
                    Some(row.ops_per_s / pair.ops_per_s)
                })
                .collect();
            line.ratio = match median(&pairs) {
                Some(middle) => Some((middle, spread(&pairs).unwrap_or(0.0))),
                // No repetition has both: better an unpaired ratio than none.
                None => line
                    .median(|r| r.ops_per_s / best_ops_per_s)
                    .map(|ratio| (ratio, 0.0)),
            };
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(engine: &str, variant: &str, repeat: u32, ops_per_s: f64) -> Row {
        Row {
            engine: engine.into(),
            variant: variant.into(),
            workload: "w".into(),
            repeat,
            ops: 1,
            ops_per_s,
            ..Row::default()
        }
    }

    #[test]
    fn ratios_are_taken_pair_by_pair_to_the_better_rocksdb() {
        let rows = [
            row("rocksdb", "buffered", 1, 50.0),
            row("rocksdb", "direct", 1, 100.0),
            row("esker", "default", 1, 150.0),
            row("rocksdb", "buffered", 2, 60.0),
            row("rocksdb", "direct", 2, 200.0),
            row("esker", "default", 2, 400.0),
        ];
        let lines = lines(&rows);
        let labels: Vec<_> = lines.iter().map(|l| l.label.as_str()).collect();
        assert_eq!(labels, ["rocksdb:buffered", "rocksdb:direct", "esker"]);
        assert!(lines[1].is_baseline && !lines[0].is_baseline);
        assert_eq!(lines[1].ratio, Some((1.0, 0.0)));
        let (ratio, plus_minus) = lines[2].ratio.unwrap();
        assert_eq!(ratio, 1.75, "the median of 1.5 and 2");
        assert!((plus_minus - 0.25 / 1.75).abs() < 1e-9);
    }

    #[test]
    fn failed_rows_count_for_nothing() {
        let mut bad = row("rocksdb", "direct", 1, 1e9);
        bad.errors = 1;
        let rows = [
            bad,
            row("rocksdb", "buffered", 1, 10.0),
            row("leveldb", "", 1, 5.0),
        ];
        let lines = lines(&rows);
        assert!(lines[0].failed() && lines[0].ratio.is_none() && lines[0].typical().is_none());
        assert_eq!(lines[2].ratio, Some((0.5, 0.0)));
    }

    #[test]
    fn without_a_rocksdb_there_is_no_ratio() {
        let rows = [row("leveldb", "", 1, 5.0)];
        assert!(lines(&rows)[0].ratio.is_none());
    }
}
