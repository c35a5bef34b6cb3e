//! The metrics as OpenMetrics text, read back by the format's rules.
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with the first surprise, in its helpers, too"
)]

use std::collections::{BTreeMap, BTreeSet};

use esker::{ColumnFamilyOptions, Db, Opener, Options, WriteBatch, WriteOptions};
use esker_env::Env;

/// A metric as the text describes it.
#[derive(Debug, Default)]
struct Metric {
    kind: String,
    help: String,
    unit: Option<String>,
    /// Suffix and labels, and the value.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|next| next.is_ascii_alphanumeric() || next == '_')
}

/// `name="value",...` with the format's escapes.
fn labels(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(is_name(name), "{text}");
        let (mut value, mut letters) = (String::new(), after.char_indices());
        let end = loop {
            match letters.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match letters.next().unwrap().1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        assert!(found.insert(name.to_owned(), value).is_none(), "{text}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    found
}

/// Reads the text by the rules of OpenMetrics 1.0: the descriptions of a metric come together, before its samples; no metric
/// comes twice, nor a sample; the end is marked.
fn parse(text: &str) -> BTreeMap<String, Metric> {
    let text = text.strip_suffix("# EOF\n").unwrap();
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, said) = (
                words.next().unwrap(),
                words.next().unwrap(),
                words.next().unwrap().to_owned(),
            );
            assert!(is_name(name), "{line}");
            if name != current {
                assert!(!metrics.contains_key(name), "{name} comes twice");
                current = name.to_owned();
            }
            let metric = metrics.entry(current.clone()).or_default();
            assert!(metric.samples.is_empty(), "{line} behind samples");
            match what {
                "HELP" => metric.help = said,
                "TYPE" => metric.kind = said,
                "UNIT" => metric.unit = Some(said),
                _ => panic!("{line}"),
            }
            continue;
        }
        assert!(
            seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()),
            "{line} comes twice"
        );
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labelled) = match series.split_once('{') {
            Some((name, labelled)) => (name, labelled.strip_suffix('}').unwrap()),
            None => (series, ""),
        };
        assert!(is_name(name), "{line}");
        let suffix = name.strip_prefix(&current).unwrap().to_owned();
        let metric = metrics.get_mut(&current).unwrap();
        let value: f64 = value.parse().unwrap();
        metric.samples.push((suffix, labels(labelled), value));
    }
    for (name, metric) in &metrics {
        assert!(metric.help.len() > 3, "{name} without help");
        if let Some(unit) = &metric.unit {
            assert!(name.ends_with(&format!("_{unit}")), "{name} in {unit}");
        }
        let allowed: &[&str] = match metric.kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_sum", "_count", "_bucket"],
            other => panic!("{name} is a {other}"),
        };
        assert!(!metric.samples.is_empty(), "{name} without samples");
        for (suffix, _, value) in &metric.samples {
            assert!(allowed.contains(&suffix.as_str()), "{name}{suffix}");
            assert!(value.is_finite() && *value >= 0.0, "{name}: {value}");
        }
        if metric.kind == "histogram" {
            check_buckets(name, metric);
        }
    }
    metrics
}

/// Buckets rise, the last one has no end and counts all.
fn check_buckets(name: &str, metric: &Metric) {
    let value = |wanted: &str| {
        metric
            .samples
            .iter()
            .find(|(suffix, _, _)| suffix == wanted)
            .unwrap()
            .2
    };
    let buckets: Vec<(f64, f64)> = metric
        .samples
        .iter()
        .filter(|(suffix, _, _)| suffix == "_bucket")
        .map(|(_, labels, count)| {
            let end = &labels["le"];
            (
                if end == "+Inf" {
                    f64::INFINITY
                } else {
                    end.parse().unwrap()
                },
                *count,
            )
        })
        .collect();
    assert!(
        buckets
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1),
        "{name}"
    );
    assert_eq!(
        *buckets.last().unwrap(),
        (f64::INFINITY, value("_count")),
        "{name}"
    );
}

fn single(metrics: &BTreeMap<String, Metric>, name: &str) -> f64 {
    let metric = metrics.get(name).unwrap_or_else(|| panic!("{name} is not there"));
    assert_eq!(metric.samples.len(), 1, "{name}");
    metric.samples[0].2
}

