//! RocksDB through its C interface, out of a library found at run time, set up at its best.
//!
//! The report's settings are from 2013 and for 24 processors and 144 GB. What carries over (vector memtable for the bulk
//! load, bloom filters of 10 bits, block sizes, checksums on every read, many background jobs, 64 MB files) is kept in
//! every variant; `report` keeps the rest of it too, and the others use today's defaults where those are better.
//! Buffers and caches are scaled to the memory there is, so that no limit kills it.

mod api;
mod session;
mod setup;
mod transactions;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Session, Variant};
use esker_lab_core::transaction::{Control, TransactionSession};
use esker_lab_core::{Error, Result};

use crate::capi::ErrorSlot;
use crate::common::{Connection, WriteOptions};
use crate::dylib::{DROPIN, Dylib, PEERS};
use api::{Api, TransactionApi};
use transactions::{Apis, TransactionDatabase};

/// The engine.
pub struct RocksDb {
    name: &'static str,
    variants: &'static [Variant],
    made_by: &'static str,
    path: PathBuf,
    /// Lives as long as the process, like the library: an open database outlives the borrow of its engine.
    functions: OnceLock<Result<Functions>>,
}

/// What was found in the library.
#[derive(Clone)]
struct Functions {
    api: &'static Api,
    transactions: Result<&'static TransactionApi>,
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "buffered",
        about: "today's defaults with the report's filters and blocks; files through the page cache",
        default: true,
        control: None,
    },
    Variant {
        name: "direct",
        about: "the same with direct reads, flushes and compactions; most of the memory is block cache",
        default: true,
        control: None,
    },
    Variant {
        name: "blob",
        about: "buffered, values in blob files with garbage collection",
        default: false,
        control: None,
    },
    Variant {
        name: "blob-direct",
        about: "direct, values in blob files with garbage collection",
        default: false,
        control: None,
    },
    Variant {
        name: "report",
        about: "the report's own flags, scaled: level 1 of 10 MB, triggers at 4, 8 and 12 files",
        default: false,
        control: None,
    },
    Variant {
        name: "committed",
        about: "TransactionDB, write committed, 1024 stripes of locks; files as buffered",
        default: true,
        control: Some(Control::Locks),
    },
    Variant {
        name: "committed-direct",
        about: "the same, files as direct",
        default: true,
        control: Some(Control::Locks),
    },
    Variant {
        name: "prepared",
        about: "TransactionDB, write prepared, 1024 stripes; files as buffered",
        default: true,
        control: Some(Control::Locks),
    },
    Variant {
        name: "prepared-direct",
        about: "the same, files as direct",
        default: false,
        control: Some(Control::Locks),
    },
    Variant {
        name: "per-key",
        about: "as committed, with the lock manager that has a queue for each key",
        default: true,
        control: Some(Control::Locks),
    },
    Variant {
        name: "per-key-direct",
        about: "the same, files as direct",
        default: false,
        control: Some(Control::Locks),
    },
    Variant {
        name: "optimistic",
        about: "OptimisticTransactionDB; files as buffered",
        default: true,
        control: Some(Control::Optimistic),
    },
    Variant {
        name: "optimistic-direct",
        about: "the same, files as direct",
        default: true,
        control: Some(Control::Optimistic),
    },
];

const DROPIN_VARIANTS: &[Variant] = &[
    Variant {
        name: "buffered",
        about: "Esker behind RocksDB's interface, told the same as RocksDB; files through the page cache",
        default: true,
        control: None,
    },
    Variant {
        name: "direct",
        about: "the same with direct reads, flushes and compactions; most of the memory is block cache",
        default: true,
        control: None,
    },
];

impl RocksDb {
    /// RocksDB out of the library at `path`, loaded when first used.
    pub fn new(path: &Path) -> Self {
        RocksDb {
            name: "rocksdb",
            variants: VARIANTS,
            made_by: PEERS,
            path: path.to_owned(),
            functions: OnceLock::new(),
        }
    }

    /// Esker behind the same interface, out of the drop-in library at `path`, under the same code as the original.
    pub fn dropin(path: &Path) -> Self {
        RocksDb {
            name: "dropin-rocksdb",
            variants: DROPIN_VARIANTS,
            made_by: DROPIN,
            ..Self::new(path)
        }
    }

    fn functions(&self) -> Result<Functions> {
        self.functions
            .get_or_init(|| {
                let library = Dylib::open(&self.path, self.made_by, &|_| false)?;
                let transactions = TransactionApi::load(&library, "rocksdb_");
                Ok(Functions {
                    api: Box::leak(Box::new(Api::load(&library, "rocksdb_")?)),
                    transactions: transactions.map(|api| Box::leak(Box::new(api)) as &TransactionApi),
                })
            })
            .clone()
    }

    fn api(&self) -> Result<&'static Api> {
        Ok(self.functions()?.api)
    }
}

