//! Manifests: any bytes are a state or an error. An odd first byte makes their checksums right, so that the parsers
//! behind them are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((first, rest)) = data.split_first() {
        esker::version::manifest::fuzz_manifest(rest, first % 2 == 1);
    }
});
