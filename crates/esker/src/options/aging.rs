//! What happens to data that has become old.

use crate::error::{Error, Result};

/// What happens to data of a column family that has become old, by age in seconds: 60 to 2^40.
///
/// A table's age counts from when it was written, by the machine's clock. Moving to another level does not renew it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Aging {
    /// Nothing.
    #[default]
    None,
    /// Tables that are older are compacted: deleted rows in them go at last, and compaction filters are asked about each
    /// row once in a while.
    Rewrite(u64),
    /// Rows that were written longer ago are deleted by compactions, and tables that are older, all rows of which have
    /// expired, are compacted for that alone. Reads see a row until a compaction has removed it: never before it is that
    /// old, and as a rule before it is twice as old. Snapshots keep what they see; but **a snapshot that is taken while a
    /// compaction runs sees the rows that it removes only until it ends**.
    ///
    /// When a row was written is known by its sequence number, to a 32nd of the limit and the time that it spent in a
    /// memtable. A merged value is as old as its newest operand; rows of an ingested table may be taken for as old as the
    /// file. Rows that came to the last level before the family had a limit expire only with their table as a whole.
    Expire(u64),
}

impl Aging {
    /// The age at which a table is compacted, in seconds.
    pub fn table_limit(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Rewrite(seconds) | Self::Expire(seconds) => Some(seconds),
        }
    }

    /// The age at which rows expire, in seconds.
    pub fn row_limit(self) -> Option<u64> {
        match self {
            Self::Expire(seconds) => Some(seconds),
            _ => None,
        }
    }

    /// Its text: `none`, `rewrite:SECONDS` or `expire:SECONDS`.
    pub(super) fn to_text(self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Rewrite(seconds) => format!("rewrite:{seconds}"),
            Self::Expire(seconds) => format!("expire:{seconds}"),
        }
    }

    /// What the text says.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let (kind, seconds) = text
            .split_once(':')
            .map_or((text, None), |(kind, seconds)| (kind, Some(seconds.parse().ok())));
        match (kind, seconds) {
            ("none", None) => Some(Self::None),
            ("rewrite", Some(Some(seconds))) => Some(Self::Rewrite(seconds)),
            ("expire", Some(Some(seconds))) => Some(Self::Expire(seconds)),
            _ => None,
        }
    }

    pub(super) fn validate(self) -> Result<()> {
        match self.table_limit() {
            Some(seconds) if !(60..=1 << 40).contains(&seconds) => Err(Error::invalid(format!(
                "option aging is {seconds} seconds; it must be from 60 to {}",
                1_u64 << 40
            ))),
            _ => Ok(()),
        }
    }
}
