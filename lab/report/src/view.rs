//! What the page shows, out of what was measured.

use esker_lab_core::figures::{count, micros, three_digits, utc};
use esker_lab_core::published;
use esker_lab_core::schema::{Row, Run};
use esker_lab_core::size;
use esker_lab_core::summary::{self, Line};
use serde::Serialize;

mod charts;
mod dropin;
mod facts;
mod transactions;
mod writer;

pub(crate) use charts::Chart;
use charts::{latency_chart, rate_chart};
use dropin::DropinLine;
use facts::{facts, limits};
use transactions::TransactionLine;
use writer::WriterView;

/// Colours there are; the style sheet defines them for light and dark.
const COLOURS: usize = 8;

/// The page.
#[derive(Serialize)]
pub(crate) struct Page {
    pub title: String,
    pub figures: Vec<(&'static str, &'static str)>,
    pub runs: Vec<RunView>,
    /// For the script, not for the template.
    #[serde(skip)]
    pub charts: Vec<Chart>,
}

/// One result file.
#[derive(Serialize)]
pub(crate) struct RunView {
    id: String,
    title: String,
    date: String,
    partial: bool,
    facts: Vec<(String, String)>,
    limits: Vec<(String, String)>,
    notes: Vec<String>,
    command: String,
    engines: Vec<Engine>,
    report: Vec<ReportLine>,
    dropin: Vec<DropinLine>,
    transactions: Vec<TransactionLine>,
    workloads: Vec<Workload>,
}

/// An engine, set up one way, wherever it appears in a run.
#[derive(Serialize)]
pub(crate) struct Engine {
    label: String,
    version: String,
    colour: usize,
}

/// A line of the report's table: its two engines in 2013, ours beside them.
#[derive(Serialize)]
pub(crate) struct ReportLine {
    number: u32,
    title: String,
    anchor: String,
    rocksdb: String,
    rocksdb_text: String,
    leveldb: String,
    leveldb_text: String,
    leveldb_ratio: String,
    /// One for each engine of the run.
    ours: Vec<Cell>,
}

#[derive(Serialize)]
pub(crate) struct Cell {
    ops_per_s: String,
    ratio: String,
    /// Of a mixed workload: its writer's rows a second, and their ratio.
    writer: String,
    best: bool,
    failed: bool,
}

/// One test.
#[derive(Serialize)]
pub(crate) struct Workload {
    anchor: String,
    name: String,
    report_test: Option<u32>,
    lines: Vec<LineView>,
    /// Of a mixed workload: the one writer beside the threads that are measured.
    writers: Vec<WriterView>,
    has_baseline: bool,
    /// Ids of charts; empty when there is nothing to draw.
    rate_chart: String,
    latency_chart: String,
    /// What the rates are rates of.
    rate_about: String,
}

/// One engine in one test.
#[derive(Serialize)]
pub(crate) struct LineView {
    label: String,
    colour: usize,
    ops_per_s: String,
    spread: String,
    ratio: String,
    /// Length of the bar, in percent of the longest.
    bar: String,
    failed: bool,
    error: String,
    marks: String,
    figures: Vec<String>,
    settings: Vec<(String, String)>,
    stats: String,
    rerun: String,
    notes: Vec<String>,
}

/// Column heads of [`LineView::figures`].
const FIGURES: [(&str, &str); 14] = [
    ("MB/s", "key and value bytes, in millions a second"),
    ("p50", "median response time"),
    ("p99", "99th percentile of response times"),
    ("p99.9", "99.9th percentile of response times"),
    ("max", "longest response time"),
    ("slowest", "slowest interval over the average of all"),
    (
        "CPU us/op",
        "user and system time an operation, settling included",
    ),
    ("read B/op", "bytes from storage an operation"),
    ("written B/op", "bytes to storage an operation, settling included"),
    (
        "write amp",
        "bytes to storage over key and value bytes written, settling included",
    ),
    ("settle", "until background work was idle"),
    ("size", "database on disk at the end"),
    ("peak size", "largest size seen"),
    ("memory", "peak resident memory of the process"),
];

impl Page {
    pub fn new(runs: &[Run]) -> Page {
        let mut charts = Vec::new();
        let views: Vec<_> = runs
            .iter()
            .enumerate()
            .rev()
            .map(|(i, run)| RunView::new(i, run, &mut charts))
            .collect();
        let title = match views.as_slice() {
            [only] => only.title.clone(),
            _ => "Esker lab".to_owned(),
        };
        Page {
            title,
            figures: FIGURES.to_vec(),
            runs: views,
            charts,
        }
    }
}

/// A report's name for people.
fn suite_title(suite: &str) -> &str {
    match suite {
        "txn" => "Transactions",
        "sysbench" => "sysbench in MariaDB",
        "insert" => "Insert benchmark in MariaDB",
        _ => "Flash storage",
    }
}

