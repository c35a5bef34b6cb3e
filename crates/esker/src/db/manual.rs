//! Flushes, compactions and pauses by hand.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::{ColumnFamily, Db};
use crate::background::{FlushRequest, Scheduler};
use crate::compaction::picker::{self, RangeCursor, RangeStep};
use crate::error::Result;
use crate::options::CompactionStyle;
use crate::version::Family;

impl Db {
    /// Brings everything written so far, in all column families, into SSTables, and waits for it. Works also while
    /// background work is paused: then all that waits for a flush is flushed, and nothing else.
    pub fn flush(&self) -> Result<()> {
        let families: Vec<_> = self.core().families.load().by_id.values().cloned().collect();
        self.core().flush_families(&families)
    }

    /// [`flush`](Self::flush) of one family.
    pub fn flush_cf(&self, family: &ColumnFamily) -> Result<()> {
        let family = self.core().family(family.id())?;
        self.core().flush_families(&[family])
    }

    /// Merges all data between `start` and `end` (inclusive; `None`: open) down to the deepest level that holds any,
    /// after a flush; deleted and overwritten rows that no snapshot sees are gone afterwards. A family in
    /// [`Manual`](crate::CompactionStyle::Manual) style is merged in one parallel pass. With a
    /// [compaction filter](crate::CompactionFilter), or where rows [expire](crate::Aging::Expire), every table of the
    /// range is rewritten, those in the deepest level too. Blocks until it is done; reads and writes go on meanwhile. Works also while background work is paused, on this thread.
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let family = self.default_column_family();
        self.compact_range_cf(&family, start, end)
    }

    /// [`compact_range`](Self::compact_range) in a column family.
    pub fn compact_range_cf(
        &self,
        family: &ColumnFamily,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let core = self.core();
        let family = core.family(family.id())?;
        core.flush_families(std::slice::from_ref(&family))?;
        core.compact_by_hand(&family, start, end)
    }

    /// Whether no flush and no compaction runs or is due, those asked for by name included. Fails with the error of the
    /// job that fails, if one does.
    pub fn is_idle(&self) -> Result<bool> {
        let core = self.core();
        core.check_open()?;
        match core.health.current() {
            Some(failure) => Err(failure),
            None => Ok(core.is_idle()),
        }
    }

    /// Waits until the database [is idle](Self::is_idle), and until the jobs that did the last of the work have removed what
    /// nobody needs any more. Returns at once while background work is paused or off, and with the error of the job that
    /// fails, if one does.
    pub fn wait_idle(&self) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        let Some(scheduler) = core.scheduler() else {
            return Ok(());
        };
        scheduler.wake();
        let mut failure = None;
        scheduler.wait_until(|| {
            failure = core.health.current();
            failure.is_some() || scheduler.paused() || core.is_idle()
        });
        if failure.is_none() {
            // A result is in the view before its job is over: the log that it makes superfluous is removed behind it.
            scheduler.wait_for_running();
        }
        core.bury_dead_files();
        failure.map_or(Ok(()), Err)
    }

    /// Starts no more background jobs and waits for those that run. Calls nest. A write that needs a flush, as its family has
    /// `memtables_max` memtables or memory is full, waits until somebody resumes or asks for the flush; with
    /// [`WriteOptions::no_wait`](crate::WriteOptions::no_wait) it fails with `Retry` instead. What is asked for by name is no background work: [`flush`](Self::flush), [`compact_range`](Self::compact_range) and
    /// [`close`](Self::close) do what they do.
    pub fn pause_background_work(&self) {
        if let Some(scheduler) = self.core().scheduler() {
            scheduler.pause();
        }
    }

    /// Undoes one [`pause_background_work`](Self::pause_background_work).
    pub fn resume_background_work(&self) {
        if let Some(scheduler) = self.core().scheduler() {
            scheduler.resume();
        }
    }

    /// Begins the background work of a database that was opened
    /// [without it](crate::Opener::background_work_off); elsewhere it does nothing. Pauses count as before.
    pub fn start_background_work(&self) {
        let core = self.core();
        if let Some(scheduler) = core.scheduler() {
            // Before: writers are held back by what jobs have done since, not by what has gathered without them.
            for family in core.families.load().by_id.values() {
                core.update_pressure(family);
            }
            scheduler.turn_on();
        }
    }
}

/// Flushes run, paused or not, until this is dropped. That waits until they are paused again.
pub(super) struct RequestedFlush<'a> {
    core: &'a Core,
    request: Option<FlushRequest<'a>>,
}

impl Drop for RequestedFlush<'_> {
    fn drop(&mut self) {
        drop(self.request.take());
        // A writer that waits for more than was flushed learns that no more comes.
        self.core.flushes.notify();
    }
}

/// A family that someone compacts by hand, or takes tables from: nothing is picked for it, and closing waits.
pub(super) struct Reserved<'a> {
    core: &'a Core,
    family: u32,
}

impl<'a> Reserved<'a> {
    pub fn new(core: &'a Core, family: u32) -> Self {
        core.running.lock().reserve(family);
        Self { core, family }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.core.running.lock().unreserve(self.family);
        self.core.flushes.notify();
    }
}

