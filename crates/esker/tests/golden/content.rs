//! What a golden database holds: every feature of the format, in SSTables of two levels, in blob files and in the WAL.
//!
//! The writer is deterministic: a simulated machine, no compaction but those asked for, one family flushed at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use esker::{
    AppendOperator, ColumnFamily, ColumnFamilyOptions, CompactionStyle, Compression, Db, KeyOrder,
    MemtableKind, Opener, Options, PrefixExtractor, ReverseBytewiseComparator, U64AddOperator, WriteBatch,
};
use esker_env::Env;

use crate::expected::Expected;
use crate::later;

/// The first families, in the order of their creation; `later` makes more, and one is made and dropped.
pub const FAMILIES: [&str; 6] = ["default", "counters", "lists", "reverse", "large", "inline"];

pub fn settings(compression: Compression) -> ColumnFamilyOptions {
    ColumnFamilyOptions {
        compression_per_level: vec![compression],
        compaction_style: CompactionStyle::Manual,
        ..ColumnFamilyOptions::default()
    }
}

fn options_of(name: &str) -> ColumnFamilyOptions {
    match name {
        "counters" => ColumnFamilyOptions {
            merge_operator: Some(Arc::new(U64AddOperator)),
            filter_bits_per_key: 0,
            ..settings(Compression::Snappy)
        },
        "lists" => ColumnFamilyOptions {
            merge_operator: Some(Arc::new(AppendOperator::default())),
            prefix_extractor: Some(PrefixExtractor::Capped(4)),
            whole_key_filter: false,
            blob_compression: Compression::Zlib,
            ..settings(Compression::Zlib)
        },
        "reverse" => own_order().1,
        // So many small blocks that the index has partitions.
        "large" => ColumnFamilyOptions {
            block_bytes: 512,
            memtable_kind: MemtableKind::Vector,
            blob_compression: Compression::Zstd,
            ..settings(Compression::Zstd)
        },
        // Values of any length stay in the tables.
        "inline" => ColumnFamilyOptions {
            blob_value_bytes_min: 0,
            ..settings(Compression::Snappy)
        },
        _ => ColumnFamilyOptions {
            prefix_extractor: Some(PrefixExtractor::Fixed(3)),
            ..settings(Compression::None)
        },
    }
}

/// The family that needs its order given at each open.
pub fn own_order() -> (&'static str, ColumnFamilyOptions) {
    let options = ColumnFamilyOptions {
        key_order: KeyOrder::Custom(Arc::new(ReverseBytewiseComparator)),
        blob_compression: Compression::Lz4,
        ..settings(Compression::Lz4)
    };
    ("reverse", options)
}

