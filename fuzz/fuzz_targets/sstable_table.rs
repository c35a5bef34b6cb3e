//! Whole tables: opened, searched, scanned both ways and verified. An odd first byte makes their checksums right, so
//! that the parsers behind them are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((first, rest)) = data.split_first() {
        esker::sstable::fuzz_table(rest, first % 2 == 1);
    }
});
