//! Results as aligned text.

pub mod server;
pub mod transactions;

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::{Row, Run};
use esker_lab_core::summary::{self, Line};
use esker_lab_core::{published, size};

/// A table: the first columns left-aligned, the others right-aligned, two spaces between, a rule under the head.
pub fn aligned(head: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain([head[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, &width))| {
                if i < left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut head.iter().copied());
    text.push_str(&line(
        &mut widths
            .iter()
            .map(|&w| "─".repeat(w))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    ));
    let mut last = "";
    for row in rows {
        if !last.is_empty() && row.first().is_some_and(|first| !first.is_empty()) {
            text.push('\n');
        }
        last = row.first().map_or("", String::as_str);
        if last.is_empty() {
            last = " ";
        }
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.filter(|v| *v != 0.0).map_or("-".into(), show)
}

/// In the place of an engine's name, under it.
pub const WRITER: &str = "└ its writer, rows/s";

fn plus_minus(line: &Line<'_>, figure: fn(&Row) -> f64) -> String {
    line.spread(figure)
        .map_or("-".into(), |s| format!("{:.0}%", s * 100.0))
}

/// Throughput over the baseline's.
fn to_baseline(line: &Line<'_>) -> String {
    let best = if line.is_baseline { " best" } else { "" };
    line.ratio
        .map_or("-".into(), |(ratio, _)| format!("{}x{best}", three_digits(ratio)))
}

/// `2.50x`.
fn times(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |r| format!("{}x", three_digits(r)))
}

/// The first cells of a line: its test unless the line above has the same, its engine, its rate with a star if `marked` says so.
/// Where every repetition failed there is nothing to add: `Err` has all `columns` cells.
fn lead<'a>(
    line: &Line<'a>,
    previous: &mut &'a str,
    columns: usize,
    marked: fn(&Row) -> bool,
) -> std::result::Result<Vec<String>, Vec<String>> {
    let above = std::mem::replace(previous, line.workload);
    let test = if above == line.workload { "" } else { line.workload };
    let mut cells = vec![test.to_owned(), line.label.clone()];
    match line.median(|r| r.ops_per_s) {
        Some(ops_per_s) => {
            let mark = if line.good().any(marked) { "*" } else { "" };
            let failed = if line.failed() { "!" } else { "" };
            cells.push(format!("{}{mark}{failed}", count(ops_per_s)));
            Ok(cells)
        }
        None => {
            cells.push("FAILED".into());
            cells.resize(columns, "-".into());
            Err(cells)
        }
    }
}

/// A mixed workload's writer: the first columns of the run's table, under the readers'.
fn writer(line: &Line<'_>) -> Option<Vec<String>> {
    let rows_per_s = line.writes_per_s()?;
    Some(vec![
        String::new(),
        WRITER.into(),
        count(rows_per_s),
        plus_minus(line, |r| r.writes_per_s),
        times(line.writes_ratio.map(|(ratio, _)| ratio)),
        or_dash(line.median(|r| r.write_p99_us), micros),
    ])
}

/// The run's table, with the report's own figures beside.
pub fn results(run: &Run) -> String {
    let head = [
        "test",
        "engine",
        "ops/s",
        "±",
        "to RocksDB",
        "p99",
        "slowest/avg",
        "CPU us/op",
        "write amp",
        "settle",
        "size",
        "report 004 (2013)",
    ];
    let mut rows = Vec::new();
    let mut previous = "";
    for line in summary::lines(&run.rows) {
        let published = published::flash(line.workload).and_then(|p| {
            let engine = line.rows.first()?.engine.as_str();
            let figure = match engine {
                "rocksdb" => p.rocksdb,
                "leveldb" => p.leveldb,
                _ => return None,
            };
            Some(format!("{}/s", count(figure.ops_per_s)))
        });
        let marked = |row: &Row| row.capped || row.partial;
        let mut cells = match lead(&line, &mut previous, head.len() - 1, marked) {
            Ok(cells) => cells,
            Err(mut failed) => {
                failed.push(published.unwrap_or_default());
                rows.push(failed);
                continue;
            }
        };
        cells.extend([
            plus_minus(&line, |r| r.ops_per_s),
            to_baseline(&line),
            or_dash(line.median(|r| r.p99_us), micros),
            or_dash(line.median(|r| r.slowest_interval_ratio), |v| format!("{v:.2}")),
            or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
            or_dash(line.median(|r| r.write_amplification), |v| format!("{v:.2}x")),
            or_dash(line.median(|r| r.settle_seconds), |v| format!("{v:.1} s")),
            or_dash(line.median(|r| r.db_bytes as f64), size::display),
            published.unwrap_or_default(),
        ]);
        rows.push(cells);
        rows.extend(writer(&line));
    }
    aligned(&head, 2, &rows)
}

