//! Replays the log, places the tables, and makes all of it the database.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Repair;
use super::blobs::Blobs;
use super::families::FamilyPlan;
use super::{aside, merge};
use crate::db::recover;
use crate::error::{Error, Result};
use crate::memtable::MemtableArenaPool;
use crate::options::{Options, RecoveryMode};
use crate::rewrite::Written;
use crate::version::manifest::ManifestWriter;
use crate::version::{FileKind, VersionEdit, VersionState};
use crate::wal::{SegmentSettings, WalSegments};

/// Bytes that are preallocated for the segment which holds what is prepared.
const SEGMENT_BYTES: u64 = 64 << 10;

impl Repair<'_> {
    /// Replays the log, places the tables, and makes all of it the database.
    pub(super) fn build(&mut self) -> Result<()> {
        let mut state = VersionState::new(self.survey.database_id);
        state.next_column_family = self.survey.facts.next_column_family;
        state.last_sequence = self.survey.facts.last_sequence;
        for (&id, plan) in &self.families {
            let mut edit = VersionEdit::of(id);
            edit.create = Some(plan.record.clone());
            edit.log_number = Some(plan.log_number);
            state.apply(&edit)?;
        }
        let recovered = self.replay(&state)?;
        let mut last_sequence = state.last_sequence.max(recovered.last_sequence);
        for (id, written) in recovered.files {
            self.report.tables_written += written.tables.len() as u64;
            if let Some(plan) = self.families.get_mut(&id) {
                plan.add(0, written);
            }
        }
        let mut temporary = BTreeSet::new();
        if !self.survey.trusted {
            temporary = self.place_anew()?;
        }
        self.set_blobs_aside();
        let segments = WalSegments::new(
            self.env,
            self.dir,
            SegmentSettings {
                db_id: self.survey.database_id as u64,
                segment_bytes: SEGMENT_BYTES,
                memory_bytes: 0,
            },
        );
        let carried = recovered.prepared.all();
        let records: Vec<&[u8]> = carried.iter().map(|batch| batch.as_bytes()).collect();
        let wal_number = self.new_number();
        drop(segments.start(wal_number, &records)?);
        for (&id, plan) in &mut self.families {
            let edit = plan.edit(id, &self.blobs, wal_number);
            let newest = edit.added.iter().map(|(_, file)| file.sequence_max).max();
            last_sequence = last_sequence.max(newest.unwrap_or(0));
            state.apply(&edit)?;
            // A state that can't be opened must not become the database.
            let family = state
                .family(id)
                .ok_or_else(|| Error::bug("a column family is gone from the state"))?;
            family.version(plan.options.key_order.clone(), plan.options.levels)?;
        }
        state.last_sequence = last_sequence;
        let manifest = self.new_number();
        state.next_file_number = state
            .next_file_number
            .max(self.next_file_number.load(Ordering::Relaxed));
        self.aside.extend(&self.survey.others);
        aside::keep(self.env, self.dir, &self.aside)?;
        drop(ManifestWriter::create(
            Arc::clone(&self.env.fs),
            self.dir,
            manifest,
            &state,
        )?);
        aside::let_go(self.env, self.dir, &self.aside)?;
        aside::let_go(self.env, self.dir, &temporary)
    }

    fn replay(&self, state: &VersionState) -> Result<recover::Recovered> {
        let options = Options {
            recovery_mode: RecoveryMode::SkipCorrupt,
            ..Options::default()
        };
        let families: BTreeMap<u32, _> = self
            .families
            .iter()
            .map(|(&id, plan)| (id, plan.options.clone()))
            .collect();
        let unreadable = self.log.iter().filter(|(_, segment)| segment.is_err());
        let left_out = unreadable.map(|(number, _)| *number).collect();
        let context = recover::Context {
            env: self.env,
            dir: self.dir,
            database_id: self.survey.database_id as u64,
            options: &options,
            state,
            families: &families,
            arena_pool: &MemtableArenaPool::new(0),
            next_file_number: AtomicU64::new(self.next_file_number.load(Ordering::Relaxed)),
            metrics: &self.metrics,
            left_out: &left_out,
        };
        let recovered = recover::replay(&context);
        let next = context.next_file_number.into_inner();
        self.next_file_number.store(next, Ordering::Relaxed);
        recovered
    }

    /// Places all tables where nobody says in which levels they belong; gives the files that were only written to be merged.
    fn place_anew(&mut self) -> Result<BTreeSet<FileKind>> {
        let old = |number: u64| number < self.survey.next_file_number;
        let mut temporary = BTreeSet::new();
        let mut placed = BTreeMap::new();
        for (&id, plan) in &self.families {
            let level = plan.options.levels.saturating_sub(1).max(1);
            let (mut files, mut new_blobs) = (Vec::new(), Vec::new());
            let all = plan.files.iter().map(|(_, file)| Arc::clone(file)).collect();
            for component in merge::components(&plan.options.key_order, all) {
                if let [only] = &component[..] {
                    files.push((level, Arc::clone(only)));
                    continue;
                }
                let context = self.output(id, plan, level);
                let written = self.merge(plan, &context, &component)?;
                for file in &component {
                    let kind = FileKind::Table(file.number);
                    match old(file.number) {
                        true => self.aside.insert(kind),
                        false => temporary.insert(kind),
                    };
                }
                self.report.tables_written += written.tables.len() as u64;
                new_blobs.extend(written.blobs);
                files.extend(written.tables.into_iter().map(|file| (level, Arc::new(file))));
            }
            placed.insert(id, (files, new_blobs));
        }
        for (id, (files, new_blobs)) in placed {
            if let Some(plan) = self.families.get_mut(&id) {
                plan.files = files;
                plan.new_blobs.extend(new_blobs);
            }
        }
        Ok(temporary)
    }

    /// Blob files into which no table points leave the folder.
    fn set_blobs_aside(&mut self) {
        let mut used = BTreeSet::new();
        for plan in self.families.values() {
            let refs = plan.files.iter().flat_map(|(_, file)| &file.blobs);
            let files = refs.filter_map(|part| self.blobs.whole(&plan.databases, part.file));
            used.extend(files.map(|blob| blob.number));
        }
        let unused = self.survey.blobs.iter().filter(|number| !used.contains(number));
        self.aside.extend(unused.map(|&number| FileKind::Blob(number)));
    }
}

impl FamilyPlan {
    pub(super) fn add(&mut self, level: usize, written: Written) {
        let tables = written.tables.into_iter();
        self.files.extend(tables.map(|file| (level, Arc::new(file))));
        self.new_blobs.extend(written.blobs);
    }

    /// The edit that makes the family's files the database's.
    fn edit(&mut self, id: u32, blobs: &Blobs, wal_number: u64) -> VersionEdit {
        let mut edit = VersionEdit::of(id);
        edit.log_number = Some(wal_number);
        let refs = self.files.iter().flat_map(|(_, file)| &file.blobs);
        let used: BTreeSet<u64> = refs.map(|part| part.file).collect();
        let old = used
            .iter()
            .filter_map(|&number| blobs.whole(&self.databases, number).map(Arc::clone));
        edit.added_blobs.extend(old);
        let new = std::mem::take(&mut self.new_blobs).into_iter();
        edit.added_blobs
            .extend(new.filter(|blob| used.contains(&blob.number)).map(Arc::new));
        for (level, file) in &self.files {
            edit.add(*level, Arc::clone(file));
        }
        edit
    }
}
