//! Many random point reads: one by one and together, on tables that are larger than the cache, and in the cache.
//!
//! `cargo bench -p esker --bench multi_get [-- <rows>]` writes a database of that many rows (1,000,000) of 400 bytes beside
//! the build's output, with a budget of 32 MiB, and reads it with direct I/O: the disk is measured as well. Prints keys a
//! second, microseconds a call, processor time a key (both in the process and in the system for it), and reads of blocks.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use esker::{
    ColumnFamilyOptions, Compression, Db, Durability, Options, ReadOptions, WriteBatch, WriteOptions,
};

const SECONDS: u64 = 3;
const ROUNDS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn key(i: u64) -> [u8; 12] {
    let mut key = *b"user00000000";
    // Spread over the key space, so that neighbours in the file are not neighbours in the numbers.
    key[4..].copy_from_slice(&i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key
}

/// Processor time of the process in seconds, in itself and in the system.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

fn misses(db: &Db) -> u64 {
    let counters = db.stats().counters;
    counters
        .iter()
        .find(|(name, _)| *name == "cache_misses")
        .map_or(0, |(_, n)| *n)
}

fn load(db: &Db, rows: u64) {
    let options = WriteOptions {
        durability: Some(Durability::None),
        ..WriteOptions::default()
    };
    let mut batch = WriteBatch::new();
    for i in 0..rows {
        let mut value = [0_u8; 400];
        value[..8].copy_from_slice(&i.to_le_bytes());
        let mut random = Random(i + 1);
        value[8..]
            .iter_mut()
            .for_each(|byte| *byte = random.below(256) as u8);
        batch.put(&key(i), &value).unwrap();
        if batch.len() >= 100 || i + 1 == rows {
            db.write_with(&mut batch, &options).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
}

fn measure(name: &str, db: &Db, keys_a_call: usize, span: u64, together: bool) {
    let family = db.default_column_family();
    let options = ReadOptions::default();
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut calls, mut keys) = (0_u64, Vec::new());
    let (processor, missed, start) = (processor_seconds(), misses(db), Instant::now());
    while start.elapsed() < Duration::from_secs(SECONDS) {
        keys.clear();
        keys.extend((0..keys_a_call).map(|_| key(random.below(span))));
        if together {
            let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
            let values = db.multi_get(&family, &slices, &options).unwrap();
            assert!(values.iter().all(Option::is_some));
            black_box(values);
        } else {
            for key in &keys {
                let value = db.get_with(&family, key, &options).unwrap();
                assert!(black_box(value).is_some());
            }
        }
        calls += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let read = (calls * keys_a_call as u64) as f64;
    println!(
        "{name:32} {:>10.0} keys/s {:>8.1} us/call {:>6.2} us processor/key {:>5.2} blocks/key",
        read / seconds,
        seconds / calls as f64 * 1e6,
        (processor_seconds() - processor) / read * 1e6,
        (misses(db) - missed) as f64 / read,
    );
}

fn main() {
    let rows = std::env::args()
        .skip(1)
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(1_000_000);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let db = Db::open(
        dir.path(),
        Options {
            memory_budget_bytes: 32 << 20,
            default_column_family: ColumnFamilyOptions {
                memtable_bytes: 4 << 20,
                compression_per_level: vec![Compression::None],
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        },
    )
    .unwrap();
    load(&db, rows);
    db.wait_idle().unwrap();
    let stats = db.stats();
    println!(
        "{} MiB of tables, {} MiB of cache, {} MiB of indexes and filters",
        stats.table_bytes >> 20,
        stats.cache_capacity_bytes >> 20,
        stats.table_memory_bytes >> 20
    );
    for _ in 0..ROUNDS {
        for keys_a_call in [8, 32, 128] {
            for together in [false, true] {
                let how = if together { "together" } else { "one by one" };
                measure(
                    &format!("cold, {keys_a_call} {how}"),
                    &db,
                    keys_a_call,
                    rows,
                    together,
                );
            }
        }
        for together in [false, true] {
            let how = if together { "together" } else { "one by one" };
            measure(&format!("cached, 32 {how}"), &db, 32, 1000.min(rows), together);
        }
    }
}
