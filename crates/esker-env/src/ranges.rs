//! Ranges of several files, read together: neighbours by one request.
//!
//! Ranges that lie side by side in a file, or nearly, are one request: another request costs the device and the
//! processor more than the few KiB in between.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::{BatchRead, Fs, IoPriority, RandomFile};

/// Bytes between two ranges that are read along rather than skipped where somebody waits: at most one page of the device
/// more.
const GAP_BYTES_MAX: u64 = 4 << 10;
/// The same where nobody waits: then fewer requests count for more than fewer bytes.
pub const BACKGROUND_GAP_BYTES_MAX: u64 = 16 << 10;
/// A run is not longer than this, so that a long one is read by several requests at a time.
const RUN_BYTES_MAX: u64 = 128 << 10;

/// A range of a file that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedRange<'a> {
    /// The file, of the file system that is asked.
    pub file: &'a dyn RandomFile,
    /// The file's number: ranges with the same number are of the same file.
    pub number: u64,
    /// Where the range begins.
    pub offset: u64,
    /// Its length in bytes.
    pub len: usize,
}

impl WantedRange<'_> {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }
}

/// Where a range was read to: `buffer[at..at + len]`.
#[derive(Clone, Debug)]
pub struct ReadRange {
    /// What was read by one request. Ranges that were read along with this one are in it too.
    pub buffer: Arc<[u8]>,
    /// Where the range begins in it.
    pub at: usize,
}

/// Ranges that are read by one request.
struct Run {
    wanted: Range<usize>,
    buffer: Arc<[u8]>,
}

