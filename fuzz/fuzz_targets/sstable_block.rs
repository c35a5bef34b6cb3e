//! Sorted blocks: what parses can be searched, and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| esker::sstable::fuzz_block(data));
