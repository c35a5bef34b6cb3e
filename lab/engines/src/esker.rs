//! Esker, linked into the lab: the engine's own interface, without a C layer between.

mod transactions;

use std::path::Path;

use esker::{
    ColumnFamilyOptions, CompactionStyle, Compression as Blocks, Db, IoMode, MemtableKind, MergeOperator,
    Options, ReadOptions, WriteBatch, WriteOptions,
};
use esker_lab_core::engine::{
    Compression, Database, Durability, Engine, OpenSettings, Profile, Session, Start, Variant,
};
use esker_lab_core::transaction::{Control, TransactionSession};
use esker_lab_core::{Error, Result, size};
use std::sync::Arc;

use transactions::Transactions;

const MIB: u64 = 1 << 20;

/// The engine.
pub struct Esker;

const VARIANTS: &[Variant] = &[
    Variant {
        name: "default",
        about: "files by direct I/O; one memory budget for memtables, block cache, indexes and filters",
        default: true,
        control: None,
    },
    Variant {
        name: "buffered",
        about: "the same with files through the page cache",
        default: false,
        control: None,
    },
    Variant {
        name: "newlog",
        about: "the default with each log segment a new file, none kept in memory",
        default: false,
        control: None,
    },
    Variant {
        name: "inline",
        about: "the default with all values in tables, none in blob files",
        default: false,
        control: None,
    },
    Variant {
        name: "separated",
        about: "the default with all values of 32 bytes and more in blob files",
        default: false,
        control: None,
    },
    Variant {
        name: "locks",
        about: "transactions with locks over the default",
        default: true,
        control: Some(Control::Locks),
    },
    Variant {
        name: "optimistic",
        about: "optimistic transactions over the default",
        default: true,
        control: Some(Control::Optimistic),
    },
    Variant {
        name: "locks-buffered",
        about: "transactions with locks; files through the page cache",
        default: false,
        control: Some(Control::Locks),
    },
    Variant {
        name: "optimistic-buffered",
        about: "optimistic transactions; files through the page cache",
        default: false,
        control: Some(Control::Optimistic),
    },
];

/// Whether files go through the page cache.
fn is_buffered(variant: &str) -> bool {
    variant.ends_with("buffered")
}

impl Engine for Esker {
    fn name(&self) -> &'static str {
        "esker"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        Ok(esker::VERSION.to_owned())
    }

    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let options = options(variant, settings);
        let mut applied = applied(&options);
        let db = Db::open(dir, options).map_err(|error| failed("opening", &error))?;
        let control = VARIANTS
            .iter()
            .find(|v| v.name == variant)
            .and_then(|v| v.control);
        let transactions = control
            .filter(|_| settings.transactions)
            .map(|control| Transactions::new(&db, control, &mut applied))
            .transpose()?;
        Ok(Box::new(Open {
            db,
            transactions,
            applied,
        }))
    }
}

fn failed(what: &str, error: &esker::Error) -> Error {
    Error::engine(format!("{what}: {error}"))
}

/// The engine's settings for a profile. Memtables get the same part of the memory as the peers' write buffers; what the
/// budget leaves out is for the buffers of background jobs.
fn options(variant: &str, settings: &OpenSettings) -> Options {
    let io = if is_buffered(variant) {
        IoMode::Buffered
    } else {
        IoMode::Direct
    };
    let (share, memtables) = match settings.profile {
        Profile::BulkRandom => (8, 4),
        Profile::BulkSequential | Profile::Write => (16, 3),
        Profile::Mixed => (32, 3),
        Profile::Read => (32, 2),
    };
    let memtable_bytes = (settings.memory_bytes / share).clamp(MIB, 256 * MIB);
    let budget = match settings.profile {
        // The page cache needs room too.
        _ if is_buffered(variant) => settings.memory_bytes / 2,
        Profile::Read => settings.memory_bytes * 3 / 4,
        // All rows are to be in memory; what jobs and the allocator take beside it is a tenth there.
        Profile::Mixed if settings.transactions => settings.memory_bytes / 16 * 11,
        // Jobs have buffers beside the budget, and the allocator keeps more than is in use while it changes hands: most
        // where one writes as fast as it can.
        Profile::Write => settings.memory_bytes / 2,
        _ => settings.memory_bytes * 5 / 8,
    };
    let bulk = settings.profile == Profile::BulkRandom;
    let wal_segments = match (variant, settings.profile) {
        ("newlog", _) => 0,
        (_, Profile::Write | Profile::Mixed) => 4,
        _ => 0,
    };
    let (upper, rest) = settings.compression.levels(settings.profile);
    let family = ColumnFamilyOptions {
        merge_operator: settings
            .merge_operator
            .then(|| Arc::new(LastOperand) as Arc<dyn MergeOperator>),
        memtable_kind: if bulk {
            MemtableKind::Vector
        } else {
            MemtableKind::Ordered
        },
        memtable_bytes,
        memtables_max: memtables,
        block_bytes: settings.block_bytes,
        compression_per_level: vec![blocks(upper), blocks(upper), blocks(rest)],
        compaction_style: if bulk {
            CompactionStyle::Manual
        } else {
            CompactionStyle::Leveled
        },
        level_base_bytes: (memtable_bytes * 4).clamp(16 * MIB, 512 * MIB),
        blob_value_bytes_min: match variant {
            "inline" => 0,
            "separated" => 32,
            _ => ColumnFamilyOptions::default().blob_value_bytes_min,
        },
        ..ColumnFamilyOptions::default()
    };
    Options {
        memory_budget_bytes: budget.max(16 * MIB),
        wal_segment_bytes: memtable_bytes,
        wal_memory_bytes: memtable_bytes * wal_segments,
        memtables_bytes_max: (memtable_bytes * memtables as u64).min(budget.max(16 * MIB)),
        background_io: io,
        read_io: io,
        default_column_family: family,
        ..Options::default()
    }
}

