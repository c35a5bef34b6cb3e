//! `esker-lab compare`: two result files, row by row.

use std::process::ExitCode;

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::{Row, Run};
use esker_lab_core::summary::{self, Line};
use esker_lab_core::{Error, Result};

use crate::args::CompareArgs;
use crate::table;

type Figure = fn(&Row) -> f64;

fn pair(before: &Line<'_>, after: &Line<'_>, figure: Figure, show: fn(f64) -> String) -> String {
    let show = |value: Option<f64>| value.map_or("-".into(), show);
    format!("{} → {}", show(before.median(figure)), show(after.median(figure)))
}

/// One line of the comparison up to its response times, and the rate of after over before.
fn rates(
    labels: [&str; 2],
    before: &Line<'_>,
    after: &Line<'_>,
    rate: Figure,
    p99_us: Figure,
) -> (Vec<String>, Option<f64>) {
    let (old, new) = (before.median(rate), after.median(rate));
    let ratio = old.filter(|&b| b > 0.0).zip(new).map(|(b, a)| a / b);
    let noise = [before, after]
        .iter()
        .filter_map(|line| line.spread(rate))
        .fold(None, |most: Option<f64>, s| Some(most.map_or(s, |m| m.max(s))));
    let cells = vec![
        labels[0].to_owned(),
        labels[1].to_owned(),
        old.map_or("failed".into(), count),
        new.map_or("failed".into(), count),
        ratio.map_or("-".into(), |r| format!("{:+.1}%", (r - 1.0) * 100.0)),
        noise.map_or("-".into(), |s| format!("±{:.0}%", s * 100.0)),
        pair(before, after, p99_us, micros),
    ];
    (cells, ratio)
}

/// One line of the comparison.
fn row(before: &Line<'_>, after: &Line<'_>) -> (Vec<String>, Option<f64>) {
    let labels = [after.workload, &after.label];
    let (mut cells, ratio) = rates(labels, before, after, |r| r.ops_per_s, |r| r.p99_us);
    cells.extend([
        pair(before, after, |r| r.cpu_us_per_op_settled, three_digits),
        pair(before, after, |r| r.write_amplification, three_digits),
        pair(before, after, |r| r.slowest_interval_ratio, three_digits),
    ]);
    (cells, ratio)
}

/// The line of a mixed workload's writer, under that of its readers; `None` where nobody wrote beside.
fn writer(before: &Line<'_>, after: &Line<'_>) -> Option<(Vec<String>, Option<f64>)> {
    let writes: Figure = |r| r.writes_per_s;
    after.writes_per_s()?;
    let labels = ["", table::WRITER];
    Some(rates(labels, before, after, writes, |r| r.write_p99_us))
}

pub fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let (before, after) = (Run::read(&args.before)?, Run::read(&args.after)?);
    let (before_lines, after_lines) = (summary::lines(&before.rows), summary::lines(&after.rows));
    let head = [
        "test",
        "engine",
        "before",
        "after",
        "ops/s",
        "noise",
        "p99",
        "CPU us/op",
        "write amp",
        "slowest/avg",
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut fallen = Vec::new();
    let mut unmatched = Vec::new();
    let mut previous = "";
    for line in &after_lines {
        let Some(old) = before_lines
            .iter()
            .find(|b| b.workload == line.workload && b.label == line.label)
        else {
            unmatched.push(format!("{} {}", line.workload, line.label));
            continue;
        };
        let (mut cells, ratio) = row(old, line);
        if line.workload == previous {
            cells[0] = String::new();
        }
        previous = line.workload;
        let fell = |ratio: Option<f64>| {
            args.fail_below
                .is_some_and(|percent| ratio.is_none_or(|r| r < 1.0 - percent / 100.0))
        };
        if fell(ratio) {
            fallen.push(format!("{} {}", line.workload, line.label));
        }
        rows.push(cells);
        if let Some((cells, ratio)) = writer(old, line) {
            // Without a ratio it wrote nothing before, or the line above failed.
            if ratio.is_some() && fell(ratio) {
                fallen.push(format!("{} {} (writer)", line.workload, line.label));
            }
            rows.push(cells);
        }
    }
    if rows.is_empty() {
        return Err(Error::usage("the two files have no row in common"));
    }
    print!("{}", table::aligned(&head, 2, &rows));
    if before.machine != after.machine {
        println!(
            "\nThe machines differ: {} / {}",
            before.machine.cpu, after.machine.cpu
        );
    }
    if before.settings != after.settings {
        println!(
            "\nThe settings differ: compare with care.\n  {:?}\n  {:?}",
            before.settings, after.settings
        );
    }
    if !unmatched.is_empty() {
        println!("\nOnly in the later file: {}", unmatched.join(", "));
    }
    if fallen.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("fell too far: {}", fallen.join(", "));
    Ok(ExitCode::FAILURE)
}
