//! Column families: create, drop, list.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::core::{Core, Families};
use super::events::event_family;
use super::settings::record;
use super::{Db, handle};
use crate::batch::DEFAULT_COLUMN_FAMILY;
use crate::error::{Error, ErrorKind, Result};
use crate::hooks::{FamilyCreated, FamilyDropped};
use crate::key::KeyOrder;
use crate::merge::MergeOperator;
use crate::options::ColumnFamilyOptions;
use crate::version::{Family, Version, VersionEdit, View};

/// The longest name of a column family, in bytes.
pub const FAMILY_NAME_LEN_MAX: usize = 1024;

/// A handle on a column family. Cheap to clone. It stays valid for reads after the family was dropped.
#[derive(Clone)]
pub struct ColumnFamily {
    pub(super) family: Arc<Family>,
}

impl ColumnFamily {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.family.name
    }

    /// Its number, which is never used again after a drop.
    pub fn id(&self) -> u32 {
        self.family.id
    }

    /// The order of its keys, which never changes.
    pub fn key_order(&self) -> &KeyOrder {
        &self.family.order
    }

    /// Its merge operator, if it has one.
    pub fn merge_operator(&self) -> Option<Arc<dyn MergeOperator>> {
        self.family.options().merge_operator.clone()
    }

    /// Its settings of now.
    pub fn options(&self) -> ColumnFamilyOptions {
        (**self.family.options()).clone()
    }
}

impl fmt::Debug for ColumnFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnFamily({}, {:?})", self.id(), self.name())
    }
}

impl Db {
    /// The family `default`.
    pub fn default_column_family(&self) -> ColumnFamily {
        ColumnFamily {
            family: Arc::clone(&self.core().families.load().default),
        }
    }

    /// The family with this name. Error: `NotFound`, listing the names that there are.
    pub fn column_family(&self, name: &str) -> Result<ColumnFamily> {
        let families = self.core().families.load();
        match families.named(name) {
            Some(family) => Ok(ColumnFamily {
                family: Arc::clone(family),
            }),
            None => {
                let names: Vec<_> = families
                    .by_id
                    .values()
                    .map(|family| family.name.as_str())
                    .collect();
                Err(Error::new(
                    ErrorKind::NotFound,
                    format!(
                        "there is no column family '{name}'; there are: {}",
                        names.join(", ")
                    ),
                ))
            }
        }
    }

