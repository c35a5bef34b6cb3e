//! The properties block: what a table says about itself, as sorted pairs of name and value.
//!
//! `(slice name, slice value) ...`. Numbers are varints. Names that this version does not know are kept out of the
//! way of those it does: they are read over. Names of the user's own properties begin with `user.`.

use std::collections::BTreeMap;

use super::write_times::WriteTimes;
use crate::codec::{put_slice, put_varint, take_slice, take_u64, take_varint};
use crate::options::PrefixExtractor;

const USER: &[u8] = b"user.";

/// Which column family a table was written for, and what that says of the log: all that is needed to find a table's place
/// again when the manifest is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFamily {
    /// The family's id.
    pub id: u32,
    /// The family's name.
    pub name: String,
    /// With this table all rows that the family has in WAL segments of smaller numbers are in tables.
    pub log_number: u64,
    /// The family's files from outside when this table was begun: so a table that does not name one of them is older than it.
    pub outside: Vec<OutsideFiles>,
}

/// Files of a column family that were not written for it, but ingested, or imported with it: those with numbers from `first` to
/// `last` in their names, as far as there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutsideFiles {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
    /// The database id that the files have.
    pub database_id: u64,
    /// What is added to sequence numbers in them.
    pub sequence_shift: u64,
}

impl OutsideFiles {
    /// As many of them as a table names at most: the newest. They take 5 KiB.
    pub const NAMED_MAX: usize = 256;

    fn encode(files: &[Self]) -> Vec<u8> {
        let mut value = Vec::new();
        for part in &files[files.len().saturating_sub(Self::NAMED_MAX)..] {
            put_varint(&mut value, part.first);
            put_varint(&mut value, part.last.saturating_sub(part.first));
            value.extend_from_slice(&part.database_id.to_le_bytes());
            put_varint(&mut value, part.sequence_shift);
        }
        value
    }

    fn decode(mut value: &[u8]) -> Option<Vec<Self>> {
        let mut files = Vec::new();
        while !value.is_empty() {
            let first = take_varint(&mut value)?;
            files.push(Self {
                first,
                last: first.checked_add(take_varint(&mut value)?)?,
                database_id: take_u64(&mut value)?,
                sequence_shift: take_varint(&mut value)?,
            });
        }
        Some(files)
    }
}

impl TableFamily {
    fn encode(&self) -> Vec<u8> {
        let mut value = Vec::new();
        put_varint(&mut value, u64::from(self.id));
        put_varint(&mut value, self.log_number);
        value.extend_from_slice(self.name.as_bytes());
        value
    }

    fn decode(mut value: &[u8]) -> Option<Self> {
        Some(Self {
            id: u32::try_from(take_varint(&mut value)?).ok()?,
            log_number: take_varint(&mut value)?,
            name: String::from_utf8(value.to_vec()).ok()?,
            outside: Vec::new(),
        })
    }
}

/// What a table says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableProperties {
    /// Point entries, deletions and merges included.
    pub entries: u64,
    /// Deletions and single deletions.
    pub deletions: u64,
    /// Merge operands.
    pub merges: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// Bytes of all internal keys.
    pub raw_key_bytes: u64,
    /// Bytes of all values.
    pub raw_value_bytes: u64,
    /// The oldest entry or range tombstone; 0 if there is none.
    pub sequence_min: u64,
    /// The newest entry or range tombstone; 0 if there is none.
    pub sequence_max: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Stored bytes of data blocks, trailers included.
    pub data_bytes: u64,
    /// Stored bytes of index blocks of both levels, trailers included.
    pub index_bytes: u64,
    /// Stored bytes of filter blocks and their index, trailers included.
    pub filter_bytes: u64,
    /// When the table was written, in seconds since 1970 UTC.
    pub creation_unix_seconds: u64,
    /// Name of the order of keys.
    pub comparator: String,
    /// Whether the filter holds whole keys.
    pub whole_key_filter: bool,
    /// The prefixes that the filter holds.
    pub prefix_extractor: Option<PrefixExtractor>,
    /// What is known about when its rows were written, where they expire.
    pub write_times: WriteTimes,
    /// The column family that it was written for; `None` of one that was made outside of any database.
    pub family: Option<TableFamily>,
    /// The user's own.
    pub user: BTreeMap<Vec<u8>, Vec<u8>>,
}

macro_rules! numbers {
    ($($name:ident)*) => {
        impl TableProperties {
            fn numbers(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }

            fn set_number(&mut self, name: &[u8], value: u64) {
                $(if name == stringify!($name).as_bytes() { self.$name = value; })*
            }
        }
    };
}

numbers! {
    entries deletions merges range_tombstones raw_key_bytes raw_value_bytes sequence_min sequence_max data_blocks
    data_bytes index_bytes filter_bytes creation_unix_seconds
}

