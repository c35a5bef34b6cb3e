//! The files of the log: names, preallocation, reuse, removal.
//!
//! A segment that is no longer needed is kept to be overwritten, as far as `memory_bytes` goes: its file is locked in memory
//! then, so that an append is a copy, and what is overwritten before the kernel writes it out never reaches the device
//! (docs/decisions/0006). A file that can't be locked is not used again: overwriting a part of a page that has left the page
//! cache would read it from the device first. The kernel writes a file out some thirty seconds after it first became dirty,
//! all of it at once, however often it was overwritten since: so a file
//! is removed when it is twenty seconds old, its pages with it, and the next segment is a new one.
//!
//! Steps of a reuse, and what a crash between them leaves:
//! 1. The file is rewound and waits under its old name. Crash: it is a segment that recovery does not look at.
//! 2. It is renamed to the new segment's name. Crash: the header holds the old number, the reader says `NotStarted`.
//! 3. The new header is written. Crash without the rename: a dead segment's name leads to a file with a greater
//!    number, `NotStarted` again.
//! 4. The folder is synced, so that records that are synced later can be found.
//!
//! A segment begins with the records that are carried over from the one before: batches that are prepared and not resolved.
//! They are durable before anybody learns of the segment ([`newest`](WalSegments::newest)), because from then on those before
//! may be given up.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use esker_env::{Clock, CreateOptions, Env, Fs, WriteFile};
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
    /// Memory for segments that are used again, in bytes; less than `segment_bytes`: every segment is a new file.
    pub memory_bytes: u64,
}

/// A file that is older is not used again: Linux writes out what has been dirty for thirty seconds (`vm.dirty_expire_centisecs`).
const KEPT_FOR: Duration = Duration::from_secs(20);

#[derive(Debug)]
struct Live {
    /// Size in bytes as last reported.
    bytes: u64,
    /// How much of that was carried over from the segment before.
    carried_bytes: u64,
    /// Bytes of its file that are locked in memory.
    locked_bytes: u64,
    /// When its file was created, by the clock; when it was found, if it was there before.
    created: Duration,
    /// Its file, once nobody writes or syncs it any more.
    file: Option<Box<dyn WriteFile>>,
}

/// A file that waits to become a segment; it was rewound.
#[derive(Debug)]
struct Idle {
    number: u64,
    created: Duration,
    file: Box<dyn WriteFile>,
}

#[derive(Debug, Default)]
struct State {
    live: BTreeMap<u64, Live>,
    /// The oldest first.
    idle: VecDeque<Idle>,
    /// Whether a file could not be locked. It is not tried again then.
    locking_refused: bool,
    /// Those who read segments that are complete.
    holds: usize,
}

impl State {
    fn locked_bytes(&self) -> u64 {
        let live = self.live.values().map(|live| live.locked_bytes);
        let idle = self.idle.iter().map(|idle| idle.file.locked_bytes());
        live.chain(idle).sum()
    }
}

/// Segments that nobody needs any more, taken out of the log, whose files are still there: see
/// [`WalSegments::clear_away`].
#[derive(Debug)]
#[must_use]
pub struct Retired(Vec<(u64, Live)>);

/// While it lives no segment is retired, so that those that are complete can be read.
#[derive(Debug)]
#[must_use]
pub struct WalHold<'a>(&'a WalSegments);

impl Drop for WalHold<'_> {
    fn drop(&mut self) {
        self.0.state.lock().holds -= 1;
    }
}

/// The segment files of a database.
#[derive(Debug)]
pub struct WalSegments {
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    settings: SegmentSettings,
    state: Mutex<State>,
}

impl WalSegments {
    /// Segments in `dir`; none is known yet (see [`Self::scan`]).
    pub fn new(env: &Env, dir: &Path, settings: SegmentSettings) -> Self {
        Self {
            fs: Arc::clone(&env.fs),
            clock: Arc::clone(&env.clock),
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
            self.add_live(number, bytes, 0, 0, self.clock.now());
        }
        Ok(numbers)
    }