/// Engines that are there to measure the lab itself. They are shown, and nothing is compared with them.
fn is_yardstick(label: &str) -> bool {
    let engine = label.split_once(':').map_or(label, |(engine, _)| engine);
    matches!(engine, "null" | "memory")
}

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.filter(|v| *v != 0.0).map_or("–".into(), show)
}

/// Engines in order of appearance, each with a colour of its own; Esker's is always the first.
fn engines(rows: &[Row]) -> Vec<Engine> {
    let mut engines: Vec<Engine> = Vec::new();
    let mut next = 1;
    for row in rows {
        let label = row.label();
        if engines.iter().any(|e| e.label == label) {
            continue;
        }
        let colour = if row.engine == "esker" && !engines.iter().any(|e| e.colour == 0) {
            0
        } else {
            next += 1;
            (next - 2) % (COLOURS - 1) + 1
        };
        engines.push(Engine {
            label,
            version: row.version.clone(),
            colour,
        });
    }
    engines
}

impl RunView {
    fn new(index: usize, run: &Run, charts: &mut Vec<Chart>) -> RunView {
        let id = format!("run{index}");
        let engines = engines(&run.rows);
        let lines = summary::lines(&run.rows);
        let mut names: Vec<&str> = Vec::new();
        for line in &lines {
            if !names.contains(&line.workload) {
                names.push(line.workload);
            }
        }
        let workloads: Vec<Workload> = names
            .iter()
            .map(|name| {
                let of_workload: Vec<&Line<'_>> = lines.iter().filter(|l| l.workload == *name).collect();
                Workload::new(&id, name, &of_workload, &engines, charts)
            })
            .collect();
        RunView {
            title: format!(
                "{}, {} scale",
                suite_title(&run.settings.suite),
                run.settings.scale
            ),
            date: utc(run.started_unix_s),
            partial: run.partial,
            facts: facts(run),
            limits: limits(run),
            notes: run.notes.clone(),
            command: run.command.clone(),
            report: report_lines(&id, &lines, &engines),
            dropin: dropin::lines(&id, &lines, &engines),
            transactions: transactions::lines(&id, &lines, &engines),
            engines,
            workloads,
            id,
        }
    }
}

