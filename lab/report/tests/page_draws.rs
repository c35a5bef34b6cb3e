//! Opens the page in headless Chromium and checks that every chart drew every line.
//!
//! Without a Chromium the test says so and passes, unless `ESKER_REQUIRE_CHROMIUM=1`.

// A test of what a browser does has to start one, and its helpers are test code that clippy does not see as such.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use esker_lab_core::limits::Limits;
use esker_lab_core::schema::{Row, Run, SCHEMA, Settings};

const WORKLOADS: [&str; 3] = ["bulkload-random", "overwrite", "readrandom"];

/// The workload of short runs, with a writer.
const MIXED: &str = "readwhilewriting";

const ENGINES: [(&str, &str, f64); 4] = [
    ("esker", "default", 300_000.0),
    ("rocksdb", "buffered", 120_000.0),
    ("rocksdb", "direct", 170_000.0),
    ("leveldb", "default", 20_000.0),
];

/// A row whose lines no other row's cover.
fn row(workload: &str, engine: &str, variant: &str, ops_per_s: f64, repeat: u32) -> Row {
    let wave = |i: usize| 1.0 + 0.2 * ((i as f64) * 0.7 + ops_per_s).sin();
    Row {
        engine: engine.into(),
        version: "1.2.3".into(),
        variant: variant.into(),
        workload: workload.into(),
        repeat,
        threads: 32,
        ops: 1_000_000,
        seconds: 30.0,
        ops_per_s,
        mb_per_s: ops_per_s * 810.0 / 1e6,
        p50_us: 1e6 / ops_per_s,
        p99_us: 2e7 / ops_per_s,
        max_us: 1e9 / ops_per_s,
        latency_curve: [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0]
            .iter()
            .enumerate()
            .map(|(i, &percent)| (percent, 1e6 / ops_per_s * 3f64.powi(i as i32)))
            .collect(),
        interval_s: 1.0,
        interval_rates: (0..30).map(|i| ops_per_s * wave(i)).collect(),
        slowest_interval_ratio: 0.8,
        write_amplification: 4.5,
        db_bytes: 2 << 30,
        rerun: format!("esker-lab run flash --engines {engine} --only {workload}"),
        engine_settings: vec![("write_buffer_size".into(), "64.0 MiB".into())],
        ..Row::default()
    }
}

fn run() -> Run {
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        for repeat in 1..=3 {
            for (engine, variant, ops_per_s) in ENGINES {
                rows.push(row(
                    workload,
                    engine,
                    variant,
                    ops_per_s * (1.0 + f64::from(repeat) / 100.0),
                    repeat,
                ));
            }
        }
    }
    rows.push(Row {
        errors: 1,
        error_messages: vec!["row 7 is missing".into()],
        ..row("readrandom", "rocksdb", "blob", 0.0, 1)
    });
    // One of each kind of short run, beside a drop-in library and the engine behind it.
    let short = |engine: &str, variant: &str, ops_per_s: f64, cpu: f64, curve: usize| Row {
        interval_rates: Vec::new(),
        rate_curve: (1..=curve).map(|i| (i as f64 / 10.0, ops_per_s)).collect(),
        cpu_us_per_op_settled: cpu,
        writes_per_s: ops_per_s / 10.0,
        write_p99_us: 50.0,
        ..row(MIXED, engine, variant, ops_per_s, 1)
    };
    rows.extend([
        short("esker", "default", 300_000.0, 4.0, 8),
        short("rocksdb", "direct", 150_000.0, 9.0, 1),
        short("rocksdb", "buffered", 100_000.0, 9.0, 0),
        short("dropin-rocksdb", "direct", 240_000.0, 5.0, 15),
    ]);
    Run {
        schema: SCHEMA,
        started_unix_s: 1_795_223_100,
        settings: Settings {
            rows: 2_500_000,
            value_bytes: 800,
            scale: "small".into(),
            ..Settings::default()
        },
        limits: Some(Limits {
            direct: true,
            random_reads_per_s_depth_1: 17_000.0,
            ..Limits::default()
        }),
        notes: vec!["<b>notes</b> are text".into()],
        rows,
        ..Run::default()
    }
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| {
            std::env::split_paths(&path)
                .map(|folder| folder.join(name))
                .find(|p| p.is_file())
        })
}

/// The page's elements after its scripts ran.
fn dump_dom(chromium: &Path, page: &Path, profile: &Path) -> String {
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,4000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Attribute `name` of the element whose tag holds `id`.
fn attribute<'a>(dom: &'a str, id: &str, name: &str) -> Option<&'a str> {
    let tag_at = dom.find(&format!("id=\"{id}\""))?;
    let tag = dom[tag_at..].split('>').next()?;
    tag.split_once(&format!("{name}=\""))?.1.split('"').next()
}

