//! Compressed blocks: any bytes are refused within the limit of memory, and what is compressed comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| esker::sstable::fuzz_compression(data));
