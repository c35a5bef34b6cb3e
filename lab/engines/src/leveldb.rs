//! LevelDB through its C interface, out of a library found at run time, with the report's settings.

mod plan;

use std::ffi::{c_char, c_int, c_uchar};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use esker_lab_core::engine::{Database, Durability, Engine, OpenSettings, Session, Start, Variant};
use esker_lab_core::{Error, Result, size};

use plan::{MAX_OPEN_FILES, Plan};

use crate::capi::{ErrorSlot, bytes, c_functions};
use crate::common::{Batch, Common, Connection, Ptr, ReadOptions, WriteOptions};
use crate::dylib::{DROPIN, Dylib, PEERS};

c_functions! {
    /// The functions of LevelDB's `c.h` that the lab calls.
    Api on Common;
    required {
        options_set_write_buffer_size(Ptr, usize);
        options_set_max_open_files(Ptr, c_int);
        options_set_block_size(Ptr, usize);
        options_set_cache(Ptr, Ptr);
        options_set_filter_policy(Ptr, Ptr);
        options_set_compression(Ptr, c_int);
        cache_create_lru(usize) -> Ptr;
        cache_destroy(Ptr);
        filterpolicy_create_bloom(c_int) -> Ptr;
        filterpolicy_destroy(Ptr);
        readoptions_set_verify_checksums(Ptr, c_uchar);
        get(Ptr, Ptr, *const c_char, usize, *mut usize, *mut *mut c_char) -> *mut c_char;
        major_version() -> c_int;
        minor_version() -> c_int;
    }
    optional {
    }
}

/// The engine.
pub struct LevelDb {
    name: &'static str,
    variants: &'static [Variant],
    made_by: &'static str,
    path: PathBuf,
    /// Lives as long as the process, like the library: an open database outlives the borrow of its engine.
    api: OnceLock<Result<&'static Api>>,
}

const VARIANTS: &[Variant] = &[Variant {
    name: "default",
    about: "the report's settings: large write buffer, bloom filters of 10 bits, small block cache",
    default: true,
    control: None,
}];

const DROPIN_VARIANTS: &[Variant] = &[Variant {
    name: "default",
    about: "Esker behind LevelDB's interface, told the same; files through the page cache",
    default: true,
    control: None,
}];

impl LevelDb {
    /// LevelDB out of the library at `path`, loaded when first used.
    pub fn new(path: &Path) -> Self {
        LevelDb {
            name: "leveldb",
            variants: VARIANTS,
            made_by: PEERS,
            path: path.to_owned(),
            api: OnceLock::new(),
        }
    }

    /// Esker behind the same interface, out of the drop-in library at `path`, under the same code as the original.
    pub fn dropin(path: &Path) -> Self {
        LevelDb {
            name: "dropin-leveldb",
            variants: DROPIN_VARIANTS,
            made_by: DROPIN,
            ..Self::new(path)
        }
    }

    fn api(&self) -> Result<&'static Api> {
        self.api
            .get_or_init(|| {
                // The wheel's library needs the snappy that came with it.
                let library = Dylib::open(&self.path, self.made_by, &|name| name.starts_with("libsnappy"))?;
                Ok(Box::leak(Box::new(Api::load(&library, "leveldb_")?)) as &Api)
            })
            .clone()
    }
}

impl Engine for LevelDb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn variants(&self) -> &'static [Variant] {
        self.variants
    }

    fn version(&self) -> Result<String> {
        let api = self.api()?;
        // SAFETY: plain functions without arguments.
        let version = unsafe { format!("{}.{}", (api.major_version)(), (api.minor_version)()) };
        // The interface's version says nothing about what is behind it.
        Ok(match self.name {
            "leveldb" => version,
            _ => format!("Esker behind {version}"),
        })
    }

    fn open(&self, dir: &Path, _: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let api = self.api()?;
        let plan = Plan::new(settings);
        let setup = Setup::new(api, &plan);
        // SAFETY: the options are complete and outlive the connection (`setup` is dropped after it).
        let connection = unsafe { Connection::open(&api.base, setup.options, dir)? };
        let read = ReadOptions::new(&api.base);
        // SAFETY: options of our own.
        unsafe { (api.readoptions_set_verify_checksums)(read.raw(), 1) };
        Ok(Box::new(Open {
            connection,
            read,
            buffered: WriteOptions::new(&api.base),
            sync: WriteOptions::sync(&api.base),
            setup,
            plan,
            has_levels_of_leveldb: self.name == "leveldb",
        }))
    }
}

/// Options, and what they refer to.
struct Setup {
    api: &'static Api,
    options: Ptr,
    cache: Ptr,
    filter: Ptr,
}

// SAFETY: options, caches and filter policies may be used from several threads at once ("c.h" says so).
unsafe impl Send for Setup {}
// SAFETY: as above.
unsafe impl Sync for Setup {}

