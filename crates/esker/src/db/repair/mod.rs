//! Makes a database again of what is left of one.
//!
//! What counts, and where it goes, depends on the manifest:
//! 1. **It is whole** (`CURRENT` may be missing; and nothing in the folder shows that its end was cut): it says which tables are the database's, in which levels, and from which
//!    WAL segment on each family needs the log. Nothing else is used. A table that was dropped and not removed yet, or
//!    one that a crash left unfinished, does not come back.
//! 2. **A part of it is left, or nothing**: all tables count but those that it says were removed, or that belong to a family
//!    of which it says that it was dropped. Tables say which family they are for, and from which segment on the log was
//!    needed when they were written (`TableFamily`); those of earlier versions say neither, and count where there
//!    is one family only. Of those that were ingested, or imported with their family, the others say it (`outside.rs`). Levels are
//!    not trusted: tables whose keys overlap are merged (`merge.rs`). A table that was dropped and not removed yet can't be told
//!    from the others then.
//!
//! Then, in both cases:
//! - A table that is whole stays. Of a damaged one (`tables.rs`) each block that can be read is written to a new one, which
//!   takes its place in its level; of the stretches between, the range of keys is reported.
//! - A row whose value is gone with its blob file becomes a deletion with the row's own number, so that no
//!   older value shows instead. Values that can be read in a damaged blob file are written anew.
//! - The log is replayed past damages, as with `RecoveryMode::SkipCorrupt`; what is prepared stays so.
//!
//! # What a crash leaves
//! New files have new numbers, and no old one is written to. The steps are those of opening: files are written and synced;
//! a WAL segment with what is prepared; files that are to go get their names in `lost` (`aside.rs`); the manifest; one
//! switch of `CURRENT`; the first names go. Before the switch the database is as damaged as it was, with files that no
//! manifest names, whose rows are those of the others; behind it, it is repaired. Another repair does the rest.

mod aside;
mod blobs;
mod build;
mod families;
mod log;
mod merge;
mod outside;
mod report;
mod survey;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use esker_env::{Env, IoMode};

pub use report::{DamagedFile, LostRange, ManifestState, RepairOptions, RepairReport};

use self::blobs::Blobs;
use self::families::{FamilyPlan, Hints};
use self::outside::{CameAs, Sayings};
use self::survey::Survey;
use self::tables::Looked;
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::rewrite::{OutputContext, Throttle};
use crate::sstable::TableFamily;
use crate::version::{FileKind, FileMeta, Origin};

/// Makes the database in the folder `path` one that opens again, of what can be read of its files, and says what is lost.
/// No process may have it open. What can't be used is not removed but moved into the folder `lost` in it.
///
/// Takes the time of reading all files, and that of writing those that are damaged; where the manifest is not whole,
/// that of writing all tables whose keys overlap, and as much room as they take.
///
/// # Errors
/// `NotFound`: there is no database. `Locked`: it is open. `InvalidArgument`: a column family has an order of keys that is
/// neither built in nor given. `Unsupported`: a file was written by a newer version. `Corruption`: nothing is left that says
/// which database it was. `Io` and `NoSpace`: the repair can't go on, and can be begun again.
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport> {
    repair_on(&Env::posix(), path, options)
}

/// [`repair`] on this machine instead of the real one: for tests and simulations.
///
/// # Errors
/// As `repair`.
pub fn repair_on(env: &Env, path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport> {
    let dir = path.as_ref();
    // Looked at first, so that no lock is made where there is no database.
    let mut survey = Survey::of(env, dir)?;
    let _lock = match options.dry_run {
        true => None,
        false => {
            let lock = super::folder::lock(env, dir)?;
            survey = Survey::of(env, dir)?;
            Some(lock)
        }
    };
    let mut repair = Repair::new(env, dir, options, survey)?;
    repair.look_at_blobs();
    repair.look_at_tables()?;
    repair.read_log();
    if !options.dry_run {
        repair.build()?;
    }
    Ok(repair.into_report())
}

/// A repair under way.
struct Repair<'a> {
    env: &'a Env,
    dir: &'a Path,
    options: &'a RepairOptions,
    survey: Survey,
    families: BTreeMap<u32, FamilyPlan>,
    blobs: Blobs,
    /// What each segment holds; of those that can't be read, what is wrong.
    log: Vec<(u64, Result<log::Segment>)>,
    /// For each table that counts: its family.
    tables: BTreeMap<u64, u32>,
    /// How those from outside came in, where no manifest says it.
    came: BTreeMap<u64, CameAs>,
    /// Files that are to leave the folder.
    aside: BTreeSet<FileKind>,
    next_file_number: AtomicU64,
    metrics: Arc<Metrics>,
    throttle: Throttle,
    report: RepairReport,
}

