//! From rows to lines: repetitions become medians, and engines are compared with the best RocksDB, pair by pair; in a server
//! with MyRocks, which is RocksDB there, and with InnoDB.
//!
//! Transactions are compared with RocksDB's of their kind, those with locks with locks, optimistic ones with optimistic ones;
//! and what a commit costs with what a plain write costs the same engine.

use crate::schema::Row;
use crate::stats::{median, spread};

/// The engine that ratios are taken to, by its own name and by that in a server.
pub const BASELINES: [&str; 2] = ["rocksdb", "myrocks"];

/// The other engine of a server.
pub const INNODB: &str = "innodb";

/// The engine behind the drop-in libraries, …
pub const NATIVE: &str = "esker";

/// … and how the names of engines begin that run through one of them.
pub const DROPIN_PREFIX: &str = "dropin-";

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
    /// The same of the rows a second of a mixed workload's writer, in the same runs; `None` in other workloads.
    pub writes_ratio: Option<(f64, f64)>,
    /// In a server: throughput over that of InnoDB in the same repetition, the median.
    pub innodb_ratio: Option<f64>,
    /// The best RocksDB of its workload, that ratios are taken to.
    pub is_baseline: bool,
    /// For a drop-in library: what it costs to go through it.
    pub native: Option<Native>,
    /// For transactions that write: processor time of a commit over that of a plain write of the same engine, settling
    /// included, the median over the repetitions. `None` where no plain writes were measured.
    pub plain_cpu_ratio: Option<f64>,
}

/// A drop-in library beside the engine that is behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Native {
    /// The engine's line, of the same way of I/O where there is one.
    pub label: String,
    /// Its throughput.
    pub ops_per_s: f64,
    /// Throughput through the library over that without it: the median over the repetitions.
    pub ratio: f64,
    /// The same of the rows a second of a mixed workload's writer; `None` in other workloads.
    pub writes_ratio: Option<f64>,
    /// The engine's processor time an operation, settling included, in microseconds.
    pub cpu_us_per_op: f64,
    /// Processor time of an operation through the library over that without it: the median over the repetitions; `None`
    /// where none was measured.
    pub cpu_ratio: Option<f64>,
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

    /// Rows a second of a mixed workload's writer: the median, which is zero where it was starved; `None` in other
    /// workloads.
    pub fn writes_per_s(&self) -> Option<f64> {
        let mixed = self.rows.iter().any(|row| row.has_writer());
        self.median(|row| row.writes_per_s).filter(|_| mixed)
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

    /// How its transactions keep out of each other's way; empty without.
    pub fn control(&self) -> &'a str {
        // A worker that died did not get to say it.
        let said = self.rows.iter().map(|row| row.control.as_str());
        said.max_by_key(|control| control.len()).unwrap_or_default()
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
                writes_ratio: None,
                innodb_ratio: None,
                is_baseline: false,
                native: None,
                plain_cpu_ratio: None,
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
    let mut kinds: Vec<(&str, &str)> = lines.iter().map(|line| (line.workload, line.control())).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let is_of_kind = |line: &Line<'_>| (line.workload, line.control()) == kind;
        let best = lines
            .iter()
            .enumerate()
            .filter(|(_, l)| is_of_kind(l) && l.rows.iter().all(|r| BASELINES.contains(&r.engine.as_str())))
            .filter_map(|(i, l)| Some((i, l.median(|r| r.ops_per_s)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, _)) = best else {
            continue;
        };
        lines[best].is_baseline = true;
        let baseline: Vec<&Row> = lines[best].good().collect();
        for line in lines.iter_mut().filter(|l| is_of_kind(l)) {
            line.ratio = ratio(line, &baseline, |r| r.ops_per_s);
            line.writes_ratio = ratio(line, &baseline, |r| r.writes_per_s);
        }
    }
    for i in 0..lines.len() {
        lines[i].innodb_ratio = innodb_ratio(&lines, &lines[i]);
        lines[i].native = native(&lines, &lines[i]);
        lines[i].plain_cpu_ratio = plain_cpu_ratio(&lines, &lines[i]);
    }
    lines
}

/// A figure over the baseline's, of the repetitions that both have. A baseline of zero has no ratio.
fn pairs(line: &Line<'_>, baseline: &[&Row], figure: fn(&Row) -> f64) -> Vec<f64> {
    line.good()
        .filter_map(|row| {
            let pair = baseline.iter().find(|b| b.repeat == row.repeat)?;
            (figure(pair) > 0.0).then(|| figure(row) / figure(pair))
        })
        .collect()
}

