//! WRITE: what the commit pipeline does to this database: admission, log, memtables, publication.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::{Core, Families};
use super::events::pressure_of;
use crate::background::Scheduler;
use crate::batch::{DEFAULT_COLUMN_FAMILY, RawBatch, StepKind};
use crate::commit::{CommitTarget, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Sequence;
use crate::memtable::{InsertHint, Memtable, MemtableArenaPool};
use crate::options::{ColumnFamilyOptions, Durability};
use crate::version::{Buffer, Family, Hold, View};
use crate::wal::WalWriter;

/// Bytes written between two looks at what is not checked with every write (total memory, WAL size).
const CHECK_EVERY_BYTES: usize = 256 << 10;

/// Bytes written between two looks at whether others read.
const YIELD_EVERY_BYTES: usize = 32 << 10;

/// What belongs to whoever leads the commit pipeline.
pub(super) struct Token {
    pub last_sequence: Sequence,
    /// `None`: opened read-only, or the last segment is torn and the next write has to start another.
    pub wal: Option<WalWriter>,
    pub wal_number: u64,
    /// The last segment has no mark at its end, so that recovery can't tell it from one whose last records were lost:
    /// nothing may follow it in the log until all it holds is in SSTables.
    pub wal_broken: bool,
    /// Families whose memtable is full.
    pub full: Vec<Arc<Family>>,
    pub families: Arc<Families>,
    pub default_hint: InsertHint,
    pub bytes_to_check: usize,
    pub bytes_to_yield: usize,
    /// The counter of cache misses as it was last seen.
    pub misses_seen: u64,
}

impl CommitTarget for Core {
    type Token = Token;

    fn make_room(&self, token: &mut Token, bytes: usize, no_wait: bool) -> Result<()> {
        self.check_open()?;
        self.health.check_writable()?;
        if token.wal_broken {
            self.leave_broken_segment(token, no_wait)?;
        }
        while let Some(family) = token.full.last() {
            let family = Arc::clone(family);
            if !family.dropped() {
                self.wait_for_memtable(&family, no_wait)?;
                self.seal(token, &family)?;
            }
            token.full.pop();
        }
        self.admit(token, bytes, no_wait)?;
        self.let_readers(token, bytes);
        token.bytes_to_check = token.bytes_to_check.saturating_sub(bytes);
        if token.bytes_to_check == 0 {
            // A write that fails here leaves the next one to look again.
            self.check_totals(token, no_wait)?;
            token.bytes_to_check = CHECK_EVERY_BYTES;
        }
        Ok(())
    }

    fn check(&self, token: &mut Token, request: &Request) -> Result<()> {
        if !request.batch.names_families() {
            return Ok(());
        }
        for entry in request.batch.iter() {
            let family = entry?.family;
            if token.families.get(family).is_none() {
                return Err(Error::invalid(format!(
                    "column family {family} does not exist; it may have been dropped"
                )));
            }
        }
        Ok(())
    }

    fn log(&self, token: &mut Token, group: &[Request]) -> Result<()> {
        let logged =
            |request: &&Request| request.durability != Durability::None && request.batch.sequence() != 0;
        let mut sync = false;
        let mut bytes = 0;
        if let Some(wal) = &mut token.wal {
            let appended = if let [request] = group {
                sync = request.durability == Durability::Sync;
                if logged(&request) {
                    wal.append(request.batch.as_bytes())
                } else {
                    Ok(0)
                }
            } else {
                sync = group.iter().any(|request| request.durability == Durability::Sync);
                let batches: Vec<&[u8]> = group
                    .iter()
                    .filter(logged)
                    .map(|request| request.batch.as_bytes())
                    .collect();
                wal.append_group(&batches)
            };
            match appended {
                Ok(appended) => bytes = appended,
                Err(error) => {
                    return Err(self.break_segment(token, error));
                }
            }
        } else if group.iter().any(|request| logged(&request)) {
            return Err(Error::bug("a write without a WAL segment"));
        }
        if bytes > 0 {
            self.metrics.wal_bytes.add(bytes);
        }
        if group.iter().any(|request| request.durability == Durability::None) {
            self.unlogged.store(true, Ordering::Relaxed);
        }
        if sync {
            self.sync_wal(token)?;
        }
        Ok(())
    }

    fn apply(&self, token: &mut Token, request: &mut Request) -> Result<()> {
        let sequence = request.batch.sequence();
        match request.batch.kind() {
            StepKind::Batch => return self.insert(token, sequence, &request.batch),
            StepKind::Prepare | StepKind::Carried => {
                self.prepared.lock().add(std::mem::take(&mut request.batch));
            }
            StepKind::Commit => {
                let mut rows = 0;
                if let Some(prepared) = &request.prepared {
                    self.insert(token, sequence, prepared)?;
                    rows = u64::from(prepared.count());
                }
                self.insert(token, sequence + rows, &request.batch)?;
                self.prepared.lock().remove(request.batch.name());
            }
            StepKind::RollBack => self.prepared.lock().remove(request.batch.name()),
        }
        Ok(())
    }

    fn last_sequence(&self, token: &Token) -> Sequence {
        token.last_sequence
    }

    fn publish(&self, token: &mut Token, sequence: Sequence) {
        token.last_sequence = sequence;
        self.published.advance(sequence);
        self.metrics.commit_groups.add(1);
    }
}

fn note_full(full: &mut Vec<Arc<Family>>, family: &Arc<Family>) {
    if !full.iter().any(|known| known.id == family.id) {
        full.push(Arc::clone(family));
    }
}

impl Core {
    /// Inserts a logged batch, whose first row is `sequence`, into the memtables.
    fn insert(&self, token: &mut Token, mut sequence: Sequence, batch: &RawBatch) -> Result<()> {
        if !batch.names_families() {
            let family = &token.families.default;
            let view = family.view();
            let table = &view.active.table;
            view.active.note_wal(token.wal_number);
            for entry in batch.iter() {
                let entry = entry?;
                table.insert_with(
                    &mut token.default_hint,
                    sequence,
                    entry.kind,
                    entry.key,
                    entry.value,
                );
                sequence += 1;
            }
            let limit = family.options().memtable_bytes;
            if table.approximate_bytes() as u64 >= limit {
                note_full(&mut token.full, family);
            }
            return Ok(());
        }
        let mut last: Option<Arc<Family>> = None;
        for entry in batch.iter() {
            let entry = entry?;
            let family = match &last {
                Some(family) if family.id == entry.family => family,
                _ => match token.families.get(entry.family) {
                    Some(family) => last.insert(Arc::clone(family)),
                    // The family was dropped after the batch was prepared. Its rows have their numbers all the same, as
                    // recovery gives them.
                    None if batch.kind() == StepKind::Carried => {
                        sequence += 1;
                        continue;
                    }
                    None => {
                        return Err(Error::bug(format!(
                            "column family {} was checked, and is gone",
                            entry.family
                        )));
                    }
                },
            };
            let view = family.view();
            view.active.note_wal(token.wal_number);
            view.active
                .table
                .insert(sequence, entry.kind, entry.key, entry.value);
            sequence += 1;
            if view.active.table.approximate_bytes() as u64 >= family.options().memtable_bytes {
                note_full(&mut token.full, family);
            }
        }
        Ok(())
    }

    /// Yields the processor now and then while others read from the device. A reader whose block has arrived has work for
    /// some microseconds, and would wait for milliseconds behind a writer that never sleeps.
    fn let_readers(&self, token: &mut Token, bytes: usize) {
        token.bytes_to_yield = token.bytes_to_yield.saturating_sub(bytes);
        if token.bytes_to_yield > 0 {
            return;
        }
        token.bytes_to_yield = YIELD_EVERY_BYTES;
        let misses = self.metrics.cache_misses.get();
        if misses != token.misses_seen {
            token.misses_seen = misses;
            self.env.spawn.yield_now();
        }
    }

    /// Waits until the family may have one more sealed memtable.
    fn wait_for_memtable(&self, family: &Family, no_wait: bool) -> Result<()> {
        let limit = family.options().memtables_max;
        let room = || family.view().sealed.len() + 1 < limit || family.dropped();
        if room() {
            return Ok(());
        }
        self.wait_for_flush(no_wait, Some(family), room)
    }

    /// Waits for flushes, of one family or of any, until `room`; fails where they fail.
    fn wait_for_flush(&self, no_wait: bool, family: Option<&Family>, room: impl Fn() -> bool) -> Result<()> {
        let would_wait = Error::new(ErrorKind::Retry, "the write would have to wait for a flush");
        // The flush is wanted also by who does not wait for it.
        self.wake();
        if no_wait {
            return Err(would_wait);
        }
        let _stall = self.pipeline.stall(would_wait);
        self.stop_writers(family);
        let waits_for_somebody = |scheduler: &Scheduler| scheduler.paused() && !scheduler.flushes_are_off();
        if self.scheduler().is_some_and(waits_for_somebody) {
            tracing::warn!("writes wait for a flush while background work is paused");
        }
        let started = self.env.clock.now();
        let result = self.flushes.wait(|| {
            if room() {
                Some(Ok(()))
            } else if let Some(error) = self.health.flush_error() {
                Some(Err(error))
            } else if self.scheduler().is_some_and(Scheduler::flushes_are_off) {
                Some(Err(Error::new(
                    ErrorKind::Retry,
                    "the write needs a flush first, and the database was opened without background work: ask for it, or start that work",
                )))
            } else {
                self.check_open()
                    .and_then(|()| self.health.check_writable())
                    .err()
                    .map(Err)
            }
        });
        self.waited(self.env.clock.now().saturating_sub(started));
        self.let_writers_in(pressure_of(&self.families.load()) > 0.0);
        result
    }

    /// Holds the leader back as the debt of the families demands.
    fn admit(&self, token: &Token, bytes: usize, no_wait: bool) -> Result<()> {
        let families = &token.families;
        let hold = match families.by_id.len() {
            1 => families.default.hold(),
            _ => families
                .by_id
                .values()
                .map(|family| family.hold())
                .fold(Hold::default(), Hold::and),
        };
        // While nothing works off the debt, waiting would not make it smaller.
        let holds_back = !hold.is_none() && !self.scheduler().is_some_and(Scheduler::is_off);
        self.let_writers_in(holds_back);
        if !holds_back {
            return Ok(());
        }
        let wait = self.admission.delay(self.env.clock.now(), bytes, hold);
        if wait.is_zero() {
            return Ok(());
        }
        let would_wait = Error::new(ErrorKind::Retry, "the write would have to wait for compactions");
        if no_wait {
            return Err(would_wait);
        }
        let _stall = self.pipeline.stall(would_wait);
        self.waited(wait);
        self.env.clock.sleep(wait);
        Ok(())
    }

    /// A writer has waited, or is about to.
    fn waited(&self, time: Duration) {
        self.metrics.stall_us.add(time.as_micros() as u64);
        self.metrics.stall_wait_us.record(time);
    }

    /// Bounds the memory of all memtables together, and the WAL.
    fn check_totals(&self, token: &mut Token, no_wait: bool) -> Result<()> {
        let limit = self.options.memtables_bytes_resolved();
        if self.memtable_bytes() >= limit {
            if let Some(family) = largest_active(&token.families) {
                self.wait_for_memtable(&family, no_wait)?;
                self.seal(token, &family)?;
            }
            let sealed = || {
                token
                    .families
                    .by_id
                    .values()
                    .any(|family| !family.view().sealed.is_empty())
            };
            self.wait_for_flush_if(no_wait, || {
                self.memtable_bytes() < self.memtables_bytes_limit() || !sealed()
            })?;
        }
        if token
            .wal
            .as_ref()
            .is_some_and(|wal| is_full(wal, self.options.wal_segment_bytes))
        {
            self.rotate_wal(token)?;
        }
        if self.wal.own_bytes() > self.options.wal_bytes_resolved() {
            match oldest_unflushed(&token.families) {
                Some(family) if !family.view().active.table.is_empty() => {
                    self.wait_for_memtable(&family, no_wait)?;
                    self.seal(token, &family)?;
                }
                // What is sealed is being flushed.
                Some(_) => {}
                None => self.let_log_go()?,
            }
        }
        Ok(())
    }

    pub(super) fn wait_for_flush_if(&self, no_wait: bool, room: impl Fn() -> bool) -> Result<()> {
        if room() {
            Ok(())
        } else {
            self.wait_for_flush(no_wait, None, room)
        }
    }

    /// Makes a family's memtable immutable and gives it a new one, with a WAL segment of its own.
    pub fn seal(&self, token: &mut Token, family: &Arc<Family>) -> Result<()> {
        if family.view().active.table.is_empty() {
            return Ok(());
        }
        let began = family.view().active.wal_number();
        self.rotate_wal(token)?;
        self.replace_active(token.wal_number, family);
        self.seal_left_behind(token, began);
        if family.id == DEFAULT_COLUMN_FAMILY {
            token.default_hint = InsertHint::default();
        }
        self.share_memory_with_memtables();
        self.update_flush_urgency();
        self.wake();
        Ok(())
    }

    /// Makes memtables immutable that have rows from before segment `began`, but few beside the log that they keep.
    fn seal_left_behind(&self, token: &Token, began: u64) {
        let few = self.wal.own_bytes() / LOG_BYTES_OF_ROW_BYTES;
        for family in token.families.by_id.values() {
            let view = family.view();
            let is_older = needed_wal(family).is_some_and(|number| number < began);
            if is_older && view.sealed.is_empty() && view.active.table.used_bytes() as u64 <= few {
                self.replace_active(token.wal_number, family);
            }
        }
    }

    /// Has compactions make room for the flush if a writer that fills a memtable now would have to wait for it.
    pub(super) fn update_flush_urgency(&self) {
        let families = self.families.load();
        let is_urgent = families.by_id.values().any(|family| {
            let sealed = family.view().sealed.len();
            sealed > 0 && sealed + 1 >= family.options().memtables_max
        });
        // A compaction by hand need not make room for one that does not come.
        let comes = !self.scheduler().is_some_and(Scheduler::flushes_are_off);
        self.throttle.set_flush_urgent(is_urgent && comes);
    }

    pub(super) fn replace_active(&self, wal_number: u64, family: &Family) {
        self.note_sealed(family);
        family.replace_active(buffer(&family.options(), &self.arena_pool, wal_number));
    }
}

/// An empty memtable for a family with these options.
pub(super) fn buffer(
    options: &ColumnFamilyOptions,
    pool: &Arc<MemtableArenaPool>,
    wal_number: u64,
) -> Arc<Buffer> {
    let table = Memtable::new(
        options.memtable_kind,
        options.key_order.clone(),
        wal_number,
        options.memtable_bytes as usize,
        pool,
    );
    Arc::new(Buffer::new(table, wal_number))
}

/// Whether the log should go on in another segment. Where much is carried over, segments are longer, so that it is at most half
/// of them.
fn is_full(wal: &WalWriter, segment_bytes: u64) -> bool {
    let own = wal.len().saturating_sub(wal.carried_bytes());
    own >= segment_bytes.max(wal.carried_bytes())
}

/// Rows that keep more than so many times their own bytes of the log are flushed with a memtable that is full. It costs little: each row is
/// written once, sooner or later.
const LOG_BYTES_OF_ROW_BYTES: u64 = 16;

fn largest_active(families: &Families) -> Option<Arc<Family>> {
    families
        .by_id
        .values()
        .filter(|family| !family.view().active.table.is_empty())
        .max_by_key(|family| family.view().active.table.approximate_bytes())
        .cloned()
}

fn oldest_unflushed(families: &Families) -> Option<Arc<Family>> {
    families
        .by_id
        .values()
        .filter_map(|family| Some((needed_wal(family)?, family)))
        .min_by_key(|(n, _)| *n)
        .map(|(_, family)| Arc::clone(family))
}

/// The oldest WAL segment that holds rows of the family that are not in SSTables; `None` if there is none.
pub(super) fn needed_wal(family: &Family) -> Option<u64> {
    if family.dropped() {
        return None;
    }
    oldest_wal(&family.view())
}

/// The same for a view.
pub(super) fn oldest_wal(view: &View) -> Option<u64> {
    match view.sealed.last() {
        Some(oldest) => Some(oldest.wal_number()),
        None if view.active.table.is_empty() => None,
        None => Some(view.active.wal_number()),
    }
}

/// How long a background thread waits after a failure before it tries again.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use esker_env::Env;

    use crate::background::{Lane, Work};
    use crate::db::Opener;
    use crate::options::{ColumnFamilyOptions, Options};

    #[test]
    fn a_flush_is_urgent_while_a_full_memtable_would_wait_for_it() {
        let options = Options {
            default_column_family: ColumnFamilyOptions {
                memtables_max: 3,
                ..ColumnFamilyOptions::default()
            },
            ..Options::default()
        };
        let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
        db.pause_background_work();
        let core = db.core();
        let family = core.family(0).unwrap();
        for urgent in [false, true] {
            db.put(b"key", b"value").unwrap();
            assert!(!core.throttle.is_flush_urgent());
            core.with_token(|token| core.seal(token, &family)).unwrap();
            assert_eq!(core.throttle.is_flush_urgent(), urgent);
        }
        assert!(core.run_one(Lane::Flush));
        assert!(!core.throttle.is_flush_urgent());
        db.resume_background_work();
        db.close().unwrap();
    }

    /// It stayed urgent until something else was flushed, and compactions crept.
    #[test]
    fn no_flush_is_urgent_of_a_family_that_was_dropped() {
        let db = Opener::new(Options::default())
            .env(Env::simulated(1).0)
            .open("/db")
            .unwrap();
        let options = ColumnFamilyOptions {
            memtables_max: 2,
            ..ColumnFamilyOptions::default()
        };
        let dropped = db.create_column_family("dropped", options).unwrap();
        db.pause_background_work();
        let core = db.core();
        db.put_cf(&dropped, b"key", b"value").unwrap();
        let family = core.family(dropped.id()).unwrap();
        core.with_token(|token| core.seal(token, &family)).unwrap();
        assert!(core.throttle.is_flush_urgent());
        db.drop_column_family(&dropped).unwrap();
        assert!(!core.throttle.is_flush_urgent());
        db.resume_background_work();
        db.close().unwrap();
    }

    /// It kept the log of all that others wrote behind it, up to `wal_bytes_max`.
    #[test]
    fn a_family_with_few_rows_keeps_no_log() {
        let env = Env::simulated(1).0;
        let open = || {
            Opener::new(Options::default())
                .env(env.clone())
                .open("/db")
                .unwrap()
        };
        let db = open();
        let [few, many] = ["few", "many"].map(|name| {
            db.create_column_family(name, ColumnFamilyOptions::default())
                .unwrap()
        });
        db.pause_background_work();
        let core = db.core();
        db.put_cf(&few, b"key", b"value").unwrap();
        db.put_cf(&many, b"key", &[1; 256 << 10]).unwrap();
        let family = core.family(0).unwrap();
        for round in 0..4_u8 {
            for key in 0..64_u8 {
                db.put(&[key], &[round; 8 << 10]).unwrap();
            }
            core.with_token(|token| core.seal(token, &family)).unwrap();
            while core.run_one(Lane::Flush) {}
            let rows = |id| core.family(id).unwrap().view().active.table.entries();
            // A memtable as old as that of the others may yet get more.
            assert_eq!(rows(few.id()), u64::from(round == 0));
            assert_eq!(rows(many.id()), 1, "more than it keeps of the log is worth");
            if round == 1 {
                core.with_token(|token| core.seal(token, &core.family(many.id()).unwrap()))
                    .unwrap();
                while core.run_one(Lane::Flush) {}
                assert!(core.wal.own_bytes() < 1 << 10, "nobody needs it");
                db.put_cf(&many, b"key", &[1; 256 << 10]).unwrap();
            }
        }
        db.resume_background_work();
        db.close().unwrap();
        let db = open();
        let few = db.column_family("few").unwrap();
        assert_eq!(db.get_cf(&few, b"key").unwrap().unwrap(), b"value");
        db.close().unwrap();
    }
}
