//! Write batches as the WAL gives them: any bytes decode to entries or to an error, and entries that encode again
//! decode to the same.
#![no_main]

use esker::batch::{Entry, RawBatch};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(batch) = RawBatch::from_bytes(data.to_vec()) else {
        return;
    };
    let Ok(entries) = batch.iter().collect::<Result<Vec<Entry<'_>>, _>>() else {
        return;
    };
    assert_eq!(entries.len(), batch.count() as usize);
    let mut again = RawBatch::default();
    again.set_sequence(batch.sequence());
    for entry in &entries {
        // Decoding takes ends of ranges that are longer than a key; encoding does not.
        if again
            .push(entry.family, entry.kind, entry.key, entry.value)
            .is_err()
        {
            return;
        }
    }
    assert_eq!(again.sequence(), batch.sequence());
    assert_eq!(
        again.iter().collect::<Result<Vec<_>, _>>().as_deref().ok(),
        Some(entries.as_slice())
    );
});
