//! The data of the page's charts.

use esker_lab_core::schema::Row;
use esker_lab_core::summary::Line;
use serde::Serialize;

use super::{Engine, colour_of};

/// A chart's data.
#[derive(Serialize)]
pub(crate) struct Chart {
    pub id: String,
    kind: &'static str,
    /// Seconds, or percentiles.
    x: Vec<f64>,
    series: Vec<Series>,
}

#[derive(Serialize)]
struct Series {
    label: String,
    colour: usize,
    y: Vec<Option<f64>>,
}

/// Intervals that make a line over time.
const INTERVALS_MIN: usize = 2;

/// Rates over time, one line an engine; `None` if no engine took long enough.
pub(super) fn rate_chart(anchor: &str, lines: &[&Line<'_>], engines: &[Engine]) -> Option<Chart> {
    let rows: Vec<(&Line<'_>, &Row)> = lines
        .iter()
        .filter_map(|l| Some((*l, l.typical()?)))
        .filter(|(_, r)| r.interval_rates.len() >= INTERVALS_MIN)
        .collect();
    let longest = rows.iter().map(|(_, r)| r.interval_rates.len()).max()?;
    let interval_s = rows.first()?.1.interval_s;
    Some(Chart {
        id: format!("{anchor}-rate"),
        kind: "rate",
        x: (1..=longest).map(|i| i as f64 * interval_s).collect(),
        series: rows
            .iter()
            .map(|(line, row)| Series {
                label: line.label.clone(),
                colour: colour_of(engines, &line.label),
                y: (0..longest).map(|i| row.interval_rates.get(i).copied()).collect(),
            })
            .collect(),
    })
}

/// Latency by percentile, one line an engine.
pub(super) fn latency_chart(anchor: &str, lines: &[&Line<'_>], engines: &[Engine]) -> Option<Chart> {
    let rows: Vec<(&Line<'_>, &Row)> = lines
        .iter()
        .filter_map(|l| Some((*l, l.typical()?)))
        .filter(|(_, r)| r.latency_curve.len() >= 3)
        .collect();
    let mut x: Vec<f64> = rows
        .iter()
        .flat_map(|(_, r)| r.latency_curve.iter().map(|p| p.0))
        .filter(|p| *p < 100.0)
        .collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    if x.len() < 2 {
        return None;
    }
    let series = rows
        .iter()
        .map(|(line, row)| Series {
            label: line.label.clone(),
            colour: colour_of(engines, &line.label),
            // A logarithmic axis has no place for zero.
            y: x.iter()
                .map(|at| {
                    row.latency_curve
                        .iter()
                        .find(|p| p.0 == *at)
                        .map(|p| p.1.max(0.01))
                })
                .collect(),
        })
        .collect();
    Some(Chart {
        id: format!("{anchor}-latency"),
        kind: "latency",
        x,
        series,
    })
}
