//! LevelDB through its C interface, out of a library found at run time, with the report's settings.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use esker_lab_core::engine::{
    Compression, Database, Durability, Engine, OpenSettings, Profile, Session, Start, Variant,
};
use esker_lab_core::{Error, Result, size};

use crate::capi::{ErrorSlot, bytes, c_functions, c_path};
use crate::dylib::Dylib;

/// Any of LevelDB's objects, which are only ever handled by address.
type Ptr = *mut c_void;

c_functions! {
    /// The functions of LevelDB's `c.h` that the lab calls.
    Api, "leveldb_";
    required {
        options_create() -> Ptr;
        options_destroy(Ptr);
        options_set_create_if_missing(Ptr, c_uchar);
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
        readoptions_create() -> Ptr;
        readoptions_destroy(Ptr);
        readoptions_set_verify_checksums(Ptr, c_uchar);
        writeoptions_create() -> Ptr;
        writeoptions_destroy(Ptr);
        writeoptions_set_sync(Ptr, c_uchar);
        open(Ptr, *const c_char, *mut *mut c_char) -> Ptr;
        close(Ptr);
        put(Ptr, Ptr, *const c_char, usize, *const c_char, usize, *mut *mut c_char);
        delete(Ptr, Ptr, *const c_char, usize, *mut *mut c_char);
        get(Ptr, Ptr, *const c_char, usize, *mut usize, *mut *mut c_char) -> *mut c_char;
        write(Ptr, Ptr, Ptr, *mut *mut c_char);
        writebatch_create() -> Ptr;
        writebatch_destroy(Ptr);
        writebatch_clear(Ptr);
        writebatch_put(Ptr, *const c_char, usize, *const c_char, usize);
        create_iterator(Ptr, Ptr) -> Ptr;
        iter_destroy(Ptr);
        iter_valid(Ptr) -> c_uchar;
        iter_seek_to_first(Ptr);
        iter_seek_to_last(Ptr);
        iter_seek(Ptr, *const c_char, usize);
        iter_next(Ptr);
        iter_prev(Ptr);
        iter_key(Ptr, *mut usize) -> *const c_char;
        iter_value(Ptr, *mut usize) -> *const c_char;
        iter_get_error(Ptr, *mut *mut c_char);
        compact_range(Ptr, *const c_char, usize, *const c_char, usize);
        property_value(Ptr, *const c_char) -> *mut c_char;
        free(Ptr);
        major_version() -> c_int;
        minor_version() -> c_int;
    }
    optional {
    }
}

/// The engine.
pub struct LevelDb {
    path: PathBuf,
    /// Lives as long as the process, like the library: an open database outlives the borrow of its engine.
    api: OnceLock<Result<&'static Api>>,
}

const VARIANTS: &[Variant] = &[Variant {
    name: "default",
    about: "the report's settings: large write buffer, bloom filters of 10 bits, small block cache",
    default: true,
}];

impl LevelDb {
    /// LevelDB out of the library at `path`, loaded when first used.
    pub fn new(path: &Path) -> Self {
        LevelDb {
            path: path.to_owned(),
            api: OnceLock::new(),
        }
    }

    fn api(&self) -> Result<&'static Api> {
        self.api
            .get_or_init(|| {
                // The wheel's library needs the snappy that came with it.
                let library = Dylib::open(&self.path, &|name| name.starts_with("libsnappy"))?;
                Ok(Box::leak(Box::new(Api::load(&library)?)) as &Api)
            })
            .clone()
    }
}

impl Engine for LevelDb {
    fn name(&self) -> &'static str {
        "leveldb"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn version(&self) -> Result<String> {
        let api = self.api()?;
        // SAFETY: plain functions without arguments.
        Ok(unsafe { format!("{}.{}", (api.major_version)(), (api.minor_version)()) })
    }