/// Bytes that don't compress.
fn noise(seed: u64, len: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// The database that is being written, and an oracle of its rows.
pub struct Content {
    pub db: Db,
    pub families: BTreeMap<&'static str, ColumnFamily>,
    rows: BTreeMap<&'static str, BTreeMap<Vec<u8>, Vec<u8>>>,
    batch: WriteBatch,
}

impl Content {
    /// Writes the database; gives what it must hold.
    pub fn write(env: Env, dir: &Path) -> Expected {
        let options = Options {
            memory_budget_bytes: 64 << 20,
            compaction_threads: 1,
            subcompactions_max: 1,
            wal_segment_bytes: 64 << 10,
            wal_memory_bytes: 0,
            default_column_family: options_of("default"),
            ..Options::default()
        };
        let opener = Opener::new(options).env(env.clone());
        let db = opener.open(dir).expect("a new database");
        let families = BTreeMap::from([("default", db.default_column_family())]);
        let mut content = Self {
            db,
            families,
            rows: BTreeMap::new(),
            batch: WriteBatch::new(),
        };
        for name in &FAMILIES[1..] {
            content.create(name, options_of(name));
        }
        content.write_all(&env);
        content.db.close().expect("closed");
        let changed = content.families[later::GETS_OPERATOR.0].id();
        later::change_operator(&*env.fs, dir, changed);
        Expected::new(content.rows.iter().map(|(name, rows)| (*name, rows)))
    }

    fn write_all(&mut self, env: &Env) {
        self.round(0);
        self.flush();
        let snapshot = self.db.snapshot();
        self.round(1);
        self.flush();
        // The snapshot keeps older versions and range tombstones alive in the lower level.
        for name in FAMILIES {
            let family = &self.families[name];
            self.db.compact_range_cf(family, None, None).expect("compacted");
        }
        drop(snapshot);
        self.round(2);
        self.flush();
        let gone = self
            .db
            .create_column_family("gone", ColumnFamilyOptions::default())
            .expect("a new family");
        self.db.put_cf(&gone, b"key", b"value").expect("written");
        self.db.drop_column_family(&gone).expect("dropped");
        let changed = [("memtable_bytes", "1MiB")];
        self.db
            .set_family_options(&self.families["counters"], &changed)
            .expect("changed");
        later::tables(self, env);
        // Only the WAL has what follows.
        self.round(3);
        later::steps(self);
        self.db.sync_wal().expect("synced");
    }

    fn flush(&self) {
        FAMILIES.into_iter().for_each(|name| self.flush_family(name));
    }

    pub fn flush_family(&self, name: &str) {
        self.db.flush_cf(&self.families[name]).expect("flushed");
    }

    pub fn create(&mut self, name: &'static str, options: ColumnFamilyOptions) {
        let family = self.db.create_column_family(name, options);
        self.families.insert(name, family.expect("a new family"));
    }

    /// One batch over all families after the other; rounds overwrite, merge into and delete parts of those before.
    fn round(&mut self, round: u32) {
        for i in 0..120 {
            let key = format!("key{:03}", (i * 7 + round * 31) % 300);
            self.put(
                "default",
                key.as_bytes(),
                format!("value {i} of round {round}").as_bytes(),
            );
            self.put(
                "reverse",
                key.as_bytes(),
                format!("{round}/{i}").repeat(9).as_bytes(),
            );
            self.add(
                "counters",
                format!("counter{:02}", i % 40).as_bytes(),
                u64::from(i + round),
            );
            self.append(
                "lists",
                format!("list{:02}", i % 30).as_bytes(),
                format!("{round}.{i},").as_bytes(),
            );
            if i % 10 == 9 {
                self.commit();
            }
        }
        for i in 0..20 {
            // Put in even rounds, deleted in odd ones: never twice in between.
            let key = format!("single{:03}", i + 20 * (round / 2));
            if round.is_multiple_of(2) {
                self.put("default", key.as_bytes(), b"once");
            } else if i < 15 {
                self.single_delete("default", key.as_bytes());
            }
        }
        for i in (0..300).skip(round as usize).step_by(11) {
            self.delete("reverse", format!("key{i:03}").as_bytes());
        }
        let start = 40 * round;
        let (from, to) = (format!("key{start:03}"), format!("key{:03}", start + 30));
        self.delete_range("default", from.as_bytes(), to.as_bytes());
        // In the order of its family the later key comes first.
        self.delete_range("reverse", to.as_bytes(), from.as_bytes());
        self.delete_range("counters", b"counter30", b"counter35");
        self.put("default", b"", b"the empty key");
        self.put("default", &[0xff; 300], b"");
        self.commit();
        self.large_values(round);
        let large = if round == 0 { 1500 } else { 50 };
        for i in 0..large {
            let value = format!("row {i} of round {round}; ").repeat(24);
            self.put(
                "large",
                format!("row{:05}", i * 3 + round).as_bytes(),
                value.as_bytes(),
            );
            if i % 100 == 99 {
                self.commit();
            }
        }
        self.commit();
    }

    /// Values on both sides of the length from which they lie in blob files; later rounds make garbage of some.
    fn large_values(&mut self, round: u32) {
        for i in 0..12_u32 {
            let key = format!("value{:02}", i * 5 % 12 + 3 * round);
            // Compressible, and about as long as in the table or not.
            let text = format!("{round}:{i}, ").repeat(100 + 20 * i as usize);
            for name in ["default", "reverse", "large", "inline"] {
                self.put(name, key.as_bytes(), text.as_bytes());
            }
        }
        for (key, len) in [("511", 511), ("512", 512), ("513", 513), ("long", 5000)] {
            let noise = noise(u64::from(round) << 32 | len, len);
            for name in ["default", "large", "inline"] {
                self.put(name, format!("noise-{key}").as_bytes(), &noise);
            }
        }
        self.delete("default", format!("value{:02}", 3 * round).as_bytes());
        self.delete_range("large", b"value04", format!("value{:02}", 5 + round).as_bytes());
        // What is merged into may lie in a blob file, and so may what comes of it.
        if round.is_multiple_of(2) {
            self.put("lists", b"long", &b"item,".repeat(150));
        }
        self.append("lists", b"long", format!("item of round {round},").as_bytes());
        self.commit();
    }

    pub fn commit(&mut self) {
        self.db.write(&mut self.batch).expect("written");
    }

    fn rows_of(&mut self, name: &'static str) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        self.rows.entry(name).or_default()
    }

    pub fn put(&mut self, name: &'static str, key: &[u8], value: &[u8]) {
        let batched = self.batch.put_cf(&self.families[name], key, value);
        batched.expect("within the limits");
        self.note(name, key, value);
    }

    /// A row that comes in another way.
    pub fn note(&mut self, name: &'static str, key: &[u8], value: &[u8]) {
        self.rows_of(name).insert(key.to_vec(), value.to_vec());
    }

    pub fn delete(&mut self, name: &'static str, key: &[u8]) {
        let batched = self.batch.delete_cf(&self.families[name], key);
        batched.expect("within the limits");
        self.rows_of(name).remove(key);
    }

    fn single_delete(&mut self, name: &'static str, key: &[u8]) {
        let batched = self.batch.single_delete_cf(&self.families[name], key);
        batched.expect("within the limits");
        self.rows_of(name).remove(key);
    }

    fn delete_range(&mut self, name: &'static str, start: &[u8], end: &[u8]) {
        let batched = self.batch.delete_range_cf(&self.families[name], start, end);
        batched.expect("within the limits");
        let order = options_of(name).key_order;
        self.rows_of(name)
            .retain(|key, _| order.compare(key, start).is_lt() || order.compare(key, end).is_ge());
    }

    fn add(&mut self, name: &'static str, key: &[u8], number: u64) {
        let batched = self
            .batch
            .merge_cf(&self.families[name], key, &number.to_le_bytes());
        batched.expect("within the limits");
        let value = self
            .rows_of(name)
            .entry(key.to_vec())
            .or_insert_with(|| vec![0; 8]);
        let old = u64::from_le_bytes(value.as_slice().try_into().expect("eight bytes"));
        *value = (old + number).to_le_bytes().to_vec();
    }

    fn append(&mut self, name: &'static str, key: &[u8], part: &[u8]) {
        let batched = self.batch.merge_cf(&self.families[name], key, part);
        batched.expect("within the limits");
        self.rows_of(name)
            .entry(key.to_vec())
            .or_default()
            .extend_from_slice(part);
    }
}