    fn add_live(&self, number: u64, bytes: u64, carried_bytes: u64, locked_bytes: u64, created: Duration) {
        let live = Live {
            bytes,
            carried_bytes,
            locked_bytes,
            created,
            file: None,
        };
        self.state.lock().live.insert(number, live);
    }

    /// Starts segment `number`, which must be greater than all before, with the records that are `carried` over: in an idle
    /// file if there is one, in a preallocated new one otherwise. No lock is held across file operations.
    pub fn start(&self, number: u64, carried: &[&[u8]]) -> Result<WalWriter> {
        let path = self.path(number);
        let idle = self.state.lock().idle.pop_front();
        // An idle file that can't be reused is no loss; whatever is wrong, the new file shows it if it matters.
        let reused = idle.and_then(|idle| match self.fs.rename(&self.path(idle.number), &path) {
            Ok(()) => Some((idle.file, idle.created)),
            Err(error) => {
                tracing::warn!(segment = idle.number, %error, "a WAL segment could not be reused");
                let _ = self.fs.remove(&self.path(idle.number));
                None
            }
        });
        let (file, created, origin) = match reused {
            Some((file, created)) => (file, created, Origin::Recycled),
            None => (self.create(&path)?, self.clock.now(), Origin::Fresh),
        };
        let locked_bytes = file.locked_bytes();
        match self.begin(number, &path, file, origin, carried) {
            Ok(writer) => {
                self.add_live(
                    number,
                    writer.len(),
                    writer.carried_bytes(),
                    locked_bytes,
                    created,
                );
                Ok(writer)
            }
            Err(error) => {
                // It holds nothing; leaving it costs room, of which there may be none.
                let _ = self.fs.remove(&path);
                Err(error)
            }
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let options = CreateOptions {
            preallocate_bytes: self.settings.segment_bytes,
            lock_in_memory: self.settings.memory_bytes >= self.settings.segment_bytes,
            ..CreateOptions::default()
        };
        self.fs.create(path, options).map_err(|error| {
            let _ = self.fs.remove(path);
            Error::io("can't create the WAL segment", error).in_file(path)
        })
    }

    fn begin(
        &self,
        number: u64,
        path: &Path,
        file: Box<dyn WriteFile>,
        origin: Origin,
        carried: &[&[u8]],
    ) -> Result<WalWriter> {
        let id = SegmentId {
            db_id: self.settings.db_id,
            number,
        };
        let mut writer = WalWriter::new(file, path, id, origin)?;
        writer.flush()?;
        writer.carry(carried)?;
        self.fs
            .sync_dir(&self.dir)
            .map_err(|error| Error::io("can't sync the WAL's folder", error).in_file(&self.dir))?;
        Ok(writer)
    }

    /// Notes the size of a live segment.
    pub fn set_bytes(&self, number: u64, bytes: u64) {
        if let Some(live) = self.state.lock().live.get_mut(&number) {
            live.bytes = bytes;
        }
    }

    /// Takes the file of a sealed segment that needs no sync any more, for when it is retired. Where no file is used again, what was
    /// preallocated behind its end is given back at once: it may stay for long.
    pub fn hand_back(&self, writer: WalWriter) {
        let number = writer.id().number;
        let Some(mut file) = writer.into_sealed_file() else {
            return;
        };
        if self.memory_bytes_max() == 0 {
            give_back_room(&mut *file);
        } else if let Some(live) = self.state.lock().live.get_mut(&number) {
            live.file = Some(file);
        }
    }

    /// Live segments with their sizes in bytes, ascending.
    pub fn live(&self) -> Vec<(u64, u64)> {
        let state = self.state.lock();
        state
            .live
            .iter()
            .map(|(&number, live)| (number, live.bytes))
            .collect()
    }

    /// The live segment with the greatest number: the one that is written.
    pub fn newest(&self) -> Option<u64> {
        self.state.lock().live.keys().next_back().copied()
    }

    /// Bytes of all live segments.
    pub fn live_bytes(&self) -> u64 {
        self.state.lock().live.values().map(|live| live.bytes).sum()
    }

    /// Bytes of all live segments without those that were carried over from one to the next: what flushes can shorten.
    pub fn own_bytes(&self) -> u64 {
        let state = self.state.lock();
        let own = |live: &Live| live.bytes.saturating_sub(live.carried_bytes);
        state.live.values().map(own).sum()
    }

    /// Bytes of segments, live and idle, that are locked in memory.
    pub fn locked_bytes(&self) -> u64 {
        self.state.lock().locked_bytes()
    }

    /// Memory that segments may come to take: none where not one fits, or where none can be locked.
    pub fn memory_bytes_max(&self) -> u64 {
        let none_fits = self.settings.memory_bytes < self.settings.segment_bytes;
        if none_fits || self.state.lock().locking_refused {
            0
        } else {
            self.settings.memory_bytes
        }
    }

    /// Segments kept for reuse.
    pub fn idle_count(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Keeps all live segments until the hold is dropped. What they hold is then released by the next who asks.
    pub fn hold(&self) -> WalHold<'_> {
        self.state.lock().holds += 1;
        WalHold(self)
    }

    /// Gives up all live segments below `number`, unless somebody [holds](Self::hold) them: what is in them is durable
    /// elsewhere, and nobody writes them.
    pub fn retire_below(&self, number: u64) -> Retired {
        let mut state = self.state.lock();
        if state.holds > 0 {
            return Retired(Vec::new());
        }
        let kept = state.live.split_off(&number);
        Retired(std::mem::replace(&mut state.live, kept).into_iter().collect())
    }

    /// Keeps the files of retired segments for reuse as far as there is room, and removes the others. Gives how many there
    /// were. To make a file ready takes milliseconds the first time.
    ///
    /// # Errors
    /// `Io` if a file can't be removed; it is live again then, to be tried again.
    pub fn clear_away(&self, retired: Retired) -> Result<usize> {
        let count = retired.0.len();
        let mut result = Ok(count);
        for (number, live) in retired.0 {
            let created = live.created;
            if self.clock.now().saturating_sub(created) < KEPT_FOR
                && let Some(file) = live.file
                && let Some(file) = self.make_idle(file)
            {
                let idle = Idle {
                    number,
                    created,
                    file,
                };
                self.state.lock().idle.push_back(idle);
                continue;
            }
            if let Err(error) = self.remove(number) {
                self.add_live(number, live.bytes, live.carried_bytes, 0, created);
                result = Err(error);
            }
        }
        result
    }

    /// The file, ready to be written from its front, if there is room for it.
    fn make_idle(&self, mut file: Box<dyn WriteFile>) -> Option<Box<dyn WriteFile>> {
        {
            let state = self.state.lock();
            let room = self.settings.memory_bytes.saturating_sub(state.locked_bytes());
            if state.locking_refused || room < self.settings.segment_bytes {
                return None;
            }
        }
        if let Err(error) = file.rewind() {
            tracing::warn!(%error, "a WAL segment could not be rewound");
            return None;
        }
        if file.locked_bytes() == 0 {
            tracing::info!(
                bytes = self.settings.segment_bytes,
                "WAL segments can't be locked in memory, so each is a new file; see RLIMIT_MEMLOCK"
            );
            self.state.lock().locking_refused = true;
            return None;
        }
        Some(file)
    }

    fn remove(&self, number: u64) -> Result<()> {
        let path = self.path(number);
        match self.fs.remove(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("can't remove the WAL segment", error).in_file(&path))
            }
            _ => Ok(()),
        }
    }

    /// Gives back what idle segments and the ends of complete ones take on the device. Nothing is started afterwards.
    pub fn close(&self) {
        let (idle, closed) = {
            let mut state = self.state.lock();
            let closed: Vec<_> = state
                .live
                .values_mut()
                .filter_map(|live| live.file.take())
                .collect();
            (std::mem::take(&mut state.idle), closed)
        };
        for Idle { number, .. } in idle {
            if let Err(error) = self.remove(number) {
                tracing::warn!(%error, "an idle WAL segment stays");
            }
        }
        for mut file in closed {
            give_back_room(&mut *file);
        }
    }
}