/// The median of the [`pairs`] and their spread.
fn ratio(line: &Line<'_>, baseline: &[&Row], figure: fn(&Row) -> f64) -> Option<(f64, f64)> {
    let pairs = pairs(line, baseline, figure);
    if let Some(middle) = median(&pairs) {
        return Some((middle, spread(&pairs).unwrap_or(0.0)));
    }
    // No repetition has both: better an unpaired ratio than none.
    let of_baseline = median(&baseline.iter().map(|row| figure(row)).collect::<Vec<_>>())?;
    let of_line = line.median(figure)?;
    (of_baseline > 0.0).then(|| (of_line / of_baseline, 0.0))
}

/// Throughput over that of the server's other engine.
fn innodb_ratio(lines: &[Line<'_>], line: &Line<'_>) -> Option<f64> {
    let of_innodb =
        |l: &&Line<'_>| l.workload == line.workload && l.rows.iter().all(|row| row.engine == INNODB);
    let baseline: Vec<&Row> = lines.iter().find(of_innodb)?.good().collect();
    ratio(line, &baseline, |r| r.ops_per_s).map(|(middle, _)| middle)
}

/// What a commit costs over what a plain write of the same engine, set up the same way, costs.
fn plain_cpu_ratio(lines: &[Line<'_>], line: &Line<'_>) -> Option<f64> {
    let plain = line.good().next()?.plain_workload.as_str();
    let other = lines
        .iter()
        .find(|l| l.workload == plain && l.label == line.label)?;
    let baseline: Vec<&Row> = other.good().collect();
    median(&pairs(line, &baseline, |r| r.cpu_us_per_op_settled))
}

/// The engine's line that a drop-in library's is compared with: of the same workload, and through the page cache where
/// the library's is.
fn native(lines: &[Line<'_>], line: &Line<'_>) -> Option<Native> {
    let first = line.rows.first()?;
    if !first.engine.starts_with(DROPIN_PREFIX) {
        return None;
    }
    let wanted = if first.variant == "direct" {
        "default"
    } else {
        "buffered"
    };
    let of_engine =
        |l: &&Line<'_>| l.workload == line.workload && l.rows.first().is_some_and(|row| row.engine == NATIVE);
    let variant = |l: &Line<'_>| l.rows.first().map_or("", |row| row.variant.as_str()).to_owned();
    let other = lines
        .iter()
        .filter(of_engine)
        .find(|l| variant(l) == wanted)
        .or_else(|| lines.iter().find(of_engine))?;
    let baseline: Vec<&Row> = other.good().collect();
    let ratio_of = |figure: fn(&Row) -> f64| median(&pairs(line, &baseline, figure));
    Some(Native {
        label: other.label.clone(),
        ops_per_s: other.median(|r| r.ops_per_s)?,
        ratio: ratio_of(|r| r.ops_per_s)?,
        writes_ratio: ratio_of(|r| r.writes_per_s),
        cpu_us_per_op: other.median(|r| r.cpu_us_per_op_settled)?,
        cpu_ratio: ratio_of(|r| r.cpu_us_per_op_settled),
    })
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
    fn in_a_server_ratios_are_to_both_other_engines() {
        let rows = [
            row("esker", "", 1, 300.0),
            row("innodb", "", 1, 200.0),
            row("myrocks", "", 1, 150.0),
        ];
        let lines = lines(&rows);
        let ratios = |line: &Line<'_>| (line.ratio.map(|r| r.0), line.innodb_ratio);
        assert_eq!(ratios(&lines[0]), (Some(2.0), Some(1.5)));
        assert_eq!(ratios(&lines[2]), (Some(1.0), Some(0.75)));
        assert!(lines[2].is_baseline && !lines[1].is_baseline);
    }

    #[test]
    fn a_drop_in_library_is_compared_with_the_engine_behind_it() {
        let rows = [
            row("esker", "default", 1, 100.0),
            row("esker", "buffered", 1, 50.0),
            row("dropin-rocksdb", "direct", 1, 90.0),
            row("dropin-rocksdb", "buffered", 1, 45.0),
            row("dropin-leveldb", "default", 1, 25.0),
        ];
        let lines = lines(&rows);
        let native = |i: usize| lines[i].native.as_ref().map(|n| (n.label.as_str(), n.ratio));
        assert_eq!(native(0), None);
        assert_eq!(native(2), Some(("esker", 0.9)));
        assert_eq!(native(3), Some(("esker:buffered", 0.9)));
        assert_eq!(native(4), Some(("esker:buffered", 0.5)));
        assert!(super::lines(&rows[2..])[0].native.is_none());
    }

    #[test]
    fn processor_time_of_a_drop_in_library_is_compared_pair_by_pair() {
        let with_cpu = |engine, variant, repeat, cpu_us_per_op_settled| Row {
            cpu_us_per_op_settled,
            ..row(engine, variant, repeat, 100.0)
        };
        let rows = [
            with_cpu("esker", "default", 1, 4.0),
            with_cpu("dropin-rocksdb", "direct", 1, 5.0),
            with_cpu("esker", "default", 2, 8.0),
            with_cpu("dropin-rocksdb", "direct", 2, 8.0),
        ];
        let native = lines(&rows)[1].native.clone().unwrap();
        assert_eq!(native.cpu_ratio, Some(1.125), "the median of 1.25 and 1");
        assert_eq!(
            (native.cpu_us_per_op, native.ops_per_s, native.ratio),
            (6.0, 100.0, 1.0)
        );
        assert_eq!(native.writes_ratio, None);
    }

    #[test]
    fn the_writer_of_a_mixed_workload_is_compared_with_the_baselines_in_the_same_run() {
        let mixed = |engine, variant, repeat, ops_per_s, writes_per_s| Row {
            writes_per_s,
            ..row(engine, variant, repeat, ops_per_s)
        };
        let rows = [
            mixed("rocksdb", "direct", 1, 100.0, 20.0),
            // Writes faster, but the baseline is who reads fastest.
            mixed("rocksdb", "buffered", 1, 50.0, 40.0),
            mixed("esker", "default", 1, 200.0, 30.0),
            mixed("dropin-rocksdb", "direct", 1, 180.0, 15.0),
        ];
        let of_rows = lines(&rows);
        let ratios: Vec<_> = of_rows.iter().map(|l| l.writes_ratio.unwrap().0).collect();
        assert_eq!(ratios, [1.0, 2.0, 1.5, 0.75]);
        assert_eq!(of_rows[3].native.as_ref().unwrap().writes_ratio, Some(0.5));
        let no_writer = [row("rocksdb", "direct", 1, 1.0), row("esker", "default", 1, 1.0)];
        assert!(lines(&no_writer).iter().all(|l| l.writes_ratio.is_none()));
    }

    #[test]
    fn transactions_are_compared_with_those_of_their_kind() {
        let transaction = |engine, variant, control: &str, ops_per_s| Row {
            control: control.into(),
            ..row(engine, variant, 1, ops_per_s)
        };
        let rows = [
            transaction("esker", "locks", "locks", 300.0),
            transaction("esker", "optimistic", "optimistic", 900.0),
            transaction("rocksdb", "prepared", "locks", 100.0),
            transaction("rocksdb", "committed", "locks", 200.0),
            transaction("rocksdb", "optimistic", "optimistic", 600.0),
            transaction("memory", "locks", "locks", 400.0),
        ];
        let lines = lines(&rows);
        let ratios: Vec<_> = lines.iter().map(|l| l.ratio.unwrap().0).collect();
        assert_eq!(ratios, [1.5, 1.5, 0.5, 1.0, 1.0, 2.0]);
        let baselines: Vec<_> = lines.iter().map(|l| l.is_baseline).collect();
        assert_eq!(baselines, [false, false, false, true, true, false]);
    }

    #[test]
    fn a_commit_is_compared_with_a_plain_write_of_the_same_engine() {
        let with_cpu = |workload: &str, plain: &str, variant, repeat, cpu_us_per_op_settled| Row {
            workload: workload.into(),
            plain_workload: plain.into(),
            cpu_us_per_op_settled,
            ..row("esker", variant, repeat, 100.0)
        };
        let rows = [
            with_cpu("put", "", "locks", 1, 4.0),
            with_cpu("update", "put", "locks", 1, 6.0),
            with_cpu("put", "", "locks", 2, 2.0),
            with_cpu("update", "put", "locks", 2, 4.0),
            with_cpu("update", "put", "optimistic", 1, 4.0),
        ];
        let ratios: Vec<_> = lines(&rows).iter().map(|l| l.plain_cpu_ratio).collect();
        assert_eq!(
            ratios,
            [None, Some(1.75), None],
            "the median of 1.5 and 2; no plain writes"
        );
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