impl<'a> Repair<'a> {
    /// Says which tables count, and in which families.
    fn new(env: &'a Env, dir: &'a Path, options: &'a RepairOptions, mut survey: Survey) -> Result<Self> {
        let db_id = survey.database_id as u64;
        let log = survey
            .segments
            .iter()
            .map(|&number| (number, log::read(env, dir, db_id, number)));
        let log: Vec<_> = log.collect();
        let mut hints = Hints::default();
        let mut sayings = Sayings::default();
        hints.logged = log
            .iter()
            .flat_map(|(_, read)| read)
            .flat_map(|read| &read.families)
            .copied()
            .collect();
        if survey.trusted {
            for number in survey.newer_tables() {
                sayings.hear(env, dir, number, db_id, &mut hints)?;
            }
            // A family is made before anything is written to it.
            let mut ids = hints.logged.iter().chain(hints.tables.keys());
            survey.trusted = ids.all(|&id| id < survey.facts.next_column_family);
        }
        if !survey.trusted {
            for &number in &survey.tables {
                sayings.hear(env, dir, number, db_id, &mut hints)?;
            }
        }
        let mut report = RepairReport {
            manifest: match survey.trusted {
                true => ManifestState::Whole,
                false if survey.facts.number.is_some() => ManifestState::Damaged,
                false => ManifestState::Lost,
            },
            manifest_damages: std::mem::take(&mut survey.facts.problems),
            ..RepairReport::default()
        };
        let mut families = families::plan(&survey.facts, survey.trusted, &hints, options)?;
        let mut tables = BTreeMap::new();
        for (&number, listed) in &survey.facts.tables {
            if survey.trusted || survey.tables.binary_search(&number).is_ok() {
                tables.insert(number, listed.family);
            }
        }
        let only = families.keys().next().copied().filter(|_| families.len() == 1);
        let mut aside = BTreeSet::new();
        let is_dead = |number: &u64| survey.trusted || survey.facts.removed.contains(number);
        let next_family = families.keys().next_back().map_or(0, |id| id.saturating_add(1));
        let next_family = next_family.max(survey.facts.next_column_family);
        let unlisted = survey.tables.iter().copied();
        let unlisted = unlisted.filter(|number| !is_dead(number) && !tables.contains_key(number));
        let came = sayings.places(unlisted, &mut families, next_family, options)?;
        for (&id, plan) in &mut families {
            plan.databases.extend(sayings.databases(id));
        }
        for &number in &survey.tables {
            let dead = is_dead(&number);
            if tables.contains_key(&number) {
                continue;
            }
            let family = match came.get(&number) {
                Some(CameAs::Named(family, _) | CameAs::Imported(family, _)) => Some(*family),
                Some(CameAs::Last | CameAs::Oldest) => only,
                None => sayings.families.get(&number).copied().or(only),
            };
            match family.filter(|family| !dead && families.contains_key(family)) {
                Some(family) => {
                    tables.insert(number, family);
                }
                None => {
                    aside.insert(FileKind::Table(number));
                    if !dead && family.is_none() {
                        let path = FileKind::Table(number).path(dir);
                        let what = "nothing says which column family the table is for";
                        report
                            .damaged
                            .push(DamagedFile::new(path, Error::corruption(what)));
                    }
                }
            }
        }
        Ok(Self {
            env,
            dir,
            options,
            families,
            blobs: Blobs::default(),
            log,
            tables,
            came,
            aside,
            next_file_number: AtomicU64::new(survey.next_file_number),
            metrics: Arc::default(),
            throttle: Throttle::default(),
            report,
            survey,
        })
    }

