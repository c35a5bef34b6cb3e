//! The files of the log: names, preallocation, reuse, removal.
//!
//! A finished segment that is no longer needed is kept to be renamed and overwritten: its blocks are allocated and
//! written already, so that a sync of new data in it needs no journal commit for them. Steps of a reuse, and what a
//! crash between them leaves:
//! 1. The file is renamed to the new segment's name. Crash: the header holds the old number, the reader says
//!    `NotStarted`.
//! 2. The new header is written. Crash without the rename: a dead segment's name leads to a file with a greater
//!    number, `NotStarted` again.
//! 3. The folder is synced, so that records that are synced later can be found.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use esker_env::{CreateOptions, Fs, IoMode, WriteFile};
use parking_lot::Mutex;

use super::format::SegmentId;
use super::writer::{Origin, WalWriter};
use crate::error::{Error, Result};

const SUFFIX: &str = ".wal";

/// The file name of a segment.
pub fn segment_name(number: u64) -> String {
    format!("{number:06}{SUFFIX}")
}

/// The number in a segment's file name; `None` for any other name (only the canonical spelling is one).
pub fn parse_segment_name(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}

/// How segments are made.
#[derive(Clone, Copy, Debug)]
pub struct SegmentSettings {
    /// The database's id.
    pub db_id: u64,
    /// Size that a segment is preallocated for, in bytes.
    pub segment_bytes: u64,
    /// Segments kept for reuse at most.
    pub recycle_count: usize,
    /// Buffered or direct.
    pub mode: IoMode,
    /// Bytes that are buffered in the process (see `CreateOptions::buffer_bytes`).
    pub buffer_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Segments in use, with their sizes in bytes as last reported.
    live: BTreeMap<u64, u64>,
    /// Segments to be overwritten, the oldest first.
    idle: VecDeque<u64>,
}

/// The segment files of a database.
#[derive(Debug)]
pub struct WalSegments {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    settings: SegmentSettings,
    state: Mutex<State>,
}

impl WalSegments {
    /// Segments in `dir`; none is known yet (see [`Self::scan`]).
    pub fn new(fs: Arc<dyn Fs>, dir: &Path, settings: SegmentSettings) -> Self {
        Self {
            fs,
            dir: dir.to_owned(),
            settings,
            state: Mutex::default(),
        }
    }

    /// Where a segment is.
    pub fn path(&self, number: u64) -> PathBuf {
        self.dir.join(segment_name(number))
    }

    /// The numbers of all segment files in the folder, ascending. All become live.
    pub fn scan(&self) -> Result<Vec<u64>> {
        let names = self
            .fs
            .list(&self.dir)
            .map_err(|error| Error::io("can't list the WAL's folder", error).in_file(&self.dir))?;
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
        numbers.sort_unstable();
        for &number in &numbers {
            let path = self.path(number);
            let bytes = self
                .fs
                .file_len(&path)
                .map_err(|error| Error::io("can't stat the WAL segment", error).in_file(&path))?;
            self.state.lock().live.insert(number, bytes);
        }
        Ok(numbers)
    }

