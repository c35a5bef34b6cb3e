//! RocksDB through its C interface, out of a library found at run time, set up at its best.
//!
//! The report's settings are from 2013 and for 24 processors and 144 GB. What carries over (vector memtable for the bulk
//! load, bloom filters of 10 bits, block sizes, checksums on every read, many background jobs, 64 MB files) is kept in
//! every variant; `report` keeps the rest of it too, and the others use today's defaults where those are better.
//! Buffers and caches are scaled to the memory there is, so that no limit kills it.

mod api;
mod session;
mod setup;

use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Session, Variant};
use esker_lab_core::{Error, Result};

use crate::capi::{ErrorSlot, c_path};
use crate::dylib::Dylib;
use api::{Api, Ptr};

/// The engine.
pub struct RocksDb {
    path: PathBuf,
    /// Lives as long as the process, like the library: an open database outlives the borrow of its engine.
    api: OnceLock<Result<&'static Api>>,
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "buffered",
        about: "today's defaults with the report's filters and blocks; files through the page cache",
        default: true,
    },
    Variant {
        name: "direct",
        about: "the same with direct reads, flushes and compactions; most of the memory is block cache",
        default: true,
    },
    Variant {
        name: "blob",
        about: "buffered, values in blob files with garbage collection",
        default: false,
    },
    Variant {
        name: "blob-direct",
        about: "direct, values in blob files with garbage collection",
        default: false,
    },
    Variant {
        name: "report",
        about: "the report's own flags, scaled: level 1 of 10 MB, triggers at 4, 8 and 12 files",
        default: false,
    },
];

impl RocksDb {
    /// RocksDB out of the library at `path`, loaded when first used.
    pub fn new(path: &Path) -> Self {
        RocksDb {
            path: path.to_owned(),
            api: OnceLock::new(),
        }
    }

    fn api(&self) -> Result<&'static Api> {
        self.api
            .get_or_init(|| {
                let library = Dylib::open(&self.path, &|_| false)?;
                Ok(Box::leak(Box::new(Api::load(&library)?)) as &Api)
            })
            .clone()
    }
}

impl Engine for RocksDb {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    /// The C interface has no function for it; a database writes it into its options file.
    fn version(&self) -> Result<String> {
        let dir = std::env::temp_dir().join(format!("esker-lab-version-{}", std::process::id()));
        let io = |e: &std::io::Error| Error::io(dir.display(), e);
        let api = self.api()?;
        std::fs::create_dir_all(&dir).map_err(|e| io(&e))?;
        let path = c_path(&dir)?;
        let mut error = ErrorSlot::new();
        // SAFETY: options and database are created, used once and destroyed in the order that the header asks.
        unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            let database = (api.open)(options, path.as_ptr(), error.out());
            if !database.is_null() {
                (api.close)(database);
            }
            (api.options_destroy)(options);
        }
        let opened = error.check("opening", api.free);
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
        opened?;
        Ok(version.unwrap_or_else(|| "of unknown version".to_owned()))
    }

    fn open(&self, dir: &Path, variant: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let api = self.api()?;
        let path = c_path(dir)?;
        let setup = setup::Setup::new(api, variant, settings);
        let mut error = ErrorSlot::new();
        // SAFETY: the options are complete and live until after the database (`setup` is dropped after it).
        let database = unsafe { (api.open)(setup.options(), path.as_ptr(), error.out()) };
        error.check("opening", api.free)?;
        Ok(Box::new(Open {
            database: Handle { api, database },
            writes: Writes::new(api),
            setup,
        }))
    }
}

/// The open database; closes it.
struct Handle {
    api: &'static Api,
    database: Ptr,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened successfully, closed once; sessions borrow the database, so none is left.
        unsafe { (self.api.close)(self.database) };
    }
}

/// Write options, one for each durability.
struct Writes {
    api: &'static Api,
    none: Ptr,
    buffered: Ptr,
    sync: Ptr,
}

impl Writes {
    fn new(api: &'static Api) -> Self {
        // SAFETY: created, configured and, in `drop`, destroyed once.
        unsafe {
            let writes = Writes {
                api,
                none: (api.writeoptions_create)(),
                buffered: (api.writeoptions_create)(),
                sync: (api.writeoptions_create)(),
            };
            (api.writeoptions_disable_WAL)(writes.none, 1);
            (api.writeoptions_set_sync)(writes.sync, 1);
            writes
        }
    }

    fn get(&self, durability: Durability) -> Ptr {
        match durability {
            Durability::None => self.none,
            Durability::Buffered => self.buffered,
            Durability::Sync => self.sync,
        }
    }
}

impl Drop for Writes {
    fn drop(&mut self) {
        for options in [self.none, self.buffered, self.sync] {
            // SAFETY: ours, destroyed once.
            unsafe { (self.api.writeoptions_destroy)(options) };
        }
    }
}

/// Fields are dropped in this order: the database before what it was opened with.
struct Open {
    database: Handle,
    writes: Writes,
    setup: setup::Setup,
}

// SAFETY: RocksDB's database and its options may be used from several threads at once ("c.h" and "db.h" say so);
// everything else is made a session.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Open {
    fn property(&self, name: &CStr) -> String {
        let api = self.database.api;
        // SAFETY: the database is open; the returned string is null or NUL-terminated and ours to free.
        unsafe {
            let value: *mut c_char = (api.property_value)(self.database.database, name.as_ptr());
            if value.is_null() {
                return String::new();
            }
            let text = CStr::from_ptr(value).to_string_lossy().into_owned();
            (api.free)(value.cast::<c_void>());
            text
        }
    }
}

impl Database for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(session::Worker::new(self)))
    }

    fn flush(&self) -> Result<()> {
        let api = self.database.api;
        let mut error = ErrorSlot::new();
        // SAFETY: flush options of our own, destroyed once; flushing waits by default.
        unsafe {
            let options = (api.flushoptions_create)();
            (api.flush)(self.database.database, options, error.out());
            (api.flushoptions_destroy)(options);
        }
        error.check("flush", api.free)
    }

    fn compact_all(&self) -> Result<()> {
        // SAFETY: null keys mean before the first and after the last.
        unsafe {
            (self.database.api.compact_range)(
                self.database.database,
                std::ptr::null(),
                0,
                std::ptr::null(),
                0,
            );
        }
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
            .all(|name| matches!(self.property(name).as_str(), "0" | "")))
    }

    fn stats(&self) -> String {
        self.property(c"rocksdb.stats")
    }

    fn applied(&self) -> Vec<(String, String)> {
        self.setup.applied().to_vec()
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}
