//! The data of the page's charts.

use esker_lab_core::figures::three_digits;
use esker_lab_core::rate::POINTS_AN_INTERVAL;
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

/// A run's rates as points: the end of each stretch of time, in seconds, and the rate in it.
struct Stretches {
    points: Vec<(f64, f64)>,
    /// Length of a stretch, in seconds; `None` if the one stretch is the whole run.
    each_s: Option<f64>,
}

/// What there is to draw of a run, the finer curve of a short one first. Never empty: a run that has neither curve nor
/// intervals, as in results of earlier versions, has an average.
fn stretches(row: &Row) -> Stretches {
    let from_zero = |points: &[(f64, f64)]| {
        let first = points.first().map(|point| (0.0, point.1));
        first.into_iter().chain(points.iter().copied()).collect()
    };
    if row.rate_curve.len() > 1 {
        return Stretches {
            points: from_zero(&row.rate_curve),
            each_s: Some(row.interval_s / f64::from(POINTS_AN_INTERVAL)),
        };
    }
    if row.interval_rates.len() > 1 {
        let ends = (1..).map(|i| f64::from(i) * row.interval_s);
        return Stretches {
            points: ends.zip(row.interval_rates.iter().copied()).collect(),
            each_s: Some(row.interval_s),
        };
    }
    let average = row.rate_curve.first().copied();
    Stretches {
        points: from_zero(&[average.unwrap_or((row.seconds, row.ops_per_s))]),
        each_s: None,
    }
}

/// How long the stretches are.
fn each(each_s: Option<f64>) -> String {
    each_s.map_or("average".into(), |s| format!("each {} s", three_digits(s)))
}

/// Rates over time, one line an engine, and what they are rates of; `None` if no run counts.
pub(super) fn rate_chart(anchor: &str, lines: &[&Line<'_>], engines: &[Engine]) -> Option<(Chart, String)> {
    let drawn: Vec<(&Line<'_>, Stretches)> = lines
        .iter()
        .filter_map(|l| Some((*l, stretches(l.typical()?))))
        .collect();
    let first = drawn.first()?.1.each_s;
    let alike = drawn.iter().all(|(_, s)| s.each_s == first);
    let about = match (alike, first) {
        (true, Some(_)) => format!("ops/s in {}", each(first)),
        (true, None) => "average ops/s: the runs were too short for more".to_owned(),
        (false, _) => "ops/s, of short runs in shorter intervals, as the names say".to_owned(),
    };
    let mut x: Vec<f64> = drawn
        .iter()
        .flat_map(|(_, s)| s.points.iter().map(|p| p.0))
        .collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    let series = drawn
        .iter()
        .map(|(line, stretches)| Series {
            label: match alike {
                true => line.label.clone(),
                false => format!("{} ({})", line.label, each(stretches.each_s)),
            },
            colour: colour_of(engines, &line.label),
            y: x.iter()
                .map(|at| {
                    let found = stretches.points.binary_search_by(|p| p.0.total_cmp(at)).ok()?;
                    stretches.points.get(found).map(|p| p.1)
                })
                .collect(),
        })
        .collect();
    let chart = Chart {
        id: format!("{anchor}-rate"),
        kind: "rate",
        x,
        series,
    };
    Some((chart, about))
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

#[cfg(test)]
mod tests {
    use super::*;
    use esker_lab_core::summary;

    fn row(engine: &str, curve: &[(f64, f64)], intervals: usize) -> Row {
        Row {
            engine: engine.into(),
            workload: "w".into(),
            ops: 1,
            seconds: 2.0,
            ops_per_s: 7.0,
            interval_s: 1.0,
            interval_rates: vec![5.0; intervals],
            rate_curve: curve.to_vec(),
            ..Row::default()
        }
    }

    fn chart(rows: &[Row]) -> (Chart, String) {
        let lines = summary::lines(rows);
        rate_chart("a", &lines.iter().collect::<Vec<_>>(), &[]).unwrap()
    }

    #[test]
    fn every_run_has_a_line_and_says_of_what() {
        let (chart, about) = chart(&[
            row("long", &[], 30),
            row("short", &[(0.1, 3.0), (0.2, 4.0)], 0),
            row("shortest", &[(0.05, 9.0)], 0),
            row("old", &[], 1),
        ]);
        assert!(about.contains("short runs"), "{about}");
        let labels: Vec<_> = chart.series.iter().map(|s| s.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "long (each 1.00 s)",
                "short (each 0.100 s)",
                "shortest (average)",
                "old (average)"
            ]
        );
        let points = |i: usize| -> Vec<(f64, f64)> {
            let y = chart.series[i].y.iter();
            chart
                .x
                .iter()
                .zip(y)
                .filter_map(|(x, y)| Some((*x, (*y)?)))
                .collect()
        };
        assert_eq!(points(0).len(), 30);
        assert_eq!(points(1), [(0.0, 3.0), (0.1, 3.0), (0.2, 4.0)]);
        assert_eq!(points(2), [(0.0, 9.0), (0.05, 9.0)]);
        assert_eq!(points(3), [(0.0, 7.0), (2.0, 7.0)]);
    }

    #[test]
    fn lines_of_one_kind_say_it_once() {
        let (chart, about) = chart(&[row("a", &[], 30), row("b", &[], 20)]);
        assert_eq!(
            (about.as_str(), chart.series[0].label.as_str()),
            ("ops/s in each 1.00 s", "a")
        );
        let failed = Row {
            errors: 1,
            ..row("a", &[], 30)
        };
        let rows = [failed];
        assert!(rate_chart("a", &summary::lines(&rows).iter().collect::<Vec<_>>(), &[]).is_none());
    }
}
