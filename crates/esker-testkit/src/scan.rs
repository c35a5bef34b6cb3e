//! The model of an iterator: a position in a sorted list.

use esker::PrefixExtractor;

use crate::oracle::{Family, Order, Rows};

/// What limits an iterator.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// First key it may give.
    pub lower: Option<Vec<u8>>,
    /// First key past its end.
    pub upper: Option<Vec<u8>>,
    /// It stays within the prefix that it was positioned to.
    pub prefix: Option<PrefixExtractor>,
}

/// An iterator over rows that don't change.
#[derive(Clone, Debug)]
pub struct Scan {
    order: Order,
    limits: Limits,
    rows: Rows,
    at: Option<usize>,
    prefix: Option<Vec<u8>>,
}

impl Scan {
    /// Over a family as it is now; not positioned.
    pub fn new(family: &Family, limits: Limits) -> Self {
        let order = family.order();
        let inside = |key: &[u8]| {
            limits
                .lower
                .as_ref()
                .is_none_or(|lower| order.compare(key, lower).is_ge())
                && limits
                    .upper
                    .as_ref()
                    .is_none_or(|upper| order.compare(key, upper).is_lt())
        };
        Self {
            order,
            rows: family.rows().into_iter().filter(|(key, _)| inside(key)).collect(),
            limits,
            at: None,
            prefix: None,
        }
    }

    /// The row it stands on.
    pub fn row(&self) -> Option<(&[u8], &[u8])> {
        let (key, value) = &self.rows[self.at?];
        Some((key, value))
    }

    fn stand(&mut self, at: Option<usize>) {
        let fits = |key: &[u8]| match (&self.prefix, self.limits.prefix) {
            (Some(prefix), Some(extractor)) => extractor.prefix(key) == Some(prefix),
            _ => true,
        };
        self.at = at.filter(|&at| self.rows.get(at).is_some_and(|(key, _)| fits(key)));
    }

    fn keep_prefix_of(&mut self, key: Option<Vec<u8>>) {
        let extractor = self.limits.prefix;
        self.prefix = key.and_then(|key| Some(extractor?.prefix(&key)?.to_vec()));
    }

    /// To the first row.
    pub fn seek_to_first(&mut self) {
        self.prefix = None;
        self.stand(Some(0));
        self.keep_prefix_of(self.row().map(|(key, _)| key.to_vec()));
    }

    /// To the last row.
    pub fn seek_to_last(&mut self) {
        self.prefix = None;
        self.stand(self.rows.len().checked_sub(1));
        self.keep_prefix_of(self.row().map(|(key, _)| key.to_vec()));
    }

    /// To the first row at or behind `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.keep_prefix_of(Some(key.to_vec()));
        let at = self
            .rows
            .partition_point(|(row, _)| self.order.compare(row, key).is_lt());
        self.stand(Some(at));
    }

    /// To the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.keep_prefix_of(Some(key.to_vec()));
        let at = self
            .rows
            .partition_point(|(row, _)| self.order.compare(row, key).is_le());
        self.stand(at.checked_sub(1));
    }

    /// One row on; nothing while not valid.
    pub fn next(&mut self) {
        self.stand(self.at.map(|at| at + 1));
    }

    /// One row back; nothing while not valid.
    pub fn prev(&mut self) {
        self.stand(self.at.and_then(|at| at.checked_sub(1)));
    }
}
