//! The one writer of a mixed workload, beside the threads that read.

use esker_lab_core::figures::{count, micros, three_digits};
use esker_lab_core::summary::Line;
use serde::Serialize;

use super::{Engine, colour_of, is_yardstick};

/// One engine's writer.
#[derive(Serialize)]
pub(crate) struct WriterView {
    label: String,
    colour: usize,
    rows_per_s: String,
    spread: String,
    ratio: String,
    p99: String,
    /// Length of the bar, in percent of the longest.
    bar: String,
}

/// To the best RocksDB (the one that read fastest), and to the engine behind a drop-in library.
fn ratios(line: &Line<'_>) -> String {
    let baseline = line
        .writes_ratio
        .map(|(ratio, _)| format!("{}×", three_digits(ratio)));
    let native = line.native.as_ref().and_then(|native| {
        Some(format!(
            "{}× of {}",
            three_digits(native.writes_ratio?),
            native.label
        ))
    });
    [baseline, native]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

/// The writers of a workload; empty where none writes beside.
pub(super) fn views(lines: &[&Line<'_>], engines: &[Engine]) -> Vec<WriterView> {
    let rates = lines.iter().filter(|l| !is_yardstick(&l.label));
    let longest = rates
        .filter_map(|l| l.writes_per_s())
        .fold(f64::MIN_POSITIVE, f64::max);
    lines
        .iter()
        .filter_map(|line| {
            let rate = line.writes_per_s()?;
            Some(WriterView {
                label: line.label.clone(),
                colour: colour_of(engines, &line.label),
                rows_per_s: count(rate),
                spread: line
                    .spread(|r| r.writes_per_s)
                    .map_or(String::new(), |s| format!("±{:.0} %", s * 100.0)),
                ratio: ratios(line),
                p99: line.median(|r| r.write_p99_us).map_or(String::new(), micros),
                bar: format!("{:.2}", (rate / longest * 100.0).min(100.0)),
            })
        })
        .collect()
}

/// `writer 50,000/s, 2.50×`; empty where none writes beside.
pub(super) fn in_short(line: &Line<'_>) -> String {
    let Some(rate) = line.writes_per_s() else {
        return String::new();
    };
    let ratio = line
        .writes_ratio
        .map_or(String::new(), |(ratio, _)| format!(", {}×", three_digits(ratio)));
    format!("writer {}/s{ratio}", count(rate))
}
