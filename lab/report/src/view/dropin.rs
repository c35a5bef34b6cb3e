//! What the drop-in libraries cost: each beside the engine without them.

use esker_lab_core::figures::{count, three_digits};
use esker_lab_core::summary::Line;
use serde::Serialize;

use super::{Engine, colour_of, or_dash};

/// A test through a drop-in library.
#[derive(Serialize)]
pub(crate) struct DropinLine {
    workload: String,
    anchor: String,
    label: String,
    colour: usize,
    native: String,
    ops_per_s: String,
    native_ops_per_s: String,
    ratio: String,
    cpu: String,
    native_cpu: String,
    cpu_ratio: String,
}

/// All of a run; empty where no library ran beside the engine itself.
pub(super) fn lines(id: &str, lines: &[Line<'_>], engines: &[Engine]) -> Vec<DropinLine> {
    let times = |ratio: Option<f64>| or_dash(ratio, |r| format!("{}×", three_digits(r)));
    lines
        .iter()
        .filter_map(|line| {
            let native = line.native.as_ref()?;
            Some(DropinLine {
                workload: line.workload.to_owned(),
                anchor: format!("{id}-{}", line.workload),
                label: line.label.clone(),
                colour: colour_of(engines, &line.label),
                native: native.label.clone(),
                ops_per_s: or_dash(line.median(|r| r.ops_per_s), count),
                native_ops_per_s: count(native.ops_per_s),
                ratio: times(Some(native.ratio)),
                cpu: or_dash(line.median(|r| r.cpu_us_per_op_settled), three_digits),
                native_cpu: three_digits(native.cpu_us_per_op),
                cpu_ratio: times(native.cpu_ratio),
            })
        })
        .collect()
}
