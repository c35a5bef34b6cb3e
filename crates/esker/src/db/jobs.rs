//! BACKGROUND: which job is next, and what its result means for the database.
//!
//! A job's result enters in three steps, each of which leaves a consistent database if it is the last: the files are
//! written and synced; the manifest edit is made durable, under the manifest's lock; the view is replaced. Files that
//! the edit removed are deleted when the last view that holds them is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::Core;
use super::edits::Manifest;
use super::events::{JobWatch, failed};
use super::write::{RETRY_AFTER, needed_wal};
use crate::background::{Lane, Scheduler, Work};
use crate::commit::Debt;
use crate::compaction::picker::{self, Plan, PlanKind, Reason};
use crate::compaction::{self, Job};
use crate::error::{ErrorKind, Result};
use crate::flush;
use crate::hooks::JobOutcome;
use crate::memtable::Memtable;
use crate::options::{ColumnFamilyOptions, CompactionStyle};
use crate::rewrite::{BlobInputs, OutputContext};
use crate::sstable::TableFamily;
use crate::version::{Buffer, Family, FileKind, FileMeta, Version, VersionEdit};

/// How often a thread without work looks at the age of tables at most, in seconds.
const AGE_CHECK_SECONDS: u64 = 30;

impl Work for Core {
    fn run_one(&self, lane: Lane) -> bool {
        match lane {
            Lane::Flush => self.flush_one(),
            Lane::Compaction => self.compact_one(),
        }
    }

    /// When the next table will be too old; what is overdue waits for something else.
    fn next_due(&self, lane: Lane) -> Option<Duration> {
        if lane == Lane::Flush {
            return None;
        }
        let now = self.env.clock.unix_seconds();
        let families = self.families.load();
        let due = families
            .by_id
            .values()
            .filter_map(|family| picker::next_aged_in(&family.view().version, &family.options(), now));
        due.min()
            .map(|seconds| Duration::from_secs(seconds.clamp(AGE_CHECK_SECONDS, 3600)))
    }
}

impl Core {
    /// Flushes the sealed memtables of the family that has waited longest.
    fn flush_one(&self) -> bool {
        let families = self.families.load_full();
        let waiting = families
            .by_id
            .values()
            .filter_map(|family| Some((family.view().sealed.last()?.wal_number(), family)))
            .min_by_key(|(wal_number, _)| *wal_number);
        let Some((_, family)) = waiting else {
            self.bury_dead_files();
            return false;
        };
        match self.flush_family(family) {
            Ok(()) => self.health.flush_succeeded(),
            Err(error) => {
                // Compactions may be what makes room for it.
                self.throttle.set_flush_urgent(false);
                self.job_failed(error, Lane::Flush);
            }
        }
        self.update_flush_urgency();
        self.flushes.notify();
        true
    }

    fn flush_family(&self, family: &Arc<Family>) -> Result<()> {
        let sealed = family.view().sealed.clone();
        let watch = self.begin_flush(family, &sealed);
        let _span = tracing::info_span!("flush", job = watch.job(), family = %family.name).entered();
        self.flush_sealed(family, &sealed, &watch)
            .inspect_err(|error| self.flush_undone(&watch, family, failed(error)))
    }

    fn flush_sealed(&self, family: &Arc<Family>, sealed: &[Arc<Buffer>], watch: &JobWatch) -> Result<()> {
        if self.families.load().by_id.len() > 1 {
            // Else a batch over two families could survive a power cut in one of them only.
            self.sync_closed_wal()?;
        }
        self.manifest.lock().make_certain(|| self.new_file_number())?;
        let tables: Vec<Arc<Memtable>> = sealed.iter().map(|buffer| Arc::clone(&buffer.table)).collect();
        let options = family.options();
        let mut output = self.output_context(family, &options, 0, None);
        output.family.log_number = log_number_after(family, sealed);
        let read_back = self.is_read_back(&tables);
        let written = flush::run(&tables, self.snapshots.sequences(), &output, read_back)?;
        let mut edit = VersionEdit::of(family.id);
        written.add_to(&mut edit, 0);
        self.open_ahead(family, &edit);
        {
            let mut manifest = self.manifest.lock();
            if family.dropped() {
                self.remove_files(new_files(&edit));
                family.forget_sealed(sealed);
                self.flush_undone(watch, family, JobOutcome::FamilyDropped);
                return Ok(());
            }
            edit.log_number = Some(log_number_after(family, sealed));
            let mut edits = self.idle_log_edits(&manifest, Some(family.id));
            edits.insert(0, edit.clone());
            self.commit_edits(&mut manifest, edits)
                .inspect_err(|_| manifest.discard(new_files(&edit)))?;
            // Who waits for the flush looks at the view, and then finds it counted and noted.
            let _held = self.events.hold();
            self.flush_done(watch, family, &edit);
            family.install(&edit, sealed, &self.graveyard)?;
        }
        self.flushes.notify();
        self.release_wal();
        self.update_pressure(family);
        self.share_memory();
        Ok(())
    }