fn used(env: &Env) -> Db {
    let options = Options {
        default_column_family: ColumnFamilyOptions {
            level0_compaction_trigger: 2,
            ..ColumnFamilyOptions::default()
        },
        ..Options::default()
    };
    let db = Opener::new(options).env(env.clone()).open("/db").unwrap();
    for round in 0..3_u8 {
        for i in 0..100_u32 {
            db.put(&i.to_be_bytes(), &[round; 600]).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    db.sync_wal().unwrap();
    db.get(&7_u32.to_be_bytes()).unwrap();
    let mut batch = WriteBatch::new();
    for (i, name) in [b"one", b"two"].iter().enumerate() {
        batch.put(*name, &[7; 10]).unwrap();
        db.prepare(*name, &mut batch, &WriteOptions::default()).unwrap();
        match i {
            0 => db.commit_prepared(*name, &WriteOptions::default()).unwrap(),
            _ => db.roll_back_prepared(*name, &WriteOptions::default()).unwrap(),
        }
    }
    db
}

/// Drift: what the registry has is in the text, under the name that follows from its own.
#[test]
fn every_metric_is_in_the_text_once_with_its_value() {
    let db = used(&Env::simulated(1).0);
    let stats = db.stats();
    let metrics = parse(&db.metrics_text().unwrap());
    let mut expected = BTreeSet::new();
    for (name, count) in &stats.counters {
        let (text_name, value) = match name.strip_suffix("_us") {
            Some(name) => (format!("esker_{name}_seconds"), *count as f64 / 1e6),
            None => (format!("esker_{name}"), *count as f64),
        };
        let metric = metrics
            .get(&text_name)
            .unwrap_or_else(|| panic!("{name} is not there"));
        assert_eq!(metric.kind, "counter");
        assert_eq!(single(&metrics, &text_name), value, "{name}");
        assert_eq!(
            name.ends_with("_bytes"),
            metric.unit.as_deref() == Some("bytes"),
            "{name}"
        );
        expected.insert(text_name);
    }
    for (name, times) in &stats.histograms {
        let text_name = format!("esker_{}_seconds", name.strip_suffix("_us").unwrap());
        let metric = &metrics[&text_name];
        assert_eq!(metric.kind, "histogram");
        let value = |wanted: &str| {
            metric
                .samples
                .iter()
                .find(|(suffix, _, _)| suffix == wanted)
                .unwrap()
                .2
        };
        assert_eq!(value("_count"), times.count() as f64, "{name}");
        assert_eq!(value("_sum"), times.sum_us as f64 / 1e6, "{name}");
        expected.insert(text_name);
    }
    // The rest is what there is now.
    for (name, metric) in &metrics {
        assert_eq!(expected.contains(name), metric.kind != "gauge", "{name}");
    }
    assert!(
        metrics.len() > expected.len() + 20,
        "{} gauges",
        metrics.len() - expected.len()
    );
    for (name, value) in [
        ("esker_writes", 301.0),
        ("esker_prepared", 2.0),
        ("esker_prepared_committed", 1.0),
        ("esker_prepared_rolled_back", 1.0),
        ("esker_flushes", 3.0),
        ("esker_gets", 1.0),
        ("esker_table_bytes", stats.table_bytes as f64),
        ("esker_blob_live_bytes", stats.blob_live_bytes as f64),
        ("esker_write_stall", 0.0),
        ("esker_trouble", 0.0),
    ] {
        assert_eq!(single(&metrics, name), value, "{name}");
    }
    assert!(
        stats
            .histograms
            .iter()
            .filter(|(_, times)| times.count() > 0)
            .count()
            >= 3
    );
}

#[test]
fn families_and_levels_are_labels() {
    let db = used(&Env::simulated(1).0);
    let odd = "users \"of\" 3\\4\n";
    let family = db
        .create_column_family(odd, ColumnFamilyOptions::default())
        .unwrap();
    db.put_cf(&family, b"key", b"value").unwrap();
    db.flush_cf(&family).unwrap();
    let metrics = parse(&db.metrics_text().unwrap());
    let stats = db.stats();
    for name in [
        "esker_family_memtable_bytes",
        "esker_family_estimated_keys",
        "esker_family_write_pressure",
    ] {
        let names: Vec<_> = metrics[name]
            .samples
            .iter()
            .map(|(_, labels, _)| labels["family"].clone())
            .collect();
        assert_eq!(names, ["default", odd], "{name}");
    }
    let of = |name: &str, family: &str, level: &str| {
        let mut samples = metrics[name].samples.iter();
        let found = samples.find(|(_, labels, _)| labels["family"] == family && labels["level"] == level);
        found.unwrap().2
    };
    assert_eq!(of("esker_level_files", odd, "0"), 1.0);
    assert_eq!(of("esker_level_files", "default", "0"), 0.0);
    for (family, levels) in &stats.levels {
        for (i, level) in levels.iter().enumerate() {
            let number = i.to_string();
            assert_eq!(of("esker_level_files", family, &number), level.files as f64);
            assert_eq!(of("esker_level_bytes", family, &number), level.bytes as f64);
            assert_eq!(of("esker_level_score", family, &number), level.score);
        }
    }
}

#[test]
fn counters_only_rise() {
    let db = used(&Env::simulated(1).0);
    let before = parse(&db.metrics_text().unwrap());
    db.put(b"key", b"value").unwrap();
    db.get(b"key").unwrap();
    let after = parse(&db.metrics_text().unwrap());
    assert!(before.keys().eq(after.keys()));
    for (name, metric) in before.iter().filter(|(_, metric)| metric.kind == "counter") {
        assert!(metric.samples[0].2 <= single(&after, name), "{name}");
    }
    assert_eq!(single(&after, "esker_gets"), single(&before, "esker_gets") + 1.0);
}
