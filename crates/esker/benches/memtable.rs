//! What a memtable costs, in nanoseconds a row: `cargo bench -p esker --bench memtable [-- FILTER [ROUNDS]]`.
//!
//! Each line is the best of some rounds (default 3), the first of which fills the pool, so that what is measured is
//! a memtable that takes over recycled memory, as in a running database. Gets and scans copy what they find, as a
//! database's do.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esker::MemtableKind::{Ordered, Vector};
use esker::key::{Cursor, SEQUENCE_MAX, ValueKind};
use esker::memtable::{InsertHint, Memtable, MemtableArenaPool};
use esker::{KeyOrder, MemtableKind};

#[derive(Clone, Copy)]
enum Keys {
    /// 16 bytes of which the first 8 differ.
    Binary,
    /// 16 decimal digits, led by zeros: all heads are equal, unless a prefix is skipped.
    Decimal,
    /// 10 bytes: a table's id and a number.
    Row,
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kind: MemtableKind,
    keys: Keys,
    rows: u64,
    value_bytes: usize,
    random: bool,
    /// The memtable is the successor of one with the same keys.
    succeeds: bool,
}

/// A bijection of `0..2^bits` (multiplication by an odd number), cut to `0..rows` by walking its cycle.
fn shuffled(mut i: u64, rows: u64) -> u64 {
    let mask = rows.next_power_of_two() - 1;
    loop {
        i = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x7f4a_7c15) & mask;
        i ^= i >> (mask.count_ones() / 2).max(1);
        if i < rows {
            return i;
        }
    }
}

