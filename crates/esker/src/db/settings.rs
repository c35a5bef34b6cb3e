//! Opening: the settings of stored families, given or as they are stored.

use std::collections::BTreeMap;

use super::open::DEFAULT_NAME;
use crate::batch::DEFAULT_COLUMN_FAMILY;
use crate::error::{Error, Result};
use crate::merge::builtin_operator;
use crate::options::{ColumnFamilyOptions, Options};
use crate::version::{ColumnFamilyRecord, ColumnFamilyState};

/// What the manifest stores about a family.
pub(super) fn record(name: &str, options: &ColumnFamilyOptions) -> ColumnFamilyRecord {
    ColumnFamilyRecord {
        name: name.to_owned(),
        comparator: options.key_order.name().to_owned(),
        merge_operator: options
            .merge_operator
            .as_ref()
            .map(|operator| operator.name().to_owned()),
        options: options.to_text(),
    }
}

/// The settings that were given for a stored family.
pub(super) fn given_settings<'a>(
    family: &ColumnFamilyState,
    named: &'a BTreeMap<String, ColumnFamilyOptions>,
    options: &'a Options,
) -> Option<&'a ColumnFamilyOptions> {
    if family.id == DEFAULT_COLUMN_FAMILY {
        named.get(DEFAULT_NAME).or(Some(&options.default_column_family))
    } else {
        named.get(&family.record.name)
    }
}

/// The settings with which a stored family is opened: the given ones if they fit, else the stored ones.
pub(super) fn settings_of(
    family: &ColumnFamilyState,
    given: Option<&ColumnFamilyOptions>,
) -> Result<ColumnFamilyOptions> {
    let mut options = settings_for(&family.record, given)?;
    family.check_order(&options.key_order)?;
    // Levels are never lost by opening with fewer of them.
    options.levels = options.levels.max(family.levels().len());
    Ok(options)
}

/// The given settings, else the stored ones, with the merge operator of the stored name.
pub(super) fn settings_for(
    record: &ColumnFamilyRecord,
    given: Option<&ColumnFamilyOptions>,
) -> Result<ColumnFamilyOptions> {
    let mut options = match given {
        Some(given) => given.clone(),
        None => {
            let mut options = ColumnFamilyOptions::default();
            options
                .apply_text(&record.options)
                .map_err(|error| error.in_column_family(&record.name))?;
            options
        }
    };
    if options.merge_operator.is_none() {
        options.merge_operator = match record.merge_operator.as_deref() {
            None => None,
            Some(name) => Some(builtin_operator(name).ok_or_else(|| {
                Error::invalid(format!("the merge operator '{name}' is needed to open it"))
                    .in_column_family(&record.name)
            })?),
        };
    } else if let (Some(stored), Some(now)) = (&record.merge_operator, &options.merge_operator)
        && stored != now.name()
    {
        let now = now.name();
        return Err(
            Error::invalid(format!("its operands are merged by '{stored}', not by '{now}'"))
                .in_column_family(&record.name),
        );
    }
    Ok(options)
}
