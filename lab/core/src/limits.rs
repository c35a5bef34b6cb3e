//! What the disk and the memory can do at most: the yardstick beside every result.
//!
//! Reads go past the page cache (`O_DIRECT`) where the file system allows it, and say so where not. Each figure
//! takes about `seconds`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::data::{mix, pick};
use crate::{Error, Result};

const LARGE_BYTES: usize = 1 << 20;
const SMALL_BYTES: usize = 4096;

/// The measured limits. Zeros: not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Whether the page cache was out of the way.
    pub direct: bool,
    /// Size of the file that was read and written, in bytes.
    pub file_bytes: u64,
    /// Sequential writes of 1 MiB, one at a time, in bytes a second.
    pub sequential_write_bytes_per_s: f64,
    /// Sequential reads of 1 MiB, one at a time, in bytes a second.
    pub sequential_read_bytes_per_s: f64,
    /// Random reads of 4 KiB a second, one at a time.
    pub random_reads_per_s_depth_1: f64,
    /// Random reads of 4 KiB a second, from 32 threads.
    pub random_reads_per_s_depth_32: f64,
    /// Median time of a 4 KiB append with `fdatasync`, in microseconds.
    pub fdatasync_p50_us: f64,
    /// Its 99th percentile.
    pub fdatasync_p99_us: f64,
    /// Copying memory with one thread, in bytes copied a second.
    pub memory_copy_bytes_per_s: f64,
    /// Random reads of a cache line out of 256 MiB, each depending on the one before, in nanoseconds.
    pub memory_latency_ns: f64,
}

/// A buffer that direct I/O accepts: aligned to 4 KiB.
struct Aligned {
    bytes: Vec<u8>,
    at: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0x5a; length + SMALL_BYTES];
        let at = bytes.as_ptr().align_offset(SMALL_BYTES);
        Aligned { bytes, at, length }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at..self.at + self.length]
    }
}

fn open(path: &Path, direct: bool) -> std::io::Result<File> {
    let flags = if direct {
        rustix::fs::OFlags::DIRECT.bits() as i32
    } else {
        0
    };
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags)
        .open(path)
}

