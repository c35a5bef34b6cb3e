//! Every option that is a plain number has RocksDB's default, and gives back what was set.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::ffi::{c_int, c_uchar, c_uint, c_void};
use std::path::Path;

use libloading::Library;

type Ptr = *mut c_void;

/// A row of a table in the sources: the object's type here, the number's type, setter and getter.
#[derive(Debug)]
struct Row {
    object: String,
    kind: String,
    set: String,
    get: String,
}

fn rows() -> Vec<Row> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = [
        "options/mapped.rs",
        "options/ignored.rs",
        "options/styles.rs",
        "table.rs",
        "read_options.rs",
        "write_options.rs",
        "maintenance_options.rs",
    ];
    let mut rows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(sources.join(file)).expect("a source");
        for table in text.split("settings! {").skip(1) {
            let table = table.split("\n}").next().expect("a table");
            let code = table.lines().filter(|line| !line.trim_start().starts_with("//"));
            let table = code.collect::<Vec<_>>().join("\n");
            let mut parts = table.split(';');
            let head = parts.next().expect("a head");
            let object = head.split_whitespace().last().expect("an object").to_owned();
            for row in parts.filter(|row| row.contains(':')) {
                let (declared, functions) = row.split_once(',').expect("functions");
                let (set, get) = functions.split_once(',').expect("two functions");
                let kind = declared.split([':', '=']).nth(1).expect("a type");
                rows.push(Row {
                    object: object.clone(),
                    kind: kind.trim().to_owned(),
                    set: set.trim().to_owned(),
                    get: get.trim().to_owned(),
                });
            }
        }
    }
    assert!(rows.len() > 200, "{}", rows.len());
    rows
}

fn create(object: &str) -> &'static str {
    match object {
        "Settings" => "rocksdb_options",
        "Universal" => "rocksdb_universal_compaction_options",
        "Fifo" => "rocksdb_fifo_compaction_options",
        "TableSettings" => "rocksdb_block_based_options",
        "ReadSettings" => "rocksdb_readoptions",
        "WriteSettings" => "rocksdb_writeoptions",
        "FlushSettings" => "rocksdb_flushoptions",
        "FlushWalSettings" => "rocksdb_flushwaloptions",
        "CompactSettings" => "rocksdb_compactoptions",
        "WaitSettings" => "rocksdb_wait_for_compact_options",
        other => panic!("no function makes a {other}"),
    }
}

/// The default of a number and what it is after having been set.
fn look(library: &Library, row: &Row) -> [String; 2] {
    /// # Safety
    /// The getter and the setter take a `T`.
    unsafe fn of<T: Copy + ToString>(library: &Library, row: &Row, new: T) -> [String; 2] {
        let prefix = create(&row.object);
        // SAFETY: the functions of the header, with these types.
        unsafe {
            let create = library.get::<unsafe extern "C" fn() -> Ptr>(format!("{prefix}_create").as_bytes());
            let destroy = library.get::<unsafe extern "C" fn(Ptr)>(format!("{prefix}_destroy").as_bytes());
            let set = library.get::<unsafe extern "C" fn(Ptr, T)>(row.set.as_bytes());
            let get = library.get::<unsafe extern "C" fn(Ptr) -> T>(row.get.as_bytes());
            let (create, destroy) = (create.expect("create"), destroy.expect("destroy"));
            let (set, get) = (set.expect("a setter"), get.expect("a getter"));
            let object = create();
            let default = get(object).to_string();
            set(object, new);
            let after = get(object).to_string();
            destroy(object);
            [default, after]
        }
    }
    // SAFETY: the row names the type.
    unsafe {
        match row.kind.as_str() {
            "c_uchar" => of::<c_uchar>(library, row, 1),
            "u8" => of::<u8>(library, row, 4),
            "c_int" => of::<c_int>(library, row, 1),
            "c_uint" => of::<c_uint>(library, row, 12_345),
            "i64" => of::<i64>(library, row, 12_345),
            "u32" => of::<u32>(library, row, 4),
            "u64" => of::<u64>(library, row, 1 << 20),
            "usize" => of::<usize>(library, row, 1 << 20),
            "f64" => of::<f64>(library, row, 0.5),
            other => panic!("a number of type {other}"),
        }
    }
}

#[test]
fn numbers_have_the_defaults_of_the_real_library_and_keep_what_is_set() {
    // SAFETY: the library that the test is about.
    let ours = unsafe { Library::new(support::ours()) }.expect("our library");
    // SAFETY: the one that it stands in for.
    let real =
        support::real("librocksdb.so").map(|path| unsafe { Library::new(path) }.expect("the real one"));
    for row in rows() {
        let [default, after] = look(&ours, &row);
        if let Some(real) = &real {
            assert_eq!(
                [default, after],
                look(real, &row),
                "{row:?} (ours, then the real library's)"
            );
        } else {
            assert!(!after.is_empty() && !default.is_empty());
        }
    }
    // The real library leaves threads behind.
    std::mem::forget(real);
}
