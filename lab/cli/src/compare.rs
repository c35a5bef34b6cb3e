//! `esker-lab compare`: two result files, row by row.

use std::process::ExitCode;

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::schema::Run;
use esker_lab_core::summary::{self, Line};
use esker_lab_core::{Error, Result};

use crate::args::CompareArgs;
use crate::table;

/// One line of the comparison, and the throughput of after over before.
fn row(before: &Line<'_>, after: &Line<'_>) -> (Vec<String>, Option<f64>) {
    let rate = |line: &Line<'_>| line.median(|r| r.ops_per_s);
    let ratio = rate(before).zip(rate(after)).map(|(b, a)| a / b);
    let pair = |figure: fn(&esker_lab_core::schema::Row) -> f64, show: fn(f64) -> String| {
        let show = |value: Option<f64>| value.map_or("-".into(), show);
        format!("{} → {}", show(before.median(figure)), show(after.median(figure)))
    };
    let noise = [before, after]
        .iter()
        .filter_map(|line| line.spread(|r| r.ops_per_s))
        .fold(None, |most: Option<f64>, s| Some(most.map_or(s, |m| m.max(s))));
    let cells = vec![
        after.workload.to_owned(),
        after.label.clone(),
        rate(before).map_or("failed".into(), count),
        rate(after).map_or("failed".into(), count),
        ratio.map_or("-".into(), |r| format!("{:+.1}%", (r - 1.0) * 100.0)),
        noise.map_or("-".into(), |s| format!("±{:.0}%", s * 100.0)),
        pair(|r| r.p99_us, micros),
        pair(|r| r.cpu_us_per_op_settled, three_digits),
        pair(|r| r.write_amplification, three_digits),
        pair(|r| r.slowest_interval_ratio, three_digits),
    ];
    (cells, ratio)
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
        if args
            .fail_below
            .is_some_and(|percent| ratio.is_none_or(|r| r < 1.0 - percent / 100.0))
        {
            fallen.push(format!("{} {}", line.workload, line.label));
        }
        rows.push(cells);
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