    fn look_at_blobs(&mut self) {
        let facts = &self.survey.facts;
        let origins = facts
            .blobs
            .values()
            .filter_map(|blob| Some((blob.origin?, blob.number)));
        let imported: BTreeMap<(u64, u64), u64> = origins
            .map(|(origin, number)| ((origin.database_id, origin.number), number))
            .collect();
        // By the numbers in their names.
        let mut listed = BTreeSet::new();
        for table in facts.tables.values() {
            let databases = self.families.get(&table.family).map(|plan| &plan.databases);
            for part in &table.meta.blobs {
                let mut origins = databases.into_iter().flatten().map(|&id| (id, part.file));
                let number = origins.find_map(|origin| imported.get(&origin));
                listed.insert(number.copied().unwrap_or(part.file));
            }
        }
        for number in listed.iter().filter(|number| !self.survey.blobs.contains(number)) {
            let path = FileKind::Blob(*number).path(self.dir);
            let mut missing = DamagedFile::new(path, Error::corruption("the file is missing"));
            missing.rows_lost = Some(0);
            self.report.damaged.push(missing);
        }
        let id = self.survey.database_id as u64;
        for &number in &self.survey.blobs {
            if self.survey.trusted && !listed.contains(&number) {
                self.aside.insert(FileKind::Blob(number));
                continue;
            }
            let known = facts.blobs.get(&number).map(|blob| blob.origin);
            if let Err(error) = self.blobs.look_at(self.env, self.dir, id, number, known) {
                self.aside.insert(FileKind::Blob(number));
                let path = FileKind::Blob(number).path(self.dir);
                // What it costs, the tables say that point into it.
                let mut damaged = DamagedFile::new(path, error);
                damaged.rows_lost = Some(0);
                self.report.damaged.push(damaged);
            }
        }
        // Blob files that are written from now on have larger numbers than rows have of those imported.
        let next = self.blobs.pointed_as_max().saturating_add(1);
        self.next_file_number.fetch_max(next, Ordering::Relaxed);
    }

    fn look_at_tables(&mut self) -> Result<()> {
        let tables = self.tables.iter().map(|(&number, &id)| (number, id));
        let (last, others): (Vec<_>, Vec<_>) =
            tables.partition(|(number, _)| matches!(self.came.get(number), Some(CameAs::Last)));
        for (number, id) in others {
            let origin = match (self.survey.facts.tables.get(&number), self.came.get(&number)) {
                (Some(listed), _) => listed.meta.origin,
                (None, Some(CameAs::Named(_, origin) | CameAs::Imported(_, origin))) => Some(*origin),
                (None, Some(CameAs::Oldest | CameAs::Last)) => {
                    self.report.unplaced.push(FileKind::Table(number).path(self.dir));
                    Some(Origin::default())
                }
                (None, None) => None,
            };
            let looked = self.look_at(number, id, origin)?;
            self.take(number, id, looked);
        }
        // The newest that the family's other tables hold.
        let newest: BTreeMap<u32, u64> = self
            .families
            .iter()
            .map(|(&id, plan)| {
                let files = plan.files.iter().map(|(_, file)| file.sequence_max);
                (id, files.max().unwrap_or(0))
            })
            .collect();
        let mut placed: Vec<(u32, Arc<FileMeta>)> = Vec::new();
        for (number, id) in last {
            let mut origin = Origin {
                database_id: 0,
                sequence_shift: newest.get(&id).copied().unwrap_or(0),
            };
            let mut looked = self.look_at(number, id, Some(origin))?;
            if let (Looked::Whole(meta), Some(plan)) = (&looked, self.families.get(&id)) {
                let (first, last) = (meta.smallest_user_key(), meta.largest_user_key());
                let under = placed.iter().filter(|(family, file)| {
                    *family == id && file.overlaps(&plan.options.key_order, first, last)
                });
                let under = under.map(|(_, file)| file.sequence_max).max().unwrap_or(0);
                if under > origin.sequence_shift {
                    origin.sequence_shift = under;
                    looked = self.look_at(number, id, Some(origin))?;
                }
            }
            if let Looked::Whole(meta) = &looked {
                placed.push((id, Arc::clone(meta)));
            }
            self.take(number, id, looked);
        }
        Ok(())
    }