impl Core {
    /// Lets flushes run while background work is paused or off.
    pub(super) fn request_flush(&self) -> RequestedFlush<'_> {
        RequestedFlush {
            core: self,
            request: self.scheduler().map(Scheduler::request_flush),
        }
    }

    /// Seals the families' memtables and waits until they are in SSTables.
    pub(super) fn flush_families(&self, families: &[Arc<Family>]) -> Result<()> {
        self.check_open()?;
        self.check_not_read_only()?;
        self.health.check_writable()?;
        // Before the token: while jobs are paused its holder may be a writer that waits for a flush.
        let _requested = self.request_flush();
        let mut newest = Vec::new();
        self.with_token(|token| {
            if token.wal_broken {
                self.leave_broken_segment(token, false)?;
            }
            for family in families.iter().filter(|family| !family.dropped()) {
                self.seal(token, family)?;
                if let Some(sealed) = family.view().sealed.first() {
                    newest.push((Arc::clone(family), Arc::clone(sealed)));
                }
            }
            Ok(())
        })?;
        self.wake();
        // Sealed memtables leave the view oldest first, so the newest one's leaving says it all.
        let flushed = || {
            newest.iter().all(|(family, buffer)| {
                family.dropped()
                    || !family
                        .view()
                        .sealed
                        .iter()
                        .any(|sealed| Arc::ptr_eq(sealed, buffer))
            })
        };
        self.flushes.wait(|| {
            if flushed() {
                return Some(Ok(()));
            }
            self.health
                .flush_error()
                .map(Err)
                .or_else(|| self.check_open().err().map(Err))
        })
    }

    /// Compacts a key range, or a whole family at once, on this thread and helpers.
    fn compact_by_hand(&self, family: &Arc<Family>, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        let reserved = Reserved::new(self, family.id);
        let result = self.compact_steps(family, start, end);
        drop(reserved);
        // The last plan held its inputs until now.
        self.bury_dead_files();
        self.update_pressure(family);
        self.wake();
        result
    }

    fn compact_steps(&self, family: &Arc<Family>, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        // The steps of a range also rewrite what is in the last level already.
        let bulk = start.is_none()
            && end.is_none()
            && family.options().compaction_style == CompactionStyle::Manual
            && !family.options().rewrites_for_rows();
        let mut cursor = RangeCursor::default();
        loop {
            self.check_open()?;
            let (step, next) = {
                let mut running = self.running.lock();
                let version = Arc::clone(&family.view().version);
                let options = family.options();
                let context = running.context(family.id);
                let step = if bulk {
                    if !context.running.is_empty() {
                        RangeStep::Blocked
                    } else {
                        picker::plan_bulk(&version, &options, &context).map_or(RangeStep::Done, |plan| {
                            RangeStep::Run {
                                plan: Box::new(plan),
                                next: RangeCursor::default(),
                            }
                        })
                    }
                } else {
                    picker::plan_range(&version, &options, &context, start, end, &cursor)
                };
                match step {
                    RangeStep::Done => return Ok(()),
                    RangeStep::Run { plan, next } if running.register(family.id, &plan) => (Some(plan), next),
                    RangeStep::Run { .. } | RangeStep::Blocked => (None, cursor.clone()),
                }
            };
            let Some(plan) = step else {
                let generation = self.flushes.generation();
                // A job of the family ends sooner or later, and says so.
                if !self.running.lock().context(family.id).running.is_empty() {
                    self.flushes.wait_past(generation);
                }
                continue;
            };
            let result = self.run_plan(family, &plan);
            self.running.lock().unregister(family.id, &plan);
            self.flushes.notify();
            result?;
            drop(plan);
            self.bury_dead_files();
            cursor = next;
        }
    }

    /// Ends background work, after a flush if something would be lost otherwise, and lets go of the folder.
    pub(super) fn shut_down(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut result = Ok(());
        if self.unlogged.load(Ordering::Relaxed) && self.health.check_writable().is_ok() {
            let families: Vec<_> = self.families.load().by_id.values().cloned().collect();
            if let Some(scheduler) = self.scheduler() {
                // With jobs paused nobody would flush.
                scheduler.drain();
                result = self.flush_families(&families);
            }
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return result;
        }
        self.flushes.notify();
        if let Some(scheduler) = self.scheduler() {
            scheduler.stop();
        }
        // Nobody may write files in a folder that somebody else can open by then.
        self.flushes
            .wait(|| self.running.lock().is_unreserved().then_some(()));
        self.manifest.lock().close();
        self.bury_dead_files();
        self.with_token(|token| {
            if let Some(mut wal) = token.wal.take() {
                let closed = wal.close();
                if result.is_ok() && !token.wal_broken {
                    result = closed;
                }
            }
        });
        for mut segment in std::mem::take(&mut *self.wal_unsynced.lock()) {
            // All of it was handed on when its end was marked; only what was preallocated is at stake.
            if let Err(error) = segment.close() {
                tracing::warn!(%error, "a closed WAL segment keeps its preallocated room");
            }
        }
        self.wal.close();
        *self.file_lock.lock() = None;
        self.events.stop();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::Env;

    use crate::background::{Lane, Work};
    use crate::db::Opener;
    use crate::options::{ColumnFamilyOptions, Options};

    fn open() -> Db {
        let options = Options {
            memory_budget_bytes: 4 << 20,
            compaction_threads: 1,
            default_column_family: ColumnFamilyOptions {
                memtable_bytes: 16 << 10,
                memtables_max: 2,
                level0_compaction_trigger: 2,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap()
    }

    fn levels(db: &Db) -> String {
        db.property(&db.default_column_family(), "levels").unwrap()
    }

    /// They waited for someone to resume.
    #[test]
    fn what_is_asked_for_by_name_is_done_while_background_work_is_paused() {
        let db = open();
        db.pause_background_work();
        for round in 0..4_u8 {
            db.put(b"key", &[round]).unwrap();
            db.flush().unwrap();
        }
        assert_eq!(levels(&db), "4 0 0 0 0 0 0", "and no compaction runs");
        db.put(b"key", b"last").unwrap();
        db.compact_range(None, None).unwrap();
        assert_eq!(levels(&db), "0 0 0 0 0 0 1");
        let family = db.default_column_family();
        db.put_cf(&family, b"key", b"later").unwrap();
        db.flush_cf(&family).unwrap();
        db.resume_background_work();
        assert_eq!(db.get(b"key").unwrap().unwrap(), b"later");
        db.close().unwrap();
    }

    /// Between two steps of a compaction by hand it was said to be idle.
    #[test]
    fn a_database_with_work_that_is_due_is_not_idle() {
        let db = open();
        db.pause_background_work();
        let core = db.core();
        let family = core.family(0).unwrap();
        assert!(db.is_idle().unwrap());
        for round in 0..2_u8 {
            db.put(b"key", &[round]).unwrap();
            assert!(db.is_idle().unwrap(), "a row in memory waits for nothing");
            core.with_token(|token| core.seal(token, &family)).unwrap();
            assert!(!db.is_idle().unwrap(), "a flush is due");
            assert!(core.run_one(Lane::Flush));
            assert!(!core.run_one(Lane::Flush));
            assert_eq!(db.is_idle().unwrap(), round == 0, "a compaction is due");
        }
        let reserved = Reserved::new(core, family.id);
        assert!(!core.run_one(Lane::Compaction), "it is compacted by hand");
        drop(reserved);
        assert!(!db.is_idle().unwrap());
        assert!(core.run_one(Lane::Compaction));
        assert!(!core.run_one(Lane::Compaction));
        assert!(db.is_idle().unwrap());
        let reserved = Reserved::new(core, family.id);
        assert!(!db.is_idle().unwrap(), "somebody compacts by hand");
        drop(reserved);
        assert!(db.is_idle().unwrap());
        db.resume_background_work();
        db.wait_idle().unwrap();
    }

    /// The writer holds the token for as long as it waits.
    #[test]
    fn a_flush_while_paused_comes_past_a_writer_that_waits_for_memory() {
        let db = open();
        db.pause_background_work();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..100_u32 {
                    db.put(&i.to_be_bytes(), &[7; 1000]).unwrap();
                }
            });
            while db.last_sequence() < 100 {
                db.flush().unwrap();
            }
        });
        db.flush().unwrap();
        assert_eq!(db.get(&99_u32.to_be_bytes()).unwrap().unwrap(), [7; 1000]);
    }

    /// The segment being written kept what was preallocated for it: 64 MiB for an empty database.
    #[test]
    fn a_closed_database_takes_no_more_room_than_it_holds() {
        use std::os::unix::fs::MetadataExt;
        let beside = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(beside.parent().unwrap()).unwrap();
        let options = Options {
            wal_segment_bytes: 8 << 20,
            default_column_family: ColumnFamilyOptions {
                memtable_bytes: 24 << 10,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        for round in 0..3_u32 {
            let db = Db::open(dir.path(), options.clone()).unwrap();
            // Flushed or not, some segments are sealed and some are not.
            if round == 1 {
                db.pause_background_work();
            }
            for i in 0..40 * round {
                db.put(&i.to_be_bytes(), &[7; 1000]).unwrap();
            }
            assert_eq!(db.get(&[9; 9]).unwrap(), None);
            db.close().unwrap();
            let mut segments = 0;
            for entry in std::fs::read_dir(dir.path()).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                let found = entry.metadata().unwrap();
                let allocated = found.blocks() * 512;
                assert!(
                    allocated <= found.len() + (64 << 10),
                    "{name} holds {} bytes in {allocated}",
                    found.len()
                );
                segments += u32::from(name.ends_with(".wal"));
            }
            assert!(segments > u32::from(round == 1));
        }
        let db = Db::open(dir.path(), options).unwrap();
        assert_eq!(db.recovery_report().damages, 0);
        assert_eq!(db.get(&79_u32.to_be_bytes()).unwrap().unwrap(), [7; 1000]);
    }
}
