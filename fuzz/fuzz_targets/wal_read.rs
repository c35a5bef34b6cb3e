//! Segments of the write-ahead log, in every recovery mode: reading ends, and no mode gives what another denies.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    esker::wal::fuzz_read(data);
});