impl Engine for RocksDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variants(&self) -> &'static [Variant] {
        self.variants
    }

    /// The C interface has no function for it; a database writes it into its options file. A drop-in library has a
    /// property for it.
    fn version(&self) -> Result<String> {
        let dir = std::env::temp_dir().join(format!("esker-lab-version-{}", std::process::id()));
        let io = |e: &std::io::Error| Error::io(dir.display(), e);
        let api = self.api()?;
        std::fs::create_dir_all(&dir).map_err(|e| io(&e))?;
        // SAFETY: options of our own, destroyed once, after the database was closed.
        let opened = unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            let opened = Connection::open(&api.base, options, &dir);
            // A drop-in library says so; the real one does not know the property.
            let opened = opened.map(|connection| connection.property(c"esker.version"));
            (api.options_destroy)(options);
            opened
        };
        let version = std::fs::read_dir(&dir)
            .map_err(|e| io(&e))?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("OPTIONS"))
            .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
            .find_map(|text| {
                text.lines()
                    .find_map(|l| Some(l.trim().strip_prefix("rocksdb_version=")?.to_owned()))
            });
        let _ = std::fs::remove_dir_all(&dir);
        let dropin = opened?;
        if !dropin.is_empty() {
            return Ok(dropin);
        }
        Ok(version.unwrap_or_else(|| "of unknown version".to_owned()))
    }

    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let functions = self.functions()?;
        let api = functions.api;
        let setup = setup::Setup::new(api, variant, settings);
        let mut applied = setup.applied().to_vec();
        let control = self
            .variants
            .iter()
            .find(|v| v.name == variant)
            .and_then(|v| v.control);
        // SAFETY: the options are complete and outlive what is opened (`setup` is dropped after it).
        let (connection, transactions) = unsafe {
            match control.filter(|_| settings.transactions) {
                None => (Connection::open(&api.base, setup.options(), dir)?, None),
                Some(control) => {
                    let apis = Apis {
                        plain: api,
                        transactions: functions.transactions?,
                    };
                    let options = setup.options();
                    let (database, connection) =
                        TransactionDatabase::open(apis, control, variant, options, dir, &mut applied)?;
                    (connection, Some(database))
                }
            }
        };
        Ok(Box::new(Open {
            connection,
            transactions,
            applied,
            writes: Writes::new(api),
            api,
            setup,
        }))
    }
}

/// Write options, one for each durability.
struct Writes {
    none: WriteOptions,
    buffered: WriteOptions,
    sync: WriteOptions,
}

impl Writes {
    fn new(api: &'static Api) -> Self {
        let none = WriteOptions::new(&api.base);
        // SAFETY: options of our own.
        unsafe { (api.writeoptions_disable_WAL)(none.raw(), 1) };
        Writes {
            none,
            buffered: WriteOptions::new(&api.base),
            sync: WriteOptions::sync(&api.base),
        }
    }

    fn get(&self, durability: Durability) -> &WriteOptions {
        match durability {
            Durability::None => &self.none,
            Durability::Buffered => &self.buffered,
            Durability::Sync => &self.sync,
        }
    }
}

/// Fields are dropped in this order: the database before what it was opened with.
struct Open {
    connection: Connection,
    /// What lends the connection, if it is not the database itself.
    transactions: Option<TransactionDatabase>,
    applied: Vec<(String, String)>,
    writes: Writes,
    api: &'static Api,
    setup: setup::Setup,
}

// SAFETY: RocksDB's options may be used from several threads at once ("c.h" says so), and so may all else in it.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Database for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(session::Worker::new(self)))
    }

    fn transactions(&self) -> Result<Box<dyn TransactionSession + '_>> {
        match &self.transactions {
            Some(database) => Ok(database.session(&self.writes)),
            None => Err(Error::unsupported("the database was opened without transactions")),
        }
    }

    fn syncs_per_write(&self) -> Option<f64> {
        let stats = self.stats();
        let line = stats.lines().find(|line| line.starts_with("Cumulative WAL:"))?;
        let (before, _) = line.split_once(" writes per sync")?;
        let writes: f64 = before.rsplit(' ').next()?.parse().ok()?;
        // Without a sync the library divides by one.
        let none = line.contains(" 0 syncs");
        Some(if none || writes <= 0.0 { 0.0 } else { 1.0 / writes })
    }

    fn flush(&self) -> Result<()> {
        let mut error = ErrorSlot::new();
        // SAFETY: flush options of our own, destroyed once; flushing waits by default.
        unsafe {
            let options = (self.api.flushoptions_create)();
            (self.api.flush)(self.connection.raw(), options, error.out());
            (self.api.flushoptions_destroy)(options);
        }
        error.check("flush", self.api.free)
    }

    fn compact_all(&self) -> Result<()> {
        self.connection.compact_all();
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        let busy = [
            c"rocksdb.num-running-compactions",
            c"rocksdb.num-running-flushes",
            c"rocksdb.mem-table-flush-pending",
            c"rocksdb.compaction-pending",
        ];
        Ok(busy
            .iter()
            .all(|name| matches!(self.connection.property(name).as_str(), "0" | "")))
    }

    fn stats(&self) -> String {
        self.connection.property(c"rocksdb.stats")
    }

    fn applied(&self) -> Vec<(String, String)> {
        self.applied.clone()
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}