impl Setup {
    fn new(api: &'static Api, plan: &Plan) -> Self {
        // SAFETY: objects of our own, created, configured and, in `drop`, destroyed once.
        unsafe {
            let options = (api.options_create)();
            let cache = (api.cache_create_lru)(plan.cache_bytes);
            let filter = (api.filterpolicy_create_bloom)(10);
            (api.options_set_create_if_missing)(options, 1);
            (api.options_set_write_buffer_size)(options, plan.write_buffer_bytes);
            (api.options_set_max_open_files)(options, MAX_OPEN_FILES);
            (api.options_set_block_size)(options, plan.block_bytes);
            (api.options_set_cache)(options, cache);
            (api.options_set_filter_policy)(options, filter);
            (api.options_set_compression)(options, c_int::from(plan.snappy));
            Setup {
                api,
                options,
                cache,
                filter,
            }
        }
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, the options before what they refer to.
        unsafe {
            (self.api.options_destroy)(self.options);
            (self.api.cache_destroy)(self.cache);
            (self.api.filterpolicy_destroy)(self.filter);
        }
    }
}

/// Fields are dropped in this order: the database before what it was opened with.
struct Open {
    connection: Connection,
    read: ReadOptions,
    buffered: WriteOptions,
    sync: WriteOptions,
    setup: Setup,
    plan: Plan,
    /// Levels become full at the sizes of LevelDB.
    has_levels_of_leveldb: bool,
}

impl Open {
    fn write_options(&self, durability: Durability) -> &WriteOptions {
        match durability {
            Durability::None | Durability::Buffered => &self.buffered,
            Durability::Sync => &self.sync,
        }
    }
}

/// Whether `leveldb.stats` shows a level above the size at which LevelDB compacts it: 10 MB times 10 a level, four
/// files in level 0. It shows whole megabytes.
fn levels_are_full(stats: &str) -> bool {
    stats.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse::<f64>().ok());
        let (Some(level), Some(files), Some(megabytes)) = (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        if level == 0.0 {
            files >= 4.0
        } else {
            megabytes > 10f64.powf(level) + 1.0
        }
    })
}

impl Database for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let batch = Batch::new(&self.setup.api.base);
        Ok(Box::new(Worker { open: self, batch }))
    }

    fn flush(&self) -> Result<()> {
        // LevelDB has no flush of its own; compacting an empty range past all keys writes the memtable out first.
        let key = [0xffu8; 16];
        self.connection.compact_range(&key, &key);
        Ok(())
    }

    fn compact_all(&self) -> Result<()> {
        self.connection.compact_all();
        Ok(())
    }

    /// It can't put compaction off, so there is no second pass in the report's test either.
    fn merge_bulk_load(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        // It does not say whether a compaction runs; whether one is due shows in the levels. Those of Esker are full at other sizes:
        // of it the silence of the process has to tell.
        let may_be_due =
            self.has_levels_of_leveldb && levels_are_full(&self.connection.property(c"leveldb.stats"));
        Ok(!may_be_due)
    }

    fn stats(&self) -> String {
        self.connection.property(c"leveldb.stats")
    }

    fn applied(&self) -> Vec<(String, String)> {
        let plan = &self.plan;
        [
            ("write_buffer_size", size::display(plan.write_buffer_bytes as f64)),
            ("cache_size", size::display(plan.cache_bytes as f64)),
            ("block_size", size::display(plan.block_bytes as f64)),
            ("bloom_bits", "10".into()),
            ("max_open_files", MAX_OPEN_FILES.to_string()),
            ("compression", if plan.snappy { "snappy" } else { "none" }.into()),
            ("verify_checksums", "1".into()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self);
        Ok(())
    }
}

struct Worker<'a> {
    open: &'a Open,
    batch: Batch,
}

impl Session for Worker<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let options = self.open.write_options(durability);
        self.open.connection.put(options, key, value)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        let options = self.open.write_options(durability);
        self.open.connection.put_batch(options, &mut self.batch, rows)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let api = self.open.setup.api;
        let mut error = ErrorSlot::new();
        let mut length = 0;
        // SAFETY: the key is readable; a non-null answer is `length` bytes that are ours to free.
        unsafe {
            let value = (api.get)(
                self.open.connection.raw(),
                self.open.read.raw(),
                key.as_ptr().cast(),
                key.len(),
                &raw mut length,
                error.out(),
            );
            error.check("get", api.free)?;
            if value.is_null() {
                return Ok(false);
            }
            found(bytes(value, length));
            (api.free)(value.cast());
        }
        Ok(true)
    }

    fn delete(&mut self, key: &[u8], durability: Durability) -> Result<()> {
        let options = self.open.write_options(durability);
        self.open.connection.delete(options, key)
    }

    fn merge(&mut self, _: &[u8], _: &[u8], _: Durability) -> Result<()> {
        Err(Error::unsupported("LevelDB has no merge operation"))
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.open.connection.scan(&self.open.read, start, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_compactions_show_in_the_levels() {
        let table = "                               Compactions\n\
            Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n\
            --------------------------------------------------\n";
        assert!(!levels_are_full(table));
        assert!(!levels_are_full(&format!(
            "{table}  0        3       11         2        0       11\n"
        )));
        assert!(levels_are_full(&format!(
            "{table}  0        4       11         2        0       11\n"
        )));
        assert!(levels_are_full(&format!(
            "{table}  2       60      120         2        0       11\n"
        )));
        assert!(!levels_are_full(&format!(
            "{table}  2       50      100         2        0       11\n"
        )));
    }
}