    /// Whether rows that are flushed enter the block cache: since the last flush there was a get for every second one at least,
    /// and nothing has to leave for them.
    fn is_read_back(&self, memtables: &[Arc<Memtable>]) -> bool {
        let gets = self.metrics.gets.get();
        let before = self.gets_at_flush.swap(gets, Ordering::Relaxed);
        let rows: u64 = memtables.iter().map(|memtable| memtable.entries()).sum();
        let bytes: u64 = memtables
            .iter()
            .map(|memtable| memtable.used_bytes() as u64)
            .sum();
        gets.saturating_sub(before) >= rows / 2 && bytes <= self.tables.block_cache().free_bytes()
    }

    /// Picks and runs a compaction of the family that needs it most.
    fn compact_one(&self) -> bool {
        if self.seal_hiding() {
            return true;
        }
        let Some((family, plan)) = self.pick() else {
            self.bury_dead_files();
            return false;
        };
        self.update_pressure(&family);
        // Others may find more to do beside this one.
        self.wake();
        let result = self.run_plan(&family, &plan);
        self.running.lock().unregister(family.id, &plan);
        match result {
            Ok(()) => self.health.compaction_succeeded(),
            Err(error) => self.job_failed(error, Lane::Compaction),
        }
        self.update_pressure(&family);
        self.flushes.notify();
        // The plan held its inputs until now. Their blocks take room from those that have come in their place. Others go on
        // meanwhile: to remove large files takes time.
        drop(plan);
        self.wake();
        self.bury_dead_files();
        true
    }

    fn pick(&self) -> Option<(Arc<Family>, Plan)> {
        let families = self.families.load_full();
        let compactors = self.scheduler().map_or(1, Scheduler::compactors);
        let mut running = self.running.lock();
        // One thread is kept for level 0, so that it never waits for a thread behind a large merge below it.
        let below_level0_full = compactors > 1 && running.below_level0() + 1 >= compactors;
        let now_unix_seconds = self.env.clock.unix_seconds();
        let mut best: Option<(f64, Arc<Family>, Plan)> = None;
        for family in families.by_id.values() {
            let options = family.options();
            if family.dropped()
                || options.compaction_style == CompactionStyle::Manual
                || running.is_reserved(family.id)
            {
                continue;
            }
            let view = family.view();
            let context = running.context_at(family, &view, now_unix_seconds);
            if let Some(plan) = picker::pick(&view.version, &options, &context)
                && (plan.level_in == 0 || plan.kind == PlanKind::Move || !below_level0_full)
                && best.as_ref().is_none_or(|(score, _, _)| plan.score > *score)
            {
                best = Some((plan.score, Arc::clone(family), plan));
            }
        }
        let (_, family, plan) = best?;
        running.register(family.id, &plan).then_some((family, plan))
    }

    /// Carries out a registered plan.
    pub(super) fn run_plan(&self, family: &Arc<Family>, plan: &Plan) -> Result<()> {
        let watch = self.begin_compaction(family, plan);
        let span = tracing::info_span!(
            "compaction", job = watch.job(), family = %family.name, reason = ?plan.reason,
            from = plan.level_in, to = plan.level_out
        );
        let _span = span.entered();
        self.run_watched(family, plan, &watch)
            .inspect_err(|error| self.compaction_undone(&watch, family, plan, failed(error)))
    }

