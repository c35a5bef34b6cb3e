//! The model of an iterator: a position in a sorted list.

use std::ops::Range;

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
    /// Which of the rows it may give.
    inside: Range<usize>,
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
        let rows: Rows = family.rows().into_iter().filter(|(key, _)| inside(key)).collect();
        Self {
            order,
            inside: 0..rows.len(),
            rows,
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
        self.at = at.filter(|at| self.inside.contains(at) && fits(&self.rows[*at].0));
    }

    fn keep_prefix_of(&mut self, key: Option<Vec<u8>>) {
        let extractor = self.limits.prefix;
        self.prefix = key.and_then(|key| Some(extractor?.prefix(&key)?.to_vec()));
    }

    /// How many rows come before `key`.
    fn before(&self, key: &[u8]) -> usize {
        self.rows
            .partition_point(|(row, _)| self.order.compare(row, key).is_lt())
    }

    /// Narrows it within its limits; it stands on no row then.
    pub fn set_bounds(&mut self, lower: Option<&[u8]>, upper: Option<&[u8]>) {
        let start = lower.map_or(0, |lower| self.before(lower));
        let end = upper.map_or(self.rows.len(), |upper| self.before(upper));
        self.inside = start..end;
        self.at = None;
    }

    /// To the first row.
    pub fn seek_to_first(&mut self) {
        self.prefix = None;
        self.stand(Some(self.inside.start));
        self.keep_prefix_of(self.row().map(|(key, _)| key.to_vec()));
    }

    /// To the last row.
    pub fn seek_to_last(&mut self) {
        self.prefix = None;
        self.stand(self.inside.end.checked_sub(1));
        self.keep_prefix_of(self.row().map(|(key, _)| key.to_vec()));
    }

    /// To the first row at or behind `key`.
    pub fn seek(&mut self, key: &[u8]) {
        self.keep_prefix_of(Some(key.to_vec()));
        self.stand(Some(self.before(key).max(self.inside.start)));
    }

    /// To the last row at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) {
        self.keep_prefix_of(Some(key.to_vec()));
        let at = self
            .rows
            .partition_point(|(row, _)| self.order.compare(row, key).is_le());
        self.stand(at.min(self.inside.end).checked_sub(1));
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
