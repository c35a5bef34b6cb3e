//! The column families that the repaired database has: as the manifest says or, where that is lost, as tables say whose
//! they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::report::RepairOptions;
use crate::batch::DEFAULT_COLUMN_FAMILY;
use crate::db::open::DEFAULT_NAME;
use crate::error::{Error, Result};
use crate::key::{BytewiseComparator, KeyOrder, ReverseBytewiseComparator};
use crate::merge::builtin_operator;
use crate::options::ColumnFamilyOptions;
use crate::sstable::TableFamily;
use crate::version::manifest::Facts;
use crate::version::{BlobFile, ColumnFamilyRecord, FileMeta};

/// A column family of the repaired database.
pub(super) struct FamilyPlan {
    pub record: ColumnFamilyRecord,
    pub options: ColumnFamilyOptions,
    /// WAL segments with smaller numbers hold nothing that it needs.
    pub log_number: u64,
    /// Its tables with their levels.
    pub files: Vec<(usize, Arc<FileMeta>)>,
    /// Blob files that were written for tables of it.
    pub new_blobs: Vec<BlobFile>,
    /// The ids of the databases that wrote files which it was imported with.
    pub databases: BTreeSet<u64>,
}

impl FamilyPlan {
    /// Of a family that was imported from the database `database_id`, where only its tables say so.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn imported(
        family: &TableFamily,
        order: &str,
        others: &BTreeMap<u32, Self>,
        database_id: u64,
        options: &RepairOptions,
    ) -> Result<Self> {
        let base = match family.name.as_str() {
            "" => "imported",
            name => name,
        };
        let is_taken = |name: &str| others.values().any(|plan| plan.record.name == name);
        let mut name = base.to_owned();
        let mut copies = 0;
        while is_taken(&name) {
            copies += 1;
            name = format!("{base}-imported-{copies}");
        }
        let mut record = ColumnFamilyRecord {
            name,
            comparator: order.to_owned(),
            ..ColumnFamilyRecord::default()
        };
        let options = settings(&mut record, options)?;
        Ok(Self {
            record,
            options,
            // None of its rows are in the log.
            log_number: others.values().map(|plan| plan.log_number).max().unwrap_or(0),
            files: Vec::new(),
            new_blobs: Vec::new(),
            // It may have been imported there, too.
            databases: family
                .outside
                .iter()
                .map(|part| part.database_id)
                .filter(|&id| id != 0)
                .chain([database_id])
                .collect(),
        })
    }
}

/// What tables and log say of families.
#[derive(Default)]
pub(super) struct Hints {
    /// By id: what the newest table of each says, and the name of its key order.
    pub tables: BTreeMap<u32, (TableFamily, String)>,
    /// Ids of families whose rows are in the log.
    pub logged: BTreeSet<u32>,
    /// The key order of tables that don't say whose they are.
    pub nameless_order: Option<String>,
}

/// The families, by id. Without a whole manifest, all that `hints` know of are added.
///
/// # Errors
/// `InvalidArgument` if a family's key order is one of the application's own and was not given.
pub(super) fn plan(
    facts: &Facts,
    trusted: bool,
    hints: &Hints,
    options: &RepairOptions,
) -> Result<BTreeMap<u32, FamilyPlan>> {
    let mut ids: BTreeSet<u32> = facts.families.keys().copied().collect();
    if !trusted {
        ids.extend(hints.tables.keys());
        ids.extend(&hints.logged);
        ids.insert(DEFAULT_COLUMN_FAMILY);
        ids.retain(|id| !facts.dropped.contains(id));
    }
    let mut names = BTreeSet::new();
    let mut plans = BTreeMap::new();
    // The newer one has the name: an older one of the same name was dropped.
    for &id in ids.iter().rev() {
        let known = facts.families.get(&id);
        let hint = hints.tables.get(&id);
        let mut record = match known.and_then(|family| family.record.clone()) {
            Some(record) => record,
            None => ColumnFamilyRecord {
                name: match hint {
                    _ if id == DEFAULT_COLUMN_FAMILY => DEFAULT_NAME.to_owned(),
                    Some((family, _)) if !family.name.is_empty() => family.name.clone(),
                    _ => format!("family-{id}"),
                },
                comparator: hint
                    .map(|(_, order)| order)
                    .or(hints.nameless_order.as_ref())
                    .map_or(BytewiseComparator::NAME.to_owned(), String::clone),
                ..ColumnFamilyRecord::default()
            },
        };
        if !names.insert(record.name.clone()) {
            record.name = format!("{}-{id}", record.name);
            names.insert(record.name.clone());
        }
        let settings = settings(&mut record, options)?;
        let claimed = hint.map_or(0, |(family, _)| family.log_number);
        let log_number = known.map_or(0, |family| family.log_number);
        let family = FamilyPlan {
            record,
            options: settings,
            log_number: if trusted {
                log_number
            } else {
                log_number.max(claimed)
            },
            files: Vec::new(),
            new_blobs: Vec::new(),
            databases: known.map(|family| family.databases.clone()).unwrap_or_default(),
        };
        plans.insert(id, family);
    }
    Ok(plans)
}

/// The settings that are stored; the defaults where they can't be understood.
fn settings(record: &mut ColumnFamilyRecord, options: &RepairOptions) -> Result<ColumnFamilyOptions> {
    let mut settings = ColumnFamilyOptions::default();
    if settings.apply_text(&record.options).is_err() {
        settings = ColumnFamilyOptions::default();
        record.options = String::new();
    }
    settings.key_order = order_named(&record.comparator, options).ok_or_else(|| {
        let order = &record.comparator;
        Error::invalid(format!(
            "its keys are ordered by '{order}', which only its application has: repair it there, with that order"
        ))
        .in_column_family(&record.name)
    })?;
    settings.merge_operator = record.merge_operator.as_deref().and_then(builtin_operator);
    Ok(settings)
}

/// The order of keys of this name, built in or given.
pub(super) fn order_named(name: &str, options: &RepairOptions) -> Option<KeyOrder> {
    let reverse = KeyOrder::Custom(Arc::new(ReverseBytewiseComparator));
    let built_in = [KeyOrder::Bytewise, reverse];
    let mut all = built_in.iter().chain(&options.key_orders);
    all.find(|order| order.name() == name).cloned()
}
