//! Times of building, reading and scanning tables, in nanoseconds a row. Prints one line for each shape of row.
//!
//! `cargo bench -p esker --bench sstable [-- <part of a shape's name> [build|get|scan]]`. Everything is in memory: what is measured is
//! the processor's work, not the device's.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use esker::cache::BlockCache;
use esker::key::{Cursor, SEQUENCE_MAX, ValueKind, append_internal_key};
use esker::metrics::Metrics;
use esker::sstable::{
    CursorOptions, Purpose, Table, TableOpenOptions, TableOptions, TableReadOptions, TableWriter,
};
use esker::{ColumnFamilyOptions, Compression, KeyOrder};
use esker_env::{RandomFile, WriteFile};

/// Copies what is appended into a fixed ring, as a file with a buffer of its own does.
#[derive(Debug)]
struct Sink {
    ring: Vec<u8>,
    len: u64,
    kept: Option<Arc<parking_lot::Mutex<Vec<u8>>>>,
}

impl WriteFile for Sink {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.len += data.len() as u64;
        if let Some(kept) = &self.kept {
            kept.lock().extend_from_slice(data);
        } else {
            for chunk in data.chunks(self.ring.len()) {
                self.ring[..chunk.len()].copy_from_slice(chunk);
            }
            black_box(&self.ring);
        }
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn finish(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Bytes(Vec<u8>);

impl RandomFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = (offset as usize).min(self.0.len());
        let len = buf.len().min(self.0.len() - from);
        buf[..len].copy_from_slice(&self.0[from..from + len]);
        Ok(len)
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

struct Shape {
    name: &'static str,
    key_len: usize,
    value_len: usize,
    block_bytes: usize,
    compression: Compression,
}

fn key(i: u64, len: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut digits = [b'0'; 20];
    let mut rest = i;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[20 - len..]);
}

/// Bytes of which half repeat, as the lab's values do.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u64;
    (0..len)
        .map(|i| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if i % 100 < 50 { (state >> 56) as u8 } else { b'x' }
        })
        .collect()
}

fn build(shape: &Shape, rows: u64, values: &[u8], sink: Sink) -> u64 {
    let mut options = TableOptions::new(&ColumnFamilyOptions::default(), 0);
    options.block_bytes = shape.block_bytes;
    options.compression = shape.compression;
    let mut writer = TableWriter::new(Box::new(sink), Path::new("bench.sst"), options);
    let (mut user, mut internal) = (Vec::new(), Vec::new());
    for i in 0..rows {
        key(i * 2, shape.key_len, &mut user);
        internal.clear();
        append_internal_key(&mut internal, &user, i + 1, ValueKind::Put);
        let at = (i as usize * 64) % (values.len() - shape.value_len);
        writer.add(&internal, &values[at..at + shape.value_len]).unwrap();
    }
    writer.finish(false).unwrap().file_bytes
}

/// The least of several runs, in nanoseconds for each of `rows`.
fn best(rows: u64, runs: usize, mut run: impl FnMut()) -> f64 {
    let mut least = f64::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed().as_nanos() as f64 / rows as f64);
    }
    least
}

