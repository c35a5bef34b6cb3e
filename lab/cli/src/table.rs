//! Results as aligned text.

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::{Row, Run};
use esker_lab_core::{published, size, summary};

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
        let test = if line.workload == previous {
            ""
        } else {
            line.workload
        };
        previous = line.workload;
        let published = published::flash(line.workload).and_then(|p| {
            let engine = line.rows.first()?.engine.as_str();
            let figure = match engine {
                "rocksdb" => p.rocksdb,
                "leveldb" => p.leveldb,
                _ => return None,
            };
            Some(format!("{}/s", count(figure.ops_per_s)))
        });
        let mut cells = vec![test.to_owned(), line.label.clone()];
        let Some(ops_per_s) = line.median(|r| r.ops_per_s) else {
            cells.push("FAILED".into());
            cells.extend((3..head.len() - 1).map(|_| "-".to_owned()));
            cells.push(published.unwrap_or_default());
            rows.push(cells);
            continue;
        };
        let marked = |row: &Row| row.capped || row.partial;
        let mark = if line.good().any(marked) { "*" } else { "" };
        let failed = if line.failed() { "!" } else { "" };
        cells.extend([
            format!("{}{mark}{failed}", count(ops_per_s)),
            line.spread(|r| r.ops_per_s)
                .map_or("-".into(), |s| format!("{:.0}%", s * 100.0)),
            line.ratio.map_or("-".into(), |(ratio, _)| {
                format!(
                    "{}x{}",
                    three_digits(ratio),
                    if line.is_baseline { " best" } else { "" }
                )
            }),
            or_dash(line.median(|r| r.p99_us), micros),
            or_dash(line.median(|r| r.slowest_interval_ratio), |v| format!("{v:.2}")),
            or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
            or_dash(line.median(|r| r.write_amplification), |v| format!("{v:.2}x")),
            or_dash(line.median(|r| r.settle_seconds), |v| format!("{v:.1} s")),
            or_dash(line.median(|r| r.db_bytes as f64), size::display),
            published.unwrap_or_default(),
        ]);
        rows.push(cells);
    }
    aligned(&head, 2, &rows)
}

/// What going through the drop-in libraries costs; empty where none ran beside the engine itself.
pub fn dropin(run: &Run) -> String {
    let head = ["test", "drop-in", "native", "to native", "CPU us/op more"];
    let lines = summary::lines(&run.rows);
    let mut previous = "";
    let rows: Vec<Vec<String>> = lines
        .iter()
        .filter_map(|line| {
            let native = line.native.as_ref()?;
            let test = std::mem::replace(&mut previous, line.workload);
            Some(vec![
                if test == line.workload { "" } else { line.workload }.to_owned(),
                line.label.clone(),
                native.label.clone(),
                format!("{}x", three_digits(native.ratio)),
                format!("{:+.2}", native.cpu_us_per_op),
            ])
        })
        .collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "The drop-in libraries beside the engine without them (memory is divided as the peers divide it, not as \
             the engine's own plan does)\n{}\n",
            aligned(&head, 3, &rows)
        ),
    }
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
        assert!(text.contains("0.95") && text.contains("+0.25"), "{text}");
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
