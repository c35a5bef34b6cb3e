//! Descriptions of exported column families: any bytes are refused, or survive being encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| esker::version::fuzz_family(data));
