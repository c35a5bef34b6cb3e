//! Reads that are done together: by io_uring where the kernel has it, else by some threads.
//!
//! A thread that reads 4 KiB at a time gets them as fast as the device answers one request, a fraction of what the
//! device can do. An experiment on 2 cores, NVMe, `O_DIRECT` at random, batches of 32 reads of 8 KiB (two runs; other builds
//! ran at the same time) gave, as reads a second and processor time a read:
//!
//! | | reads/s | processor |
//! |---|---|---|
//! | one after the other | 14k to 16k | 22 to 32 us, most of it in going to sleep and waking |
//! | io_uring, one call a batch | 79k to 82k | 3.2 to 3.4 us |
//! | a pool of 4 threads | 44k to 47k | 12 us |
//! | a pool of 8 threads | 61k to 72k | 8 us |
//! | a pool of 16 threads | 78k to 83k | 6 to 8 us |
//!
//! `cargo bench -p esker --bench multi_get` measures what came of it. io_uring is worth its `unsafe` here (for large writes it was not: see `in_flight`). Where it is refused, as in most
//! containers, direct reads go to threads that live as long as the batch, and buffered ones are announced to the page
//! cache, which then reads them at the same time.

use std::thread;

use parking_lot::Mutex;

use super::pool::BufferPool;
use super::traffic::{PIECE_BYTES, Traffic};
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
use super::uring::{READS_MAX, Rings};
use crate::{BatchRead, IoMode, IoPriority};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
use self::none::{READS_MAX, Rings};

/// Bytes that a wave reads at most, unless one read alone is larger.
const WAVE_BYTES_MAX: usize = 2 << 20;
/// Threads that read the direct files of one batch, the caller's included.
const THREADS_MAX: usize = 8;
/// With fewer reads for each of them threads are not worth their start.
const READS_PER_THREAD_MIN: usize = 2;

/// Does reads together.
#[derive(Debug, Default)]
pub(super) struct Readers {
    rings: Rings,
}

