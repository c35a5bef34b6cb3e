//! Column family settings as text: how they are stored with the database, and how they are changed by name.
//!
//! ```text
//! name=value;name=value
//! ```
//! Sizes are decimal numbers, also with `KiB`, `MiB` or `GiB` behind them.

use std::fmt::Write as _;

use super::{Aging, ColumnFamilyOptions, CompactionStyle, Compression, MemtableKind, PrefixExtractor};
use crate::error::{Error, Result};

/// Settings that can change while the database is open.
pub const CHANGEABLE: [&str; 14] = [
    "memtable_bytes",
    "memtables_max",
    "filter_bits_per_key",
    "block_bytes",
    "compaction_style",
    "level0_compaction_trigger",
    "level0_files_max",
    "level_base_bytes",
    "level_size_multiplier",
    "file_bytes",
    "blob_value_bytes_min",
    "blob_compression",
    "blob_space_percent",
    "aging",
];

impl ColumnFamilyOptions {
    /// All settings that are plain values; key order and merge operator are stored by name elsewhere.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut put = |name: &str, value: &dyn std::fmt::Display| {
            // Writing to a string can't fail.
            let _ = write!(text, "{name}={value};");
        };
        let memtable_kind = match self.memtable_kind {
            MemtableKind::Ordered => "ordered",
            MemtableKind::Vector => "vector",
        };
        put("memtable_kind", &memtable_kind);
        put("memtable_bytes", &self.memtable_bytes);
        put("memtables_max", &self.memtables_max);
        match self.prefix_extractor {
            None => put("prefix_extractor", &"none"),
            Some(PrefixExtractor::Fixed(len)) => put("prefix_extractor", &format_args!("fixed:{len}")),
            Some(PrefixExtractor::Capped(len)) => put("prefix_extractor", &format_args!("capped:{len}")),
        }
        put("whole_key_filter", &self.whole_key_filter);
        put("filter_bits_per_key", &self.filter_bits_per_key);
        put("block_bytes", &self.block_bytes);
        let names: Vec<_> = self
            .compression_per_level
            .iter()
            .map(|kind| kind.name())
            .collect();
        put("compression_per_level", &names.join(","));
        let style = match self.compaction_style {
            CompactionStyle::Leveled => "leveled",
            CompactionStyle::Manual => "manual",
        };
        put("compaction_style", &style);
        put("level0_compaction_trigger", &self.level0_compaction_trigger);
        put("level0_files_max", &self.level0_files_max);
        put("level_base_bytes", &self.level_base_bytes);
        put("level_size_multiplier", &self.level_size_multiplier);
        put("levels", &self.levels);
        put("file_bytes", &self.file_bytes);
        put("blob_value_bytes_min", &self.blob_value_bytes_min);
        put("blob_compression", &self.blob_compression.name());
        put("blob_space_percent", &self.blob_space_percent);
        put("aging", &self.aging.to_text());
        text
    }

    /// Sets everything that `text` names. Unknown names are an error: they come from a newer version.
    pub fn apply_text(&mut self, text: &str) -> Result<()> {
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| Error::invalid(format!("'{part}' is no setting of the form name=value")))?;
            self.set(name, value)?;
        }
        Ok(())
    }

    /// Sets one setting by name; ranges are checked by [`validate`](Self::validate).
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "memtable_kind" => {
                self.memtable_kind = match value {
                    "ordered" => MemtableKind::Ordered,
                    "vector" => MemtableKind::Vector,
                    _ => return Err(bad(name, value, "ordered or vector")),
                }
            }
            "memtable_bytes" => self.memtable_bytes = size(name, value)?,
            "memtables_max" => self.memtables_max = count(name, value)?,
            "prefix_extractor" => self.prefix_extractor = extractor(name, value)?,
            "whole_key_filter" => {
                self.whole_key_filter = flag(name, value)?;
            }
            "filter_bits_per_key" => self.filter_bits_per_key = count(name, value)?,
            "block_bytes" => self.block_bytes = count(name, value)?,
            "compression_per_level" => {
                let wanted = "a list of none, snappy, zlib, lz4, zstd";
                let kinds = value.split(',').map(|one| Compression::from_name(one.trim()));
                self.compression_per_level = kinds
                    .collect::<Option<_>>()
                    .ok_or_else(|| bad(name, value, wanted))?;
            }
            "compaction_style" => {
                self.compaction_style = match value {
                    "leveled" => CompactionStyle::Leveled,
                    "manual" => CompactionStyle::Manual,
                    _ => return Err(bad(name, value, "leveled or manual")),
                }
            }
            "aging" => {
                let wanted = "none, rewrite:SECONDS or expire:SECONDS";
                self.aging = Aging::from_text(value).ok_or_else(|| bad(name, value, wanted))?;
            }
            "level0_compaction_trigger" => self.level0_compaction_trigger = count(name, value)?,
            "level0_files_max" => self.level0_files_max = count(name, value)?,
            "level_base_bytes" => self.level_base_bytes = size(name, value)?,
            "level_size_multiplier" => self.level_size_multiplier = count(name, value)?,
            "levels" => self.levels = count(name, value)?,
            "file_bytes" => self.file_bytes = size(name, value)?,
            "blob_value_bytes_min" => self.blob_value_bytes_min = size(name, value)?,
            "blob_compression" => {
                let wanted = "none, snappy, zlib, lz4 or zstd";
                self.blob_compression =
                    Compression::from_name(value).ok_or_else(|| bad(name, value, wanted))?;
            }
            "blob_space_percent" => self.blob_space_percent = count(name, value)?,
            _ => {
                return Err(Error::invalid(format!(
                    "there is no column family option named '{name}'"
                )));
            }
        }
        Ok(())
    }
}