    fn open(&self, dir: &Path, _: &str, settings: &OpenSettings) -> Result<Box<dyn Database>> {
        let api = self.api()?;
        let path = c_path(dir)?;
        let plan = Plan::new(settings);
        // SAFETY: objects are created, configured and handed over as the header asks: the cache, the filter policy
        // and the options outlive the database (they are destroyed after it in `close`, or below).
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
            let mut error = ErrorSlot::new();
            let database = (api.open)(options, path.as_ptr(), error.out());
            let opened = Open {
                api,
                database,
                options,
                cache,
                filter,
                read: (api.readoptions_create)(),
                buffered: (api.writeoptions_create)(),
                sync: (api.writeoptions_create)(),
                plan,
            };
            error.check("opening", api.free)?;
            (api.readoptions_set_verify_checksums)(opened.read, 1);
            (api.writeoptions_set_sync)(opened.sync, 1);
            Ok(Box::new(opened))
        }
    }
}

const MAX_OPEN_FILES: c_int = 500_000;

/// The report's settings, scaled to the memory there is.
struct Plan {
    write_buffer_bytes: usize,
    cache_bytes: usize,
    block_bytes: usize,
    snappy: bool,
}

impl Plan {
    fn new(settings: &OpenSettings) -> Plan {
        let memory = settings.memory_bytes as usize;
        // The report's buffer, of which there are two at a time, within a quarter of the memory.
        let report_buffer = if settings.profile == Profile::BulkSequential {
            128 << 20
        } else {
            256 << 20
        };
        Plan {
            write_buffer_bytes: (memory / 8).clamp(1 << 20, report_buffer),
            // 1 MiB in the report's tests 1 to 4; 16 GiB of 144 in test 5.
            cache_bytes: if settings.profile == Profile::Mixed {
                memory / 9
            } else {
                1 << 20
            },
            // LevelDB's report ran with its default of 4 KiB everywhere.
            block_bytes: 4096,
            // It knows no other compression than snappy.
            snappy: settings.compression.levels(settings.profile).1 != Compression::None,
        }
    }
}

struct Open {
    api: &'static Api,
    database: Ptr,
    options: Ptr,
    cache: Ptr,
    filter: Ptr,
    read: Ptr,
    buffered: Ptr,
    sync: Ptr,
    plan: Plan,
}

// SAFETY: LevelDB's database, caches, options and filter policies may be used from several threads at once ("c.h" and
// "db.h" say so); everything else is made a session.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        let api = self.api;
        // SAFETY: each object is ours and destroyed once, the database before what it uses. A database that did not
        // open is null.
        unsafe {
            if !self.database.is_null() {
                (api.close)(self.database);
            }
            (api.readoptions_destroy)(self.read);
            (api.writeoptions_destroy)(self.buffered);
            (api.writeoptions_destroy)(self.sync);
            (api.options_destroy)(self.options);
            (api.cache_destroy)(self.cache);
            (api.filterpolicy_destroy)(self.filter);
        }
    }
}

impl Open {
    fn property(&self, name: &std::ffi::CStr) -> String {
        // SAFETY: the database is open; the returned string is null or NUL-terminated and ours to free.
        unsafe {
            let value = (self.api.property_value)(self.database, name.as_ptr());
            if value.is_null() {
                return String::new();
            }
            let text = std::ffi::CStr::from_ptr(value).to_string_lossy().into_owned();
            (self.api.free)(value.cast());
            text
        }
    }