fn report_lines(id: &str, lines: &[Line<'_>], engines: &[Engine]) -> Vec<ReportLine> {
    published::FLASH
        .iter()
        .filter(|p| lines.iter().any(|l| l.workload == p.workload))
        .map(|p| {
            let of_test: Vec<&Line<'_>> = lines.iter().filter(|l| l.workload == p.workload).collect();
            let rate = |line: &Line<'_>| line.median(|r| r.ops_per_s);
            let compared = of_test.iter().filter(|l| !is_yardstick(&l.label));
            let best = compared.filter_map(|l| rate(l)).fold(0.0, f64::max);
            let ours = engines
                .iter()
                .map(|engine| {
                    let line = of_test.iter().find(|l| l.label == engine.label);
                    let ops_per_s = line.and_then(|l| rate(l));
                    Cell {
                        ops_per_s: ops_per_s.map_or("–".into(), count),
                        ratio: line
                            .and_then(|l| l.ratio)
                            .map_or(String::new(), |(r, _)| format!("{}×", three_digits(r))),
                        writer: line.map_or(String::new(), |l| writer::in_short(l)),
                        best: ops_per_s == Some(best),
                        failed: line.is_some_and(|l| l.failed()),
                    }
                })
                .collect();
            ReportLine {
                number: p.number,
                title: p.title.to_owned(),
                anchor: format!("{id}-{}", p.workload),
                rocksdb: count(p.rocksdb.ops_per_s),
                rocksdb_text: p.rocksdb.text.to_owned(),
                leveldb: count(p.leveldb.ops_per_s),
                leveldb_text: p.leveldb.text.to_owned(),
                leveldb_ratio: format!("{}×", three_digits(p.leveldb.ops_per_s / p.rocksdb.ops_per_s)),
                ours,
            }
        })
        .collect()
}

fn colour_of(engines: &[Engine], label: &str) -> usize {
    engines.iter().find(|e| e.label == label).map_or(0, |e| e.colour)
}

impl Workload {
    fn new(
        id: &str,
        name: &str,
        lines: &[&Line<'_>],
        engines: &[Engine],
        charts: &mut Vec<Chart>,
    ) -> Workload {
        let anchor = format!("{id}-{name}");
        let longest = |lines: &mut dyn Iterator<Item = &&Line<'_>>| {
            lines
                .filter_map(|l| l.median(|r| r.ops_per_s))
                .fold(0.0, f64::max)
        };
        let longest = match longest(&mut lines.iter().filter(|l| !is_yardstick(&l.label))) {
            0.0 => longest(&mut lines.iter()),
            compared => compared,
        };
        let mut chart = |chart: Option<Chart>| {
            chart.map_or(String::new(), |chart| {
                let id = chart.id.clone();
                charts.push(chart);
                id
            })
        };
        let (rates, mut rate_about) = rate_chart(&anchor, lines, engines).unzip();
        if name.starts_with("bulkload-") {
            rate_about = rate_about.map(|about| about + "; the load, without what follows it");
        }
        Workload {
            rate_chart: chart(rates),
            latency_chart: chart(latency_chart(&anchor, lines, engines)),
            rate_about: rate_about.unwrap_or_default(),
            writers: writer::views(lines, engines),
            name: name.to_owned(),
            report_test: published::flash(name).map(|p| p.number),
            has_baseline: lines.iter().any(|l| l.is_baseline),
            lines: lines.iter().map(|l| LineView::new(l, engines, longest)).collect(),
            anchor,
        }
    }
}

impl LineView {
    fn new(line: &Line<'_>, engines: &[Engine], longest: f64) -> LineView {
        let ops_per_s = line.median(|r| r.ops_per_s);
        let bytes = |v: f64| size::display(v);
        let figure =
            |figure: fn(&Row) -> f64, show: &dyn Fn(f64) -> String| or_dash(line.median(figure), show);
        let shown = line.typical().or(line.rows.first().copied());
        let mut marks = Vec::new();
        if line.good().any(|r| r.capped) {
            marks.push("ended by the time cap");
        }
        if line.good().any(|r| r.partial) {
            marks.push("stopped early");
        }
        LineView {
            label: line.label.clone(),
            colour: colour_of(engines, &line.label),
            ops_per_s: ops_per_s.map_or("failed".into(), count),
            spread: line
                .spread(|r| r.ops_per_s)
                .map_or(String::new(), |s| format!("±{:.0} %", s * 100.0)),
            ratio: ratios(line),
            bar: format!(
                "{:.2}",
                ops_per_s.map_or(0.0, |v| (v / longest.max(f64::MIN_POSITIVE) * 100.0).min(100.0))
            ),
            failed: line.failed(),
            error: line
                .rows
                .iter()
                .flat_map(|r| r.error_messages.first())
                .next()
                .cloned()
                .unwrap_or_default(),
            marks: marks.join(", "),
            figures: vec![
                figure(|r| r.mb_per_s, &three_digits),
                figure(|r| r.p50_us, &micros),
                figure(|r| r.p99_us, &micros),
                figure(|r| r.p999_us, &micros),
                figure(|r| r.max_us, &micros),
                figure(|r| r.slowest_interval_ratio, &|v| format!("{v:.2}")),
                figure(|r| r.cpu_us_per_op_settled, &three_digits),
                figure(|r| r.read_bytes_per_op, &count),
                figure(|r| r.write_bytes_per_op_settled, &count),
                figure(|r| r.write_amplification, &|v| format!("{v:.2}×")),
                figure(|r| r.settle_seconds, &|v| format!("{v:.1} s")),
                figure(|r| r.db_bytes as f64, &bytes),
                figure(|r| r.peak_db_bytes as f64, &bytes),
                figure(|r| r.rss_bytes as f64, &bytes),
            ],
            settings: shown.map_or(Vec::new(), |r| r.engine_settings.clone()),
            stats: shown.map_or(String::new(), |r| r.engine_stats.trim().to_owned()),
            rerun: shown.map_or(String::new(), |r| r.rerun.clone()),
            notes: shown.map_or(Vec::new(), row_notes),
        }
    }
}

/// To the best RocksDB (MyRocks in a server) and, for a drop-in library, to the engine behind it; in a server to InnoDB.
fn ratios(line: &Line<'_>) -> String {
    let baseline = if line.is_baseline {
        let is_server = line.rows.iter().all(|row| row.engine != summary::BASELINES[0]);
        Some(if is_server { "MyRocks" } else { "best RocksDB" }.to_owned())
    } else {
        line.ratio.map(|(ratio, _)| format!("{}×", three_digits(ratio)))
    };
    let native = line
        .native
        .as_ref()
        .map(|native| format!("{}× of {}", three_digits(native.ratio), native.label));
    let innodb = line
        .innodb_ratio
        .filter(|_| line.rows.iter().all(|row| row.engine != summary::INNODB))
        .map(|ratio| format!("{}× of InnoDB", three_digits(ratio)));
    [baseline, native, innodb]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · ")
}

fn row_notes(row: &Row) -> Vec<String> {
    let mut notes = row.notes.clone();
    if row.merge_seconds > 0.0 {
        notes.push(format!(
            "{:.1} s loading and {:.1} s merging",
            row.load_seconds, row.merge_seconds
        ));
    }
    if row.has_writer() {
        notes.push(format!(
            "the writer wrote {} rows/s, p99 {}",
            count(row.writes_per_s),
            micros(row.write_p99_us)
        ));
    }
    if row.verified_reads > 0 {
        notes.push(format!(
            "{} reads checked byte by byte",
            count(row.verified_reads as f64)
        ));
    }
    notes
}
