//! Property collectors: what a program wants to know of a table is gathered as it is written, and stored in it.

use crate::key::Sequence;

/// What a row of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowKind {
    /// A value.
    Put,
    /// A delete.
    Delete,
    /// A delete of a key that was put once.
    SingleDelete,
    /// An operand.
    Merge,
    /// A delete of all keys from `key` up to `value` (exclusive).
    RangeDelete,
}

/// A row that is written. Of a key there may be several, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectedRow<'a> {
    /// The user key.
    pub key: &'a [u8],
    /// What it is.
    pub kind: RowKind,
    /// The value, operand or end; `None` where the value lies in a blob file. Empty for deletes.
    pub value: Option<&'a [u8]>,
    /// When it was written: numbers ascend. 0 where nobody needs to know any more, 1 in tables that are written outside of a
    /// database.
    pub sequence: Sequence,
}

impl<'a> CollectedRow<'a> {
    pub(crate) fn new(key: &'a [u8], kind: RowKind, value: Option<&'a [u8]>, sequence: Sequence) -> Self {
        Self {
            key,
            kind,
            value,
            sequence,
        }
    }
}

/// Gathers what is to be known of one table.
pub trait PropertyCollector: Send {
    /// Takes a row: point rows in the order of keys, then range deletes.
    fn add(&mut self, row: &CollectedRow<'_>);

    /// What the table is to say, by names of the collector's own; at most some KiB, as it is read whenever the table is
    /// opened.
    fn finish(self: Box<Self>) -> Vec<(String, Vec<u8>)>;
}

/// Makes collectors.
pub trait PropertyCollectorFactory: Send + Sync {
    /// Stands, with a dot behind it, before each name that its collectors give.
    fn name(&self) -> &str;
    /// A collector for a table.
    fn create(&self) -> Box<dyn PropertyCollector>;
}
