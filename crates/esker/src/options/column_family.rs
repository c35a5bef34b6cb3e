//! Settings of a column family.

use std::fmt;
use std::sync::Arc;

use super::Aging;
use super::database::in_range;
use crate::error::{Error, Result};
use crate::hooks::Hooks;
use crate::key::KeyOrder;
use crate::merge::MergeOperator;

/// Compression of SSTable blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Compression {
    /// As they are.
    None = 0,
    /// Snappy (raw format).
    Snappy = 1,
    /// zlib, level 6.
    Zlib = 2,
    /// LZ4 (block format): the default; cheap on both sides.
    #[default]
    Lz4 = 3,
    /// zstd, level 3.
    Zstd = 4,
}

impl Compression {
    /// The compression with this number, or `None`.
    pub fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::None,
            1 => Self::Snappy,
            2 => Self::Zlib,
            3 => Self::Lz4,
            4 => Self::Zstd,
            _ => return None,
        })
    }

    /// Its name in settings: `none`, `snappy`, `zlib`, `lz4` or `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The compression with this name, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        (0..=4).filter_map(Self::from_u8).find(|kind| kind.name() == name)
    }
}

/// Which memtable a column family uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MemtableKind {
    /// Ordered, concurrent; the default.
    #[default]
    Ordered,
    /// An append-only vector that is sorted at flush: for bulk loads. Reads of an unsorted one sort it first.
    Vector,
}

/// What compaction does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CompactionStyle {
    /// Leveled with dynamic level sizes; the default.
    #[default]
    Leveled,
    /// Nothing until [`compact_range`](crate::Db::compact_range) is called: for bulk loads.
    Manual,
}

/// The part of a key that prefix filters and prefix scans look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixExtractor {
    /// The first so many bytes; shorter keys have no prefix.
    Fixed(usize),
    /// The first so many bytes, or the whole key if it is shorter.
    Capped(usize),
}

impl PrefixExtractor {
    /// The prefix of `key`, or `None` if it has none.
    #[inline]
    pub fn prefix<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        match *self {
            Self::Fixed(len) => key.get(..len),
            Self::Capped(len) => Some(&key[..len.min(key.len())]),
        }
    }
}

/// Settings of a column family.
#[derive(Clone)]
pub struct ColumnFamilyOptions {
    /// The order of keys. Stored by name; it can never change. Default: bytewise.
    pub key_order: KeyOrder,
    /// The merge operator, needed as soon as something is merged. Stored by name. Default: none.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Which memtable. Default: `Ordered`.
    pub memtable_kind: MemtableKind,
    /// Size at which a memtable is sealed and flushed, in bytes: 16 KiB to 4 GiB. Can change while running.
    /// Default: 32 MiB.
    pub memtable_bytes: u64,
    /// Memtables (the active one included) at which writes to the family wait for a flush: 2 to 64. Default: 4.
    pub memtables_max: usize,
    /// Prefixes for filters and prefix scans. Default: none.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// Whether filters hold whole keys (they hold prefixes as well where there is an extractor). Default: true.
    pub whole_key_filter: bool,
    /// Bits of filter for each key, 0 (no filters) to 32. Default: 10.
    pub filter_bits_per_key: u32,
    /// Size of a data block before compression, in bytes: 512 to 4 MiB. Default: 4 KiB.
    pub block_bytes: usize,
    /// Compression by level, the last entry for all deeper ones. Default: none, none, LZ4.
    pub compression_per_level: Vec<Compression>,
    /// Compaction style. Default: `Leveled`.
    pub compaction_style: CompactionStyle,
    /// Files in level 0 that start a compaction: 1 to 1,000. Can change while running. Default: 4.
    pub level0_compaction_trigger: usize,
    /// Files in level 0 at which writes are held to the rate of compaction: at least the trigger. Can change while
    /// running. Default: 20.
    pub level0_files_max: usize,
    /// Size that the first level below level 0 may have, in bytes; at least 64 KiB. Default: 256 MiB.
    pub level_base_bytes: u64,
    /// How many times larger each level is than the one above: 2 to 100. Default: 10.
    pub level_size_multiplier: u32,
    /// Levels in all: 2 to 16. Default: 7.
    pub levels: usize,
    /// Values of at least so many bytes are kept outside of the tree, in blob files, so that compactions don't write
    /// them again and again; 0: none. Can change while running. Default: 512.
    pub blob_value_bytes_min: u64,
    /// Compression of each value in blob files. Can change while running. Default: none.
    pub blob_compression: Compression,
    /// Bytes of blob files, as a percentage of what is live in them, beyond which space is given back on purpose. Writers that
    /// make more garbage than that allows are led, within a minute or so, to the rate at which it is given back; a burst
    /// may take more space until then. More percent are more writes a second at full speed. 110 to 10,000. Can change
    /// while running. Default: 150.
    pub blob_space_percent: u32,
    /// Size at which compaction starts a new SSTable, in bytes: 16 KiB to 4 GiB. A database of less than 128 of them
    /// gets smaller ones, down to 8 MiB. Default: 64 MiB.
    pub file_bytes: u64,
    /// What happens to data that has become old. Not in `Manual` style by itself. Can change while running. Default: nothing.
    pub aging: Aging,
    /// Code of the program's own that is called for rows as tables are written. Not stored. Default: none.
    pub hooks: Hooks,
}

