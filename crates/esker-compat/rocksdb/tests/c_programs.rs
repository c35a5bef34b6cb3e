//! A program in C does what programs do, against this library and against the real one; another one asks for what is
//! refused.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

#[test]
fn a_program_gets_the_same_answers_as_from_the_real_library() {
    let source = source("everything.c");
    let ours = support::output(&source, &support::ours());
    assert!(ours.ends_with("done\n"), "{ours}");
    if let Some(real) = support::real("librocksdb.so") {
        support::assert_same(&ours, &support::output(&source, &real));
    }
}

const REFUSALS: &str = "\
atomic flush: Not implemented: atomic_flush: families are flushed one by one, so without the log a crash may leave them apart
FIFO: Not implemented: FIFO compaction, which drops rows: this library keeps them
bzip2: Invalid argument: Compression type 3 is not linked with the binary; there are 0 (none), 1 (snappy), 2 (zlib), 4 and 5 (lz4), 7 (zstd)
compaction filter: Not implemented: compaction filters: rows that they would drop would stay
a prefix of the program's own: ok
put: ok
a long key: Invalid argument: a key of 70000 bytes; the limit is 65536
a batch with a long key: Invalid argument: a key of 70000 bytes; the limit is 65536
a batch with a merge and no operator: Invalid argument: Merge requires `ColumnFamilyOptions::merge_operator != nullptr`
a batch of bad bytes: Corruption: bad WriteBatch: an entry can't be read
a range that ends before it starts: Invalid argument: end key comes before start key
read tier: Not implemented: read_tier: reads can't be kept from the storage
valid: 0
its iterator: Not implemented: read_tier: reads can't be kept from the storage
ignored range deletions: Not implemented: ignore_range_deletions: what a range deletion covers is never shown
same prefix of the program's own: Not implemented: prefix_same_as_start with a prefix of the program's own: rows beyond it would be shown
key: 'value'
Esker\x20
valid: 0
an iterator of a closed database: Shutdown in progress: the database was closed
value
a database of RocksDB's: Invalid argument:
";

#[test]
fn what_would_change_results_is_refused_and_says_why() {
    support::assert_same(
        &support::output(&source("refusals.c"), &support::ours()),
        REFUSALS,
    );
}