#[test]
fn every_chart_draws_every_line() {
    let Some(chromium) = chromium() else {
        assert_ne!(
            std::env::var("ESKER_REQUIRE_CHROMIUM").as_deref(),
            Ok("1"),
            "ESKER_REQUIRE_CHROMIUM=1, and no chromium is in PATH"
        );
        println!("skipped: no chromium in PATH");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("index.html");
    std::fs::write(&page, esker_lab_report::render(&[run()]).unwrap()).unwrap();
    let dom = dump_dom(&chromium, &page, &dir.path().join("profile"));
    for workload in WORKLOADS.into_iter().chain([MIXED]) {
        for kind in ["rate", "latency"] {
            let id = format!("run0-{workload}-{kind}");
            let number = |name| attribute(&dom, &id, name).and_then(|text| text.parse::<usize>().ok());
            assert_eq!(number("data-lines"), Some(ENGINES.len()), "{id} was not drawn");
            assert_eq!(number("data-drawn"), Some(ENGINES.len()), "{id} lacks lines");
        }
    }
    assert!(attribute(&dom, "run0-overwrite-nothing", "data-lines").is_none());
}

#[test]
fn tables_and_bars_need_no_script() {
    let html = esker_lab_report::render(&[run()]).unwrap();
    // The report's own figures, ours as medians of three, the ratio to the better RocksDB, the failed row.
    for text in [
        "161,812",
        "0.094×",
        "306,000",
        "1.76×",
        "best RocksDB",
        "row 7 is missing",
        "17,000&#x2f;s",
    ] {
        assert!(html.contains(text), "{text}");
    }
    // The writer, in the report's table and below the readers; what the drop-in library costs.
    for text in [
        "writer 30,000&#x2f;s, 2.00×",
        "The writer beside them",
        "<b>24,000</b>",
        "1.60× · 0.800× of esker",
        "What the drop-in libraries cost",
        "<td class=\"n\">240,000</td><td class=\"n\">300,000</td><td class=\"n\">0.800×</td>",
        "<td class=\"n\">5.00</td><td class=\"n\">4.00</td><td class=\"n\">1.25×</td>",
        "ops&#x2f;s in each 1.00 s; the load, without what follows it",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(
        html.contains("&lt;b&gt;notes&lt;&#x2f;b&gt; are text"),
        "notes are escaped"
    );
    assert!(
        html.contains("width:100.00%") && html.contains("width:6.67%"),
        "bars relative to the longest"
    );
}

#[test]
fn transactions_have_a_table_of_their_own() {
    let plain = |engine: &str, variant: &str, cpu: f64| Row {
        threads: 8,
        cpu_us_per_op_settled: cpu,
        ..row("put", engine, variant, 200_000.0, 1)
    };
    let commits = |engine: &str, variant: &str, control: &str, ops_per_s: f64| Row {
        control: control.into(),
        plain_workload: "put".into(),
        threads: 8,
        cpu_us_per_op_settled: 9.0,
        conflicts: 2_000,
        deadlocks: 40_000,
        syncs_per_op: Some(0.125),
        ..row("hot", engine, variant, ops_per_s, 1)
    };
    let run = Run {
        settings: Settings {
            suite: "txn".into(),
            scale: "small".into(),
            ..Settings::default()
        },
        rows: vec![
            plain("esker", "locks", 6.0),
            plain("rocksdb", "committed", 4.5),
            commits("esker", "locks", "locks", 90_000.0),
            commits("esker", "optimistic", "optimistic", 70_000.0),
            commits("rocksdb", "committed", "locks", 60_000.0),
            commits("rocksdb", "optimistic", "optimistic", 35_000.0),
        ],
        ..Run::default()
    };
    let html = esker_lab_report::render(&[run]).unwrap();
    let table = html.split("class=\"transactions\"").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    let line = |label: &str, rate: &str| {
        let rows = table.split("<tr>");
        let mut found = rows.filter(|row| row.contains(label) && row.contains(rate));
        found
            .next()
            .unwrap_or_else(|| panic!("{label} {rate}: {table}"))
            .to_owned()
    };
    // Locks to locks, optimistic to optimistic; a commit to a put; losses of a thousand.
    let locks = line("esker:locks", "90,000");
    for figure in ["hot", ">1.50×<", ">2.00<", ">40.0<", ">0.125<", ">8<", ">locks<"] {
        assert!(locks.contains(figure), "{figure}: {locks}");
    }
    assert_eq!(
        locks.matches("1.50×").count(),
        2,
        "to RocksDB, and to a put: {locks}"
    );
    assert!(line("esker:optimistic", "70,000").contains(">2.00×<"));
    assert!(line("rocksdb:committed", "60,000").contains(">1.00× best<"));
    assert!(line("rocksdb:optimistic", "35,000").contains(">1.00× best<"));
    assert!(line("esker:locks", "200,000").contains(">none<"));
    assert!(html.contains("Transactions, small scale"));
    assert!(
        !esker_lab_report::render(&[self::run()])
            .unwrap()
            .contains("class=\"transactions\"")
    );
}