fn applied(options: &Options) -> Vec<(String, String)> {
    let bytes = |value: u64| size::display(value as f64);
    let mut applied = vec![
        (
            "memory_budget_bytes".to_owned(),
            bytes(options.memory_budget_bytes),
        ),
        (
            "memtables_bytes_max".to_owned(),
            bytes(options.memtables_bytes_max),
        ),
        (
            "background_io".to_owned(),
            format!("{:?}", options.background_io).to_lowercase(),
        ),
        (
            "read_io".to_owned(),
            format!("{:?}", options.read_io).to_lowercase(),
        ),
        (
            "subcompactions_max".to_owned(),
            options.subcompactions_max.to_string(),
        ),
    ];
    let text = options.default_column_family.to_text();
    let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    applied.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    applied
}

fn blocks(compression: Compression) -> Blocks {
    match compression {
        Compression::None | Compression::Report => Blocks::None,
        Compression::Lz4 => Blocks::Lz4,
        Compression::Zstd => Blocks::Zstd,
        Compression::Zlib => Blocks::Zlib,
    }
}

/// The last operand is the value.
struct LastOperand;

impl MergeOperator for LastOperand {
    fn name(&self) -> &str {
        "lab.last-operand"
    }

    fn full_merge(&self, _: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> esker::Result<Vec<u8>> {
        Ok(operands.last().copied().or(base).unwrap_or_default().to_vec())
    }

    fn partial_merge(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        operands.last().map(|operand| operand.to_vec())
    }
}

struct Open {
    db: Db,
    transactions: Option<Transactions>,
    applied: Vec<(String, String)>,
}

impl Database for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Work {
            db: &self.db,
            batch: WriteBatch::new(),
        }))
    }

    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        match &self.transactions {
            Some(transactions) => Ok(transactions.session(self.db.default_column_family())),
            None => Err(Error::unsupported("the database was opened without transactions")),
        }
    }

    /// The engine counts rows, not writes: exact where each write has one.
    fn syncs_per_write(&self) -> Option<f64> {
        let stats = self.db.stats();
        let count = |name| {
            stats
                .counters
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, count)| *count)
        };
        let (syncs, writes) = (count("wal_syncs")?, count("writes")?);
        (writes > 0).then(|| syncs as f64 / writes as f64)
    }

    fn flush(&self) -> Result<()> {
        self.db.flush().map_err(|error| failed("flush", &error))
    }

    fn compact_all(&self) -> Result<()> {
        self.db
            .compact_range(None, None)
            .map_err(|error| failed("compact", &error))
    }

    fn is_idle(&self) -> Result<bool> {
        self.db.is_idle().map_err(|error| failed("waiting", &error))
    }

    fn stats(&self) -> String {
        self.db.stats().to_string()
    }

    fn applied(&self) -> Vec<(String, String)> {
        self.applied.clone()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(|error| failed("close", &error))
    }
}

struct Work<'a> {
    db: &'a Db,
    batch: WriteBatch,
}

fn durable(durability: Durability) -> WriteOptions {
    WriteOptions::durability(match durability {
        Durability::None => esker::Durability::None,
        Durability::Buffered => esker::Durability::Buffered,
        Durability::Sync => esker::Durability::Sync,
    })
}

impl Session for Work<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.db
            .put_with(key, value, &durable(durability))
            .map_err(|error| failed("put", &error))
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        self.batch.clear();
        for (key, value) in rows {
            self.batch
                .put(key, value)
                .map_err(|error| failed("put", &error))?;
        }
        self.db
            .write_with(&mut self.batch, &durable(durability))
            .map_err(|error| failed("write", &error))
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.db.get(key).map_err(|error| failed("get", &error))? {
            Some(value) => {
                found(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        self.batch.clear();
        self.batch.delete(key).map_err(|error| failed("delete", &error))?;
        self.db
            .write_with(&mut self.batch, &durable(durability))
            .map_err(|error| failed("delete", &error))
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], durability: Durability) -> Result<()> {
        self.batch.clear();
        self.batch
            .merge(key, operand)
            .map_err(|error| failed("merge", &error))?;
        self.db
            .write_with(&mut self.batch, &durable(durability))
            .map_err(|error| failed("merge", &error))
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let error = |error: esker::Error| failed("scan", &error);
        let mut iter = self.db.iter(ReadOptions::default()).map_err(error)?;
        match start {
            Start::First => iter.seek_to_first(),
            Start::Last => iter.seek_to_last(),
            Start::At(key) => iter.seek(key),
        }
        .map_err(error)?;
        let backward = start == Start::Last;
        while iter.valid() {
            if !row(iter.key(), iter.value()) {
                return Ok(());
            }
            if backward { iter.prev() } else { iter.next() }.map_err(error)?;
        }
        Ok(())
    }
}
