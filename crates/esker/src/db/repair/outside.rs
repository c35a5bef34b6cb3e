//! Tables that were not written for the database, where no manifest says which family they came into, and with what numbers.
//!
//! Tables of the database name the files from outside that their family had when they were begun (`TableFamily::outside`). So
//! 1. one that is named by any has its place for certain;
//! 2. one that none names came in after all tables of its family were begun: **all that they hold is older**. Nothing newer is but
//!    in the log, as rows that are in the range of an ingested table are flushed before it comes in.
//!
//! So an ingested table that nobody names gets the first number behind those of the family's own tables; behind that of another one
//! if it came after that and overlaps it. It had this number or a larger one, and rows of the log that are newer have larger ones still. Which
//! family it is in, nobody knows, unless there is only one.
//!
//! Of an imported family nobody wrote a table, then, and all of it is there: it becomes a family again, under the name that it was
//! exported with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use esker_env::{Env, IoMode};

use super::families::{FamilyPlan, Hints};
use super::report::RepairOptions;
use crate::error::{ErrorKind, Result};
use crate::sstable::{OutsideFiles, TableFamily, TableSalvage};
use crate::version::{FileKind, Origin};

/// A table from outside, as it says itself.
struct Outsider {
    database_id: u64,
    /// The family that it was written for, in the database that wrote it, and its order of keys.
    family: Option<(TableFamily, String)>,
}

/// What tables say of themselves and of each other.
#[derive(Default)]
pub(super) struct Sayings {
    /// For each table of the database's own: the family that it names.
    pub families: BTreeMap<u64, u32>,
    outsiders: BTreeMap<u64, Outsider>,
    /// By family.
    named: BTreeSet<(u32, OutsideFiles)>,
    /// Tables may be named by some that can't be read.
    is_partial: bool,
}

/// The place of a table from outside.
pub(super) enum CameAs {
    /// In this family, in this way.
    Named(u32, Origin),
    /// Behind all that is in the tables of its family.
    Last,
    /// Nobody knows when: as the oldest of its family.
    Oldest,
    /// With a family that was imported.
    Imported(u32, Origin),
}

impl Sayings {
    /// Reads what table `number` says; what it says of its family and of its order becomes a hint.
    ///
    /// # Errors
    /// `Unsupported` if it is of a newer version.
    pub fn hear(&mut self, env: &Env, dir: &Path, number: u64, own: u64, hints: &mut Hints) -> Result<()> {
        let path = FileKind::Table(number).path(dir);
        let salvage = env.fs.open(&path, IoMode::Buffered).ok();
        let salvage = salvage.map(|file| TableSalvage::open(file, &path, number));
        let salvage = match salvage.transpose() {
            Ok(salvage) => salvage,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(_) => None,
        };
        let Some(salvage) = salvage else {
            self.is_partial = true;
            return Ok(());
        };
        let is_renamed = salvage.is_renamed();
        let database_id = salvage.database_id.unwrap_or(own);
        let Some(properties) = salvage.properties else {
            self.is_partial = true;
            return Ok(());
        };
        if database_id != own || is_renamed {
            if database_id == 0 {
                hints.nameless_order = Some(properties.comparator.clone());
            }
            let family = properties.family.map(|family| (family, properties.comparator));
            self.outsiders.insert(number, Outsider { database_id, family });
            return Ok(());
        }
        match properties.family {
            None => hints.nameless_order = Some(properties.comparator),
            Some(family) => {
                self.families.insert(number, family.id);
                self.is_partial |= family.outside.len() >= OutsideFiles::NAMED_MAX;
                self.named
                    .extend(family.outside.iter().map(|&part| (family.id, part)));
                let known = hints
                    .tables
                    .entry(family.id)
                    .or_insert_with(|| (family.clone(), properties.comparator));
                known.0.log_number = known.0.log_number.max(family.log_number);
            }
        }
        Ok(())
    }

    /// The databases from which files came into the family.
    pub fn databases(&self, family: u32) -> impl Iterator<Item = u64> {
        let named = self.named.iter().filter(move |(id, _)| *id == family);
        named.map(|(_, part)| part.database_id).filter(|&id| id != 0)
    }

    /// How the tables of `numbers` came in, as far as they are from outside. Families that were imported and that nobody names are
    /// made, with ids from `next_family` on.
    ///
    /// # Errors
    /// `InvalidArgument` if one has an order of keys of the application's own that was not given.
    pub fn places(
        &self,
        numbers: impl Iterator<Item = u64>,
        plans: &mut BTreeMap<u32, FamilyPlan>,
        next_family: u32,
        options: &RepairOptions,
    ) -> Result<BTreeMap<u64, CameAs>> {
        let mut places = BTreeMap::new();
        let mut imported: BTreeMap<(u64, u32), u32> = BTreeMap::new();
        for number in numbers {
            let Some(outsider) = self.outsiders.get(&number) else {
                continue;
            };
            let database_id = outsider.database_id;
            let is_it = |(_, part): &&(u32, OutsideFiles)| {
                part.database_id == database_id && (part.first..=part.last).contains(&number)
            };
            let place = match (self.named.iter().find(is_it), &outsider.family) {
                (Some(&(family, part)), _) => {
                    let sequence_shift = part.sequence_shift;
                    CameAs::Named(
                        family,
                        Origin {
                            database_id,
                            sequence_shift,
                        },
                    )
                }
                (None, Some((family, order))) if database_id != 0 => {
                    let key = (database_id, family.id);
                    let id = match imported.get(&key) {
                        Some(&id) => id,
                        None => {
                            let id = next_family.saturating_add(imported.len() as u32);
                            let plan = FamilyPlan::imported(family, order, plans, database_id, options)?;
                            plans.insert(id, plan);
                            imported.insert(key, id);
                            id
                        }
                    };
                    let origin = Origin {
                        database_id,
                        sequence_shift: 0,
                    };
                    CameAs::Imported(id, origin)
                }
                (None, _) if self.is_partial => CameAs::Oldest,
                (None, _) => CameAs::Last,
            };
            places.insert(number, place);
        }
        Ok(places)
    }
}