    fn run_watched(&self, family: &Arc<Family>, plan: &Plan, watch: &JobWatch) -> Result<()> {
        let mut edit = plan.edit(family.id);
        let tell = |edit: &VersionEdit, in_force: bool| match in_force {
            true => self.compaction_done(watch, family, plan, edit),
            false => self.compaction_undone(watch, family, plan, JobOutcome::FamilyDropped),
        };
        if plan.kind == PlanKind::Move {
            self.install(family, &edit, false, tell)?;
        } else {
            self.manifest.lock().make_certain(|| self.new_file_number())?;
            let options = family.options();
            // Not the whole view: it would keep the memtables of now alive until the compaction ends.
            let version = Arc::clone(&family.view().version);
            let is_held = family.hold().bytes_per_second.is_some();
            let blobs = BlobInputs {
                tables: &self.tables,
                blobs: version.blobs(),
                emptied: picker::emptied(&version, &options, plan, is_held),
            };
            // Who moves values waits for the device for a good part of the time. In a burst that time is the writers'.
            let overlaps_waits = !blobs.emptied.is_empty() && (is_held || plan.reason != Reason::Level0Full);
            let ranges_max = match overlaps_waits {
                false => self.ranges_for(plan),
                true => (2 * self.ranges_for(plan)).min(self.options.subcompactions_max),
            };
            let job = Job {
                plan,
                version: &version,
                // Taken after the inputs were chosen: see `snapshot/mod.rs`.
                snapshots: self.snapshots.sequences(),
                tables: &self.tables,
                output: self.output_context(family, &options, plan.level_out, Some(blobs)),
                spawn: &*self.env.spawn,
                ranges_max,
                stop: &self.closed,
            };
            let written = compaction::run(&job)?;
            written.add_to(&mut edit, plan.level_out);
            self.open_ahead(family, &edit);
            self.install(family, &edit, true, tell)?;
        }
        let drained: u64 = plan
            .files()
            .filter(|(level, _)| *level == 0 && plan.level_out > 0)
            .map(|(_, file)| file.size_bytes + file.blob_bytes())
            .sum();
        if drained > 0 {
            family.hidden.forget();
            let due = picker::level0_is_due(&family.view().version, &family.options());
            self.admission
                .record_drain(drained, watch.started(), self.env.clock.now(), due);
        }
        self.share_memory();
        Ok(())
    }

    /// Into how many key ranges a plan may be split: one for each thread that no other compaction needs.
    fn ranges_for(&self, plan: &Plan) -> usize {
        let by_hand = matches!(plan.reason, Reason::Manual | Reason::Bulk);
        let compactors = self.scheduler().map_or(1, Scheduler::compactors);
        let threads = if by_hand {
            compactors
        } else {
            (compactors + 1).saturating_sub(self.running.lock().count())
        };
        threads.clamp(1, self.options.subcompactions_max)
    }

    /// Opens new tables before readers come to them. One that can't be opened now says why to whoever reads it.
    fn open_ahead(&self, family: &Family, edit: &VersionEdit) {
        for (_, file) in &edit.added {
            let _ = self.tables.get(file, &family.order);
        }
    }

    /// Makes a compaction's result part of the database. `tell` is told, under the manifest's lock, whether it came into
    /// force or its family is gone.
    pub(super) fn install(
        &self,
        family: &Arc<Family>,
        edit: &VersionEdit,
        rewritten: bool,
        tell: impl FnOnce(&VersionEdit, bool),
    ) -> Result<()> {
        let new_files = || if rewritten { new_files(edit) } else { Vec::new() };
        let mut manifest = self.manifest.lock();
        if family.dropped() {
            self.remove_files(new_files());
            tell(edit, false);
            return Ok(());
        }
        self.commit_edits(&mut manifest, vec![edit.clone()])
            .inspect_err(|_| manifest.discard(new_files()))?;
        family.install(edit, &[], &self.graveyard)?;
        tell(edit, true);
        Ok(())
    }