impl Readers {
    /// Does all reads; each has its result afterwards.
    ///
    /// Those of the background don't count as small reads where there is a ring, however small they are: two jobs would wait
    /// for each other.
    pub(super) fn read_many(
        &self,
        reads: &mut [BatchRead<'_>],
        pool: &BufferPool,
        traffic: &Traffic,
        priority: IoPriority,
    ) {
        let mut rest = reads;
        while !rest.is_empty() {
            let gives_way = priority == IoPriority::Background && traffic.has_small_reads();
            let bytes_max = if gives_way { PIECE_BYTES } else { WAVE_BYTES_MAX };
            let (wave, later) = rest.split_at_mut(wave_len(rest, bytes_max));
            rest = later;
            match priority {
                IoPriority::Foreground => traffic.read_small(|| match wave {
                    [one] => one.run(),
                    _ => self.read_wave(wave, pool),
                }),
                IoPriority::Background if gives_way => {
                    // Without a ring each read takes its own turn, piece by piece.
                    if !traffic.in_turn(|| self.rings.read(wave, pool)) {
                        wave.iter_mut().for_each(BatchRead::run);
                    }
                }
                IoPriority::Background => self.read_wave(wave, pool),
            }
        }
    }

    fn read_wave(&self, wave: &mut [BatchRead<'_>], pool: &BufferPool) {
        if !self.rings.read(wave, pool) {
            without_ring(wave);
        }
    }

    #[cfg(test)]
    pub(super) fn rings(&self) -> &Rings {
        &self.rings
    }
}

/// How many of the reads go into the next wave; at least one.
fn wave_len(reads: &[BatchRead<'_>], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |read: &&BatchRead<'_>| {
        bytes += read.buf.len();
        bytes <= bytes_max && read.file.descriptor().is_some()
    };
    reads.iter().take(READS_MAX).take_while(fits).count().max(1)
}

fn without_ring(reads: &mut [BatchRead<'_>]) {
    let is_direct = |read: &BatchRead<'_>| matches!(read.file.descriptor(), Some((_, IoMode::Direct)));
    let threads = THREADS_MAX.min(reads.len() / READS_PER_THREAD_MIN);
    if threads < 2 || !reads.iter().all(is_direct) {
        reads.iter().for_each(announce);
        reads.iter_mut().for_each(BatchRead::run);
        return;
    }
    let share = reads.len().div_ceil(threads);
    let shares: Vec<Mutex<Option<&mut [BatchRead<'_>]>>> = reads
        .chunks_mut(share)
        .map(|share| Mutex::new(Some(share)))
        .collect();
    let run = |share: &Mutex<Option<&mut [BatchRead<'_>]>>| {
        if let Some(reads) = share.lock().take() {
            reads.iter_mut().for_each(BatchRead::run);
        }
    };
    thread::scope(|scope| {
        for share in &shares[1..] {
            // Where no thread can be had, the share is left to the caller.
            let _ = thread::Builder::new()
                .name("esker-read".to_owned())
                .spawn_scoped(scope, move || run(share));
        }
        run(&shares[0]);
    });
    shares.iter().for_each(run);
}

/// Tells the page cache what will be read. Advice only: an error changes nothing.
#[cfg(target_os = "linux")]
fn announce(read: &BatchRead<'_>) {
    if let Some((fd, IoMode::Buffered)) = read.file.descriptor() {
        let len = std::num::NonZeroU64::new(read.buf.len() as u64);
        let _ = rustix::fs::fadvise(fd, read.offset, len, rustix::fs::Advice::WillNeed);
    }
}

/// Nothing: the others have no such call, or another.
#[cfg(not(target_os = "linux"))]
fn announce(_: &BatchRead<'_>) {}

/// Where there is no io_uring.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod none {
    use super::{BatchRead, BufferPool};

    pub(super) const READS_MAX: usize = 64;

    #[derive(Debug, Default)]
    pub(super) struct Rings;

    #[cfg(test)]
    impl Rings {
        pub(super) fn refuse(&self) {}
    }

    impl Rings {
        pub(super) fn read(&self, _: &mut [BatchRead<'_>], _: &BufferPool) -> bool {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::PosixFs;
    use crate::IoPriority::{self, Background, Foreground};
    use crate::{BatchRead, Fs, IoMode, RandomFile};

    const LENGTHS: [usize; 4] = [0, 5000, 4096 * 7, 300_000];

    fn bytes_of(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    /// Files of some lengths, beside the build's output: on a disk, where direct I/O works.
    fn files(fs: &PosixFs) -> (tempfile::TempDir, Vec<Arc<dyn RandomFile>>) {
        let beside = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let mut files = Vec::new();
        for len in LENGTHS {
            let path = dir.path().join(len.to_string());
            std::fs::write(&path, bytes_of(len)).unwrap();
            for mode in [IoMode::Direct, IoMode::Buffered] {
                files.push(fs.open(Path::new(&path), mode).unwrap());
            }
        }
        (dir, files)
    }

    /// Does the reads together; each must bring what the file holds there.
    fn check(
        fs: &PosixFs,
        files: &[Arc<dyn RandomFile>],
        wanted: &[(usize, usize, usize)],
        priority: IoPriority,
    ) {
        let mut buffers: Vec<Vec<u8>> = wanted.iter().map(|(_, _, len)| vec![0xaa; *len]).collect();
        let mut reads: Vec<BatchRead<'_>> = wanted
            .iter()
            .zip(&mut buffers)
            .map(|((file, offset, _), buf)| BatchRead::new(&*files[*file], *offset as u64, buf))
            .collect();
        fs.read_many(&mut reads, priority);
        let counts: Vec<usize> = reads.into_iter().map(|read| read.result.unwrap()).collect();
        for ((&(file, offset, len), count), buffer) in wanted.iter().zip(counts).zip(buffers) {
            let content = bytes_of(LENGTHS[file / 2]);
            let from = offset.min(content.len());
            let expected = &content[from..(from + len).min(content.len())];
            assert_eq!(count, expected.len(), "{len} bytes at {offset} of file {file}");
            assert!(
                buffer[..count] == *expected,
                "{len} bytes at {offset} of file {file}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn reads_together_bring_what_each_brings_alone(
            wanted in proptest::collection::vec(
                (0..2 * LENGTHS.len(), 0..320_000_usize, prop_oneof![0..100_usize, 4000..9000_usize, 0..200_000_usize]),
                0..90,
            ),
            refused: bool,
        ) {
            let fs = PosixFs::new();
            if refused {
                fs.readers().rings().refuse();
            }
            let (_dir, files) = files(&fs);
            check(&fs, &files, &wanted, Foreground);
            check(&fs, &files, &wanted, Background);
            fs.traffic().read_small(|| check(&fs, &files, &wanted, Background));
        }
    }

    #[test]
    fn threads_that_read_at_the_same_time_do_not_meet() {
        for refused in [false, true] {
            let fs = PosixFs::new();
            if refused {
                fs.readers().rings().refuse();
            }
            let (_dir, files) = files(&fs);
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (fs, files) = (&fs, &files);
                    scope.spawn(move || {
                        for round in 0..20 {
                            let wanted: Vec<_> = (0..30)
                                .map(|i| {
                                    (
                                        6 + i % 2,
                                        (thread * 7919 + round * 104_729 + i * 13_007) % 290_000,
                                        5000,
                                    )
                                })
                                .collect();
                            let background = (thread + round) % 3 == 0;
                            let priority = if background { Background } else { Foreground };
                            check(fs, files, &wanted, priority);
                        }
                    });
                }
            });
        }
    }

    /// Reads of folders and of write-only files fail; what is read beside them does not.
    #[test]
    fn an_error_is_of_its_own_read() {
        #[derive(Debug)]
        struct Folder(std::fs::File);
        impl RandomFile for Folder {
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
                std::os::unix::fs::FileExt::read_at(&self.0, buf, offset)
            }
            fn len(&self) -> std::io::Result<u64> {
                Ok(0)
            }
            fn descriptor(&self) -> Option<(std::os::fd::BorrowedFd<'_>, IoMode)> {
                Some((std::os::fd::AsFd::as_fd(&self.0), IoMode::Buffered))
            }
        }
        for refused in [false, true] {
            let fs = PosixFs::new();
            if refused {
                fs.readers().rings().refuse();
            }
            let (dir, files) = files(&fs);
            let folder = Folder(std::fs::File::open(dir.path()).unwrap());
            let (mut a, mut b, mut c) = ([0; 100], [0; 100], [0; 100]);
            let mut reads = [
                BatchRead::new(&*files[6], 4000, &mut a),
                BatchRead::new(&folder, 0, &mut b),
                BatchRead::new(&*files[7], 4000, &mut c),
            ];
            fs.read_many(&mut reads, Foreground);
            let [first, failed, last] = reads.map(|read| read.result);
            assert_eq!((first.unwrap(), last.unwrap()), (100, 100));
            assert_eq!(failed.unwrap_err().kind(), std::io::ErrorKind::IsADirectory);
            assert_eq!(
                (&a[..], &c[..]),
                (&bytes_of(5000)[4000..4100], &bytes_of(5000)[4000..4100])
            );
        }
    }
}