    /// Starts segment `number`, which must be greater than all before: in an idle file if there is one, in a
    /// preallocated new one otherwise. No lock is held across file operations.
    pub fn start(&self, number: u64) -> Result<WalWriter> {
        let path = self.path(number);
        let options = CreateOptions {
            mode: self.settings.mode,
            preallocate_bytes: self.settings.segment_bytes,
            buffer_bytes: self.settings.buffer_bytes,
        };
        let idle = self.state.lock().idle.pop_front();
        // An idle file that can't be reused is no loss; whatever is wrong, the new file shows it if it matters.
        let reused = idle.and_then(|old| match self.fs.reuse(&self.path(old), &path, options) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::warn!(segment = old, %error, "a WAL segment could not be reused");
                let _ = self.fs.remove(&self.path(old));
                None
            }
        });
        let (file, origin) = match reused {
            Some(file) => (file, Origin::Recycled),
            None => {
                let created = self.fs.create(&path, options);
                let file = created.map_err(|error| {
                    let _ = self.fs.remove(&path);
                    Error::io("can't create the WAL segment", error).in_file(&path)
                })?;
                (file, Origin::Fresh)
            }
        };
        match self.begin(number, &path, file, origin) {
            Ok(writer) => {
                self.state.lock().live.insert(number, writer.len());
                Ok(writer)
            }
            Err(error) => {
                // It holds nothing; leaving it costs room, of which there may be none.
                let _ = self.fs.remove(&path);
                Err(error)
            }
        }
    }

    fn begin(&self, number: u64, path: &Path, file: Box<dyn WriteFile>, origin: Origin) -> Result<WalWriter> {
        let id = SegmentId {
            db_id: self.settings.db_id,
            number,
        };
        let mut writer = WalWriter::new(file, path, id, origin)?;
        writer.flush()?;
        self.fs
            .sync_dir(&self.dir)
            .map_err(|error| Error::io("can't sync the WAL's folder", error).in_file(&self.dir))?;
        Ok(writer)
    }

    /// Notes the size of a live segment.
    pub fn set_bytes(&self, number: u64, bytes: u64) {
        if let Some(size) = self.state.lock().live.get_mut(&number) {
            *size = bytes;
        }
    }

    /// Live segments with their sizes in bytes, ascending.
    pub fn live(&self) -> Vec<(u64, u64)> {
        self.state
            .lock()
            .live
            .iter()
            .map(|(&n, &bytes)| (n, bytes))
            .collect()
    }

    /// Bytes of all live segments.
    pub fn live_bytes(&self) -> u64 {
        self.state.lock().live.values().sum()
    }

    /// Segments kept for reuse.
    pub fn idle_count(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Gives up all live segments below `number`: what is in them is durable elsewhere, and nobody writes them.
    /// They are kept for reuse as far as there is room, and removed otherwise. Gives how many there were.
    ///
    /// # Errors
    /// `Io` if a file can't be removed; it stays live then, to be tried again.
    pub fn retire_below(&self, number: u64) -> Result<usize> {
        let retired = {
            let mut state = self.state.lock();
            let kept = state.live.split_off(&number);
            std::mem::replace(&mut state.live, kept)
        };
        let count = retired.len();
        let mut result = Ok(count);
        for (old, bytes) in retired {
            {
                let mut state = self.state.lock();
                if state.idle.len() < self.settings.recycle_count {
                    state.idle.push_back(old);
                    continue;
                }
            }
            let path = self.path(old);
            if let Err(error) = self.fs.remove(&path)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                self.state.lock().live.insert(old, bytes);
                result = Err(Error::io("can't remove the WAL segment", error).in_file(&path));
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use esker_env::fault::{Fault, FaultFs, Op, Rule};
    use esker_env::mem::{CrashMode, MemFs};

    use super::super::reader::{Ending, WalReader};
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::RecoveryMode;

    fn segments(fs: Arc<dyn Fs>) -> WalSegments {
        fs.create_dir_all(Path::new("db")).unwrap();
        let settings = SegmentSettings {
            db_id: 1,
            segment_bytes: 10_000,
            recycle_count: 2,
            mode: IoMode::Buffered,
            buffer_bytes: 0,
        };
        WalSegments::new(fs, Path::new("db"), settings)
    }

    fn ending(fs: &dyn Fs, segments: &WalSegments, number: u64) -> (u64, Ending) {
        let path = segments.path(number);
        let file = fs.open(&path, IoMode::Buffered).unwrap();
        let id = SegmentId { db_id: 1, number };
        let mut reader = WalReader::new(file, &path, id, RecoveryMode::Absolute).unwrap();
        while reader.next().unwrap().is_some() {}
        (reader.report().records, reader.report().ending)
    }

    #[test]
    fn names_come_back_and_others_are_none() {
        for number in [0, 7, 999_999, 1_000_000, u64::MAX] {
            assert_eq!(parse_segment_name(&segment_name(number)), Some(number));
        }
        for other in [
            "7.wal",
            "0000007.wal",
            "+00007.wal",
            "000007.sst",
            ".wal",
            "000007.wal.tmp",
        ] {
            assert_eq!(parse_segment_name(other), None, "{other}");
        }
    }

    #[test]
    fn retired_segments_are_overwritten_or_removed() {
        let fs = MemFs::new();
        let segments = segments(Arc::new(fs.clone()));
        for number in 1..=4 {
            let mut writer = segments.start(number).unwrap();
            writer.append(&[number as u8; 100]).unwrap();
            writer.append(&[number as u8; 100]).unwrap();
            segments.set_bytes(number, writer.len());
            writer.finish(false).unwrap();
        }
        assert_eq!(segments.live_bytes(), 4 * (64 + 2 * 111));
        assert_eq!(segments.retire_below(4).unwrap(), 3);
        assert_eq!((segments.idle_count(), segments.live().len()), (2, 1));
        assert!(!fs.exists(&segments.path(3)).unwrap(), "room for two");

        let mut writer = segments.start(5).unwrap();
        assert!(!fs.exists(&segments.path(1)).unwrap(), "renamed");
        writer.append(b"fresh").unwrap();
        assert!(
            fs.file_len(&segments.path(5)).unwrap() > 250,
            "the stale tail is there"
        );
        assert_eq!(ending(&fs, &segments, 5), (1, Ending::Clean));
        writer.finish(true).unwrap();
        assert_eq!(ending(&fs, &segments, 5), (1, Ending::Finished));
        drop(segments.start(6).unwrap());
        drop(segments.start(7).unwrap());
        let numbers: Vec<u64> = segments.live().iter().map(|&(number, _)| number).collect();
        assert_eq!(numbers, [4, 5, 6, 7]);
        assert_eq!(segments.retire_below(4).unwrap(), 0);

        let again = super::tests::segments(Arc::new(fs));
        assert_eq!(again.scan().unwrap(), [4, 5, 6, 7]);
        assert!(again.live_bytes() > 0);
    }

    #[test]
    fn a_stop_at_any_step_of_a_reuse_leaves_no_record_and_no_error() {
        for stop in 0..6 {
            for seed in 0..20 {
                let fs = MemFs::new();
                let segments = segments(Arc::new(fs.clone()));
                let mut writer = segments.start(1).unwrap();
                writer.append(b"old").unwrap();
                writer.finish(true).unwrap();
                segments.retire_below(2).unwrap();
                fs.stop_after(Some(stop));
                let _ = segments.start(2);
                let crashed = fs.crash(CrashMode::Torn { seed });
                for number in [1, 2] {
                    if !crashed.exists(&segments.path(number)).unwrap() {
                        continue;
                    }
                    let path = segments.path(number);
                    let file = crashed.open(&path, IoMode::Buffered).unwrap();
                    let id = SegmentId { db_id: 1, number };
                    let mut reader = WalReader::new(file, &path, id, RecoveryMode::PointInTime).unwrap();
                    let found = reader.next().unwrap().map(|record| record.payload.to_vec());
                    // Only the dead segment under its old name may still show what it held.
                    assert!(found.is_none() || (number == 1 && found.as_deref() == Some(b"old")));
                }
            }
        }
    }

    #[test]
    fn a_segment_that_can_not_be_reused_is_replaced() {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let segments = segments(Arc::new(fs.clone()));
        drop(segments.start(1).unwrap());
        segments.retire_below(2).unwrap();
        fs.add(Rule::new(Op::Reuse, Fault::Eio));
        drop(segments.start(2).unwrap());
        assert_eq!(ending(&fs, &segments, 2), (0, Ending::Clean));
        assert!(!fs.exists(&segments.path(1)).unwrap());
        assert_eq!(segments.idle_count(), 0);
    }

    #[test]
    fn a_segment_that_can_not_be_started_leaves_nothing() {
        for (op, fault, kind) in [
            (Op::Create, Fault::Enospc, ErrorKind::NoSpace),
            (Op::Append, Fault::Enospc, ErrorKind::NoSpace),
            (Op::SyncDir, Fault::Eio, ErrorKind::Io),
        ] {
            let fs = FaultFs::new(Arc::new(MemFs::new()));
            let segments = segments(Arc::new(fs.clone()));
            fs.add(Rule::new(op, fault));
            assert_eq!(segments.start(1).unwrap_err().kind(), kind);
            assert!(segments.live().is_empty());
            assert!(fs.list(Path::new("db")).unwrap().is_empty(), "{op:?}");
            segments.start(1).unwrap();
        }
    }

    #[test]
    fn a_segment_that_can_not_be_removed_stays_live() {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let segments = segments(Arc::new(fs.clone()));
        for number in 1..=3 {
            drop(segments.start(number).unwrap());
        }
        fs.add(Rule::new(Op::Remove, Fault::Eio));
        assert_eq!(segments.retire_below(4).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(segments.live().len(), 1);
        assert_eq!(segments.retire_below(4).unwrap(), 1);
    }

    #[test]
    fn segments_of_the_real_file_system_come_back() {
        let beside = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        for (base, mode) in [(10, IoMode::Buffered), (20, IoMode::Direct)] {
            let fs: Arc<dyn Fs> = Arc::new(esker_env::posix::PosixFs::new());
            let settings = SegmentSettings {
                db_id: 1,
                segment_bytes: 1 << 20,
                recycle_count: 1,
                mode,
                buffer_bytes: 0,
            };
            let segments = WalSegments::new(Arc::clone(&fs), dir.path(), settings);
            for (number, records) in [(base, 300), (base + 1, 7)] {
                let mut writer = segments.start(number).unwrap();
                for i in 0..records {
                    writer.append(&vec![i as u8; 1000]).unwrap();
                }
                writer.sync().unwrap();
                assert_eq!(ending(&*fs, &segments, number), (records, Ending::Clean));
                writer.append(b"unaligned").unwrap();
                writer.finish(true).unwrap();
                assert_eq!(ending(&*fs, &segments, number), (records + 1, Ending::Finished));
                segments.retire_below(number + 1).unwrap();
            }
            assert_eq!(segments.idle_count(), 1);
        }
    }
}
