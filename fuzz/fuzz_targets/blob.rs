//! Blob files, and pointers to their records: opened, walked and read in every way, to the same values. An odd first byte
//! makes ids and checksums right, so that the parsers behind them are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((first, rest)) = data.split_first() {
        esker::blob::fuzz_file(rest, first % 2 == 1);
    }
});