fn write_key(keys: Keys, i: u64, out: &mut [u8; 16]) -> usize {
    match keys {
        Keys::Binary => {
            *out = [b'0'; 16];
            out[..8].copy_from_slice(&i.to_be_bytes());
            16
        }
        Keys::Decimal => {
            let mut rest = i;
            for digit in out.iter_mut().rev() {
                *digit = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            16
        }
        Keys::Row => {
            out[..2].copy_from_slice(&[1, 4]);
            out[2..10].copy_from_slice(&i.to_be_bytes());
            10
        }
    }
}

#[derive(Clone, Copy)]
struct Times {
    insert: Duration,
    sort: Duration,
    get: Duration,
    scan: Duration,
    bytes: usize,
}

fn run(case: Case, pool: &Arc<MemtableArenaPool>) -> Times {
    let Case { rows, random, .. } = case;
    let budget = 64 << 20;
    let mut key = [0; 16];
    let mut memtable = Memtable::new(case.kind, KeyOrder::Bytewise, 1, budget, pool);
    if case.succeeds {
        for i in [0, rows - 1] {
            let len = write_key(case.keys, i, &mut key);
            memtable.insert(i + 1, ValueKind::Put, &key[..len], b"");
        }
        memtable = memtable.successor(2, budget);
    }
    let value = vec![0x5a; case.value_bytes];
    let index = |i| if random { shuffled(i, rows) } else { i };

    let mut hint = InsertHint::default();
    let start = Instant::now();
    for i in 0..rows {
        let len = write_key(case.keys, index(i), &mut key);
        memtable.insert_with(&mut hint, i + 1, ValueKind::Put, &key[..len], &value);
    }
    let insert = start.elapsed();

    memtable.seal();
    let start = Instant::now();
    memtable.sort();
    let sort = start.elapsed();

    let mut found = 0;
    let mut copy = Vec::with_capacity(case.value_bytes + 32);
    let start = Instant::now();
    for i in 0..rows {
        // Another order than that of the inserts.
        let at = if random {
            shuffled(i ^ 0x155, rows.next_power_of_two()) % rows
        } else {
            i
        };
        let len = write_key(case.keys, at, &mut key);
        let _ = memtable.get(&key[..len], SEQUENCE_MAX, |_, _, value| {
            copy.clear();
            copy.extend_from_slice(value);
            found += u64::from(!black_box(&copy).is_empty());
            ControlFlow::Break(())
        });
    }
    let get = start.elapsed();
    assert_eq!(found, rows);

    let mut cursor = memtable.cursor();
    let mut scanned = 0;
    let start = Instant::now();
    let _ = cursor.seek_to_first();
    while cursor.valid() {
        copy.clear();
        copy.extend_from_slice(cursor.key());
        copy.extend_from_slice(cursor.value());
        black_box(&copy);
        scanned += 1;
        let _ = cursor.next();
    }
    let scan = start.elapsed();
    assert_eq!(scanned, rows);
    Times {
        insert,
        sort,
        get,
        scan,
        bytes: memtable.approximate_bytes(),
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let filter = arguments.next().unwrap_or_default();
    let rounds: usize = arguments
        .next()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(3);
    println!(
        "{:44} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "ns a row", "insert", "sort", "get", "scan", "bytes/row"
    );
    for (kind, kind_name) in [(Ordered, "ordered"), (Vector, "vector")] {
        for rows in [100_000, 1_000_000] {
            for (keys, value_bytes, succeeds, name) in [
                (Keys::Binary, 20, false, "16 B binary keys, 20 B values"),
                (Keys::Decimal, 20, false, "16 B decimal, fresh, 20 B"),
                (Keys::Decimal, 20, true, "16 B decimal, successor, 20 B"),
                (Keys::Row, 64, true, "10 B keys, 64 B values"),
                (Keys::Row, 128, true, "10 B keys, 128 B values"),
                (Keys::Row, 256, true, "10 B keys, 256 B values"),
                (Keys::Row, 800, true, "10 B keys, 800 B values"),
            ] {
                for random in [false, true] {
                    let case = Case {
                        name,
                        kind,
                        keys,
                        rows,
                        value_bytes,
                        random,
                        succeeds,
                    };
                    report(case, kind_name, &filter, rounds);
                }
            }
        }
    }
    parallel(&filter);
}

fn report(case: Case, kind_name: &str, filter: &str, rounds: usize) {
    let order = if case.random { "random" } else { "ascending" };
    let label = format!("{kind_name} {}k {order}: {}", case.rows / 1000, case.name);
    if !label.contains(filter) {
        return;
    }
    let pool = MemtableArenaPool::new(2 << 30);
    let mut best: Option<Times> = None;
    for _ in 0..=rounds {
        let times = run(case, &pool);
        best = Some(best.map_or(times, |best| Times {
            insert: best.insert.min(times.insert),
            sort: best.sort.min(times.sort),
            get: best.get.min(times.get),
            scan: best.scan.min(times.scan),
            bytes: times.bytes,
        }));
    }
    if let Some(best) = best {
        let ns = |time: Duration| time.as_nanos() as f64 / case.rows as f64;
        println!(
            "{label:60} {:9.1} {:9.1} {:9.1} {:9.1} {:9.1}",
            ns(best.insert),
            ns(best.sort),
            ns(best.get),
            ns(best.scan),
            best.bytes as f64 / case.rows as f64
        );
    }
}

/// Two writers at once: nanoseconds of wall time a row.
fn parallel(filter: &str) {
    const ROWS: u64 = 500_000;
    let label = "ordered 2 writers random: 16 B binary keys, 20 B values";
    if !label.contains(filter) {
        return;
    }
    let pool = MemtableArenaPool::new(2 << 30);
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let memtable = Memtable::new(Ordered, KeyOrder::Bytewise, 1, 64 << 20, &pool);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let memtable = &memtable;
                scope.spawn(move || {
                    let (mut hint, mut key) = (InsertHint::default(), [0; 16]);
                    for i in 0..ROWS {
                        let at = i * 2 + writer;
                        let len = write_key(Keys::Binary, shuffled(at, 2 * ROWS), &mut key);
                        memtable.insert_with(&mut hint, at + 1, ValueKind::Put, &key[..len], &[0x5a; 20]);
                    }
                });
            }
        });
        best = best.min(start.elapsed());
    }
    println!("{label:60} {:9.1}", best.as_nanos() as f64 / (2 * ROWS) as f64);
}
