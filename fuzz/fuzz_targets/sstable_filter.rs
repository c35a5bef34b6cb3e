//! Filters: any bytes answer, and a filter has no false negatives.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| esker::sstable::fuzz_filter(data));