fn measure(shape: &Shape, phase: &str) {
    let rows = (48 << 20) / (shape.key_len + shape.value_len + 12) as u64;
    let values = noise(1 << 20);
    let ring = || Sink {
        ring: vec![0; 256 << 10],
        len: 0,
        kept: None,
    };
    let keys_only = best(rows, 5, || {
        let (mut user, mut internal) = (Vec::new(), Vec::new());
        for i in 0..rows {
            key(i * 2, shape.key_len, &mut user);
            internal.clear();
            append_internal_key(&mut internal, &user, i + 1, ValueKind::Put);
            black_box(&internal);
        }
    });
    let built = best(rows, 9, || {
        black_box(build(shape, rows, &values, ring()));
    }) - keys_only;
    if phase == "build" {
        println!("{:<22} build {built:>6.0}", shape.name);
        return;
    }

    let kept = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let sink = Sink {
        kept: Some(Arc::clone(&kept)),
        ..ring()
    };
    let file_bytes = build(shape, rows, &values, sink);
    let bytes = std::mem::take(&mut *kept.lock());
    let cache = Arc::new(BlockCache::new(512 << 20));
    let metrics = Arc::new(Metrics::default());
    let table = Arc::new(
        Table::open(
            Arc::new(Bytes(bytes)),
            Path::new("bench.sst"),
            1,
            KeyOrder::Bytewise,
            Arc::clone(&cache),
            metrics,
            &TableOpenOptions::default(),
        )
        .unwrap(),
    );

    let gets = if phase == "scan" { 1 } else { 500_000 };
    let mut user = Vec::new();
    let mut get = |range: u64, absent: u64| {
        let mut state = 7_u64;
        let mut found = 0;
        for _ in 0..gets {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            key((state >> 33) % range * 2 + absent, shape.key_len, &mut user);
            let flow = table
                .get(&user, SEQUENCE_MAX, TableReadOptions::default(), |_, _, value| {
                    found += u64::from(value[0]);
                    ControlFlow::Break(())
                })
                .unwrap();
            let _ = black_box(flow);
        }
        black_box(found);
    };
    get(rows, 0);
    get(rows, 0);
    let random = best(gets, 5, || get(rows, 0));
    let hot = best(gets, 5, || get(1000, 0));
    let absent = best(gets, 5, || get(rows, 1));

    if phase == "get" {
        println!(
            "{:<22} get random {random:>5.0} hot {hot:>5.0} absent {absent:>5.0}",
            shape.name
        );
        return;
    }
    let scan = |options: CursorOptions, forward: bool| {
        let mut cursor = table.cursor(options);
        let mut sum = 0;
        if forward {
            cursor.seek_to_first().unwrap();
        } else {
            cursor.seek_to_last().unwrap();
        }
        while cursor.valid() {
            sum += usize::from(cursor.key()[3]) + usize::from(cursor.value()[0]);
            if forward {
                cursor.next().unwrap();
            } else {
                cursor.prev().unwrap();
            }
        }
        black_box(sum);
    };
    scan(CursorOptions::default(), true);
    let forward = best(rows, 5, || scan(CursorOptions::default(), true));
    let backward = best(rows, 5, || scan(CursorOptions::default(), false));
    let compaction = best(rows, 5, || {
        let options = CursorOptions {
            purpose: Purpose::Compaction,
            ..CursorOptions::default()
        };
        scan(options, true);
    });
    cache.clear();
    let cold = best(rows, 3, || {
        cache.clear();
        scan(CursorOptions::default(), true);
    });

    println!(
        "{:<22} {:>8} rows {:>6.1} B/row | build {:>6.0} | get random {:>5.0} hot {:>5.0} absent {:>5.0} | scan \
         {:>5.1} back {:>5.1} compaction {:>5.1} cold {:>6.1}   (ns a row)",
        shape.name,
        rows,
        file_bytes as f64 / rows as f64,
        built,
        random,
        hot,
        absent,
        forward,
        backward,
        compaction,
        cold
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|arg| !arg.starts_with('-'));
    let only = arguments.next();
    let phase = arguments.next().unwrap_or_default();
    let shape = |name, key_len, value_len, block_bytes, compression| Shape {
        name,
        key_len,
        value_len,
        block_bytes,
        compression,
    };
    for shape in [
        shape("10+800 4K", 10, 800, 4 << 10, Compression::None),
        shape("10+800 64K", 10, 800, 64 << 10, Compression::None),
        shape("16+40 4K", 16, 40, 4 << 10, Compression::None),
        shape("16+40 64K", 16, 40, 64 << 10, Compression::None),
        shape("10+800 4K lz4", 10, 800, 4 << 10, Compression::Lz4),
        shape("10+800 4K zstd", 10, 800, 4 << 10, Compression::Zstd),
        shape("16+40 64K lz4", 16, 40, 64 << 10, Compression::Lz4),
    ] {
        if only
            .as_ref()
            .is_none_or(|only| shape.name.contains(only.as_str()))
        {
            measure(&shape, &phase);
        }
    }
}