    pub(super) fn output_context<'a>(
        &'a self,
        family: &Family,
        options: &'a ColumnFamilyOptions,
        level: usize,
        blobs: Option<BlobInputs<'a>>,
    ) -> OutputContext<'a> {
        let manifest = self.manifest.lock();
        let stored = manifest.state.family(family.id);
        let stored = stored.map(|stored| (stored.log_number, stored.outside_files()));
        drop(manifest);
        let (log_number, outside) = stored.unwrap_or_default();
        OutputContext {
            env: &self.env,
            dir: &self.dir,
            database_id: self.database_id,
            family: TableFamily {
                id: family.id,
                name: family.name.clone(),
                log_number,
                outside,
            },
            options,
            level,
            io: self.options.background_io,
            sync: self.options.sync_files,
            next_file_number: &self.next_file_number,
            throttle: &self.throttle,
            blobs,
            cache: Some(self.tables.block_cache()),
            metrics: &self.metrics,
        }
    }

    pub(super) fn remove_files(&self, files: Vec<FileKind>) {
        for file in files {
            let path = file.path(&self.dir);
            if let Err(error) = self.env.fs.remove(&path) {
                tracing::warn!(%error, path = %path.display(), "can't remove an unused file");
            }
        }
    }

    /// Lets WAL segments go that nobody needs any more.
    pub(super) fn release_wal(&self) {
        // What recovery would still look at stays, even if it holds no row that anybody needs.
        let stored = self.manifest.lock().state.log_number_min();
        let retired = {
            let mut unsynced = self.wal_unsynced.lock();
            let _rotation = self.wal_rotation.lock();
            let families = self.families.load();
            let needed = families
                .by_id
                .values()
                .filter_map(|family| needed_wal(family))
                .min();
            let Some(writing) = self.wal.newest() else {
                return;
            };
            // Without any unflushed row, only the segment being written stays.
            let needed = needed.into_iter().chain(stored).fold(writing, u64::min);
            // What nobody needs any more needs no sync either.
            for segment in unsynced.extract_if(.., |segment| segment.id().number < needed) {
                self.wal.hand_back(segment);
            }
            self.wal.retire_below(needed)
        };
        if let Err(error) = self.wal.clear_away(retired) {
            tracing::warn!(%error, "can't release a WAL segment");
        }
    }

    /// Edits by which families without unflushed rows give up the segments before the one being written. Without
    /// them an idle family would have recovery read, and trip over, segments that nobody keeps whole any more.
    pub(super) fn idle_log_edits(&self, manifest: &Manifest, except: Option<u32>) -> Vec<VersionEdit> {
        // First this, then the memtables: the rows of a segment are in memtables before the next one starts.
        let Some(writing) = self.wal.newest() else {
            return Vec::new();
        };
        let families = self.families.load();
        let idle = families.by_id.values().filter(|family| {
            let stored = manifest.state.family(family.id);
            Some(family.id) != except
                && needed_wal(family).is_none()
                && stored.is_some_and(|stored| stored.log_number < writing)
        });
        let edit = |family: &Arc<Family>| {
            let mut edit = VersionEdit::of(family.id);
            edit.log_number = Some(writing);
            edit
        };
        idle.map(edit).collect()
    }

    /// Tells admission how much debt a family has.
    pub(super) fn update_pressure(&self, family: &Family) {
        let options = family.options();
        if options.compaction_style == CompactionStyle::Manual {
            family.clear_pressure();
            return;
        }
        let (version, now) = (Arc::clone(&family.view().version), self.env.clock.now());
        family.set_pressure(debt_of(&version, &options).pressure(), now);
        let garbage = picker::garbage(&version, &options);
        family.look_at_garbage(garbage, self.metrics.write_bytes.get(), now);
    }

    fn job_failed(&self, error: crate::error::Error, lane: Lane) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let again = error.kind() == ErrorKind::NoSpace;
        match lane {
            Lane::Flush => self.health.flush_failed(error),
            Lane::Compaction => self.health.compaction_failed(error),
        }
        // A full device gets room by others' doing; other failures by nobody's, but a retry costs little.
        let pauses = if again { 1 } else { 5 };
        for _ in 0..pauses {
            if !self.closed.load(Ordering::Relaxed) {
                self.env.clock.sleep(RETRY_AFTER);
            }
        }
    }

    /// Whether no flush or compaction runs or is due. Whoever picks holds `running` until the plan is in it, and a result
    /// is in the view before its plan leaves it, so that nothing falls between the two looks.
    pub(super) fn is_idle(&self) -> bool {
        let families = self.families.load_full();
        let now_unix_seconds = self.env.clock.unix_seconds();
        let running = self.running.lock();
        running.is_quiet()
            && running.is_unreserved()
            && families.by_id.values().all(|family| {
                let view = family.view();
                let options = family.options();
                view.sealed.is_empty()
                    && (options.compaction_style == CompactionStyle::Manual
                        || picker::pick(
                            &view.version,
                            &options,
                            &running.context_at(family, &view, now_unix_seconds),
                        )
                        .is_none())
            })
    }
}

/// What admission is told.
fn debt_of(version: &Version, options: &ColumnFamilyOptions) -> Debt {
    let busy = |file: &Arc<FileMeta>| if file.is_being_compacted() { 0.5 } else { 1.0 };
    Debt {
        level0_files: version.level(0).files().iter().map(busy).sum(),
        level0_trigger: picker::level0_due_files(version, options),
        level0_files_max: options.level0_files_max,
        compaction_bytes: picker::estimate_coming_debt(version, options),
        compaction_bytes_soft: options.level_base_bytes.saturating_mul(16),
    }
}

/// The files that an edit brings into the database.
pub(super) fn new_files(edit: &VersionEdit) -> Vec<FileKind> {
    let tables = edit.added.iter().map(|(_, file)| FileKind::Table(file.number));
    let blobs = edit.added_blobs.iter().map(|file| FileKind::Blob(file.number));
    tables.chain(blobs).collect()
}

