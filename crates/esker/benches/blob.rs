//! Times of writing and reading blob files, in nanoseconds a value. Prints one line for each length of values.
//!
//! `cargo bench -p esker --bench blob`. Everything is in memory: what is measured is the processor's work, not the device's.
//! `file` is what the file itself takes of writing: one copy of every byte.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use esker::Compression;
use esker::blob::{BlobPointer, BlobReader, BlobWindows, BlobWriter, WindowOptions};
use esker_env::{RandomFile, WriteFile};

const TOTAL_BYTES: usize = 64 << 20;

/// Copies what is appended over the same buffer, as a direct file does; or keeps all of it.
#[derive(Debug)]
struct Sink {
    buffer: Vec<u8>,
    len: u64,
    kept: Option<Arc<Mutex<Vec<u8>>>>,
}

impl WriteFile for Sink {
    fn append(&mut self, data: &[u8]) -> io::Result<()> {
        self.len += data.len() as u64;
        if let Some(kept) = &self.kept {
            kept.lock().unwrap().extend_from_slice(data);
        } else {
            for chunk in data.chunks(self.buffer.len()) {
                self.buffer[..chunk.len()].copy_from_slice(chunk);
            }
            black_box(&self.buffer);
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

fn sink(kept: Option<Arc<Mutex<Vec<u8>>>>) -> Box<Sink> {
    Box::new(Sink {
        buffer: vec![0; 256 << 10],
        len: 0,
        kept,
    })
}

fn write(source: &[u8], len: usize, sink: Box<Sink>) -> Vec<BlobPointer> {
    let mut writer = BlobWriter::new(sink, Path::new("bench.blob"), 1, 2, Compression::None).unwrap();
    let mut pointers = Vec::with_capacity(TOTAL_BYTES / len);
    for i in 0..TOTAL_BYTES / len {
        let at = i * 64 % (source.len() - len);
        pointers.push(writer.add(&source[at..at + len]).unwrap());
    }
    writer.finish(false).unwrap();
    pointers
}

/// The least of several runs, in nanoseconds a value.
fn best(len: usize, mut run: impl FnMut()) -> f64 {
    (0..7)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / (TOTAL_BYTES / len) as f64
        })
        .fold(f64::MAX, f64::min)
}

fn main() {
    for len in [256, 800, 4096, 64 << 10] {
        let mut state = 1_u64;
        let source: Vec<u8> = (0..(128 << 10) + len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let add = best(len, || {
            black_box(write(&source, len, sink(None)));
        });
        let file = best(len, || {
            let mut sink = sink(None);
            for _ in 0..TOTAL_BYTES / (64 << 10) {
                sink.append(black_box(&source[..64 << 10])).unwrap();
            }
        });
        let kept = Arc::new(Mutex::new(Vec::new()));
        let pointers = write(&source, len, sink(Some(Arc::clone(&kept))));
        let bytes = std::mem::take(&mut *kept.lock().unwrap());
        let reader = BlobReader::open(Arc::new(Bytes(bytes)), Path::new("bench.blob"), 1, 2).unwrap();
        let single = best(len, || {
            for pointer in &pointers {
                black_box(reader.read(pointer, true).unwrap());
            }
        });
        let windows = |verify| {
            best(len, || {
                let mut windows = BlobWindows::new(WindowOptions::COMPACTION);
                for pointer in &pointers {
                    black_box(windows.get(&reader, pointer, verify).unwrap());
                }
            })
        };
        let (verified, trusted) = (windows(true), windows(false));
        println!(
            "{len:>6} B | add {add:>7.0}, of it the file {file:>6.0}; without it {:>5.1} GB/s | read {single:>7.0} | \
             windows {verified:>7.0}, without checksums {trusted:>7.0}   (ns a value)",
            len as f64 / (add - file),
        );
    }
}