    /// The family with this number, as a batch's mutations name it. O(log families). Error: `NotFound`, also once it is dropped:
    /// numbers are not used again.
    pub fn column_family_by_id(&self, id: u32) -> Result<ColumnFamily> {
        match self.core().families.load().get(id) {
            Some(family) => Ok(ColumnFamily {
                family: Arc::clone(family),
            }),
            None => Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no column family {id}"),
            )),
        }
    }

    /// All families' names, in the order in which they were created.
    pub fn column_family_names(&self) -> Vec<String> {
        self.core()
            .families
            .load()
            .by_id
            .values()
            .map(|family| family.name.clone())
            .collect()
    }

    /// Creates a family. Errors: `InvalidArgument` if the name is taken, empty or over-long, or an option is out of
    /// range.
    pub fn create_column_family(&self, name: &str, options: ColumnFamilyOptions) -> Result<ColumnFamily> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        options.validate()?;
        check_name(name)?;
        // Under the leader's token, so that the set of families never changes within a commit group.
        let family = core.with_token(|token| {
            check_is_free(&token.families, name)?;
            let id = {
                let mut manifest = core.manifest.lock();
                let (id, edit) = manifest.creation(record(name, &options), token.wal_number);
                core.commit_edits(&mut manifest, vec![edit])?;
                id
            };
            let version = Arc::new(Version::empty(options.key_order.clone(), options.levels));
            let family = core.make_family(id, name.to_owned(), options, version, token.wal_number);
            core.events.note(|| FamilyCreated {
                family: event_family(&family),
            });
            core.replace_families(token, |families| {
                families.insert(id, Arc::clone(&family));
            });
            Ok(family)
        })?;
        core.share_memory();
        Ok(ColumnFamily { family })
    }

    /// Drops a family: its files are removed once nobody reads them. Handles on it can still be read; writes to it
    /// fail. The family `default` can't be dropped.
    pub fn drop_column_family(&self, family: &ColumnFamily) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        core.check_not_read_only()?;
        core.health.check_writable()?;
        let id = family.id();
        if id == DEFAULT_COLUMN_FAMILY {
            return Err(Error::invalid("the column family 'default' can't be dropped"));
        }
        core.with_token(|token| {
            let Some(family) = token.families.get(id).cloned() else {
                return Err(Error::invalid(format!("column family {id} was dropped already")));
            };
            {
                let mut manifest = core.manifest.lock();
                let mut edit = VersionEdit::of(id);
                edit.drop = true;
                let mut edits = core.idle_log_edits(&manifest, Some(id));
                edits.insert(0, edit);
                if let Err(error) = core.commit_edits(&mut manifest, edits) {
                    // Were the family gone after a crash, what is written to it from now on would be lost.
                    return match manifest.make_certain(|| core.new_file_number()) {
                        Err(doubt) if doubt.kind() != ErrorKind::NoSpace => Err(core.health.fail(&doubt)),
                        _ => Err(error),
                    };
                }
                // A flush or compaction that finishes from now on finds the mark under the manifest's lock.
                family.mark_dropped();
                core.events.note(|| FamilyDropped {
                    family: event_family(&family),
                });
            }
            for (_, file) in family.view().version.files() {
                file.mark_obsolete(&core.graveyard);
            }
            for blob in family.view().version.blobs().iter() {
                blob.file.mark_obsolete(&core.graveyard);
            }
            core.replace_families(token, |families| {
                families.remove(&id);
            });
            Ok(())
        })?;
        core.release_wal();
        core.share_memory();
        // Its memtables wait for no flush any more.
        core.update_flush_urgency();
        core.wake();
        Ok(())
    }
}

pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > FAMILY_NAME_LEN_MAX {
        let len = name.len();
        return Err(Error::invalid(format!(
            "a column family's name of {len} bytes; it must have 1 to {FAMILY_NAME_LEN_MAX}"
        )));
    }
    Ok(())
}

pub(super) fn check_is_free(families: &Families, name: &str) -> Result<()> {
    match families.named(name) {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("column family '{name}' exists already"))),
    }
}

impl Core {
    pub(super) fn make_family(
        &self,
        id: u32,
        name: String,
        options: ColumnFamilyOptions,
        version: Arc<Version>,
        wal_number: u64,
    ) -> Arc<Family> {
        let active = super::write::buffer(&options, &self.arena_pool, wal_number);
        Arc::new(Family::new(id, name, options, version, active))
    }

    /// What is seen of a family as of a time before it was there.
    pub(super) fn empty_view(&self, family: &Family) -> Arc<View> {
        let options = family.options();
        Arc::new(View {
            active: super::write::buffer(&options, &self.arena_pool, 0),
            sealed: Vec::new(),
            version: Arc::new(Version::empty(family.order.clone(), options.levels)),
        })
    }

    pub(super) fn replace_families(
        &self,
        token: &mut super::write::Token,
        change: impl FnOnce(&mut BTreeMap<u32, Arc<Family>>),
    ) {
        let mut families = Families::clone(&token.families);
        change(&mut families.by_id);
        token.families = Arc::new(families);
        self.families.store(Arc::clone(&token.families));
    }

    pub(super) fn check_not_read_only(&self) -> Result<()> {
        if self.options.read_only {
            Err(handle::opened_read_only())
        } else {
            Ok(())
        }
    }

    /// Stores changed settings in the manifest, then lets them take effect.
    pub(super) fn store_family_options(&self, family: &Family, options: ColumnFamilyOptions) -> Result<()> {
        let mut manifest = self.manifest.lock();
        if family.dropped() {
            return Err(Error::invalid(format!(
                "column family '{}' was dropped",
                family.name
            )));
        }
        let mut edit = VersionEdit::of(family.id);
        edit.options = Some(options.to_text());
        self.commit_edits(&mut manifest, vec![edit])?;
        family.set_options(options);
        Ok(())
    }
}
