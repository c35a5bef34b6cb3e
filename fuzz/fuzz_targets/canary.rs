//! A parser with a planted bug behind a magic number and a length: a fuzzer that does not find it is no fuzzer.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(body) = data.strip_prefix(b"ESKR")
        && let Some((&len, rest)) = body.split_first()
    {
        assert!(usize::from(len) <= rest.len() || len < 0x80, "the planted bug");
    }
});
