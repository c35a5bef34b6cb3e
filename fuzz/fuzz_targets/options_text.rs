//! Settings as text, as they are stored with the database: any text is refused, or sets what its own text sets again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        esker::fuzz_options_text(text);
    }
});
