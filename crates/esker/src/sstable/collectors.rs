//! The property collectors of a table that is written.

use std::collections::BTreeMap;
use std::fmt;

use crate::hooks::{CollectedRow, Hooks, PropertyCollector, RowKind};
use crate::key::{Sequence, ValueKind};

/// Each with its name.
pub(super) struct Collectors(Vec<(String, Box<dyn PropertyCollector>)>);

impl fmt::Debug for Collectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Collectors {
    pub fn new(hooks: &Hooks) -> Self {
        let factories = hooks.property_collectors.iter();
        Self(
            factories
                .map(|factory| (factory.name().to_owned(), factory.create()))
                .collect(),
        )
    }

    /// Whether nobody collects.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Shows them a row of the table.
    #[cold]
    pub fn add(&mut self, user_key: &[u8], kind: ValueKind, value: &[u8], sequence: Sequence) {
        let (kind, value) = match kind {
            ValueKind::Put => (RowKind::Put, Some(value)),
            ValueKind::BlobPointer => (RowKind::Put, None),
            ValueKind::Delete => (RowKind::Delete, Some(value)),
            ValueKind::SingleDelete => (RowKind::SingleDelete, Some(value)),
            ValueKind::Merge => (RowKind::Merge, Some(value)),
            ValueKind::RangeDelete => (RowKind::RangeDelete, Some(value)),
        };
        let row = CollectedRow::new(user_key, kind, value, sequence);
        for (_, collector) in &mut self.0 {
            collector.add(&row);
        }
    }

    /// What they say of the table: `collector.name`.
    pub fn finish(&mut self, properties: &mut BTreeMap<Vec<u8>, Vec<u8>>) {
        for (collector_name, collector) in std::mem::take(&mut self.0) {
            for (name, value) in collector.finish() {
                properties.insert(format!("{collector_name}.{name}").into_bytes(), value);
            }
        }
    }
}
