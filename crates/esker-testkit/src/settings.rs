//! Random settings of databases and families, as small as they may be, so that little data goes through every path.

use std::sync::Arc;

use esker::{
    Aging, AppendOperator, ColumnFamilyOptions, CompactionStyle, Compression, Hooks, IoMode, KeyOrder,
    MemtableKind, Options, PrefixExtractor, ReverseBytewiseComparator, U64AddOperator,
};

use crate::oracle::{Family, Merge, Order};
use crate::random::Rng;

/// A family's settings, and what the model has to know of them.
#[derive(Clone, Debug)]
pub struct FamilySettings {
    /// For the engine.
    pub options: ColumnFamilyOptions,
    order: Order,
    /// How it merges.
    pub merge: Merge,
}

impl FamilySettings {
    /// The settings of this number.
    pub fn random(number: u64) -> Self {
        let mut rng = Rng::new(number);
        let order = if rng.one_in(4) {
            Order::Reverse
        } else {
            Order::Bytewise
        };
        let merge = rng.pick(&[Merge::None, Merge::Append, Merge::Append, Merge::Add]);
        let compressions = (0..=4).filter_map(Compression::from_u8).collect::<Vec<_>>();
        let options = ColumnFamilyOptions {
            key_order: match order {
                Order::Bytewise => KeyOrder::Bytewise,
                Order::Reverse => KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
            },
            merge_operator: match merge {
                Merge::None => None,
                Merge::Append => Some(Arc::new(AppendOperator::default())),
                Merge::Add => Some(Arc::new(U64AddOperator)),
            },
            memtable_kind: rng.pick(&[MemtableKind::Ordered, MemtableKind::Ordered, MemtableKind::Vector]),
            memtable_bytes: 16 << 10,
            memtables_max: 2 + rng.below(3),
            prefix_extractor: rng.pick(&[
                None,
                Some(PrefixExtractor::Fixed(2)),
                Some(PrefixExtractor::Capped(3)),
            ]),
            whole_key_filter: !rng.one_in(4),
            filter_bits_per_key: rng.pick(&[0, 2, 10, 32]),
            block_bytes: rng.pick(&[512, 1024, 4096]),
            compression_per_level: (0..1 + rng.below(3)).map(|_| rng.pick(&compressions)).collect(),
            compaction_style: if rng.one_in(6) {
                CompactionStyle::Manual
            } else {
                CompactionStyle::Leveled
            },
            level0_compaction_trigger: 1 + rng.below(4),
            level0_files_max: 4 + rng.below(20),
            level_base_bytes: 64 << 10,
            level_size_multiplier: 2 + rng.below(9) as u32,
            levels: 2 + rng.below(6),
            file_bytes: 16 << 10,
            blob_value_bytes_min: rng.pick(&[0, 0, 1, 8, 30]),
            blob_compression: rng.pick(&compressions),
            blob_space_percent: rng.pick(&[110, 150, 1000]),
            aging: rng.pick(&[Aging::None, Aging::None, Aging::Rewrite(60)]),
            hooks: Hooks::default(),
        };
        Self {
            options,
            order,
            merge,
        }
    }

    /// The model's family.
    pub fn model(&self) -> Family {
        Family::new(self.order, self.merge)
    }

    /// Changes that may be made while it is open: name and value.
    pub fn change(&mut self, number: u64) -> (&'static str, String) {
        let mut rng = Rng::new(number);
        let options = &mut self.options;
        let (name, value) = match rng.below(9) {
            0 => ("filter_bits_per_key", rng.pick(&[0, 5, 10]).to_string()),
            1 => ("block_bytes", rng.pick(&[512, 2048]).to_string()),
            2 => ("compaction_style", rng.pick(&["leveled", "manual"]).to_owned()),
            3 => ("level0_compaction_trigger", (1 + rng.below(4)).to_string()),
            4 => ("level_size_multiplier", (2 + rng.below(9)).to_string()),
            5 => ("memtables_max", (2 + rng.below(3)).to_string()),
            6 => ("blob_value_bytes_min", rng.pick(&[0, 1, 10, 40]).to_string()),
            7 => ("blob_space_percent", rng.pick(&[110, 200]).to_string()),
            _ => ("file_bytes", rng.pick(&["16KiB", "32KiB"]).to_owned()),
        };
        if let Err(error) = options.set(name, &value) {
            panic!("{error}");
        }
        (name, value)
    }
}

/// The database settings of this number.
pub fn database(number: u64, default: &FamilySettings) -> Options {
    let mut rng = Rng::new(number);
    Options {
        memory_budget_bytes: 4 << 20,
        wal_segment_bytes: 64 << 10,
        wal_memory_bytes: rng.below(4) as u64 * (64 << 10),
        compaction_threads: 1 + rng.below(3),
        subcompactions_max: 1 + rng.below(4),
        open_files_max: 16 + rng.below(100),
        background_io: rng.pick(&[IoMode::Buffered, IoMode::Direct]),
        read_io: rng.pick(&[IoMode::Buffered, IoMode::Direct]),
        default_column_family: default.options.clone(),
        ..Options::default()
    }
}