impl TableProperties {
    /// Appends the block.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut pairs = BTreeMap::new();
        for (name, number) in self.numbers() {
            let mut value = Vec::new();
            put_varint(&mut value, number);
            pairs.insert(name.as_bytes().to_vec(), value);
        }
        pairs.insert(b"comparator".to_vec(), self.comparator.as_bytes().to_vec());
        pairs.insert(
            b"whole_key_filter".to_vec(),
            vec![u8::from(self.whole_key_filter)],
        );
        if let Some(extractor) = self.prefix_extractor {
            let (kind, len) = match extractor {
                PrefixExtractor::Fixed(len) => (0, len),
                PrefixExtractor::Capped(len) => (1, len),
            };
            let mut value = vec![kind];
            put_varint(&mut value, len as u64);
            pairs.insert(b"prefix_extractor".to_vec(), value);
        }
        if !self.write_times.is_empty() {
            let mut value = Vec::new();
            self.write_times.encode(&mut value);
            pairs.insert(b"write_times".to_vec(), value);
        }
        if let Some(family) = &self.family {
            pairs.insert(b"column_family".to_vec(), family.encode());
            if !family.outside.is_empty() {
                pairs.insert(b"outside_files".to_vec(), OutsideFiles::encode(&family.outside));
            }
        }
        for (name, value) in &self.user {
            pairs.insert([USER, name].concat(), value.clone());
        }
        for (name, value) in &pairs {
            put_slice(out, name);
            put_slice(out, value);
        }
    }

    /// Reads the block; `None` if it is not one.
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        let mut properties = Self::default();
        while !input.is_empty() {
            let name = take_slice(input)?;
            let value = take_slice(input)?;
            if let Some(name) = name.strip_prefix(USER) {
                properties.user.insert(name.to_vec(), value.to_vec());
                continue;
            }
            match name {
                b"comparator" => properties.comparator = String::from_utf8(value.to_vec()).ok()?,
                b"whole_key_filter" => properties.whole_key_filter = value.first()? != &0,
                b"column_family" => properties.family = Some(TableFamily::decode(value)?),
                b"outside_files" => {
                    let family = properties.family.get_or_insert_default();
                    family.outside = OutsideFiles::decode(value)?;
                }
                b"write_times" => properties.write_times = WriteTimes::decode(value)?,
                b"prefix_extractor" => {
                    let (kind, mut len) = value.split_first()?;
                    let len = usize::try_from(take_varint(&mut len)?).ok()?;
                    properties.prefix_extractor = match kind {
                        0 => Some(PrefixExtractor::Fixed(len)),
                        1 => Some(PrefixExtractor::Capped(len)),
                        _ => None,
                    };
                }
                _ => {
                    let mut rest = value;
                    if let Some(number) = take_varint(&mut rest).filter(|_| rest.is_empty()) {
                        properties.set_number(name, number);
                    }
                }
            }
        }
        Some(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn properties_come_back(
            numbers: [u64; 13],
            comparator: String,
            whole_key_filter: bool,
            extractor in prop::option::of((any::<bool>(), 0_usize..100)),
            user: BTreeMap<Vec<u8>, Vec<u8>>,
            times: Vec<(u64, u64)>,
            family in prop::option::of((any::<u32>(), any::<u64>(), any::<String>())),
            outside: Vec<(u32, u32, u64, u64)>,
        ) {
            let mut properties = TableProperties {
                comparator,
                whole_key_filter,
                prefix_extractor: extractor.map(|(fixed, len)| match fixed {
                    true => PrefixExtractor::Fixed(len),
                    false => PrefixExtractor::Capped(len),
                }),
                user,
                write_times: WriteTimes::new(times),
                family: family.map(|(id, log_number, name)| TableFamily {
                    id,
                    name,
                    log_number,
                    outside: outside
                        .into_iter()
                        .map(|(first, more, database_id, sequence_shift)| OutsideFiles {
                            first: first.into(),
                            last: u64::from(first) + u64::from(more),
                            database_id,
                            sequence_shift,
                        })
                        .collect(),
                }),
                ..TableProperties::default()
            };
            let names: Vec<_> = properties.numbers().iter().map(|(name, _)| *name).collect();
            for (name, number) in names.iter().zip(numbers) {
                properties.set_number(name.as_bytes(), number);
            }
            prop_assert_eq!(properties.numbers().iter().map(|(_, n)| *n).collect::<Vec<_>>(), numbers.to_vec());
            let mut out = Vec::new();
            properties.encode(&mut out);
            // A property of a later version is read over.
            put_slice(&mut out, b"zzz_future");
            put_slice(&mut out, b"\xff\xff");
            prop_assert_eq!(TableProperties::decode(&out), Some(properties));
        }

        #[test]
        fn any_bytes_are_refused_or_read_without_a_panic(bytes: Vec<u8>) {
            let _ = TableProperties::decode(&bytes);
        }
    }
}