/// The first WAL segment that the family needs once `flushed` is in SSTables.
fn log_number_after(family: &Family, flushed: &[Arc<Buffer>]) -> u64 {
    let view = family.view();
    let left = |buffer: &&Arc<Buffer>| !flushed.iter().any(|gone| Arc::ptr_eq(gone, buffer));
    view.sealed
        .iter()
        .rev()
        .find(left)
        .unwrap_or(&view.active)
        .wal_number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Opener;
    use crate::hooks::{CompactionFilter, CompactionFilterFactory, FilterContext};
    use crate::key::{KeyOrder, ValueKind, internal_key};
    use crate::options::Options;

    use esker_env::Env;
    use parking_lot::Mutex;

    /// Calls back when a compaction begins to merge; filters nothing.
    type Merging = Box<dyn Fn() + Send + Sync>;
    #[derive(Default)]
    struct WhenMerging(std::sync::OnceLock<Merging>);

    impl CompactionFilterFactory for WhenMerging {
        fn create(&self, _: &FilterContext) -> Option<Box<dyn CompactionFilter>> {
            self.0.get().expect("set before the first merge")();
            None
        }
    }

    /// It kept the whole view of its beginning: several times the memory that memtables may take, beside a long merge.
    #[test]
    fn a_running_compaction_keeps_no_memtable_alive() {
        let filter = Arc::new(WhenMerging::default());
        let mut options = Options::default();
        options.default_column_family.level0_compaction_trigger = 2;
        options.default_column_family.hooks.compaction_filter = Some(Arc::clone(&filter) as _);
        let db = Opener::new(options).env(Env::simulated(1).0).open("/db").unwrap();
        db.pause_background_work();
        let core = Arc::clone(db.core());
        let family = core.family(0).unwrap();
        let flush = {
            let (core, family) = (Arc::clone(&core), Arc::clone(&family));
            move || {
                core.with_token(|token| core.seal(token, &family)).unwrap();
                assert!(core.run_one(Lane::Flush));
            }
        };
        for round in 0..3_u8 {
            db.put(b"key", &[round]).unwrap();
            flush();
        }
        db.put(b"key", b"in the memtable as the merge begins").unwrap();
        let memtable = Arc::downgrade(&family.view().active.table);
        let alive = Arc::new(Mutex::new(None));
        let found = Arc::clone(&alive);
        let merging: Merging = Box::new(move || {
            flush();
            *found.lock() = Some(memtable.strong_count());
        });
        assert!(filter.0.set(merging).is_ok());
        // The first one moves a table down.
        while alive.lock().is_none() {
            assert!(core.run_one(Lane::Compaction));
        }
        assert_eq!(*alive.lock(), Some(0));
        db.close().unwrap();
    }

    const MIB: u64 = 1 << 20;

    /// A terabyte with each level at its target and a little beyond, and so many files of 32 MiB in level 0.
    fn version(level0_files: u64, excess_bytes: u64) -> Version {
        let file = |number: u64, size_bytes: u64| {
            Arc::new(FileMeta {
                number,
                size_bytes,
                smallest: internal_key(b"a", number, ValueKind::Put),
                largest: internal_key(b"z", number, ValueKind::Put),
                sequence_min: number,
                sequence_max: number,
                ..FileMeta::default()
            })
        };
        let mut levels = vec![
            (0..level0_files).map(|i| file(100 + i, 32 * MIB)).collect(),
            vec![],
        ];
        for (i, mib) in [256, 2 << 10, 16 << 10, 128 << 10, 1 << 20]
            .into_iter()
            .enumerate()
        {
            let size_bytes = mib * MIB + if i == 0 { excess_bytes } else { 0 };
            levels.push(vec![file(10 - i as u64, size_bytes)]);
        }
        Version::new(KeyOrder::Bytewise, 7, levels).unwrap()
    }

    /// The debt of level 0 came all at once with the file that reached its trigger.
    #[test]
    fn pressure_rises_without_a_jump_as_level0_fills() {
        let options = ColumnFamilyOptions::default();
        for excess_mib in 0..200 {
            let pressure = |files| debt_of(&version(files, excess_mib * MIB), &options).pressure();
            for files in 0..20 {
                let (before, after) = (pressure(files), pressure(files + 1));
                assert!(
                    before <= after && after - before < 0.1,
                    "{excess_mib} MiB too much and {files} files: {before} -> {after}"
                );
            }
        }
        let at_rest = version(3, 0);
        assert_eq!(picker::estimate_debt(&at_rest, &options), 0, "nothing is due");
        assert_eq!(debt_of(&at_rest, &options).pressure(), 0.0);
        let due = version(4, 0);
        assert_eq!(
            picker::estimate_debt(&due, &options),
            picker::estimate_coming_debt(&due, &options)
        );
    }
}
