//! Families that a program leaves out when it opens a database read-only, which RocksDB allows: nobody can read them,
//! but the engine opens every family, and wants its order and its merge operator.

use std::sync::Arc;

use esker::inspect::{FamilyInfo, builtin_key_order};
use esker::{ColumnFamilyOptions, Error, KeyOrder, MergeOperator};

/// Stands for an operator of that name.
struct Absent(String);

impl MergeOperator for Absent {
    fn name(&self) -> &str {
        &self.0
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, _: &[&[u8]]) -> esker::Result<Vec<u8>> {
        Err(Error::invalid(format!(
            "the merge operator '{}' was not given",
            self.0
        )))
    }
}

/// Settings with which a family can be opened that nobody reads. An order of the program's own is taken from the
/// families that it does name; without it the engine refuses.
pub fn settings(info: &FamilyInfo, named: &[KeyOrder]) -> ColumnFamilyOptions {
    let given = || named.iter().find(|order| order.name() == info.key_order).cloned();
    ColumnFamilyOptions {
        key_order: builtin_key_order(&info.key_order)
            .or_else(given)
            .unwrap_or_default(),
        merge_operator: info
            .merge_operator
            .clone()
            .map(|name| Arc::new(Absent(name)) as Arc<dyn MergeOperator>),
        ..ColumnFamilyOptions::default()
    }
}