    fn write_options(&self, durability: Durability) -> Ptr {
        match durability {
            Durability::None | Durability::Buffered => self.buffered,
            Durability::Sync => self.sync,
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
        // SAFETY: a batch of our own.
        let batch = unsafe { (self.api.writebatch_create)() };
        Ok(Box::new(Worker { open: self, batch }))
    }

    fn flush(&self) -> Result<()> {
        // LevelDB has no flush of its own; compacting an empty range past all keys writes the memtable out first.
        let key = [0xffu8; 16];
        // SAFETY: the key is readable for the length given.
        unsafe {
            (self.api.compact_range)(
                self.database,
                key.as_ptr().cast(),
                key.len(),
                key.as_ptr().cast(),
                key.len(),
            );
        }
        Ok(())
    }

    fn compact_all(&self) -> Result<()> {
        // SAFETY: null keys mean before the first and after the last.
        unsafe { (self.api.compact_range)(self.database, std::ptr::null(), 0, std::ptr::null(), 0) };
        Ok(())
    }

    /// It can't put compaction off, so there is no second pass in the report's test either.
    fn merge_bulk_load(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        // It does not say whether a compaction runs; whether one is due shows in the levels.
        Ok(!levels_are_full(&self.property(c"leveldb.stats")))
    }

    fn stats(&self) -> String {
        self.property(c"leveldb.stats")
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
    batch: Ptr,
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once.
        unsafe { (self.open.api.writebatch_destroy)(self.batch) };
    }
}

/// An iterator that is destroyed when it goes out of scope.
struct Iter<'a> {
    api: &'a Api,
    iter: Ptr,
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, destroyed once, before the database (its lifetime is inside a session's).
        unsafe { (self.api.iter_destroy)(self.iter) };
    }
}

impl Session for Worker<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        let api = self.open.api;
        let mut error = ErrorSlot::new();
        // SAFETY: key and value are readable for the lengths given.
        unsafe {
            (api.put)(
                self.open.database,
                self.open.write_options(durability),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error.out(),
            );
        }
        error.check("put", api.free)
    }

    fn put_batch(&mut self, rows: &[(&[u8], &[u8])], durability: Durability) -> Result<()> {
        let api = self.open.api;
        let mut error = ErrorSlot::new();
        // SAFETY: keys and values are readable for the lengths given and copied into our own batch.
        unsafe {
            (api.writebatch_clear)(self.batch);
            for (key, value) in rows {
                (api.writebatch_put)(
                    self.batch,
                    key.as_ptr().cast(),
                    key.len(),
                    value.as_ptr().cast(),
                    value.len(),
                );
            }
            (api.write)(
                self.open.database,
                self.open.write_options(durability),
                self.batch,
                error.out(),
            );
        }
        error.check("write", api.free)
    }

    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let api = self.open.api;
        let mut error = ErrorSlot::new();
        let mut length = 0;
        // SAFETY: the key is readable; a non-null answer is `length` bytes that are ours to free.
        unsafe {
            let value = (api.get)(
                self.open.database,
                self.open.read,
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
        let api = self.open.api;
        let mut error = ErrorSlot::new();
        // SAFETY: the key is readable for the length given.
        unsafe {
            let options = self.open.write_options(durability);
            (api.delete)(
                self.open.database,
                options,
                key.as_ptr().cast(),
                key.len(),
                error.out(),
            );
        }
        error.check("delete", api.free)
    }

    fn merge(&mut self, _: &[u8], _: &[u8], _: Durability) -> Result<()> {
        Err(Error::unsupported("LevelDB has no merge operation"))
    }

    fn scan(&mut self, start: Start<'_>, row: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let api = self.open.api;
        // SAFETY: the iterator is ours; keys and values are read only while it is valid and not moved.
        unsafe {
            let iter = Iter {
                api,
                iter: (api.create_iterator)(self.open.database, self.open.read),
            };
            match start {
                Start::At(key) => (api.iter_seek)(iter.iter, key.as_ptr().cast(), key.len()),
                Start::First => (api.iter_seek_to_first)(iter.iter),
                Start::Last => (api.iter_seek_to_last)(iter.iter),
            }
            while (api.iter_valid)(iter.iter) != 0 {
                let (mut key_length, mut value_length) = (0, 0);
                let key = (api.iter_key)(iter.iter, &raw mut key_length);
                let value = (api.iter_value)(iter.iter, &raw mut value_length);
                if !row(bytes(key, key_length), bytes(value, value_length)) {
                    break;
                }
                match start {
                    Start::Last => (api.iter_prev)(iter.iter),
                    Start::First | Start::At(_) => (api.iter_next)(iter.iter),
                }
            }
            let mut error = ErrorSlot::new();
            (api.iter_get_error)(iter.iter, error.out());
            error.check("scan", api.free)
        }
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