impl Default for ColumnFamilyOptions {
    fn default() -> Self {
        Self {
            key_order: KeyOrder::Bytewise,
            merge_operator: None,
            memtable_kind: MemtableKind::Ordered,
            memtable_bytes: 32 << 20,
            memtables_max: 4,
            prefix_extractor: None,
            whole_key_filter: true,
            filter_bits_per_key: 10,
            block_bytes: 4 << 10,
            compression_per_level: vec![Compression::None, Compression::None, Compression::Lz4],
            compaction_style: CompactionStyle::Leveled,
            level0_compaction_trigger: 4,
            level0_files_max: 20,
            level_base_bytes: 256 << 20,
            level_size_multiplier: 10,
            levels: 7,
            file_bytes: 64 << 20,
            blob_value_bytes_min: 512,
            blob_compression: Compression::None,
            blob_space_percent: 150,
            aging: Aging::None,
            hooks: Hooks::default(),
        }
    }
}

impl ColumnFamilyOptions {
    /// Checks every range; the error names the setting, its value and its range.
    pub fn validate(&self) -> Result<()> {
        in_range("memtable_bytes", self.memtable_bytes, 16 << 10, 4 << 30)?;
        in_range("memtables_max", self.memtables_max as u64, 2, 64)?;
        in_range("filter_bits_per_key", u64::from(self.filter_bits_per_key), 0, 32)?;
        in_range("block_bytes", self.block_bytes as u64, 512, 4 << 20)?;
        in_range(
            "level0_compaction_trigger",
            self.level0_compaction_trigger as u64,
            1,
            1000,
        )?;
        let trigger = self.level0_compaction_trigger as u64;
        in_range(
            "level0_files_max",
            self.level0_files_max as u64,
            trigger,
            u64::MAX,
        )?;
        in_range("level_base_bytes", self.level_base_bytes, 64 << 10, u64::MAX)?;
        in_range(
            "level_size_multiplier",
            u64::from(self.level_size_multiplier),
            2,
            100,
        )?;
        in_range("levels", self.levels as u64, 2, 16)?;
        in_range("file_bytes", self.file_bytes, 16 << 10, 4 << 30)?;
        in_range("blob_value_bytes_min", self.blob_value_bytes_min, 0, 4 << 30)?;
        in_range(
            "blob_space_percent",
            u64::from(self.blob_space_percent),
            110,
            10_000,
        )?;
        self.aging.validate()?;
        if self.compression_per_level.is_empty() {
            return Err(Error::invalid(
                "option compression_per_level is empty; it needs at least one entry",
            ));
        }
        Ok(())
    }

    /// Whether rewriting a row can be worth while for its own sake: it may have expired, or a filter wants to see it.
    pub fn rewrites_for_rows(&self) -> bool {
        self.hooks.compaction_filter.is_some() || self.aging.row_limit().is_some()
    }

    /// The compression of `level`.
    pub fn compression(&self, level: usize) -> Compression {
        let last = self.compression_per_level.len().saturating_sub(1);
        self.compression_per_level
            .get(level.min(last))
            .copied()
            .unwrap_or_default()
    }
}

impl fmt::Debug for ColumnFamilyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnFamilyOptions")
            .field("key_order", &self.key_order)
            .field(
                "merge_operator",
                &self
                    .merge_operator
                    .as_ref()
                    .map(|operator| operator.name().to_owned()),
            )
            .field("memtable_kind", &self.memtable_kind)
            .field("memtable_bytes", &self.memtable_bytes)
            .field("block_bytes", &self.block_bytes)
            .field("compression_per_level", &self.compression_per_level)
            .field("compaction_style", &self.compaction_style)
            .field("aging", &self.aging)
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}