/// Cuts a complete file where it ends.
fn give_back_room(file: &mut dyn WriteFile) {
    if let Err(error) = file.finish(false) {
        tracing::warn!(%error, "a closed WAL segment keeps its preallocated room");
    }
}

#[cfg(test)]
mod tests {
    use esker_env::IoMode;
    use esker_env::fault::{Fault, FaultFs, Op, Rule};
    use esker_env::mem::{CrashMode, LogicalClock, MemFs};

    use super::super::reader::{Ending, WalReader};
    use super::*;
    use crate::error::ErrorKind;
    use crate::options::RecoveryMode;

    fn segments(fs: Arc<dyn Fs>) -> WalSegments {
        segments_at(fs, Arc::new(LogicalClock::default()))
    }

    fn segments_at(fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> WalSegments {
        segments_with(fs, clock, 20_000)
    }

    fn segments_with(fs: Arc<dyn Fs>, clock: Arc<dyn Clock>, memory_bytes: u64) -> WalSegments {
        fs.create_dir_all(Path::new("db")).unwrap();
        let settings = SegmentSettings {
            db_id: 1,
            segment_bytes: 10_000,
            memory_bytes,
        };
        let env = Env {
            fs,
            clock,
            ..Env::posix()
        };
        WalSegments::new(&env, Path::new("db"), settings)
    }

    fn ending(fs: &dyn Fs, segments: &WalSegments, number: u64) -> (u64, Ending) {
        let path = segments.path(number);
        let file = fs.open(&path, IoMode::Buffered).unwrap();
        let id = SegmentId { db_id: 1, number };
        let mut reader = WalReader::new(file, &path, id, RecoveryMode::Absolute).unwrap();
        while reader.next().unwrap().is_some() {}
        (reader.report().records, reader.report().ending)
    }

    /// Gives up all segments below `number`; how many there were.
    fn release(segments: &WalSegments, number: u64) -> Result<usize> {
        segments.clear_away(segments.retire_below(number))
    }

    fn seal(segments: &WalSegments, mut writer: WalWriter) {
        segments.set_bytes(writer.id().number, writer.len());
        writer.seal().unwrap();
        segments.hand_back(writer);
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
    fn a_held_segment_is_not_retired() {
        let segments = segments(Arc::new(MemFs::new()));
        for number in 1..=3 {
            let mut writer = segments.start(number, &[]).unwrap();
            writer.append(b"record").unwrap();
            seal(&segments, writer);
        }
        let (first, second) = (segments.hold(), segments.hold());
        assert_eq!(release(&segments, 2).unwrap(), 0);
        drop(first);
        assert_eq!(release(&segments, 2).unwrap(), 0);
        drop(second);
        assert_eq!(release(&segments, 2).unwrap(), 1);
    }

    /// A small family that is never flushed kept every segment for long, with the 64 MiB that each had been given.
    #[test]
    fn complete_segments_that_are_not_used_again_take_no_more_room_than_they_hold() {
        for (memory_bytes, kept) in [(0, 0), (20_000, 2 * 10_000)] {
            let fs = MemFs::new();
            let segments = segments_with(
                Arc::new(fs.clone()),
                Arc::new(LogicalClock::default()),
                memory_bytes,
            );
            for number in 1..=2 {
                let mut writer = segments.start(number, &[]).unwrap();
                writer.append(b"record").unwrap();
                assert!(fs.used_bytes() >= 10_000);
                seal(&segments, writer);
            }
            let held: u64 = (1..=2).map(|n| fs.file_len(&segments.path(n)).unwrap()).sum();
            assert_eq!(fs.used_bytes(), if kept > 0 { kept } else { held });
            for number in 1..=2 {
                assert_eq!(ending(&fs, &segments, number), (1, Ending::Finished));
            }
        }
    }

    #[test]
    fn retired_segments_are_overwritten_or_removed() {
        let fs = MemFs::new();
        let segments = segments(Arc::new(fs.clone()));
        for number in 1..=4 {
            let mut writer = segments.start(number, &[]).unwrap();
            writer.append(&[number as u8; 100]).unwrap();
            writer.append(&[number as u8; 100]).unwrap();
            seal(&segments, writer);
        }
        assert_eq!(segments.live_bytes(), 4 * (64 + 2 * 111));
        assert_eq!(segments.locked_bytes(), 0, "new files");
        assert_eq!(segments.memory_bytes_max(), 20_000);
        assert_eq!(release(&segments, 4).unwrap(), 3);
        assert_eq!(segments.locked_bytes(), 20_000);
        assert_eq!((segments.idle_count(), segments.live().len()), (2, 1));
        assert!(!fs.exists(&segments.path(3)).unwrap(), "room for two");

        let mut writer = segments.start(5, &[]).unwrap();
        assert!(!fs.exists(&segments.path(1)).unwrap(), "renamed");
        writer.append(b"fresh").unwrap();
        assert!(
            fs.file_len(&segments.path(5)).unwrap() > 250,
            "the stale tail is there"
        );
        assert_eq!(ending(&fs, &segments, 5), (1, Ending::Clean));
        writer.finish(true).unwrap();
        assert_eq!(ending(&fs, &segments, 5), (1, Ending::Finished));
        drop(segments.start(6, &[]).unwrap());
        drop(segments.start(7, &[]).unwrap());
        let numbers: Vec<u64> = segments.live().iter().map(|&(number, _)| number).collect();
        assert_eq!(numbers, [4, 5, 6, 7]);
        assert_eq!(segments.newest(), Some(7));
        assert_eq!(segments.locked_bytes(), 20_000, "of 5 and 6; 7 is a new file");
        assert_eq!(release(&segments, 4).unwrap(), 0);

        let again = super::tests::segments(Arc::new(fs));
        assert_eq!(again.scan().unwrap(), [4, 5, 6, 7]);
        assert!(again.live_bytes() > 0);
    }

    #[test]
    fn an_old_file_is_not_used_again() {
        let (fs, clock) = (MemFs::new(), Arc::new(LogicalClock::default()));
        let segments = segments_at(Arc::new(fs.clone()), clock.clone());
        seal(&segments, segments.start(1, &[]).unwrap());
        clock.advance(KEPT_FOR / 2);
        seal(&segments, segments.start(2, &[]).unwrap());
        clock.advance(KEPT_FOR * 3 / 4);
        assert_eq!(release(&segments, 3).unwrap(), 2);
        assert!(!fs.exists(&segments.path(1)).unwrap(), "too old");
        assert_eq!(segments.idle_count(), 1);
        // Being used again makes it no younger.
        seal(&segments, segments.start(3, &[]).unwrap());
        clock.advance(KEPT_FOR / 2);
        assert_eq!(release(&segments, 4).unwrap(), 1);
        assert_eq!((segments.idle_count(), segments.locked_bytes()), (0, 0));
        assert!(fs.list(Path::new("db")).unwrap().is_empty());
    }

    #[test]
    fn a_stop_at_any_step_of_a_reuse_leaves_no_record_and_no_error() {
        for stop in 0..6 {
            for seed in 0..20 {
                let fs = MemFs::new();
                let segments = segments(Arc::new(fs.clone()));
                let mut writer = segments.start(1, &[]).unwrap();
                writer.append(b"old").unwrap();
                writer.seal().unwrap();
                writer.sync().unwrap();
                segments.hand_back(writer);
                release(&segments, 2).unwrap();
                fs.stop_after(Some(stop));
                let _ = segments.start(2, &[]);
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
        seal(&segments, segments.start(1, &[]).unwrap());
        release(&segments, 2).unwrap();
        fs.add(Rule::new(Op::Rename, Fault::Eio));
        seal(&segments, segments.start(2, &[]).unwrap());
        assert_eq!(ending(&fs, &segments, 2), (0, Ending::Finished));
        assert!(!fs.exists(&segments.path(1)).unwrap());
        assert_eq!(segments.idle_count(), 0);

        fs.add(Rule::new(Op::Rewind, Fault::Eio));
        release(&segments, 3).unwrap();
        assert!(!fs.exists(&segments.path(2)).unwrap());
        assert_eq!((segments.idle_count(), segments.locked_bytes()), (0, 0));
    }

    #[test]
    fn a_segment_that_may_lack_a_part_is_not_used_again() {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let segments = segments(Arc::new(fs.clone()));
        let mut writer = segments.start(1, &[]).unwrap();
        fs.add(Rule::new(Op::Append, Fault::Eio));
        writer.append(b"x").unwrap_err();
        segments.hand_back(writer);
        // Nor one whose writer nobody has handed back: it may be about to be synced.
        drop(segments.start(2, &[]).unwrap());
        assert_eq!(release(&segments, 3).unwrap(), 2);
        assert_eq!(segments.idle_count(), 0);
        assert!(fs.list(Path::new("db")).unwrap().is_empty());
    }

    #[test]
    fn a_close_leaves_no_idle_file_and_nothing_behind_a_log() {
        let fs = MemFs::new();
        let segments = segments(Arc::new(fs.clone()));
        seal(&segments, segments.start(1, &[]).unwrap());
        release(&segments, 2).unwrap();
        seal(&segments, segments.start(2, &[]).unwrap());
        assert!(!fs.exists(&segments.path(1)).unwrap(), "used again");
        seal(&segments, segments.start(3, &[]).unwrap());
        seal(&segments, segments.start(4, &[]).unwrap());
        release(&segments, 3).unwrap();
        assert_eq!(segments.idle_count(), 1);
        segments.close();
        for number in [3, 4] {
            let live = segments.live().into_iter().find(|live| live.0 == number).unwrap();
            assert_eq!(
                fs.file_len(&segments.path(number)).unwrap(),
                live.1 + 11,
                "and its end's mark"
            );
        }
        assert_eq!(fs.list(Path::new("db")).unwrap().len(), 2);
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
            assert_eq!(segments.start(1, &[]).unwrap_err().kind(), kind);
            assert!(segments.live().is_empty());
            assert!(fs.list(Path::new("db")).unwrap().is_empty(), "{op:?}");
            segments.start(1, &[]).unwrap();
        }
    }

    #[test]
    fn a_segment_that_can_not_be_removed_stays_live() {
        let fs = FaultFs::new(Arc::new(MemFs::new()));
        let segments = segments(Arc::new(fs.clone()));
        for number in 1..=3 {
            drop(segments.start(number, &[]).unwrap());
        }
        fs.add(Rule::new(Op::Remove, Fault::Eio));
        assert_eq!(release(&segments, 4).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(segments.live().len(), 1);
        assert_eq!(release(&segments, 4).unwrap(), 1);
    }

    #[test]
    fn segments_of_the_real_file_system_come_back() {
        let beside = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let env = Env::posix();
        let fs = Arc::clone(&env.fs);
        let settings = SegmentSettings {
            db_id: 1,
            segment_bytes: 1 << 20,
            memory_bytes: 1 << 20,
        };
        let segments = WalSegments::new(&env, dir.path(), settings);
        // The second one goes on behind what was preallocated.
        for (number, records) in [(10, 300), (11, 1500), (12, 7)] {
            let mut writer = segments.start(number, &[]).unwrap();
            for i in 0..records {
                writer.append(&vec![i as u8; 1000]).unwrap();
            }
            writer.sync().unwrap();
            assert_eq!(ending(&*fs, &segments, number), (records, Ending::Clean));
            writer.append(b"unaligned").unwrap();
            writer.seal().unwrap();
            assert_eq!(ending(&*fs, &segments, number), (records + 1, Ending::Finished));
            segments.hand_back(writer);
            release(&segments, number + 1).unwrap();
            // Where the limit on locked memory is low, each is a new file.
            assert_eq!(segments.idle_count() as u64 * (1 << 20), segments.locked_bytes());
        }
        segments.close();
        assert!(fs.list(dir.path()).unwrap().is_empty());
    }
}