fn random_reads(path: &Path, direct: bool, file_bytes: u64, threads: u64, time: Duration) -> Result<f64> {
    let io = |e: &std::io::Error| Error::io(path.display(), e);
    let done = AtomicBool::new(false);
    let total = AtomicU64::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (done, total) = (&done, &total);
                scope.spawn(move || -> std::io::Result<()> {
                    let file = open(path, direct)?;
                    let mut buffer = Aligned::new(SMALL_BYTES);
                    let mut i = 0;
                    // One at least: on a busy machine the time may be over before the thread has had any.
                    while i == 0 || !done.load(Ordering::Relaxed) {
                        let block = pick(mix(thread + 1), i, file_bytes / SMALL_BYTES as u64);
                        file.read_exact_at(buffer.get(), block * SMALL_BYTES as u64)?;
                        i += 1;
                    }
                    total.fetch_add(i, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        while start.elapsed() < time {
            std::thread::park_timeout(time - start.elapsed().min(time));
        }
        done.store(true, Ordering::Relaxed);
        workers.into_iter().try_for_each(|w| match w.join() {
            Ok(result) => result.map_err(|e| io(&e)),
            Err(_) => Err(Error::engine("a reading thread panicked")),
        })
    })?;
    Ok(total.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64())
}

fn sync_latencies(dir: &Path, time: Duration) -> Result<(f64, f64)> {
    let path = dir.join("esker-lab-limits-sync");
    let io = |e: &std::io::Error| Error::io(path.display(), e);
    let file = open(&path, false).map_err(|e| io(&e))?;
    let mut latencies = crate::latency::Latencies::default();
    let start = Instant::now();
    let mut at = 0;
    let block = [7u8; SMALL_BYTES];
    let result = loop {
        let before = Instant::now();
        if let Err(error) = file.write_all_at(&block, at).and_then(|()| file.sync_data()) {
            break Err(io(&error));
        }
        latencies.record(before.elapsed());
        at += SMALL_BYTES as u64;
        if start.elapsed() >= time {
            break Ok((latencies.percentile_us(50.0), latencies.percentile_us(99.0)));
        }
    };
    let _ = std::fs::remove_file(&path);
    result
}

fn memory(time: Duration) -> (f64, f64) {
    const BYTES: usize = 64 << 20;
    const LINES: usize = (256 << 20) / 64;
    let source = vec![1u8; BYTES];
    let mut target = vec![0u8; BYTES];
    let start = Instant::now();
    let mut copied = 0.0;
    while copied == 0.0 || start.elapsed() < time {
        target.copy_from_slice(&source);
        std::hint::black_box(&mut target);
        copied += BYTES as f64;
    }
    let copy = copied / start.elapsed().as_secs_f64();
    drop((source, target));

    // One cycle through all lines (Sattolo's shuffle), so no processor can guess the next.
    let mut lines: Vec<[u32; 16]> = (0..LINES as u32).map(|i| [i; 16]).collect();
    for i in (1..LINES).rev() {
        let j = pick(11, i as u64, i as u64) as usize;
        let (a, b) = (lines[i][0], lines[j][0]);
        lines[i][0] = b;
        lines[j][0] = a;
    }
    let start = Instant::now();
    let (mut at, mut steps) = (0u32, 0u64);
    while steps == 0 || start.elapsed() < time {
        for _ in 0..10_000 {
            at = lines[at as usize][0];
        }
        steps += 10_000;
    }
    std::hint::black_box(at);
    (copy, start.elapsed().as_nanos() as f64 / steps as f64)
}

/// Measures the limits with a file of `file_bytes` in `dir`, which it removes, calling `tell` before each figure.
pub fn measure(dir: &Path, file_bytes: u64, time: Duration, tell: &mut dyn FnMut(&str)) -> Result<Limits> {
    let path = dir.join("esker-lab-limits");
    let result = measure_file(&path, dir, file_bytes, time, tell);
    let _ = std::fs::remove_file(&path);
    result
}

fn measure_file(
    path: &Path,
    dir: &Path,
    file_bytes: u64,
    time: Duration,
    tell: &mut dyn FnMut(&str),
) -> Result<Limits> {
    let io = |e: &std::io::Error| Error::io(path.display(), e);
    let file_bytes = (file_bytes / LARGE_BYTES as u64).max(1) * LARGE_BYTES as u64;
    let (file, direct) = match open(path, true) {
        Ok(file) => (file, true),
        Err(_) => (open(path, false).map_err(|e| io(&e))?, false),
    };
    let mut limits = Limits {
        direct,
        file_bytes,
        ..Limits::default()
    };
    let mut buffer = Aligned::new(LARGE_BYTES);
    let mut state = 1u64;
    for word in buffer.get().chunks_exact_mut(8) {
        state = state.wrapping_add(1);
        word.copy_from_slice(&mix(state).to_le_bytes());
    }

    tell("sequential writes of 1 MiB");
    let start = Instant::now();
    for at in (0..file_bytes).step_by(LARGE_BYTES) {
        file.write_all_at(buffer.get(), at).map_err(|e| io(&e))?;
    }
    file.sync_data().map_err(|e| io(&e))?;
    limits.sequential_write_bytes_per_s = file_bytes as f64 / start.elapsed().as_secs_f64();

    tell("sequential reads of 1 MiB");
    let (start, mut read) = (Instant::now(), 0u64);
    while read == 0 || start.elapsed() < time {
        file.read_exact_at(buffer.get(), read % file_bytes)
            .map_err(|e| io(&e))?;
        read += LARGE_BYTES as u64;
    }
    limits.sequential_read_bytes_per_s = read as f64 / start.elapsed().as_secs_f64();

    tell("random reads of 4 KiB, one at a time");
    limits.random_reads_per_s_depth_1 = random_reads(path, direct, file_bytes, 1, time)?;
    tell("random reads of 4 KiB, 32 at a time");
    limits.random_reads_per_s_depth_32 = random_reads(path, direct, file_bytes, 32, time)?;
    tell("appends of 4 KiB with fdatasync");
    (limits.fdatasync_p50_us, limits.fdatasync_p99_us) = sync_latencies(dir, time)?;
    tell("memory");
    (limits.memory_copy_bytes_per_s, limits.memory_latency_ns) = memory(time / 2);
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_measured_and_nothing_left_behind() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut told = 0;
        let limits = measure(dir.path(), 4 << 20, Duration::from_millis(20), &mut |_| told += 1).unwrap();
        assert_eq!(told, 6);
        for (name, value) in [
            ("write", limits.sequential_write_bytes_per_s),
            ("read", limits.sequential_read_bytes_per_s),
            ("depth 1", limits.random_reads_per_s_depth_1),
            ("depth 32", limits.random_reads_per_s_depth_32),
            ("sync", limits.fdatasync_p50_us),
            ("copy", limits.memory_copy_bytes_per_s),
            ("latency", limits.memory_latency_ns),
        ] {
            assert!(value > 0.0, "{name}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