/// Reads all of `wanted`; neighbours are found if they are in the order of number and offset. For each, in that order,
/// where it is, or why it can't be read: `UnexpectedEof` if the file ends before. A range that fails spoils no other,
/// also where it was read along with others.
pub fn read_ranges(
    fs: &dyn Fs,
    wanted: &[WantedRange<'_>],
    priority: IoPriority,
) -> Vec<io::Result<ReadRange>> {
    let mut runs = runs(wanted, gap_bytes_max(priority));
    let mut reads: Vec<BatchRead<'_>> = runs
        .iter_mut()
        .map(|run| {
            let first = &wanted[run.wanted.start];
            // Nobody shares it yet; else nothing would be read, which is found below.
            let buffer = Arc::get_mut(&mut run.buffer).unwrap_or_default();
            BatchRead::new(first.file, first.offset, buffer)
        })
        .collect();
    fs.read_many(&mut reads, priority);
    let results: Vec<io::Result<usize>> = reads.into_iter().map(|read| read.result).collect();
    let mut found = Vec::with_capacity(wanted.len());
    for (run, result) in runs.into_iter().zip(results) {
        let wanted = &wanted[run.wanted];
        let mut failure = result.and_then(|count| whole(count, run.buffer.len())).err();
        for range in wanted {
            found.push(match failure.take_if(|_| wanted.len() == 1) {
                Some(error) => Err(error),
                None if failure.is_none() => Ok(ReadRange {
                    buffer: Arc::clone(&run.buffer),
                    at: (range.offset - wanted[0].offset) as usize,
                }),
                // By itself it tells which one it is; and what lies in between does no harm.
                None => read_alone(range),
            });
        }
    }
    found
}

fn read_alone(range: &WantedRange<'_>) -> io::Result<ReadRange> {
    let mut buffer = zeroed(range.len);
    let bytes = Arc::get_mut(&mut buffer).unwrap_or_default();
    range.file.read_exact_at(range.offset, bytes)?;
    Ok(ReadRange { buffer, at: 0 })
}

fn whole(count: usize, wanted: usize) -> io::Result<()> {
    if count == wanted {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

fn zeroed(len: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, len).collect()
}

fn gap_bytes_max(priority: IoPriority) -> u64 {
    match priority {
        IoPriority::Foreground => GAP_BYTES_MAX,
        IoPriority::Background => BACKGROUND_GAP_BYTES_MAX,
    }
}

fn runs(wanted: &[WantedRange<'_>], gap_bytes_max: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(wanted.len());
    let mut next = 0;
    while let Some(first) = wanted.get(next) {
        let start = next;
        let mut end = first.end();
        next += 1;
        while let Some(range) = wanted.get(next) {
            let joins = range.number == first.number
                && range.offset >= end
                && range.offset - end <= gap_bytes_max
                && range.end() - first.offset <= RUN_BYTES_MAX;
            if !joins {
                break;
            }
            end = range.end();
            next += 1;
        }
        runs.push(Run {
            wanted: start..next,
            buffer: zeroed((end - first.offset) as usize),
        });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use proptest::prelude::*;

    use crate::IoPriority::{Background, Foreground};
    use crate::fault::{Fault, FaultFs, Op, Rule};
    use crate::mem::MemFs;
    use crate::{CreateOptions, IoMode};

    const FILE_BYTES: usize = 300_000;

    fn byte(number: u64, at: usize) -> u8 {
        (at * 7 + at / 251) as u8 ^ number as u8
    }

    /// Files 0 to 2, of the bytes that [`byte`] gives.
    fn files() -> (FaultFs, Vec<Arc<dyn RandomFile>>) {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        fs.create_dir_all(Path::new("d")).unwrap();
        let files = (0..3).map(|number| {
            let path = Path::new("d").join(number.to_string());
            let mut file = fs.create(&path, CreateOptions::default()).unwrap();
            let bytes: Vec<u8> = (0..FILE_BYTES).map(|at| byte(number, at)).collect();
            file.append(&bytes).unwrap();
            file.finish(true).unwrap();
            fs.open(&path, IoMode::Buffered).unwrap()
        });
        let files = files.collect();
        (fs, files)
    }

    fn wanted<'a>(files: &'a [Arc<dyn RandomFile>], ranges: &[(u64, usize, usize)]) -> Vec<WantedRange<'a>> {
        let range = |&(number, offset, len): &(u64, usize, usize)| WantedRange {
            file: &*files[number as usize],
            number,
            offset: offset as u64,
            len,
        };
        ranges.iter().map(range).collect()
    }

    fn check(wanted: &WantedRange<'_>, read: &io::Result<ReadRange>) {
        let read = read.as_ref().unwrap();
        let bytes = &read.buffer[read.at..read.at + wanted.len];
        let mut all = bytes.iter().zip(wanted.offset as usize..);
        assert!(
            all.all(|(&found, at)| found == byte(wanted.number, at)),
            "{wanted:?}"
        );
    }

    fn requests(fs: &FaultFs) -> (u64, u64) {
        (fs.calls(Op::ReadMany), fs.calls(Op::Read))
    }

    proptest! {
        #[test]
        fn every_range_is_found(
            mut ranges in prop::collection::vec((0..3_u64, 0..FILE_BYTES, 0..20_000_usize), 0..60),
            sorted: bool,
            waits: bool,
        ) {
            let priority = if waits { Foreground } else { Background };
            for (_, offset, len) in &mut ranges {
                *len = (*len).min(FILE_BYTES - *offset);
            }
            if sorted {
                ranges.sort_unstable();
            }
            let (fs, files) = files();
            let wanted = wanted(&files, &ranges);
            let read = read_ranges(&fs, &wanted, priority);
            prop_assert_eq!(read.len(), wanted.len());
            wanted.iter().zip(&read).for_each(|(wanted, read)| check(wanted, read));
            let longest = wanted.iter().map(|wanted| wanted.len).max().unwrap_or(0);
            for read in read {
                prop_assert!(read.unwrap().buffer.len() <= longest.max(RUN_BYTES_MAX as usize));
            }
        }
    }

    #[test]
    fn neighbours_are_one_request() {
        let (fs, files) = files();
        for (ranges, reads) in [
            // Side by side; a gap that is read over; one that is not; another file.
            (vec![(0, 100, 50), (0, 150, 1000)], 1),
            (vec![(0, 100, 50), (0, 150 + 4096, 1000)], 1),
            (vec![(0, 100, 50), (0, 151 + 4096, 1000)], 2),
            (vec![(0, 100, 50), (1, 150, 1000)], 2),
            // Backwards, and the same twice.
            (vec![(0, 150, 1000), (0, 100, 50)], 2),
            (vec![(0, 100, 50), (0, 100, 50)], 2),
            // As much as a run may have, and a byte more.
            (vec![(2, 0, 64 << 10), (2, 64 << 10, 64 << 10)], 1),
            (vec![(2, 0, 64 << 10), (2, 64 << 10, (64 << 10) + 1)], 2),
            // Alone it may be longer.
            (vec![(2, 0, FILE_BYTES)], 1),
            (vec![], 0),
        ] {
            let before = requests(&fs);
            let wanted = wanted(&files, &ranges);
            let read = read_ranges(&fs, &wanted, Foreground);
            wanted
                .iter()
                .zip(&read)
                .for_each(|(wanted, read)| check(wanted, read));
            let after = requests(&fs);
            assert_eq!((after.0 - before.0, after.1 - before.1), (1, reads), "{ranges:?}");
        }
    }

    /// A request more costs the processor and the device more than the time that nobody waits for.
    #[test]
    fn wider_gaps_are_read_over_where_nobody_waits() {
        let (fs, files) = files();
        let gap = BACKGROUND_GAP_BYTES_MAX as usize;
        for (priority, gap, reads) in [
            (Foreground, gap, 2),
            (Background, gap, 1),
            (Background, gap + 1, 2),
        ] {
            let before = requests(&fs);
            let wanted = wanted(&files, &[(0, 100, 50), (0, 150 + gap, 1000)]);
            let read = read_ranges(&fs, &wanted, priority);
            wanted
                .iter()
                .zip(&read)
                .for_each(|(wanted, read)| check(wanted, read));
            assert_eq!(requests(&fs).1 - before.1, reads, "{priority:?}, {gap} bytes");
        }
    }

    #[test]
    fn a_range_that_fails_spoils_no_other() {
        let (fs, files) = files();
        let ranges = [
            (0, 0, 100),
            (0, 100, 100),
            (1, 0, 100),
            (2, FILE_BYTES - 10, 5),
            (2, FILE_BYTES - 5, 100),
        ];
        let wanted = wanted(&files, &ranges);
        let read = read_ranges(&fs, &wanted, Foreground);
        wanted[..4]
            .iter()
            .zip(&read)
            .for_each(|(wanted, read)| check(wanted, read));
        let error = read[4].as_ref().unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::UnexpectedEof,
            "past the end of the file"
        );
        // The first run fails and is read range by range, the second has one range only.
        for (nth, failed) in [(1, None), (2, Some(2))] {
            fs.add(Rule::new(Op::Read, Fault::Eio).nth(nth));
            let read = read_ranges(&fs, &wanted[..3], Foreground);
            for (i, (wanted, read)) in wanted.iter().zip(&read).enumerate() {
                match failed {
                    Some(failed) if failed == i => assert!(read.is_err()),
                    _ => check(wanted, read),
                }
            }
        }
    }
}