/// The fuzz target's way in: any text is refused, or sets options whose text sets the same.
///
/// # Panics
/// If that does not hold.
pub fn fuzz_options_text(text: &str) {
    let mut options = ColumnFamilyOptions::default();
    if options.apply_text(text).is_err() {
        return;
    }
    let stored = options.to_text();
    let mut again = ColumnFamilyOptions::default();
    let applied = again.apply_text(&stored);
    assert!(applied.is_ok(), "{applied:?}: {stored}");
    assert_eq!(again.to_text(), stored);
    assert_eq!(again.validate().is_ok(), options.validate().is_ok());
}

fn extractor(name: &str, value: &str) -> Result<Option<PrefixExtractor>> {
    if value == "none" {
        return Ok(None);
    }
    let wanted = "none, fixed:LEN or capped:LEN";
    let (kind, len) = value.split_once(':').ok_or_else(|| bad(name, value, wanted))?;
    let len = count(name, len)?;
    match kind {
        "fixed" => Ok(Some(PrefixExtractor::Fixed(len))),
        "capped" => Ok(Some(PrefixExtractor::Capped(len))),
        _ => Err(bad(name, value, wanted)),
    }
}

pub(super) fn flag(name: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| bad(name, value, "true or false"))
}

pub(super) fn bad(name: &str, value: &str, wanted: &str) -> Error {
    Error::invalid(format!("option {name} can't be '{value}'; it must be {wanted}"))
}

pub(super) fn size(name: &str, value: &str) -> Result<u64> {
    let (digits, unit) = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]
        .into_iter()
        .find_map(|(suffix, unit)| Some((value.strip_suffix(suffix)?, unit)))
        .unwrap_or((value, 1));
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_| bad(name, value, "a size such as 1048576 or 64MiB"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| bad(name, value, "a size that fits in 64 bits"))
}

pub(super) fn count<T: TryFrom<u64>>(name: &str, value: &str) -> Result<T> {
    T::try_from(size(name, value)?).map_err(|_| bad(name, value, "a smaller number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_from_their_text() {
        let mut options = ColumnFamilyOptions {
            memtable_kind: MemtableKind::Vector,
            prefix_extractor: Some(PrefixExtractor::Capped(7)),
            whole_key_filter: false,
            compression_per_level: vec![Compression::Zlib, Compression::Zstd],
            compaction_style: CompactionStyle::Manual,
            aging: Aging::Expire(3600),
            ..ColumnFamilyOptions::default()
        };
        options.set("file_bytes", "2MiB").unwrap();
        let mut again = ColumnFamilyOptions::default();
        again.apply_text(&options.to_text()).unwrap();
        assert_eq!(again.to_text(), options.to_text());
        assert_eq!(again.file_bytes, 2 << 20);
        for name in CHANGEABLE {
            assert!(options.to_text().contains(&format!("{name}=")), "{name}");
        }
    }

    #[test]
    fn a_bad_value_is_named_with_what_is_wanted() {
        let mut options = ColumnFamilyOptions::default();
        for (name, value) in [
            ("memtable_bytes", "lots"),
            ("compaction_style", "x"),
            ("prefix_extractor", "fixed"),
            ("aging", "expire"),
            ("aging", "rewrite:soon"),
            ("aging", "none:60"),
            ("nope", "1"),
        ] {
            let error = options.set(name, value).unwrap_err();
            assert!(error.message().contains(name), "{error}");
        }
        assert!(options.set("file_bytes", "99999999999GiB").is_err());
        assert!(options.apply_text("file_bytes").is_err());
    }
}
