//! Write batches as the WAL gives them: any bytes decode to entries or to an error, and entries that decode can be
//! pushed again and decode to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| esker::batch::fuzz_decode(data));
