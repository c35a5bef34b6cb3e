//! Simulated databases: what the rules add up to over terabytes.

use super::model::{Model, Totals};
use crate::compaction::picker::level_targets;
use crate::options::ColumnFamilyOptions;

const ROW_BYTES: u64 = 810;

/// The default settings, with all sizes divided by `scale`.
fn options(scale: u64) -> ColumnFamilyOptions {
    let default = ColumnFamilyOptions::default();
    ColumnFamilyOptions {
        memtable_bytes: default.memtable_bytes / scale,
        level_base_bytes: default.level_base_bytes / scale,
        file_bytes: default.file_bytes / scale,
        ..default
    }
}

/// Bytes written for each byte of a user's, if each level costs what it should: the flush; level 0 merged with a base
/// level of at most its target; and for each level below, a row itself and the share of the next level's rows that it
/// meets. The file that meets least is merged, and levels are not always full, so that three quarters of the ratio of
/// the sizes bound it.
fn amplification_bound(model: &Model) -> f64 {
    let targets = level_targets(&model.version, &model.options);
    let sizes = &targets.bytes[targets.base_level..];
    let batch = (model.options.memtable_bytes * model.options.level0_compaction_trigger as u64) as f64;
    let below: f64 = sizes
        .windows(2)
        .map(|pair| 1.0 + 0.75 * pair[1] as f64 / pair[0] as f64)
        .sum();
    1.0 + (1.0 + sizes[0] as f64 / batch) + below
}

/// Overwrites `data_bytes` at random, once over, and checks what must hold while and after it.
fn overwrite(options: ColumnFamilyOptions, data_bytes: u64, workers: usize, speed: f64) -> Totals {
    let mut model = Model::new(options, data_bytes / ROW_BYTES, ROW_BYTES, workers);
    model.load_full();
    let flushes = data_bytes / model.options.memtable_bytes;
    let mut steady = Totals::default();
    for i in 0..flushes {
        if i == flushes / 3 {
            steady = model.totals;
        }
        model.write_random(speed);
        if i % 64 == 63 && i > flushes / 3 {
            check_shape(&model, data_bytes);
        }
    }
    let user = model.totals.user_bytes - steady.user_bytes;
    let written = model.totals.flushed_bytes + model.totals.compacted_bytes
        - steady.flushed_bytes
        - steady.compacted_bytes;
    let amplification = written / user;
    let bound = amplification_bound(&model);
    println!(
        "{data_bytes} bytes: written {amplification:.2} times, bound {bound:.2}, {:?}",
        model.totals
    );
    println!("{:?}", level_targets(&model.version, &model.options));
    assert!(amplification <= bound, "{amplification:.2} > {bound:.2}");
    assert!(model.totals.level0_files_max <= model.options.level0_files_max);
    assert!(model.totals.checked > 20, "the oracle was asked");
    model.settle();
    check_shape(&model, data_bytes);
    model.totals
}

/// Levels are near their targets, and stale versions take little space.
fn check_shape(model: &Model, data_bytes: u64) {
    let targets = level_targets(&model.version, &model.options);
    for level in targets.base_level..model.version.level_count() - 1 {
        let (size, target) = (
            model.version.level(level).size_bytes() as f64,
            targets.bytes[level] as f64,
        );
        // What arrives in one go: level 0, or a job.
        let job = (model.options.memtable_bytes * model.options.level0_files_max as u64) as f64
            + 12.0 * model.options.file_bytes as f64;
        assert!(
            size <= 1.25 * target + job,
            "level {level} has {size} of {target}"
        );
    }
    let all = model.version.size_bytes() as f64;
    let multiplier = f64::from(model.options.level_size_multiplier) / 2.0;
    let slack = (model.options.memtable_bytes * model.options.level0_files_max as u64) as f64;
    let bound = data_bytes as f64 * (1.0 + 1.3 / (multiplier - 1.0)) + slack;
    assert!(all <= bound, "{all} bytes for {data_bytes}");
}

#[test]
fn overwriting_gigabytes_at_random() {
    // 2 GiB at a sixteenth of the default sizes: the shape of 32 GiB.
    let totals = overwrite(options(16), 2 << 30, 2, 12.0);
    assert!(totals.jobs_max >= 2, "jobs run beside each other: {totals:?}");
}

#[test]
fn overwriting_six_million_rows_with_the_defaults() {
    // The flash tests' small scale: 6M rows of 810 bytes.
    overwrite(options(1), 6_000_000 * ROW_BYTES, 2, 12.0);
}

#[test]
fn overwriting_with_slow_workers_waits_but_stays_in_shape() {
    let totals = overwrite(options(16), 1 << 30, 2, 4.0);
    assert!(totals.waits > 0, "it is too slow on purpose: {totals:?}");
}

#[test]
fn overwriting_a_large_database_at_random() {
    // `make torture` asks for ten terabytes, which take about a minute of an optimised build.
    let gib = std::env::var("ESKER_SIMULATED_GIB");
    let gib: u64 = gib.map_or(16, |gib| gib.parse().expect("ESKER_SIMULATED_GIB is a number"));
    let (default, larger) = (options(1), (gib / 256).clamp(1, 16));
    let options = ColumnFamilyOptions {
        memtable_bytes: default.memtable_bytes * larger,
        level_base_bytes: default.level_base_bytes * larger,
        file_bytes: default.file_bytes * larger,
        ..default
    };
    overwrite(options, gib << 30, 4, 8.0);
}

#[test]
fn a_sequential_load_is_moved_not_written() {
    let mut model = Model::new(options(16), 1 << 40, ROW_BYTES, 2);
    let mut next = 0;
    for _ in 0..1500 {
        next = model.write_sequential(next, 12.0);
    }
    model.settle();
    let totals = model.totals;
    println!("{totals:?}");
    assert_eq!((totals.compacted_bytes, totals.merges), (0.0, 0));
    assert!(totals.level0_files_max <= model.options.level0_compaction_trigger);
    assert_eq!(totals.waits, 0);
    let last = model.version.level(model.version.level_count() - 1);
    assert!(
        last.size_bytes() as f64 > 0.8 * model.version.size_bytes() as f64,
        "it came to rest at the bottom"
    );
}

#[test]
fn a_random_load_from_nothing_grows_level_by_level() {
    let data_bytes = 1_u64 << 30;
    let mut model = Model::new(options(16), data_bytes / ROW_BYTES, ROW_BYTES, 2);
    let mut bases = Vec::new();
    for _ in 0..3 * data_bytes / model.options.memtable_bytes {
        model.write_random(12.0);
        bases.push(level_targets(&model.version, &model.options).base_level);
    }
    bases.dedup();
    assert_eq!(bases, [6, 5, 4], "levels come into use from the bottom and stay");
    model.settle();
    check_shape(&model, data_bytes);
}