/// What going through the drop-in libraries costs; empty where none ran beside the engine itself.
pub fn dropin(run: &Run) -> String {
    let head = [
        "test",
        "drop-in",
        "native",
        "ops/s",
        "native",
        "ratio",
        "CPU us/op",
        "native",
        "ratio",
    ];
    let lines = summary::lines(&run.rows);
    let mut previous = "";
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in &lines {
        let Some(native) = &line.native else { continue };
        let test = std::mem::replace(&mut previous, line.workload);
        rows.push(vec![
            if test == line.workload { "" } else { line.workload }.to_owned(),
            line.label.clone(),
            native.label.clone(),
            or_dash(line.median(|r| r.ops_per_s), count),
            count(native.ops_per_s),
            times(Some(native.ratio)),
            or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
            three_digits(native.cpu_us_per_op),
            times(native.cpu_ratio),
        ]);
        if let Some(ratio) = native.writes_ratio {
            rows.push(
                ["", WRITER, "", "", "", &times(Some(ratio))]
                    .map(str::to_owned)
                    .into(),
            );
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "The drop-in libraries beside the engine without them: look at the ratio of CPU us/op, which varies \
         least (memory is divided as the peers divide it, not as the engine's own plan does)\n{}\n",
        aligned(&head, 3, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let table = aligned(
            &["test", "ops"],
            1,
            &[
                vec!["a".into(), "1".into()],
                vec![String::new(), "22".into()],
                vec!["longer".into(), "333".into()],
            ],
        );
        assert_eq!(
            table,
            "test    ops\n──────  ───\na         1\n         22\n\nlonger  333\n"
        );
    }

    #[test]
    fn a_drop_in_library_stands_beside_the_engine() {
        let row = |engine: &str, variant: &str, ops_per_s: f64, cpu: f64| Row {
            engine: engine.into(),
            variant: variant.into(),
            workload: "overwrite".into(),
            ops: 1,
            ops_per_s,
            cpu_us_per_op_settled: cpu,
            ..Row::default()
        };
        let mut run = Run {
            rows: vec![row("dropin-rocksdb", "direct", 95.0, 5.25)],
            ..Run::default()
        };
        assert_eq!(dropin(&run), "");
        run.rows.push(row("esker", "default", 100.0, 5.0));
        let text = dropin(&run);
        for figure in ["overwrite", "esker", "0.950x", "5.25", "5.00", "1.05x"] {
            assert!(text.contains(figure), "{figure}: {text}");
        }
        assert!(!text.contains(WRITER), "nobody wrote beside: {text}");
    }

    #[test]
    fn the_writer_stands_under_the_readers() {
        let row = |engine: &str, ops_per_s: f64, writes_per_s: f64| Row {
            engine: engine.into(),
            workload: "readwhilewriting".into(),
            ops: 1,
            ops_per_s,
            writes_per_s,
            write_p99_us: 1234.0,
            ..Row::default()
        };
        let run = Run {
            rows: vec![row("rocksdb", 1e5, 20_000.0), row("esker", 2e5, 50_000.0)],
            ..Run::default()
        };
        let text = results(&run);
        let lines: Vec<&str> = text.lines().collect();
        let readers = lines.iter().position(|line| line.contains("esker")).unwrap();
        assert!(lines[readers].contains("200,000") && lines[readers].contains("2.00x"));
        let writer = lines[readers + 1];
        for figure in [WRITER, "50,000", "2.50x", "1.23 ms"] {
            assert!(writer.contains(figure), "{figure}: {text}");
        }
        let starved = Run {
            rows: vec![row("esker", 1.0, 0.0)],
            ..Run::default()
        };
        assert!(
            results(&starved).contains(WRITER),
            "a writer that never came to write is shown"
        );
        let without = Run {
            rows: vec![Row {
                workload: "readrandom".into(),
                ..row("esker", 1.0, 0.0)
            }],
            ..Run::default()
        };
        assert!(!results(&without).contains(WRITER));
    }

    #[test]
    fn failed_rows_say_so() {
        let failed = Row {
            engine: "rocksdb".into(),
            workload: "overwrite".into(),
            errors: 1,
            ..Row::default()
        };
        let run = Run {
            rows: vec![failed],
            ..Run::default()
        };
        let text = results(&run);
        assert!(text.contains("FAILED") && text.contains("17,764/s"), "{text}");
    }
}