    /// Makes what was made of a table part of its family.
    fn take(&mut self, number: u64, id: u32, looked: Looked) {
        let listed = self.survey.facts.tables.get(&number);
        let level = listed.map_or(0, |listed| usize::from(listed.level));
        let Some(plan) = self.families.get_mut(&id) else {
            return;
        };
        match looked {
            Looked::Whole(meta) => {
                self.report.tables_kept += 1;
                plan.files.push((level, meta));
            }
            Looked::Damaged(damaged, written) => {
                self.report.tables_written += written.tables.len() as u64;
                plan.add(level, written);
                self.report.damaged.push(*damaged);
                self.aside.insert(FileKind::Table(number));
            }
            Looked::Foreign(error) => {
                let path = FileKind::Table(number).path(self.dir);
                self.report.damaged.push(DamagedFile::new(path, error));
                self.aside.insert(FileKind::Table(number));
            }
        }
    }

    /// Counts what the log gives.
    fn read_log(&mut self) {
        let oldest = self.families.values().map(|family| family.log_number).min();
        let needed = |number: u64| oldest.is_some_and(|oldest| number >= oldest);
        let read = || {
            let segments = self.log.iter().filter(|(number, _)| needed(*number));
            segments.filter_map(|(_, segment)| segment.as_ref().ok())
        };
        self.report.prepared = log::prepared(read());
        for segment in read() {
            self.report.log_batches += segment.batches;
            self.report.log_damages += segment.damages;
            self.report.log_lost_bytes += segment.lost_bytes;
        }
        // Of a segment that was not finished, records are missing if others were logged behind it.
        let logged = |segment: &&log::Segment| segment.batches > 0;
        let last = read().filter(logged).map(|segment| segment.number).next_back();
        let is_cut = |segment: &log::Segment| !segment.finished && Some(segment.number) < last;
        self.report.log_damages += read().filter(|segment| is_cut(segment)).count() as u64;
        self.report.log_begins_late = self.survey.trusted && self.survey.missing_segment().is_some();
        self.report.log_is_torn = read().next_back().is_some_and(|segment| segment.torn);
        for (number, segment) in self.log.iter().filter(|(number, _)| needed(*number)) {
            let is_damaged = match segment {
                Ok(segment) => segment.damages > 0 || is_cut(segment),
                Err(error) => {
                    self.report.log_damages += 1;
                    let path = FileKind::Wal(*number).path(self.dir);
                    self.report.log_lost_bytes += self.env.fs.file_len(&path).unwrap_or(0);
                    self.report.damaged.push(DamagedFile::new(path, error.clone()));
                    true
                }
            };
            if is_damaged {
                self.aside.insert(FileKind::Wal(*number));
            }
        }
    }

    /// Where and how tables of a family are written.
    fn output<'b>(&'b self, id: u32, plan: &'b FamilyPlan, level: usize) -> OutputContext<'b> {
        OutputContext {
            env: self.env,
            dir: self.dir,
            database_id: self.survey.database_id as u64,
            family: TableFamily {
                id,
                name: plan.record.name.clone(),
                log_number: plan.log_number,
                outside: Vec::new(),
            },
            options: &plan.options,
            level,
            io: IoMode::Buffered,
            sync: true,
            next_file_number: &self.next_file_number,
            throttle: &self.throttle,
            blobs: None,
            cache: None,
            metrics: &self.metrics,
        }
    }

    fn new_number(&self) -> u64 {
        self.next_file_number.fetch_add(1, Ordering::Relaxed)
    }

    fn into_report(mut self) -> RepairReport {
        let names = self.families.values().map(|plan| plan.record.name.clone());
        self.report.families = names.collect();
        let imported = self.came.values().filter_map(|came| match came {
            CameAs::Imported(id, _) => self.families.get(id).map(|plan| plan.record.name.clone()),
            _ => None,
        });
        self.report.imported = imported.collect::<BTreeSet<_>>().into_iter().collect();
        self.report.families.sort();
        // A new manifest takes the place of the old one in any case.
        let is_told = |file: &&FileKind| match file {
            FileKind::Manifest(_) | FileKind::Current => !self.report.manifest_damages.is_empty(),
            _ => true,
        };
        let is_there = |path: &std::path::PathBuf| match path.file_name().and_then(|name| name.to_str()) {
            Some(name) => FileKind::parse(name).is_some_and(|kind| self.survey.has(kind)),
            None => false,
        };
        let paths = self.aside.iter().filter(is_told).map(|file| file.path(self.dir));
        self.report.set_aside = paths.filter(is_there).collect();
        self.report
    }
}
